//! Folders: which files are lines, which are texts, which are neither, and what is said of them.

#[cfg(unix)]
use crate::support::line;
use crate::support::{Folder, bzip2, distinct, gunzip, gzip, mixed, text, unzstd, xz, zstd};

/// Lines as C4 has them: a text, and no id.
fn without_ids(numbers: std::ops::Range<u64>) -> String {
    let line = |number| serde_json::json!({"url": number, "text": text(number)}).to_string() + "\n";
    numbers.map(line).collect()
}

#[test]
fn shards_of_a_folder_are_read_by_lines_whatever_their_names() {
    let folder = Folder::new();
    folder.write("c4/a.ndjson", without_ids(0..3));
    folder.write("c4/b.ndjson", without_ids(2..5));
    let ran = folder.run("dedup c4 -o out/").expect(0);
    assert!(
        ran.stderr
            .contains("resemblance: 2 files as JSON Lines (6 documents)\n"),
        "{}",
        ran.stderr
    );
    ran.says(&["read 6, kept 5, dropped 1"]);
    assert_eq!(folder.read_text("out/a.ndjson"), without_ids(0..3));
    assert_eq!(folder.read_text("out/b.ndjson"), without_ids(3..5));
}

#[test]
fn dedup_of_a_folder_writes_a_folder() {
    let folder = Folder::new();
    folder.write("in/1.json", distinct(0..2));
    folder.write("in/2", distinct(2..4));
    folder.write("in/sub/3.json.gz", gzip(distinct(4..6).as_bytes()));
    folder.write("in/4.json.zst", zstd(distinct(6..8).as_bytes()));
    folder.write("in/5.ndjson.bz2", bzip2(distinct(8..10).as_bytes()));
    folder.write("in/6.json.xz", xz(distinct(10..12).as_bytes()));
    folder.write("in/note.txt", text(20));
    folder.write("in/note.txt.gz", gzip(text(21).as_bytes()));
    let ran = folder.run("dedup in -o out").expect(0);
    let reported = "resemblance: 6 files as JSON Lines (12 documents), 2 files as one text each\n";
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    assert_eq!(folder.read("out/1.json"), folder.read("in/1.json"));
    assert_eq!(folder.read("out/2"), folder.read("in/2"));
    assert_eq!(gunzip(&folder.read("out/sub/3.json.gz")), distinct(4..6));
    assert_eq!(unzstd(&folder.read("out/4.json.zst")), distinct(6..8));
    assert_eq!(gunzip(&folder.read("out/note.txt.gz")), text(21));
    // What was written can be read again, by each of the programs.
    folder
        .run("dedup out -o again")
        .expect(0)
        .says(&["read 14, kept 14"]);
    for name in ["5.ndjson.bz2", "6.json.xz"] {
        assert_eq!(
            folder.read(&format!("again/{name}")),
            folder.read(&format!("out/{name}"))
        );
    }
    // Without texts too, unless the name is that of a file.
    folder.write("shards/a.jsonl", mixed());
    folder.run("dedup shards -o shards-out").expect(0);
    assert_eq!(folder.read_text("shards-out/a.jsonl").lines().count(), 4);
    folder.run("dedup shards -o one.jsonl").expect(0);
    assert_eq!(folder.read_text("one.jsonl").lines().count(), 4);
    folder.write("taken", "");
    folder
        .run("dedup shards -o taken --force")
        .expect(2)
        .says(&["taken is a file, but the output of a folder is a folder"]);
}

