//! The events that stores send to the crate `log`: those that `guide::metrics` lists, and nothing
//! about documents' contents.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

mod common;

use std::path::Path;
use std::sync::{Mutex, Once};

use common::small::{filled, schema, signature};
use common::{Place, sealing_after};
use log::{Level, Log, Metadata, Record};
use resemblance::{Document, Error, MinHash, Novelty, Schema, Signature, Store, StoreOptions};

/// Keeps the events of all tests. The path in an event shows to which test it belongs.
struct Kept(Mutex<Vec<(Level, String, String)>>);

static KEPT: Kept = Kept(Mutex::new(Vec::new()));
static ONCE: Once = Once::new();

impl Log for Kept {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let event = (
            record.level(),
            record.target().to_owned(),
            record.args().to_string(),
        );
        self.0.lock().unwrap().push(event);
    }

    fn flush(&self) {}
}

fn begin() -> Place {
    ONCE.call_once(|| {
        log::set_logger(&KEPT).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
    Place::new()
}

/// The events of a store: levels, the ends of targets, messages behind the path.
fn events(path: &Path) -> Vec<(Level, String, String)> {
    let prefix = format!("{}: ", path.display());
    let kept = KEPT.0.lock().unwrap();
    kept.iter()
        .filter_map(|(level, target, message)| {
            let topic = target.strip_prefix("resemblance::").unwrap();
            let message = message.strip_prefix(&prefix)?;
            Some((*level, topic.to_owned(), message.to_owned()))
        })
        .collect()
}

/// Asserts that there is such an event, and how many.
fn assert_reported(path: &Path, expected: (Level, &str), text: &str, times: usize) {
    let events = events(path);
    let fits = |(level, topic, message): &&(Level, String, String)| {
        (*level, topic.as_str()) == expected && message.contains(text)
    };
    let found = events.iter().filter(fits).count();
    assert_eq!(found, times, "{expected:?} {text:?} in {events:#?}");
}

#[test]
fn opening_and_closing_are_logged() {
    let place = begin();
    let path = place.store();
    let store = Store::create(&path, schema()).unwrap();
    assert_reported(&path, (Level::Info, "store"), "created in ", 1);
    store.insert("secret key", &signature(1)).unwrap();
    let snapshot = store.snapshot().unwrap();
    drop(store);
    assert_reported(&path, (Level::Info, "store"), "closed", 0);
    drop(snapshot);
    assert_reported(&path, (Level::Info, "store"), "closed after ", 1);
    drop(Store::open(&path).unwrap());
    assert_reported(&path, (Level::Info, "store"), "opened in ", 1);
    drop(Store::open_read_only(&path).unwrap());
    let reading = "opened for reading in ";
    assert_reported(&path, (Level::Info, "store"), reading, 1);
    let reported = events(&path);
    let counts: Vec<&str> = reported
        .iter()
        .filter_map(|event| event.2.split("; ").nth(1))
        .collect();
    let (none, one) = ("documents: 0", "documents: 1");
    assert_eq!(counts, [none, one, one, one, one, one]);
    Store::compact(&path).run().unwrap();
    assert_reported(&path, (Level::Debug, "upkeep"), "compacted: ", 1);
}

#[test]
fn an_unclosed_store_is_logged() {
    let place = begin();
    let (path, copy) = (place.store(), place.file("copy.rsm"));
    let store = Store::create(&path, schema()).unwrap();
    store.insert("a", &signature(1)).unwrap();
    // As a crash would leave it.
    std::fs::copy(&path, &copy).unwrap();
    drop(store);
    let recovered = "recovered after a crash, and opened in ";
    drop(Store::open(&copy).unwrap());
    assert_reported(&copy, (Level::Info, "store"), recovered, 1);
    drop(Store::open(&copy).unwrap());
    assert_reported(&copy, (Level::Info, "store"), recovered, 1);
}

#[test]
fn flushes_and_merges_are_logged() {
    let place = begin();
    let path = place.store();
    let store = sealing_after(8).create(&path, schema()).unwrap();
    for number in 0..100u32 {
        store
            .insert(number.to_le_bytes(), &signature(number))
            .unwrap();
    }
    let metrics = store.metrics();
    let counts = [metrics.flushes, metrics.merges_begun, metrics.merges_ended];
    assert!(counts.iter().all(|count| *count > 0));
    for (text, count) in ["flushed:", "begun", "merged:"].into_iter().zip(counts) {
        assert_reported(&path, (Level::Debug, "merge"), text, count as usize);
    }
}

#[test]
fn a_store_that_outgrows_its_design_is_logged_once() {
    let place = begin();
    let path = place.store();
    let schema = Schema::builder()
        .minhash(MinHash::new(16))
        .expected_documents(2);
    let store = Store::create(&path, schema.build().unwrap()).unwrap();
    let text = "outgrown: 3 documents, designed for 2";
    for number in 0..5 {
        assert_reported(&path, (Level::Warn, "store"), text, usize::from(number > 2));
        store
            .insert(
                Document::without_key(),
                &store.sketcher().hashes([number]).unwrap(),
            )
            .unwrap();
    }
    drop(store);
    drop(Store::open(&path).unwrap());
    assert_reported(&path, (Level::Warn, "store"), "outgrown: 5 documents", 1);
    assert_reported(&path, (Level::Warn, "store"), "", 2);
}

#[test]
fn damage_is_logged_and_closes_the_store() {
    let place = begin();
    let path = place.store();
    filled(&path, 500);
    // One page after the other. Opening reads some of them already.
    let whole = std::fs::read(&path).unwrap();
    let mut reported = 0;
    for page in 1..whole.len() / 4_096 {
        let mut damaged = whole.clone();
        damaged[page * 4_096 + 100] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let Ok(store) = Store::open_read_only(&path) else {
            continue;
        };
        let records = store.snapshot().map(|snapshot| snapshot.iter());
        let read: Result<Vec<_>, Error> = records.and_then(Iterator::collect);
        if read.is_err() {
            let closed = store.snapshot().map(drop);
            assert!(matches!(closed, Err(Error::Closed { .. })), "{closed:?}");
            reported += 1;
        }
    }
    // Rows of 500 documents are in many pages.
    assert!(reported >= 5, "{reported}");
    assert_reported(
        &path,
        (Level::Error, "damage"),
        "this handle is not used any more",
        reported,
    );
}

#[test]
fn documents_are_not_logged_above_debug() {
    let place = begin();
    let path = place.store();
    let store = sealing_after(4).create(&path, schema()).unwrap();
    for number in 0..40u32 {
        store
            .insert(format!("private/{number}"), &signature(number))
            .unwrap();
    }
    store.insert("private/1", &signature(1)).unwrap_err();
    drop(store);
    let events = events(&path);
    assert!(events.len() > 10);
    for (level, _, message) in events {
        assert!(
            level >= Level::Debug || !message.contains("private"),
            "{message}"
        );
    }
}

#[test]
fn the_first_probe_beyond_its_budget_is_logged() {
    let place = begin();
    let path = place.store();
    let schema = Schema::builder().minhash(MinHash::new(16).banding(2, 8));
    let options = StoreOptions::new().probe_budget(1);
    let store = options.create(&path, schema.build().unwrap()).unwrap();
    let expected = (Level::Warn, "store");
    let text = "a probe met its budget";
    // All share the first bucket, and none is near another.
    for (number, reported) in (0..4_u32).zip([0, 0, 1, 1]) {
        let page = Signature::from_minhash([vec![7; 8], vec![number; 8]].concat());
        let mut transaction = store.begin_write().unwrap();
        let novelty = transaction.insert_if_new(Document::without_key(), &page);
        assert!(matches!(novelty, Ok(Novelty::New { .. })), "{number}");
        transaction.commit().unwrap();
        assert_reported(&path, expected, text, reported);
    }
}
