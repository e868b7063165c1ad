use crate::error::Error;
use crate::options::StoreOptions;
use crate::query::bounds::{Bounds, Family, SearchOptions};
use crate::sample::one_in;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::types::{Document, DocumentId, Match, Matches, Novelty, Record, Scope};
use crate::write::WriteTransaction;
use resemblance_sketch::schema::{Combine, MinHash, Schema, SimHash};
use resemblance_sketch::sketch::EmptyDocuments;

use super::*;

/// SplitMix64: numbers that are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A signature of the schema: alone, near one of few centres (the first one's buckets are hot),
    /// or without features.
    fn signature(&mut self, schema: &Schema) -> Signature {
        let family = match self.below(8) {
            0 => {
                let minhash = schema.minhash().map(|m| vec![0; m.values().into()]);
                return Signature::with_all(minhash, schema.simhash().map(|_| 0), true, None);
            }
            1 | 2 => self.next(),
            3..=5 => 1,
            _ => self.below(30),
        };
        let minhash = schema.minhash().map(|minhash| {
            let mut values: Vec<u32> = (0..u32::from(minhash.values()))
                .map(|i| (family as u32).wrapping_mul(1_000).wrapping_add(i))
                .collect();
            for _ in 0..self.below(12) {
                let place = self.below(values.len() as u64) as usize;
                values[place] = self.next() as u32;
            }
            values
        });
        let simhash = schema.simhash().map(|_| {
            let bits = (0..self.below(4)).fold(0, |bits, _| bits ^ 1 << self.below(64));
            family.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ bits
        });
        Signature::from_parts(minhash, simhash)
    }

    fn signatures(&mut self, schema: &Schema, count: usize) -> Vec<Signature> {
        (0..count).map(|_| self.signature(schema)).collect()
    }

    /// Some keys come often, and some documents have none.
    fn key(&mut self) -> Option<Vec<u8>> {
        match self.below(4) {
            0 => None,
            1 => Some(self.below(40).to_le_bytes().to_vec()),
            _ => Some(self.next().to_le_bytes().to_vec()),
        }
    }
}

fn schemas() -> Vec<Schema> {
    let minhash = || MinHash::new(32).threshold(0.7);
    let simhash = || SimHash::bits64().max_distance(3);
    let both = || Schema::builder().minhash(minhash()).simhash(simhash());
    let builders = [
        Schema::builder().minhash(minhash()),
        Schema::builder().simhash(simhash()),
        both(),
        both().near(Combine::Both),
        both().empty_documents(EmptyDocuments::Alike),
    ];
    builders.map(|builder| builder.build().unwrap()).into()
}

fn document(key: &Option<Vec<u8>>) -> Document<'_> {
    match key {
        Some(key) => Document::new(key),
        None => Document::without_key(),
    }
}

fn create(folder: &tempfile::TempDir, name: &str, schema: &Schema, flush_after: u64) -> Store {
    let options = StoreOptions::new().flush_after(flush_after);
    options
        .create(folder.path().join(name), schema.clone())
        .unwrap()
}

/// Several commits, after each of which some documents go.
fn fill(store: &Store, random: &mut Random) {
    for commit in 0..5 {
        let mut transaction = store.begin_write().unwrap();
        for _ in 0..random.below(120) + 1 {
            let (key, signature) = (random.key(), random.signature(store.schema()));
            transaction.upsert(document(&key), &signature).unwrap();
        }
        for _ in 0..10 * commit {
            let id = random.below(transaction.len() + 50);
            transaction.remove_id(DocumentId::new(id)).unwrap();
        }
        transaction.commit().unwrap();
    }
}

const LIMITS: [usize; 3] = [usize::MAX, 2, 0];

/// Asserts that all together are answered as each alone, for one in so many of them.
fn assert_same_answers(
    snapshot: &Snapshot,
    signatures: &[Signature],
    bounds: Bounds,
    limits: &[usize],
    distance: usize,
) {
    for &limit in limits {
        let many = snapshot.query(signatures).bounds(bounds).limit(limit);
        let one =
            |signature: &Signature| snapshot.query(signature).bounds(bounds).limit(limit).run();
        let apart: Result<Vec<_>> = signatures.iter().step_by(distance).map(one).collect();
        let many = many.run().unwrap().into_iter().step_by(distance);
        assert_eq!(many.collect::<Vec<_>>(), apart.unwrap(), "{bounds:?}");
    }
}

