//! Several processes use one store: readers beside a writer, and writers that wait for each other.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::killing::{Running, kills, store_of};
use crate::common::small::{schema, signature};
use crate::common::{Place, Random, check_clean};
use resemblance::{
    Closed, Document, Error, EvictPolicy, Record, Result, Snapshot, Store, StoreOptions,
    WriteTransaction,
};

const WRITER: &str = "sharing::writer_in_a_child";
const STEP: &str = "step";

/// The documents of a store whose history follows from a seed: after each step one commit is made, and an eviction
/// before it if the step evicts.
#[derive(Clone)]
struct History {
    seed: u64,
    steps: u64,
    live: BTreeSet<u32>,
    next: u32,
}

/// The changes of one step.
#[derive(Default)]
struct Changes {
    inserted: Vec<u32>,
    removed: Vec<u32>,
}

impl History {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            steps: 0,
            live: BTreeSet::new(),
            next: 0,
        }
    }

    fn random(&self) -> Random {
        Random(self.seed.wrapping_mul(1_000_003).wrapping_add(self.steps))
    }

    /// Returns the stamp below which the next step evicts, or `None`. The stamp of a document is
    /// its number.
    fn evicts_below(&self) -> Option<u32> {
        let live: Vec<u32> = self.live.iter().copied().collect();
        let is_due = live.len() > 20 && self.random().below(25) == 0;
        is_due.then(|| live[live.len() / 3])
    }

    /// Makes the next step. Returns its changes without the eviction.
    fn advance(&mut self) -> Changes {
        let mut random = self.random();
        let evicts_below = self.evicts_below();
        self.steps += 1;
        let mut changes = Changes::default();
        if let Some(limit) = evicts_below {
            self.live.retain(|number| *number >= limit);
            return changes;
        }
        let live: Vec<u32> = self.live.iter().copied().collect();
        let is_large = random.below(40) == 0;
        for _ in 0..random.below(if is_large { 600 } else { 6 }) {
            changes.inserted.push(self.next);
            self.next += 1;
        }
        if !live.is_empty() {
            let removed: BTreeSet<u32> = (0..random.below(5)).map(|_| random.pick(&live)).collect();
            changes.removed.extend(removed);
        }
        self.live.extend(&changes.inserted);
        self.live.retain(|number| !changes.removed.contains(number));
        changes
    }

    /// Brings this history to a later step, or to an earlier one.
    fn reach(&mut self, steps: u64) {
        if self.steps > steps {
            *self = Self::new(self.seed);
        }
        while self.steps < steps {
            self.advance();
        }
    }

    /// Returns the history of the commit to which a marker belongs.
    fn of(marker: &Record) -> Self {
        let mut history = Self::new(marker.stamp() - MARKER_STAMP);
        history.reach(step_of(marker));
        history
    }

    /// True if a document may be missing already, because the next step evicts it.
    fn may_miss(&self, number: u32) -> bool {
        self.evicts_below().is_some_and(|limit| number < limit)
    }

    fn check(&self, snapshot: &Snapshot) -> Result<()> {
        let live = self.live.iter();
        let most = live.clone().count() as u64 + 1;
        let least = most - live.filter(|number| self.may_miss(**number)).count() as u64;
        let (step, found) = (self.steps, snapshot.len());
        assert!((least..=most).contains(&found), "{found} in step {step}");
        let newest = self.next.saturating_sub(30)..self.next + 2;
        let oldest = 0..self.next.min(10);
        for number in oldest.chain(newest) {
            let is_there = snapshot.contains(number.to_le_bytes())?;
            let is_live = self.live.contains(&number);
            assert!(is_there == is_live || self.may_miss(number));
            let found = snapshot.query(&signature(number)).run()?;
            let keys: Vec<&[u8]> = found.iter().filter_map(|found| found.key()).collect();
            let expected: &[&[u8]] = if is_there {
                &[&number.to_le_bytes()]
            } else {
                &[]
            };
            assert_eq!(keys, expected, "document {number} at step {step}");
        }
        Ok(())
    }

    fn check_all(&self, snapshot: &Snapshot) -> Result<()> {
        let mut found = BTreeSet::new();
        for record in snapshot.iter() {
            let key = record?.key().unwrap().to_vec();
            if key != STEP.as_bytes() {
                found.insert(u32::from_le_bytes(key.try_into().unwrap()));
            }
        }
        assert!(found.is_subset(&self.live));
        assert!(
            self.live
                .difference(&found)
                .all(|number| self.may_miss(*number))
        );
        Ok(())
    }
}

