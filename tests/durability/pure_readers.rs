//! Reading a store changes no byte of its file: this is tested for `check` and every handle for
//! reading.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::common::small::{filled, signature};
use crate::common::{Place, sealing_after};
use resemblance::{Closed, Document, Error, Store};

/// Runs operations that only read, beside a reader, on a file that cannot be written. Checks that
/// the file's bytes do not change.
#[track_caller]
fn changes_nothing(path: &Path, read: impl Fn()) {
    let before = fs::read(path).unwrap();
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let mut permissions = fs::metadata(path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path, permissions).unwrap();
    let reader = Store::open_read_only(path).unwrap();
    read();
    drop(reader);
    assert!(fs::read(path).unwrap() == before, "the bytes have changed");
    let metadata = fs::metadata(path).unwrap();
    assert_eq!(metadata.modified().unwrap(), modified);
}

fn read_everything(path: &Path, documents: u64) {
    let store = Store::open_read_only(path).unwrap();
    assert!(matches!(store.begin_write(), Err(Error::ReadOnly)));
    assert!(matches!(
        store.insert(Document::without_key(), &signature(1)),
        Err(Error::ReadOnly)
    ));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.len(), documents);
    assert_eq!(snapshot.stats().run().unwrap().documents, documents);
    assert_eq!(snapshot.iter().count() as u64, documents);
    for number in 0..documents as u32 {
        assert!(snapshot.contains(number.to_le_bytes()).unwrap());
        assert!(!snapshot.query(&signature(number)).run().unwrap().is_empty());
    }
    assert_eq!(snapshot.pairs().run().unwrap().count(), 0);
    assert!(snapshot.check().run().unwrap().is_clean());
    drop(snapshot);
    assert_eq!(store.close().unwrap(), Closed::File);
}

fn check_is_clean(path: &Path, documents: u64) {
    let report = Store::check(path).run().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert_eq!(report.documents, documents);
}

#[test]
fn reader_leaves_a_clean_store_unchanged() {
    let place = Place::new();
    filled(&place.store(), 40);
    changes_nothing(&place.store(), || {
        check_is_clean(&place.store(), 40);
        read_everything(&place.store(), 40);
    });
}

/// A copy of a store that is open looks like a store after a crash. It can be opened for writing as well.
#[test]
fn reader_leaves_a_crashed_store_unchanged() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 20);
    let store = sealing_after(8).open(&path).unwrap();
    for number in 20..40u32 {
        store
            .insert(number.to_le_bytes(), &signature(number))
            .unwrap();
    }
    let copy = place.file("copy.rsm");
    fs::copy(&path, &copy).unwrap();
    changes_nothing(&copy, || {
        check_is_clean(&copy, 40);
        read_everything(&copy, 40);
    });
    let recovered = place.file("recovered.rsm");
    fs::copy(&path, &recovered).unwrap();
    drop(store);
    drop(Store::open(&recovered).unwrap());
    check_is_clean(&recovered, 40);
    read_everything(&recovered, 40);
}

#[test]
fn reader_accepts_whole_pages_beyond_the_end() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 40);
    for pages in [1, 200] {
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&vec![0x5a; pages * 4_096]).unwrap();
        drop(file);
        let copy = place.file("copy.rsm");
        fs::copy(&path, &copy).unwrap();
        changes_nothing(&copy, || {
            check_is_clean(&copy, 40);
            read_everything(&copy, 40);
        });
        fs::remove_file(&copy).unwrap();
    }
}

#[test]
fn readers_of_a_crashed_store_survive_its_recovery_by_a_writer() {
    let place = Place::new();
    let path = place.store();
    filled(&path, 20);
    let store = Store::open(&path).unwrap();
    let copy = place.file("copy.rsm");
    fs::copy(&path, &copy).unwrap();
    drop(store);
    let reader = Store::open_read_only(&copy).unwrap();
    let before = reader.snapshot().unwrap();
    assert_eq!(before.len(), 20);
    let writer = Store::open(&copy).unwrap();
    writer.insert("later", &signature(99)).unwrap();
    // The snapshot of what was recovered in memory ends where it would read the file; a new one is of the file.
    let old = before.contains("later");
    assert!(matches!(old, Ok(false) | Err(Error::Closed { .. })));
    assert!(reader.snapshot().unwrap().contains("later").unwrap());
    drop(writer);
    assert_eq!(reader.snapshot().unwrap().len(), 21);
    drop(reader);
    drop(Store::open(&copy).unwrap());
    check_is_clean(&copy, 21);
}
