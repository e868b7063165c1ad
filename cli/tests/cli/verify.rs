//! --verify exact compares the features of the texts, not signatures.

use std::collections::BTreeSet;

use crate::support::{Folder, edited, line, text};

const FAMILIES: u64 = 60;

/// Returns families of three texts: the similarities to the first are J = 176 / 216 = 0.81 and J =
/// 171 / 221 = 0.77. The standard deviation of an estimate is 0.035, so estimates of both are often
/// on the wrong side.
fn around_the_threshold() -> String {
    let family = |number: u64| {
        [
            line(&format!("{number}-a"), &text(number)),
            line(&format!("{number}-b"), &edited(number, 4)),
            line(&format!("{number}-c"), &edited(number, 5)),
        ]
    };
    (1_000..1_000 + FAMILIES).flat_map(family).collect()
}

fn rows(stdout: &str) -> Vec<[&str; 3]> {
    let mut rows = Vec::new();
    for line in stdout.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        rows.push([fields[0], fields[1], fields[2]]);
    }
    rows
}

/// Which of the families' pairs were listed: by the last letters of their keys.
fn kinds(rows: &[[&str; 3]], kind: [char; 2]) -> usize {
    let is_kind = |[a, b, _]: &&[&str; 3]| a.ends_with(kind[0]) && b.ends_with(kind[1]);
    rows.iter().filter(is_kind).count()
}

#[test]
fn verify_exact_reports_pairs_above_the_threshold_only() {
    let folder = Folder::new();
    folder.write("c.jsonl", around_the_threshold());
    let estimate = "pairs c.jsonl --verify estimate";
    let estimated = folder.run(estimate).expect(0);
    let estimated = rows(&estimated.stdout);
    assert!(
        kinds(&estimated, ['a', 'c']) > 5,
        "estimates that are too high"
    );
    let mut outputs = Vec::new();
    for threads in ["1", "3"] {
        let exact = [
            "pairs",
            "c.jsonl",
            "--verify",
            "exact",
            "--threads",
            threads,
        ];
        outputs.push(folder.run(&exact).expect(0).stdout);
    }
    assert_eq!(outputs[0], outputs[1]);
    let exact = rows(&outputs[0]);
    assert_eq!(kinds(&exact, ['a', 'c']), 0);
    // At the least the recall at the threshold, less three standard deviations of a binomial of 60.
    assert!(kinds(&exact, ['a', 'b']) >= 52, "{}", outputs[0]);
    assert!(kinds(&exact, ['a', 'b']) > kinds(&estimated, ['a', 'b']));
    for [a, b, similarity] in &exact {
        let of_family = a.split('-').next();
        assert_eq!(of_family, b.split('-').next());
        let expected = if a.ends_with('a') {
            "0.814815"
        } else {
            "0.950249"
        };
        assert_eq!(*similarity, expected, "{a} {b}");
    }
}

/// The second and third of each cluster, by key.
fn followers(clusters: &str) -> BTreeSet<String> {
    let mut followers = BTreeSet::new();
    for line in clusters.lines() {
        let (first, member) = line.split_once('\t').unwrap();
        if first != member {
            followers.insert(member.to_owned());
        }
    }
    followers
}

#[test]
fn clusters_and_what_dedup_drops_follow_exact_pairs() {
    let folder = Folder::new();
    // Without the second of each family nothing of it is near.
    let corpus: String = around_the_threshold()
        .lines()
        .filter(|line| !line.contains("-b\""))
        .map(|line| line.to_owned() + "\n")
        .collect();
    folder.write("far.jsonl", &corpus);
    let estimate = "clusters far.jsonl --verify estimate";
    folder.run(estimate).expect(0);
    folder.run("clusters far.jsonl").expect(1);
    for policy in ["first", "cluster"] {
        let output = format!("{policy}-far.jsonl");
        let dedup = ["dedup", "far.jsonl", "-o", &output, "--policy", policy];
        let dedup = [&dedup[..], &["--verify", "exact"]].concat();
        folder.run(&dedup).expect(0).says(&["kept 120, dropped 0"]);
        assert_eq!(folder.read_text(&output), corpus);
    }

    folder.write("c.jsonl", around_the_threshold());
    let exact = |verb: &[&str]| {
        folder
            .run(&[verb, &["--verify", "exact"]].concat())
            .expect(0)
    };
    let expected = followers(&exact(&["clusters", "c.jsonl"]).stdout);
    assert!(expected.len() >= 110, "{}", expected.len());
    let report = ["--report", "r.tsv", "--force"];
    let dedup = ["dedup", "c.jsonl", "-o", "out.jsonl", "--policy", "cluster"];
    exact(&[&dedup[..], &report].concat());
    let lines = folder.report("r.tsv");
    let dropped: BTreeSet<String> = lines
        .lines()
        .map(|l| l.split('\t').next().unwrap().to_owned())
        .collect();
    assert_eq!(dropped, expected);
    for line in lines.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let similarity = match (&fields[0][5..], &fields[1][5..]) {
            ("b", "a") => "0.814815",
            ("c", "a") => "0.773756",
            _ => "0.950249",
        };
        assert_eq!(fields[2..], [similarity, "exact"], "{line}");
    }

    // The policy first compares with the survivors alone, so that the third is kept.
    let dedup = ["dedup", "c.jsonl", "-o", "out.jsonl"];
    exact(&[&dedup[..], &report].concat());
    let pairs = exact(&["pairs", "c.jsonl"]).stdout;
    let pairs = rows(&pairs);
    let with_first: BTreeSet<&str> = pairs
        .iter()
        .filter(|[a, _, _]| a.ends_with('a'))
        .map(|[_, b, _]| *b)
        .collect();
    let kept = folder.read_text("out.jsonl");
    for family in 1_000..1_000 + FAMILIES {
        let has = |letter: char| kept.contains(&format!("\"{family}-{letter}\""));
        let is_dropped = with_first.contains(format!("{family}-b").as_str());
        // Where the second is missed, it is the third that it drops.
        assert_eq!(
            (has('a'), has('b'), has('c')),
            (true, !is_dropped, is_dropped)
        );
    }
}