/// The stamp of the marker is the sum of this and the seed. It is never evicted.
const MARKER_STAMP: u64 = 1 << 40;

fn step_of(marker: &Record) -> u64 {
    u64::from_le_bytes(marker.payload().try_into().unwrap())
}

fn marker_of(snapshot: &Snapshot) -> Result<Record> {
    Ok(snapshot.get(STEP)?.expect("each commit has the marker"))
}

fn mark(transaction: &mut WriteTransaction, history: &History) {
    let payload = history.steps.to_le_bytes();
    let marker = Document::new(STEP).payload(&payload);
    let marker = marker.stamp(MARKER_STAMP + history.seed);
    transaction.upsert(marker, &signature(u32::MAX)).unwrap();
}

/// Creates a store at the first step of a history.
fn begin(path: &Path, seed: u64, shared_writers: bool) {
    let options = options().shared_writers(shared_writers);
    let store = options.create(path, schema()).unwrap();
    let mut transaction = store.begin_write().unwrap();
    mark(&mut transaction, &History::new(seed));
    transaction.commit().unwrap();
}

fn options() -> StoreOptions {
    StoreOptions::new()
        .flush_after(64)
        .merge_slice(256)
        .journal(1 << 16, 2)
}

/// Makes the next step, unless another process makes it first. Returns the number of steps that have been made.
fn make_step(store: &Store, history: &mut History) -> u64 {
    history.reach(step_of(&marker_of(&store.snapshot().unwrap()).unwrap()));
    let evicts_below = history.evicts_below();
    if let Some(limit) = evicts_below {
        // A late process finds nothing to evict: numbers only grow.
        store
            .evict(EvictPolicy::OlderThan(limit.into()))
            .run()
            .unwrap();
    }
    let mut transaction = store.begin_write().unwrap();
    let step = step_of(&transaction.get(STEP).unwrap().unwrap());
    if step != history.steps && evicts_below.is_some() {
        return step;
    }
    history.reach(step);
    if evicts_below.is_none() && history.evicts_below().is_some() {
        return step;
    }
    let changes = history.advance();
    for number in changes.inserted {
        let document = number.to_le_bytes();
        let document = Document::new(&document).stamp(number.into());
        transaction.insert(document, &signature(number)).unwrap();
    }
    for number in changes.removed {
        assert!(transaction.remove(number.to_le_bytes()).unwrap().is_some());
    }
    mark(&mut transaction, history);
    transaction.commit().unwrap();
    history.steps
}

/// Not a test: a process that continues the history until it is killed.
#[test]
fn writer_in_a_child() {
    let Some(path) = store_of(WRITER) else {
        return;
    };
    let mut store = options().open(&path).unwrap();
    let mut history = History::of(&marker_of(&store.snapshot().unwrap()).unwrap());
    let mut random = Random(u64::from(std::process::id()));
    loop {
        println!("{}.", make_step(&store, &mut history));
        if random.below(50) == 0 {
            drop(store);
            store = options().open(&path).unwrap();
        }
    }
}

const READER: &str = "sharing::reader_in_a_child";

/// Not a test: a process that follows the history until it is killed.
#[test]
fn reader_in_a_child() {
    let Some(path) = store_of(READER) else {
        return;
    };
    let store = options().open_read_only(&path).unwrap();
    loop {
        let soon = Instant::now() + Duration::from_millis(50);
        let seen = follow_for(&store, soon.elapsed().as_nanos() as u64, soon);
        let held = store.snapshot().unwrap();
        println!("{}.", seen.last);
        // A process that stops this one now stops it outside of the lock of the head.
        std::thread::sleep(Duration::from_millis(50));
        if let Err(error) = check_old(&held) {
            assert!(matches!(error, Error::Closed { .. }), "{error}");
        }
    }
}

/// The states that one reader has seen.
#[derive(Default)]
struct Seen {
    /// The number of times that there was a new commit.
    steps: u64,
    /// Snapshots of a file that was recovered in memory, which ended when a writer recovered it.
    ended: u64,
    last: u64,
}