/// Each schema with one of the ways of flushing in turn, all bounds with one of the limits in turn, and one in seven
/// signatures alone too. With all of them with `RESEMBLANCE_TESTS=all`.
#[test]
fn query_batch_agrees_with_single_queries() {
    let mut random = Random(1);
    let distance = one_in(3);
    for (number, schema) in schemas().into_iter().enumerate() {
        let mut bounds = vec![Bounds::new()];
        if schema.minhash().is_some() {
            let lower = Bounds::new().min_similarity(0.2).accept_lower_recall();
            bounds.extend([lower, Bounds::new().min_similarity(0.9)]);
        }
        if schema.simhash().is_some() {
            bounds.push(Bounds::new().max_distance(1));
        }
        if schema.minhash().is_some() && schema.simhash().is_some() {
            bounds.extend([Family::Any, Family::Both].map(|by| Bounds::new().by(by)));
        }
        let ways = [7, 60, 10_000].into_iter();
        for flush_after in ways.skip(number % distance).step_by(distance) {
            let folder = tempfile::tempdir().unwrap();
            let store = create(&folder, "s", &schema, flush_after);
            for _ in 0..2 {
                let snapshot = store.snapshot().unwrap();
                let signatures = random.signatures(&schema, 150);
                for (turn, bounds) in (number..).zip(&bounds) {
                    let limits = LIMITS[turn % one_in(3)..].iter().step_by(one_in(3));
                    let limits: Vec<usize> = limits.copied().collect();
                    assert_same_answers(&snapshot, &signatures, *bounds, &limits, one_in(7));
                }
                let many = snapshot.candidates(&signatures).unwrap();
                let some = signatures.iter().step_by(one_in(7));
                let apart = some.map(|s| snapshot.candidates(s).unwrap());
                assert!(many.into_iter().step_by(one_in(7)).eq(apart));
                fill(&store, &mut random);
            }
        }
    }
}

/// A scan, a document that is left out, a budget and a limit.
#[test]
fn query_batch_applies_options_to_each() {
    let mut random = Random(2);
    for schema in schemas() {
        let folder = tempfile::tempdir().unwrap();
        let store = create(&folder, "s", &schema, 60);
        fill(&store, &mut random);
        let snapshot = store.snapshot().unwrap();
        let signatures = random.signatures(&schema, 40);
        let all = snapshot.query(&signatures).run().unwrap();
        let exclude = all.iter().flatten().next().map(Match::id);
        assert!(exclude.is_some());
        let base = SearchOptions::default();
        for options in [
            SearchOptions { exclude, ..base },
            SearchOptions {
                exclude,
                probe_budget: Some(3),
                ..base
            },
            SearchOptions {
                exclude,
                scan: Some(true),
                limit: Some(2),
                ..base
            },
            SearchOptions {
                scan: Some(false),
                limit: Some(1),
                ..base
            },
        ] {
            let many = snapshot.query(&signatures).options(options).run().unwrap();
            let found = |matches: &Matches| matches.iter().any(|found| Some(found.id()) == exclude);
            assert_eq!(
                many.iter().any(found),
                options.exclude.is_none(),
                "{options:?}"
            );
            for (signature, together) in signatures.iter().zip(many) {
                let alone = snapshot.query(signature).options(options).run().unwrap();
                assert_eq!(together, alone, "{options:?}");
                let is_scan = alone.scope() == Scope::Scan;
                assert_eq!(is_scan, options.scan == Some(true), "{options:?}");
            }
        }
    }
}

