//! Who may use a store at the same time.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use resemblance::Store;

use crate::signals::adding;
use crate::support::{Folder, distinct, line, mixed, text};

const READING: [&[&str]; 7] = [
    &["check", "a.rsm"],
    &["query", "a.rsm", "text"],
    &["get", "a.rsm", "1"],
    &["pairs", "a.rsm"],
    &["clusters", "a.rsm"],
    &["stats", "a.rsm"],
    &["dedup", "c.jsonl", "-o", "-", "--against", "a.rsm"],
];

const WRITING: [&[&str]; 5] = [
    &["add", "a.rsm", "c.jsonl"],
    &["remove", "a.rsm", "1"],
    &["evict", "a.rsm", "--keep-newest", "1"],
    &["compact", "a.rsm"],
    &["reband", "a.rsm", "--recall", "0.5"],
];

/// A folder with a store of three documents, and a corpus.
fn filled() -> Folder {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..3));
    folder.run("build a.rsm c.jsonl -q").expect(0);
    folder.write("c.jsonl", mixed());
    folder
}

#[test]
fn writer_excludes_readers_and_writers() {
    let folder = filled();
    let store = Store::open(folder.path("a.rsm")).unwrap();
    let before = folder.read("a.rsm");
    for arguments in READING.iter().chain(&WRITING) {
        folder
            .run(arguments)
            .expect(5)
            .says(&["a.rsm is in use by another process"]);
    }
    // These would make it anew.
    for arguments in [
        &["create", "a.rsm"][..],
        &["build", "a.rsm", "c.jsonl"],
        &["dedup", "c.jsonl", "-o", "a.rsm"],
    ] {
        folder
            .run(arguments)
            .expect(4)
            .says(&["a.rsm", "already exists"]);
    }
    let forced = "dedup c.jsonl -o a.rsm --force";
    folder.run(forced).expect(2).says(&["a.rsm", "store"]);
    // Another name is the same file.
    std::fs::hard_link(folder.path("a.rsm"), folder.path("b.rsm")).unwrap();
    std::os::unix::fs::symlink("a.rsm", folder.path("c.rsm")).unwrap();
    for name in ["b.rsm", "c.rsm", "./a.rsm"] {
        folder.run(&["stats", name]).expect(5).says(&[name]);
        folder
            .run(&format!("remove {name} 1"))
            .expect(5)
            .says(&[name]);
    }
    assert!(folder.read("a.rsm") == before);
    // None of it is in the way of the one that has it.
    assert!(store.remove("2").unwrap().is_some());
    drop(store);
    assert_eq!(folder.count("a.rsm"), 2);
    assert_eq!(folder.names(), ["a.rsm", "b.rsm", "c.jsonl", "c.rsm"]);
    folder.run("get c.rsm 1").expect(0);
}

#[test]
fn readers_share_a_store_and_exclude_writers() {
    let folder = filled();
    let path = folder.path("a.rsm");
    let readers = [(); 2].map(|()| Store::open_read_only(&path).unwrap());
    for arguments in READING {
        let ran = folder.run(arguments);
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    }
    for arguments in WRITING {
        folder
            .run(arguments)
            .expect(5)
            .says(&["a.rsm is in use by another process"]);
    }
    assert!(
        readers
            .iter()
            .all(|reader| reader.snapshot().unwrap().len() == 3)
    );
    drop(readers);
    folder.run("remove a.rsm 1").expect(0);
}

/// A process that reads a store as long as there may be more questions.
fn asking(folder: &Folder) -> Child {
    let mut command = folder.command("query a.rsm --corpus -");
    command.stdin(Stdio::piped()).spawn().unwrap()
}

/// The kernel lets go of the lock of a process that ends in whatever way.
#[test]
fn a_killed_process_leaves_no_lock() {
    let folder = filled();
    let mut documents = 3;
    for turn in 0..5_u64 {
        // One that writes, in the middle of it ...
        let (mut child, stdin, _) = adding(&folder, &["--upsert"]);
        folder.run("stats a.rsm").expect(5);
        child.kill().unwrap();
        child.wait().unwrap();
        let new = line(&format!("new {turn}"), &text(9_000 + turn));
        folder.write("new.jsonl", new);
        folder.run("add a.rsm new.jsonl -q").expect(0);
        drop(stdin);
        let count = folder.count("a.rsm");
        assert!(count > documents, "{count} after {documents}");
        documents = count;

        // ... and one that reads, waiting for more questions.
        let mut reader = asking(&folder);
        let start = Instant::now();
        while folder.run("remove a.rsm nothing").code != Some(5) {
            assert!(start.elapsed() < Duration::from_secs(60), "it never opens");
            if reader.try_wait().unwrap().is_some() {
                // It met the writer that was to meet it.
                reader = asking(&folder);
            }
        }
        folder.run("stats a.rsm").expect(0);
        reader.kill().unwrap();
        reader.wait().unwrap();
        folder.run("remove a.rsm nothing").expect(1);
    }
    folder.run("check a.rsm").expect(0);
}
