//! reband, and the warnings that lead to it.

use crate::support::{Folder, distinct, edited, line, mixed, text};

#[test]
fn reband_rewrites_a_store() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed() + &line("a-far", &edited(1, 4)));
    folder.run("build a.rsm c.jsonl --threshold 1").expect(0);
    let pairs = |store: &str| {
        let ran = folder.run(&["pairs", store]).expect(0);
        let mut lines: Vec<String> = ran.lines().iter().map(|line| line.to_string()).collect();
        lines.sort();
        lines
    };
    assert_eq!(pairs("a.rsm").len(), 1);
    let ran = folder
        .run("reband a.rsm --threshold 0.7 --format jsonl")
        .expect(0);
    let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["documents"], 8);
    assert!(
        result["postings"].as_u64().unwrap() > 8 * 2,
        "{}",
        ran.stdout
    );
    assert!(result["size_before_bytes"].is_u64() && result["size_after_bytes"].is_u64());
    for part in [
        "new postings for 8 documents: about ",
        " of disk besides the old ones",
        "threshold 0.7",
        "resemblance compact a.rsm",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    folder.run("build b.rsm c.jsonl --threshold 0.7").expect(0);
    assert!(pairs("a.rsm").len() > 5);
    assert_eq!(pairs("a.rsm"), pairs("b.rsm"));
    folder.run("check a.rsm").expect(0);
    folder.write("more.jsonl", line("new", &text(9)));
    folder.run("add a.rsm more.jsonl").expect(0);
    folder.run("compact a.rsm").expect(0);
    assert_eq!(pairs("a.rsm"), pairs("b.rsm"));
    assert_eq!(folder.names(), ["a.rsm", "b.rsm", "c.jsonl", "more.jsonl"]);
}

#[test]
fn reband_applies_every_option() {
    let folder = Folder::new();
    folder
        .run("create a.rsm --minhash 64 --simhash 64")
        .expect(0);
    for (changes, part) in [
        ("--bands 8 --rows 4", "8 bands of 4 rows"),
        ("--threshold 0.5", "threshold 0.5"),
        ("--recall 0.2", "threshold 0.5"),
        ("--max-distance 5", "distance up to 5"),
        ("--expected-documents 77", "77 documents expected"),
        ("--code-bits 64", "77 documents expected"),
    ] {
        let mut arguments = vec!["reband", "a.rsm"];
        arguments.extend(changes.split_whitespace());
        let ran = folder.run(&arguments).expect(0);
        assert!(ran.stderr.contains(part), "{changes}: {}", ran.stderr);
    }
    let ran = folder.run("-q reband a.rsm --recall 0.9").expect(0);
    assert_eq!(ran.stderr, "");
    folder.run("check a.rsm").expect(0);
}

#[test]
fn reband_refuses_changes_of_signatures() {
    let folder = Folder::new();
    folder.run("create a.rsm").expect(0);
    let before = folder.read("a.rsm");
    for (changes, part) in [
        ("", "needs one of --threshold"),
        ("--max-distance 3", "the schema has no SimHash"),
        ("--threshold 2", "threshold: found 2"),
        ("--bands 3", "--rows"),
        ("--bands 3 --rows 3 --recall 0.5", "--recall"),
        ("--code-bits 20", "code_bits: found 20"),
        ("--bands 100 --rows 100", "at most the 128 values"),
    ] {
        let mut arguments = vec!["reband", "a.rsm"];
        arguments.extend(changes.split_whitespace());
        let ran = folder.run(&arguments).expect(2);
        assert!(ran.stderr.contains(part), "{changes}: {}", ran.stderr);
    }
    assert_eq!(folder.read("a.rsm").len(), before.len());
    folder
        .run("reband missing.rsm --threshold 0.5")
        .expect(4)
        .says(&["missing.rsm"]);
    folder.write("text", "x".repeat(10_000));
    folder
        .run("reband text --threshold 0.5")
        .expect(6)
        .says(&["text", "is not a resemblance store"]);
}

#[test]
fn outgrown_design_is_reported_once_and_fixed_by_reband() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..30));
    folder.write("d.jsonl", distinct(30..40));
    let warnings = |arguments: &[&str]| {
        let ran = folder.run(arguments).expect(0);
        ran.stderr.matches("warning: ").count()
    };
    let build = ["build", "a.rsm", "c.jsonl", "--expected", "30"];
    assert_eq!(warnings(&build), 0);
    let add = "add a.rsm d.jsonl --commit-every 2";
    let ran = folder.run(add).expect(0).says(&[
        "warning: 40 documents are more than the 30",
        "resemblance reband STORE --expected-documents N",
    ]);
    assert_eq!(ran.stderr.matches("warning: ").count(), 1);
    assert_eq!(
        warnings(&["build", "b.rsm", "c.jsonl", "--expected", "29"]),
        1
    );
    assert_eq!(warnings(&["-q", "stats", "a.rsm"]), 0);
    assert_eq!(warnings(&["stats", "a.rsm"]), 1);
    let reband = "reband a.rsm --expected-documents 1000";
    let ran = folder.run(reband).expect(0);
    assert!(ran.stderr.contains("do not change"), "{}", ran.stderr);
    assert_eq!(warnings(&["stats", "a.rsm"]), 0);
    let stats = folder.run("stats a.rsm --format tsv").expect(0);
    assert!(stats.lines().contains(&"store\t\texpected_documents\t1000"));
}
