//! Stores on disks that crash and fail: nothing acknowledged is lost, nothing is ever half there.
//!
//! A workload runs on a disk that records every change. At one in 13 points of it, at every point
//! with `RESEMBLANCE_TESTS=all`, the images that a crash could leave are opened.
//! `RESEMBLANCE_CRASHES=n` runs n larger workloads of each kind, and takes more images of each
//! point; `RESEMBLANCE_LONG=1` lets every call to a disk fail in every way.

mod disk;
mod examine;
mod failing;
mod group;
mod io_errors;
mod torn_head;
pub(crate) mod workload;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use crate::common::Random;
use crate::common::oracle::{Entry, Model};
use crate::common::sample::one_in;
use disk::{Change, Disk, Image, Journals, Kept, State, has_records};
use examine::{crash_again, each_store, is_clean, left_over, one_store, which};
use resemblance::StoreOptions;
use workload::{Course, FIRST, run, schemas, signature};

static ENGINE_PANICS: AtomicUsize = AtomicUsize::new(0);

/// From now on panics of the storage engine are counted, those too that are contained.
pub(crate) fn count_engine_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic
                .location()
                .is_some_and(|at| at.file().contains("redb"))
            {
                ENGINE_PANICS.fetch_add(1, Ordering::Relaxed);
            }
            print(panic);
        }));
    });
}

pub(crate) fn no_engine_panics() {
    assert_eq!(
        ENGINE_PANICS.load(Ordering::Relaxed),
        0,
        "panics of the engine"
    );
}

#[derive(Debug, Default)]
struct Counts {
    points: u64,
    images: u64,
    double_crashes: u64,
    journals: Journals,
    found: Vec<String>,
}

/// Crashes at all points of a course.
struct Crashes<'c> {
    course: &'c Course,
    name: String,
    counts: Counts,
}

impl Crashes<'_> {
    /// At each point, tries images with everything that was not synced, with nothing of it, and
    /// with some of it. If no images are to be drawn, tries everything and some in turn. Examines
    /// one point in `distance`.
    fn all(mut self, seed: u64, drawn: u64, distance: usize) -> Counts {
        let mut state = State::default();
        for (change, position) in self.course.changes.iter().zip(1..) {
            state.take(change);
            if position % distance != 0 {
                continue;
            }
            self.counts.points += 1;
            let mut random = Random(seed ^ (position as u64) << 20);
            // If every change is synced, all images are equal.
            if matches!(change, Change::Sync(_) | Change::SyncNames) {
                self.image(&state, position, Kept::Nothing, &mut random);
                continue;
            }
            let is_drawn = drawn == 0 && position % 2 == 0;
            if !is_drawn {
                self.image(&state, position, Kept::Everything, &mut random);
            }
            for _ in 0..drawn.max(u64::from(is_drawn)) {
                let kept = Kept::draw(&mut random);
                self.image(&state, position, kept, &mut random);
            }
        }
        self.counts
    }

    fn image(&mut self, state: &State, position: usize, kept: Kept, random: &mut Random) {
        let seed = random.next();
        let image = state.image(kept, &mut Random(seed));
        if kept != Kept::Nothing && kept != Kept::Everything {
            state.count(&mut self.counts.journals);
        }
        let place = || format!("{}, position {position}, {kept:?}, {seed:#x}", self.name);
        let examined = catch_unwind(AssertUnwindSafe(|| self.examine(&image, position, seed)));
        match examined {
            Ok(Ok((again, left, replays))) => {
                self.counts.journals.left += left;
                self.counts.journals.replays += replays;
                self.counts.double_crashes += again;
                self.counts.images += 1;
                if self.counts.images.is_multiple_of(1_000) {
                    println!("{}: {:?}", self.name, self.counts);
                }
            }
            Ok(Err(found)) => self.counts.found.push(format!("{}: {found}", place())),
            Err(panic) => {
                eprintln!("panicked at {}", place());
                resume_unwind(panic);
            }
        }
        let found = &self.counts.found;
        assert!(found.len() < 10, "{found:#?}");
    }

    /// Each file of an image; how often it crashed again, how many had records in their journal, and how often
    /// one of these crashed again.
    fn examine(
        &self,
        image: &Image,
        position: usize,
        seed: u64,
    ) -> examine::Found<(u64, u64, u64)> {
        let (before, after, what) = self.course.expected(position);
        let mut random = Random(seed ^ 0x5eed);
        let (mut again, mut left, mut replays) = (0, 0, 0);
        for path in image.keys().filter(|path| !after.contains_key(*path)) {
            left_over(image, path)?;
        }
        for (path, possible) in each_store(&before, &after) {
            let under_way = possible.len() > 1;
            let has_journal = image.get(path).is_some_and(|bytes| has_records(bytes));
            left += u64::from(has_journal);
            let examined = one_store(image, path, &possible, &mut random);
            let in_call = |error| format!("{} during {what}: {error}", path.display());
            examined.map_err(in_call)?;
            if random.below(4) == 0 && (under_way || random.below(4) == 0) {
                let crashes = crash_again(image, path, &possible, &mut random).map_err(in_call)?;
                again += crashes;
                replays += if has_journal { crashes } else { 0 };
            }
        }
        Ok((again, left, replays))
    }
}

