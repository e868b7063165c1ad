//! decontaminate: documents that have something of test sets, against brute force over their words.

use std::collections::{BTreeMap, BTreeSet};

use crate::sample::Random;
use crate::support::{Folder, line};

/// The test sets, with their texts by their keys.
type TestSets = [(&'static str, Vec<Vec<String>>); 2];

/// Tests of 1 to 60 words.
fn test_sets(random: &mut Random) -> TestSets {
    ["long.jsonl", "short.jsonl"].map(|name| {
        let most = if name == "short.jsonl" { 16 } else { 60 };
        let mut test = |_| -> Vec<String> {
            let length = 1 + random.below(most);
            (0..length)
                .map(|_| format!("t{}", random.below(5_000)))
                .collect()
        };
        (name, (0..40).map(&mut test).collect())
    })
}

/// Documents, each of which has a part of a test between other words, or none.
fn documents(random: &mut Random, sets: &TestSets) -> Vec<Vec<String>> {
    let mut document = |number: u64| {
        let mut words: Vec<String> = (0..40)
            .map(|_| format!("w{}", random.below(90_000)))
            .collect();
        let tests = &sets[random.index(2)].1;
        let test = &tests[random.index(tests.len())];
        let start = random.index(test.len());
        let part = match number % 4 {
            0 => &test[..0],
            1 => &test[..],
            2 => &test[start..],
            _ => &test[..start],
        };
        let place = random.index(words.len());
        words.splice(place..place, part.iter().cloned());
        words
    };
    (0..300).map(&mut document).collect()
}

fn grams(words: &[String], length: usize) -> BTreeSet<&[String]> {
    words.windows(length).collect()
}

fn is_in(part: &[String], whole: &[String]) -> bool {
    whole.windows(part.len()).any(|run| run == part)
}

/// How much of a test a document has.
struct Found {
    /// The share of the test's sequences of 8 words.
    share: f64,
    /// True if it has a sequence of this number of words.
    eight: bool,
    thirteen: bool,
    is_whole: bool,
}

fn found(test: &[String], document: &[String]) -> Found {
    let (of_test, of_document) = (grams(test, 8), grams(document, 8));
    let shared = of_test.intersection(&of_document).count();
    Found {
        share: if of_test.is_empty() {
            0.0
        } else {
            shared as f64 / of_test.len() as f64
        },
        eight: shared > 0,
        thirteen: !grams(test, 13).is_disjoint(&grams(document, 13)),
        is_whole: is_in(test, document),
    }
}

struct Setting {
    folder: Folder,
    sets: TestSets,
    documents: Vec<Vec<String>>,
}

impl Setting {
    fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let sets = test_sets(&mut random);
        let documents = documents(&mut random, &sets);
        let folder = Folder::new();
        for (name, tests) in &sets {
            let lines = (0..)
                .zip(tests)
                .map(|(n, test)| line(&format!("{name} {n}"), &test.join(" ")));
            folder.write(name, lines.collect::<String>());
        }
        let lines = (0..)
            .zip(&documents)
            .map(|(n, words): (usize, _)| line(&n.to_string(), &words.join(" ")));
        folder.write("c.jsonl", lines.collect::<String>());
        Self {
            folder,
            sets,
            documents,
        }
    }

    /// Runs the verb. Returns the documents left out with their tests, test sets and spans, and the listed tests.
    fn run(
        &self,
        options: &str,
        code: i32,
    ) -> (BTreeMap<usize, Vec<String>>, BTreeMap<String, Vec<String>>) {
        let arguments = format!(
            "decontaminate c.jsonl --against long.jsonl short.jsonl -o clean.jsonl --report r.tsv --spans --items items.tsv --force {options}"
        );
        self.folder.run(&arguments).expect(code);
        let rows = |name| {
            let text = self.folder.read_text(name);
            let rows = text
                .lines()
                .skip(1)
                .map(|row| row.split('\t').map(str::to_owned).collect());
            rows.collect::<Vec<Vec<String>>>()
        };
        let report = rows("r.tsv")
            .into_iter()
            .map(|row| (row[0].parse().unwrap(), row))
            .collect();
        let items = rows("items.tsv")
            .into_iter()
            .map(|row| (row[1].clone(), row))
            .collect();
        (report, items)
    }

    fn test(&self, key: &str) -> &[String] {
        let (name, number) = key.split_once(' ').unwrap();
        let set = self.sets.iter().find(|set| set.0 == name).unwrap();
        &set.1[number.parse::<usize>().unwrap()]
    }

    fn keys(&self) -> impl Iterator<Item = String> {
        self.sets
            .iter()
            .flat_map(|(name, tests)| (0..tests.len()).map(move |n| format!("{name} {n}")))
    }

    /// Checks that the report names a test, its set and where the document has it.
    fn check_row(&self, number: usize, row: &[String]) {
        let (name, _) = row[1].split_once(' ').unwrap();
        assert_eq!(row[5], name, "{row:?}");
        let document = self.documents[number].join(" ");
        let [start, end] = [7, 8].map(|column| row[column].parse::<usize>().unwrap());
        let test = self.test(&row[1]).join(" ");
        let [test_start, test_end] = [9, 10].map(|column| row[column].parse::<usize>().unwrap());
        assert_eq!(document[start..end], test[test_start..test_end], "{row:?}");
    }
}

#[test]
fn shares_of_tests_are_those_of_brute_force() {
    let setting = Setting::new(3);
    for share in [0.2, 0.5, 1.0] {
        let (report, items) = setting.run(&format!("--min-share {share}"), 0);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (number, document) in setting.documents.iter().enumerate() {
            let mut is_left_out = false;
            for key in setting.keys() {
                let test = setting.test(&key);
                let found = found(test, document);
                let is_short = test.len() < 8;
                if found.eight && found.share >= share
                    || is_short && test.len() >= 5 && found.is_whole
                {
                    is_left_out = true;
                    *counts.entry(key).or_default() += 1;
                }
            }
            assert_eq!(
                report.contains_key(&number),
                is_left_out,
                "{share} {number}"
            );
            if let Some(row) = report.get(&number) {
                setting.check_row(number, row);
            }
        }
        for key in setting.keys() {
            let is_short = setting.test(&key).len() < 5;
            let listed = items
                .get(&key)
                .map(|row| (row[2].as_str(), row[3].parse().unwrap()));
            let expected = match counts.get(&key) {
                Some(count) => Some(("found", *count)),
                None => is_short.then_some(("short", 0)),
            };
            assert_eq!(listed, expected, "{share} {key}");
        }
    }
}

#[test]
fn passages_and_whole_tests_are_found_and_a_share_fails() {
    let setting = Setting::new(4);
    let (report, items) = setting.run("--fail-above 0.05", 1);
    for (number, document) in setting.documents.iter().enumerate() {
        let of_tests = || {
            setting.keys().map(|key| {
                (
                    setting.test(&key).len(),
                    found(setting.test(&key), document),
                )
            })
        };
        let must = of_tests().any(|(words, found)| found.thirteen || words >= 5 && found.is_whole);
        let may = of_tests().any(|(words, found)| found.eight || words >= 5 && found.is_whole);
        assert!(!must || report.contains_key(&number), "{number} is missed");
        assert!(
            may || !report.contains_key(&number),
            "{number} has nothing of a test"
        );
        if let Some(row) = report.get(&number) {
            setting.check_row(number, row);
        }
    }
    let kept = setting.folder.read_text("clean.jsonl").lines().count();
    assert_eq!(kept + report.len(), setting.documents.len());
    assert!(items.values().any(|row| row[2] == "short"));
    setting.run("--fail-above 0.99", 0);
}
