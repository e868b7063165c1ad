//! Files whose pages a newer release laid out: refused by name, never called damaged, never touched.

use crate::common::engine::seal;
use crate::common::memory::MemoryFiles;
use crate::common::sealing_after;
use crate::common::small::{schema, signature};
use resemblance::report::RepairReport;
use resemblance::{BulkOptions, Error, Operation, Store, StoreOptions};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

const STORE: &str = "store";

/// The file of a store, closed.
fn stored() -> Vec<u8> {
    let files = MemoryFiles::default();
    let options = files.options(&sealing_after(64));
    let store = options.create(STORE, schema()).unwrap();
    for number in 0..200 {
        store
            .insert(format!("key {number}"), &signature(number))
            .unwrap();
    }
    drop(store);
    files.read(STORE)
}

fn repairing<'a>(options: &StoreOptions) -> Operation<'a, RepairReport> {
    let bulk = BulkOptions::new()
        .store(options.clone())
        .memory_bytes(1 << 20);
    Store::repair(STORE, "target").bulk(bulk.temp_dir(std::env::temp_dir()))
}

/// Everything that opens a file.
fn attempts(bytes: &[u8]) -> Vec<(&'static str, Option<Error>, bool)> {
    let attempt = |name, run: &dyn Fn(&StoreOptions) -> Option<Error>| {
        let files = MemoryFiles::with(STORE, bytes.to_vec());
        let error = run(&files.options(&sealing_after(64)));
        (
            name,
            error,
            files.read(STORE) == bytes && files.names().len() == 1,
        )
    };
    vec![
        attempt("open", &|options| options.open(STORE).err()),
        attempt("read", &|options| options.open_read_only(STORE).err()),
        attempt("check", &|options| options.check(STORE).run().err()),
        attempt("compact", &|options| options.compact(STORE).run().err()),
        attempt("repair", &|options| repairing(options).run().err()),
        attempt("scan", &|options| repairing(options).scan(true).run().err()),
    ]
}

fn expect_unknown(name: &str, bytes: &[u8], expected: &str) {
    for (attempt, error, is_untouched) in attempts(bytes) {
        let error = error.unwrap_or_else(|| panic!("{name}: {attempt} was let in"));
        let is_named = matches!(&error, Error::UnknownLayout { found } if found.contains(expected));
        assert!(is_named, "{name}: {attempt}: {error:?}");
        assert!(error.to_string().contains("use a newer release"), "{error}");
        assert!(is_untouched, "{name}: {attempt} changed the file");
    }
}

/// The file with some bytes of its head changed, as an engine would have written them.
fn rewritten(bytes: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, value) in changes {
        bytes[*at] = *value;
    }
    for slot in [64, 192] {
        let checksum = xxh3_128(&bytes[slot..slot + 112]).to_le_bytes();
        bytes[slot + 112..slot + 128].copy_from_slice(&checksum);
    }
    let sealed = seal(&bytes[..320]);
    bytes[320..336].copy_from_slice(&sealed);
    bytes
}

/// The name of the change, the bytes that are set at their offsets, and what the error names.
type Case<'c> = (&'c str, &'c [(usize, u8)], &'c str);

#[test]
fn a_newer_layout_is_refused_by_name() {
    let bytes = stored();
    let flags = bytes[9];
    let cases: [Case<'_>; 8] = [
        (
            "both commits of format 4",
            &[(64, 4), (192, 4)],
            "file format 4, expected 3",
        ),
        (
            "the first of format 4",
            &[(64, 4)],
            "file format 4, expected 3",
        ),
        (
            "the second of format 9",
            &[(192, 9)],
            "file format 9, expected 3",
        ),
        ("a flag", &[(9, flags | 0x20)], "flags"),
        (
            "larger pages",
            &[(13, 0x20)],
            "pages of 8192, expected 4096",
        ),
        ("more in the head", &[(40, 1)], "in the head"),
        ("more in a commit", &[(64 + 72, 1)], "in a commit"),
        ("another tree in a commit", &[(64 + 3, 1)], "in a commit"),
    ];
    for (name, changes, expected) in cases {
        expect_unknown(name, &rewritten(&bytes, changes), expected);
    }
    assert!(rewritten(&bytes, &[]) == bytes);
}

/// The one sign that no engine writes, but releases of this crate.
#[test]
fn seal_of_a_newer_release_is_refused_by_name() {
    let mut bytes = stored();
    // The head and all pages may be anything.
    bytes[9..320].fill(0xa5);
    bytes[4_096..].fill(0x5a);
    bytes[327] = 0x1b;
    let checksum = xxh3_64(&bytes[..328]).to_le_bytes();
    bytes[328..336].copy_from_slice(&checksum);
    expect_unknown("another seal", &bytes, "page layout 27, expected 26");
}

/// Flipping bits in the same bytes is damage, as before.
#[test]
fn damaged_head_is_not_reported_as_a_newer_layout() {
    let bytes = stored();
    for at in [9, 13, 40, 64, 64 + 72, 192, 327] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        let files = MemoryFiles::with(STORE, damaged);
        let options = files.options(&sealing_after(64));
        let error = options.open(STORE).err().unwrap();
        assert!(
            matches!(error, Error::Corrupt { .. }),
            "byte {at}: {error:?}"
        );
        assert!(!options.check(STORE).run().unwrap().is_clean());
        repairing(&options).run().unwrap();
    }
}
