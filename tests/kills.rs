//! A program that writes to one store for ever, and is killed without warning again and again: each
//! time the store holds what was acknowledged, or one transaction more, and work goes on with it.
//!
//! `RESEMBLANCE_KILLS` says how often it is killed, 25 times if not told otherwise.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

mod common;
#[path = "kills/together.rs"]
mod together;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use common::small::{schema, signature};
use common::{Place, Random, sealing_after};
use resemblance::{Document, Signature, Store, StoreOptions, WriteTransaction};

/// The document whose payload is the number of transactions that are in the store.
const PROGRESS: &[u8] = b"progress";

/// The signature of that document, which nothing else resembles. All bits set would be that of an
/// empty document.
const PROGRESS_NUMBER: u32 = u32::MAX - 1;

/// Keys that come and go.
const KEYS: u64 = 150;

const STORE: &str = "RESEMBLANCE_KILLED_STORE";
const KILLS: &str = "RESEMBLANCE_KILLS";

/// What a document is made of: its payload, its stamp, and what its signature is of.
type Kept = (Vec<u8>, u64, u32);

/// What transactions make of an empty store.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    transactions: u64,
    documents: BTreeMap<Vec<u8>, Kept>,
}

/// One change; the numbers decide which.
struct Change {
    kind: u64,
    key: Vec<u8>,
    kept: Kept,
}

impl Change {
    fn signature(&self) -> Signature {
        signature(self.kept.2)
    }

    fn document(&self) -> Document<'_> {
        let (payload, stamp, _) = &self.kept;
        Document::new(&self.key).payload(payload).stamp(*stamp)
    }
}

/// The changes of a transaction, which is a matter of its number alone.
fn changes(transaction: u64) -> Vec<Change> {
    let mut random = Random(transaction);
    let count = match random.below(20) {
        0 => 120,
        few => 1 + few / 2,
    };
    let mut change = |place: u64| {
        // Now and then something that a recent transaction had.
        let number = match random.below(4) {
            0 => (transaction * 128 + place).saturating_sub(random.below(2_000)),
            _ => transaction * 128 + place,
        };
        let length = random.pick(&[0, 1, 30, 300, 9_000]);
        Change {
            kind: random.below(10),
            key: random.below(KEYS).to_be_bytes().to_vec(),
            kept: (
                vec![number as u8; length],
                transaction,
                u32::try_from(number).unwrap(),
            ),
        }
    };
    (0..count).map(&mut change).collect()
}

impl Model {
    fn apply(&mut self) {
        for change in changes(self.transactions) {
            let Change { kind, key, kept } = change;
            let mut held = self.documents.values();
            match kind {
                0..3 => drop(self.documents.remove(&key)),
                3..6 if self.documents.contains_key(&key) => {}
                3..6 if held.any(|(_, _, number)| *number == kept.2) => {}
                _ => drop(self.documents.insert(key, kept)),
            }
        }
        self.transactions += 1;
    }
}

fn apply(store: &mut WriteTransaction, change: &Change) {
    let signature = change.signature();
    match change.kind {
        0..3 => drop(store.remove(&change.key).unwrap()),
        3..6 => {
            store.insert_if_new(change.document(), &signature).unwrap();
        }
        _ => drop(store.upsert(change.document(), &signature).unwrap()),
    }
}

/// Other ways to write, by turns.
fn options(turn: u64) -> StoreOptions {
    sealing_after(32)
        .quick_repair(turn % 2 == 1)
        .merge_in_parallel(turn % 3 == 1)
}

fn transactions_in(store: &Store) -> u64 {
    let record = store.snapshot().unwrap().get(PROGRESS).unwrap();
    record.map_or(0, |record| {
        u64::from_le_bytes(record.payload().try_into().unwrap())
    })
}

/// A transaction that is not committed yet.
fn written(store: &Store, number: u64) -> WriteTransaction {
    let mut transaction = store.begin_write().unwrap();
    for change in changes(number) {
        apply(&mut transaction, &change);
    }
    let progress = (number + 1).to_le_bytes();
    let document = Document::new(PROGRESS).payload(&progress);
    transaction
        .upsert(document, &signature(PROGRESS_NUMBER))
        .unwrap();
    transaction
}

