//! Every long operation tells how far it is, and can be broken off at each of its calls: it leaves
//! then what its documentation says.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use resemblance::schema::Rebanding;
use resemblance::{
    BulkOptions, Document, DuplicateKeys, Error, EvictPolicy, ExistingKeys, Phase, Progress,
    Result, Store,
};

use crate::common::sample::trials;
use crate::common::small::{schema, signature};
use crate::common::{Place, check_clean, sealing_after, stats};

/// Enough for several calls of a phase that tells every 4,096th document.
const MANY: u32 = 9_000;

type Callback<'c> = dyn FnMut(Progress) -> ControlFlow<()> + Send + 'c;

/// A closed store in a folder of its own, in which merges are under way.
struct Stage {
    place: Place,
}

impl Stage {
    fn new(documents: u32) -> Self {
        let place = Place::new();
        let store = sealing_after(500).create(place.store(), schema()).unwrap();
        for first in (0..documents).step_by(50) {
            let mut transaction = store.begin_write().unwrap();
            for number in first..documents.min(first + 50) {
                let key = number.to_le_bytes();
                let document = Document::new(&key).stamp(number.into());
                transaction.insert(document, &signature(number)).unwrap();
            }
            transaction.commit().unwrap();
        }
        drop(store);
        Self { place }
    }

    fn open(&self) -> Store {
        sealing_after(500).open(self.place.store()).unwrap()
    }

