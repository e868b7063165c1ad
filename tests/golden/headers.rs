//! Files of formats to come: which are refused, and which are read.

use std::path::Path;

use redb::{ReadableTable, TableDefinition};
use resemblance::{Error, FORMAT_VERSION, Store};

use crate::{assert_same, common, contents, text, unpack};

/// Writes another header into a store, as section 2.1 of the specification lays it out.
fn set_header(path: &Path, versions: [u16; 2], flags: [u64; 3], more: &[u8]) {
    let database = common::engine::database(path);
    let write = database.begin_write().unwrap();
    {
        let table = TableDefinition::<&str, &[u8]>::new("meta");
        let mut meta = write.open_table(table).unwrap();
        assert!(meta.get("header").unwrap().is_some());
        let mut row = b"RESEMBL\x1a".to_vec();
        row.extend(versions.map(u16::to_le_bytes).concat());
        row.extend(flags.map(u64::to_le_bytes).concat());
        row.extend(more);
        let covered = [b"meta\0header".as_slice(), &row].concat();
        row.extend(crc32fast::hash(&covered).to_le_bytes());
        meta.insert("header", row.as_slice()).unwrap();
    }
    write.commit().unwrap();
}

#[test]
fn a_newer_format_is_refused_by_its_name() {
    let place = common::Place::new();
    unpack("words", &place.store());
    set_header(
        &place.store(),
        [FORMAT_VERSION + 6, FORMAT_VERSION + 5],
        [0; 3],
        b"",
    );
    for refused in [
        Store::open(place.store()),
        Store::open_read_only(place.store()),
    ] {
        let error = refused.err().unwrap();
        let found = matches!(&error, Error::NewerFormat { found, supported }
            if *found == FORMAT_VERSION + 5 && *supported == FORMAT_VERSION);
        assert!(found, "{error:?}");
        assert!(error.to_string().contains("use a newer release"), "{error}");
    }
    set_header(&place.store(), [1, 1], [0, 0, 1 << 40], b"");
    let error = Store::open(place.store()).err().unwrap();
    assert!(matches!(error, Error::UnknownFeatures { flags } if flags == 1 << 40));
}

#[test]
fn an_unknown_optional_flag_lets_read_and_not_write() {
    let place = common::Place::new();
    let newer = [FORMAT_VERSION + 1, FORMAT_VERSION];
    let headers = [([1, 1], [0, 2, 0]), (newer, [0; 3]), (newer, [8, 1, 0])];
    for (versions, flags) in headers {
        unpack("words", &place.store());
        set_header(&place.store(), versions, flags, b"something new");
        let before = std::fs::read(place.store()).unwrap();
        let store = Store::open(place.store()).unwrap();
        assert_same("words", &contents::of(&store), &text("words"));
        assert!(matches!(store.remove("a"), Err(Error::ReadOnly)));
        assert!(matches!(store.begin_write(), Err(Error::ReadOnly)));
        drop(store);
        assert!(Store::check(place.store()).unwrap().is_clean());
        assert!(matches!(
            Store::compact(place.store()),
            Err(Error::ReadOnly)
        ));
        assert!(
            before == std::fs::read(place.store()).unwrap(),
            "it was written to"
        );
    }
    unpack("words", &place.store());
    set_header(&place.store(), [1, 1], [1 << 63, 0, 0], b"");
    let store = Store::open(place.store()).unwrap();
    store.remove("https://example.org/1/\u{e9}").unwrap();
}
