//! Readers of every kind beside seals, merges, compactions of rows and transactions that are rolled
//! back: what only whole commits keep is kept in each snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use resemblance::{
    Document, DocumentId, Error, MinHash, Record, Schema, Signature, SimHash, Snapshot, Store,
    StoreOptions, WriteTransaction,
};

use crate::common::sample::trials;
use crate::common::{Place, Random, check_clean};

/// Accounts, each a group of documents that are near to each other and to no other group's.
const GROUPS: u64 = 40;
const MEMBERS: u64 = 5;
/// What all accounts have together.
const TOTAL: u64 = GROUPS * 1_000;

const CLOCK: &str = "clock";

fn schema() -> Schema {
    let minhash = MinHash::new(16).banding(4, 3).threshold(0.5);
    let simhash = SimHash::bits64().max_distance(3);
    let builder = Schema::builder().minhash(minhash).simhash(simhash);
    builder.build().unwrap()
}

/// Small runs and slices, so that merges are under way in nearly every commit.
fn options() -> StoreOptions {
    let options = StoreOptions::new().flush_after(64).cache_bytes(4 << 20);
    options.merge_slice(20)
}

/// Each commit that changes a group gives all its members signatures that are near to each other alone.
fn signature(group: u64, commit: u64, member: u64) -> Signature {
    let mut random = Random(group << 32 | commit);
    let mut values: Vec<u32> = (0..16).map(|_| random.next() as u32).collect();
    values[15] = member as u32;
    Signature::from_parts(Some(values), Some(random.next() ^ 1 << member))
}

fn key(group: u64, member: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&group.to_be_bytes());
    key[8..].copy_from_slice(&member.to_be_bytes());
    key
}

/// Replaces a group: its balance, and the commit that changed it last.
fn put(transaction: &mut WriteTransaction, group: u64, balance: u64, commit: u64) {
    for member in 0..MEMBERS {
        let (key, payload) = (key(group, member), balance.to_le_bytes());
        let document = Document::new(&key).stamp(commit).payload(&payload);
        let signature = signature(group, commit, member);
        transaction.upsert(document, &signature).unwrap();
    }
}

fn tick(transaction: &mut WriteTransaction, commit: u64) {
    let document = Document::new(CLOCK).stamp(commit);
    let signature = signature(GROUPS, commit, 0);
    transaction.upsert(document, &signature).unwrap();
}

fn balance(record: &Record) -> u64 {
    u64::from_le_bytes(record.payload().try_into().unwrap())
}

fn read_balance(transaction: &WriteTransaction, group: u64) -> u64 {
    balance(&transaction.get(key(group, 0)).unwrap().unwrap())
}

/// Moves an amount from one group to another; sometimes in a transaction that is then dropped.
fn transfer(store: &Store, random: &mut Random, commit: u64) {
    let (from, to) = (random.below(GROUPS), random.below(GROUPS));
    let is_kept = random.below(8) > 0;
    let mut transaction = store.begin_write().unwrap();
    let amount = random.below(read_balance(&transaction, from) + 1);
    let rest = read_balance(&transaction, from) - amount;
    put(&mut transaction, from, rest, commit);
    let more = read_balance(&transaction, to) + amount;
    put(&mut transaction, to, more, commit);
    tick(&mut transaction, commit);
    if is_kept {
        return transaction.commit().unwrap();
    }
    // Enough for seals and merges that never become visible.
    for number in 0..100 {
        transaction
            .insert(Document::without_key(), &signature(number, 0, 0))
            .unwrap();
    }
    drop(transaction);
    let mut again = store.begin_write().unwrap();
    tick(&mut again, commit);
    again.commit().unwrap();
}

fn ids_of(records: &[Record]) -> BTreeSet<DocumentId> {
    records.iter().map(Record::id).collect()
}

/// What holds in every commit; gives its number.
fn check_whole(snapshot: &Snapshot) -> u64 {
    assert_eq!(snapshot.len(), GROUPS * MEMBERS + 1);
    let records = snapshot.iter().map(Result::unwrap);
    let (clock, records): (Vec<Record>, Vec<Record>) =
        records.partition(|record| record.key() == Some(CLOCK.as_bytes()));
    let commit = clock[0].stamp();
    let mut groups: BTreeMap<Vec<u8>, Vec<Record>> = BTreeMap::new();
    for record in records {
        assert!(record.stamp() <= commit);
        let group = record.key().unwrap()[..8].to_vec();
        groups.entry(group).or_default().push(record);
    }
    let whole = |group: &Vec<Record>| {
        let (stamp, balance) = (group[0].stamp(), balance(&group[0]));
        let same = |record: &Record| (record.stamp(), self::balance(record)) == (stamp, balance);
        assert!(
            group.len() as u64 == MEMBERS && group.iter().all(same),
            "{group:?}"
        );
        balance
    };
    assert_eq!(
        groups.values().map(whole).sum::<u64>(),
        TOTAL,
        "commit {commit}"
    );
    commit
}

/// One group by key, by content, and among many.
fn check_group(snapshot: &Snapshot, group: u64) {
    let members = (0..MEMBERS).map(|member| snapshot.get(key(group, member)).unwrap().unwrap());
    let members: Vec<Record> = members.collect();
    let stamp = members[0].stamp();
    let asked = signature(group, stamp, 0);
    let found = snapshot.query(&asked).run().unwrap();
    let found: BTreeSet<DocumentId> = found.iter().map(|found| found.id()).collect();
    assert_eq!(found, ids_of(&members));
    let questions = [asked, signature(group, stamp + 1_000_000, 0)];
    let answers = snapshot.query(&questions).run().unwrap();
    let many: BTreeSet<DocumentId> = answers[0].iter().map(|found| found.id()).collect();
    assert_eq!(many, found);
    assert!(answers[1].is_empty(), "nothing of a later commit is seen");
}

