//! The kept inputs of the fuzzer that are sequences of operations, through the same functions.

use std::fs;
use std::path::Path;

use crate::operations::operations;

#[test]
fn sequences_of_operations_hold() {
    operations(&[]);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/operations");
    let Ok(entries) = fs::read_dir(corpus) else {
        eprintln!("skipped: a package has no corpus of the fuzzer");
        return;
    };
    let mut files = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        operations(&fs::read(&path).unwrap());
        files += 1;
    }
    assert!(files > 20, "{files} inputs");
}
