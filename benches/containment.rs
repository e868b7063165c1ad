//! Shared passages in a store of many pages: how long it takes to index them and to ask for paragraphs, what
//! they take on disk, and whether every planted passage is found.
//!
//! `cargo bench --bench containment -- PAGES WORDS QUERIES` generates PAGES pages of WORDS words
//! each, drawn from 50,000 words. It then searches with QUERIES paragraphs of 100 words, each of
//! which contains a passage of 13 words from some page. It prints processor time, summed over all
//! threads, and elapsed time.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at an error")]

#[path = "support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use resemblance::{
    BulkOptions, Containment, Document, Result, Schema, Signature, Snapshot, Store, Text,
};
use support::mix;

/// Shingles of 8 words, windows of 6: every passage of 13 words is found.
const CONTAINMENT: Containment = Containment::new(8).window(6);

const PASSAGE_WORDS: u64 = 13;

/// The number of words in a query paragraph.
const QUERY_WORDS: u64 = 100;

/// Queries that are answered together.
const TOGETHER: u64 = 50_000;

/// Different words.
const VOCABULARY: u64 = 50_000;

fn main() -> Result<()> {
    let numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    let (pages, words, queries) = match numbers[..] {
        [pages, words, queries] => (pages, words, queries),
        // `cargo bench` without numbers: seconds.
        _ => (2_000, 400, 2_000),
    };
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("pages.rsm");
    build(&path, pages, words)?;
    let snapshot = Store::open(&path)?.snapshot()?;
    ask(&snapshot, pages, words, queries)
}

/// The words of a page from one on, as text.
fn text(page: u64, words: std::ops::Range<u64>) -> String {
    let mut text = String::new();
    for word in words {
        text += &format!("w{:x} ", mix(mix(page) ^ word) % VOCABULARY);
    }
    text
}

/// A paragraph that is in no page but for a passage of one, and that page.
fn paragraph(number: u64, pages: u64, words: u64) -> (String, u64) {
    let page = mix(number) % pages;
    let start = mix(number ^ 1 << 40) % (words - PASSAGE_WORDS + 1);
    let before = mix(number ^ 1 << 41) % (QUERY_WORDS - PASSAGE_WORDS);
    let own = pages + number;
    let mut paragraph = text(own, 0..before);
    paragraph += &text(page, start..start + PASSAGE_WORDS);
    paragraph += &text(own, before..QUERY_WORDS - PASSAGE_WORDS);
    (paragraph, page)
}

fn build(path: &Path, pages: u64, words: u64) -> Result<()> {
    let schema = Schema::builder()
        .text(Text::words(8))
        .containment(CONTAINMENT);
    let schema = schema.build()?;
    let sketcher = schema.sketcher();
    let options = BulkOptions::new().memory_bytes(1 << 30);
    let mut build = Store::bulk_build(path, schema, &options)?;
    let (mut sketching, mut indexing) = (Elapsed::default(), Elapsed::default());
    let mut kept = 0;
    for first in (0..pages).step_by(10_000) {
        let texts: Vec<String> = (first..pages.min(first + 10_000))
            .map(|page| text(page, 0..words))
            .collect();
        let signatures = sketching.add(|| {
            let signatures = texts.iter().map(|text| sketcher.text(text));
            signatures.collect::<Result<Vec<Signature>, _>>()
        })?;
        kept += signatures
            .iter()
            .flat_map(Signature::kept_hashes)
            .map(<[u64]>::len)
            .sum::<usize>();
        indexing.add(|| {
            let mut signatures = signatures.iter();
            signatures.try_for_each(|signature| {
                build.insert(Document::without_key(), signature).map(drop)
            })
        })?;
    }
    let report = indexing.add(|| build.finish())?;
    let bytes = fs::metadata(path).unwrap().len();
    println!(
        "{pages} pages of {words} words: {kept} postings, {} spills",
        report.spills
    );
    println!("sketching {sketching}; indexing {indexing}");
    println!(
        "{:.2} bytes of store a posting, {} MiB of memory at the peak",
        bytes as f64 / kept as f64,
        peak_mebibytes()
    );
    Ok(())
}

fn ask(snapshot: &Snapshot, pages: u64, words: u64, queries: u64) -> Result<()> {
    let sketcher = snapshot.schema().sketcher();
    let (mut elapsed, mut found) = (Elapsed::default(), 0);
    for first in (0..queries).step_by(TOGETHER as usize) {
        let numbers = first..queries.min(first + TOGETHER);
        let planted: Vec<(String, u64)> = numbers
            .map(|number| paragraph(number, pages, words))
            .collect();
        let signatures = planted.iter().map(|(text, _)| sketcher.text(text));
        let signatures = signatures.collect::<Result<Vec<Signature>, _>>()?;
        let answers = elapsed.add(|| snapshot.overlaps(&signatures).run())?;
        for ((_, page), answer) in planted.iter().zip(answers) {
            found += u64::from(answer.iter().any(|overlap| overlap.id().get() == *page));
        }
    }
    println!("{queries} paragraphs of {QUERY_WORDS} words, {TOGETHER} at once: {elapsed}");
    let (clock, processor) = (elapsed.clock.as_secs_f64(), elapsed.processor.as_secs_f64());
    println!(
        "{:.0} a second by the clock, {:.0} a second of one processor",
        queries as f64 / clock,
        queries as f64 / processor
    );
    println!("planted passages of {PASSAGE_WORDS} words: {queries}, found: {found}");
    assert_eq!(found, queries, "a planted passage was not found");
    Ok(())
}

#[derive(Default)]
struct Elapsed {
    clock: Duration,
    processor: Duration,
}

impl Elapsed {
    fn add<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let (clock, processor) = (Instant::now(), processor_time());
        let result = run();
        self.clock += clock.elapsed();
        self.processor += processor_time().saturating_sub(processor);
        result
    }
}

impl std::fmt::Display for Elapsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (clock, processor) = (self.clock.as_secs_f64(), self.processor.as_secs_f64());
        write!(f, "{clock:.2} s, {processor:.2} s of processors")
    }
}

/// Returns the processor time of all threads, or zero if the system does not report it.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // User and system time are fields 14 and 15, in hundredths of a second; the second may have spaces.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

/// Returns the maximum memory of the process, or 0 if the system does not report it.
fn peak_mebibytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or(0) / 1_024
}
