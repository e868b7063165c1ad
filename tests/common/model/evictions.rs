//! Evictions, with and without slices, and broken off.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use resemblance::{Error, EvictPolicy, Store};

use crate::common::oracle::Model;

/// Which documents to evict.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// Documents older than this share of all documents, in 256ths.
    OlderThan(u8),
    /// All but this share of the documents.
    KeepNewest(u8),
    /// A number of the keys, or what has none.
    Keys(Option<u8>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Eviction {
    pub(crate) which: Which,
    pub(crate) slice: usize,
    /// The number of calls after which the eviction is stopped and called again.
    pub(crate) calls: usize,
}

/// Ids and stamps, the oldest first.
fn by_age(model: &Model) -> Vec<(u64, u64)> {
    let ages = model.documents.iter().map(|(id, entry)| (entry.stamp, *id));
    let mut ages: Vec<(u64, u64)> = ages.collect();
    ages.sort_unstable();
    ages
}

fn share(of: usize, part: u8) -> usize {
    of * usize::from(part) / 256
}

fn is_of_keys(key: Option<&[u8]>, keys: Option<u8>) -> bool {
    match keys {
        Some(keys) => key.is_some_and(|key| key.len() % 3 == usize::from(keys) % 3),
        None => key.is_none(),
    }
}

/// The policy that is passed to the store, with the ids that it must remove.
enum Call {
    OlderThan(u64),
    KeepNewest(u64),
    Keys(Option<u8>),
}

fn expected(model: &Model, which: Which) -> (Call, BTreeSet<u64>) {
    let ages = by_age(model);
    let ids = |ages: &[(u64, u64)]| ages.iter().map(|age| age.1).collect();
    match which {
        Which::OlderThan(part) => {
            let oldest = ages.get(share(ages.len(), part));
            let stamp = oldest.map_or(1, |age| age.0);
            let end = ages.partition_point(|age| age.0 < stamp);
            (Call::OlderThan(stamp), ids(&ages[..end]))
        }
        Which::KeepNewest(part) => {
            let kept = share(ages.len(), part);
            (
                Call::KeepNewest(kept as u64),
                ids(&ages[..ages.len() - kept]),
            )
        }
        Which::Keys(keys) => {
            let documents = model.documents.iter();
            let gone = documents.filter(|(_, entry)| is_of_keys(entry.key.as_deref(), keys));
            (Call::Keys(keys), gone.map(|(id, _)| *id).collect())
        }
    }
}

fn policy(call: &Call) -> EvictPolicy<'_> {
    match call {
        Call::OlderThan(stamp) => EvictPolicy::OlderThan(*stamp),
        Call::KeepNewest(kept) => EvictPolicy::KeepNewest(*kept),
        Call::Keys(keys) => EvictPolicy::matching(|document| is_of_keys(document.key(), *keys)),
    }
}

pub(crate) fn evict(store: &Store, model: &mut Model, eviction: &Eviction) {
    let (to_go, gone) = expected(model, eviction.which);
    let rehearsed = store.evict(policy(&to_go)).dry_run(true).run().unwrap();
    assert_eq!(
        (rehearsed.evicted, rehearsed.slices),
        (gone.len() as u64, 0)
    );
    let documents = model.documents.len() as u64;
    let are_all_kept = matches!(to_go, Call::KeepNewest(kept) if kept >= documents);
    assert_eq!(rehearsed.examined, if are_all_kept { 0 } else { documents });
    let mut most_calls = eviction.calls;
    loop {
        let mut calls = 0;
        let slices = store.evict(policy(&to_go)).slice_documents(eviction.slice);
        let report = slices.on_progress(|_| {
            calls += 1;
            match calls < most_calls {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        match report.run() {
            Ok(report) => {
                assert_eq!(report.spared, 0);
                break;
            }
            Err(error) => assert!(matches!(error, Error::Stopped { .. }), "{error}"),
        }
        // Each time it continues a little further than before.
        most_calls += 1;
    }
    let left = store.snapshot().unwrap().len();
    assert_eq!(left, documents - gone.len() as u64, "{eviction:?}");
    for id in gone {
        model.remove(id);
    }
}
