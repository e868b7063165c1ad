//! dedup --keep, --policy, --dropped, --dry-run: which documents survive, against a model of the graph of
//! pairs.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Folder, edited};

const DOCUMENTS: u64 = 240;

/// Chains of edits of 40 texts, in an order that mixes them. Every seventh has no quality.
fn corpus() -> Vec<serde_json::Value> {
    let numbers = (0..DOCUMENTS).map(|number| number * 91 % DOCUMENTS);
    let document = |n: u64| {
        let text = edited(n % 40, n / 40) + &"tail ".repeat((n % 5) as usize);
        let mut document = serde_json::json!({"id": n.to_string(), "text": text});
        if !n.is_multiple_of(7) {
            document["quality"] = serde_json::json!((n * 37 % 11) as f64 - 4.5);
        }
        document
    };
    numbers.map(document).collect()
}

/// The documents that are near each other, by their positions.
struct Graph {
    near: BTreeMap<usize, BTreeMap<usize, f64>>,
}

impl Graph {
    fn of(folder: &Folder, documents: &[serde_json::Value]) -> Self {
        let position = |key: &str| documents.iter().position(|d| d["id"] == key).unwrap();
        let pairs = folder.run("pairs c.jsonl --threshold 0.88").expect(0);
        let mut near: BTreeMap<usize, BTreeMap<usize, f64>> = BTreeMap::new();
        for pair in pairs.lines() {
            let fields: Vec<_> = pair.split('\t').collect();
            let (a, b) = (position(fields[0]), position(fields[1]));
            let similarity = fields[2].parse().unwrap();
            near.entry(a).or_default().insert(b, similarity);
            near.entry(b).or_default().insert(a, similarity);
        }
        Self { near }
    }

    fn neighbours(&self, of: usize) -> impl Iterator<Item = (usize, f64)> {
        self.near
            .get(&of)
            .into_iter()
            .flatten()
            .map(|(a, b)| (*a, *b))
    }

    /// Documents are kept in this order unless they are near a kept one. Returns the dropped ones, each with
    /// its possible survivors: those that are kept before it and most like it.
    fn greedy(&self, order: &[usize]) -> BTreeMap<usize, BTreeSet<usize>> {
        let mut kept = BTreeSet::new();
        let mut dropped = BTreeMap::new();
        for &document in order {
            let before: Vec<_> = self
                .neighbours(document)
                .filter(|(n, _)| kept.contains(n))
                .collect();
            let best = before.iter().map(|(_, s)| *s).fold(0.0, f64::max);
            let survivors = before.iter().filter(|(_, s)| *s == best).map(|(n, _)| *n);
            if before.is_empty() {
                kept.insert(document);
            } else {
                dropped.insert(document, survivors.collect());
            }
        }
        dropped
    }

    /// All but the first in this order of each component, with that one.
    fn components(&self, order: &[usize]) -> BTreeMap<usize, BTreeSet<usize>> {
        let mut seen = BTreeSet::new();
        let mut dropped = BTreeMap::new();
        for &first in order {
            let mut open = vec![first];
            while let Some(document) = open.pop() {
                if seen.insert(document) {
                    open.extend(self.neighbours(document).map(|(n, _)| n));
                    if document != first {
                        dropped.insert(document, BTreeSet::from([first]));
                    }
                }
            }
        }
        dropped
    }
}

/// The positions, the preferred ones first.
fn order(documents: &[serde_json::Value], keep: &str) -> Vec<usize> {
    let score = |position: &usize| -> f64 {
        let document = &documents[*position];
        match keep {
            "first" => 0.0,
            "last" => *position as f64,
            "longest" => document["text"].as_str().unwrap().chars().count() as f64,
            "quality:max" => document["quality"].as_f64().unwrap_or(f64::NEG_INFINITY),
            "quality:min" => -document["quality"].as_f64().unwrap_or(f64::INFINITY),
            _ => panic!("{keep}"),
        }
    };
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by(|a, b| score(b).total_cmp(&score(a)));
    order
}

