//! query: a text, a file, standard input, a key, a corpus.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::support::{Folder, edited, line, mixed, text};

fn built() -> Folder {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.run("build a.rsm c.jsonl").expect(0);
    folder
}

#[test]
fn query_text_that_names_a_file_causes_a_note() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder.write("page.txt", text(3));
    folder.run("build a.rsm c.jsonl").expect(0);
    let named = folder.run("query a.rsm page.txt").expect(1);
    for part in [
        "page.txt is the text",
        "--file page.txt",
        "--corpus page.txt",
    ] {
        assert!(named.stderr.contains(part), "{}", named.stderr);
    }
    let read = folder.run("query a.rsm --file page.txt");
    assert_eq!(read.expect(0).stdout, "c\t1.000000\n");
    let other = folder.run("query a.rsm 'no such file'").expect(1);
    assert!(!other.stderr.contains("--file"), "{}", other.stderr);
}

#[test]
fn a_key_may_begin_with_a_dash() {
    let folder = Folder::new();
    let lines = ["-k", "--force", "-"].map(|key| line(key, &text(1)));
    folder.write("c.jsonl", lines.concat());
    folder.run("build a.rsm c.jsonl").expect(0);
    for (key, others) in [("-k", ["--force", "-"]), ("--force", ["-k", "-"])] {
        let found = folder.run(&format!("query a.rsm --key '{key}'")).expect(0);
        assert_eq!(
            found.lines(),
            others.map(|other| format!("{other}\t1.000000"))
        );
        folder.run(&format!("get a.rsm -- '{key}'")).expect(0);
    }
    folder.run("remove a.rsm -- -k -").expect(0);
    assert_eq!(folder.count("a.rsm"), 1);
}

#[test]
fn query_text_from_argument_file_or_pipe_finds_the_same() {
    let folder = built();
    let ran = folder.run(&["query", "a.rsm", &text(1)]).expect(0);
    let lines = ran.lines();
    // best first, ties by insertion
    assert_eq!(lines[..2], ["a\t1.000000", "a-again\t1.000000"]);
    assert!(lines[2].starts_with("a-near\t0.9"), "{}", lines[2]);
    assert_eq!(lines.len(), 3);
    assert_eq!(ran.stderr, "");
    let input = text(1);
    for arguments in ["query a.rsm", "query a.rsm -", "query a.rsm --file -"] {
        let piped = folder.run_with_input(arguments, input.as_bytes()).expect(0);
        assert_eq!(piped.stdout, ran.stdout);
    }
    folder.write("t.txt", format!("\u{feff}{input}"));
    let from_file = folder.run("query a.rsm --file t.txt").expect(0);
    assert_eq!(from_file.stdout, ran.stdout);
}

#[test]
fn query_without_result_exits_with_1() {
    let folder = built();
    let ran = folder.run(&["query", "a.rsm", &text(77)]).expect(1);
    assert_eq!(ran.stdout, "");
    ran.says(&[
        "no match: no document shares a bucket with the text",
        "--scan",
    ]);
    // One in four words is another: near enough to share a bucket, and not to match.
    let ran = folder
        .run(&["query", "a.rsm", &edited(1, 4), "--threshold", "0.99"])
        .expect(1);
    assert_eq!(ran.stdout, "");
    ran.says(&["no match: the nearest candidate is a-near, with similarity 0.8"]);
    let alone = "query a.rsm --key a-near --threshold 1";
    folder
        .run(alone)
        .expect(1)
        .says(&["no match: the nearest candidate is a, with similarity 0.9"]);
    let quiet = folder.run(&["query", "a.rsm", &text(77), "-q"]).expect(1);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    folder
        .run("query a.rsm --key nobody")
        .expect(1)
        .says(&["no document has the key nobody"]);
}

#[test]
fn query_by_key_excludes_the_document_itself() {
    let folder = built();
    let ran = folder.run("query a.rsm --key b").expect(0);
    assert_eq!(ran.lines().len(), 1);
    assert!(ran.stdout.starts_with("b-near\t0.9"));
    let by_number = folder
        .run(&["query", "a.rsm", "--key", "\\#2", "--escaped"])
        .expect(0);
    assert_eq!(by_number.stdout, ran.stdout);
    let limited = folder
        .run(&["query", "a.rsm", "--key", "\\#0", "-e", "--limit", "1"])
        .expect(0);
    assert_eq!(limited.stdout, "a-again\t1.000000\n");
    folder.run("query a.rsm --key d").expect(1);
}

