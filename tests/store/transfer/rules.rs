//! Stores that are merged: what happens to keys that both have, and to near-duplicates.

use std::collections::BTreeMap;

use resemblance::{Error, ExistingKeys, MinHash, Novelty, Schema, SimHash, Store, Text};

use crate::common::{Place, Random, check_clean, refused};
use crate::transfer::{Entry, create, entries, entry, export, fill, import, signature};

fn schema() -> Schema {
    let builder = Schema::builder().minhash(MinHash::new(32).banding(6, 3).threshold(0.6));
    builder.build().unwrap()
}

/// Documents with keys from `first` on, and some without.
fn documents(first: u64, count: u64, random: &mut Random) -> Vec<Entry> {
    let sketcher = schema().sketcher();
    (first..first + count)
        .map(|number| entry(signature(&sketcher, random), number, random))
        .collect()
}

/// Two lots of documents that share keys, and the stream of the second.
struct Merge {
    place: Place,
    first: Vec<Entry>,
    second: Vec<Entry>,
    stream: Vec<u8>,
}

impl Merge {
    fn new(seed: u64) -> Self {
        let place = Place::new();
        let mut random = Random(seed);
        let first = documents(0, 120, &mut random);
        let second = documents(60, 130, &mut random);
        let store = create(&place, "second.rsm", schema());
        fill(&store, &second);
        let stream = export(&store.snapshot().unwrap());
        Self {
            place,
            first,
            second,
            stream,
        }
    }

    /// The store of the first lot.
    fn store(&self, name: &str) -> Store {
        let store = create(&self.place, name, schema());
        fill(&store, &self.first);
        store
    }
}

/// Returns the contents of a store after both batches: by key, and those without a key.
fn merged(merge: &Merge, rule: ExistingKeys) -> (BTreeMap<Vec<u8>, Entry>, Vec<Entry>, [u64; 3]) {
    let mut keyed = BTreeMap::new();
    let mut unkeyed = Vec::new();
    let [mut inserted, mut replaced, mut skipped] = [0; 3];
    for entry in &merge.first {
        match entry.key.clone() {
            Some(key) => drop(keyed.insert(key, entry.clone())),
            None => unkeyed.push(entry.clone()),
        }
    }
    for entry in &merge.second {
        let Some(key) = entry.key.clone() else {
            unkeyed.push(entry.clone());
            inserted += 1;
            continue;
        };
        let known: Option<&Entry> = keyed.get(&key);
        let replaces = known.map(|known| match rule {
            ExistingKeys::Replace => true,
            ExistingKeys::ReplaceIfNewer => entry.stamp > known.stamp,
            _ => false,
        });
        match replaces {
            None => inserted += 1,
            Some(true) => replaced += 1,
            Some(false) => skipped += 1,
        }
        if replaces != Some(false) {
            keyed.insert(key, entry.clone());
        }
    }
    (keyed, unkeyed, [inserted, replaced, skipped])
}

#[test]
fn import_rule_determines_shared_keys() {
    let merge = Merge::new(1);
    for (number, rule) in [
        ExistingKeys::Skip,
        ExistingKeys::Replace,
        ExistingKeys::ReplaceIfNewer,
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("all-{number}.rsm");
        let store = merge.store(&name);
        let report = import(
            store
                .import(&merge.stream[..])
                .existing_keys(rule)
                .transaction_documents(17),
        );
        let (keyed, unkeyed, counts) = merged(&merge, rule);
        assert_eq!([report.inserted, report.replaced, report.skipped], counts);
        assert!(counts[1] + counts[2] > 20, "{counts:?}");
        let found = entries(&store.snapshot().unwrap());
        let (with_key, without): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|entry| entry.key.is_some());
        assert!(without == unkeyed);
        let with_key = with_key
            .into_iter()
            .map(|entry| (entry.key.clone().unwrap(), entry));
        assert!(with_key.collect::<BTreeMap<_, _>>() == keyed);
        drop(store);
        check_clean(&merge.place.file(&name));
    }
}

#[test]
fn import_if_new_agrees_with_single_inserts() {
    let merge = Merge::new(2);
    let store = merge.store("all.rsm");
    let report = import(
        store
            .import(&merge.stream[..])
            .existing_keys(ExistingKeys::Skip)
            .if_new(true)
            .transaction_documents(23),
    );
    let expected = merge.store("expected.rsm");
    let mut counts = [0; 3];
    let mut transaction = expected.begin_write().unwrap();
    for entry in &merge.second {
        let found = transaction.insert_if_new(entry.document(), &entry.signature);
        counts[match found.unwrap() {
            Novelty::New { .. } => 0,
            Novelty::NearDuplicate(_) => 1,
            _ => 2,
        }] += 1;
    }
    transaction.commit().unwrap();
    assert_eq!(
        [report.inserted, report.near_duplicates, report.skipped],
        counts
    );
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
    assert!(entries(&store.snapshot().unwrap()) == entries(&expected.snapshot().unwrap()));
}

