//! Corpora of several batches. Looking documents up together gives the same result as looking them
//! up alone.

use crate::support::{Folder, edited, line, text};

/// Returns a corpus that gives each command more than one batch. Some documents occur twice, and
/// some are near others. Also returns the lines of those that are near no earlier document.
fn corpus() -> (String, Vec<String>) {
    let mut lines = String::new();
    let mut firsts = Vec::new();
    for number in 0..6_000 {
        // the copies are in the same batch, in the next one, and far behind
        let (source, is_copy) = match number {
            n if n % 10 == 9 => (n - 3, true),
            n if n % 1_000 == 998 && n > 4_096 => (n - 4_093, true),
            n => (n, false),
        };
        let changes = u64::from(is_copy && number % 20 == 9);
        let line = line(&format!("k{number}"), &edited(source, changes));
        lines += &line;
        if !is_copy {
            firsts.push(line);
        }
    }
    (lines, firsts)
}

#[test]
fn every_verb_finds_matches_across_batches() {
    let folder = Folder::new();
    let (lines, firsts) = corpus();
    folder.write("c.jsonl", &lines);
    folder.run("create a.rsm").expect(0);
    let kept = format!("{}", firsts.len());
    let dropped = format!("dropped {}", 6_000 - firsts.len());
    folder
        .run("add a.rsm c.jsonl --if-new")
        .expect(0)
        .says(&[&format!("read 6000, added {kept}"), &dropped]);
    folder
        .run("dedup c.jsonl -o d.jsonl")
        .expect(0)
        .says(&[&format!("read 6000, kept {kept}"), &dropped]);
    assert_eq!(folder.read_text("d.jsonl"), firsts.concat());
    let found = folder
        .run("query a.rsm --corpus c.jsonl --limit 1")
        .expect(0);
    assert_eq!(found.lines().len(), 6_000);
    for (number, line) in found.lines().iter().enumerate() {
        assert!(line.starts_with(&format!("k{number}\t")), "{line}");
    }
    folder
        .run("dedup c.jsonl --against a.rsm -o e.jsonl")
        .expect(0)
        .says(&["read 6000, kept 0, dropped 6000"]);
}

#[test]
fn first_bad_document_is_named_in_any_batch() {
    let folder = Folder::new();
    let mut lines: Vec<String> = (0..5_000)
        .map(|number: u64| line(&number.to_string(), &text(number)))
        .collect();
    lines[4_500] = line("7", &text(1));
    lines[4_600] = "no document\n".into();
    folder.write("c.jsonl", lines.concat());
    folder.run("create a.rsm").expect(0);
    folder.run("add a.rsm c.jsonl").expect(3).says(&[
        "c.jsonl:4501",
        "\"7\" is already in the store",
        "nothing was added",
    ]);
    folder
        .run("add a.rsm c.jsonl --commit-every 4550")
        .expect(3)
        .says(&["c.jsonl:4501", "nothing was added"]);
    folder
        .run("add a.rsm c.jsonl --if-new --commit-every 4550")
        .expect(3)
        .says(&["c.jsonl:4601", "committed 4549 documents", "--skip 4550"]);
    folder
        .run("add a.rsm c.jsonl --skip 4550 --skip-bad")
        .expect(0)
        .says(&["read 450, added 449, dropped 0, skipped 1"]);
    assert_eq!(folder.count("a.rsm"), 4_998);
}
