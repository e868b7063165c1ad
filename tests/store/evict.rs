//! Documents go by age, number and choice: exactly those that are to go, in short transactions, while
//! others write; and their space is used again.

mod races;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use crate::common::memory::MemoryFiles;
use crate::common::sample::trials;
use crate::common::small::{schema, signature};
use crate::common::{Place, check_clean, refused, sealing_after, stats};
use resemblance::report::EvictReport;
use resemblance::{
    Document, DocumentId, Error, EvictPolicy, Phase, Snapshot, Store, StoredDocument,
};

/// Stamps by id.
type Stamps = BTreeMap<u64, u64>;

fn stamps(snapshot: &Snapshot) -> Stamps {
    let records = snapshot.iter().map(|record| record.unwrap());
    records
        .map(|record| (record.id().get(), record.stamp()))
        .collect()
}

/// Adds documents whose keys are their ids.
fn add(store: &Store, model: &mut Stamps, count: u32, mut stamp: impl FnMut(u64) -> u64) {
    let first = stats(store).next_id;
    let mut transaction = store.begin_write().unwrap();
    for id in first..first + u64::from(count) {
        let (key, payload) = (id.to_le_bytes(), vec![id as u8; id as usize % 50]);
        let stamp = stamp(id);
        let document = Document::new(&key).stamp(stamp).payload(&payload);
        let signature = signature(u32::try_from(id).unwrap());
        let found = transaction.insert(document, &signature);
        assert_eq!(found.unwrap().get(), id);
        model.insert(id, stamp);
    }
    transaction.commit().unwrap();
}

/// Which documents to evict.
#[derive(Clone, Copy, Debug)]
enum Which {
    OlderThan(u64),
    KeepNewest(u64),
    /// Documents with such ids, keys, stamps and payloads.
    Where(u64),
}

fn is_chosen(divisor: u64) -> impl Fn(&StoredDocument<'_>) -> bool {
    move |document| {
        let id = document.id().get();
        assert_eq!(document.key(), Some(&id.to_le_bytes()[..]));
        assert_eq!(document.payload(), vec![id as u8; id as usize % 50]);
        (id + document.stamp()).is_multiple_of(divisor)
    }
}

fn policy(which: Which) -> EvictPolicy<'static> {
    match which {
        Which::OlderThan(stamp) => EvictPolicy::OlderThan(stamp),
        Which::KeepNewest(documents) => EvictPolicy::KeepNewest(documents),
        Which::Where(divisor) => EvictPolicy::matching(is_chosen(divisor)),
    }
}

/// The ids that go.
fn expected(model: &Stamps, which: Which) -> BTreeSet<u64> {
    let mut by_age: Vec<(u64, u64)> = model.iter().map(|(id, stamp)| (*stamp, *id)).collect();
    by_age.sort_unstable();
    match which {
        Which::OlderThan(stamp) => by_age.retain(|age| age.0 < stamp),
        Which::KeepNewest(documents) => {
            by_age.truncate(by_age.len().saturating_sub(documents as usize));
        }
        Which::Where(divisor) => by_age.retain(|age| (age.0 + age.1).is_multiple_of(divisor)),
    }
    by_age.into_iter().map(|(_, id)| id).collect()
}

/// Changes that other threads make between two slices, when no transaction is open.
fn disturb(store: &Store, ids: &[u64]) {
    for (place, id) in ids.iter().enumerate() {
        let key = id.to_le_bytes();
        match place % 4 {
            // Still too old, and no longer so.
            0 => assert!(store.touch(key, 1).unwrap().is_some()),
            1 => assert!(store.touch(key, 100).unwrap().is_some()),
            2 => assert!(store.remove(key).unwrap().is_some()),
            _ => {
                let new = signature(u32::try_from(*id).unwrap() + 5_000);
                assert!(store.upsert(key, &new).unwrap().replaced.is_some());
            }
        }
    }
}

