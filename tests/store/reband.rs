//! A store whose bands and tables were changed is the one that would have been made with the new schema.

mod failures;
mod special;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;

use crate::common::sample::trials;
use crate::common::{Place, Random, check_clean, remove_all, sealing_after, stats};
use resemblance::schema::{EmptyDocuments, Rebanding};
use resemblance::stats::Stats;
use resemblance::{
    BulkOptions, Combine, Document, DocumentId, MinHash, Schema, Signature, SimHash, Snapshot,
    Store,
};

/// Of each family of four one member has all features of the family, the others have their own in place
/// of so many: their Jaccard similarities to it are 39 / 41, 34 / 46 and 26 / 54.
const REPLACED: [u64; 4] = [0, 1, 6, 14];

fn schemas() -> [Schema; 5] {
    let minhash = || MinHash::new(32).threshold(0.7);
    let wide = minhash().banding(6, 4).code_bits(64);
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
            .empty_documents(EmptyDocuments::Alike),
    ];
    builders.map(|builder| builder.build().unwrap())
}

/// The document with this number; some are empty, some have no key.
fn signature(schema: &Schema, number: u64) -> Signature {
    let (family, replaced) = (number / 4, REPLACED[(number % 4) as usize]);
    let feature = |place: u64| {
        let own = if place < replaced { number + 1 } else { 0 };
        Random(family * 1_000 + place).next().wrapping_add(own)
    };
    let features = if number % 29 == 7 { 0 } else { 40 };
    let sketcher = schema.sketcher();
    sketcher.hashes((0..features).map(feature)).unwrap()
}

fn key(number: u64) -> Option<String> {
    (number % 5 != 3).then(|| format!("document {number}"))
}

/// Inserts documents by commits of 45, each of which also removes and replaces some of before.
fn go_on(store: &Store, numbers: std::ops::Range<u64>) {
    let schema = store.schema().clone();
    for first in numbers.clone().step_by(45) {
        let mut transaction = store.begin_write().unwrap();
        for number in first..(first + 45).min(numbers.end) {
            let key = key(number);
            let document = key.as_ref().map_or(Document::without_key(), Document::new);
            let payload = vec![7; (number % 13) as usize];
            let document = document.stamp(number * 3).payload(&payload);
            let signature = signature(&schema, number);
            transaction.insert(document, &signature).unwrap();
            if number % 6 == 1 {
                let removed = DocumentId::new(number * 2 / 3);
                transaction.remove_id(removed).unwrap();
            }
            if let Some(key) = self::key(number / 2).filter(|_| number % 11 == 5) {
                let signature = self::signature(&schema, number / 2 + 8);
                transaction.upsert(key, &signature).unwrap();
            }
        }
        transaction.commit().unwrap();
    }
}

fn create(path: &Path, schema: &Schema) -> Store {
    sealing_after(64).create(path, schema.clone()).unwrap()
}

fn open(path: &Path) -> Store {
    sealing_after(64).open(path).unwrap()
}

fn stats_of(path: &Path) -> Stats {
    stats(&open(path))
}

fn small() -> BulkOptions {
    let threads = NonZeroUsize::new(2).unwrap();
    let options = BulkOptions::new().memory_bytes(1).threads(threads);
    options.store(sealing_after(64))
}

type Measures = (Option<u64>, Option<u32>);

/// Id, key, signature, stamp and payload.
type Content = (u64, Option<Vec<u8>>, Signature, u64, Vec<u8>);

/// All that a store can be asked for.
#[derive(Debug, PartialEq)]
struct Answers {
    schema: Schema,
    records: Vec<Content>,
    by_key: Vec<Option<u64>>,
    near: Vec<Vec<(u64, Measures)>>,
    pairs: BTreeSet<(u64, u64, Measures)>,
}

