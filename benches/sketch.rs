//! How long it takes to make a signature of a text, by kind and by length.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at an error")]

mod support;

use divan::Bencher;
use divan::counter::BytesCount;
use resemblance::{MinHash, Schema, SimHash, Sketcher, Text};

const KINDS: [&str; 6] = [
    "minhash",
    "one_pass",
    "bottom_k",
    "weighted",
    "probability",
    "simhash",
];

fn main() {
    support::run();
}

/// 40 words.
#[divan::bench(args = KINDS, max_time = 1)]
fn tiny(bencher: Bencher<'_, '_>, kind: &str) {
    sketch(bencher, kind, &text(40));
}

/// 200 words.
#[divan::bench(args = KINDS, max_time = 1)]
fn short(bencher: Bencher<'_, '_>, kind: &str) {
    sketch(bencher, kind, &text(200));
}

/// 20,000 words.
#[divan::bench(args = KINDS, max_time = 1)]
fn long(bencher: Bencher<'_, '_>, kind: &str) {
    sketch(bencher, kind, &text(20_000));
}

fn sketch(bencher: Bencher<'_, '_>, kind: &str, text: &str) {
    let sketcher = sketcher(kind);
    bencher
        .counter(BytesCount::of_str(text))
        .bench(|| sketcher.text(text).unwrap());
}

/// Returns a sketcher for signatures of 128 values or, for SimHash, of 64 bits.
fn sketcher(kind: &str) -> Sketcher {
    let schema = Schema::builder().text(Text::words(3));
    let schema = match kind {
        "minhash" => schema.minhash(MinHash::new(128)),
        "one_pass" => schema.minhash(MinHash::one_pass(128)),
        "bottom_k" => schema.minhash(MinHash::bottom_k(128)),
        "weighted" => schema.minhash(MinHash::weighted(128)),
        "probability" => schema.minhash(MinHash::probability(128)),
        _ => schema.simhash(SimHash::bits64()),
    };
    schema.build().unwrap().sketcher()
}

/// Returns a text with this number of words, the same in every run.
fn text(words: u64) -> String {
    let words: Vec<String> = (0..words).map(word).collect();
    words.join(" ")
}

/// One of 50,000 words. Few of them are frequent and most are rare, as in a language.
fn word(place: u64) -> String {
    let uniform = (support::mix(place) >> 11) as f64 / (1_u64 << 53) as f64;
    let mut number = 50_000_f64.powf(uniform) as u64;
    let mut word = String::new();
    // A syllable for each digit to base 60.
    while number > 0 {
        let digit = number % 60;
        word.extend("bdfgklmnprst".chars().nth((digit / 5) as usize));
        word.extend("aeiou".chars().nth((digit % 5) as usize));
        number /= 60;
    }
    word
}
