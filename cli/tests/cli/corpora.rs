//! Which arguments count as a corpus.

use crate::support::{Folder, line};

#[cfg(not(feature = "remote"))]
#[test]
fn a_build_without_servers_says_how_to_get_them() {
    let folder = crate::support::Folder::new();
    for input in [
        "s3://bucket/key.jsonl",
        "s3://bucket/*",
        "https://example.org/a.jsonl",
    ] {
        let refused = folder.run(&["pairs", input]).expect(4);
        refused.says(&[input, "--features remote"]);
    }
}

#[cfg(not(feature = "sqlite"))]
#[test]
fn a_build_without_sqlite_says_which_one_reads_it() {
    let folder = crate::support::Folder::new();
    folder.write("in/c.any", b"SQLite format 3\0 and pages");
    folder.write("in/d.jsonl", crate::support::distinct(0..3));
    for corpus in ["in/c.any", "in"] {
        folder.run(&["pairs", corpus]).expect(3).says(&[
            "SQLite",
            "requires the feature `sqlite`",
            "--features sqlite",
        ]);
    }
}

#[cfg(not(feature = "warc"))]
#[test]
fn a_build_without_warc_says_which_one_reads_it() {
    let folder = crate::support::Folder::new();
    let record = "WARC/1.0\r\nWARC-Type: conversion\r\n";
    folder.write("in/c.any", record);
    folder.write("in/d.warc", record);
    for corpus in ["in/c.any", "in/d.warc", "in"] {
        folder.run(&["pairs", corpus]).expect(3).says(&[
            "WARC",
            "requires the feature `warc`",
            "--features warc",
        ]);
    }
}

/// Beyond the memory for ids, documents of different files replaced each other.
#[test]
fn ids_of_more_files_than_fit_into_memory_are_not_confused() {
    let folder = Folder::new();
    let file = |words: &str| -> String {
        let texts = (0..1_700).map(|id| line(&id.to_string(), &format!("{words} {id}")));
        texts.collect()
    };
    folder.write("a.jsonl", file("a line"));
    folder.write("b.jsonl", file("entirely different"));
    folder.run("create s.rsm --words 1").expect(0);
    for option in ["--upsert", "--if-new"] {
        let add = format!("add s.rsm a.jsonl b.jsonl --memory 256K {option}");
        let full = folder.run(&*add).expect(4);
        full.says(&[
            "has room for 1638 ids to compare between files",
            "--id path",
        ]);
    }
    let dry = "dedup a.jsonl b.jsonl --memory 256K --dry-run --report r.tsv";
    let found = folder.run(dry).expect(0).stderr;
    let room = "warning: a quarter of the memory (--memory) has room for 1638 ids";
    assert!(found.contains(room), "{found}");
    folder.run("add s.rsm b.jsonl a.jsonl --upsert").expect(0);
    folder
        .run("add s.rsm a.jsonl b.jsonl --upsert --memory 1M")
        .expect(0);
}