/// Documents that were chosen and are disturbed before their slice are looked at again within it.
#[test]
fn evict_spares_and_counts_documents_changed_meanwhile() {
    let place = Place::new();
    let store = sealing_after(30).create(place.store(), schema()).unwrap();
    let mut model = Stamps::new();
    add(&store, &mut model, 200, |id| id % 10);
    // All are read at once, and 120 are selected. A slice removes 10 of them.
    let mut calls = 0;
    let report = store
        .evict(EvictPolicy::OlderThan(6))
        .slice_documents(10)
        .on_progress(|_| {
            calls += 1;
            // The first call is before anything is read, the second after the first slice.
            if calls == 2 {
                assert_eq!(store.snapshot().unwrap().len(), 190);
                // The second slice is of 10 to 19 of the chosen: 20 to 25, 30 to 33.
                disturb(&store, &[20, 21, 22, 23, 33]);
                let late = Document::new("late").stamp(1);
                let mut transaction = store.begin_write().unwrap();
                transaction.insert(late, &signature(9_999)).unwrap();
                transaction.commit().unwrap();
            }
            ControlFlow::Continue(())
        })
        .run()
        .unwrap();
    // 21 touched, 22 removed, 23 replaced; 20 and 33 are as old as ever.
    assert_eq!((report.evicted, report.spared), (117, 3));
    assert_eq!((report.examined, report.slices), (200, 12));
    let left = stamps(&store.snapshot().unwrap());
    let mut expected: Stamps = model.into_iter().filter(|(_, stamp)| *stamp >= 6).collect();
    // The replacement was inserted later with stamp 0, and so was the late document. Neither is
    // examined.
    expected.extend([(21, 100), (200, 0), (201, 1)]);
    assert_eq!(left, expected);
    drop(store);
    check_clean(&place.store());
}

/// The newest are those of the moment of the call, and no more than too many go.
#[test]
fn keep_newest_removes_exactly_the_excess() {
    let store = sealing_after(30).create_in_memory(schema()).unwrap();
    let mut model = Stamps::new();
    add(&store, &mut model, 100, |id| id);
    let mut is_disturbed = false;
    let report = store
        .evict(EvictPolicy::KeepNewest(60))
        .slice_documents(5)
        .on_progress(|_| {
            // After the first slice.
            if !is_disturbed && store.snapshot().unwrap().len() == 95 {
                is_disturbed = true;
                // One that stays becomes the oldest after it was examined, and more are inserted.
                store.touch(99u64.to_le_bytes(), 0).unwrap();
                add(&store, &mut model, 20, |_| 0);
            }
            ControlFlow::Continue(())
        })
        .run()
        .unwrap();
    assert!(is_disturbed);
    assert_eq!((report.evicted, report.spared), (40, 0));
    model.retain(|id, _| *id >= 40);
    model.insert(99, 0);
    assert_eq!(stamps(&store.snapshot().unwrap()), model);
    // Now 99 is the oldest, with the 20 new ones.
    let report = store.evict(EvictPolicy::KeepNewest(59)).run().unwrap();
    assert_eq!(report.evicted, 21);
    assert_eq!(
        store.evict(EvictPolicy::KeepNewest(59)).run().unwrap(),
        EvictReport::default()
    );
    assert_eq!(stamps(&store.snapshot().unwrap()).len(), 59);
    let report = store.evict(EvictPolicy::KeepNewest(0)).run().unwrap();
    assert_eq!(report.evicted, 59);
    assert!(store.snapshot().unwrap().is_empty());
}

