//! Checks who may read a store's files, while they are made and afterwards, and the files that
//! killed processes leave.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::Command;

use crate::common::Place;
use crate::common::small::{filled, schema, signature};
use resemblance::schema::Rebanding;
use resemblance::{BulkOptions, Closed, Document, MinHash, Schema, Signature, Store};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The modes of all files in a folder.
fn modes(folder: &Path) -> BTreeMap<String, u32> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                mode(&entry.path()),
            )
        })
        .collect()
}

/// The mode that this process gives to new files.
fn usual(place: &Place) -> u32 {
    let path = place.file("usual");
    fs::write(&path, "").unwrap();
    let usual = mode(&path);
    fs::remove_file(path).unwrap();
    usual
}

#[test]
fn unfinished_build_is_private() {
    let place = Place::new();
    let usual = usual(&place);
    let folder = place.store().parent().unwrap().to_owned();
    let options = BulkOptions::new();
    let mut build = Store::bulk_build(place.store(), schema(), &options).unwrap();
    build.insert(Document::new("a"), &signature(1)).unwrap();
    let during = modes(&folder);
    assert_eq!(during.len(), 1);
    assert!(during.values().all(|mode| *mode == 0o600), "{during:?}");
    build
        .on_progress(|_| {
            assert!(modes(&folder).values().all(|mode| *mode == 0o600));
            ControlFlow::Continue(())
        })
        .finish()
        .unwrap();
    assert_eq!(modes(&folder), [("store.rsm".to_owned(), usual)].into());
    Store::create(place.file("created.rsm"), schema()).unwrap();
    assert_eq!(mode(&place.file("created.rsm")), usual);
}

#[test]
fn copies_have_the_mode_of_their_source() {
    for given in [0o600, 0o640, 0o444, 0o666] {
        let place = Place::new();
        let path = place.store();
        filled(&path, 30);
        set_mode(&path, given);
        let snapshot = Store::open_read_only(&path).unwrap().snapshot().unwrap();
        let folder = path.parent().unwrap();
        let copy = place.file("copy.rsm");
        let watch = |_| {
            let during = modes(folder);
            let others = during.iter().filter(|(name, _)| *name != "store.rsm");
            let mut others = others.map(|(_, mode)| *mode);
            assert!(others.all(|mode| mode == 0o600), "{during:?}");
            ControlFlow::Continue(())
        };
        snapshot.backup(&copy).on_progress(watch).run().unwrap();
        drop(snapshot);
        assert_eq!(mode(&copy), given);
        let repaired = place.file("repaired.rsm");
        Store::repair(&path, &repaired).run().unwrap();
        assert_eq!(mode(&repaired), given);
    }
}

#[test]
fn compact_and_reband_leave_the_mode_as_it_is() {
    let place = Place::new();
    let path = place.store();
    let schema = Schema::builder().minhash(MinHash::new(64)).build().unwrap();
    let store = Store::create(&path, schema).unwrap();
    set_mode(&path, 0o640);
    for number in 0..20 {
        store
            .insert(
                Document::without_key(),
                &Signature::from_minhash(vec![number; 64]),
            )
            .unwrap();
    }
    assert_eq!(store.close().unwrap(), Closed::File);
    Store::compact(&path).run().unwrap();
    assert_eq!(mode(&path), 0o640);
    let rebanding = Rebanding::new().threshold(0.5);
    Store::reband(&path, &rebanding).run().unwrap();
    assert_eq!(mode(&path), 0o640);
}

/// Not a test: what this binary does when the test below starts it again.
#[test]
fn unfinished_build_in_a_child() {
    let Ok(path) = std::env::var("HALF_A_BUILD") else {
        return;
    };
    let mut build = Store::bulk_build(path, schema(), &BulkOptions::new()).unwrap();
    build.insert(Document::new("a"), &signature(1)).unwrap();
    std::process::abort();
}

#[cfg(target_os = "linux")]
#[test]
fn leftovers_of_a_killed_process_are_removed_by_the_next() {
    let place = Place::new();
    let path = place.store();
    let folder = path.parent().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["private_files::unfinished_build_in_a_child", "--exact"])
        .env("HALF_A_BUILD", &path);
    assert!(!child.output().unwrap().status.success());
    let left: Vec<String> = modes(folder).into_keys().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].starts_with(".resemblance-"));
    // One that still runs keeps its file.
    let other = place.file("other.rsm");
    let build = Store::bulk_build(&other, schema(), &BulkOptions::new()).unwrap();
    assert!(!folder.join(&left[0]).exists());
    assert_eq!(modes(folder).len(), 1);
    build.finish().unwrap();
    assert_eq!(modes(folder).into_keys().collect::<Vec<_>>(), ["other.rsm"]);
}
