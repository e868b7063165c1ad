//! Which arguments count as a corpus.

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
