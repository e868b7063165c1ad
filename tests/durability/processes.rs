//! Several handles, several processes, and processes that end without warning.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};

#[cfg(unix)]
use crate::common::killing::prepare;
use crate::common::killing::{command, store_of};
use crate::common::small::{filled, schema, signature};
use crate::common::{Place, check_clean, impatient, sealing_after, stats};
use resemblance::{Bounds, BulkOptions, Closed, Collection, Document, Error, KeptDocuments, Store};

fn holds(path: &Path, documents: u64) {
    let snapshot = Store::open(path).unwrap().snapshot().unwrap();
    assert_eq!(snapshot.len(), documents);
    for number in 0..documents as u32 {
        assert!(snapshot.contains(number.to_le_bytes()).unwrap());
        assert!(!snapshot.query(&signature(number)).run().unwrap().is_empty());
    }
}

#[test]
fn one_handle_writes_and_many_read() {
    let place = Place::new();
    filled(&place.store(), 30);
    let path = place.store();
    let locked =
        |error: Error| matches!(&error, Error::Locked { path, .. } if *path == place.store());
    let store = Store::open(&path).unwrap();
    assert!(locked(impatient().open(&path).err().unwrap()));
    assert!(locked(impatient().compact(&path).run().err().unwrap()));
    assert_eq!(child("opens", &path), "locked");
    assert_eq!(child("reads", &path), "opened");

    let readers: Vec<Store> = (0..3)
        .map(|_| Store::open_read_only(&path).unwrap())
        .collect();
    drop(store);
    assert_eq!(child("opens", &path), "opened");
    assert!(locked(impatient().compact(&path).run().err().unwrap()));
    for reader in &readers {
        let refused = |error: Option<Error>| assert!(matches!(error, Some(Error::ReadOnly)));
        refused(reader.begin_write().err());
        refused(reader.try_begin_write().err());
        refused(reader.insert(Document::without_key(), &signature(1)).err());
        refused(reader.insert_if_new("k", &signature(1)).err());
        refused(reader.remove("k").err());
        assert_eq!(reader.snapshot().unwrap().len(), 30);
    }
    drop(readers);
    impatient().compact(&path).run().unwrap();
    holds(&path, 30);
}

const PROGRAM: &str = "processes::other_process_in_a_child";

/// Returns what the other process prints.
fn said(mut command: Command) -> String {
    let output = command.stdout(Stdio::piped()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines();
    let said = lines.find_map(|line| line.split_once("child says "));
    said.map_or("nothing", |said| said.1).to_owned()
}

fn child(part: &str, path: &Path) -> String {
    let mut command = command(PROGRAM, path);
    command.env(PART, part);
    said(command)
}

const PART: &str = "RESEMBLANCE_PART";

/// Not a test: the other process of the tests here.
#[test]
fn other_process_in_a_child() {
    let Some(path) = store_of(PROGRAM) else {
        return;
    };
    let opened = match std::env::var(PART).unwrap().as_str() {
        "opens" => impatient().open(path),
        "reads" => Store::open_read_only(path),
        "moves" => return moves(),
        _ => return fills(&path),
    };
    match opened {
        Ok(_) => println!("child says opened"),
        Err(Error::Locked { .. }) => println!("child says locked"),
        Err(error) => println!("child says {error:?}"),
    }
}

/// A process that changes its folder while files with relative names are open. In the new folder
/// is another store of the same name.
fn moves() {
    let options = BulkOptions::new().memory_bytes(1);
    let store = Store::create("store.rsm", schema()).unwrap();
    let mut build = Store::bulk_build("built.rsm", schema(), &options).unwrap();
    let mut collection = Collection::new(Path::new(""), schema(), &options).unwrap();
    let mut kept = KeptDocuments::create(Path::new("."), schema(), &impatient()).unwrap();
    kept.set_memory_bytes(1);
    let later = std::path::absolute("later").unwrap();
    let snapshot = store.snapshot().unwrap();
    let backup = snapshot.backup("copy.rsm").on_progress(|_| {
        std::env::set_current_dir(&later).unwrap();
        ControlFlow::Continue(())
    });
    assert!(backup.run().unwrap().size_bytes > 0);
    drop(snapshot);
    for number in 0..50 {
        let (key, signature) = (number.to_string(), signature(number));
        store.insert(&key, &signature).unwrap();
        build.insert(Document::new(&key), &signature).unwrap();
        let document = Document::new(&key);
        collection.insert(document, &signature).unwrap();
        let document = Document::new(&key);
        let novelty = kept.insert_if_new(document, &signature, Bounds::new(), None);
        assert!(novelty.unwrap().is_new());
    }
    assert_eq!(collection.finish().unwrap().len(), 50);
    build.finish().unwrap();
    assert!(stats(&store).file_bytes > 0);
    assert_eq!(store.close().unwrap(), Closed::File);
    println!("child says moved");
}

#[test]
fn relative_names_last_when_a_process_changes_its_folder() {
    let place = Place::new();
    let later = place.file("later");
    std::fs::create_dir(&later).unwrap();
    filled(&later.join("store.rsm"), 7);
    let mut command = command(PROGRAM, &place.store());
    command.env(PART, "moves").current_dir(place.file(""));
    assert_eq!(said(command), "moved");
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&later), ["store.rsm"]);
    let expected = ["built.rsm", "copy.rsm", "later", "store.rsm"];
    assert_eq!(names(&place.file("")), expected);
    for (path, documents) in [
        (place.file("copy.rsm"), 0),
        (place.store(), 50),
        (place.file("built.rsm"), 50),
        (later.join("store.rsm"), 7),
    ] {
        let snapshot = Store::open(path).unwrap().snapshot().unwrap();
        assert_eq!(snapshot.len(), documents);
    }
}

