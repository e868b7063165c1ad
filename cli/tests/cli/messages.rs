//! What people see: errors, headers, and what -v says.

use std::process::Command;

use crate::support::{Folder, edited, line, mixed, ran, text};

#[test]
fn tsv_has_a_header_unless_it_is_not_wanted() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    // Not the helper, which leaves the header out.
    let rows = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_resemblance"));
        command.args(arguments).current_dir(folder.path("."));
        ran(command.output().unwrap()).expect(0).stdout
    };
    let with = rows(&["pairs", "c.jsonl"]);
    let (header, rest) = with.split_once('\n').unwrap();
    assert_eq!(header, "key_a\tkey_b\tsimilarity");
    assert_eq!(rows(&["pairs", "c.jsonl", "--no-header"]), rest);
    assert_eq!(rows(&["pairs", "c.jsonl", "--header"]), with);
    folder.run(&["build", "a.rsm", "c.jsonl"]).expect(0);
    let stats = rows(&["stats", "a.rsm"]);
    assert!(
        stats.starts_with("section\titem\tmeasure\tvalue\nstore\t"),
        "{stats}"
    );
}

#[test]
fn stats_are_one_object_for_programs() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run(&["build", "a.rsm", "c.jsonl"]).expect(0);
    let ran = folder
        .run(&["stats", "a.rsm", "--format", "json"])
        .expect(0);
    let stats: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(stats["store"]["documents"], 7);
    assert!(
        stats["schema"].as_str().unwrap().contains("words"),
        "{stats}"
    );
    for list in ["runs", "merges", "tables", "lanes", "buckets"] {
        assert!(stats[list].is_array(), "{list}");
    }
    let tables = stats["tables"].as_array().unwrap();
    let documents = tables.iter().find(|table| table["table"] == "documents");
    assert_eq!(documents.unwrap()["rows"], 7);
    assert!(stats["lanes"][0]["role"].is_string());
    assert!(stats["buckets"][0]["samples"][0]["id"].is_u64());
}

#[test]
fn errors_have_cause_place_and_hint_in_the_words_of_the_tool() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed() + "{\"id\": 1}\n");
    let ran = folder.run(&["pairs", "c.jsonl", "-q"]).expect(3);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            "resemblance: field \"text\" is missing",
            "  at c.jsonl:8",
            "  its fields are \"id\": name one with --text-field",
            "  --skip-bad skips such documents",
        ]
    );
    folder.run(&["create", "a.rsm"]).expect(0);
    let ran = folder
        .run(&["query", "a.rsm", "some text", "--threshold", "0.5"])
        .expect(2);
    assert!(!ran.stderr.contains('_'), "{}", ran.stderr);
    ran.says(&["--threshold: found 0.5", "--accept-lower-recall", "--scan"]);
}

#[test]
fn every_verb_says_more_with_v() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run(&["build", "a.rsm", "c.jsonl"]).expect(0);
    folder.run(&["build", "b.rsm", "c.jsonl"]).expect(0);
    for arguments in [
        &["query", "a.rsm", "text"][..],
        &["get", "a.rsm", "a"],
        &["pairs", "a.rsm"],
        &["clusters", "c.jsonl"],
        &["dedup", "c.jsonl", "-o", "-"],
        &["stats", "a.rsm"],
        &["check", "a.rsm"],
        &["add", "a.rsm", "c.jsonl", "--if-new"],
        &["touch", "a.rsm", "a"],
        &["remove", "a.rsm", "a"],
        &["evict", "a.rsm", "--keep-newest", "100"],
        &["export", "a.rsm", "-o", "a.stream"],
        &["import", "b.rsm", "a.stream", "--keys", "skip"],
        &["compact", "a.rsm"],
        &["backup", "a.rsm", "-o", "copy.rsm"],
        &["tune"],
    ] {
        let more = [arguments, &["-v"]].concat();
        let ran = folder.run(&more);
        assert!(
            ran.stderr.contains("resemblance: took "),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
    let ran = folder.run(&["get", "a.rsm", "b", "-v"]).expect(0);
    assert!(
        ran.stderr.contains("a.rsm: 6 documents; "),
        "{}",
        ran.stderr
    );
}

#[test]
fn additions_can_ask_for_nearer_duplicates() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("a", &text(1)));
    folder.write(
        "d.jsonl",
        line("near", &edited(1, 2)) + &line("same", &text(1)),
    );
    folder.run(&["build", "a.rsm", "c.jsonl"]).expect(0);
    folder
        .run(&["add", "a.rsm", "d.jsonl", "--if-new", "--threshold", "0.99"])
        .expect(0)
        .says(&["read 2, added 1, dropped 1"]);
    folder.run(&["get", "a.rsm", "near"]).expect(0);
    folder
        .run(&["add", "a.rsm", "d.jsonl", "--if-new", "--threshold", "0.99"])
        .expect(0)
        .says(&["read 2, added 0, dropped 1", "known keys 1"]);
    folder
        .run(&["add", "a.rsm", "d.jsonl", "--if-new", "--threshold", "0.5"])
        .expect(2)
        .says(&["--threshold 0.5 lies below 0.8"]);
    folder
        .run(&["add", "a.rsm", "d.jsonl", "--threshold", "0.9"])
        .expect(2);
}