    fn names(&self) -> HashSet<String> {
        let entries = std::fs::read_dir(self.place.file(".")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    /// That there is no other file, and that the store has these documents.
    fn assert_alone(&self, documents: u32) {
        assert_eq!(self.names(), HashSet::from(["store.rsm".into()]));
        check_clean(&self.place.store());
        assert_eq!(self.open().snapshot().unwrap().len(), documents.into());
    }
}

/// What an operation told until it ended, each phase as it must be.
fn assert_reported(reported: &[Progress], phases: &[Phase]) {
    let found = reported.chunk_by(|a, b| a.phase == b.phase);
    let found: Vec<&[Progress]> = found.collect();
    let names: Vec<Phase> = found.iter().map(|phase| phase[0].phase).collect();
    assert_eq!(names, phases, "{reported:#?}");
    for phase in found {
        let (first, last) = (phase[0], phase[phase.len() - 1]);
        assert!(
            phase.is_sorted_by_key(|progress| progress.done),
            "{phase:?}"
        );
        assert!(phase.iter().all(|progress| progress.total == first.total));
        assert_eq!(last.total.unwrap_or(last.done), last.done, "{phase:?}");
        let words = first.phase.to_string();
        assert!(first.to_string().starts_with(&words), "{first}");
        assert!(last.to_string().ends_with(first.phase.unit()), "{last}");
    }
}

/// Notes what is told, and breaks off at one of the calls.
fn until<'t>(
    stop_at: usize,
    reported: &'t mut Vec<Progress>,
) -> impl FnMut(Progress) -> ControlFlow<()> + Send + 't {
    move |progress| {
        reported.push(progress);
        match reported.len() < stop_at {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

/// Runs an operation that is broken off at its first call, then at later ones, until it comes to its
/// end. Calls `after` with what it told, after each that was broken off.
fn break_off<R>(
    mut run: impl FnMut(&mut Callback<'_>) -> Result<R>,
    mut after: impl FnMut(&[Progress], Error),
) -> (R, Vec<Progress>) {
    let mut stop_at = 1;
    loop {
        let mut reported = Vec::new();
        let result = run(&mut until(stop_at, &mut reported));
        match result {
            Ok(report) => {
                assert!(reported.len() < stop_at);
                return (report, reported);
            }
            Err(error) => {
                assert_eq!(reported.len(), stop_at, "{error}");
                after(&reported, error);
            }
        }
        // Finer steps with `RESEMBLANCE_TESTS=all`.
        stop_at += 1 + stop_at / trials(1, 4);
    }
}

fn assert_stopped(error: &Error, expected: &str) {
    match error {
        Error::Stopped { work } => assert_eq!(*work, expected),
        other => panic!("{other}"),
    }
    assert!(error.to_string().starts_with(expected));
}

#[test]
fn cancelled_backup_leaves_no_file() {
    let stage = Stage::new(MANY);
    let store = stage.open();
    let snapshot = store.snapshot().unwrap();
    let copy = stage.place.file("copy.rsm");
    let before = stage.names();
    let (report, reported) = break_off(
        |notify| snapshot.backup(&copy).on_progress(notify).run(),
        |_, error| {
            assert_stopped(&error, "the backup");
            assert_eq!(stage.names(), before);
        },
    );
    assert_reported(&reported, &[Phase::CopyingRows]);
    assert_eq!(reported.last().unwrap().total, Some(report.rows));
    assert!(reported.len() > 8, "{reported:?}");
    check_clean(&copy);
    // At the last call all is copied, and the file has no name yet.
    std::fs::remove_file(&copy).unwrap();
    let (mut again, last) = (Vec::new(), reported.len());
    let stopped = snapshot.backup(&copy).on_progress(until(last, &mut again));
    assert_stopped(&stopped.run().unwrap_err(), "the backup");
    assert_eq!(stage.names(), before);
}

#[test]
fn cancelled_export_has_no_end() {
    let stage = Stage::new(MANY);
    let snapshot = stage.open().snapshot().unwrap();
    let mut stream = Vec::new();
    let (report, reported) = break_off(
        |notify| {
            stream.clear();
            snapshot.export(&mut stream).on_progress(notify).run()
        },
        |_, error| assert_stopped(&error, "the export"),
    );
    assert_reported(&reported, &[Phase::WritingDocuments]);
    assert_eq!(report.documents, MANY.into());
    let mut cut = Vec::new();
    let stopped = snapshot
        .export(&mut cut)
        .on_progress(|progress| match progress.done {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        });
    assert_stopped(&stopped.run().unwrap_err(), "the export");
    assert!(!cut.is_empty() && cut.len() < stream.len());
    let place = Place::new();
    let store = Store::create(place.store(), schema()).unwrap();
    assert!(store.import(&cut[..]).run().is_err());
}

#[test]
fn cancelled_import_keeps_its_commits() {
    let stage = Stage::new(60);
    let mut stream = Vec::new();
    let snapshot = stage.open().snapshot().unwrap();
    snapshot.export(&mut stream).run().unwrap();
    let place = Place::new();
    let new = || {
        let _ = std::fs::remove_file(place.store());
        Store::create(place.store(), schema()).unwrap()
    };
    let mut store = None;
    let (report, reported) = break_off(
        |notify| {
            store = None;
            let import = store.insert(new()).import(&stream[..]);
            import.transaction_documents(9).on_progress(notify).run()
        },
        |reported, error| match error {
            Error::ImportStopped { documents, source } => {
                assert_stopped(&source, "the import");
                assert_eq!(reported.last().unwrap().done, documents);
            }
            other => panic!("{other}"),
        },
    );
    assert_reported(&reported, &[Phase::StoringDocuments]);
    assert_eq!((report.read, reported.len()), (60, 8));
    // What a broken one has committed is passed over by the next.
    drop(store);
    let store = new();
    let import = store.import(&stream[..]).transaction_documents(9);
    let stopped = import.on_progress(|progress| match progress.done < 27 {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    });
    assert!(stopped.run().is_err());
    assert_eq!(store.snapshot().unwrap().len(), 27);
    let rest = store.import(&stream[..]).existing_keys(ExistingKeys::Skip);
    let report = rest.run().unwrap();
    assert_eq!((report.skipped, report.inserted), (27, 33));
}

#[test]
fn cancelled_eviction_can_be_resumed() {
    let stage = Stage::new(100);
    let store = stage.open();
    let mut left = 100;
    let (_, reported) = break_off(
        |notify| {
            let eviction = store.evict(EvictPolicy::KeepNewest(40)).slice_documents(7);
            eviction.on_progress(notify).run()
        },
        |_, error| {
            assert_stopped(&error, "the eviction");
            let now = store.snapshot().unwrap().len();
            assert!((40..=left).contains(&now));
            left = now;
        },
    );
    assert_eq!(store.snapshot().unwrap().len(), 40, "{reported:?}");
    let mut reported = Vec::new();
    let eviction = store.evict(EvictPolicy::KeepNewest(10)).slice_documents(7);
    let eviction = eviction.on_progress(until(usize::MAX, &mut reported));
    assert_eq!(eviction.run().unwrap().evicted, 30);
    assert_reported(
        &reported,
        &[Phase::ReadingDocuments, Phase::EvictingDocuments],
    );
    assert!(reported.len() > 6, "{reported:?}");
}

fn bulk() -> BulkOptions {
    BulkOptions::new()
        .store(sealing_after(500))
        .memory_bytes(1 << 20)
        .duplicate_keys(DuplicateKeys::KeepFirst)
}

#[test]
fn cancelled_build_leaves_no_file() {
    let place = Place::new();
    let build = || {
        let mut build = Store::bulk_build(place.store(), schema(), &bulk()).unwrap();
        for number in 0..1_200_u32 {
            let key = (number % 1_100).to_le_bytes();
            build
                .insert(Document::new(&key), &signature(number))
                .unwrap();
        }
        build
    };
    let count = || std::fs::read_dir(place.file(".")).unwrap().count();
    let (report, reported) = break_off(
        |notify| build().on_progress(notify).finish(),
        |_, error| {
            assert_stopped(&error, "the build");
            assert_eq!(count(), 0);
        },
    );
    let phases = [
        Phase::SortingPostings,
        Phase::WritingPostings,
        Phase::RemovingDuplicates,
    ];
    assert_reported(&reported, &phases);
    assert_eq!(report.duplicates, 100);
    std::fs::remove_file(place.store()).unwrap();
    let mut again = Vec::new();
    let stopped = build()
        .on_progress(until(reported.len(), &mut again))
        .finish();
    assert_stopped(&stopped.unwrap_err(), "the build");
    assert_eq!(count(), 0);
    let mut repeated = 0;
    let stopped = build().on_duplicate(|id, key| {
        assert_eq!(key, (id.get() as u32 % 1_100).to_le_bytes());
        repeated += 1;
        match repeated < 30 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    assert_stopped(&stopped.finish().unwrap_err(), "the build");
    assert_eq!((repeated, count()), (30, 0));
    // A build goes to another thread, with its callbacks.
    let moved = build().on_progress(|_| ControlFlow::Continue(()));
    let finished = std::thread::scope(|scope| scope.spawn(|| moved.finish()).join().unwrap());
    assert_eq!(finished.unwrap().documents, 1_100);
}

/// Of 4,200 documents, of 9,000 with `RESEMBLANCE_TESTS=all`.
#[test]
fn cancelled_repair_leaves_no_file() {
    let documents = trials(4_200, MANY);
    let stage = Stage::new(documents);
    let (path, new) = (stage.place.store(), stage.place.file("new.rsm"));
    for (scan, first) in [(true, Some(Phase::ScanningPages)), (false, None)] {
        let (report, reported) = break_off(
            |notify| {
                let repair = Store::repair(&path, &new).scan(scan);
                repair.on_progress(notify).run()
            },
            |reported, error| {
                assert_stopped(&error, "the repair");
                assert_eq!(stage.names().len(), 1, "{reported:?}");
            },
        );
        let rest = [
            Phase::ReadingDocuments,
            Phase::SortingPostings,
            Phase::WritingPostings,
        ];
        let phases: Vec<Phase> = first.into_iter().chain(rest).collect();
        assert_reported(&reported, &phases);
        assert_eq!(report.documents, documents.into());
        std::fs::remove_file(&new).unwrap();
        let (mut again, last) = (Vec::new(), reported.len());
        let repair = Store::repair(&path, &new).scan(scan);
        let stopped = repair.on_progress(until(last, &mut again)).run();
        assert_stopped(&stopped.unwrap_err(), "the repair");
    }
    stage.assert_alone(documents);
}

#[test]
fn cancelled_reband_leaves_the_old_bands() {
    let stage = Stage::new(2_600);
    let rebanding = Rebanding::new().threshold(0.5).max_distance(2);
    let path = stage.place.store();
    let (old, image) = (stage.open().schema().clone(), std::fs::read(&path).unwrap());
    let (report, reported) = break_off(
        |notify| {
            let reband = Store::reband(&path, &rebanding).bulk(bulk());
            reband.on_progress(notify).run()
        },
        |_, error| {
            assert_stopped(&error, "the rebanding");
            check_clean(&path);
            assert_eq!(*stage.open().schema(), old);
        },
    );
    let phases = [
        Phase::VerifyingPages,
        Phase::ReadingDocuments,
        Phase::SortingPostings,
        Phase::WritingPostings,
    ];
    assert_reported(&reported, &phases);
    assert_eq!(*stage.open().schema(), report.schema);
    stage.assert_alone(2_600);
    // At the last call all is written, and not committed yet.
    std::fs::write(&path, image).unwrap();
    let (mut again, last) = (Vec::new(), reported.len());
    let reband = Store::reband(&path, &rebanding).bulk(bulk());
    let stopped = reband.on_progress(until(last, &mut again)).run();
    assert_stopped(&stopped.unwrap_err(), "the rebanding");
    assert_eq!(*stage.open().schema(), old);
    stage.assert_alone(2_600);
}

#[test]
fn check_can_be_cancelled() {
    let stage = Stage::new(MANY);
    let path = stage.place.store();
    let image = std::fs::read(&path).unwrap();
    let (report, reported) = break_off(
        |notify| Store::check(&path).on_progress(notify).run(),
        |_, error| assert_stopped(&error, "the check"),
    );
    let of_tables = [Phase::CheckingDocuments, Phase::CheckingPostings];
    let of_pages = [Phase::VerifyingPages, Phase::CheckingFreePages];
    assert_reported(&reported, &[of_pages, of_tables].concat());
    assert_eq!((report.documents, report.is_clean()), (MANY.into(), true));
    assert!(std::fs::read(&path).unwrap() == image, "it was changed");

    let snapshot = stage.open().snapshot().unwrap();
    let (of_snapshot, reported) = break_off(
        |notify| snapshot.check().on_progress(notify).run(),
        |_, error| assert_stopped(&error, "the check"),
    );
    assert_reported(&reported, &of_tables);
    assert_eq!(of_snapshot, report);
    assert!(reported.len() > 20, "{reported:?}");
    let (stats, reported) = break_off(
        |notify| snapshot.stats().on_progress(notify).run(),
        |_, error| assert_stopped(&error, "the statistics"),
    );
    assert_reported(&reported, &[Phase::CountingRows, Phase::CountingPostings]);
    assert_eq!(stats.documents, MANY.into());
}

#[test]
fn cancelled_compaction_leaves_a_sound_store() {
    let compact = |path: &Path, notify: &mut Callback<'_>| {
        let compaction = sealing_after(500).compact(path);
        compaction.on_progress(notify).run()
    };
    let stage = Stage::new(3_900);
    let path = stage.place.store();
    let store = stage.open();
    let mut documents = 3_900_u32;
    while stats(&store).merges.is_empty() {
        let key = documents.to_le_bytes();
        store.insert(key, &signature(documents)).unwrap();
        documents += 1;
    }
    drop(store);
    let image = std::fs::read(&path).unwrap();
    let (report, reported) = break_off(
        |notify| {
            std::fs::write(&path, &image).unwrap();
            compact(&path, notify)
        },
        |_, error| {
            assert_stopped(&error, "the compaction");
            stage.assert_alone(documents);
        },
    );
    let phases = [
        Phase::VerifyingPages,
        Phase::FinishingMerges,
        Phase::MergingRuns,
        Phase::MovingPages,
    ];
    assert_reported(&reported, &phases);
    assert!(report.size_after_bytes < report.size_before_bytes);
    // What is left by one that was broken off is done by the next.
    std::fs::write(&path, &image).unwrap();
    let (_, reported) = break_off(|notify| compact(&path, notify), |_, _| ());
    let last: Vec<Phase> = reported.iter().map(|progress| progress.phase).collect();
    assert!(!last.contains(&Phase::MergingRuns), "{reported:?}");
    let stats = stage.open().snapshot().unwrap().stats().run().unwrap();
    assert_eq!(stats.runs.len(), 1);
}

#[test]
fn clusters_can_be_cancelled() {
    let stage = Stage::new(200);
    let store = stage.open();
    store.insert("like the first", &signature(0)).unwrap();
    let snapshot = store.snapshot().unwrap();
    for verifies in [false, true] {
        let clusters = |notify: &mut Callback<'_>| {
            let join = snapshot.clusters().on_progress(notify);
            match verifies {
                true => join.verify(|_, _| Ok(None)).run(),
                false => join.run(),
            }
        };
        let (clusters, reported) = break_off(clusters, |_, error| {
            assert_stopped(&error, "the search for clusters");
        });
        assert_eq!(clusters.count(), 1);
        assert_reported(&reported, &[Phase::JoiningLanes]);
    }
}

/// A panic of the callback is the caller's own, and the store is none the worse for it, though the
/// engine is on the stack: there a panic is taken for damage.
#[test]
fn panic_of_a_progress_callback_propagates_and_closes_nothing() {
    let stage = Stage::new(20);
    let store = stage.open();
    let snapshot = store.snapshot().unwrap();
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let check = snapshot.check();
        check.on_progress(|_| panic!("the caller's own")).run()
    }));
    let message = panicked.unwrap_err();
    assert_eq!(message.downcast_ref::<&str>(), Some(&"the caller's own"));
    assert!(snapshot.check().run().unwrap().is_clean());
    store.insert("new", &signature(99)).unwrap();
}