/// The error for a bound below the schema's threshold names the method that allows it.
#[test]
fn bounds_outside_the_schema_can_be_accepted() {
    let schema = &schemas()[0];
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder, "s", schema, 60);
    let half = [vec![1; 16], vec![2; 16]].concat();
    let signatures = [vec![1; 32], half].map(Signature::from_minhash);
    for signature in &signatures {
        store.insert(Document::without_key(), signature).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let one = || snapshot.query(&signatures[0]).min_similarity(0.4);
    let refused = one().run().unwrap_err().to_string();
    assert!(refused.contains("accept_lower_recall"), "{refused}");
    let found = one().accept_lower_recall().run().unwrap();
    let scanned = one().scan().run().unwrap();
    assert_eq!((found.len(), &found[..]), (2, &scanned[..]));
    let probability = schema.minhash().unwrap().probability(0.4);
    assert_eq!(
        (found.recall(), scanned.recall()),
        (Some(probability), None)
    );
    let many = snapshot.query(&signatures).min_similarity(0.4);
    assert_eq!(many.accept_lower_recall().run().unwrap()[0], found);
    let pairs = || snapshot.pairs().min_similarity(0.4);
    assert!(pairs().run().is_err());
    assert_eq!(pairs().accept_lower_recall().run().unwrap().count(), 1);
}

#[test]
fn query_reads_a_bucket_of_many_blocks_whole() {
    let schema = Schema::builder().minhash(MinHash::new(16)).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder, "s", &schema, 9_000);
    let hot = Signature::from_minhash(vec![5; 16]);
    let mut transaction = store.begin_write().unwrap();
    for number in 0..20_000 {
        let other = Signature::from_minhash(vec![number; 16]);
        transaction
            .insert(
                Document::without_key(),
                if number % 10 == 0 { &other } else { &hot },
            )
            .unwrap();
    }
    transaction.commit().unwrap();
    let snapshot = store.snapshot().unwrap();
    let stats = snapshot.stats().run().unwrap();
    assert!(stats.runs.len() > 1);
    let signatures = [hot.clone(), Signature::from_minhash(vec![10; 16]), hot];
    let answers = snapshot.query(&signatures).limit(2).run().unwrap();
    let compared: Vec<usize> = answers.iter().map(|answer| answer.candidates()).collect();
    assert_eq!(compared, [18_000, 1, 18_000]);
    assert_same_answers(&snapshot, &signatures, Bounds::new(), &LIMITS, 1);
}

#[test]
fn query_refuses_impossible_bounds() {
    let schema = &schemas()[0];
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder, "s", schema, 10);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.query(&[]).run().unwrap(), []);
    let signatures = [
        Signature::from_minhash(vec![1; 32]),
        Signature::from_simhash(1),
    ];
    for refused in [
        snapshot.query(&signatures).run().err(),
        snapshot.candidates(&signatures).err(),
    ] {
        let refused = refused.unwrap();
        assert!(matches!(refused, Error::SignatureMismatch { .. }));
        assert!(refused.to_string().contains("at index 1 of the batch"));
    }
    let low = snapshot.query(&signatures[..1]).min_similarity(0.1);
    assert!(matches!(low.run(), Err(Error::InvalidParameter { .. })));
}

/// Everything in a store, in order.
fn records(store: &Store) -> Vec<Record> {
    let records = store.snapshot().unwrap().iter();
    records.map(Result::unwrap).collect()
}

fn change_something(transaction: &mut WriteTransaction, random: &mut Random, schema: &Schema) {
    for _ in 0..random.below(30) {
        let (key, signature) = (random.key(), random.signature(schema));
        let document = document(&key);
        transaction.upsert(document, &signature).unwrap();
        let id = random.below(transaction.len() * 2);
        transaction.remove_id(DocumentId::new(id)).unwrap();
    }
}

