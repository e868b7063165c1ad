//! The same documents give the same pairs, in whatever way they entered the store.

use std::path::Path;

use crate::sample::trials;
use crate::support::{Folder, edited, gunzip, line};

/// Families of edited texts, some of them equal.
fn generated() -> Vec<String> {
    (0..300)
        .map(|number| {
            let text = edited(number / 3 + 1, (number % 3) * (number % 2));
            line(&format!("document {number}"), &text)
        })
        .collect()
}

/// Builds the store in four ways, one of them in 12 pieces, in 50 with `RESEMBLANCE_TESTS=all`, and compares `pairs` of all; how many there are.
fn same_pairs(lines: &[String], schema: &[&str]) -> usize {
    let folder = Folder::new();
    folder.write("all.jsonl", lines.concat());
    let with = |arguments: &[&str]| {
        folder.run(&[arguments, schema].concat()).expect(0);
    };
    with(&["build", "built.rsm", "all.jsonl"]);

    with(&["create", "added.rsm"]);
    folder.run("add added.rsm all.jsonl").expect(0);

    with(&["create", "pieces.rsm"]);
    for piece in lines.chunks(lines.len().div_ceil(trials(12, 50))) {
        folder.write("piece.jsonl", piece.concat());
        folder.run("add pieces.rsm piece.jsonl").expect(0);
    }

    with(&["build", "again.rsm", "all.jsonl"]);
    let tenth: Vec<String> = lines.iter().step_by(10).cloned().collect();
    let keys = tenth.iter().map(|line| {
        let document: serde_json::Value = serde_json::from_str(line).unwrap();
        document["id"].as_str().unwrap().to_owned()
    });
    let keys: Vec<String> = keys.collect();
    let mut remove = vec!["remove", "again.rsm"];
    remove.extend(keys.iter().map(String::as_str));
    folder.run(&remove).expect(0);
    folder.write("tenth.jsonl", tenth.concat());
    folder.run("add again.rsm tenth.jsonl").expect(0);

    let pairs = |store: &str| {
        folder.run(&["check", store]).expect(0);
        folder.run(&["pairs", store]).expect(0).stdout
    };
    let expected = pairs("built.rsm");
    for store in ["added.rsm", "pieces.rsm", "again.rsm"] {
        assert!(pairs(store) == expected, "{store}");
    }
    expected.lines().count()
}

#[test]
fn generated_texts_have_the_same_pairs_in_four_ways() {
    let both = ["--simhash", "64", "--distance", "3"];
    for schema in [&[][..], &both] {
        assert!(same_pairs(&generated(), schema) >= 100);
    }
}

/// Needs the shared corpora.
#[test]
fn document_versions_have_the_same_pairs_in_four_ways() {
    let Some(root) = std::env::var_os("RESEMBLANCE_DATA") else {
        eprintln!("skipped: RESEMBLANCE_DATA is not set");
        return;
    };
    let bytes = std::fs::read(Path::new(&root).join("versions/docs.jsonl.gz")).unwrap();
    let documents = gunzip(&bytes);
    let lines: Vec<String> = documents.split_inclusive('\n').map(str::to_owned).collect();
    let pairs = same_pairs(&lines, &[]);
    println!("{} documents, {pairs} pairs in four ways", lines.len());
}
