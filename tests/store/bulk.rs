//! A store that was built offline is the one that the same documents make one by one.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use crate::common::oracle::{Entry, contents};
use crate::common::sample::trials;
use crate::common::{Place, Random, check_clean, sealing_after, stats};
use resemblance::report::BulkReport;
use resemblance::schema::EmptyDocuments;
use resemblance::{
    BulkBuild, BulkOptions, Combine, Document, DuplicateKeys, Error, MinHash, Schema, SimHash,
    Store,
};

pub(crate) fn schemas() -> Vec<Schema> {
    let minhash = || MinHash::new(32).threshold(0.7);
    let wide = minhash().banding(6, 4).code_bits(64);
    let empty = EmptyDocuments::Alike;
    let builders = [
        Schema::builder().minhash(minhash()),
        Schema::builder().minhash(wide),
        Schema::builder().simhash(SimHash::bits64()),
        Schema::builder()
            .minhash(minhash())
            .simhash(SimHash::bits64()),
        Schema::builder()
            .minhash(minhash())
            .simhash(SimHash::bits64().max_distance(6))
            .near(Combine::Both)
            .empty_documents(empty),
        Schema::builder().minhash(MinHash::one_pass(32).threshold(0.7)),
        Schema::builder()
            .minhash(MinHash::bottom_k(64).threshold(0.7))
            .empty_documents(empty),
        Schema::builder()
            .minhash(MinHash::weighted(32).threshold(0.7).value_bits(2))
            .simhash(SimHash::bits128()),
    ];
    builders.map(|builder| builder.build().unwrap()).into()
}

/// In each family of four, one member has all features of the family. The others replace this
/// number of them by other features. Their Jaccard similarities to the first are 39 / 41, 34 / 46
/// and 26 / 54.
const REPLACED: [u64; 4] = [0, 1, 6, 14];

/// The document with this number; some are empty, some have no key.
pub(crate) fn entry(schema: &Schema, number: u64) -> Entry {
    let (family, replaced) = (number / 4, REPLACED[(number % 4) as usize]);
    let feature = |place: u64| {
        let own = if place < replaced { number + 1 } else { 0 };
        Random(family * 1_000 + place).next().wrapping_add(own)
    };
    let features = if number % 29 == 7 { 0 } else { 40 };
    let sketcher = schema.sketcher();
    Entry {
        key: (number % 5 != 3).then(|| format!("document {number}").into_bytes()),
        signature: sketcher.hashes((0..features).map(feature)).unwrap(),
        stamp: number * 3,
        payload: vec![7; (number % 13) as usize],
    }
}

fn inputs(schema: &Schema, documents: u64) -> Vec<Entry> {
    (0..documents).map(|number| entry(schema, number)).collect()
}

fn begin(
    path: &Path,
    schema: &Schema,
    options: &BulkOptions,
    inputs: &[Entry],
) -> BulkBuild<'static> {
    let mut build = Store::bulk_build(path, schema.clone(), options).unwrap();
    for (number, input) in (0..).zip(inputs) {
        let id = build.insert(input.document(), &input.signature).unwrap();
        assert_eq!(id.get(), number);
    }
    assert_eq!(build.len(), inputs.len() as u64);
    build
}

fn build(path: &Path, schema: &Schema, options: &BulkOptions, inputs: &[Entry]) -> BulkReport {
    begin(path, schema, options, inputs).finish().unwrap()
}

