//! The kept inputs of the fuzzer that are sequences of operations, through the same functions.
#![allow(clippy::unwrap_used, reason = "a broken test should stop")]

#[path = "../fuzz/operations/mod.rs"]
mod operations;

use std::fs;
use std::path::Path;

#[test]
fn sequences_of_operations_hold() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/operations");
    let mut files = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        operations::operations(&fs::read(&path).unwrap());
        files += 1;
    }
    assert!(files > 20, "{files} inputs");
    operations::operations(&[]);
}