/// Reads until some time, and holds snapshots for a while.
fn follow_for(store: &Store, seed: u64, end: Instant) -> Seen {
    let mut random = Random(seed);
    let mut history = None;
    let mut held: Vec<Snapshot> = Vec::new();
    let mut seen = Seen::default();
    while Instant::now() < end {
        let is_old = held.len() > 5;
        let outcome = if is_old {
            check_old(&held.swap_remove(random.below(5) as usize))
        } else {
            check_new(store, &mut history, &mut seen).map(|new| {
                if random.below(10) == 0 {
                    held.push(new);
                }
            })
        };
        match outcome {
            Ok(()) => {}
            Err(Error::Closed { .. }) => seen.ended += 1,
            Err(error) => panic!("{error}"),
        }
    }
    for old in held {
        if let Err(error) = check_old(&old) {
            assert!(matches!(error, Error::Closed { .. }), "{error}");
        }
    }
    seen
}

fn check_new(store: &Store, history: &mut Option<History>, seen: &mut Seen) -> Result<Snapshot> {
    let snapshot = store.snapshot()?;
    let marker = marker_of(&snapshot)?;
    let step = step_of(&marker);
    assert!(
        step >= seen.last,
        "a later snapshot is of an earlier commit"
    );
    seen.steps += u64::from(step > seen.last);
    seen.last = step;
    let history = history.get_or_insert_with(|| History::of(&marker));
    history.reach(step);
    history.check(&snapshot)?;
    Ok(snapshot)
}

fn check_old(snapshot: &Snapshot) -> Result<()> {
    let history = History::of(&marker_of(snapshot)?);
    history.check(snapshot)?;
    history.check_all(snapshot)
}

/// Checks that readers see a state of the history that writers make. All writers are killed in each
/// round.
fn follow_a_history(seed: u64, rounds: u64) {
    let place = Place::new();
    let path = place.store();
    let mut random = Random(seed);
    let (writers, readers) = (1 + random.below(3), 1 + random.below(2));
    begin(&path, seed, writers > 1);
    let reader = options().open_read_only(&path).unwrap();
    let mut followed = 0;
    for round in 0..rounds {
        let writing: Vec<_> = (0..writers)
            .map(|_| Running::start(WRITER, &path))
            .collect();
        let reading: Vec<_> = (0..readers)
            .map(|_| Running::start(READER, &path))
            .collect();
        let end = Instant::now() + Duration::from_millis(500);
        let seen = std::thread::scope(|scope| {
            let old = scope.spawn(|| follow_for(&reader, round, end));
            let new = scope.spawn(|| {
                let reader = options().open_read_only(&path).unwrap();
                follow_for(&reader, round + 1_000, end)
            });
            [old.join().unwrap(), new.join().unwrap()]
        });
        followed += seen[0].steps + seen[1].steps;
        for running in reading {
            running.kill_after(1, Duration::ZERO);
        }
        let printed = writing
            .into_iter()
            .flat_map(|running| running.kill_after(1, Duration::ZERO));
        let acknowledged = printed.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        let acknowledged = acknowledged.max().unwrap();
        // Nothing acknowledged is lost for any reader.
        for reader in [&reader, &options().open_read_only(&path).unwrap()] {
            let after = reader.snapshot().unwrap();
            let step = step_of(&marker_of(&after).unwrap());
            assert!(step >= acknowledged.max(seen[0].last).max(seen[1].last));
            check_old(&after).unwrap();
        }
    }
    assert!(followed > rounds, "{followed} steps in {rounds} rounds");
    drop(reader);
    drop(options().open(&path).unwrap());
    check_clean(&path);
}

#[test]
fn readers_see_each_commit_of_other_processes_and_only_whole_ones() {
    for seed in 0..histories(3) {
        follow_a_history(seed, 2);
    }
}

/// The number of histories. A longer run sets it.
fn histories(usual: u64) -> u64 {
    std::env::var("RESEMBLANCE_HISTORIES").map_or(usual, |count| count.parse().unwrap())
}

const PEER: &str = "sharing::peer_in_a_child";

/// Not a test: a process that inserts documents, including those of other processes, if they are
/// new, until it is killed.
#[test]
fn peer_in_a_child() {
    let Some(path) = store_of(PEER) else {
        return;
    };
    let store = options().open(&path).unwrap();
    let process = std::process::id();
    let mut random = Random(process.into());
    for attempt in 0u32.. {
        // A few numbers ahead of what is there, so that processes meet.
        let number = store.snapshot().unwrap().len() as u32 + random.below(4) as u32;
        let key = format!("{process}/{attempt}");
        let novelty = store
            .insert_if_new(key.as_str(), &signature(number))
            .unwrap();
        if novelty.is_new() {
            println!("new {number}.");
        }
        if random.below(200) == 0 {
            store.snapshot().unwrap().check().run().unwrap();
        }
    }
}

