//! Every long operation reports its progress, and can be stopped at each report. It then leaves the
//! state that its documentation promises.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;

use resemblance::Phase::*;
use resemblance::schema::Rebanding;
use resemblance::{
    BulkOptions, Document, DuplicateKeys, Error, EvictPolicy, ExistingKeys, Phase, Progress,
    Result, Store,
};

use crate::common::sample::trials;
use crate::common::small::{schema, signature};
use crate::common::{Place, check_clean, sealing_after, stats};

/// Enough documents for several reports in a phase that reports every 4,096th.
const MANY: u32 = 9_000;

type Callback<'c> = dyn FnMut(Progress) -> ControlFlow<()> + Send + 'c;

/// A closed store in a separate folder, with merges in progress.
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

    /// Checks that there is no other file, and that the store has these documents.
    fn assert_alone(&self, documents: u32) {
        assert_eq!(self.names(), HashSet::from(["store.rsm".into()]));
        check_clean(&self.place.store());
        assert_eq!(self.open().snapshot().unwrap().len(), documents.into());
    }
}

/// Checks the reports of an operation until its end: each phase must be as expected.
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

/// Records reports, and stops the operation at one of them.
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

fn assert_stopped(error: &Error, expected: &str) {
    match error {
        Error::Stopped { work } => assert_eq!(*work, expected),
        other => panic!("{other}"),
    }
    assert!(error.to_string().starts_with(expected));
}

