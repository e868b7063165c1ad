//! Creating and opening: what is refused is refused with a reason, and left as it was.

use std::fs;
use std::path::Path;

use crate::common::small::{filled, schema, signature};
use crate::common::{Place, check_clean, sealing_after};
use redb::{ReadableTable, TableDefinition};
use resemblance::stats::FORMAT_VERSION;
use resemblance::{Document, Error, MinHash, Schema, Store, StoreOptions, Text};

const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");

/// All ways of opening refuse the file in the same way, and leave it as it is.
fn refused(path: &Path, expected: impl Fn(&Error) -> bool) {
    let before = fs::read(path).ok();
    all_refuse(path, expected);
    assert!(fs::read(path).ok() == before, "the file was changed");
}

fn all_refuse(path: &Path, expected: impl Fn(&Error) -> bool) {
    let attempts = [
        Store::open(path).err(),
        Store::open_read_only(path).err(),
        check(path),
        Store::compact(path).run().err(),
    ];
    for (attempt, error) in attempts.iter().enumerate() {
        let error = error
            .as_ref()
            .unwrap_or_else(|| panic!("attempt {attempt} was let in"));
        assert!(expected(error), "attempt {attempt}: {error:?}");
    }
}

/// Returns the first problem that a check finds, whether or not it can continue.
fn check(path: &Path) -> Option<Error> {
    match Store::check(path).run() {
        Ok(report) => {
            let first = report.problems.into_iter().next();
            first.map(|problem| Error::Corrupt {
                place: problem.place,
                detail: problem.detail,
            })
        }
        Err(error) => Some(error),
    }
}

fn is_not_a_store(error: &Error) -> bool {
    matches!(error, Error::NotAStore { .. })
}

fn is_corrupt(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. })
}

#[test]
fn create_refuses_and_keeps_an_existing_file() {
    let place = Place::new();
    let contents: [&[u8]; 3] = [b"", b"some text", &[0; 10_000]];
    for content in contents {
        fs::write(place.store(), content).unwrap();
        let error = Store::create(place.store(), schema()).err().unwrap();
        assert!(matches!(&error, Error::AlreadyExists { path } if *path == place.store()));
        assert_eq!(fs::read(place.store()).unwrap(), content);
    }
    let folder = place.file("folder");
    fs::create_dir(&folder).unwrap();
    let error = Store::create(&folder, schema()).err().unwrap();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error:?}");
    let nowhere = place.file("no/such/folder/store.rsm");
    let error = Store::create(&nowhere, schema()).err().unwrap();
    assert!(matches!(error, Error::Io { .. }), "{error:?}");

    let path = place.file("existing.rsm");
    filled(&path, 20);
    let before = fs::read(&path).unwrap();
    assert!(matches!(
        Store::create(&path, schema()),
        Err(Error::AlreadyExists { .. })
    ));
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn open_refuses_foreign_files() {
    let place = Place::new();
    let is_missing = |error: &Error| matches!(error, Error::NotFound { .. });
    refused(&place.file("nothing.rsm"), is_missing);
    assert!(!place.file("nothing.rsm").exists(), "opening never creates");
    refused(&place.file(""), is_not_a_store);
    let contents: [&[u8]; 5] = [
        b"",
        b"r",
        b"a text that someone wrote",
        b"redb\x1a\x0a\xa9\x0d",
        &[0xff; 100_000],
    ];
    for content in contents {
        fs::write(place.store(), content).unwrap();
        refused(&place.store(), is_not_a_store);
    }
}

/// The header: magic, version, oldest reader, three sets of flags, checksum.
fn header(version: u16, oldest_reader: u16, flags: [u64; 3]) -> Vec<u8> {
    let mut bytes = b"RESEMBL\x1a".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(oldest_reader.to_le_bytes());
    bytes.extend(flags.iter().flat_map(|flags| flags.to_le_bytes()));
    seal("header", &mut bytes);
    bytes
}

/// Appends the checksum of a row of `meta`.
fn seal(name: &str, bytes: &mut Vec<u8>) {
    let covered = [b"meta\0", name.as_bytes(), bytes].concat();
    bytes.extend(crc32fast::hash(&covered).to_le_bytes());
}