/// An eviction that is stopped at any moment, or ended by a crash after any commit, continues when
/// it is called again.
#[test]
fn evict_resumes_after_a_stop_or_crash() {
    for which in [Which::OlderThan(6), Which::KeepNewest(80), Which::Where(2)] {
        let (files, path) = (MemoryFiles::default(), Path::new("store.rsm"));
        let options = sealing_after(30);
        let store = files.options(&options).create(path, schema()).unwrap();
        let mut model = Stamps::new();
        add(&store, &mut model, 200, |id| id % 10);
        let gone = expected(&model, which);
        let after: Stamps = model
            .iter()
            .filter(|(id, _)| !gone.contains(id))
            .map(|(id, stamp)| (*id, *stamp))
            .collect();
        let mut images = Vec::new();
        let mut runs = 0;
        for stop_after in 1..100 {
            let mut calls = 0;
            let eviction = store.evict(policy(which)).slice_documents(9);
            let report = eviction.on_progress(|progress| {
                calls += 1;
                if progress.phase == Phase::EvictingDocuments {
                    images.push(files.read(path));
                }
                match calls < stop_after {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            runs += 1;
            let report = report.run();
            let held = stamps(&store.snapshot().unwrap());
            assert!(after.keys().all(|id| held.contains_key(id)));
            match report {
                Ok(_) => break,
                Err(error) => assert!(matches!(error, Error::Stopped { .. }), "{error}"),
            }
        }
        assert!(runs > 2, "{which:?} was never broken off");
        assert_eq!(stamps(&store.snapshot().unwrap()), after, "{which:?}");
        for image in images {
            let crashed = MemoryFiles::with(path, image);
            let store = crashed.options(&options).open(path).unwrap();
            let held = stamps(&store.snapshot().unwrap());
            assert!(after.keys().all(|id| held.contains_key(id)));
            assert!(held.keys().all(|id| model.contains_key(id)));
            // The rule by number continues as well: the removed documents were the oldest.
            let again = store.evict(policy(which)).run().unwrap();
            assert_eq!(again.evicted as usize, held.len() - after.len());
            assert_eq!(stamps(&store.snapshot().unwrap()), after);
            assert!(store.snapshot().unwrap().check().run().unwrap().is_clean());
        }
    }
}

#[test]
fn evict_refuses_wrong_options_and_passes_panics_on() {
    let place = Place::new();
    let store = Store::create(place.store(), schema()).unwrap();
    let mut model = Stamps::new();
    add(&store, &mut model, 20, |id| id);
    for documents in [0, 1_000_001] {
        let eviction = store.evict(EvictPolicy::OlderThan(5));
        refused(eviction.slice_documents(documents).run(), "slice_documents");
    }
    let transaction = store.begin_write().unwrap();
    let busy = |policy| assert!(matches!(store.evict(policy).run(), Err(Error::Busy)));
    busy(EvictPolicy::OlderThan(5));
    busy(EvictPolicy::KeepNewest(5));
    busy(EvictPolicy::matching(|_| true));
    drop(transaction);
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let asked = std::cell::Cell::new(0);
        let policy = EvictPolicy::matching(|_| {
            asked.set(asked.get() + 1);
            // The first four are asked about twice and removed. The callback panics within the
            // second slice.
            assert!(asked.get() < 15, "the caller's own");
            true
        });
        store.evict(policy).slice_documents(4).run()
    }));
    assert!(panicked.is_err());
    model.retain(|id, _| *id >= 4);
    assert_eq!(stamps(&store.snapshot().unwrap()), model);
    let report = store.evict(EvictPolicy::OlderThan(6)).run().unwrap();
    assert_eq!(report.evicted, 2);
    drop(store);
    let store = Store::open_read_only(place.store()).unwrap();
    assert!(matches!(
        store.evict(EvictPolicy::KeepNewest(5)).run(),
        Err(Error::ReadOnly)
    ));
    let rehearsal = store.evict(EvictPolicy::KeepNewest(5)).dry_run(true);
    let report = rehearsal.run().unwrap();
    assert_eq!((report.evicted, report.slices), (9, 0));
}

