//! add: commits, resuming, keys that are there, all or nothing.

use crate::support::{Folder, distinct, edited, line, mixed, text};

fn created() -> Folder {
    let folder = Folder::new();
    folder.run("create a.rsm").expect(0);
    folder
}

#[test]
fn add_reads_corpora_in_their_order() {
    let folder = created();
    folder.write("b.jsonl", distinct(0..3));
    folder.write("a.jsonl", distinct(3..5));
    folder
        .run("add a.rsm b.jsonl a.jsonl")
        .expect(0)
        .says(&["read 5, added 5, dropped 0, skipped 0, empty 0"]);
    for number in ["0", "1", "2", "3", "4"] {
        let record = folder
            .run(&format!("get a.rsm {number} --format jsonl"))
            .expect(0);
        assert!(record.stdout.starts_with(&format!("{{\"id\":{number},")));
    }
}

#[test]
fn add_refuses_an_existing_key_by_default() {
    let folder = created();
    folder.write("c.jsonl", line("k", &text(1)));
    folder.write("d.jsonl", line("new", &text(2)) + &line("k", &text(3)));
    folder.run("add a.rsm c.jsonl").expect(0);
    folder.run("add a.rsm d.jsonl").expect(3).says(&[
        "d.jsonl:2",
        "\"k\" is already in the store",
        "committed 0 documents",
        "--skip 0",
    ]);
    assert_eq!(folder.count("a.rsm"), 1);
    folder
        .run("add a.rsm d.jsonl --skip-bad")
        .expect(0)
        .says(&["read 2, added 1, dropped 0, skipped 1"]);
    folder
        .run("add a.rsm d.jsonl --upsert")
        .expect(0)
        .says(&["read 2, added 1", "replaced 1, unchanged 1"]);
    assert_eq!(folder.count("a.rsm"), 2);
    let found = folder.run(&["query", "a.rsm", &text(3)]).expect(0);
    assert_eq!(found.stdout, "k\t1.000000\n");
    folder.run(&["query", "a.rsm", &text(1)]).expect(1);
}

#[test]
fn if_new_skips_near_duplicates_and_existing_keys() {
    let folder = created();
    folder.write("c.jsonl", mixed() + &line("a", &text(9)));
    folder
        .run("add a.rsm c.jsonl --if-new")
        .expect(0)
        .says(&["read 8, added 4, dropped 3, skipped 0, empty 0, known keys 1"]);
    folder
        .run("add a.rsm c.jsonl --if-new")
        .expect(0)
        .says(&["added 0, dropped 3", "known keys 5"]);
    folder.run("pairs a.rsm").expect(1);
}

#[test]
fn failed_add_keeps_its_commits_and_can_be_resumed() {
    let folder = created();
    let good = distinct(0..25);
    let broken: String = good.lines().take(17).map(|l| format!("{l}\n")).collect();
    folder.write("c.jsonl", broken + "{\"id\": 1}\n");
    let ran = folder
        .run("add a.rsm c.jsonl --commit-every 10 -v")
        .expect(3);
    assert!(
        ran.stderr
            .contains("committed 10 documents of the first 10\n")
    );
    ran.says(&[
        "c.jsonl:18",
        "field \"text\" is missing",
        "committed 10 documents",
        "begins at c.jsonl:11",
        "--skip 10",
    ]);
    assert_eq!(folder.count("a.rsm"), 10);
    folder.write("c.jsonl", good);
    folder
        .run("add a.rsm c.jsonl --skip 10")
        .expect(0)
        .says(&["read 15, added 15"]);
    assert_eq!(folder.count("a.rsm"), 25);
}

#[test]
fn skip_counts_bad_and_omitted_documents() {
    let folder = created();
    let lines = [
        line("0", &text(0)),
        "bad\n".into(),
        "\n".into(),
        line("0-near", &edited(0, 1)),
        line("1", &text(1)),
        line("2", &text(2)),
        "{\n".into(),
        line("3", &text(3)),
    ];
    folder.write("c.jsonl", lines.concat());
    let add = ["add", "a.rsm", "c.jsonl", "--if-new", "--commit-every", "4"];
    let mut skipping = add.to_vec();
    skipping.push("--skip-bad");
    // the first four: 0, bad, 0-near, 1
    let ran = folder.run(&add).expect(3);
    ran.says(&["c.jsonl:2", "--skip 0"]);
    folder
        .run(&skipping)
        .expect(0)
        .says(&["read 7, added 4, dropped 1, skipped 2", "blank lines 1"]);
    folder.write(
        "d.jsonl",
        lines.concat().replace("bad\n", &line("fine", &text(8))),
    );
    let folder = created_with(&folder);
    let ran = folder.run(&add).expect(3);
    ran.says(&[
        "c.jsonl:7",
        "committed 3 documents",
        "begins at c.jsonl:6",
        "--skip 4",
    ]);
}

/// A new folder whose c.jsonl is the other's d.jsonl.
fn created_with(other: &Folder) -> Folder {
    let folder = created();
    folder.write("c.jsonl", other.read("d.jsonl"));
    folder
}

#[test]
fn atomic_add_commits_all_or_nothing() {
    let folder = created();
    folder.write("c.jsonl", distinct(0..300) + "bad\n");
    folder
        .run("add a.rsm c.jsonl --atomic")
        .expect(3)
        .says(&["c.jsonl:301", "nothing was added"]);
    assert_eq!(folder.count("a.rsm"), 0);
    folder
        .run("add a.rsm c.jsonl --atomic --skip-bad")
        .expect(0);
    assert_eq!(folder.count("a.rsm"), 300);
    folder
        .run("add a.rsm c.jsonl --atomic --commit-every 5")
        .expect(2);
}

