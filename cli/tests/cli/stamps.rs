//! Stamps and payloads: given, renewed, and evicted by.

use crate::support::{Folder, line, text};

fn record(folder: &Folder, key: &str) -> serde_json::Value {
    let ran = folder
        .run(&format!("get a.rsm '{key}' --format jsonl"))
        .expect(0);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn dated(numbers: std::ops::Range<u64>, stamp: impl Fn(u64) -> serde_json::Value) -> String {
    let line = |n| {
        let line = serde_json::json!({
            "id": n, "text": text(n), "meta": {"date": stamp(n)}, "url": format!("http://x/{n}")
        });
        format!("{line}\n")
    };
    numbers.map(line).collect()
}

#[test]
fn stamps_and_payloads_come_from_options_and_fields() {
    let folder = Folder::new();
    folder.write("c.jsonl", dated(0..2, |n| serde_json::json!(1_000 + n)));
    let fields = "--stamp-field meta.date --payload-field url";
    folder
        .run(&format!("build a.rsm c.jsonl {fields}"))
        .expect(0);
    assert_eq!(record(&folder, "1")["stamp"], 1_001);
    assert_eq!(record(&folder, "1")["payload_hex"], "687474703a2f2f782f31");
    let time = serde_json::json!("1970-01-01T01:00:00+00:30");
    folder.write("d.jsonl", dated(2..4, |_| time.clone()));
    for more in ["--if-new", "--upsert"] {
        folder
            .run(&format!("add a.rsm d.jsonl {fields} {more}"))
            .expect(0);
        assert_eq!(record(&folder, "3")["stamp"], 1_800);
    }
    folder.write("e.jsonl", line("e", &text(9)));
    folder.run("add a.rsm e.jsonl --stamp 17").expect(0);
    assert_eq!(record(&folder, "e")["stamp"], 17);
    folder
        .run("add a.rsm e.jsonl --stamp now --upsert")
        .expect(0);
    assert!(record(&folder, "e")["stamp"].as_u64().unwrap() > 1_700_000_000);
    for wrong in [
        serde_json::json!(-1),
        serde_json::json!("soon"),
        serde_json::json!(null),
    ] {
        folder.write("f.jsonl", dated(20..21, |_| wrong.clone()));
        folder
            .run(&format!("add a.rsm f.jsonl {fields}"))
            .expect(3)
            .says(&[
                "field \"meta.date\" is",
                "expected a number from 0 on or a time",
                "f.jsonl:1",
            ]);
    }
    folder.run("add a.rsm e.jsonl --stamp soon").expect(2);
}

#[test]
fn newer_documents_replace_older_ones() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("k", &text(1)));
    folder.write("d.jsonl", line("k", &text(2)));
    folder.run("build a.rsm c.jsonl --stamp 1").expect(0);
    folder.run("build b.rsm d.jsonl --stamp 2").expect(0);
    folder.run("export b.rsm -o b.stream").expect(0);
    folder
        .run("import a.rsm b.stream --keys newer")
        .expect(0)
        .says(&["1 replaced"]);
    assert_eq!(record(&folder, "k")["stamp"], 2);
}

#[test]
fn touch_updates_documents_by_key() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("a", &text(1)) + &line("b", &text(2)));
    folder.run("build a.rsm c.jsonl").expect(0);
    folder
        .run("touch a.rsm a none")
        .expect(1)
        .says(&["touched 1 with stamp ", "not found 1"]);
    assert!(record(&folder, "a")["stamp"].as_u64().unwrap() > 1_700_000_000);
    assert_eq!(record(&folder, "b")["stamp"], 0);
    let time = "1970-01-02T00:00:00Z";
    folder
        .run(&["touch", "a.rsm", "--escaped", "\\#1", "--stamp", time])
        .expect(0);
    assert_eq!(record(&folder, "b")["stamp"], 86_400);
    folder.run("touch missing.rsm a").expect(4);
}

#[test]
fn evict_of_nearly_all_documents_requires_force() {
    let folder = Folder::new();
    let old = |numbers: std::ops::Range<u64>| dated(numbers, |_| serde_json::json!(5));
    folder.write("old.jsonl", old(0..19));
    folder.write("new.jsonl", dated(19..21, |_| serde_json::json!(50)));
    folder.run("build a.rsm old.jsonl").expect(0);
    // Nobody has given stamps: every document would be old.
    folder.run("evict a.rsm --older-than 14d").expect(2).says(&[
        "all stamps are 0",
        "would remove all 19",
        "--force removes them",
    ]);
    folder
        .run("evict a.rsm --older-than 14d --dry-run")
        .expect(0);
    assert_eq!(folder.count("a.rsm"), 19);
    std::fs::remove_file(folder.path("a.rsm")).unwrap();
    let stamps = "--stamp-field meta.date";
    folder
        .run(&format!("build a.rsm old.jsonl new.jsonl {stamps}"))
        .expect(0);
    folder
        .run("evict a.rsm --older-than 6")
        .expect(2)
        .says(&["would remove 19 of 21 documents, more than nine tenths"]);
    assert_eq!(folder.count("a.rsm"), 21);
    folder.run("touch a.rsm 0 --stamp now").expect(0);
    let ran = folder.run("evict a.rsm --older-than 6").expect(0);
    assert!(ran.stdout.starts_with("21\t18\t3\t"), "{}", ran.stdout);
    let forced = "evict a.rsm --older-than 1d --force";
    folder.run(forced).expect(0);
    assert_eq!(folder.count("a.rsm"), 1);
}

#[test]
fn evict_by_any_rule_of_nearly_all_documents_requires_force() {
    let folder = Folder::new();
    folder.write("c.jsonl", dated(0..20, |number| serde_json::json!(number)));
    folder.run("build a.rsm c.jsonl").expect(0);
    for kept in ["0", "1"] {
        folder
            .run(&format!("evict a.rsm --keep-newest {kept}"))
            .expect(2)
            .says(&["--keep-newest would remove", "of 20 documents", "--force"]);
        let dry = format!("evict a.rsm --keep-newest {kept} --dry-run");
        let ran = folder.run(&dry).expect(0);
        let warning = "warning: --keep-newest would remove";
        assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    }
    assert_eq!(folder.count("a.rsm"), 20);
    let forced = "evict a.rsm --keep-newest 0 --force";
    folder.run(forced).expect(0);
    assert_eq!(folder.count("a.rsm"), 0);
    // Nothing is lost where nothing is.
    folder.run("evict a.rsm --keep-newest 0").expect(0);
}

#[test]
fn evict_without_old_documents_reports_its_limit() {
    let folder = Folder::new();
    let seconds = |_| serde_json::json!("2026-01-31T08:00:00Z");
    folder.write("seconds.jsonl", dated(0..3, seconds));
    let stamps = "--stamp-field meta.date";
    folder
        .run(&format!("build a.rsm seconds.jsonl {stamps}"))
        .expect(0);
    folder.run("evict a.rsm --older-than 14").expect(0).says(&[
        "no document has a stamp before 14 (1970-01-01T00:00:14Z)",
        "the oldest has 1769846400 (2026-01-31T08:00:00Z)",
        "such as 14d",
    ]);
    let milliseconds = |_| serde_json::json!(1_769_846_400_000_u64);
    folder.write("milliseconds.jsonl", dated(0..3, milliseconds));
    folder
        .run(&format!("build b.rsm milliseconds.jsonl {stamps}"))
        .expect(0);
    folder.run("evict b.rsm --older-than 14d").expect(0).says(&[
        "warning: 3 of 3 documents have stamps in the future",
        "seconds since 1970",
    ]);
}
