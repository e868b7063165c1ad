//! The kept inputs of the fuzzer that are sequences of operations, through the same functions.

use std::fs;
use std::path::Path;

use crate::common::sample::one_in;
use crate::operations::operations;

/// One input in three, each with `RESEMBLANCE_TESTS=all`.
#[test]
fn saved_operation_sequences_pass() {
    operations(&[]);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/operations");
    let Ok(entries) = fs::read_dir(corpus) else {
        eprintln!("skipped: a package has no corpus of the fuzzer");
        return;
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut files = 0;
    for path in paths.iter().step_by(one_in(3)) {
        println!("{}", path.display());
        operations(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files > 20 / one_in(3), "{files} inputs");
}