/// Each schema with one of the ways of flushing in turn, with all of them with `RESEMBLANCE_TESTS=all`.
#[test]
fn if_new_batch_agrees_with_single_inserts() {
    let distance = one_in(3);
    for (schema, seed) in schemas().iter().zip(2..) {
        let ways = [7, 90, 10_000].into_iter();
        for flush_after in ways.skip(seed as usize % distance).step_by(distance) {
            let folder = tempfile::tempdir().unwrap();
            let [many, apart] =
                ["many", "apart"].map(|name| create(&folder, name, schema, flush_after));
            let mut novelties = Vec::new();
            for commit in 0..4 {
                let [mut at_once, mut one_by_one] =
                    [&many, &apart].map(|store| store.begin_write().unwrap());
                for transaction in [&mut at_once, &mut one_by_one] {
                    change_something(transaction, &mut Random(seed + commit), schema);
                }
                let mut random = Random(seed ^ (0xff + commit));
                for count in [0, 1, 30, 250] {
                    let keys: Vec<_> = (0..count).map(|_| random.key()).collect();
                    let signatures = random.signatures(schema, count);
                    let documents: Vec<_> = keys.iter().map(document).zip(&signatures).collect();
                    let found = at_once.insert_many(&documents).if_new().run().unwrap();
                    let alone = documents
                        .iter()
                        .map(|(document, signature)| one_by_one.insert_if_new(document, signature));
                    let alone: Vec<Novelty> = alone.map(Result::unwrap).collect();
                    assert_eq!(found, alone);
                    novelties.extend(found);
                }
                at_once.commit().unwrap();
                one_by_one.commit().unwrap();
            }
            assert_eq!(records(&many), records(&apart));
            let count = |is: fn(&Novelty) -> bool| novelties.iter().filter(|n| is(n)).count();
            assert!(count(|novelty| matches!(novelty, Novelty::New { .. })) > 100);
            assert!(count(|novelty| matches!(novelty, Novelty::NearDuplicate(_))) > 100);
            assert!(count(|novelty| matches!(novelty, Novelty::KeyExists(_))) > 100);
            drop((many, apart));
            let report = Store::check(folder.path().join("many")).run().unwrap();
            assert!(report.is_clean(), "{:#?}", report.problems);
        }
    }
}

#[test]
fn insert_batch_is_atomic() {
    let schema = &schemas()[2];
    let mut random = Random(9);
    for flush_after in [20, 10_000] {
        let folder = tempfile::tempdir().unwrap();
        let [many, apart] =
            ["many", "apart"].map(|name| create(&folder, name, schema, flush_after));
        let [mut at_once, mut one_by_one] =
            [&many, &apart].map(|store| store.begin_write().unwrap());
        let (mut inserted, mut refused) = (0, 0);
        for _ in 0..60 {
            let count = random.below(20) as usize;
            let keys: Vec<_> = (0..count).map(|_| random.key()).collect();
            let signatures = random.signatures(schema, count);
            let documents: Vec<_> = keys.iter().map(document).zip(&signatures).collect();
            let before = at_once.len();
            match at_once.insert_many(&documents).run() {
                Ok(ids) => {
                    let alone = documents.iter().map(|(document, signature)| {
                        one_by_one.insert(document, signature).unwrap()
                    });
                    assert!(ids.into_iter().eq(alone));
                    inserted += count;
                }
                Err(error) => {
                    assert_eq!(at_once.len(), before);
                    // What the first that is refused says, if those before it were let in.
                    let mut trial = Vec::new();
                    let alone = documents.iter().find_map(|(document, signature)| {
                        let result = one_by_one.insert(document, signature);
                        result.map(|id| trial.push(id)).err()
                    });
                    assert_eq!(error.to_string(), alone.unwrap().to_string());
                    refused += 1;
                    // The numbers must go on alike: those that were let in go into both.
                    let first: Vec<_> = documents[..trial.len()].to_vec();
                    assert_eq!(at_once.insert_many(&first).run().unwrap(), trial);
                }
            }
        }
        assert!(inserted > 50 && refused > 10, "{inserted} {refused}");
        at_once.commit().unwrap();
        one_by_one.commit().unwrap();
        assert_eq!(records(&many), records(&apart));
    }
}

#[test]
fn bad_input_in_a_batch_names_its_index_and_changes_nothing() {
    let schema = &schemas()[1];
    let folder = tempfile::tempdir().unwrap();
    let store = create(&folder, "s", schema, 10);
    let mut transaction = store.begin_write().unwrap();
    let good = Signature::from_simhash(1);
    let wrong = Signature::from_minhash(vec![1; 16]);
    let long = [0; 5_000];
    for bad in [(Document::new("b"), &wrong), (Document::new(&long), &good)] {
        let batch = [(Document::new("a"), &good), bad];
        for error in [
            transaction.insert_many(&batch).run().err(),
            transaction.insert_many(&batch).if_new().run().err(),
        ] {
            let error = error.unwrap();
            assert!(error.to_string().contains("at index 1 of the batch"));
        }
    }
    assert!(transaction.is_empty());
    transaction
        .insert_many(&[(Document::new("a"), &good)])
        .run()
        .unwrap();
    transaction.commit().unwrap();
    assert_eq!(records(&store).len(), 1);
}
