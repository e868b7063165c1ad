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
    // Every fuzzer begins with this input.
    run(&[]);
}

macro_rules! replayed {
    ($($target:ident: $run:path;)*) => {
        $(#[test]
        fn $target() {
            replay(stringify!($target), $run);
        })*
    };
}

replayed! {
    block: super::block;
    descriptor: super::descriptor;
    header: super::header;
    recipe: super::recipe;
    rows: super::rows;
    stream: super::stream;
}
