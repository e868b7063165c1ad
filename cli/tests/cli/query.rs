//! query: a text, a file, standard input, a key, a corpus.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::support::{Folder, line, text};

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
    // Texts that are less and less similar to the query, by less than estimates can distinguish.
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
