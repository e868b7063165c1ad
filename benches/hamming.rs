//! Fingerprints: what they take on disk, and how long a query takes within several distances.
//!
//! `cargo bench --bench hamming -- 1000000` with the number of fingerprints. Times are processor times of one
//! thread, so that a shared machine disturbs them little; a scan has several threads, and theirs are added up.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a broken measurement should stop"
)]

use std::time::{Duration, Instant};

use resemblance::search::Scope;
use resemblance::{Closed, Document, Fingerprint, Matches, Schema, Signature, SimHash, Store};

/// Queries of each kind.
const PROBES: u64 = 2_000;
/// Queries that may be scans.
const FEW_PROBES: u64 = 10;

/// SplitMix64 of a number.
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn words(number: u64) -> [u64; 4] {
    [0, 1, 2, 3].map(|word| mix(mix(4 * number + word)))
}

/// The first `changed` of some random places changed.
fn signature(bits: u16, number: u64, changed: u32) -> Signature {
    let mut words = words(number);
    for place in 0..changed {
        let bit = mix(number + 77 * u64::from(place)) % u64::from(bits);
        if let Some(word) = words.get_mut((bit / 64) as usize) {
            *word ^= 1 << (bit % 64);
        }
    }
    let [first, second, ..] = words;
    match bits {
        64 => Signature::from_simhash(first),
        128 => Signature::from_fingerprint(u128::from(second) << 64 | u128::from(first)),
        _ => {
            let mut bytes = [0; 32];
            for (eight, word) in bytes.chunks_exact_mut(8).rev().zip(words) {
                eight.copy_from_slice(&word.to_be_bytes());
            }
            Signature::from_fingerprint(Fingerprint::from(bytes))
        }
    }
}

/// Returns the processor time of this process, or `None` if the system does not report it.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let after_name = stat.rsplit(')').next()?;
    let mut fields = after_name.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis((user + system) * 10))
}

fn measured<T>(run: impl FnOnce() -> T) -> (T, Duration, Duration) {
    let (began, processor) = (Instant::now(), processor_time());
    let done = run();
    let took = began.elapsed();
    let ended = processor_time().zip(processor);
    (done, took, ended.map_or(took, |(end, start)| end - start))
}

fn main() {
    let documents = std::env::args().find_map(|argument| argument.parse().ok());
    let documents: u64 = documents.unwrap_or(100_000);
    let cases = [
        (64, 3, &[3_u32, 1, 5][..]),
        (64, 8, &[8, 10]),
        (128, 16, &[6, 16]),
        (256, 31, &[31]),
    ];
    for (bits, max_distance, asked) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.rsm");
        let simhash = SimHash::external(bits).max_distance(max_distance);
        let schema = Schema::builder()
            .simhash(simhash)
            .expected_documents(documents);
        let schema = schema.build().unwrap();
        println!("{schema}");
        let options = Store::options().cache_bytes(1 << 30);
        let store = options.clone().create(&path, schema).unwrap();
        let insert = || {
            for start in (0..documents).step_by(10_000) {
                let mut transaction = store.begin_write().unwrap();
                for number in start..documents.min(start + 10_000) {
                    let signature = signature(bits, number, 0);
                    transaction
                        .insert(Document::without_key(), &signature)
                        .unwrap();
                }
                transaction.commit().unwrap();
            }
        };
        let ((), _, processor) = measured(insert);
        let rate = documents as f64 / processor.as_secs_f64();
        println!("  inserted: {rate:.0} a second of processor time");
        assert_eq!(store.close().unwrap(), Closed::File);
        Store::compact(&path).run().unwrap();
        let store = options.open(&path).unwrap();
        let bytes = std::fs::metadata(&path).unwrap().len() as f64 / documents as f64;
        let snapshot = store.snapshot().unwrap();
        let stats = snapshot.stats().run().unwrap();
        println!(
            "  compacted: {bytes:.1} bytes a fingerprint; {} runs",
            stats.runs.len()
        );
        for distance in asked {
            for changed in [0, *distance] {
                query(&snapshot, bits, documents, *distance, changed);
            }
        }
        drop(snapshot);
        assert_eq!(store.close().unwrap(), Closed::File);
    }
}

fn query(snapshot: &resemblance::Snapshot, bits: u16, documents: u64, distance: u32, changed: u32) {
    let ask = |probe: u64| -> Matches {
        let number = mix(probe) % documents;
        let signature = signature(bits, number, changed);
        let matches = snapshot
            .query(&signature)
            .max_distance(distance)
            .run()
            .unwrap();
        assert!(matches.iter().any(|found| found.id().get() == number));
        matches
    };
    let first = ask(0);
    let probes = match first.scope() {
        Scope::Scan => FEW_PROBES,
        _ => PROBES,
    };
    (0..probes.min(500)).for_each(|probe| drop(ask(probe)));
    let (compared, took, processor) = measured(|| {
        (0..probes)
            .map(|probe| ask(probe).candidates())
            .sum::<usize>()
    });
    let way = match first.scope() {
        Scope::Scan => "scan",
        _ => "tables",
    };
    let a_second = probes as f64 / processor.as_secs_f64();
    let milliseconds = took.as_secs_f64() * 1_000.0 / probes as f64;
    println!(
        "  distance {distance}, {changed} changed, {way}: {a_second:.0} a second of processor time, \
         {milliseconds:.3} ms each, {:.1} compared",
        compared as f64 / probes as f64
    );
}