/// Each group is a cluster, and there is no other.
fn check_joins(snapshot: &Snapshot, threads: usize) {
    let pairs = snapshot.pairs().threads(threads).run().unwrap();
    let pairs = pairs.map(Result::unwrap).count() as u64;
    assert_eq!(pairs, GROUPS * MEMBERS * (MEMBERS - 1) / 2);
    let clusters = snapshot.clusters().threads(threads).run().unwrap();
    let sizes: Vec<usize> = clusters.map(|cluster| cluster.len()).collect();
    assert_eq!(sizes, vec![MEMBERS as usize; GROUPS as usize]);
}

fn check_everything(snapshot: &Snapshot) {
    let report = snapshot.check().run().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    let stats = snapshot.stats().run().unwrap();
    assert_eq!(stats.documents, snapshot.len());
}

/// Reads until it is told to stop; how many snapshots, and of how many commits.
fn read(store: &Store, reader: u64, done: &AtomicBool) -> (u64, usize) {
    let mut random = Random(reader);
    let (mut snapshots, mut seen) = (0, BTreeSet::new());
    let mut held: Option<(Snapshot, u64)> = None;
    while !done.load(Ordering::Acquire) {
        let snapshot = store.snapshot().unwrap();
        match (reader + snapshots) % 7 {
            0 => check_joins(&snapshot, 1 + (reader % 2) as usize),
            1 if snapshots % 3 == 0 => check_everything(&snapshot),
            _ => (0..5).for_each(|_| check_group(&snapshot, random.below(GROUPS))),
        }
        let commit = check_whole(&snapshot);
        assert!(seen.last().is_none_or(|last| *last <= commit));
        seen.insert(commit);
        snapshots += 1;
        // One is held for a while, and shows the same at the end as at the beginning.
        match &held {
            Some((old, commit)) if snapshots % 10 == 0 => {
                assert_eq!(check_whole(old), *commit);
                check_group(old, random.below(GROUPS));
                held = None;
            }
            None => held = Some((snapshot, commit)),
            Some(_) => {}
        }
    }
    (snapshots, seen.len())
}

/// Knocks at the gate, and goes away when it is told to.
fn knock(store: &Store, done: &AtomicBool) -> u64 {
    let mut busy = 0;
    while !done.load(Ordering::Acquire) {
        match store.try_begin_write() {
            Ok(transaction) => drop(transaction),
            Err(error) => {
                assert!(matches!(error, Error::Busy), "{error:?}");
                busy += 1;
            }
        }
        thread::sleep(Duration::from_micros(200));
    }
    busy
}

/// How long: `RESEMBLANCE_LONG` in seconds where it is more than one, 120 where it is one.
fn time() -> Duration {
    let long = std::env::var("RESEMBLANCE_LONG").ok();
    match long.and_then(|long| long.parse().ok()) {
        None | Some(0) => Duration::ZERO,
        Some(1) => Duration::from_secs(120),
        Some(seconds) => Duration::from_secs(seconds),
    }
}

/// Beside 64 commits, beside 120 with `RESEMBLANCE_TESTS=all`.
#[test]
fn snapshots_are_never_torn() {
    let least_commits = trials(64, 120);
    let place = Place::new();
    let store = options().create(place.store(), schema()).unwrap();
    let mut transaction = store.begin_write().unwrap();
    (0..GROUPS).for_each(|group| put(&mut transaction, group, TOTAL / GROUPS, 1));
    tick(&mut transaction, 1);
    transaction.commit().unwrap();
    let (done, begun, time) = (AtomicBool::new(false), Instant::now(), time());
    let (mut commit, mut merging) = (1, 0);
    let (read, busy) = thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|reader| {
                scope.spawn({
                    let (store, done) = (&store, &done);
                    move || read(store, reader, done)
                })
            })
            .collect();
        let knocking = scope.spawn(|| knock(&store, &done));
        // Whatever goes wrong in a reader is reported only if the writer stops.
        let has_failed = || readers.iter().any(thread::ScopedJoinHandle::is_finished);
        let mut random = Random(7);
        while (commit < least_commits || begun.elapsed() < time) && !has_failed() {
            commit += 1;
            transfer(&store, &mut random, commit);
            if commit % 16 == 0 {
                let stats = store.snapshot().unwrap().stats().run().unwrap();
                merging += usize::from(!stats.merges.is_empty());
            }
        }
        done.store(true, Ordering::Release);
        let read: Vec<(u64, usize)> = readers.into_iter().map(|r| r.join().unwrap()).collect();
        (read, knocking.join().unwrap())
    });
    assert_eq!(check_whole(&store.snapshot().unwrap()), commit);
    assert!(
        merging as u64 > least_commits / 48,
        "{merging}: nothing was being merged"
    );
    let (snapshots, commits) = read
        .iter()
        .fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    assert!(commits > 8, "{read:?}: the readers slept");
    println!("{commit} commits, {snapshots} snapshots of {commits}, refused {busy} times");
    drop(store);
    check_clean(&place.store());
}
