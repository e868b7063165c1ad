//! The verb `eval`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::sample::trials;
use crate::support::{Folder, line};

/// (section, item, measure) to value.
type Measures = BTreeMap<[String; 3], String>;

fn measures(folder: &Folder, arguments: &[&str]) -> Measures {
    let arguments = [&["eval", "--format", "tsv"], arguments].concat();
    let stdout = folder.run(&arguments).expect(0).stdout;
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let name = [fields[0], fields[1], fields[2]].map(str::to_owned);
        (name, fields[3].to_owned())
    };
    stdout.lines().map(parse).collect()
}

fn text<'a>(measures: &'a Measures, name: [&str; 3]) -> &'a str {
    let found = measures.get(&name.map(str::to_owned));
    found.unwrap_or_else(|| panic!("{name:?} in {measures:?}"))
}

fn number(measures: &Measures, name: [&str; 3]) -> f64 {
    text(measures, name).parse().unwrap()
}

/// Returns pairs of texts that share words with no other pair. The second text has the first
/// `changed` of its 104 words replaced. With `changed` = c of at least 1, 100 - c of 100 shingles
/// are shared, so J = (100 - c) / (100 + c).
fn pairs(count: u64, changed: u64) -> String {
    let mut corpus = String::new();
    for pair in 0..count {
        for side in ["a", "b"] {
            let mut text = String::new();
            for word in 0..104 {
                let own = if word < changed { side } else { "" };
                let _ = write!(text, "w{changed}x{pair}x{word}{own} ");
            }
            corpus += &line(&format!("{side}{pair}-{changed}"), &text);
        }
    }
    corpus
}

#[test]
fn eval_compares_exact_similarities_with_results() {
    let folder = Folder::new();
    // J = 0.9048, 0.7857 and 0.5504: 100, 100 and 100 pairs.
    folder.write("c.jsonl", pairs(100, 5) + &pairs(100, 12) + &pairs(100, 29));
    let found = measures(&folder, &["c.jsonl"]);
    let get = |name| number(&found, name);
    for (item, similarity) in [
        ("0.9-1.0", 95.0 / 105.0),
        ("0.7-0.8", 88.0 / 112.0),
        ("0.5-0.6", 71.0 / 129.0),
    ] {
        assert_eq!(get(["exact", item, "pairs"]), 100.0);
        let similarity: f64 = similarity;
        let expected = 1.0 - (1.0 - similarity.powi(7)).powi(13);
        let shown = get(["exact", item, "expected"]);
        assert!(
            (shown - expected).abs() < 1e-3,
            "{item}: {shown}, {expected}"
        );
        // Pairs that share no words are independent: the bound is 5 deviations of a binomial, plus
        // one pair where hardly any is missed.
        let share = get(["exact", item, "candidate_recall"]);
        let deviation = (expected * (1.0 - expected) / 100.0).sqrt();
        assert!(
            (share - expected).abs() < 5.0 * deviation + 0.01,
            "{item}: {share}"
        );
        let theory = get(["exact", item, "theory"]);
        let plain = (similarity * (1.0 - similarity) / 128.0).sqrt();
        assert!((theory / plain - 1.0).abs() < 1e-3, "{theory}, {plain}");
        // The mean of 100 errors; and their root mean square, whose relative deviation is
        // 1 / sqrt(200) = 0.071.
        assert!(get(["exact", item, "mean_error"]).abs() < 0.5 * plain);
        let measured = get(["exact", item, "deviation"]);
        assert!(
            (measured / plain - 1.0).abs() < 5.0 * 0.071,
            "{measured}, {plain}"
        );
    }
    // The seed of the schema is 1, the first of those that are tried.
    let over_seeds = |measure| get(["seeds", "0.8-1", measure]);
    let own = get(["minhash", "0.8", "candidate_recall"]);
    assert_eq!(over_seeds("own"), own);
    assert!(over_seeds("min") <= own.min(over_seeds("mean")) && over_seeds("max") >= own);
    assert_eq!(
        (over_seeds("pairs"), over_seeds("families")),
        (100.0, 100.0)
    );
    assert_eq!(over_seeds("independent"), over_seeds("together"));
    assert_eq!(get(["seeds", "0.8-0.85", "pairs"]), 0.0);
    let near = ["minhash", "0.8"];
    assert_eq!(get([near[0], near[1], "pairs"]), 100.0);
    assert!(get([near[0], near[1], "candidate_recall"]) >= 0.95);
    // Precision and recall are those of the pairs of 0.9 and 0.79, by the other sections.
    let returned = get([near[0], near[1], "returned"]);
    let by_exact: f64 = ["0.9-1.0", "0.7-0.8", "0.5-0.6"]
        .map(|item| get(["exact", item, "returned"]))
        .iter()
        .sum();
    assert_eq!(returned, by_exact);
    let right = get(["exact", "0.9-1.0", "returned"]);
    let precision = get([near[0], near[1], "precision"]);
    assert!((precision - right / returned).abs() < 1e-3);
    assert!(precision < 1.0, "no pair of 0.79 was returned");
    let missed = found.keys().filter(|[section, ..]| section == "missed");
    let missed = missed.filter(|[.., measure]| measure == "reason").count();
    assert_eq!(missed as f64, 100.0 - right);
}