#[test]
fn add_with_exact_verification_agrees_with_dedup() {
    let folder = Folder::new();
    folder.write("c.jsonl", around_the_threshold());
    let dedup = "dedup c.jsonl -o out.jsonl --verify exact";
    folder.run(dedup).expect(0);
    let kept = folder.read_text("out.jsonl").lines().count() as u64;
    assert_eq!(kept, 2 * FAMILIES);
    // In one commit, in several, and one after the other because of a bad document among them.
    let bad = line(&"k".repeat(5_000), &text(7));
    folder.write("bad.jsonl", around_the_threshold() + &bad);
    for (store, corpus, options) in [
        ("one.rsm", "c.jsonl", &["--atomic"][..]),
        ("many.rsm", "c.jsonl", &["--commit-every", "7"]),
        ("bad.rsm", "bad.jsonl", &["--skip-bad"]),
    ] {
        folder.run(&["create", store]).expect(0);
        let add = ["add", store, corpus, "--if-new", "--verify", "exact"];
        let ran = folder.run(&[&add[..], options].concat()).expect(0);
        let ran = ran.says(&[&format!("added {kept}")]);
        assert!(!ran.stderr.contains("estimate"), "{}", ran.stderr);
        assert_eq!(folder.count(store), kept);
    }
}

/// Returns the fields of each line behind the keys, by the keys.
fn by_keys(stdout: &str) -> BTreeSet<(String, String, String)> {
    let fields =
        |[a, b, similarity]: [&str; 3]| (a.to_owned(), b.to_owned(), similarity.to_owned());
    rows(stdout).into_iter().map(fields).collect()
}

#[test]
fn exact_store_answers_without_texts_as_texts_do() {
    let folder = Folder::new();
    folder.write("c.jsonl", around_the_threshold());
    folder.run("build e.rsm c.jsonl --exact").expect(0);
    let of_texts = by_keys(&folder.run("pairs c.jsonl --verify exact").expect(0).stdout);
    let of_store = folder.run("pairs e.rsm --header").expect(0).stdout;
    let (header, lines) = of_store.split_once('\n').unwrap();
    assert_eq!(header, "key_a\tkey_b\tsimilarity");
    assert_eq!(by_keys(lines), of_texts);
    let clusters = followers(&folder.run("clusters e.rsm").expect(0).stdout);
    assert_eq!(
        clusters,
        followers(&folder.run("clusters c.jsonl").expect(0).stdout)
    );

    // The third of each family is far from the first, by whatever its estimate is.
    let of_kind = |kind: &str| -> String {
        let corpus = around_the_threshold();
        let lines = corpus
            .lines()
            .filter(|line| line.contains(&format!("-{kind}\"")));
        lines.map(|line| line.to_owned() + "\n").collect()
    };
    folder.write("a.jsonl", of_kind("a"));
    folder.write("far.jsonl", of_kind("c"));
    folder.run("build a.rsm a.jsonl --exact").expect(0);
    folder
        .run("dedup far.jsonl --against a.rsm -o new.jsonl")
        .expect(0)
        .says(&["kept 60, dropped 0"]);
    folder.run("query a.rsm --corpus far.jsonl").expect(1);
    folder.run("add a.rsm far.jsonl --if-new").expect(0);
    folder.run("add a.rsm c.jsonl --if-new").expect(0);
    folder.run("check a.rsm").expect(0);
    let found = folder.run("query e.rsm --key 1000-a").expect(0).stdout;
    assert!(
        found.lines().all(|line| line.ends_with("	exact")),
        "{found}"
    );

    folder
        .run("pairs e.rsm --verify estimate")
        .expect(2)
        .says(&["exact schema"]);
    folder.run("pairs e.rsm --verify exact").expect(0);
    folder
        .run("build s.rsm c.jsonl --simhash 64 --exact")
        .expect(2);
    folder.run("build p.rsm c.jsonl").expect(0);
    folder
        .run("pairs p.rsm --exact")
        .expect(2)
        .says(&["--exact: the store has no exact sets"]);
}