fn stopped(error: Error) -> (u64, Error) {
    match error {
        Error::ImportStopped { documents, source } => (documents, *source),
        other => panic!("{other}"),
    }
}

#[test]
fn refused_key_keeps_earlier_commits_of_an_import() {
    let merge = Merge::new(3);
    let known =
        |entry: &Entry| entry.key.is_some() && merge.first.iter().any(|f| f.key == entry.key);
    let first_known = merge.second.iter().position(known).unwrap() as u64;
    for if_new in [false, true] {
        let store = merge.store(&format!("refuses-{if_new}.rsm"));
        let before = store.snapshot().unwrap().len();
        let one_by_one = store.import(&merge.stream[..]).transaction_documents(1);
        let (documents, source) = stopped(one_by_one.if_new(if_new).run().unwrap_err());
        assert_eq!(documents, first_known);
        assert!(matches!(source, Error::KeyExists { key, .. }
            if Some(&key) == merge.second[first_known as usize].key.as_ref()));
        let taken = store.snapshot().unwrap().len() - before;
        assert!(if if_new {
            taken <= documents
        } else {
            taken == documents
        });
        // In one transaction nothing of it is taken.
        let before = store.snapshot().unwrap().len();
        let error = store
            .import(&merge.stream[..])
            .if_new(if_new)
            .run()
            .unwrap_err();
        assert_eq!(stopped(error).0, 0);
        assert_eq!(store.snapshot().unwrap().len(), before);
    }
}

#[test]
fn import_names_a_different_recipe_before_writing() {
    let place = Place::new();
    let minhash = |values: MinHash| Schema::builder().text(Text::words(2)).minhash(values);
    let whole = MinHash::new(64).banding(5, 4).value_bits(32);
    let base = || minhash(whole).simhash(SimHash::bits64());
    let cut = |bands| {
        minhash(MinHash::new(64).value_bits(4).banding(bands, 4)).simhash(SimHash::bits64())
    };
    let new = |name: &str, builder: resemblance::SchemaBuilder| {
        create(&place, name, builder.build().unwrap())
    };
    let stream_of = |store: &Store| {
        let sketcher = store.sketcher();
        for number in 0..5u64 {
            let hashes = (number..number + 30).map(|feature| Random(feature).next());
            let signature = sketcher.hashes(hashes).unwrap();
            store.insert(number.to_le_bytes(), &signature).unwrap();
        }
        export(&store.snapshot().unwrap())
    };
    let whole = stream_of(&new("whole.rsm", base()));
    let few_bits = stream_of(&new("cut.rsm", cut(6)));
    let others = [
        ("text", base().text(Text::words(3)), &whole),
        ("seed", base().seed(9), &whole),
        (
            "MinHash",
            base().minhash(MinHash::new(128).value_bits(32)),
            &whole,
        ),
        ("SimHash", base().simhash(SimHash::bits128()), &whole),
        ("SimHash", minhash(MinHash::new(64)), &whole),
        ("bits of a value", base(), &few_bits),
        (
            "bits of a value",
            base().minhash(MinHash::new(64).value_bits(8)),
            &few_bits,
        ),
    ];
    for (number, (expected, builder, stream)) in others.into_iter().enumerate() {
        let store = new(&format!("other-{number}.rsm"), builder);
        match store.import(&stream[..]).run() {
            Err(Error::OtherRecipe { part, .. }) => assert_eq!(part, expected),
            other => panic!("{expected}: {other:?}"),
        }
        assert!(store.snapshot().unwrap().is_empty());
    }
    // Whole values are cut here. Values with the same number of bits are imported unchanged,
    // whatever their bands were.
    for (name, stream) in [("a.rsm", &whole), ("bands.rsm", &few_bits)] {
        let store = new(name, cut(7));
        assert_eq!(import(store.import(&stream[..])).inserted, 5);
    }
    let store = Store::open(place.file("bands.rsm")).unwrap();
    for rule in [ExistingKeys::Replace, ExistingKeys::ReplaceIfNewer] {
        refused(
            store
                .import(&whole[..])
                .if_new(true)
                .existing_keys(rule)
                .run(),
            "if_new",
        );
    }
}