/// The annotations are those that follow from the list of dropped documents.
fn assert_annotated(documents: &[serde_json::Value], report: &str, annotated: &str) {
    let rows: Vec<Vec<&str>> = report.lines().map(|l| l.split('\t').collect()).collect();
    assert_eq!(annotated.lines().count(), documents.len());
    for (position, (line, document)) in annotated.lines().zip(documents).enumerate() {
        let mut found: serde_json::Value = serde_json::from_str(line).unwrap();
        let own = found.as_object_mut().unwrap();
        let names: Vec<String> = own
            .keys()
            .filter(|n| n.starts_with("dedup_"))
            .cloned()
            .collect();
        let take = |name: String| (name.clone(), own.remove(&name).unwrap());
        let added: serde_json::Map<_, _> = names.into_iter().map(take).collect();
        assert_eq!(&found, document);
        let dropped = rows.iter().find(|row| row[0] == document["id"]);
        let survivor = dropped.map_or(document["id"].as_str().unwrap(), |row| row[1]);
        let cluster = documents.iter().position(|d| d["id"] == survivor).unwrap() + 1;
        let others = rows.iter().filter(|row| row[1] == survivor);
        let before = |row: &&Vec<&str>| {
            let place = documents.iter().position(|d| d["id"] == row[0]);
            place.unwrap() <= position
        };
        let rank = dropped.map_or(1, |_| 1 + others.clone().filter(before).count());
        let mut expected = serde_json::json!({
            "dedup_kept": dropped.is_none(),
            "dedup_cluster": cluster.to_string(),
            "dedup_size": 1 + others.count(),
            "dedup_rank": rank,
            "dedup_survivor": dropped.map(|row| row[1]),
            "dedup_similarity": dropped.map(|row| row[2].parse::<f64>().unwrap()),
            "dedup_similarity_is": dropped.map(|row| row[3]),
        });
        let exact = added["dedup_similarity"].as_f64();
        let rounded = exact.map(|similarity| (similarity * 1e6).round() / 1e6);
        assert_eq!(
            serde_json::json!(rounded),
            expected["dedup_similarity"],
            "{line}"
        );
        expected["dedup_similarity"] = added["dedup_similarity"].clone();
        assert_eq!(serde_json::Value::Object(added), expected);
    }
}

#[test]
fn every_policy_and_keep_rule_matches_a_model() {
    let folder = Folder::new();
    let documents = corpus();
    let lines: Vec<String> = documents.iter().map(|d| format!("{d}\n")).collect();
    folder.write("c.jsonl", lines.concat());
    let graph = Graph::of(&folder, &documents);
    let mut outcomes = BTreeSet::new();
    for keep in ["first", "last", "longest", "quality:max", "quality:min"] {
        let order = order(&documents, keep);
        let mut by_degree = order.clone();
        by_degree.sort_by_key(|document| std::cmp::Reverse(graph.neighbours(*document).count()));
        for (policy, expected) in [
            ("first", graph.greedy(&order)),
            ("cluster", graph.components(&order)),
            ("representative", graph.greedy(&by_degree)),
        ] {
            let arguments = format!(
                "dedup c.jsonl -o kept.jsonl --dropped dropped.jsonl --report r.tsv --annotate annotated.jsonl --force --threshold 0.88 --policy {policy} --keep {keep}"
            );
            let ran = folder.run(&arguments).expect(0);
            if keep.starts_with("quality") {
                let reported = "without the number that --keep compares: 35;";
                assert!(ran.stderr.contains(reported), "{}", ran.stderr);
            }
            let of = |is_dropped: bool| -> String {
                let positions = (0..lines.len()).filter(|p| expected.contains_key(p) == is_dropped);
                positions.map(|position| lines[position].as_str()).collect()
            };
            assert_eq!(folder.read_text("kept.jsonl"), of(false), "{policy} {keep}");
            assert_eq!(
                folder.read_text("dropped.jsonl"),
                of(true),
                "{policy} {keep}"
            );
            let report = folder.report("r.tsv");
            assert_eq!(report.lines().count(), expected.len(), "{policy} {keep}");
            for (row, (position, survivors)) in report.lines().zip(&expected) {
                let fields: Vec<_> = row.split('\t').collect();
                assert_eq!(documents[*position]["id"], fields[0], "{policy} {keep}");
                let is_survivor = |p: &usize| documents[*p]["id"] == fields[1];
                assert!(survivors.iter().any(is_survivor), "{policy} {keep}: {row}");
            }
            let annotated = folder.read_text("annotated.jsonl");
            assert_annotated(&documents, &report, &annotated);
            outcomes.insert(folder.read_text("kept.jsonl"));
        }
    }
    // No two of them are the same by accident.
    assert_eq!(outcomes.len(), 15);
}