/// The same, one by one in one transaction; documents whose key is there are left out.
fn insert_all(path: &Path, schema: &Schema, inputs: &[Entry]) -> Store {
    let store = sealing_after(64).create(path, schema.clone()).unwrap();
    let mut transaction = store.begin_write().unwrap();
    for input in inputs {
        match transaction.insert(input.document(), &input.signature) {
            Ok(_) | Err(Error::KeyExists { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    transaction.commit().unwrap();
    store
}

/// Checks that two stores contain the same documents in the same order, and give the same answers.
/// Stamps identify documents.
fn assert_alike(built: &Store, expected: &Store, inputs: &[Entry]) {
    let (built, expected) = (built.snapshot().unwrap(), expected.snapshot().unwrap());
    assert_eq!(built.len(), expected.len());
    // Ids differ where documents were left out.
    let [one, other] = [&built, &expected].map(contents);
    assert!(one.into_values().eq(other.into_values()));

    let stamp =
        |snapshot: &resemblance::Snapshot, id| snapshot.get_id(id).unwrap().unwrap().stamp();
    for input in inputs {
        let found = [&built, &expected].map(|snapshot| {
            let found = snapshot.query(&input.signature).run().unwrap();
            let found = found.iter().map(|found| {
                let measures = (found.similarity().map(f64::to_bits), found.distance());
                (stamp(snapshot, found.id()), measures)
            });
            found.collect::<Vec<_>>()
        });
        assert_eq!(found[0], found[1]);
        if let Some(key) = &input.key {
            let stamps = [&built, &expected]
                .map(|snapshot| snapshot.get(key).unwrap().map(|record| record.stamp()));
            assert_eq!(stamps[0], stamps[1]);
        }
    }
    let pairs = [&built, &expected].map(|snapshot| {
        let pairs = snapshot.pairs().run().unwrap();
        let named = pairs.map(|pair| {
            let pair = pair.unwrap();
            let measures = (pair.similarity.map(f64::to_bits), pair.distance);
            (stamp(snapshot, pair.a), stamp(snapshot, pair.b), measures)
        });
        let distinct: HashSet<_> = named.collect();
        distinct
    });
    assert_eq!(pairs[0], pairs[1]);
    assert!(
        inputs.len() < 100 || !pairs[0].is_empty(),
        "nothing was tried"
    );
}

pub(crate) fn small() -> BulkOptions {
    let threads = NonZeroUsize::new(2).unwrap();
    let options = BulkOptions::new().memory_bytes(1).threads(threads);
    options.store(sealing_after(64))
}

/// 7,500 documents, 12,000 with `RESEMBLANCE_TESTS=all`.
#[test]
fn build_with_spills_equals_build_in_memory() {
    let schema = &schemas()[3];
    let documents = trials(7_500, 12_000);
    let inputs = inputs(schema, documents);
    let mut files = Vec::new();
    for threads in [1, 2, 5] {
        let place = Place::new();
        let options = small().threads(NonZeroUsize::new(threads).unwrap());
        let options = options.temp_dir(std::env::temp_dir());
        let report = build(&place.store(), schema, &options, &inputs);
        assert_eq!(report.documents, documents);
        assert!(
            report.spills > 1 && report.spilled_bytes > documents * 8,
            "{report:?}"
        );
        check_clean(&place.store());
        let built = Store::open(place.store()).unwrap();
        let stats = stats(&built);
        assert_eq!((stats.runs.len(), stats.memtable_documents), (1, 0));
        if threads == 1 {
            let filled = insert_all(&place.file("filled.rsm"), schema, &inputs);
            assert_alike(&built, &filled, &inputs[..500]);
        }
        drop(built);
        files.push(std::fs::read(place.store()).unwrap());
    }
    assert!(
        files.windows(2).all(|pair| pair[0] == pair[1]),
        "the files differ"
    );
}

/// Some of every hundred documents repeat an earlier key: a near one, a distant one, or three
/// times.
fn with_repetitions(schema: &Schema, documents: u64) -> Vec<Entry> {
    let mut inputs = inputs(schema, documents);
    for number in (0..inputs.len()).filter(|number| number % 10 == 9) {
        let earlier = [number - 2, number / 2, number % 40 / 2][number / 10 % 3];
        inputs[number].key = inputs[earlier].key.clone();
    }
    inputs
}

#[test]
fn build_keeps_the_first_document_of_a_repeated_key() {
    for (schema, documents) in [(&schemas()[3], 700), (&schemas()[1], 9_000)] {
        let place = Place::new();
        let inputs = with_repetitions(schema, documents);
        let mut keys = HashSet::new();
        let is_new = |input: &&Entry| input.key.is_none() || keys.insert(input.key.clone());
        let kept = inputs.iter().filter(is_new).count() as u64;
        assert!(kept < documents - documents / 20);

        let options = small().duplicate_keys(DuplicateKeys::KeepFirst);
        let build = begin(&place.store(), schema, &options, &inputs);
        let mut left_out = Vec::new();
        let noting = build.on_duplicate(|id, key| {
            left_out.push((id.get(), key.to_vec()));
            ControlFlow::Continue(())
        });
        let report = noting.finish().unwrap();
        assert_eq!(
            (report.documents, report.duplicates),
            (kept, documents - kept)
        );
        assert_eq!(left_out.len() as u64, report.duplicates);
        assert!(
            left_out.is_sorted_by(|a, b| a.0 < b.0),
            "in the order of insertion"
        );
        let is_its_key =
            |(id, key): &(u64, Vec<u8>)| inputs[*id as usize].key.as_ref() == Some(key);
        assert!(left_out.iter().all(is_its_key));
        check_clean(&place.store());
        let filled = insert_all(&place.file("filled.rsm"), schema, &inputs);
        let built = sealing_after(64).open(place.store()).unwrap();
        assert_alike(&built, &filled, &inputs[..700]);
    }
}

#[test]
fn build_names_the_earliest_repeated_key() {
    let schema = &schemas()[0];
    let place = Place::new();
    let mut inputs = with_repetitions(schema, 700);
    for (number, input) in inputs.iter_mut().enumerate().take(500) {
        input.key = Some(format!("own {number}").into_bytes());
    }
    inputs[450].key = inputs[333].key.clone();
    let refused = begin(&place.store(), schema, &small(), &inputs).finish();
    match refused.unwrap_err() {
        Error::KeyTwice { key, first, second } => {
            assert_eq!((first.get(), second.get()), (333, 450));
            assert_eq!(key, b"own 333");
        }
        error => panic!("{error}"),
    }
    assert_eq!(std::fs::read_dir(place.file(".")).unwrap().count(), 0);
}

#[test]
fn small_builds_equal_filled_stores() {
    let schema = &schemas()[3];
    for (case, documents) in [("none", 0), ("one", 1), ("empty", 3), ("without keys", 50)] {
        let place = Place::new();
        let mut inputs = inputs(schema, documents);
        for input in &mut inputs {
            match case {
                "empty" => {
                    input.signature = schema.sketcher().hashes([]).unwrap();
                    input.key = None;
                }
                "without keys" => input.key = None,
                _ => {}
            }
        }
        let report = build(&place.store(), schema, &small(), &inputs);
        assert_eq!(report.documents, documents, "{case}");
        assert_eq!(report.runs, u64::from(!["none", "empty"].contains(&case)));
        check_clean(&place.store());
        let filled = insert_all(&place.file("filled.rsm"), schema, &inputs);
        let built = Store::open(place.store()).unwrap();
        assert_alike(&built, &filled, &inputs);
    }
}

#[test]
fn unfinished_build_leaves_no_file() {
    let schema = &schemas()[0];
    let place = Place::new();
    let names = || -> Vec<_> {
        let entries = std::fs::read_dir(place.file(".")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    let inputs = inputs(schema, 12_000);
    let build = begin(&place.store(), schema, &small(), &inputs);
    assert!(!place.store().exists() && !names().is_empty());
    drop(build);
    assert!(names().is_empty());
}

#[test]
fn build_replaces_no_existing_file() {
    let schema = &schemas()[0];
    let place = Place::new();
    std::fs::write(place.store(), "precious").unwrap();
    let refused = Store::bulk_build(place.store(), schema.clone(), &small());
    assert!(matches!(refused, Err(Error::AlreadyExists { .. })));
    let other = place.file("other.rsm");
    let build = begin(&other, schema, &small(), &inputs(schema, 10));
    std::fs::write(&other, "precious too").unwrap();
    assert!(matches!(build.finish(), Err(Error::AlreadyExists { .. })));
    assert_eq!(std::fs::read_to_string(place.store()).unwrap(), "precious");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious too");
    assert_eq!(std::fs::read_dir(place.file(".")).unwrap().count(), 2);
}

#[test]
fn build_reports_a_missing_folder() {
    let schema = &schemas()[0];
    let place = Place::new();
    let nowhere = place.file("nowhere").join("store.rsm");
    let refused = Store::bulk_build(nowhere, schema.clone(), &small());
    assert!(matches!(refused, Err(Error::Io { .. })));
    let options = small().temp_dir(place.file("nowhere"));
    let mut build = Store::bulk_build(place.store(), schema.clone(), &options).unwrap();
    let input = &inputs(schema, 1)[0];
    let mut take = |_| build.insert(Document::without_key(), &input.signature);
    let refused = (0..20_000).map(&mut take).find_map(Result::err);
    assert!(matches!(refused, Some(Error::Io { .. })), "{refused:?}");
    assert!(matches!(take(0), Err(Error::Closed { .. })));
}

#[test]
fn build_estimate_is_near_the_actual_size() {
    for schema in [&schemas()[0], &schemas()[2], &schemas()[3]] {
        let place = Place::new();
        let inputs = inputs(schema, 20_000);
        let report = build(&place.store(), schema, &small(), &inputs);
        let sum = |length: fn(&Entry) -> usize| inputs.iter().map(length).sum::<usize>() as u64;
        let key_bytes = sum(|input| input.key.as_ref().map_or(0, Vec::len)) / 20_000;
        let payload_bytes = sum(|input| input.payload.len()) / 20_000;
        let estimate = small()
            .estimate(schema, 20_000, key_bytes, payload_bytes)
            .unwrap();
        let stats = Store::open(place.store())
            .unwrap()
            .snapshot()
            .unwrap()
            .stats()
            .run()
            .unwrap();
        let tables = stats.tables.iter().map(|table| table.total_bytes());
        let ratio = (estimate.disk_bytes - (2 << 20)) as f64 / tables.sum::<u64>() as f64;
        assert!((0.9..1.15).contains(&ratio), "{ratio}");
        // Some documents have no key or are empty, and the last of them stay in memory.
        let ratio = estimate.temporary_bytes as f64 / report.spilled_bytes as f64;
        assert!((1.0..1.5).contains(&ratio), "{ratio}");
        assert!(estimate.memory_bytes > 2 << 20 && estimate.memory_bytes < 48 << 20);
        let all_in_memory = BulkOptions::new().estimate(schema, 20_000, 0, 0).unwrap();
        assert_eq!(all_in_memory.temporary_bytes, 0);
    }
}
