//! Helpers of the integration tests: deterministic random numbers, folders, and the oracle.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "each test crate uses its own part, and a broken test should stop"
)]

pub(crate) mod changes;
pub(crate) mod engine;
pub(crate) mod joins;
pub(crate) mod killing;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod oracle;
pub(crate) mod question;
pub(crate) mod sample;
pub(crate) mod small;
pub(crate) mod verify;

use std::path::PathBuf;

use resemblance::stats::Stats;
use resemblance::{Document, DocumentId, Error, Signature, Store, StoreOptions};

pub(crate) use sample::Random;

/// A folder that is removed at the end, and the name of a store in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.file("store.rsm")
    }
}

/// Options with which no call waits for another handle.
pub(crate) fn impatient() -> StoreOptions {
    StoreOptions::new().wait(std::time::Duration::ZERO)
}

/// Options with which a few documents make a run.
pub(crate) fn sealing_after(documents: u64) -> StoreOptions {
    StoreOptions::new()
        .flush_after(documents)
        .cache_bytes(4 << 20)
        // Merges are seen under way, in the middle of lanes where runs are large enough.
        .merge_slice(50)
}

/// Inserts documents under keys in one transaction.
pub(crate) fn insert_all<K: AsRef<[u8]>>(
    store: &Store,
    documents: impl IntoIterator<Item = (K, Signature)>,
) {
    let mut transaction = store.begin_write().unwrap();
    for (key, signature) in documents {
        transaction.insert(key.as_ref(), &signature).unwrap();
    }
    transaction.commit().unwrap();
}

/// Inserts documents without keys in one transaction.
pub(crate) fn append_all(store: &Store, signatures: impl IntoIterator<Item = Signature>) {
    let mut transaction = store.begin_write().unwrap();
    for signature in signatures {
        let document = Document::without_key();
        transaction.insert(document, &signature).unwrap();
    }
    transaction.commit().unwrap();
}

/// Removes documents, all of which are there, in one transaction.
pub(crate) fn remove_all(store: &Store, ids: impl IntoIterator<Item = u64>) {
    let mut transaction = store.begin_write().unwrap();
    for id in ids {
        assert!(transaction.remove_id(DocumentId::new(id)).unwrap());
    }
    transaction.commit().unwrap();
}

pub(crate) fn stats(store: &Store) -> Stats {
    store.snapshot().unwrap().stats().run().unwrap()
}

/// Asserts that a call is refused because of this parameter.
#[track_caller]
pub(crate) fn refused<T>(result: Result<T, impl Into<Error>>, name: &str) {
    match result.map(drop).map_err(Into::into) {
        Err(Error::InvalidParameter { parameter, .. }) => assert_eq!(parameter, name),
        other => panic!("{other:?}, expected an error about {name}"),
    }
}

/// Checks that the invariants of the file hold. The file must not be open.
pub(crate) fn check_clean(path: &std::path::Path) {
    let report = Store::check(path).run().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
}

/// Tells other threads to end, after a failure too: they are waited for.
pub(crate) struct Ending<'a>(pub(crate) &'a std::sync::atomic::AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Release);
    }
}