#[test]
fn one_of_near_duplicates_from_several_processes_is_new() {
    let place = Place::new();
    let path = place.store();
    options()
        .shared_writers(true)
        .create(&path, schema())
        .unwrap();
    let reader = options().open_read_only(&path).unwrap();
    let mut inserted: Vec<u32> = Vec::new();
    for round in 0..kills(4) {
        let processes: Vec<Running> = (0..3).map(|_| Running::start(PEER, &path)).collect();
        std::thread::sleep(Duration::from_millis(800));
        let before = reader.snapshot().unwrap().len();
        let mut new_in_each = Vec::new();
        for (place, running) in processes.into_iter().enumerate() {
            // The others go on within a second, though this one was killed in its turn.
            let printed = running.kill_after(u64::from(place == 0), Duration::from_millis(150));
            let numbers = printed
                .iter()
                .filter_map(|line| line.rsplit(' ').next()?.parse::<u32>().ok());
            let before = inserted.len();
            inserted.extend(numbers);
            new_in_each.push(inserted.len() - before);
        }
        assert!(
            new_in_each.iter().all(|new| *new > 0),
            "round {round}: {new_in_each:?}"
        );
        let snapshot = options().open_read_only(&path).unwrap().snapshot().unwrap();
        assert!(snapshot.len() >= before);
        let distinct: BTreeSet<u32> = inserted.iter().copied().collect();
        assert_eq!(
            distinct.len(),
            inserted.len(),
            "a document was new to two processes"
        );
        // Each process may have been killed before it could print the last one.
        let extra = snapshot.len() - inserted.len() as u64;
        assert!(extra <= 3 * (round + 1), "{extra} more in round {round}");
        for number in distinct {
            assert_eq!(snapshot.query(&signature(number)).run().unwrap().len(), 1);
        }
        check_clean(&path);
    }
}

#[test]
fn second_writer_waits_and_then_names_the_first() {
    let place = Place::new();
    let path = place.store();
    let store = options().create(&path, schema()).unwrap();
    let impatient = options().wait(Duration::from_millis(50));
    let refused = impatient.open(&path).err().unwrap();
    assert!(matches!(&refused, Error::Locked { .. }), "{refused}");
    if cfg!(target_os = "linux") {
        assert!(
            refused
                .to_string()
                .ends_with("another handle of this process"),
            "{refused}"
        );
    }
    let waiting = std::thread::spawn({
        let path = path.clone();
        move || {
            let patient = options().wait(Duration::MAX);
            patient
                .open(path)
                .map(|store| store.snapshot().unwrap().len())
        }
    });
    std::thread::sleep(Duration::from_millis(100));
    store.insert("a", &signature(1)).unwrap();
    drop(store);
    assert_eq!(waiting.join().unwrap().unwrap(), 1);
}

#[test]
fn a_locked_store_is_named_as_it_was_created() {
    let shared = options().shared_writers(true).wait(Duration::ZERO);
    // Without need of locks, they are still used where there are any.
    for options in [shared.clone(), shared.without_lock()] {
        let place = Place::new();
        let path = place.store();
        let store = options.clone().create(&path, schema()).unwrap();
        let other = options.open(&path).unwrap();
        let turn = other.begin_write().unwrap();
        let began = Instant::now();
        let Err(Error::Locked { path: locked, .. }) = store.begin_write() else {
            panic!("two handles have the turn");
        };
        assert_eq!(locked, path);
        assert!(began.elapsed() < Duration::from_millis(500), "it waited");
        drop(turn);
        store.insert("a", &signature(1)).unwrap();
    }
}

/// Each call of a group once waited for all calls before it as well, and closing waited for a turn.
#[test]
fn calls_of_a_group_wait_for_a_turn_together() {
    let place = Place::new();
    let path = place.store();
    let options = options().shared_writers(true);
    let store = options.clone().create(&path, schema()).unwrap();
    let wait = Duration::from_millis(400);
    let other = options.wait(wait).open(&path).unwrap();
    let turn = store.begin_write().unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let other = &other;
            scope.spawn(move || {
                let refused = other.insert(number.to_string(), &signature(number));
                assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
            });
        }
    });
    // One group fails while the others gather for the next. One by one they would take 16 times as long.
    assert!(start.elapsed() < 12 * wait);
    other.flush().unwrap();
    assert_eq!(other.close().unwrap(), Closed::File);
    turn.commit().unwrap();
}

