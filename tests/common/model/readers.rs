//! Threads that read while the writer is in the middle of a transaction.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use resemblance::{Signature, Snapshot, Store};

use crate::common::Random;
use crate::common::joins::joins;
use crate::common::oracle::Model;
use crate::common::question::{Question, any_question};
use crate::common::verify::{all_reads, query_many_like, some_queries};

/// Snapshots that other threads have looked through.
pub(crate) static WATCHED: AtomicU64 = AtomicU64::new(0);

/// The news that concurrent readers have of a transaction.
pub(crate) struct News {
    before: Model,
    /// The state after the commit, set as soon as the commit is about to begin.
    after: Mutex<Option<Model>>,
    is_committed: AtomicBool,
    is_over: AtomicBool,
}

impl News {
    pub(crate) fn commits(&self, model: &Model) {
        *self.after.lock().unwrap() = Some(model.clone());
    }

    pub(crate) fn committed(&self) {
        self.is_committed.store(true, Ordering::SeqCst);
    }
}

/// Ends the readers, also where the writer panics.
struct Over<'n>(&'n News);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

/// The queries of readers.
pub(crate) struct Asked<'a> {
    pub(crate) keys: &'a [Vec<u8>],
    pub(crate) strangers: &'a [Signature],
}

/// Writes while this number of threads read. Even-numbered threads read the current state of the
/// store, the others the held snapshots.
pub(crate) fn while_read<T>(
    store: &Store,
    before: &Model,
    held: &[(Snapshot, Model)],
    asked: &Asked<'_>,
    readers: u8,
    write: impl FnOnce(&News) -> T,
) -> T {
    let news = News {
        before: before.clone(),
        after: Mutex::new(None),
        is_committed: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
    };
    let old = store.snapshot().unwrap();
    thread::scope(|scope| {
        let over = Over(&news);
        let start = |number: u8| {
            let (news, old) = (&news, &old);
            scope.spawn(move || {
                let mut random = Random(number.into());
                if number.is_multiple_of(2) {
                    read_present(store, news, asked, &mut random);
                } else {
                    read_past(old, held, news, asked, &mut random);
                }
            })
        };
        let threads: Vec<_> = (0..readers).map(start).collect();
        let written = write(&news);
        drop(over);
        for thread in threads {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
        written
    })
}

/// Every snapshot is the state before or the one after; never a mixture, and never the old one
/// once the new one has been seen or its commit has returned.
fn read_present(store: &Store, news: &News, asked: &Asked<'_>, random: &mut Random) {
    let mut is_new = false;
    loop {
        let is_last = news.is_over.load(Ordering::SeqCst);
        is_new |= news.is_committed.load(Ordering::SeqCst);
        let snapshot = store.snapshot().unwrap();
        let after = news.after.lock().unwrap().clone();
        let model = if !is_new && is_state(&snapshot, &news.before) {
            &news.before
        } else {
            let after = after.as_ref().unwrap();
            assert!(is_state(&snapshot, after), "a torn or an old snapshot");
            is_new = true;
            after
        };
        look(&snapshot, model, asked, random);
        if is_last {
            return;
        }
    }
}

/// Whether a snapshot has the documents of a model, by ids, keys and stamps.
fn is_state(snapshot: &Snapshot, model: &Model) -> bool {
    let records = snapshot.iter().map(Result::unwrap);
    let found: BTreeMap<u64, (Option<Vec<u8>>, u64)> = records
        .map(|record| {
            let key = record.key().map(<[u8]>::to_vec);
            (record.id().get(), (key, record.stamp()))
        })
        .collect();
    let expected = model.documents.iter();
    found.len() == model.documents.len()
        && expected
            .zip(&found)
            .all(|((id, entry), (found_id, (key, stamp)))| {
                (id, &entry.key, entry.stamp) == (found_id, key, *stamp)
            })
}

/// A snapshot shows the same as long as it is held.
fn read_past(
    old: &Snapshot,
    held: &[(Snapshot, Model)],
    news: &News,
    asked: &Asked<'_>,
    random: &mut Random,
) {
    loop {
        let is_last = news.is_over.load(Ordering::SeqCst);
        look(old, &news.before, asked, random);
        for (snapshot, model) in held {
            look(snapshot, model, asked, random);
        }
        if is_last {
            return;
        }
    }
}

/// A part of what a snapshot can be asked, soon enough to be asked again in the same transaction.
fn look(snapshot: &Snapshot, model: &Model, asked: &Asked<'_>, random: &mut Random) {
    WATCHED.fetch_add(1, Ordering::Relaxed);
    all_reads(snapshot, model, asked.keys);
    some_queries(snapshot, model, asked.strangers, random, 3);
    query_many_like(snapshot, model, asked.strangers, &any_question(random));
    if model.documents.len() < 40 {
        joins(snapshot, model, &Question::default());
    }
}