/// Texts of which some are excerpts of others, of all lengths, with and without words of their own.
fn excerpts() -> Vec<serde_json::Value> {
    let document = |n: u64| {
        let base = edited(n % 12, 0);
        let words: Vec<&str> = base.split(' ').filter(|word| !word.is_empty()).collect();
        let first = (n * 17 % 60) as usize;
        let length = [140, 100, 40, 12, 3, 200][(n % 6) as usize];
        let part = words.iter().skip(first).take(length);
        let mut text: Vec<String> = part.map(|word| (*word).to_owned()).collect();
        text.extend((0..n % 4).map(|number| format!("own{}", n * 10 + number)));
        serde_json::json!({"id": n.to_string(), "text": text.join(" "), "quality": n * 37 % 11})
    };
    (0..DOCUMENTS).map(document).collect()
}

#[test]
fn nothing_is_lost_beyond_the_share_that_may_be() {
    let folder = Folder::new();
    let documents = excerpts();
    let lines: Vec<String> = documents.iter().map(|d| format!("{d}\n")).collect();
    folder.write("c.jsonl", lines.concat());
    let words: Vec<BTreeSet<&str>> = documents
        .iter()
        .map(|document| document["text"].as_str().unwrap().split(' ').collect())
        .collect();
    let both = |a: usize, b: usize| words[a].intersection(&words[b]).count();
    let mut kept_counts = BTreeSet::new();
    for (lost, lost_percent) in [("0", 0), ("0.02", 2), ("0.25", 25)] {
        let is_held = |a: usize, b: usize| {
            100 * (words[a].len() - both(a, b)) <= lost_percent * words[a].len()
        };
        for rule in [
            "--keep first",
            "--keep quality:max",
            "--policy representative",
        ] {
            let ran = folder.run(&format!(
                "dedup c.jsonl -o kept.jsonl --report r.tsv --force --words 1 --lost {lost} {rule}"
            ));
            assert!(!ran.expect(0).stderr.contains("missed"));
            let report = folder.report("r.tsv");
            let position = |key: &str| key.parse::<usize>().unwrap();
            let mut kept: BTreeSet<usize> = (0..documents.len()).collect();
            for row in report.lines() {
                let fields: Vec<&str> = row.split('\t').collect();
                let (dropped, survivor) = (position(fields[0]), position(fields[1]));
                assert!(is_held(dropped, survivor), "{lost} {rule}: {row}");
                let share = |of: usize| {
                    let share = both(dropped, survivor) as f64 / words[of].len() as f64;
                    (share * 1e6).round() / 1e6
                };
                assert_eq!(fields[4].parse(), Ok(share(dropped)), "{row}");
                assert_eq!(fields[5].parse(), Ok(share(survivor)), "{row}");
                assert!(kept.remove(&dropped), "{row}");
            }
            let written: String = kept
                .iter()
                .map(|position| lines[*position].as_str())
                .collect();
            assert_eq!(folder.read_text("kept.jsonl"), written, "{lost} {rule}");
            for row in report.lines() {
                let survivor = position(row.split('\t').nth(1).unwrap());
                assert!(kept.contains(&survivor), "{lost} {rule}: {row}");
            }
            for a in &kept {
                let holder = kept.iter().find(|b| a != *b && is_held(*a, **b));
                assert_eq!(holder, None, "{lost} {rule}: {a} is kept");
            }
            // What is left loses nothing more.
            folder.write("again.jsonl", folder.read_text("kept.jsonl"));
            let again =
                format!("dedup again.jsonl -o twice.jsonl --force --words 1 --lost {lost} {rule}");
            folder.run(&again).expect(0);
            assert_eq!(folder.read_text("twice.jsonl"), written, "{lost} {rule}");
            kept_counts.insert(kept.len());
        }
    }
    assert!(kept_counts.len() >= 3, "{kept_counts:?}");
    for wrong in [
        "--lost 1",
        "--lost -0.1",
        "--lost x",
        "--lost 0 --threshold 0.9",
        "--lost 0 --verify estimate",
        "--lost 0 --policy cluster",
        "--lost 0 --max-bucket 100",
        "--lost 0 --minhash 64",
        "--lost 0 --against s.rsm",
        "--lost 0 --level line",
    ] {
        let ran = folder.run(&format!("dedup c.jsonl -o wrong.jsonl {wrong}"));
        assert_eq!(ran.code, Some(2), "{wrong}: {}", ran.stderr);
    }
}