/// Tests 30 pairs, or 300 with `RESEMBLANCE_TESTS=all`.
#[test]
fn eval_compares_kinds_and_sizes() {
    let folder = Folder::new();
    // Pairs of J = 66 / 134 = 0.4925 that have nothing to do with each other, 4 seeds.
    let count = trials(30, 300);
    folder.write("c.jsonl", pairs(count, 34));
    let (pair_count, estimates) = (count as f64, 4.0 * count as f64);
    let compare = "eval c.jsonl --compare --format jsonl --svg charts";
    let stdout = folder.run(compare).expect(0).stdout;
    let mut sizes = Vec::new();
    let mut kinds = std::collections::BTreeMap::new();
    for line in stdout.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let get = |name: &str| {
            row[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name}: {row}"))
        };
        assert_eq!(
            (get("pairs"), get("half_pairs"), get("seeds")),
            (pair_count, pair_count, 4.0)
        );
        // With n estimates, the mean must be within 5 of its deviations, theory / sqrt(n), and the
        // root mean square within 5 of its relative deviations, 1 / sqrt(2 n).
        let relative = 5.0 / (2.0 * estimates).sqrt();
        let theory = get("theory");
        assert!(
            get("mean_error").abs() <= 5.0 * theory / estimates.sqrt(),
            "{row}"
        );
        if theory == 0.0 {
            // The smallest hashes are all that there are.
            assert!(row["kind"] == "bottom-k" && get("values") >= 134.0, "{row}");
            assert_eq!(get("deviation"), 0.0, "{row}");
        } else {
            let ratio = get("deviation") / theory;
            assert!(ratio < 1.0 + relative, "{row}");
            // Theory bounds the one-pass kind from above only.
            let is_bound = row["kind"] == "one-pass";
            assert!(is_bound || ratio > 1.0 - relative, "{row}");
        }
        *kinds.entry(row["kind"].to_string()).or_insert(0) += 1;
        if row["kind"] == "minhash" {
            let worst = 0.5 / get("values").sqrt();
            assert!((get("worst_theory") - worst).abs() < 1e-9, "{row}");
            // J (1 - J) is within a thousandth of 1/4 here.
            assert!((theory / worst - 1.0).abs() < 1e-3);
            sizes.push(get("values"));
        }
    }
    assert_eq!(sizes, [64.0, 128.0, 256.0, 400.0, 512.0, 1024.0]);
    assert!(
        kinds.len() == 14 && kinds.values().all(|rows| *rows == 6),
        "{kinds:?}"
    );
    for name in ["error-by-size", "error-by-bytes", "time-by-size"] {
        assert!(
            folder
                .read_text(&format!("charts/{name}.svg"))
                .contains("minhash")
        );
    }
    folder.write("d.jsonl", line("a", "one two") + &line("b", "one two"));
    folder
        .run("eval d.jsonl --compare")
        .expect(3)
        .says(&["cannot be compared"]);
}

/// The shared corpora, whose exact pairs are known: the same number is found here, and the
/// candidates reach the recall that the schema promises.
#[test]
fn eval_of_real_corpora_reaches_the_default_recall() {
    let Some(root) = std::env::var_os("RESEMBLANCE_DATA") else {
        crate::support::say(
            "skipped: RESEMBLANCE_DATA is not set, so there are no corpora to evaluate",
        );
        return;
    };
    let folder = Folder::new();
    for name in ["articles2500", "debian-docs", "versions"] {
        let corpus = std::path::Path::new(&root).join(name);
        let docs = corpus.join("docs.jsonl.gz");
        let found = measures(
            &folder,
            &[
                docs.to_str().unwrap(),
                "--words",
                "5",
                "--min",
                "0.5",
                "--memory",
                "1G",
            ],
        );
        let truth = std::fs::read(corpus.join("truth_word5_j50.tsv")).unwrap_or_else(|_| {
            let packed = std::fs::read(corpus.join("truth_word5_j50.tsv.gz")).unwrap();
            crate::support::gunzip(&packed).into_bytes()
        });
        let truth = String::from_utf8(truth).unwrap();
        let similarities = truth.lines().map(|line| line.rsplit('\t').next().unwrap());
        let similarities: Vec<f64> = similarities.map(|s| s.parse().unwrap()).collect();
        let pairs = found
            .iter()
            .filter(|([section, _, measure], _)| section == "exact" && measure == "pairs");
        let pairs: f64 = pairs.map(|(_, value)| value.parse::<f64>().unwrap()).sum();
        assert_eq!(pairs, similarities.len() as f64, "{name}");
        let near = similarities
            .iter()
            .filter(|similarity| **similarity >= 0.8)
            .count();
        assert_eq!(
            number(&found, ["minhash", "0.8", "pairs"]),
            near as f64,
            "{name}"
        );
        // All pairs share one set of hash functions: clusters of them are found or missed
        // together, but the default seed must do as well as it promises on all three.
        let recall = number(&found, ["minhash", "0.8", "candidate_recall"]);
        assert!(recall >= 0.95, "{name}: {recall}");
    }
}
