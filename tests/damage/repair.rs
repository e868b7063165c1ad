//! Damaged stores: `check` names each damage, and `repair` keeps what is readable and reports the
//! rest.

mod head;
mod journal;
mod oracle;
mod pages;
mod removed;
mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::memory::MemoryFiles;
use crate::common::oracle::{Entry, contents};
use crate::common::{Random, impatient, sealing_after};
use resemblance::report::RepairReport;
use resemblance::{
    BulkOptions, Document, Error, MinHash, Operation, Schema, Signature, SimHash, Store,
};

const STORE: &str = "store";
const TARGET: &str = "target";

type Contents = BTreeMap<u64, Entry>;

fn schema() -> Schema {
    Schema::builder()
        .minhash(MinHash::new(16).banding(4, 4))
        .simhash(SimHash::bits64())
        .build()
        .unwrap()
}

/// Three in a row are near each other.
fn signature(number: u64) -> Signature {
    let mut random = Random(number / 3);
    let mut values: Vec<u32> = (0..16).map(|_| random.next() as u32).collect();
    values[15] = number as u32;
    let fingerprint = random.next() ^ (1 << (number % 64));
    Signature::from_parts(Some(values), Some(fingerprint))
}

/// Creates a store with runs, with removed or replaced documents, with documents without a key,
/// with documents that are not flushed, and with a few large payloads.
fn filled(documents: u64) -> (MemoryFiles, Contents) {
    let files = MemoryFiles::default();
    let store = files
        .options(&sealing_after(64))
        .create(STORE, schema())
        .unwrap();
    for first in (0..documents).step_by(50) {
        let mut transaction = store.begin_write().unwrap();
        for number in first..(first + 50).min(documents) {
            let key = format!("key {number}");
            let long = if number % 97 == 5 { 9_000 } else { number % 40 };
            let payload = vec![number as u8; long as usize];
            let document = match number % 11 {
                7 => Document::without_key(),
                _ => Document::new(&key),
            };
            let document = document.stamp(number * 3).payload(&payload);
            transaction.insert(document, &signature(number)).unwrap();
        }
        if first >= 100 {
            transaction.remove(format!("key {}", first - 99)).unwrap();
            let replaced = format!("key {}", first - 88);
            transaction.upsert(replaced, &signature(first)).unwrap();
        }
        transaction.commit().unwrap();
    }
    let contents = contents(&store.snapshot().unwrap());
    drop(store);
    (files, contents)
}

fn ids(contents: &Contents) -> BTreeSet<u64> {
    contents.keys().copied().collect()
}

fn repair_in<'a>(files: &MemoryFiles) -> Operation<'a, RepairReport> {
    let store = files.options(&sealing_after(64));
    let threads = std::num::NonZeroUsize::MIN;
    let bulk = BulkOptions::new().store(store).memory_bytes(1 << 20);
    let temporary = std::env::temp_dir();
    Store::repair(STORE, TARGET).bulk(bulk.threads(threads).temp_dir(temporary))
}

