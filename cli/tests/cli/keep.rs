//! dedup --keep, --policy, --lost, --level, --against, --job: which documents survive, against a model that
//! compares all with all.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::levels;
use crate::sample::{Random, trials};
use crate::support::{Folder, edited, line};
use crate::survivors::{Dropped, Likeness, Sets, families};

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

/// The shingles of five words of a text.
fn shingles(text: &str) -> BTreeSet<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(5).map(hash).collect()
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
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
    let texts = documents.iter().map(|d| d["text"].as_str().unwrap());
    let sets: Sets = texts.map(shingles).collect();
    let likeness = Likeness {
        sets: &sets,
        are_empty_alike: false,
    };
    let graph = likeness.graph(0.88);
    let mut outcomes = BTreeSet::new();
    for keep in ["first", "last", "longest", "quality:max", "quality:min"] {
        let order = order(&documents, keep);
        let by_degree = graph.by_degree(&order);
        for (policy, expected) in [
            ("first", graph.greedy(&order)),
            ("cluster", graph.clusters(&order)),
            ("representative", graph.greedy(&by_degree)),
        ] {
            let arguments = format!(
                "dedup c.jsonl -o kept.jsonl --dropped dropped.jsonl --report r.tsv --annotate annotated.jsonl --force --threshold 0.88 --bands 128 --rows 1 --policy {policy} --keep {keep}"
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
    // Features decide anyway.
    let exact =
        "dedup c.jsonl -o exact.jsonl --words 1 --lost 0.25 --policy representative --exact";
    folder.run(exact).expect(0);
    assert!(folder.read("exact.jsonl") == folder.read("kept.jsonl"));
    // Every option that determines the features is accepted.
    for units in ["--auto 1", "--words 1 --unordered"] {
        folder
            .run(&format!(
                "dedup c.jsonl -o units.jsonl --force {units} --lost 0.25 --policy representative"
            ))
            .expect(0);
        assert!(folder.read("units.jsonl") == folder.read("kept.jsonl"));
    }
    for wrong in [
        "--lost 0 --exact --exact-bits 40",
        "--lost 1",
        "--lost -0.1",
        "--lost x",
        "--lost 0 --threshold 0.9",
        "--lost 0 --verify estimate",
        "--lost 0 --policy cluster",
        "--lost 0 --max-bucket 100",
        "--lost 0 --minhash 64",
        "--lost 0 --level line",
    ] {
        let ran = folder.run(&format!("dedup c.jsonl -o wrong.jsonl {wrong}"));
        assert_eq!(ran.code, Some(2), "{wrong}: {}", ran.stderr);
    }
}

/// Documents that hold words of one another, with keys that several have, bad ones between them.
struct RandomCorpus {
    /// `None` for a bad one.
    records: Vec<Option<serde_json::Value>>,
}

impl RandomCorpus {
    fn new(random: &mut Random) -> Self {
        let sets = families(random, 40);
        let record = |set: &BTreeSet<u64>| {
            if random.below(15) == 0 {
                return None;
            }
            let mut record = serde_json::json!({"id": random.below(20), "text": page(set)});
            if random.below(6) > 0 {
                record["quality"] = serde_json::json!(random.below(5));
            }
            Some(record)
        };
        let records = sets.iter().map(record).collect();
        Self { records }
    }

    fn lines(&self) -> Vec<String> {
        let line = |record: &Option<serde_json::Value>| match record {
            Some(record) => format!("{record}\n"),
            None => "no JSON\n".to_owned(),
        };
        self.records.iter().map(line).collect()
    }

    /// The texts, without the parts that a level removes. `None` for records that are bad or lose all.
    fn texts(&self, level: &str) -> Vec<Option<String>> {
        let good = (0..self.records.len()).filter(|n| self.records[*n].is_some());
        let good: Vec<usize> = good.collect();
        let text = |n: &usize| {
            self.records[*n].as_ref().unwrap()["text"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let pages: Vec<_> = good.iter().map(|n| (String::new(), text(n))).collect();
        let left = match level {
            "document" => pages.into_iter().map(|(_, text)| Some(text)).collect(),
            level => levels::expected(&pages, level == "line,document").0,
        };
        let mut texts = vec![None; self.records.len()];
        for (n, left) in good.into_iter().zip(left) {
            texts[n] = left;
        }
        texts
    }
}

/// A text with these words: the most frequent ones on the first line, each of the others in lines of up to six.
fn page(set: &BTreeSet<u64>) -> String {
    let words: Vec<_> = set.iter().map(|feature| format!("w{feature}")).collect();
    let frequent = set.iter().filter(|feature| **feature < 12).count();
    let (first, rest) = words.split_at(frequent);
    let lines: Vec<String> = rest.chunks(6).map(|line| line.join(" ")).collect();
    let separator = if set.len().is_multiple_of(2) {
        "\n"
    } else {
        "\n\n"
    };
    format!("{}\n\n{}", first.join(" "), lines.join(separator))
}

/// The choices of a run of dedup.
#[derive(Clone, Copy, Debug)]
struct Choices {
    policy: &'static str,
    lost: Option<&'static str>,
    keep: &'static str,
    level: &'static str,
    threshold: &'static str,
    empty: &'static str,
    against: bool,
    /// Whether the store is exact. Otherwise, its texts are given.
    is_exact: bool,
    has_job: bool,
}

impl Choices {
    fn random(random: &mut Random) -> Self {
        let lost = random.pick(&[None, None, Some("0"), Some("0.05")]);
        let level = random.pick(&[
            "document",
            "document",
            "line,document",
            "paragraph,document",
        ]);
        let against = random.below(3) == 0;
        let policies = ["first", "representative", "cluster"];
        Self {
            policy: random.pick(&policies[..3 - usize::from(lost.is_some())]),
            lost,
            keep: random.pick(&["first", "last", "longest", "quality:max", "quality:min"]),
            level,
            threshold: random.pick(&["0.5", "0.7", "0.9", "1"]),
            empty: random.pick(&["alike", "distinct"]),
            against,
            is_exact: lost.is_none() || random.below(2) == 0,
            has_job: !against && level == "document" && random.below(2) == 0,
        }
    }

    /// The arguments for a corpus. Every two documents that share a twentieth of their words are compared.
    fn arguments(&self, corpus: &str, output: &str) -> String {
        let Self {
            policy,
            keep,
            level,
            empty,
            threshold,
            ..
        } = self;
        let texts = if self.is_exact {
            ""
        } else {
            "--texts known.jsonl"
        };
        let rule = match (self.lost, self.against) {
            (Some(lost), true) => format!("--against known.rsm {texts} --lost {lost}"),
            (Some(lost), false) => format!("--words 1 --empty {empty} --lost {lost}"),
            (None, true) => "--against known.rsm".to_owned(),
            (None, false) => format!("{SCHEMA} --empty {empty} --threshold {threshold}"),
        };
        format!(
            "dedup {corpus} -o {output} --policy {policy} --keep {keep} --level {level} {rule} --skip-bad --force"
        )
    }

    /// True if a document may not be dropped for another one.
    fn are_apart(&self, likeness: &Likeness<'_>, document: usize, other: usize) -> bool {
        match self.lost {
            Some(lost) => !likeness.holds(document, other, lost.parse().unwrap()),
            None => likeness.similarity(document, other) < Some(self.threshold.parse().unwrap()),
        }
    }

    /// Checks the list of rejected candidates: each row is that of documents with these keys which may
    /// not be dropped for one another, the second of them kept or in the store.
    fn check_rejected(
        &self,
        corpus: &RandomCorpus,
        known: &[String],
        kept: &BTreeSet<usize>,
        list: &str,
    ) {
        let texts = corpus.texts(self.level);
        let words = |text: &String| text.split_whitespace().map(hash).collect();
        let set = |text: &Option<String>| text.as_ref().map(words).unwrap_or_default();
        let sets: Sets = texts
            .iter()
            .map(set)
            .chain(known.iter().map(words))
            .collect();
        let likeness = Likeness {
            sets: &sets,
            are_empty_alike: self.empty == "alike",
        };
        // An id that an earlier file has gets the name of its file.
        let keys = |number: usize| match corpus.records.get(number) {
            Some(record) => {
                let id = record.as_ref().map(|record| record["id"].to_string());
                let file = 1 + usize::from(number >= corpus.records.len() / 2);
                [id.as_ref().map(|id| format!("c/{file}.jsonl:{id}")), id]
            }
            None => {
                let line = number - corpus.records.len() + 1;
                [Some(format!("known.jsonl:{line}")), None]
            }
        };
        let with = |name: &serde_json::Value| {
            let name = name.as_str().map(str::to_owned);
            (0..sets.len()).filter(move |number| keys(*number).contains(&name))
        };
        for row in list.lines() {
            let found: serde_json::Value = serde_json::from_str(row).unwrap();
            let fits = |a: usize, b: usize| {
                let shares = likeness.shares(a, b);
                let listed = ["held", "covered"].map(|name| found[name].as_f64().unwrap());
                let differ = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-6;
                a != b
                    && a < texts.len()
                    && (b >= texts.len() || kept.contains(&b))
                    && self.are_apart(&likeness, a, b)
                    && !shares.iter().zip(&listed).any(differ)
            };
            let mut documents = with(&found["document"]);
            let is_true = documents.any(|a| with(&found["candidate"]).any(|b| fits(a, b)));
            assert!(is_true, "{self:?}: {row}");
        }
    }

    /// Returns the documents that are dropped for others of the corpus, and those that are dropped because the
    /// store has one like them.
    fn expected(&self, corpus: &RandomCorpus, known: &[String]) -> (Dropped, BTreeSet<usize>) {
        let texts = corpus.texts(self.level);
        let words = |text: &str| text.split_whitespace().map(hash).collect();
        let numbers = (0..texts.len()).filter(|n| texts[*n].is_some());
        let mut numbers: Vec<usize> = numbers.collect();
        let set = |n: &usize| words(texts[*n].as_ref().unwrap());
        let all: Sets = numbers
            .iter()
            .map(set)
            .chain(known.iter().map(|text| words(text)))
            .collect();
        let threshold = self.threshold.parse().unwrap();
        let likeness = Likeness {
            sets: &all,
            are_empty_alike: self.empty == "alike",
        };
        let like_known = |place: usize| {
            let mut known = numbers.len()..all.len();
            self.against && known.any(|known| !self.are_apart(&likeness, place, known))
        };
        let in_store: BTreeSet<usize> = (0..numbers.len())
            .filter(|place| like_known(*place))
            .map(|place| numbers[place])
            .collect();
        numbers.retain(|n| !in_store.contains(n));
        let sets: Sets = numbers.iter().map(set).collect();
        let documents: Vec<serde_json::Value> = numbers
            .iter()
            .map(|n| {
                let mut document = corpus.records[*n].clone().unwrap();
                document["text"] = texts[*n].clone().into();
                document
            })
            .collect();
        let order = order(&documents, self.keep);
        let likeness = Likeness {
            sets: &sets,
            ..likeness
        };
        let graph = likeness.graph(threshold);
        let dropped = match (self.lost, self.policy) {
            (Some(lost), policy) => {
                likeness.contained(&order, lost.parse().unwrap(), policy == "representative")
            }
            (None, "first") => graph.greedy(&order),
            (None, "cluster") => graph.clusters(&order),
            (None, _) => graph.greedy(&graph.by_degree(&order)),
        };
        let in_corpus = |(place, survivors): (usize, BTreeSet<usize>)| {
            (
                numbers[place],
                survivors.into_iter().map(|place| numbers[place]).collect(),
            )
        };
        (dropped.into_iter().map(in_corpus).collect(), in_store)
    }
}

const SCHEMA: &str = "--words 1 --minhash 64 --bands 64 --rows 1";

/// Runs dedup, and checks each decision, the counts and the outputs. Returns the number of dropped documents.
fn check_run(folder: &Folder, choices: &Choices, corpus: &RandomCorpus, known: &[String]) -> usize {
    let lines = corpus.lines();
    let middle = lines.len() / 2;
    folder.write("c/1.jsonl", lines[..middle].concat());
    folder.write("c/2.jsonl", lines[middle..].concat());
    let outputs = "--dropped gone.jsonl --report r.jsonl --annotate annotated.jsonl";
    let job = if choices.has_job { "--job job" } else { "" };
    let rejected = match choices.policy {
        "cluster" => "",
        _ => "--rejected x.jsonl",
    };
    let arguments = choices.arguments("c", "out.jsonl");
    let arguments = format!("{arguments} {outputs} {rejected} {job}");
    let ran = folder.run(&arguments).expect(0);
    let (dropped, in_store) = choices.expected(corpus, known);
    let texts = corpus.texts(choices.level);
    let (mut kept, mut gone) = (String::new(), String::new());
    let annotated = folder.read_text("annotated.jsonl");
    let mut annotated = annotated.lines();
    let (mut counts, mut kept_numbers) = ([0; 4], BTreeSet::new());
    for (number, record) in corpus.records.iter().enumerate() {
        let Some(record) = record else {
            counts[2] += 1;
            continue;
        };
        let found: serde_json::Value = serde_json::from_str(annotated.next().unwrap()).unwrap();
        let is_dropped = dropped.contains_key(&number) || in_store.contains(&number);
        let is_kept = !is_dropped && texts[number].is_some();
        assert_eq!(found["dedup_kept"], is_kept, "{choices:?} {number}");
        let cluster = found["dedup_cluster"].as_str();
        if let Some(survivors) = dropped.get(&number) {
            let survivor = cluster.unwrap().parse::<usize>().unwrap() - 1;
            assert!(
                survivors.contains(&survivor),
                "{choices:?} {number}: {survivor}"
            );
            assert!(!dropped.contains_key(&survivor) && survivor != number);
        } else if in_store.contains(&number) {
            let id: usize = cluster
                .unwrap()
                .strip_prefix("store:")
                .unwrap()
                .parse()
                .unwrap();
            assert!(id < known.len());
        }
        let mut left = record.clone();
        if let Some(text) = &texts[number] {
            left["text"] = text.clone().into();
        }
        counts[match (is_kept, &texts[number]) {
            (true, _) => 0,
            (_, Some(_)) => 1,
            (_, None) => 3,
        }] += 1;
        // A dropped document is written as it was read.
        kept_numbers.extend(is_kept.then_some(number));
        match is_kept {
            true => kept += &format!("{left}\n"),
            false => gone += &format!("{record}\n"),
        }
    }
    assert_eq!(annotated.next(), None);
    assert_eq!(folder.read_text("out.jsonl"), kept, "{choices:?}");
    assert_eq!(folder.read_text("gone.jsonl"), gone, "{choices:?}");
    let [kept_count, dropped_count, bad, emptied] = counts;
    let summary = ran.stderr.lines().last().unwrap();
    let expected = format!(
        "read {}, kept {kept_count}, dropped {dropped_count}, skipped {bad}, ",
        lines.len()
    );
    assert!(summary.contains(&expected), "{expected}: {summary}");
    assert!(
        emptied == 0 || summary.contains(&format!(", emptied {emptied}")),
        "{summary}"
    );
    let report = folder.read_text("r.jsonl");
    assert_eq!(report.lines().count(), dropped_count, "{choices:?}");
    if !rejected.is_empty() {
        let list = folder.read_text("x.jsonl");
        choices.check_rejected(corpus, known, &kept_numbers, &list);
    }
    if choices.has_job {
        // A killed run leaves a part of the files.
        let outputs = ["out.jsonl", "gone.jsonl", "r.jsonl", "annotated.jsonl"];
        let before = outputs.map(|name| folder.read(name));
        std::fs::remove_file(folder.path("job/000000.documents")).unwrap();
        for name in outputs {
            std::fs::remove_file(folder.path(name)).unwrap();
        }
        let again = folder.run(&format!("{arguments} --threads 1")).expect(0);
        assert!(
            again.stderr.contains("reusing 1 of 2 files"),
            "{}",
            again.stderr
        );
        assert!(
            outputs.map(|name| folder.read(name)) == before,
            "{choices:?}"
        );
        std::fs::remove_dir_all(folder.path("job")).unwrap();
    }
    let again = choices.arguments("out.jsonl", "again.jsonl");
    folder.run(&format!("{again} --threads 3")).expect(0);
    assert_eq!(
        folder.read_text("again.jsonl"),
        kept,
        "{choices:?}: dropped again"
    );
    dropped_count
}

/// Whatever the policy, the rule, the level, the store and the job, the documents that are kept, dropped, emptied
/// and bad are those that were read, every survivor is kept, and a second run drops nothing.
#[test]
fn random_runs_keep_what_the_model_keeps_and_nothing_twice() {
    let (mut random, mut dropped) = (Random(41), 0);
    let folder = Folder::new();
    for _ in 0..trials(40, 600) {
        let corpus = RandomCorpus::new(&mut random);
        let choices = Choices::random(&mut random);
        let texts = corpus.texts("document").into_iter().flatten();
        let known: Vec<String> = texts.filter(|_| random.below(6) == 0).collect();
        if choices.against {
            let lines = known
                .iter()
                .map(|text| format!("{}\n", serde_json::json!({"text": text})));
            folder.write("known.jsonl", lines.collect::<String>());
            let Choices {
                empty, threshold, ..
            } = choices;
            let exact = if choices.is_exact { "--exact" } else { "" };
            // All features are kept, so that each one that is shared nominates.
            let kept = choices.lost.map_or("", |_| "--containment 1 --window 1");
            let build = format!(
                "build known.rsm known.jsonl {SCHEMA} {exact} {kept} --empty {empty} --threshold {threshold}"
            );
            let _ = std::fs::remove_file(folder.path("known.rsm"));
            folder.run(&build).expect(0);
        }
        dropped += check_run(&folder, &choices, &corpus, &known);
    }
    assert!(dropped > 200, "{dropped}");
}

/// A run whose memory is nearly full reads the rest of the corpus ahead, and decides the same.
#[test]
fn little_memory_changes_no_decision() {
    let folder = Folder::new();
    let mut random = Random(11);
    let mut lines = String::new();
    for number in 0..12_000_u64 {
        // One in three is like an earlier one.
        let (family, changes) = match random.below(3) {
            0 => (random.below(number + 1), random.below(2)),
            _ => (number, 0),
        };
        let text = edited(family, changes);
        let words: Vec<_> = text.split(' ').take(60).collect();
        lines += &line(&format!("d{number}"), &words.join(" "));
    }
    folder.write("corpus.jsonl", &lines);
    let run = |memory: &str, exact: &str| {
        let ran = folder.run(&format!(
            "dedup corpus.jsonl -o out.jsonl --force --report report.tsv -v --memory {memory} \
             --verify {exact}"
        ));
        let ran = ran.expect(0);
        let looked_ahead = ran.stderr.contains("looking ahead");
        let results = (folder.read_text("out.jsonl"), folder.report("report.tsv"));
        std::fs::remove_file(folder.path("report.tsv")).unwrap();
        (looked_ahead, results)
    };
    for verify in ["exact", "estimate"] {
        let (ahead, enough) = run("1G", verify);
        let (ahead_of_little, little) = run("6M", verify);
        assert!(!ahead && ahead_of_little, "{verify}");
        assert!(enough == little, "{verify}");
        assert!(enough.1.lines().count() > 1_000, "{verify}");
    }
}
