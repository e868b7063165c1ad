//! How long a search takes among very many equal documents, and a join where one bucket holds them all.
//!
//! `cargo bench --bench hot -- 1000000 commits` runs with that number of documents (default:
//! 100,000). `commits` loads them by transactions of 10,000 instead of a bulk build. The name of a
//! kind, such as `equal`, runs only that kind.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark stops at an error"
)]

mod support;

use std::time::Instant;

use resemblance::{BulkOptions, Document, MinHash, Result, Schema, Signature, Store};
use support::mix;

const VALUES: u64 = 128;

/// Documents of a transaction.
const COMMIT_DOCUMENTS: u64 = 10_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.iter().find_map(|argument| argument.parse().ok());
    let count = count.unwrap_or(100_000);
    let by_commits = arguments.iter().any(|argument| argument == "commits");
    let names = ["equal", "three kinds", "one bucket"];
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (name, signature) in [
        ("equal", equal as fn(u64) -> Signature),
        ("three kinds", of_three),
        ("one bucket", in_one_bucket),
    ] {
        let is_named = |argument: &String| argument == name;
        if arguments
            .iter()
            .any(|argument| names.contains(&argument.as_str()))
            && !arguments.iter().any(is_named)
        {
            continue;
        }
        let path = folder.path().join(name);
        let store = timed(&format!("{name}: load {count}"), || {
            match by_commits {
                true => load(&path, count, signature),
                false => build(&path, count, signature),
            }
            .unwrap()
        });
        println!(
            "{:>9} MB in {name}",
            std::fs::metadata(&path).unwrap().len() / 1_000_000
        );
        measure(name, &store);
        drop(store);
        std::fs::remove_file(path).unwrap();
    }
}

fn schema() -> Result<Schema> {
    let minhash = MinHash::new(VALUES as u16);
    Ok(Schema::builder().minhash(minhash).build()?)
}

fn build(path: &std::path::Path, count: u64, signature: fn(u64) -> Signature) -> Result<Store> {
    let mut build = Store::bulk_build(path, schema()?, &BulkOptions::new())?;
    for number in 0..count {
        build.insert(Document::new(&number.to_string()), &signature(number))?;
    }
    build.finish()?;
    Store::open(path)
}

fn load(path: &std::path::Path, count: u64, signature: fn(u64) -> Signature) -> Result<Store> {
    let store = Store::create(path, schema()?)?;
    for first in (0..count).step_by(COMMIT_DOCUMENTS as usize) {
        let mut transaction = store.begin_write()?;
        for number in first..count.min(first + COMMIT_DOCUMENTS) {
            transaction.insert(&*number.to_string(), &signature(number))?;
        }
        transaction.commit()?;
    }
    Ok(store)
}

fn measure(name: &str, store: &Store) {
    let (own, near) = (equal(0), near());
    let snapshot = store.snapshot().unwrap();
    for round in 1..=2 {
        for (what, signature) in [("equal", &own), ("near", &near)] {
            let found = timed(
                &format!("{name}: query of an {what} one, limit 10, round {round}"),
                || snapshot.query(signature).limit(10).run().unwrap(),
            );
            println!(
                "          {} matches of {}",
                found.len(),
                found.candidates()
            );
        }
        let novelty = timed(
            &format!("{name}: insert_if_new of a near one, round {round}"),
            || {
                store
                    .insert_if_new(&*format!("new {round}"), &near)
                    .unwrap()
            },
        );
        println!("          new: {}", novelty.is_new());
    }
    let clusters = timed(&format!("{name}: clusters, max_bucket(100)"), || {
        snapshot.clusters().max_bucket(100).run().unwrap()
    });
    println!(
        "          {} clusters, {:?}",
        clusters.clone().count(),
        clusters.left_out()
    );
    let pairs = timed(
        &format!("{name}: first 1000 pairs, max_bucket(100)"),
        || {
            let pairs = snapshot.pairs().max_bucket(100).run().unwrap();
            pairs.take(1_000).map(Result::unwrap).count()
        },
    );
    println!("          {pairs} pairs");
}

fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let (began, used) = (Instant::now(), processor_seconds());
    let made = run();
    let (wall, used) = (began.elapsed().as_secs_f64(), processor_seconds() - used);
    println!(
        "{:>9.1} ms, {:>9.1} ms of processor time: {what}",
        wall * 1e3,
        used * 1e3
    );
    made
}

/// Seconds of processor time of this process.
fn processor_seconds() -> f64 {
    // In clock ticks, of which Linux counts 100 a second; elsewhere there is no such file.
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else {
        return 0.0;
    };
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

fn values(of: u64) -> Vec<u32> {
    (0..VALUES)
        .map(|place| (mix(of * VALUES + place) >> 32) as u32)
        .collect()
}

fn equal(_: u64) -> Signature {
    Signature::from_minhash(values(0))
}

/// Similar to [`equal`] by 0.9.
fn near() -> Signature {
    let mut signature = values(0);
    for place in (0..13).map(|index| index * 5) {
        signature[place] = mix(place as u64) as u32;
    }
    Signature::from_minhash(signature)
}

/// One of three equal ones, in no order, and one in ten like no other; the three share many buckets.
fn of_three(number: u64) -> Signature {
    let kind = mix(number) % 10;
    if kind == 9 {
        return Signature::from_minhash(values(number + 1));
    }
    let mut signature = values(0);
    for place in 0..kind % 3 {
        signature[64 + place as usize] = kind as u32 % 3;
    }
    Signature::from_minhash(signature)
}

/// All different, with one bucket of the first band in common.
fn in_one_bucket(number: u64) -> Signature {
    let mut signature = values(number + 1);
    signature[..16].copy_from_slice(&values(0)[..16]);
    Signature::from_minhash(signature)
}
