//! Damages files in every way. Every answer must be right, or an error that names the place.
//!
//! A normal run tries a share of what `RESEMBLANCE_TESTS=all` tries. `RESEMBLANCE_LONG=1` flips
//! every byte that is read. `RESEMBLANCE_FLIPS` sets the number of flips.

mod attempt;
mod damage;
mod foreign;
mod guards;
mod image;
mod open;
mod questions;
mod stores;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread;

use crate::common::Random;
use crate::common::sample::trials;
use attempt::{Outcome, attempt};
use damage::{Damage, spread};
use guards::{guarded, memory_bytes, panics, take_panics};
use image::{NOTE, PAGE_BYTES, SEALED_HEAD_BYTES};
use stores::Case;

static CASES: LazyLock<Vec<Case>> = LazyLock::new(stores::all);

fn is_long() -> bool {
    std::env::var_os("RESEMBLANCE_LONG").is_some()
}

fn variable(name: &str) -> Option<usize> {
    std::env::var(name)
        .ok()
        .map(|number| number.parse().unwrap())
}

/// The damages that the engine may meet with a panic.
const LENGTHS: &str = "lengths";

/// How many damages had which end.
#[derive(Debug, Default)]
struct Tally {
    tried: u64,
    harmless: u64,
    noticed: u64,
    only_by_check: u64,
    previous: u64,
    /// The number of the engine's panics, which became errors.
    panics: u64,
    errors: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, name: String, outcome: Result<Outcome, String>) {
        self.tried += 1;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(what) => return self.wrong.push(format!("{name}: {what}")),
        };
        self.previous += u64::from(outcome.is_previous);
        if outcome.is_harmless() {
            self.harmless += 1;
        } else {
            self.noticed += 1;
            self.only_by_check += u64::from(outcome.errors.is_empty());
        }
        for kind in outcome.errors.into_keys() {
            *self.errors.entry(kind).or_default() += 1;
        }
        let wrong = outcome.wrong.into_iter();
        self.wrong
            .extend(wrong.map(|what| format!("{name}: {what}")));
    }

    fn summary(&self) -> String {
        format!(
            "{} tried, {} harmless, {} noticed ({} of them by check alone), {} left the commit \
             before, {} contained panics, {} wrong",
            self.tried,
            self.harmless,
            self.noticed,
            self.only_by_check,
            self.previous,
            self.panics,
            self.wrong.len()
        )
    }

    /// Fails if anything went wrong.
    fn end(&self, test: &str) {
        let (largest, peak) = memory_bytes();
        println!("{test}: {}", self.summary());
        println!("largest allocation {largest} bytes, most at a time {peak} bytes");
        println!("errors: {:#?}", self.errors);
        println!("contained panics of all tests: {:#?}", panics());
        // The engine panics only if the file was not closed and its end is missing.
        assert!(
            self.panics == 0 || test == LENGTHS,
            "{} panics",
            self.panics
        );
        let shown = &self.wrong[..self.wrong.len().min(20)];
        assert!(shown.is_empty(), "{} wrong: {shown:#?}", self.wrong.len());
    }
}

