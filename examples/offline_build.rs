//! Builds a store of many documents at once, which is faster than inserting them and writes less.
//!
//! `cargo run --release --bin offline_build` prints:
//!
//! ```text
//! a store of a thousand million documents takes 373 GB
//! built: 2000 documents
//! pairs: 200
//! ```
//!
//! It takes the number of documents as an argument.

use resemblance::{BulkOptions, Document, MinHash, Schema, Store, Text};

/// Invents 40 words. Every tenth text has those of the one before it, and another word.
fn text(number: u64) -> String {
    let is_copy = number % 10 == 9;
    let mut state = (number - u64::from(is_copy)) << 20;
    let mut text = String::from(if is_copy { "copied" } else { "first" });
    for _ in 0..40 {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        text += &format!(" w{:x}", state >> 44);
    }
    text
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u64 = std::env::args()
        .nth(1)
        .map_or(Ok(2_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("corpus.rsm");
    let schema = Schema::builder()
        .text(Text::words(5))
        .minhash(MinHash::new(128))
        .build()?;

    // It sorts within this memory, and beyond it in a temporary file.
    let options = BulkOptions::new().memory_bytes(256 << 20);
    let needs = options.estimate(&schema, 1_000_000_000, 10, 0)?;
    let gigabytes = needs.disk_bytes / 1_000_000_000;
    println!("a store of a thousand million documents takes {gigabytes} GB");

    let sketcher = schema.sketcher(); // clone it into as many threads as you like
    let mut build = Store::bulk_build(&path, schema, &options)?;
    for number in 0..count {
        let key = number.to_string();
        build.insert(Document::new(&key), &sketcher.text(&text(number))?)?;
    }
    // There is no file of that name before this returns.
    let report = build.finish()?;
    println!("built: {} documents", report.documents);

    let snapshot = Store::open(&path)?.snapshot()?;
    println!("pairs: {}", snapshot.pairs().run()?.count());
    Ok(())
}
