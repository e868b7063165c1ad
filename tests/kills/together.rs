//! Threads whose changes are made together, killed: what any of them was told is so.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::small::{schema, signature};
use crate::common::{Place, Random, check_clean, sealing_after};
use resemblance::{Novelty, Store};

const STORE: &str = "RESEMBLANCE_KILLED_TOGETHER";
const THREADS: u32 = 6;

/// Every two threads bring the same pages, under keys of their own.
fn page(thread: u32, number: u32) -> u32 {
    1 + thread / 2 + THREADS * number
}

fn key(thread: u32, number: u32) -> Vec<u8> {
    [thread.to_be_bytes(), number.to_be_bytes()].concat()
}

fn open(path: impl AsRef<Path>) -> Store {
    sealing_after(64).open(path).unwrap()
}

/// Not a test of its own: the program that is killed. Each thread brings its pages one after the other
/// and prints what it was told.
#[test]
fn play_together() {
    let Ok(path) = std::env::var(STORE) else {
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
                    let told = match number % 3 {
                        0 => store.queue().insert_if_new(&key, &page).unwrap().wait(),
                        _ => store.insert_if_new(&key, &page),
                    };
                    let told = match told.unwrap() {
                        Novelty::New(_) => "new",
                        _ => "known",
                    };
                    println!("{told} {thread} {number}.");
                }
            });
        }
    });
}

/// What threads were told before the program was killed: of which page, by thread and number.
fn run_and_kill(path: &Path, delay: Duration) -> BTreeMap<(u32, u32), bool> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "together::play_together",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reader = std::thread::spawn(move || {
        let mut told = BTreeMap::new();
        for line in lines.map_while(Result::ok) {
            // The last line may have been cut short.
            let Some(line) = line.strip_suffix('.') else {
                continue;
            };
            let words: Vec<&str> = line.split(' ').collect();
            if let [word @ ("new" | "known"), thread, number] = words[..] {
                let place = (thread.parse().unwrap(), number.parse().unwrap());
                told.insert(place, word == "new");
            }
        }
        told
    });
    std::thread::sleep(delay);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it ended by itself");
    reader.join().unwrap()
}

#[test]
fn killed_threads_were_told_the_truth() {
    if std::env::var(STORE).is_ok() {
        return;
    }
    let kills = std::env::var(crate::KILLS).map_or(10, |kills| kills.parse().unwrap());
    let place = Place::new();
    let path = place.store();
    drop(Store::create(&path, schema()).unwrap());
    let mut random = Random(3);
    // Pages that somebody was told are new.
    let mut taken = BTreeSet::new();
    for _ in 0..kills {
        let delay = Duration::from_millis(20 + random.below(150));
        let told = run_and_kill(&path, delay);
        let store = open(&path);
        let snapshot = store.snapshot().unwrap();
        let mut known = BTreeSet::new();
        for ((thread, number), is_new) in told {
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
        // What was made and not acknowledged, nobody will be told is new.
        taken.extend(pages);
        drop(snapshot);
        drop(store);
        check_clean(&path);
    }
    assert!(!taken.is_empty(), "it was never let do anything");
    let mut out = std::io::stderr().lock();
    writeln!(
        out,
        "killed {THREADS} threads {kills} times: {} pages",
        taken.len()
    )
    .unwrap();
}