/// Tries damages on two threads. One in `full_every` is tried in all ways, the others in most.
fn try_all(test: &str, damages: &[(&'static Case, Damage)], full_every: usize) -> Tally {
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((case, damage)) = damages.get(number) else {
                return;
            };
            let name = format!("{}, {damage:?}", case.name);
            let Some(image) = damage.apply(case) else {
                continue;
            };
            let is_full = number.is_multiple_of(full_every);
            let outcome = guarded(&name, || {
                attempt(case, &image, is_full, damage.is_old_head())
            });
            let mut tally = tally.lock().unwrap();
            tally.add(name, outcome);
            tally.panics += take_panics();
            if is_long() && tally.tried.is_multiple_of(10_000) {
                eprintln!("{test}, of {}: {}", damages.len(), tally.summary());
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    tally.into_inner().unwrap()
}

#[test]
fn intact_stores_answer_correctly() {
    for case in CASES.iter() {
        let outcome = guarded(case.name, || attempt(case, &case.image, true, false)).unwrap();
        assert!(outcome.wrong.is_empty(), "{}: {outcome:?}", case.name);
        assert!(outcome.is_harmless() && !outcome.is_previous, "{outcome:?}");
        println!(
            "{}: {} of {} bytes are read, in {} pages",
            case.name,
            case.used_bytes(),
            case.image.len(),
            case.used_bytes().div_ceil(PAGE_BYTES)
        );
    }
}

/// Every byte that is read, one bit of it and all its bits. By default 150 of them, 2,000 with
/// `RESEMBLANCE_TESTS=all`, spread over all.
#[test]
fn every_flipped_bit_is_detected_or_harmless() {
    let default = if is_long() {
        usize::MAX
    } else {
        trials(150, 2_000)
    };
    let count = variable("RESEMBLANCE_FLIPS").unwrap_or(default);
    let bytes: usize = CASES.iter().map(Case::used_bytes).sum();
    let flip = |number: usize| {
        let mut byte = number / 2;
        let mut cases = CASES.iter();
        let case = cases.find(|case| {
            let is_here = byte < case.used_bytes();
            byte -= if is_here { 0 } else { case.used_bytes() };
            is_here
        });
        let case = case.unwrap();
        let at = case.used_byte(byte);
        let mask = match number % 2 {
            0 => 1 << (Random(at as u64).below(8)),
            _ => 0xff,
        };
        (case, Damage::Flip { at, mask })
    };
    let flips: Vec<_> = spread(2 * bytes, count).map(flip).collect();
    let tally = try_all("flips", &flips, 8);
    tally.end(&format!("flips of {bytes} bytes in {} stores", CASES.len()));
    assert!(tally.noticed > tally.tried / 10 && tally.harmless > 0);
}

/// Flips bits in the head of the file, which contains the location of everything, and in what
/// follows it: one bit in 61, or one in seven with `RESEMBLANCE_TESTS=all`.
#[test]
fn every_flipped_bit_of_the_head_is_detected() {
    let step = if is_long() { 1 } else { trials(61, 7) };
    let bits = (0..512 * 8).step_by(step);
    let flips: Vec<_> = CASES
        .iter()
        .flat_map(|case| bits.clone().map(move |bit| (case, bit)))
        .map(|(case, bit)| {
            let mask = 1 << (bit % 8);
            (case, Damage::Flip { at: bit / 8, mask })
        })
        // Bytes after the note are not read.
        .filter(|(_, flip)| {
            !matches!(
                flip,
                Damage::Flip {
                    at: SEALED_HEAD_BYTES..,
                    mask: 2..
                }
            )
        })
        .collect();
    let tally = try_all("head", &flips, 64);
    tally.end("bits of heads");
    let is_read = |case: &Case, at: usize| match case.has_journal() {
        // The head of the last commit is there. That of the file is looked at for the kind of file.
        true => at < 9 || (NOTE..SEALED_HEAD_BYTES).contains(&at),
        false => at < SEALED_HEAD_BYTES,
    };
    let read = flips
        .iter()
        .filter(|(case, flip)| matches!(flip, Damage::Flip { at, .. } if is_read(case, *at)));
    assert_eq!(tally.noticed, read.count() as u64);
    assert!(CASES.iter().any(Case::has_journal));
}

/// Changes bytes to which no page refers: three in each store, or ten with `RESEMBLANCE_TESTS=all`.
#[test]
fn flips_in_unused_space_are_harmless() {
    let mut random = Random(3);
    let count = if is_long() { 2_000 } else { trials(3, 10) };
    let mut flips = Vec::new();
    for case in CASES.iter() {
        let mut found = 0;
        while found < count {
            let behind = case.image.len() - SEALED_HEAD_BYTES;
            let at = SEALED_HEAD_BYTES + random.below(behind as u64) as usize;
            if case.used.iter().all(|range| !range.contains(&at)) {
                flips.push((
                    case,
                    Damage::Flip {
                        at,
                        mask: 1 << random.below(8),
                    },
                ));
                found += 1;
            }
        }
    }
    let tally = try_all("unused", &flips, 8);
    tally.end("flips in pages that nothing refers to");
    assert_eq!(tally.harmless, tally.tried);
}

fn pages(case: &Case) -> Vec<usize> {
    let ranges = case.used.iter().flat_map(|range| range.clone());
    let mut pages: Vec<usize> = ranges.map(|at| at / PAGE_BYTES * PAGE_BYTES).collect();
    pages.dedup();
    pages
}

/// Good pages in places that are not theirs: those of others, and their own of another time.
#[test]
fn misplaced_or_stale_pages_are_detected() {
    let count = if is_long() {
        usize::MAX
    } else {
        trials(100, 400)
    };
    let mut damages = Vec::new();
    for case in CASES.iter() {
        let pages = pages(case);
        for &a in &pages {
            for &b in pages.iter().filter(|b| **b != a) {
                damages.push((case, Damage::Copy { from: a, to: b }));
                if a < b {
                    damages.push((case, Damage::Swap(a, b)));
                }
            }
            let commits = 0..case.older.len();
            let stale = commits.map(|commit| Damage::Stale { at: a, commit });
            damages.extend(stale.map(|damage| (case, damage)));
        }
    }
    let some: Vec<_> = spread(damages.len(), count)
        .map(|n| damages[n].clone())
        .collect();
    let tally = try_all("pages", &some, 8);
    tally.end(&format!(
        "of {} swaps, copies and stale pages",
        damages.len()
    ));
    assert!(tally.noticed > tally.tried / 2);
}

/// A descent that meets its own way again ends.
#[test]
fn cycles_of_pages_are_detected() {
    let mut circles = Vec::new();
    for case in CASES.iter() {
        let branches = pages(case).into_iter().filter(|at| {
            let kind = case.image.bytes(*at..at + 1).unwrap();
            *at > 0 && kind == [2]
        });
        circles.extend(branches.map(|at| (case, Damage::Circle(at))));
    }
    let tally = try_all("circles", &circles, 1);
    tally.end("branches that are their own children");
    assert!(tally.noticed > 0 && tally.noticed == tally.tried);
}

/// Eight ranges of each store, 30 with `RESEMBLANCE_TESTS=all`.
#[test]
fn ranges_of_zeros_or_noise_are_detected() {
    let mut random = Random(5);
    let count = if is_long() { 5_000 } else { trials(8, 30) };
    let mut damages = Vec::new();
    for case in CASES.iter() {
        for number in 0..count {
            let start = case.used_byte(random.below(case.used_bytes() as u64) as usize);
            let length = 1 + random.below(3 * PAGE_BYTES as u64) as usize;
            let range = start..(start + length).min(case.image.len());
            damages.push(match number % 2 {
                0 => (case, Damage::Zero(range)),
                _ => (case, Damage::Random(range, random.next())),
            });
        }
    }
    let tally = try_all("ranges", &damages, 8);
    tally.end("ranges of zeros and noise");
    assert!(tally.noticed > tally.tried / 2);
}

/// A file that is shorter or longer: what is left of it, or an error.
#[test]
fn wrong_file_lengths_are_errors_or_harmless() {
    let step = if is_long() { 1 } else { 37 };
    let mut damages = Vec::new();
    for case in CASES.iter() {
        let len = case.image.len();
        let pages = (0..len).step_by(PAGE_BYTES * step);
        let lengths = pages.flat_map(|page| [page, page + 1, page + 511]);
        let longer = [1, 511, PAGE_BYTES, 1 << 20].map(|bytes| len + bytes);
        let near = [0, 1, 8, 9, 12, 64, 319, 320, 335, 336, 4_095, len - 1];
        for length in lengths.chain(longer).chain(near) {
            damages.push((case, Damage::Length(length)));
        }
        for bytes in [1, PAGE_BYTES, 1 << 20] {
            damages.push((case, Damage::Longer(bytes)));
        }
    }
    let tally = try_all("lengths", &damages, 8);
    tally.end(LENGTHS);
    assert!(tally.noticed > 0);
}