#[test]
fn query_corpus_answers_for_every_document() {
    let folder = built();
    folder.write(
        "q.jsonl",
        line("q1", &text(9)) + &line("q2", &text(3)) + &line("q3", &edited(2, 1)),
    );
    let ran = folder.run("query a.rsm --corpus q.jsonl").expect(0);
    let lines = ran.lines();
    assert_eq!(lines[..2], ["q2\tc\t1.000000", "q3\tb-near\t1.000000"]);
    assert!(lines[2].starts_with("q3\tb\t0.9"));
    assert_eq!(lines.len(), 3);
    ran.says(&["read 3, with matches 2"]);
    let json = folder.run("query a.rsm --corpus q.jsonl --format jsonl --limit 1");
    assert_eq!(
        json.expect(0).stdout,
        "{\"query\":\"q2\",\"id\":4,\"key\":\"c\",\"similarity_estimate\":1.0,\"distance\":null}\n\
         {\"query\":\"q3\",\"id\":5,\"key\":\"b-near\",\"similarity_estimate\":1.0,\"distance\":null}\n"
    );
    folder.write("none.jsonl", line("x", &text(55)));
    folder.run("query a.rsm --corpus none.jsonl").expect(1);
    folder.write("bad.jsonl", "x\n".to_string() + &line("q2", &text(3)));
    folder
        .run("query a.rsm --corpus bad.jsonl")
        .expect(3)
        .says(&["bad.jsonl:1"]);
    folder
        .run("query a.rsm --corpus bad.jsonl --skip-bad")
        .expect(0)
        .says(&["skipped 1"]);
}

#[test]
fn bounds_outside_the_schema_are_refused_unless_accepted() {
    let folder = built();
    let query = |more: &[&str]| {
        let text = edited(1, 4);
        let mut arguments = vec!["query", "a.rsm", &text];
        arguments.extend(more);
        folder.run(&arguments)
    };
    assert_eq!(query(&["--threshold", "1.0"]).expect(1).stdout, "");
    query(&["--threshold", "0.5"]).expect(2);
    query(&["--threshold", "NaN"]).expect(2);
    query(&["--threshold", "1.5"]).expect(2);
    query(&["--distance", "3"]).expect(2).says(&["no SimHash"]);
    query(&["--by", "simhash"]).expect(2);
    let found = query(&["--threshold", "0.5", "--scan"]).expect(0);
    assert_eq!(found.lines().len(), 3);
    let accepted = query(&["--threshold", "0.5", "--accept-lower-recall", "-v"]).expect(0);
    assert_eq!(accepted.stdout, found.stdout);
    assert!(
        accepted.stderr.contains("with probability 0.0"),
        "{}",
        accepted.stderr
    );
}

#[test]
fn query_of_two_families_prints_two_columns() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    folder
        .run("build a.rsm c.jsonl --minhash 128 --simhash 64")
        .expect(0);
    let ran = folder.run(&["query", "a.rsm", &text(3)]).expect(0);
    assert_eq!(ran.stdout, "c\t1.000000\t0\n");
    folder.run("build s.rsm c.jsonl --simhash 64").expect(0);
    let ran = folder.run(&["query", "s.rsm", &text(3)]).expect(0);
    assert_eq!(ran.stdout, "c\t0\n");
    folder
        .run(&["query", "s.rsm", &text(3), "--threshold", "0.9"])
        .expect(2)
        .says(&["no MinHash"]);
    folder
        .run(&["query", "s.rsm", &text(3), "--distance", "30"])
        .expect(0);
    folder
        .run(&["query", "s.rsm", &text(3), "--distance", "0"])
        .expect(0);
}

#[test]
fn nearest_returns_documents_at_any_distance() {
    let folder = built();
    let documents = folder.count("a.rsm");
    let far = folder
        .run(&["query", "a.rsm", &text(77), "--nearest", "3"])
        .expect(0);
    assert_eq!(far.lines().len(), 3);
    let all = ["query", "a.rsm", &text(1), "--nearest", "1000"];
    let all = folder.run(&all).expect(0);
    assert_eq!(all.lines().len() as u64, documents);
    assert_eq!(all.lines()[..2], ["a\t1.000000", "a-again\t1.000000"]);
    for key in [&["--key", "a"][..], &["--key", "\\#0", "-e"]] {
        let own = [&["query", "a.rsm", "--nearest", "2"][..], key].concat();
        let lines = folder.run(&own).expect(0).lines().join(" ");
        assert!(
            lines.starts_with("a-again\t1.000000 a-near\t0.9"),
            "{lines}"
        );
    }
    folder.write("q.jsonl", line("q1", &text(55)) + &line("q2", &text(3)));
    let corpus = "query a.rsm --corpus q.jsonl --nearest 2 -v";
    let ran = folder.run(corpus).expect(0);
    let lines = ran.lines();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[2], "q2\tc\t1.000000");
    let hurried = ["query", "a.rsm", &text(77), "--nearest", "3", "--no-scan"];
    folder
        .run(&hurried)
        .expect(1)
        .says(&["found 0 of 3 without reading all signatures"]);
}