/// Runs an operation that is stopped at its first report, then at later ones, until it completes.
/// Calls `after` with the reports each time it was stopped.
fn break_off_by<R>(
    run: &mut dyn FnMut(&mut Callback<'_>) -> Result<R>,
    phases: &[Phase],
    after: &mut dyn FnMut(&[Progress], Error),
) -> (R, Vec<Progress>) {
    let mut stop_at = 1;
    loop {
        let mut reported = Vec::new();
        let result = run(&mut until(stop_at, &mut reported));
        match result {
            Ok(report) => {
                assert!(reported.len() < stop_at);
                assert_reported(&reported, phases);
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

/// The same of an operation whose error names the work.
fn break_off<R>(
    work: &str,
    phases: &[Phase],
    mut run: impl FnMut(&mut Callback<'_>) -> Result<R>,
    mut after: impl FnMut(),
) -> (R, Vec<Progress>) {
    break_off_by(&mut run, phases, &mut |_, error| {
        assert_stopped(&error, work);
        after();
    })
}

/// Breaks an operation off at the last of its calls, where all is done and not yet published.
fn break_off_last<R>(
    work: &str,
    reported: &[Progress],
    run: impl FnOnce(&mut Callback<'_>) -> Result<R>,
) {
    let mut again = Vec::new();
    let stopped = run(&mut until(reported.len(), &mut again));
    assert_stopped(&stopped.err().unwrap(), work);
}

#[test]
fn cancelled_backup_leaves_no_file() {
    let stage = Stage::new(MANY);
    let snapshot = stage.open().snapshot().unwrap();
    let copy = stage.place.file("copy.rsm");
    let before = stage.names();
    let backup = |notify: &mut Callback<'_>| snapshot.backup(&copy).on_progress(notify).run();
    let is_as_before = || assert_eq!(stage.names(), before);
    let (report, reported) = break_off("the backup", &[CopyingRows], backup, is_as_before);
    assert_eq!(reported.last().unwrap().total, Some(report.rows));
    assert!(reported.len() > 8, "{reported:?}");
    check_clean(&copy);
    std::fs::remove_file(&copy).unwrap();
    break_off_last("the backup", &reported, backup);
    is_as_before();
}

#[test]
fn cancelled_export_has_no_end() {
    let stage = Stage::new(MANY);
    let snapshot = stage.open().snapshot().unwrap();
    let mut stream = Vec::new();
    let export = |notify: &mut Callback<'_>| {
        stream.clear();
        snapshot.export(&mut stream).on_progress(notify).run()
    };
    let (report, _) = break_off("the export", &[WritingDocuments], export, || ());
    assert_eq!(report.documents, MANY.into());
    let mut cut = Vec::new();
    let export = snapshot.export(&mut cut);
    let stopped = export.on_progress(|progress| match progress.done {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert_stopped(&stopped.run().unwrap_err(), "the export");
    assert!(!cut.is_empty() && cut.len() < stream.len());
    let store = Store::in_memory(schema()).unwrap();
    assert!(store.import(&cut[..]).run().is_err());
}

#[test]
fn cancelled_import_keeps_its_commits() {
    let stage = Stage::new(60);
    let mut stream = Vec::new();
    let snapshot = stage.open().snapshot().unwrap();
    snapshot.export(&mut stream).run().unwrap();
    let mut run = |notify: &mut Callback<'_>| {
        let store = Store::in_memory(schema()).unwrap();
        let import = store.import(&stream[..]).transaction_documents(9);
        import.on_progress(notify).run()
    };
    let mut after = |reported: &[Progress], error| match error {
        Error::ImportStopped { documents, source } => {
            assert_stopped(&source, "the import");
            assert_eq!(reported.last().unwrap().done, documents);
        }
        other => panic!("{other}"),
    };
    let (report, reported) = break_off_by(&mut run, &[StoringDocuments], &mut after);
    assert_eq!((report.read, reported.len()), (60, 8));
    // The next operation skips what a stopped one has committed.
    let store = Store::in_memory(schema()).unwrap();
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
    let evict = |kept| {
        store
            .evict(EvictPolicy::KeepNewest(kept))
            .slice_documents(7)
    };
    let run = |notify: &mut Callback<'_>| evict(40).on_progress(notify).run();
    let phases = [ReadingDocuments, EvictingDocuments];
    let mut stop_at = 1;
    // The last call finds nothing left to evict, and reports no phase.
    while let Err(error) = run(&mut until(stop_at, &mut Vec::new())) {
        assert_stopped(&error, "the eviction");
        let now = store.snapshot().unwrap().len();
        assert!((40..=left).contains(&now));
        (left, stop_at) = (now, stop_at + 1);
    }
    assert_eq!(store.snapshot().unwrap().len(), 40);
    let mut reported = Vec::new();
    let eviction = evict(10).on_progress(until(usize::MAX, &mut reported));
    assert_eq!(eviction.run().unwrap().evicted, 30);
    assert_reported(&reported, &phases);
    assert!(stop_at > 2 && reported.len() > 6, "{reported:?}");
}

fn bulk() -> BulkOptions {
    let options = BulkOptions::new().store(sealing_after(500));
    let options = options.duplicate_keys(DuplicateKeys::KeepFirst);
    options.memory_bytes(1 << 20)
}

#[test]
fn cancelled_build_leaves_no_file() {
    let place = Place::new();
    let build = || {
        let mut build = Store::bulk_build(place.store(), schema(), &bulk()).unwrap();
        for number in 0..1_200_u32 {
            let key = (number % 1_100).to_le_bytes();
            let document = Document::new(&key);
            build.insert(document, &signature(number)).unwrap();
        }
        build
    };
    let count = || std::fs::read_dir(place.file(".")).unwrap().count();
    let phases = [SortingPostings, WritingPostings, RemovingDuplicates];
    let finish = |notify: &mut Callback<'_>| build().on_progress(notify).finish();
    let (report, reported) = break_off("the build", &phases, finish, || assert_eq!(count(), 0));
    assert_eq!(report.duplicates, 100);
    std::fs::remove_file(place.store()).unwrap();
    break_off_last("the build", &reported, finish);
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
    // A build can move to another thread, with its callbacks.
    let moved = build().on_progress(|_| ControlFlow::Continue(()));
    let finished = std::thread::scope(|scope| scope.spawn(|| moved.finish()).join().unwrap());
    assert_eq!(finished.unwrap().documents, 1_100);
}

/// Repairs 4,200 documents, or 9,000 with `RESEMBLANCE_TESTS=all`.
#[test]
fn cancelled_repair_leaves_no_file() {
    let documents = trials(4_200, MANY);
    let stage = Stage::new(documents);
    let (path, new) = (stage.place.store(), stage.place.file("new.rsm"));
    let phases = [
        ScanningPages,
        ReadingDocuments,
        SortingPostings,
        WritingPostings,
    ];
    for scan in [true, false] {
        let repair = |notify: &mut Callback<'_>| {
            let repair = Store::repair(&path, &new).scan(scan);
            repair.on_progress(notify).run()
        };
        let phases = &phases[usize::from(!scan)..];
        let is_alone = || assert_eq!(stage.names().len(), 1);
        let (report, reported) = break_off("the repair", phases, repair, is_alone);
        assert_eq!(report.documents, documents.into());
        std::fs::remove_file(&new).unwrap();
        break_off_last("the repair", &reported, repair);
    }
    stage.assert_alone(documents);
}

#[test]
fn cancelled_reband_leaves_the_old_bands() {
    let stage = Stage::new(2_600);
    let rebanding = Rebanding::new().threshold(0.5).max_distance(2);
    let path = stage.place.store();
    let (old, image) = (stage.open().schema().clone(), std::fs::read(&path).unwrap());
    let reband = |notify: &mut Callback<'_>| {
        let reband = Store::reband(&path, &rebanding).bulk(bulk());
        reband.on_progress(notify).run()
    };
    let is_as_before = || {
        check_clean(&path);
        assert_eq!(*stage.open().schema(), old);
    };
    let phases = [
        VerifyingPages,
        ReadingDocuments,
        SortingPostings,
        WritingPostings,
    ];
    let (report, reported) = break_off("the rebanding", &phases, reband, is_as_before);
    assert_eq!(*stage.open().schema(), report.schema);
    stage.assert_alone(2_600);
    std::fs::write(&path, image).unwrap();
    break_off_last("the rebanding", &reported, reband);
    is_as_before();
    stage.assert_alone(2_600);
}

#[test]
fn check_can_be_cancelled() {
    let stage = Stage::new(MANY);
    let path = stage.place.store();
    let image = std::fs::read(&path).unwrap();
    let check = |notify: &mut Callback<'_>| Store::check(&path).on_progress(notify).run();
    let of_tables = [CheckingDocuments, CheckingPostings];
    let phases = [[VerifyingPages, CheckingFreePages], of_tables].concat();
    let (report, _) = break_off("the check", &phases, check, || ());
    assert_eq!((report.documents, report.is_clean()), (MANY.into(), true));
    assert!(std::fs::read(&path).unwrap() == image, "it was changed");

    let snapshot = stage.open().snapshot().unwrap();
    let check = |notify: &mut Callback<'_>| snapshot.check().on_progress(notify).run();
    let (of_snapshot, reported) = break_off("the check", &of_tables, check, || ());
    assert_eq!(of_snapshot, report);
    assert!(reported.len() > 20, "{reported:?}");
    let count = |notify: &mut Callback<'_>| snapshot.stats().on_progress(notify).run();
    let phases = [CountingRows, CountingPostings];
    let (stats, _) = break_off("the statistics", &phases, count, || ());
    assert_eq!(stats.documents, MANY.into());
}

#[test]
fn cancelled_compaction_leaves_a_sound_store() {
    let stage = Stage::new(3_900);
    let path = stage.place.store();
    let compact = |notify: &mut Callback<'_>| {
        let compaction = sealing_after(500).compact(&path);
        compaction.on_progress(notify).run()
    };
    let store = stage.open();
    let mut documents = 3_900_u32;
    while stats(&store).merges.is_empty() {
        let key = documents.to_le_bytes();
        store.insert(key, &signature(documents)).unwrap();
        documents += 1;
    }
    drop(store);
    let image = std::fs::read(&path).unwrap();
    let compact_image = |notify: &mut Callback<'_>| {
        std::fs::write(&path, &image).unwrap();
        compact(notify)
    };
    let phases = [VerifyingPages, FinishingMerges, MergingRuns, MovingPages];
    let is_sound = || stage.assert_alone(documents);
    let (report, _) = break_off("the compaction", &phases, compact_image, is_sound);
    assert!(report.size_after_bytes < report.size_before_bytes);
    // The next repair completes what a stopped one has left.
    std::fs::write(&path, &image).unwrap();
    let mut last = Vec::new();
    for stop_at in 1.. {
        last.clear();
        if compact(&mut until(stop_at, &mut last)).is_ok() {
            break;
        }
    }
    assert!(
        last.iter().all(|progress| progress.phase != MergingRuns),
        "{last:?}"
    );
    assert_eq!(stats(&stage.open()).runs.len(), 1);
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
        let work = "the search for clusters";
        let (clusters, _) = break_off(work, &[JoiningLanes], clusters, || ());
        assert_eq!(clusters.count(), 1);
    }
}

/// A panic of the callback reaches the caller, and the store remains usable. The engine is on the
/// stack at that point, where a panic would otherwise count as damage.
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