/// A process whose files have a maximum length, as on a full disk, inserts documents of 20 kB until
/// one is refused.
fn fills(path: &Path) {
    let store = sealing_after(8).create(path, schema()).unwrap();
    let payload = [7; 20_000];
    let mut committed = 0u64;
    let error = loop {
        let mut transaction = store.begin_write().unwrap();
        let key = committed.to_le_bytes();
        let document = Document::new(&key).payload(&payload);
        let inserted = transaction.insert(document, &signature(committed as u32));
        match inserted.and_then(|_| transaction.commit()) {
            Ok(()) => committed += 1,
            Err(error) => break error,
        }
    };
    let refused = matches!(
        error,
        Error::Io { .. } | Error::Closed { .. } | Error::Storage(_)
    );
    // Afterwards the handle says what to do, and never reports a document as stored that is not.
    let later = store.insert(Document::without_key(), &signature(1)).err();
    let closed = matches!(later, Some(Error::Closed { .. } | Error::Io { .. }));
    // Reads continue or are refused. They never show uncommitted data.
    let read = store
        .snapshot()
        .and_then(|snapshot| snapshot.get(0u64.to_le_bytes()));
    let sane = match (&read, store.snapshot()) {
        (Ok(record), Ok(snapshot)) => record.is_some() && snapshot.len() == committed,
        _ => true,
    };
    println!("child says {refused} {closed} {committed} {sane} {error:?} {later:?}");
}

/// Starts the part in a shell that limits the length of files and makes writing beyond an error.
#[cfg(unix)]
#[test]
fn a_full_disk_loses_nothing_that_was_committed() {
    let place = Place::new();
    let path = place.store();
    let script = "trap '' XFSZ; ulimit -f 4000; exec \"$@\"";
    let executable = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(executable);
    let mut command = prepare(command, PROGRAM, &path);
    command.env(PART, "fills");
    let said = said(command);
    let words: Vec<&str> = said.split(' ').collect();
    assert_eq!(words[..2], ["true", "true"], "{said}");
    let committed: u64 = words[2].parse().unwrap();
    assert!(committed > 20 && words[3] == "true", "{said}");
    let store = Store::open(&path).unwrap();
    let documents = store.snapshot().unwrap().len();
    // The outcome of the commit that failed is unknown until the store is opened again.
    assert!(
        (committed..=committed + 1).contains(&documents),
        "{documents}: {said}"
    );
    store
        .insert(Document::without_key(), &signature(99))
        .unwrap();
    drop(store);
    check_clean(&path);
}