/// Not a test of its own: the program that is killed. It prints the number of transactions after
/// each commit.
#[test]
fn play() {
    let Ok(path) = std::env::var(STORE) else {
        return;
    };
    let open = |turn| options(turn).open(&path).unwrap();
    let mut store = open(0);
    let mut done = transactions_in(&store);
    println!();
    loop {
        if done.is_multiple_of(40) {
            drop(store);
            if done.is_multiple_of(80) {
                Store::compact(&path).unwrap();
            }
            store = open(done / 40);
        }
        if done % 9 == 5 {
            // Taken back, and then the same again.
            drop(written(&store, done));
        }
        written(&store, done).commit().unwrap();
        done += 1;
        println!("done {done}.");
    }
}

/// Starts the program and kills it a while after it has acknowledged so many transactions; the last
/// number that it printed, if any.
fn run_and_kill(path: &Path, acknowledged: u64, delay: Duration) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["play", "--exact", "--nocapture", "--test-threads=1"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).split(b'\n');
    // Read on all the time: a full pipe would hold it up.
    let (sender, receiver) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut last = None;
        for line in lines {
            let line = String::from_utf8(line.unwrap()).unwrap();
            // The last line may have been cut short.
            let number = line.strip_prefix("done ").and_then(|n| n.strip_suffix('.'));
            if let Some(number) = number {
                last = Some(number.parse().unwrap());
                let _ = sender.send(());
            }
        }
        last
    });
    for _ in 0..acknowledged {
        // It is dead if it goes without a word; that shows below.
        let _ = receiver.recv();
    }
    std::thread::sleep(delay);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it ended by itself");
    reader.join().unwrap()
}

/// That the store holds exactly what the model does, and finds all of it.
fn holds(store: &Store, model: &Model) {
    let snapshot = store.snapshot().unwrap();
    let mut found = BTreeMap::new();
    for record in snapshot.iter() {
        let record = record.unwrap();
        let key = record.key().unwrap().to_vec();
        let near = snapshot.query(record.signature()).run().unwrap();
        assert!(near.iter().any(|near| near.id() == record.id()));
        if key != PROGRESS {
            let number = record.signature().minhash().unwrap()[0];
            let kept = (record.payload().to_vec(), record.stamp(), number);
            found.insert(key, kept);
        }
    }
    assert_eq!(
        snapshot.len(),
        found.len() as u64 + u64::from(model.transactions > 0)
    );
    for key in 0..KEYS {
        let key = key.to_be_bytes();
        let expected = model.documents.contains_key(&key[..]);
        assert_eq!(snapshot.contains(key).unwrap(), expected);
    }
    assert!(found == model.documents, "other documents than expected");
}

#[test]
fn a_killed_writer_loses_nothing_that_was_acknowledged() {
    if std::env::var(STORE).is_ok() {
        return;
    }
    let kills = std::env::var(KILLS).map_or(25, |kills| kills.parse().unwrap());
    let place = Place::new();
    let path = place.store();
    drop(Store::create(&path, schema()).unwrap());
    let mut model = Model::default();
    let mut random = Random(0);
    let mut one_more = 0;
    for kill in 0..kills {
        // Some before it has opened the store; most within its work.
        let (transactions, delay) = (random.below(12), random.below(12_000));
        let printed = run_and_kill(&path, transactions, Duration::from_micros(delay));
        if kill % 3 == 0 {
            common::check_clean(&path);
        }
        let store = options(kill).open(&path).unwrap();
        let found = transactions_in(&store);
        let acknowledged = printed.unwrap_or(model.transactions);
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "{acknowledged} transactions were acknowledged, {found} are there"
        );
        one_more += found - acknowledged;
        while model.transactions < found {
            model.apply();
        }
        holds(&store, &model);
        drop(store);
        common::check_clean(&path);
    }
    assert!(model.transactions > 0, "it was never let do anything");
    let mut out = std::io::stderr().lock();
    writeln!(
        out,
        "killed a writer {kills} times: {} transactions, {one_more} of them unacknowledged",
        model.transactions
    )
    .unwrap();
}
