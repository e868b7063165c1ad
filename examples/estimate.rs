//! Estimates what a build and a self-join of many documents will take, from a sample that it really
//! builds.
//!
//! `cargo run --release --bin estimate -- 50000000`
//!
//! Signatures are generated (128 values, 20 bands of 6 rows, keys of about ten bytes), and one
//! document in ten resembles an earlier one. The program builds and joins a sample. It scales the
//! times by the number of documents, because both operations process lanes in order. The time to
//! sketch texts is extra. `BulkOptions::estimate` provides memory and disk space.
#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::time::Instant;

use resemblance::{BulkOptions, Document, MinHash, Schema, Signature, Store};

const SAMPLE: u64 = 1_000_000;
const VALUES: u64 = 128;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The number at a place of a splitmix64 stream.
fn mix(place: u64) -> u64 {
    let number = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn signature(number: u64) -> Signature {
    let like =
        |other: u64| (0..VALUES).map(move |value| (mix(other * VALUES + value) >> 32) as u32);
    let mut values: Vec<u32> = like(number).collect();
    if number % 10 == 9 {
        let earlier = like(mix(number) % number);
        let shared = values
            .iter_mut()
            .zip(earlier)
            .take(VALUES as usize * 9 / 10);
        shared.for_each(|(value, earlier)| *value = earlier);
    }
    Signature::from_minhash(values)
}

fn schema() -> Result<Schema> {
    Ok(Schema::builder()
        .minhash(MinHash::new(128).banding(20, 6))
        .build()?)
}

fn main() -> Result<()> {
    let documents: u64 = std::env::args()
        .nth(1)
        .map_or(Ok(50_000_000), |text| text.parse())?;
    let scale = documents as f64 / SAMPLE as f64;
    let folder = tempfile::tempdir_in(".")?;
    let path = folder.path().join("sample.rsm");
    let options = BulkOptions::new();

    let mut build = Store::bulk_build(&path, schema()?, &options)?;
    let mut making = 0.0;
    let start = Instant::now();
    for number in 0..SAMPLE {
        let made = Instant::now();
        let (key, signature) = (format!("doc-{number}"), signature(number));
        making += made.elapsed().as_secs_f64();
        build.insert(Document::new(key.as_bytes()), &signature)?;
    }
    build.finish()?;
    let building = (start.elapsed().as_secs_f64() - making) * scale;

    let snapshot = Store::open(&path)?.snapshot()?;
    let start = Instant::now();
    let mut pairs = 0u64;
    for pair in snapshot.pairs().run()? {
        pair?;
        pairs += 1;
    }
    let joining = start.elapsed().as_secs_f64() * scale;

    let needs = options.estimate(&schema()?, documents, 10, 0)?;
    let gigabytes = |bytes: u64| bytes as f64 / 1e9;
    println!("{documents} documents, from a sample of {SAMPLE} with {pairs} pairs:");
    let written = needs.disk_bytes + needs.temporary_bytes;
    let disk = written as f64 / 500e6;
    println!("build: {:.1} minutes of work", building / 60.0);
    println!(
        "  a disk that writes 500 MB a second: {:.1} minutes",
        disk / 60.0
    );
    println!("  memory {:.2} GB", gigabytes(needs.memory_bytes));
    println!("  store {:.1} GB", gigabytes(needs.disk_bytes));
    println!(
        "  temporary file {:.1} GB",
        gigabytes(needs.temporary_bytes)
    );
    println!(
        "pairs: {:.1} minutes of work, with the store in the system's cache",
        joining / 60.0
    );
    Ok(())
}
