//! A store whose bands and tables were changed is the one that would have been made with the new schema.

mod failures;
mod special;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::Path;

use crate::bulk::{entry, schemas, small};
use crate::common::oracle::{Entry, contents};
use crate::common::sample::trials;
use crate::common::{Place, check_clean, remove_all, sealing_after, stats};
use resemblance::schema::Rebanding;
use resemblance::stats::Stats;
use resemblance::{Document, DocumentId, Schema, Signature, Snapshot, Store};

fn signature(schema: &Schema, number: u64) -> Signature {
    entry(schema, number).signature
}

/// Inserts documents by commits of 45, each of which also removes and replaces some of before.
fn go_on(store: &Store, numbers: std::ops::Range<u64>) {
    let schema = store.schema().clone();
    for first in numbers.clone().step_by(45) {
        let mut transaction = store.begin_write().unwrap();
        for number in first..(first + 45).min(numbers.end) {
            let new = entry(&schema, number);
            let inserted = transaction.insert(new.document(), &new.signature);
            inserted.unwrap();
            if number % 6 == 1 {
                let removed = DocumentId::new(number * 2 / 3);
                transaction.remove_id(removed).unwrap();
            }
            if let Some(key) = entry(&schema, number / 2).key.filter(|_| number % 11 == 5) {
                let signature = signature(&schema, number / 2 + 8);
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

type Measures = (Option<u64>, Option<u32>);

/// The answers of a store to every kind of query.
#[derive(Debug, PartialEq)]
struct Answers {
    schema: Schema,
    records: BTreeMap<u64, Entry>,
    near: Vec<Vec<(u64, Measures)>>,
    pairs: BTreeSet<(u64, u64, Measures)>,
}

fn answers(snapshot: &Snapshot, numbers: u64) -> Answers {
    let schema = snapshot.schema().clone();
    let records = contents(snapshot);
    for (id, entry) in records.iter().filter(|(_, entry)| entry.key.is_some()) {
        let found = snapshot.get(entry.key.as_ref().unwrap()).unwrap();
        assert_eq!(found.unwrap().id().get(), *id);
    }
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
        records,
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
    let schema = schemas().swap_remove(3);
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
