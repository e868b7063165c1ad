//! The kinds of signature: every verb with each.

use crate::sample::one_in;
use crate::support::{Folder, distinct, line, mixed, text};

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
fn store_determines_the_minhash_kind() {
    let folder = Folder::new();
    let create = |store: &str, options: &str| {
        let options: Vec<&str> = options.split(' ').collect();
        run(&folder, &["create", store], &options, 0);
    };
    create("plain.rsm", "--minhash 128");
    create("bits.rsm", "--value-bits 4");
    create("k.rsm", "--minhash-kind bottom-k");
    create("wide.rsm", "--simhash 128");
    for (store, option, value) in [
        ("plain.rsm", "--minhash-kind", "one-pass"),
        ("plain.rsm", "--permutations", "jenkins"),
        ("plain.rsm", "--value-bits", "8"),
        ("plain.rsm", "--simhash", "64"),
        ("bits.rsm", "--value-bits", "32"),
        ("k.rsm", "--minhash-kind", "functions"),
        ("k.rsm", "--permutations", "pair-multiply"),
        ("wide.rsm", "--simhash", "64"),
        ("wide.rsm", "--value-bits", "32"),
    ] {
        folder
            .run(&format!("pairs {store} {option} {value}"))
            .expect(2)
            .says(&[option, "own schema"]);
    }
    for (store, option, value) in [
        ("plain.rsm", "--minhash-kind", "functions"),
        ("plain.rsm", "--permutations", "pair-multiply"),
        ("plain.rsm", "--value-bits", "16"),
        ("bits.rsm", "--value-bits", "4"),
        ("k.rsm", "--minhash-kind", "bottom-k"),
        ("wide.rsm", "--simhash", "128"),
    ] {
        folder
            .run(&format!("pairs {store} {option} {value}"))
            .expect(1);
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
fn store_of_external_values_accepts_signatures_only() {
    let folder = Folder::new();
    folder.write("c.jsonl", distinct(0..3));
    let external = ["--minhash-kind", "external", "--value-bits", "16"];
    let made = run(&folder, &["create", "a.rsm"], &external, 0);
    for part in ["text: none", "128 values of 16 bits, external"] {
        assert!(made.stderr.contains(part), "{}", made.stderr);
    }
    run(&folder, &["stats", "a.rsm"], &[], 0);
    run(&folder, &["check", "a.rsm"], &[], 0);
    run(&folder, &["pairs", "a.rsm"], &external, 1);
    let query = folder.run("query a.rsm 'a text'").expect(2);
    query.says(&["no rule for texts"]);
    for arguments in [
        &["add", "a.rsm", "c.jsonl"][..],
        &["query", "a.rsm", "--corpus", "c.jsonl"],
        &["dedup", "c.jsonl", "--against", "a.rsm", "-o", "-"],
    ] {
        let refused = folder.run(arguments).expect(3);
        refused.says(&["expected \"signature\"", "c.jsonl:1"]);
    }
    for verb in ["build x.rsm c.jsonl", "pairs c.jsonl", "dedup c.jsonl -o -"] {
        let arguments: Vec<&str> = verb.split(' ').collect();
        run(&folder, &arguments, &external, 3).says(&["expected \"signature\"", "c.jsonl:1"]);
    }
    run(&folder, &["eval", "c.jsonl"], &external, 2).says(&["--minhash-kind external"]);
    for option in [&["--words", "5"][..], &["--nfkc"], &["--code", "3"]] {
        run(
            &folder,
            &["create", "b.rsm"],
            &[&external[..], option].concat(),
            2,
        )
        .says(&[option[0], "external"]);
    }
    assert_eq!(folder.names(), ["a.rsm", "c.jsonl"]);
}

#[test]
fn conflicting_kind_settings_are_named() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    for (options, parts) in [
        (
            "--permutations jenkins --minhash-kind one-pass",
            &["--permutations", "functions"][..],
        ),
        (
            "--value-bits 8 --minhash-kind bottom-k",
            &["--value-bits", "bottom-k"],
        ),
        ("--value-bits 3", &["--value-bits", "1, 2, 4, 8, 16 or 32"]),
        (
            "--minhash-kind bottom-k --minhash 32",
            &["--minhash", "64 to 1,024"],
        ),
        (
            "--simhash 64 --minhash-kind one-pass",
            &["--minhash-kind", "--minhash K"],
        ),
        (
            "--simhash 128 --permutations modular",
            &["--permutations", "--minhash K"],
        ),
        (
            "--simhash 128 --value-bits 4",
            &["--value-bits", "--minhash K"],
        ),
        ("--simhash 64 --distance 11", &["--distance", "11"]),
        ("--simhash 128 --distance 21", &["--distance", "21"]),
        ("--distance 3", &["--simhash 32, 64 or 128"]),
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        run(&folder, &["build", "a.rsm", "c.jsonl"], &options, 2).says(parts);
    }
    for options in [
        "--minhash-kind nonsense",
        "--permutations nonsense",
        "--simhash 256",
    ] {
        let options: Vec<&str> = options.split(' ').collect();
        run(&folder, &["create", "a.rsm"], &options, 2);
    }
    // Exact similarities are those of sets.
    for arguments in ["eval c.jsonl", "pairs c.jsonl --verify exact"] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        run(&folder, &arguments, &["--minhash-kind", "weighted"], 2)
            .says(&["--minhash-kind weighted", "unweighted"]);
    }
    assert_eq!(folder.names(), ["c.jsonl"]);
}

#[test]
fn reband_handles_values_of_every_width() {
    let folder = Folder::new();
    folder.write("c.jsonl", mixed());
    run(
        &folder,
        &["build", "a.rsm", "c.jsonl"],
        &["--value-bits", "4"],
        0,
    );
    run(
        &folder,
        &["build", "k.rsm", "c.jsonl"],
        &["--minhash-kind", "bottom-k"],
        0,
    );
    for store in ["a.rsm", "k.rsm"] {
        run(&folder, &["reband", store, "--threshold", "0.6"], &[], 0);
        run(&folder, &["check", store], &[], 0);
    }
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

/// Ready-made fingerprints of images, as other programs make them.
#[test]
fn fingerprints_of_256_bits_are_stored_and_queried() {
    let folder = Folder::new();
    let (a, b, far) = (
        "0f".repeat(32),
        format!("{}00", "0f".repeat(31)),
        "a5".repeat(32),
    );
    let line = |key: &str, hash: &str| format!("{{\"id\":\"{key}\",\"signature\":\"{hash}\"}}\n");
    folder.write("c.jsonl", line("a", &a) + &line("far", &far));
    let build = "build i.rsm c.jsonl --fingerprints 256";
    folder.run(build).expect(0);
    let ran = folder.run(&format!("query i.rsm --hash '{b}'")).expect(0);
    assert_eq!(ran.stdout, "a\t4\n");
    folder
        .run(&format!("query i.rsm --hash '{b}' --distance 3"))
        .expect(1);
    let all = folder.run(&format!("query i.rsm --hash '{b}' --distance 200"));
    assert_eq!(all.expect(0).stdout.lines().count(), 2);
    folder.run("query i.rsm --hash 0f0f").expect(2);
    let got = folder.run("get i.rsm a --format jsonl");
    assert!(got.expect(0).stdout.contains(&a));
    folder.run("query i.rsm 'a text'").expect(2);
}