#[test]
fn documents_without_features_are_counted_and_resemble_nothing() {
    let folder = created();
    folder.write(
        "c.jsonl",
        line("x", "") + &line("y", " ...! ") + &line("z", &text(1)),
    );
    folder
        .run("add a.rsm c.jsonl --if-new")
        .expect(0)
        .says(&["added 3, dropped 0, skipped 0, empty 2"]);
    folder.run("pairs a.rsm").expect(1);
    folder.run("query a.rsm ''").expect(1);
}

#[test]
fn add_never_creates_a_store() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder
        .run("add a.rsm c.jsonl")
        .expect(4)
        .says(&["a.rsm does not exist"]);
    assert_eq!(folder.names(), ["c.jsonl"]);
}

/// Lines in byte order, whatever file they are in.
fn sorted(texts: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = texts
        .iter()
        .flat_map(|text| text.lines().map(str::to_owned))
        .collect();
    lines.sort();
    lines
}

#[test]
fn if_new_writes_what_is_added_and_what_is_left_out() {
    let known = line("a", &text(9));
    for input in ["c.jsonl", "-"] {
        let folder = created();
        let corpus = mixed() + &known;
        folder.write("c.jsonl", &corpus);
        let add = ["add", "a.rsm", input, "--if-new", "-o", "new.jsonl"];
        let others = ["--dropped", "old.jsonl", "--report", "r.tsv"];
        let ran = folder.run_with_input(&[&add[..], &others].concat(), corpus.as_bytes());
        ran.expect(0).says(&["added 4, dropped 3", "known keys 1"]);
        let parts = ["new.jsonl", "old.jsonl"].map(|name| folder.read_text(name));
        assert_eq!(sorted(&parts), sorted(&[corpus]));
        assert!(parts[1].ends_with(&known), "{}", parts[1]);
        let report = folder.report("r.tsv");
        let rows: Vec<Vec<&str>> = report.lines().map(|l| l.split('\t').collect()).collect();
        let found: Vec<_> = rows.iter().map(|row| (row[0], row[1], row[3])).collect();
        assert_eq!(
            found,
            [
                ("a-again", "a", "exact"),
                ("a-near", "a", "exact"),
                ("b-near", "b", "exact"),
                ("a", "a", "key"),
            ]
        );
        assert_eq!(folder.count("a.rsm"), 4);
    }
}

#[test]
fn a_refused_addition_with_outputs_changes_nothing() {
    let folder = created();
    folder.write("c.jsonl", distinct(0..300) + "bad\n");
    folder.write("old", "old");
    let before = folder.names();
    let add = ["add", "a.rsm", "c.jsonl", "--if-new"];
    folder
        .run(&[&add[..], &["-o", "new.jsonl", "--report", "r.tsv"]].concat())
        .expect(3)
        .says(&["c.jsonl:301", "nothing was added"]);
    // An output that cannot be written is reported before the document that cannot be read.
    for option in ["-o", "--dropped", "--report"] {
        let refused = [&add[..], &[option, "old"]].concat();
        folder.run(&refused).expect(4).says(&["old already exists"]);
    }
    for wrong in [
        &["-o", "new.jsonl", "--commit-every", "5"][..],
        &["--report", "r.tsv", "--commit-interval", "5"],
        &["-o", "new.jsonl", "--dropped", "new.jsonl"],
        &["-o", "a.rsm", "--force"],
        &["-o", "c.jsonl", "--force"],
        &["--force"],
        &["--no-header"],
    ] {
        folder.run(&[&add[..], wrong].concat()).expect(2);
    }
    folder
        .run(&["add", "a.rsm", "c.jsonl", "-o", "new.jsonl"])
        .expect(2);
    assert_eq!(folder.count("a.rsm"), 0);
    assert_eq!(folder.names(), before);
}

#[test]
fn outputs_of_an_addition_leave_out_skipped_and_bad_documents() {
    let folder = created();
    let lines: Vec<String> = mixed().lines().map(|l| l.to_owned() + "\n").collect();
    folder.write(
        "c.jsonl",
        lines[..2].concat() + "bad\n" + &lines[2..].concat(),
    );
    let add = [
        "add",
        "a.rsm",
        "c.jsonl",
        "--if-new",
        "--skip",
        "1",
        "--skip-bad",
    ];
    folder
        .run(&[&add[..], &["-o", "new.jsonl", "--dropped", "old.jsonl"]].concat())
        .expect(0);
    let parts = ["new.jsonl", "old.jsonl"].map(|name| folder.read_text(name));
    assert_eq!(sorted(&parts), sorted(&lines[1..]));
}

#[test]
fn numbers_written_in_two_ways_are_two_keys() {
    let folder = created();
    let numbered = |id: &str| format!("{{\"id\": {id}, \"text\": {:?}}}\n", text(id.len() as u64));
    folder.write(
        "c.jsonl",
        numbered("1") + &numbered("1.0") + &numbered("10000000000000000001"),
    );
    folder
        .run(&["add", "a.rsm", "c.jsonl", "--upsert"])
        .expect(0)
        .says(&["added 3"]);
    let again = folder
        .run(&["add", "a.rsm", "c.jsonl", "--upsert"])
        .expect(0);
    again.says(&["added 0", "unchanged 3"]);
    for key in ["1", "1.0", "10000000000000000001"] {
        folder.run(&["get", "a.rsm", key]).expect(0);
    }
    // Stated where keys are described.
    for command in [&["--help"][..], &["add", "--help"]] {
        let help = folder.run(command).expect(0).stdout;
        let words: Vec<&str> = help.split_whitespace().collect();
        assert!(words.join(" ").contains("1.0 and 1 are different keys"));
    }
}