/// The exact similarity of the two texts whose words are given, as it is printed.
fn exact(a: &str, b: &str) -> String {
    let shingles = |text: &str| -> BTreeSet<Vec<String>> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.windows(5).map(<[String]>::to_vec).collect()
    };
    let (a, b) = (shingles(a), shingles(b));
    let shared = a.intersection(&b).count() as f64;
    format!("{:.6}", shared / a.union(&b).count() as f64)
}

#[test]
fn texts_option_makes_similarities_exact() {
    let folder = Folder::new();
    let asked = text(1);
    // Less and less like what is asked for, by less than estimates can tell.
    let changed = |n: usize| {
        let words = asked.split_whitespace().enumerate();
        let words = words.map(|(place, word)| match place < n + 3 {
            true => format!("x{n}z{place}"),
            false => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let texts: Vec<String> = (0..30).map(changed).collect();
    let lines = texts
        .iter()
        .enumerate()
        .map(|(n, text)| line(&format!("d{n}"), text));
    let lines: Vec<String> = lines.collect();
    folder.write("c.jsonl", lines.concat());
    folder.run("build a.rsm c.jsonl").expect(0);
    let mut expected: Vec<String> = (0..30)
        .map(|n| format!("d{n}\t{}\texact", exact(&texts[n], &asked)))
        .collect();
    let similarity = |line: &String| line.split('\t').nth(1).map(str::to_owned);
    expected.sort_by_key(|line| Reverse(similarity(line)));
    let query = ["query", "a.rsm", "--texts", "c.jsonl", "--nearest", "8"];
    let found = folder.run(&[&query[..], &[&asked]].concat()).expect(0);
    assert_eq!(found.lines(), expected[..8]);
    folder.write("q.jsonl", line("q", &asked));
    let of_corpus = folder.run(&[&query[..], &["--corpus", "q.jsonl"]].concat());
    let expected_lines = expected.iter().map(|line| format!("q\t{line}"));
    let expected_lines: Vec<String> = expected_lines.take(8).collect();
    assert_eq!(of_corpus.expect(0).lines(), expected_lines);
    let own = folder.run(&[&query[..4], &["--nearest", "1", "--key", "d0"]].concat());
    assert_eq!(
        own.expect(0).lines(),
        [format!("d1\t{}\texact", exact(&texts[0], &texts[1]))]
    );

    // Within bounds; of some documents there is no text.
    folder.write("some.jsonl", lines[..1].concat());
    let within = [
        "query",
        "a.rsm",
        "--texts",
        "some.jsonl",
        "--scan",
        "--threshold",
        "0.1",
    ];
    let found = folder.run(&[&within[..], &[&asked]].concat()).expect(0);
    let found = found.says(&["similarities to 29 of the 30 documents in it are estimates"]);
    let lines = found.lines();
    let is_exact = lines.iter().map(|line| line.ends_with("\texact"));
    assert_eq!(is_exact.filter(|is_exact| *is_exact).count(), 1);
    assert_eq!(found.lines().len(), 30);
    let json = [&within[..], &[&asked, "--format", "jsonl", "--limit", "1"]].concat();
    let json = folder.run(&json).expect(0).stdout;
    assert!(json.contains("\"similarity_is\":"), "{json}");

    folder.run("create s.rsm --simhash 64").expect(0);
    folder.run("query s.rsm 'a text' --texts c.jsonl").expect(2);
    folder.run("create w.rsm --minhash-kind weighted").expect(0);
    folder.run("query w.rsm 'a text' --texts c.jsonl").expect(2);
}

#[test]
fn within_option_returns_a_document_or_none() {
    let folder = built();
    let within = |more: &[&str]| folder.run(&[&["query", "a.rsm", "--within"][..], more].concat());
    let found = within(&["0.05", "--factor", "2", "--key", "a-near"]).expect(0);
    assert!(found.stdout.starts_with("a\t0.9"), "{}", found.stdout);
    assert_eq!(found.lines().len(), 1);
    within(&["0.3", &text(77)])
        .expect(1)
        .says(&["no document is within 0.3", "probability"]);
}

#[test]
fn nearest_excludes_options_of_bounds() {
    let folder = built();
    for wrong in [
        "--nearest 3 --limit 2",
        "--nearest 3 --threshold 0.9",
        "--nearest 3 --scan",
        "--nearest 3 --within 0.2",
        "--min-recall 0.5",
        "--no-scan",
        "--factor 2",
        "--nearest 3 --by simhash",
        "--within 1.5",
    ] {
        let arguments = format!("query a.rsm 'some text' {wrong}");
        folder.run(&arguments).expect(2);
    }
}
