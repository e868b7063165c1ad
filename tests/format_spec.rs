//! Holds `format-spec.md` to be true: its dump, its examples and its test vectors are what this
//! release writes, and a reader that was written from it alone reads what this release wrote.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

#[path = "format_spec/blocks.rs"]
mod blocks;
#[path = "format_spec/bytes.rs"]
mod bytes;
#[path = "format_spec/codes.rs"]
mod codes;
#[path = "format_spec/dump.rs"]
mod dump;
#[path = "format_spec/filters.rs"]
mod filters;
#[path = "format_spec/golden.rs"]
mod golden;
#[path = "format_spec/kinds.rs"]
mod kinds;
#[path = "format_spec/large_store.rs"]
mod large_store;
#[path = "format_spec/long_lanes.rs"]
mod long_lanes;
#[path = "format_spec/minhash.rs"]
mod minhash;
#[path = "format_spec/reader.rs"]
mod reader;
#[path = "format_spec/recipe.rs"]
mod recipe;
#[path = "format_spec/recipes.rs"]
mod recipes;
#[path = "format_spec/schema.rs"]
mod schema;
#[path = "format_spec/signatures.rs"]
mod signatures;
#[path = "format_spec/stored.rs"]
mod stored;
#[path = "format_spec/stream.rs"]
mod stream;
#[path = "format_spec/vectors.rs"]
mod vectors;

const SPECIFICATION: &str = include_str!("../format-spec.md");

/// The lines of the code block whose fence says `text` and this name.
fn code_block(name: &str) -> Vec<&'static str> {
    let fence = format!("```text {name}");
    let mut lines = SPECIFICATION.lines();
    assert!(lines.any(|line| line == fence), "no code block {name}");
    lines.take_while(|line| *line != "```").collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|digit| *digit != b' ').collect();
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}
