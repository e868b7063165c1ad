//! Holds `format-spec.md` to be true: its dump, its examples and its test vectors are what this
//! release writes, and a reader that was written from it alone reads what this release wrote.

mod alone;
mod blocks;
mod bytes;
mod clusters;
mod codes;
mod dense;
mod dump;
mod filters;
mod golden;
mod kinds;
mod large_store;
mod long_lanes;
mod minhash;
mod reader;
mod recipe;
mod recipes;
mod schema;
mod signatures;
mod stored;
mod stream;
mod vectors;

const SPECIFICATION: &str = include_str!("../../format-spec.md");

/// Returns the lines of the code block whose fence has `text` and this name.
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