#[test]
fn a_writer_with_a_process_beside_it_is_named() {
    let place = Place::new();
    let path = place.store();
    begin(&path, 45, false);
    let running = Running::start(WRITER, &path);
    std::thread::sleep(Duration::from_millis(300));
    let refused = options().wait(Duration::ZERO).open(&path).err().unwrap();
    let Error::Locked { holder, .. } = &refused else {
        panic!("{refused}");
    };
    assert!(
        !cfg!(target_os = "linux") || holder.contains("(process "),
        "{refused}"
    );
    running.kill_after(1, Duration::ZERO);
}

#[cfg(unix)]
#[test]
fn stopped_reader_keeps_its_pages_and_does_not_block_the_writer() {
    let place = Place::new();
    let path = place.store();
    begin(&path, 45, false);
    let store = options().open(&path).unwrap();
    let mut history = History::new(45);
    make_step(&store, &mut history);
    let running = Running::start(READER, &path);
    running.wait_for(3);
    running.signal("STOP");
    let began = Instant::now();
    for _ in 0..200 {
        make_step(&store, &mut history);
    }
    assert!(began.elapsed() < Duration::from_secs(60));
    running.signal("CONT");
    // It finds all pages of the snapshots that it held meanwhile, and then the new ones.
    running.wait_for(10);
    running.kill_after(0, Duration::ZERO);
    drop(store);
    check_clean(&path);
}

#[cfg(unix)]
#[test]
fn a_file_that_takes_the_name_of_an_open_one_is_another_store() {
    let place = Place::new();
    let (path, moved) = (place.store(), place.file("moved.rsm"));
    begin(&path, 45, false);
    let store = options().open(&path).unwrap();
    let reader = options().open_read_only(&path).unwrap();
    let mut history = History::new(45);
    while make_step(&store, &mut history) < 40 {}
    std::fs::rename(&path, &moved).unwrap();
    let other = options().create(&path, schema()).unwrap();
    for number in 0..200u32 {
        other
            .insert(number.to_le_bytes(), &signature(number + 7))
            .unwrap();
    }
    while make_step(&store, &mut history) < 80 {}
    for snapshot in [reader.snapshot().unwrap(), store.snapshot().unwrap()] {
        history.check(&snapshot).unwrap();
        history.check_all(&snapshot).unwrap();
    }
    assert_eq!(
        options()
            .open_read_only(&path)
            .unwrap()
            .snapshot()
            .unwrap()
            .len(),
        200
    );
    let metrics = reader.metrics();
    // An eviction commits apart from its step.
    assert!((80..100).contains(&metrics.commits_followed));
    assert_eq!(metrics.turn_latencies.count, 0);
    drop((store, reader, other));
    check_clean(&moved);
    check_clean(&path);
}

/// It once went on, and everything that it acknowledged was gone with it.
#[cfg(unix)]
#[test]
fn a_writer_whose_file_was_replaced_stops() {
    for is_shared in [false, true] {
        let place = Place::new();
        let (path, other) = (place.store(), place.file("other.rsm"));
        let options = options().shared_writers(is_shared);
        let store = options.clone().create(&path, schema()).unwrap();
        for number in 0..20 {
            store
                .insert(number.to_string(), &signature(number))
                .unwrap();
        }
        drop(options.create(&other, schema()).unwrap());
        std::fs::rename(&other, &path).unwrap();
        let refused = store.insert("lost", &signature(20)).unwrap_err();
        assert!(refused.to_string().contains("took its name"), "{refused}");
        store.insert("lost", &signature(20)).unwrap_err();
        drop(store);
        assert_eq!(Store::open(&path).unwrap().snapshot().unwrap().len(), 0);
        check_clean(&path);
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_has_another_name_is_closed() {
    let place = Place::new();
    let (path, moved) = (place.store(), place.file("moved.rsm"));
    let store = options().create(&path, schema()).unwrap();
    std::fs::rename(&path, &moved).unwrap();
    store.insert("a", &signature(1)).unwrap();
    assert_eq!(store.close().unwrap(), Closed::File);
    assert_eq!(Store::open(&moved).unwrap().snapshot().unwrap().len(), 1);
}