/// Writes a row of `meta` past the library.
fn rewrite(path: &Path, name: &str, change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) {
    let database = crate::common::engine::database(path);
    let write = database.begin_write().unwrap();
    {
        let mut meta = write.open_table(META).unwrap();
        let old = meta.get(name).unwrap().unwrap().value().to_vec();
        match change(old) {
            Some(new) => drop(meta.insert(name, new.as_slice()).unwrap()),
            None => drop(meta.remove(name).unwrap()),
        }
    }
    write.commit().unwrap();
}

#[test]
fn stores_with_sets_set_a_flag_that_other_builds_refuse() {
    let place = Place::new();
    let minhash = MinHash::new(16).threshold(0.5);
    let exact = Schema::builder()
        .text(Text::words(1))
        .minhash(minhash)
        .exact();
    drop(Store::create(place.store(), exact.build().unwrap()).unwrap());
    let path = place.store();
    rewrite(&path, "header", |bytes| {
        let expected = header(FORMAT_VERSION, 1, [0, 0, 1 << 9]);
        assert_eq!(bytes, expected);
        Some(expected)
    });
    Store::open(&path).unwrap();
    // Flag and schema must agree.
    rewrite(&path, "header", |_| Some(header(FORMAT_VERSION, 1, [0; 3])));
    all_refuse(&path, |error| matches!(error, Error::Corrupt { .. }));
}

#[test]
fn newer_formats_and_unknown_flags_are_refused_by_their_meaning() {
    let place = Place::new();
    filled(&place.store(), 20);
    let path = place.store();
    let put = |bytes: Vec<u8>| rewrite(&path, "header", |_| Some(bytes));

    put(header(FORMAT_VERSION + 1, FORMAT_VERSION + 1, [0; 3]));
    refused(&path, |error| {
        matches!(error, Error::NewerFormat { found, supported: FORMAT_VERSION }
            if *found == FORMAT_VERSION + 1)
    });
    put(header(FORMAT_VERSION, 1, [0, 0, 1 << 40]));
    refused(
        &path,
        |error| matches!(error, Error::UnknownFeatures { flags } if *flags == 1 << 40),
    );

    // Flags that may be ignored, and fields that a newer release appends.
    put(header(FORMAT_VERSION, 1, [u64::MAX, 0, 0]));
    Store::open(&path)
        .unwrap()
        .insert(Document::without_key(), &signature(50))
        .unwrap();
    let mut longer = header(FORMAT_VERSION, 1, [0; 3]);
    longer.truncate(longer.len() - 4);
    longer.extend(b"more");
    seal("header", &mut longer);
    put(longer);
    Store::open(&path)
        .unwrap()
        .insert(Document::without_key(), &signature(51))
        .unwrap();

    // This release can read these, but must not write them.
    for bytes in [
        header(FORMAT_VERSION, 1, [0, 2, 0]),
        header(FORMAT_VERSION + 1, 1, [0; 3]),
    ] {
        put(bytes);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.snapshot().unwrap().len(), 22);
        assert!(matches!(
            store.insert(Document::without_key(), &signature(1)),
            Err(Error::ReadOnly)
        ));
        drop(store);
        let before = fs::read(&path).unwrap();
        assert!(matches!(Store::compact(&path).run(), Err(Error::ReadOnly)));
        assert!(Store::check(&path).run().unwrap().is_clean());
        drop(Store::open(&path).unwrap());
        assert!(fs::read(&path).unwrap() == before, "it was written");
    }
}

#[test]
fn open_detects_damaged_meta_rows() {
    let place = Place::new();
    for name in ["header", "schema", "self_test", "state"] {
        let path = place.file(name);
        filled(&path, 20);
        rewrite(&path, name, |mut row| {
            row[3] ^= 1;
            Some(row)
        });
        all_refuse(&path, is_corrupt);
        rewrite(&path, name, |mut row| {
            row.truncate(row.len() - 5);
            seal(name, &mut row);
            Some(row)
        });
        all_refuse(&path, is_corrupt);
    }
    for name in ["schema", "self_test", "state"] {
        let path = place.file("missing").with_extension(name);
        filled(&path, 20);
        rewrite(&path, name, |_| None);
        all_refuse(&path, is_corrupt);
    }
}

