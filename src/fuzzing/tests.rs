//! The kept inputs, through the same functions.

use std::fs;
use std::path::Path;

/// Runs every kept input of a target. A published package has none.
fn replay(target: &str, run: fn(&[u8])) {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    if !fuzz.exists() {
        return;
    }
    let mut files = 0;
    for entry in fs::read_dir(fuzz.join("corpus").join(target)).unwrap() {
        let path = entry.unwrap().path();
        let input = fs::read(&path).unwrap();
        println!("{}", path.display());
        run(&input);
        files += 1;
    }
    assert!(files > 20, "{target}: {files} inputs");
    // What every fuzzer begins with.
    run(&[]);
}

#[test]
fn block() {
    replay("block", super::block);
}

#[test]
fn descriptor() {
    replay("descriptor", crate::fuzzing::meta::descriptor);
}

#[test]
fn header() {
    replay("header", crate::fuzzing::meta::header);
}

#[test]
fn recipe() {
    replay("recipe", super::recipe);
}

#[test]
fn rows() {
    replay("rows", super::rows);
}

#[test]
fn stream() {
    replay("stream", super::stream);
}