/// A selected document is examined again by its id alone, even with a large payload or without a
/// key.
#[test]
fn evict_shows_documents_of_all_sizes_whole() {
    let store = sealing_after(2).create_in_memory(schema()).unwrap();
    let mut transaction = store.begin_write().unwrap();
    let large = vec![9; 3 << 20];
    for (number, payload) in [(0, &large[..]), (1, b""), (2, &large[..]), (3, b"x")] {
        let document = Document::without_key().stamp(number).payload(payload);
        let signature = signature(u32::try_from(number).unwrap());
        transaction.insert(document, &signature).unwrap();
    }
    transaction.commit().unwrap();
    let is_large = |document: &StoredDocument<'_>| {
        assert_eq!(document.key(), None);
        document.payload() == large
    };
    let report = store.evict(EvictPolicy::matching(is_large)).run().unwrap();
    assert_eq!((report.examined, report.evicted), (4, 2));
    let left = stamps(&store.snapshot().unwrap());
    assert_eq!(left, Stamps::from([(1, 1), (3, 3)]));
    assert!(
        store
            .snapshot()
            .unwrap()
            .get_id(DocumentId::new(3))
            .unwrap()
            .is_some()
    );
}

/// Loads and evicts a working set over and over. In addition, the file contains deleted documents
/// that no merge has dropped yet: at most a quarter of the documents, and the same number again in
/// the run that is being merged (tests/store/removal.rs). It also contains pages that are free
/// until the next commit. docs/benchmarks.md has measured a factor of 1.50 for a file whose
/// documents are all replaced. Here, a third more documents exist before each eviction, and 4/3 of
/// that factor is 2.0. The bound adds 256 KiB for what does not shrink with the store. Tests a
/// quarter of the documents, or all with `RESEMBLANCE_TESTS=all`.
#[test]
fn space_of_evicted_documents_is_reused() {
    let (kept, round_documents) = trials((1_500, 500), (6_000, 2_000));
    for by_age in [true, false] {
        let place = Place::new();
        let options = sealing_after(u64::from(kept) / 12).merge_slice(trials(1_250, 5_000));
        let store = options.create(place.store(), schema()).unwrap();
        let mut model = Stamps::new();
        add(&store, &mut model, kept, |id| id);
        let used = |store: &Store| {
            let tables = stats(store).tables;
            tables.iter().map(|table| table.total_bytes()).sum::<u64>()
        };
        let length = |store: &Store| stats(store).allocated_bytes;
        let (first, first_length) = (used(&store), length(&store));
        let mut lengths = Vec::new();
        for round in 0..12u64 {
            for _ in 0..4 {
                add(&store, &mut model, round_documents / 4, |id| id);
            }
            let next = u64::from(kept) + (round + 1) * u64::from(round_documents);
            let policy = if by_age {
                // Some are seen again, so that removed documents are between those that stay.
                let seen = (next - u64::from(kept)..next).step_by(3);
                let mut transaction = store.begin_write().unwrap();
                for id in seen {
                    transaction
                        .touch_id(DocumentId::new(id), next + id % 1_000)
                        .unwrap();
                }
                transaction.commit().unwrap();
                EvictPolicy::KeepNewest(kept.into())
            } else {
                EvictPolicy::OlderThan(next - u64::from(kept))
            };
            let report = store.evict(policy).slice_documents(200).run();
            assert_eq!(report.unwrap().evicted, round_documents.into());
            let used = used(&store);
            assert!(
                used <= 2 * first + (256 << 10),
                "{used} bytes, at first {first}"
            );
            lengths.push(length(&store));
        }
        // Nor does the file go on growing by what is evicted, a third of it each round.
        let most = |lengths: &[u64]| lengths.iter().max().copied().unwrap();
        let (before, after) = (most(&lengths[..6]), most(&lengths[6..]));
        assert!(after * 10 <= before * 11, "{lengths:?}");
        assert!(
            // The open file has a journal of a MiB.
            after <= 2 * first_length + (256 << 10) + (1 << 20),
            "{first_length}, then {lengths:?}"
        );
        drop(store);
        check_clean(&place.store());
    }
}