/// A handle that followed the removal of another one marked each id of a gap: 2^60 of them.
#[test]
fn removal_below_a_wide_gap_of_ids_is_followed() {
    let place = Place::new();
    let path = place.store();
    let shared = || StoreOptions::new().shared_writers(true);
    let store = shared().create(&path, schema()).unwrap();
    let insert = |store: &Store, number: u32| {
        store
            .insert(number.to_le_bytes(), &signature(number))
            .unwrap()
    };
    let remove = |store: &Store, number: u32| {
        assert!(store.remove(number.to_le_bytes()).unwrap().is_some());
    };
    for number in 0..12 {
        insert(&store, number);
    }
    remove(&store, 1);
    drop(store);
    rewrite(&path, "state", |mut row| {
        row.truncate(row.len() - 4);
        // It follows the kind and the commit.
        row[9..17].copy_from_slice(&(1_u64 << 60).to_le_bytes());
        seal("state", &mut row);
        Some(row)
    });
    check_clean(&path);
    let (one, other) = (shared().open(&path).unwrap(), shared().open(&path).unwrap());
    assert_eq!(other.snapshot().unwrap().len(), 11);
    remove(&one, 11);
    let snapshot = other.snapshot().unwrap();
    assert_eq!(snapshot.len(), 10);
    for number in 0..12u32 {
        let found = snapshot.query(&signature(number)).run().unwrap();
        let is_live = !matches!(number, 1 | 11);
        let is_found = found
            .iter()
            .any(|it| it.key() == Some(&number.to_le_bytes()));
        assert_eq!(is_found, is_live, "document {number}");
    }
}

/// Without its tombstone, a removed document would reappear.
#[test]
fn missing_tombstone_is_damage() {
    const DEAD: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("dead");
    let place = Place::new();
    let store = sealing_after(10).create(place.store(), schema()).unwrap();
    for number in 0..30u32 {
        store
            .insert(number.to_le_bytes(), &signature(number))
            .unwrap();
    }
    store.remove(3u32.to_le_bytes()).unwrap();
    store.remove(15u32.to_le_bytes()).unwrap();
    drop(store);
    let change = |change: &dyn Fn(&mut Vec<u8>) -> bool| {
        let path = place.file("changed");
        fs::copy(place.store(), &path).unwrap();
        let database = crate::common::engine::database(&path);
        let write = database.begin_write().unwrap();
        {
            let mut dead = write.open_table(DEAD).unwrap();
            let mut row = dead.get(0).unwrap().unwrap().value().to_vec();
            row.truncate(row.len() - 4);
            if change(&mut row) {
                let covered = [b"dead\0".as_slice(), &[0; 8], &row].concat();
                row.extend(crc32fast::hash(&covered).to_le_bytes());
                dead.insert(0, row.as_slice()).unwrap();
            } else {
                dead.remove(0).unwrap();
            }
        }
        write.commit().unwrap();
        path
    };
    let same = change(&|_| true);
    assert!(Store::check(&same).run().unwrap().is_clean());
    assert_eq!(Store::open(&same).unwrap().snapshot().unwrap().len(), 28);
    all_refuse(&change(&|_| false), is_corrupt);
    // The bit of document 3, in the first byte behind the kind; one more; one of no run.
    all_refuse(
        &change(&|row| {
            row[1] &= !8;
            true
        }),
        is_corrupt,
    );
    all_refuse(
        &change(&|row| {
            row[1] |= 1;
            true
        }),
        is_corrupt,
    );
    let moved = change(&|row| {
        row[1] &= !8;
        row[1_000] |= 1;
        true
    });
    all_refuse(&moved, is_corrupt);
}

#[test]
fn different_self_test_is_refused_as_another_build() {
    let place = Place::new();
    filled(&place.store(), 3);
    rewrite(&place.store(), "self_test", |mut row| {
        row.truncate(row.len() - 4);
        row[8] ^= 1;
        seal("self_test", &mut row);
        Some(row)
    });
    all_refuse(&place.store(), |error| {
        matches!(error, Error::SelfTest { .. })
    });
}