/// With it even small workloads have seen everything.
const FIRST_SEED: u64 = 53;

fn crash(which: usize) {
    count_engine_panics();
    let (name, schema) = schemas().remove(which);
    let asked = std::env::var("RESEMBLANCE_CRASHES").ok();
    let is_long = asked.is_some();
    let workloads: u64 = asked.map_or(1, |asked| asked.parse().unwrap());
    let (sessions, drawn) = if is_long { (8, 3) } else { (5, 0) };
    // The distance is odd, so that changes at even and at odd positions are seen.
    let distance = if is_long { 1 } else { one_in(13) };
    let mut counts = Counts::default();
    for seed in FIRST_SEED..FIRST_SEED + workloads {
        let course = run(&schema, 1_000 * which as u64 + seed, sessions);
        let seen = course.seen;
        let is_varied = seen.merges.min(seen.dropping).min(seen.overflows) > 0 && seen.aborts > 0;
        assert!(is_long || is_varied, "{seen:?}");
        let crashes = Crashes {
            course: &course,
            name: format!("{name} {seed}"),
            counts: std::mem::take(&mut counts),
        };
        counts = crashes.all(seed, drawn, distance);
        println!(
            "{name}, {} workloads: {counts:?}, {seen:?}",
            seed + 1 - FIRST_SEED
        );
    }
    assert_eq!(counts.found, [""; 0]);
    assert!(
        counts.images > 1_000 / distance as u64 && counts.double_crashes > 200 / distance as u64,
        "{counts:?}"
    );
    let Journals {
        appends,
        checkpoints,
        left,
        replays,
    } = counts.journals;
    // An append is one write: few crashes fall within it.
    let is_varied =
        appends > 10 / distance as u64 && checkpoints.min(left).min(replays) > 20 / distance as u64;
    assert!(is_varied, "{counts:?}");
    no_engine_panics();
}

/// A torn commit is rolled back in two steps. After the first, the head still refers to it,
/// although it is no longer marked for recovery. A second crash at that point once left a store
/// that could not be opened.
#[test]
fn crash_during_roll_back_is_recovered() {
    let path = std::path::Path::new(FIRST);
    // A commit in the journal is whole or not there, and so is one of a file that other processes read. Others can be torn.
    let disk = Disk::alone(&Image::new());
    let options = |disk: &Disk| {
        let options = StoreOptions::new().journal(0, 0);
        options.files(Arc::new(disk.clone()))
    };
    let schema = schemas().remove(0).1;
    let store = options(&disk).create(path, schema.clone()).unwrap();
    let mut random = Random(5);
    let mut state = State::default();
    let mut model = Model::new(schema.clone());
    let kept = Entry::new(Some(b"kept".into()), signature(&schema, &mut random));
    store.insert("kept", &kept.signature).unwrap();
    model.insert(kept);
    store
        .insert("lost", &signature(&schema, &mut random))
        .unwrap();
    // Without the sync that ends the commit.
    let changes = disk.changes();
    let is_write = |change: &Change| matches!(change, Change::Write(..));
    let last = changes.iter().rposition(is_write).unwrap();
    changes[..=last]
        .iter()
        .for_each(|change| state.take(change));
    let torn = state.image(Kept::HeadAlone, &mut random);

    let disk = Disk::alone(&torn);
    drop(options(&disk).open(path).unwrap());
    let mut state = State::of(&torn);
    let possible = vec![Some(Arc::new(model))];
    let changes = disk.changes();
    assert!(changes.len() > 8, "{}", changes.len());
    for change in &changes {
        state.take(change);
        for kept in [Kept::Nothing, Kept::Everything, Kept::HeadAlone] {
            let image = state.image(kept, &mut random);
            one_store(&image, path, &possible, &mut random).unwrap();
            let disk = Disk::alone(&image);
            let store = options(&disk).open(path).unwrap();
            which(&store, &possible).unwrap();
            drop(store);
            is_clean(path, &options(&disk)).unwrap();
        }
    }
}

#[test]
fn minhash_survives_crashes() {
    crash(0);
}

#[test]
fn simhash_survives_crashes() {
    crash(1);
}

#[test]
fn both_families_survive_crashes() {
    crash(2);
}

#[test]
fn minhash_of_few_bits_survives_crashes() {
    crash(3);
}

#[test]
fn kept_clusters_survive_crashes() {
    crash(4);
}
