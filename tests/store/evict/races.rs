//! Many threads touch and add documents while others evict.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use resemblance::{Document, EvictPolicy, Store};

use crate::common::sample::trials;
use crate::common::small::{schema, signature};
use crate::common::{Place, Random, check_clean, sealing_after};

const PAGES: u32 = 240;

/// The known facts about each page: the stamp of the last finished touch or insertion, and whether
/// another one is in progress, in which case nothing is known.
type Known = BTreeMap<u32, Mutex<Option<u64>>>;

/// Visits pages: touches those that are there, adds those that are not.
fn visit(store: &Store, known: &Known, clock: &AtomicU64, seed: u64, visits: u32) {
    let mut random = Random(seed);
    for _ in 0..visits {
        let page = u32::try_from(random.below(PAGES.into())).unwrap();
        // One visitor of a page at a time, as of a site.
        let mut last = known[&page].lock().unwrap();
        let stamp = clock.fetch_add(1, Ordering::SeqCst);
        let key = page.to_le_bytes();
        if store.touch(key, stamp).unwrap().is_none() {
            let mut transaction = store.begin_write().unwrap();
            let document = Document::new(&key).stamp(stamp);
            transaction.insert(document, &signature(page)).unwrap();
            transaction.commit().unwrap();
        }
        *last = Some(stamp);
    }
}

/// Evicts documents older than a random bound. Afterwards, every page must exist whose last visit
/// had ended with a stamp of at least the bound. Stamps only rise, so no thread lowers one.
fn evict(store: &Store, known: &Known, clock: &AtomicU64) -> u64 {
    let bound = clock.load(Ordering::SeqCst).saturating_sub(60);
    let eviction = store.evict(EvictPolicy::OlderThan(bound));
    let report = eviction.slice_documents(3).run().unwrap();
    for (page, last) in known {
        let last = last.lock().unwrap();
        // Held: no visit to this page is under way, and the one evicting is this thread.
        let record = store.snapshot().unwrap().get(page.to_le_bytes()).unwrap();
        let Some(last) = *last else {
            continue;
        };
        match record {
            Some(record) => assert_eq!(record.stamp(), last, "page {page}"),
            None => assert!(
                last < bound,
                "page {page}: {last} is not older than {bound}"
            ),
        }
    }
    report.evicted
}

/// Each of four visits 80 pages, 150 with `RESEMBLANCE_TESTS=all`.
#[test]
fn documents_touched_in_time_are_never_evicted() {
    for flush_after in [10, 1_000] {
        let place = Place::new();
        let store = sealing_after(flush_after)
            .create(place.store(), schema())
            .unwrap();
        let known: Known = (0..PAGES).map(|page| (page, Mutex::new(None))).collect();
        let clock = AtomicU64::new(0);
        let done = AtomicBool::new(false);
        let mut evicted = 0;
        thread::scope(|scope| {
            let visitors: Vec<_> = (0..4)
                .map(|seed| {
                    let (store, known, clock) = (store.clone(), &known, &clock);
                    scope.spawn(move || visit(&store, known, clock, seed, trials(80, 150)))
                })
                .collect();
            let (store, known, clock, done) = (store.clone(), &known, &clock, &done);
            let evicting = scope.spawn(move || {
                let mut evicted = 0;
                while !done.load(Ordering::Acquire) {
                    evicted += evict(&store, known, clock);
                }
                evicted
            });
            for visitor in visitors {
                visitor.join().unwrap();
            }
            done.store(true, Ordering::Release);
            evicted = evicting.join().unwrap();
        });
        assert!(evicted > 0, "nothing was evicted");
        evict(&store, &known, &clock);
        let left = store.snapshot().unwrap().len();
        assert!((1..=60).contains(&left), "{left} of the last 60 visits");
        drop(store);
        check_clean(&place.store());
    }
}

/// Several threads evict at the same time. Each document is removed once, and none too many.
#[test]
fn concurrent_evictions_count_each_document_once() {
    let place = Place::new();
    let store = sealing_after(50).create(place.store(), schema()).unwrap();
    let mut model = super::Stamps::new();
    super::add(&store, &mut model, 600, |id| id % 7);
    let evict = || {
        let eviction = store.evict(EvictPolicy::KeepNewest(200));
        eviction.slice_documents(7).run().unwrap()
    };
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(evict);
        (evict(), other.join().unwrap())
    });
    assert_eq!(one.evicted + other.evicted, 400);
    let which = super::Which::KeepNewest(200);
    let gone = super::expected(&model, which);
    model.retain(|id, _| !gone.contains(id));
    assert_eq!(super::stamps(&store.snapshot().unwrap()), model);
    drop(store);
    check_clean(&place.store());
}