#[test]
fn as_option_overrides_the_detected_form() {
    let folder = Folder::new();
    folder.write("in/a.jsonl", distinct(0..3));
    folder.write("in/b.txt", text(9));
    let ran = folder.run("dedup in -o o1 --as files").expect(0);
    assert!(
        ran.stderr
            .contains("resemblance: 2 files as one text each\n"),
        "{}",
        ran.stderr
    );
    folder
        .run("dedup in -o o2 --as lines")
        .expect(3)
        .says(&["not a JSON object\n  at in/b.txt:1"]);
    let texts = ["in/b.txt", "in/a.jsonl"];
    let ran = folder
        .run(&["pairs", texts[0], texts[1], "--as", "files"])
        .expect(1);
    assert!(
        ran.stderr
            .contains("resemblance: 2 files as one text each\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn non_text_files_are_refused_with_advice() {
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("{\"text\": 1}".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let cases: [(&str, &[u8], &[&str]); 5] = [
        (
            "x.json",
            b"[{\"text\": \"a\"}]",
            &["a JSON array", "jq -c '.[]'"],
        ),
        (
            "x.psv",
            b"id|text\n1|a\n",
            &["a table (.psv)", "that --separator sets"],
        ),
        ("x.orc", b"ORC", &["a table (.orc)", "duckdb"]),
        (
            "x.jsonl",
            &utf16,
            &["UTF-16, expected UTF-8", "iconv -f UTF-16"],
        ),
        ("x", b"PK\x03\x04", &["an archive (.zip)", "unpack it"]),
    ];
    for (name, bytes, parts) in cases {
        let folder = Folder::new();
        let path = format!("in/{name}");
        folder.write(&path, bytes);
        folder.write("in/good.txt", text(1));
        folder.write("in/good.jsonl", distinct(2..4));
        for input in ["in", &path] {
            folder
                .run(&["pairs", input])
                .expect(3)
                .says(parts)
                .says(&[&format!("\n  at {path}\n")]);
        }
        folder
            .run("dedup in -o out --skip-bad")
            .expect(0)
            .says(&["read 4, kept 3", "skipped 1"]);
        assert_eq!(
            folder
                .names()
                .iter()
                .filter(|n| n.starts_with("out/"))
                .count(),
            2
        );
    }
}

#[test]
fn a_wrong_text_field_is_reported_and_not_skipped() {
    let folder = Folder::new();
    let lines = |numbers: std::ops::Range<u64>| -> String {
        let line = |n| serde_json::json!({"id": n, "body": text(n), "meta": {"title": "t"}});
        numbers.map(|n| line(n).to_string() + "\n").collect()
    };
    folder.write("c.jsonl", lines(0..5));
    let named = "its fields are \"body\", \"id\", \"meta.title\": name one with --text-field";
    for more in [&[][..], &["--skip-bad"]] {
        for verb in [
            &["build", "a.rsm", "c.jsonl"][..],
            &["pairs", "c.jsonl"],
            &["dedup", "c.jsonl", "-o", "out.jsonl"],
        ] {
            let ran = folder.run(&[verb, more].concat()).expect(3);
            assert!(!ran.stderr.contains("--skip-bad skips"), "{}", ran.stderr);
            let ran = ran.says(&["field \"text\" is missing", "c.jsonl:1", named]);
            if !more.is_empty() {
                ran.says(&["5 of 5 documents are bad"]);
            }
        }
    }
    assert_eq!(folder.names(), ["c.jsonl"]);
    // More than half is too many; half of them is not.
    folder.run("create a.rsm").expect(0);
    folder.write("more.jsonl", distinct(10..14) + &lines(0..5));
    folder
        .run("add a.rsm more.jsonl --skip-bad")
        .expect(3)
        .says(&["5 of 9 documents are bad", named, "committed 0 documents"]);
    assert_eq!(folder.count("a.rsm"), 0);
    folder.write("more.jsonl", distinct(10..15) + &lines(0..5));
    folder
        .run("add a.rsm more.jsonl --skip-bad")
        .expect(0)
        .says(&["added 5", "skipped 5"]);
    // The format is guessed where there are no fields.
    folder.write("table", "id,text,more\n1,a,b\n");
    folder
        .run("pairs table --skip-bad")
        .expect(3)
        .says(&["2 of 2 documents are bad", "it looks like CSV"]);
    // A rare bad line may be skipped, and is.
    folder.write("rare.jsonl", distinct(0..3) + "{\"id\": 4}\n");
    folder
        .run("pairs rare.jsonl")
        .expect(3)
        .says(&["--skip-bad skips such documents"]);
}

#[cfg(unix)]
#[test]
fn dangling_links_are_skipped() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    for (number, name) in ["in/a.txt", "in/b.txt"].iter().enumerate() {
        folder.write(name, text(number as u64));
    }
    symlink("nowhere", folder.path("in/broken")).unwrap();
    symlink("circle", folder.path("in/circle")).unwrap();
    folder.run("dedup in -o out").expect(4).says(&[
        "a link whose target does not exist\n  at in/broken\n",
        "--skip-bad skips",
    ]);
    folder
        .run("dedup in -o out --skip-bad")
        .expect(0)
        .says(&["read 4, kept 2", "skipped 2"]);
    assert!(!folder.path("out/broken").exists());
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link_in_the_output() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.write("in/sub/a.jsonl", line("a", &text(1)));
    folder.write("elsewhere/a.jsonl", "precious");
    folder.write("out/x", "");
    symlink(folder.path("elsewhere"), folder.path("out/sub")).unwrap();
    for more in [&[][..], &["--force"]] {
        let ran = folder
            .run(&[&["dedup", "in", "-o", "out"], more].concat())
            .expect(4);
        if more.is_empty() {
            continue;
        }
        ran.says(&["out/sub is a link", "never written through links"]);
    }
    assert_eq!(folder.read_text("elsewhere/a.jsonl"), "precious");
    // Nor through a link that is itself the name of an output.
    folder.write("flat/a.jsonl", line("a", &text(1)));
    folder.write("out2/x", "");
    symlink(
        folder.path("elsewhere/a.jsonl"),
        folder.path("out2/a.jsonl"),
    )
    .unwrap();
    folder.run("dedup flat -o out2").expect(4);
    folder
        .run("dedup flat -o out2 --force")
        .expect(4)
        .says(&["out2/a.jsonl is a link"]);
    assert_eq!(folder.read_text("elsewhere/a.jsonl"), "precious");
}

#[test]
fn skipped_unreadable_files_are_listed_at_the_end() {
    let folder = Folder::new();
    folder.write("t/a.jsonl", mixed());
    folder.write("t/b.jsonl.gz", "no gzip");
    folder.write("t/c.jsonl", "{\n");
    let dedup = "dedup t -o out.jsonl --exclude c.*";
    folder
        .run(dedup)
        .expect(3)
        .says(&["b.jsonl.gz is not gzip"]);
    let skipping = format!("{dedup} --skip-unreadable");
    let ran = folder.run(&skipping).expect(2);
    let reported = "skipped: t/b.jsonl.gz is not gzip, as its name says";
    assert_eq!(ran.stderr.matches(reported).count(), 1, "{}", ran.stderr);
    assert_eq!(folder.read_text("out.jsonl").lines().count(), 4);
}

#[test]
fn a_folder_without_files_is_mentioned_beside_others() {
    let folder = Folder::new();
    folder.write("full/a.jsonl", mixed());
    folder.write("notes/b.md", "some words");
    std::fs::create_dir(folder.path("empty")).unwrap();
    let dedup = ["dedup", "full", "empty", "notes", "-o", "out.jsonl"];
    let ran = folder
        .run(&[&dedup[..], &["--include", "*.jsonl"]].concat())
        .expect(0);
    let reported = "no file was found in empty, notes";
    assert!(ran.stderr.contains(reported), "{}", ran.stderr);
    let alone = folder.run(&["pairs", "full"]).expect(0);
    assert!(!alone.stderr.contains("no file"), "{}", alone.stderr);
}

#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_are_unreadable_files() {
    let folder = Folder::new();
    folder.write("t/a.jsonl", mixed());
    std::os::unix::fs::symlink("nowhere", folder.path("t/b.jsonl")).unwrap();
    for corpus in [&["t"][..], &["t/*.jsonl"], &["t/a.jsonl", "t/b.jsonl"]] {
        let dedup = [&["dedup", "-o", "out.jsonl", "--force"], corpus].concat();
        folder.run(&dedup);
        assert!(!folder.path("out.jsonl").exists(), "{corpus:?}");
        let ran = folder
            .run(&[&dedup[..], &["--skip-unreadable"]].concat())
            .expect(2);
        let reported = "skipped: t/b.jsonl is a link to a file that does not exist";
        assert_eq!(ran.stderr.matches(reported).count(), 1, "{}", ran.stderr);
        assert_eq!(folder.read_text("out.jsonl").lines().count(), 4);
        std::fs::remove_file(folder.path("out.jsonl")).unwrap();
    }
    // A file that is not there is a slip of the pen.
    folder
        .run(&["pairs", "t/a.jsonl", "t/c.jsonl", "--skip-unreadable"])
        .expect(4)
        .says(&["t/c.jsonl does not exist"]);
}

#[test]
fn a_corpus_of_which_nothing_can_be_read_is_no_empty_one() {
    let folder = Folder::new();
    folder.write("a.jsonl.gz", "no gzip");
    let dedup = [
        "dedup",
        "a.jsonl.gz",
        "-o",
        "out.jsonl",
        "--skip-unreadable",
    ];
    folder
        .run(&dedup)
        .expect(4)
        .says(&["no file of the corpus could be read"]);
    assert_eq!(folder.names(), ["a.jsonl.gz"]);
}
