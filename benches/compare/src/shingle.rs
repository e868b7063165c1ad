//! Texts to hashes of shingles, without signatures: what reading costs.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use resemblance::Text;
use xxhash_rust::xxh3::xxh3_64;

use crate::Result;

/// Each case is measured this often, in turns with the others, and the best is printed.
const ROUNDS: usize = 9;

/// Bytes of text that each case reads.
const CORPUS_BYTES: usize = 8 << 20;

/// English of `CORPUS_BYTES`: articles of `RESEMBLANCE_DATA`, else words of a generator.
pub fn english() -> Result<String> {
    let mut english = String::new();
    if let Some(root) = std::env::var_os("RESEMBLANCE_DATA") {
        let path = Path::new(&root).join("articles2500/docs.jsonl.gz");
        let mut lines = String::new();
        GzDecoder::new(File::open(path)?).read_to_string(&mut lines)?;
        for line in lines.lines() {
            let document: serde_json::Value = serde_json::from_str(line)?;
            english.push_str(document["text"].as_str().unwrap_or_default());
            english.push('\n');
        }
    } else {
        let mut state = 1_u64;
        while english.len() < CORPUS_BYTES {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let number = (state >> 33) % 5_000;
            // Lengths of 1 to 10 letters and now and then a comma or a capital, as in prose.
            for place in 0..=(state >> 40) % 10 {
                let letter = (number * (place + 7) % 26) as u8;
                let case = if place == 0 && number.is_multiple_of(9) {
                    b'A'
                } else {
                    b'a'
                };
                english.push(char::from(case + letter));
            }
            english.push_str(if number.is_multiple_of(11) { ", " } else { " " });
        }
    }
    let whole = english.clone();
    while !whole.is_empty() && english.len() < CORPUS_BYTES {
        english.push_str(&whole);
    }
    english.truncate(english.floor_char_boundary(CORPUS_BYTES));
    Ok(english)
}

/// Pieces of at most this many bytes.
pub fn documents(mut text: &str, bytes: usize) -> Vec<&str> {
    let mut documents = Vec::new();
    while !text.is_empty() {
        let (document, rest) = text.split_at(text.floor_char_boundary(bytes));
        documents.push(document);
        text = rest;
    }
    documents
}

pub fn run() -> Result<()> {
    let english = english()?;
    println!(
        "{} bytes of English, one thread, MB a second",
        english.len()
    );
    println!(
        "{:<16} {:>10} {:>10} {:>10} {:>10}",
        "", "document", "cut", "and hashed", "shingles"
    );
    for text in [Text::words(5), Text::characters(9)] {
        for bytes in [2_000, 200_000] {
            let documents = documents(&english, bytes);
            let mut shingles = 0;
            let (mut cut, mut hashed) = (Duration::MAX, Duration::MAX);
            for _ in 0..ROUNDS {
                let start = Instant::now();
                for document in &documents {
                    let mut length = 0;
                    text.for_each_shingle(document, |shingle| length += shingle.len());
                    black_box(length);
                }
                cut = cut.min(start.elapsed());
                let start = Instant::now();
                shingles = 0;
                for document in &documents {
                    let mut sum = 0_u64;
                    text.for_each_shingle(document, |shingle| {
                        shingles += 1;
                        sum ^= xxh3_64(shingle.as_bytes());
                    });
                    black_box(sum);
                }
                hashed = hashed.min(start.elapsed());
            }
            let rate = |time: Duration| english.len() as f64 / 1e6 / time.as_secs_f64();
            println!(
                "{:<16} {bytes:>10} {:>10.0} {:>10.0} {shingles:>10}",
                text.to_string(),
                rate(cut),
                rate(hashed)
            );
        }
    }
    Ok(())
}
