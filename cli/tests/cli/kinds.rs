//! The kinds of signature: every verb with each.

use crate::sample::one_in;
use crate::support::{Folder, line, mixed, text};

/// The options of each kind, and what the schema says of it.
const KINDS: [(&[&str], &str); 13] = [
    (
        &["--minhash-kind", "functions"],
        "128 values of 16 bits, pair-multiply",
    ),
    (&["--permutations", "multiply-shift"], "multiply-shift"),
    (&["--permutations", "modular"], "modular"),
    (&["--permutations", "tabulation"], "tabulation"),
    (
        &["--permutations", "jenkins", "--minhash-kind", "functions"],
        "jenkins",
    ),
    (
        &["--minhash-kind", "one-pass", "--minhash", "256"],
        "256 values of 16 bits, one-pass",
    ),
    (
        &["--minhash-kind", "bottom-k"],
        "128 hashes of 64 bits, bottom-k",
    ),
    (&["--minhash-kind", "weighted"], "weighted"),
    (
        &["--value-bits", "1", "--minhash", "512"],
        "512 values of 1 bits",
    ),
    (
        &["--value-bits", "8", "--minhash-kind", "one-pass"],
        "128 values of 8 bits, one-pass",
    ),
    (
        &["--value-bits", "16", "--minhash-kind", "weighted"],
        "16 bits, weighted",
    ),
    (
        &["--simhash", "128", "--minhash", "128"],
        "SimHash: 128 bits, distance up to 6",
    ),
    (
        &["--simhash", "128", "--distance", "16"],
        "SimHash: 128 bits, distance up to 16",
    ),
];

fn run(folder: &Folder, arguments: &[&str], options: &[&str], code: i32) -> crate::support::Ran {
    folder.run(&[arguments, options].concat()).expect(code)
}

/// The first two fields of each line, sorted.
fn keys(stdout: &str) -> Vec<String> {
    let keys = |line: &str| line.split('\t').take(2).collect::<Vec<_>>().join(" ");
    let mut keys: Vec<String> = stdout.lines().map(keys).collect();
    keys.sort();
    keys
}

/// One kind in five, each with `RESEMBLANCE_TESTS=all`.
#[test]
fn every_verb_accepts_every_minhash_kind() {
    let near = ["a a-again", "a a-near", "a-again a-near", "b b-near"];
    for (options, part) in KINDS.into_iter().step_by(one_in(5)) {
        let folder = Folder::new();
        folder.write("c.jsonl", mixed());
        folder.write(
            "more.jsonl",
            line("new", &text(9)) + &line("a-new", &text(1)),
        );
        let made = run(&folder, &["create", "a.rsm"], options, 0);
        assert!(made.stderr.contains(part), "{part}: {}", made.stderr);
        run(&folder, &["add", "a.rsm", "c.jsonl"], &[], 0);
        run(&folder, &["build", "b.rsm", "c.jsonl"], options, 0);
        run(&folder, &["add", "b.rsm", "more.jsonl", "--if-new"], &[], 0);
        assert_eq!((folder.count("a.rsm"), folder.count("b.rsm")), (7, 8));
        for store in ["a.rsm", "b.rsm"] {
            run(&folder, &["check", store], &[], 0);
            // The options agree with the store's own.
            let kept: Vec<&str> = match options.iter().position(|o| *o == "--distance") {
                Some(place) => options[..place].to_vec(),
                None => options.to_vec(),
            };
            let pairs = run(&folder, &["pairs", store], &kept, 0);
            assert_eq!(keys(&pairs.stdout), near, "{options:?}");
            let found = run(&folder, &["query", store, "--key", "b"], &[], 0);
            assert!(found.stdout.starts_with("b-near\t"), "{}", found.stdout);
            let found = run(&folder, &["query", store, "--limit", "1", &text(3)], &[], 0);
            assert!(found.stdout.starts_with("c\t"), "{}", found.stdout);
        }
        let of_corpus = run(
            &folder,
            &["pairs", "c.jsonl", "--verify", "estimate"],
            options,
            0,
        );
        assert_eq!(
            of_corpus.stdout,
            run(&folder, &["pairs", "a.rsm"], &[], 0).stdout
        );
        let kept = run(&folder, &["dedup", "c.jsonl", "-o", "-"], options, 0);
        assert_eq!(kept.lines().len(), 4, "{options:?}");
        let clusters = run(&folder, &["clusters", "c.jsonl"], options, 0);
        assert_eq!(clusters.lines().len(), 5, "{options:?}");
    }
}

#[test]
fn get_shows_values_at_their_stored_width() {
    let folder = Folder::new();
    folder.write("c.jsonl", line("a", "one two three four five six seven"));
    let get = |store: &str, options: &[&str]| {
        run(&folder, &["build", store, "c.jsonl"], options, 0);
        let json = folder
            .run(&format!("get {store} a --format jsonl"))
            .expect(0);
        let tsv = folder.run(&format!("get {store} a")).expect(0);
        let fields: Vec<String> = tsv.stdout.split('\t').map(str::to_owned).collect();
        let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
        (json, fields)
    };
    let (json, fields) = get("bits.rsm", &["--value-bits", "2"]);
    let values = json["minhash"].as_array().unwrap();
    assert_eq!(values.len(), 128);
    assert!(values.iter().all(|value| value.as_u64().unwrap() < 4));
    assert_eq!(fields[2].split(',').count(), 128);

    let (json, fields) = get("k.rsm", &["--minhash-kind", "bottom-k"]);
    let hashes = json["minhash"].as_array().unwrap();
    // As many as there are shingles of five words, ascending.
    assert_eq!(hashes.len(), 3);
    let texts: Vec<&str> = hashes.iter().map(|hash| hash.as_str().unwrap()).collect();
    assert!(texts.is_sorted() && texts.iter().all(|text| text.len() == 16));
    assert_eq!(fields[2], texts.join(","));

    let (json, _) = get("wide.rsm", &["--simhash", "128"]);
    assert_eq!(json["simhash"].as_str().unwrap().len(), 32);
    assert!(json["minhash"].is_null());
}

#[test]
fn eval_measures_the_stored_values() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    for options in [
        &["--value-bits", "1", "--minhash", "1024"][..],
        &["--minhash-kind", "bottom-k"],
        &["--minhash-kind", "one-pass"],
        &["--simhash", "128", "--minhash", "128"],
    ] {
        let ran = run(&folder, &["eval", "c.jsonl", "--format", "tsv"], options, 0);
        let value = |measure: &str| {
            let start = format!("minhash\t0.8\t{measure}\t");
            let line = ran
                .stdout
                .lines()
                .find_map(|line| line.strip_prefix(&start));
            line.unwrap_or_else(|| panic!("{start}: {}", ran.stdout))
                .to_owned()
        };
        // All four near pairs are found, and nothing else.
        assert_eq!(value("pairs"), "4", "{options:?}");
        assert_eq!(value("returned"), "4", "{options:?}");
    }
}