fn answers(snapshot: &Snapshot, numbers: u64) -> Answers {
    let schema = snapshot.schema().clone();
    let records = snapshot.iter().map(|record| {
        let record = record.unwrap();
        let key = record.key().map(<[u8]>::to_vec);
        let payload = record.payload().to_vec();
        let signature = record.signature().clone();
        (record.id().get(), key, signature, record.stamp(), payload)
    });
    let by_key = (0..numbers).filter_map(key).map(|key| {
        let record = snapshot.get(key).unwrap();
        record.map(|record| record.id().get())
    });
    let near = (0..numbers).map(|number| {
        let found = snapshot.query(&signature(&schema, number)).run().unwrap();
        let found = found.iter().map(|found| {
            let measures = (found.similarity().map(f64::to_bits), found.distance());
            (found.id().get(), measures)
        });
        found.collect()
    });
    let pairs = snapshot.pairs().run().unwrap().map(|pair| {
        let pair = pair.unwrap();
        let measures = (pair.similarity.map(f64::to_bits), pair.distance);
        (pair.a.get(), pair.b.get(), measures)
    });
    Answers {
        records: records.collect(),
        by_key: by_key.collect(),
        near: near.collect(),
        pairs: pairs.collect(),
        schema,
    }
}

fn answers_of(path: &Path, numbers: u64) -> Answers {
    answers(&open(path).snapshot().unwrap(), numbers)
}

#[test]
fn reband_with_spills_equals_reband_in_memory() {
    let [.., schema, _] = schemas();
    let place = Place::new();
    let mut build = Store::bulk_build(place.store(), schema.clone(), &small()).unwrap();
    for number in 0..12_000 {
        let key = format!("{number}");
        build
            .insert(Document::new(&key), &signature(&schema, number))
            .unwrap();
    }
    build.finish().unwrap();
    let store = open(&place.store());
    remove_all(&store, (0..12_000).filter(|number| number % 3 == 1));
    let rebanding = Rebanding::new().threshold(0.5).max_distance(2);
    drop(store);
    let reband = Store::reband(place.store(), &rebanding).bulk(small());
    let estimate = reband.estimate().unwrap();

    let mut files = Vec::new();
    for threads in [1, 2, 5] {
        let copy = place.file("copy.rsm");
        std::fs::copy(place.store(), &copy).unwrap();
        let options = small().threads(NonZeroUsize::new(threads).unwrap());
        let options = options.temp_dir(std::env::temp_dir());
        let report = Store::reband(&copy, &rebanding)
            .bulk(options.clone())
            .run()
            .unwrap();
        assert_eq!((report.documents, estimate.documents), (8_000, 8_000));
        assert!(
            report.spills > 1 && report.spilled_bytes > 8_000 * 8,
            "{report:?}"
        );
        check_clean(&copy);
        // One document of 29 is empty and has no postings, and the last batch stays in memory.
        let ratio = estimate.temporary_bytes as f64 / report.spilled_bytes as f64;
        let most = (report.spills + 1) as f64 / report.spills as f64 * 29.0 / 28.0;
        assert!((1.0..most * 1.01).contains(&ratio), "{ratio} of {most}");
        let posting_tables = ["keys", "bands", "permuted", "filters"];
        let tables = stats_of(&copy).tables.into_iter();
        let tables = tables.filter(|table| posting_tables.contains(&table.name.as_str()));
        let written: u64 = tables.map(|table| table.total_bytes()).sum();
        let ratio = (estimate.disk_bytes - (2 << 20)) as f64 / written as f64;
        assert!((0.9..1.2).contains(&ratio), "{ratio}");
        files.push(std::fs::read(&copy).unwrap());
    }
    assert!(
        files.windows(2).all(|pair| pair[0] == pair[1]),
        "the files differ"
    );

    let rebanded = open(&place.file("copy.rsm"));
    // Few runs or many: the answers are the same.
    let made = sealing_after(trials(1_000, 64))
        .create(place.file("made.rsm"), rebanded.schema().clone())
        .unwrap();
    let mut transaction = made.begin_write().unwrap();
    for number in 0..12_000 {
        let signature = signature(&schema, number);
        transaction.insert(number.to_string(), &signature).unwrap();
    }
    for number in (0..12_000).filter(|number| number % 3 == 1) {
        transaction.remove_id(DocumentId::new(number)).unwrap();
    }
    transaction.commit().unwrap();
    let [rebanded, made] = [rebanded, made].map(|store| store.snapshot().unwrap());
    assert_eq!(answers(&rebanded, 600), answers(&made, 600));
}
