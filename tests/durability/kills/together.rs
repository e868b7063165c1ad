//! Kills a program whose threads make grouped changes. Everything that a thread received as an
//! answer holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use resemblance::{Novelty, Store};

use crate::common::killing::{Running, kills, store_of};
use crate::common::sample::trials;
use crate::common::small::{schema, signature};
use crate::common::{Place, Random, check_clean, sealing_after};

const PROGRAM: &str = "kills::together::writers_in_a_child";
const THREADS: u32 = 6;

/// Every two threads bring the same pages, under different keys.
fn page(thread: u32, number: u32) -> u32 {
    1 + thread / 2 + THREADS * number
}

fn key(thread: u32, number: u32) -> Vec<u8> {
    [thread.to_be_bytes(), number.to_be_bytes()].concat()
}

fn open(path: impl AsRef<Path>) -> Store {
    sealing_after(64).open(path).unwrap()
}

/// Not a test: the program that is killed. Each thread inserts its pages one by one and prints the
/// answers.
#[test]
fn writers_in_a_child() {
    let Some(path) = store_of(PROGRAM) else {
        return;
    };
    let store = open(path);
    println!();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for number in 0.. {
                    let (key, page) = (key(thread, number), signature(page(thread, number)));
                    let reported = match number % 3 {
                        0 => store.queue().insert_if_new(&key, &page).unwrap().wait(),
                        _ => store.insert_if_new(&key, &page),
                    };
                    let reported = match reported.unwrap() {
                        Novelty::New { .. } => "new",
                        _ => "known",
                    };
                    println!("{reported} {thread} {number}.");
                }
            });
        }
    });
}

/// Returns the answers that threads received before the program was killed, by thread and page
/// number.
fn run_and_kill(path: &Path, delay: Duration) -> BTreeMap<(u32, u32), bool> {
    let said = Running::start(PROGRAM, path).kill_after(0, delay);
    let reported = said.iter().map(|line| {
        let [word, thread, number] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let place = (thread.parse().unwrap(), number.parse().unwrap());
        (place, word == "new")
    });
    reported.collect()
}

#[test]
fn acknowledged_writes_survive_kills() {
    let (place, kills) = (Place::new(), kills(trials(4, 10)));
    let path = place.store();
    drop(Store::create(&path, schema()).unwrap());
    let mut random = Random(3);
    // The pages for which a thread received the answer that they are new.
    let mut taken = BTreeSet::new();
    for _ in 0..kills {
        let delay = Duration::from_millis(20 + random.below(150));
        let reported = run_and_kill(&path, delay);
        let store = open(&path);
        let snapshot = store.snapshot().unwrap();
        let mut known = BTreeSet::new();
        for ((thread, number), is_new) in reported {
            let page = page(thread, number);
            known.insert(page);
            if is_new {
                assert!(taken.insert(page), "page {page} was new twice");
                assert!(snapshot.contains(key(thread, number)).unwrap());
            }
        }
        let mut pages = BTreeSet::new();
        for record in snapshot.iter() {
            let page = record.unwrap().signature().minhash().unwrap()[0];
            assert!(pages.insert(page), "page {page} is there twice");
        }
        assert!(
            known.is_subset(&pages),
            "a page was known that is not there"
        );
        // Beyond what was acknowledged there is at most one page a thread.
        assert!(taken.is_subset(&pages), "an acknowledged page is gone");
        assert!(pages.len() <= taken.len() + THREADS as usize);
        // Pages that were inserted but not acknowledged can no longer be new to any thread.
        taken.extend(pages);
        drop(snapshot);
        drop(store);
        check_clean(&path);
    }
    assert!(!taken.is_empty(), "it was never let do anything");
    let pages = taken.len();
    eprintln!("killed {THREADS} threads {kills} times: {pages} pages");
}
