//! Stores that were written by the first release of each format, and are kept for ever.
//!
//! `tests/golden/` contains each store, compressed, and its contents as text. The tests read the
//! stores and compare the contents, then build them again and compare these contents too. A new
//! format adds files and never replaces any. `GOLDEN_WRITE=1` writes missing files.

mod contents;
mod making;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use resemblance::Store;

use crate::common::sample::{one_in, trials};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1")
}

fn text(name: &str) -> String {
    let path = folder().join(format!("{name}.txt"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Unpacks a store; a new file for each call, as opening changes it.
fn unpack(name: &str, to: &Path) {
    let packed = fs::File::open(folder().join(format!("{name}.rsm.gz"))).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed)
        .read_to_end(&mut bytes)
        .unwrap();
    fs::write(to, bytes).unwrap();
}

fn pack(name: &str, store: &Path) {
    let packed = fs::File::create_new(folder().join(format!("{name}.rsm.gz"))).unwrap();
    let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::best());
    packed.write_all(&fs::read(store).unwrap()).unwrap();
    packed.finish().unwrap();
}

/// Where two texts part, and not all of both.
fn assert_same(name: &str, found: &str, expected: &str) {
    let mut lines = found.lines().zip(expected.lines());
    if let Some((found, expected)) = lines.find(|(found, expected)| found != expected) {
        panic!("{name}: found\n{found}\nexpected\n{expected}");
    }
    assert_eq!(found.len(), expected.len(), "{name}: one is longer");
}

/// Each is opened in one of the two ways in turn, in both with `RESEMBLANCE_TESTS=all`.
#[test]
fn golden_stores_are_read_and_rebuilt_byte_for_byte() {
    let place = crate::common::Place::new();
    let writes = std::env::var_os("GOLDEN_WRITE").is_some();
    let ways: [fn(&Path) -> resemblance::Result<Store>; 2] =
        [|path| Store::open_read_only(path), |path| Store::open(path)];
    for (number, (name, make)) in making::STORES.iter().enumerate() {
        let fresh = place.file(&format!("{name}-fresh"));
        make(&fresh);
        let made = contents::of(&Store::open(&fresh).unwrap());
        if writes && !folder().join(format!("{name}.txt")).exists() {
            pack(name, &fresh);
            fs::write(folder().join(format!("{name}.txt")), &made).unwrap();
        }
        let expected = text(name);
        assert_same(name, &made, &expected);

        let kept = place.file(name);
        unpack(name, &kept);
        for open in ways.iter().skip(number % one_in(2)).step_by(one_in(2)) {
            assert_same(name, &contents::of(&open(&kept).unwrap()), &expected);
        }
        crate::common::check_clean(&kept);
    }
}

/// The table of frozen items names each kept store, and no other.
#[test]
fn golden_stores_are_listed_in_the_specification() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec.md");
    let specification = fs::read_to_string(path).unwrap();
    let (_, after) = specification.split_once("### 10.1 ").unwrap();
    let (section, _) = after.split_once("### 10.2 ").unwrap();
    let stores = section.lines().filter_map(|line| line.rsplit('|').nth(1));
    let names = stores.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let listed: BTreeSet<&str> = names.filter(|name| !name.starts_with("cargo ")).collect();
    let files = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    let kept = files.iter().filter_map(|name| name.strip_suffix(".rsm.gz"));
    assert_eq!(listed, kept.collect());
}

/// This release continues a store that an old release wrote: with ten documents, or with twenty
/// with `RESEMBLANCE_TESTS=all`.
#[test]
fn golden_stores_accept_new_documents() {
    let place = crate::common::Place::new();
    for (name, _) in making::STORES {
        let path = place.file(name);
        unpack(name, &path);
        let store = crate::common::sealing_after(8).open(&path).unwrap();
        let before = store.snapshot().unwrap().len();
        let more = trials(10, 20);
        for number in 500..500 + more {
            let signature = making::signature(store.schema(), number);
            let key = format!("new {number}");
            store.insert(&key, &signature).unwrap();
            let snapshot = store.snapshot().unwrap();
            assert!(snapshot.contains(&key).unwrap());
        }
        assert_eq!(store.snapshot().unwrap().len(), before + more, "{name}");
        drop(store);
        crate::common::check_clean(&path);
        Store::compact(&path).run().unwrap();
        crate::common::check_clean(&path);
    }
}