/// Repairs a file, and returns the contents of the new store, which must be as sound as a newly
/// built one. The old file stays.
fn try_repair(
    bytes: &[u8],
    change: impl Fn(Operation<'static, RepairReport>) -> Operation<'static, RepairReport>,
) -> Result<(RepairReport, Contents), Error> {
    let files = MemoryFiles::with(STORE, bytes.to_vec());
    let report = change(repair_in(&files)).run();
    assert!(files.read(STORE) == bytes, "the damaged file was changed");
    let report = report.inspect_err(|_| assert_eq!(files.names(), [Path::new(STORE)]))?;
    assert_eq!(files.names(), [STORE, TARGET].map(Path::new));
    let store_options = files.options(&sealing_after(64));
    let checked = store_options.check(TARGET).run().unwrap();
    assert!(checked.is_clean(), "{:#?}", checked.problems);
    let store = store_options.open(TARGET).unwrap();
    let snapshot = store.snapshot().unwrap();
    let kept = contents(&snapshot);
    assert_eq!(kept.len() as u64, report.documents);
    for (id, content) in kept.iter().step_by(17) {
        let found = snapshot.query(&content.signature).run().unwrap();
        assert!(found.iter().any(|found| found.id().get() == *id));
    }
    Ok((report, kept))
}

fn repair(bytes: &[u8]) -> (RepairReport, Contents) {
    try_repair(bytes, |repair| repair).unwrap()
}

/// Returns true if the report names a document that is not kept.
fn is_detected(report: &RepairReport, id: u64) -> bool {
    let mut ranges = report.lost.iter();
    ranges.any(|range| (range.first.get()..=range.last.get()).contains(&id))
}

/// Checks that kept documents are unchanged, and that lost ones are reported.
fn assert_kept(report: &RepairReport, kept: &Contents, before: &Contents) {
    for (id, content) in before {
        match kept.get(id) {
            Some(found) => assert_eq!(found, content),
            None => assert!(is_detected(report, *id), "document {id}: {report:#?}"),
        }
    }
    let mut came_back = kept.keys().filter(|id| !before.contains_key(id));
    let may_be_back = |id: &u64| {
        let mut ranges = report.may_be_back.iter();
        ranges.any(|range| (range.first.get()..=range.last.get()).contains(id))
    };
    assert!(came_back.all(may_be_back));
    // The number is unknown without the counters, or without one of the two commits.
    let is_counted = report.documents_before.is_some() && !report.is_earlier_commit;
    let is_known = is_counted && report.may_be_back.is_empty();
    let is_same = kept.len() == before.len() && is_known;
    assert_eq!(report.is_complete(), is_same, "{report:#?}");
}

#[test]
fn repair_keeps_a_sound_store_unchanged() {
    let (files, before) = filled(400);
    let bytes = files.read(STORE);
    let (report, kept) = repair(&bytes);
    assert_eq!(kept, before);
    assert!(
        report.is_complete() && report.damage.is_empty(),
        "{report:#?}"
    );
    assert_eq!(report.documents_before, Some(before.len() as u64));

    // Ids that were given are not given again.
    let target = MemoryFiles::with(STORE, bytes);
    repair_in(&target).run().unwrap();
    let store = target.options(&sealing_after(64)).open(TARGET).unwrap();
    let id = store.insert("new", &signature(9_999)).unwrap();
    assert!(before.keys().all(|before| *before < id.get()));
    assert!(id.get() > before.len() as u64, "some were removed");
}

#[test]
fn repair_overwrites_nothing_and_excludes_writers() {
    let place = crate::common::Place::new();
    let path = place.store();
    let options = sealing_after(64);
    let store = options.create(&path, schema()).unwrap();
    store.insert("a", &signature(1)).unwrap();
    let target = place.file("target");
    let bulk = BulkOptions::new().store(impatient());
    let repair = || Store::repair(&path, &target).bulk(bulk.clone()).run();
    assert!(matches!(repair(), Err(Error::Locked { .. })));
    drop(store);
    std::fs::write(&target, "precious").unwrap();
    assert!(matches!(repair(), Err(Error::AlreadyExists { .. })));
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    std::fs::remove_file(&target).unwrap();
    let reader = Store::open_read_only(&path).unwrap();
    assert!(repair().unwrap().is_complete(), "readers do not matter");
    drop(reader);
    let missing = Store::repair(place.file("missing"), &target).run();
    assert!(matches!(missing, Err(Error::NotFound { .. })));
    let other = Store::repair(&target, &target).run();
    assert!(matches!(other, Err(Error::AlreadyExists { .. })));
    std::fs::write(place.file("text"), "some text").unwrap();
    let new = place.file("new");
    let foreign = Store::repair(place.file("text"), &new).run();
    assert!(matches!(foreign, Err(Error::NotAStore { .. })));
    assert!(!new.exists());
}
