//! Makes the book from the small corpus, and computes each of its numbers again without the library: by brute force
//! over sets of strings, by closed forms, and for what depends on random functions by the bounds of chance.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

use resemblance::schema::feature_hash;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stories/articles.jsonl");
const NEAR: f64 = 0.5;

fn run(arguments: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_book"));
    command.args(arguments).output().unwrap()
}

fn made(corpus: &[&Path]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("book.html");
    let output = run(&[&[page.as_path()], corpus].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    std::fs::read_to_string(page).unwrap()
}

static PAGE: LazyLock<String> = LazyLock::new(|| made(&[]));

/// Returns the numbers of a page by name, in their order.
fn numbers(page: &str) -> BTreeMap<&str, Vec<f64>> {
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for part in page.split("<data class=\"").skip(1) {
        let (name, rest) = part.split_once("\" value=\"").unwrap();
        let value = rest.split('"').next().unwrap().parse().unwrap();
        found.entry(name).or_default().push(value);
    }
    found
}

type Set = BTreeSet<String>;

fn jaccard(a: &Set, b: &Set) -> f64 {
    a.intersection(b).count() as f64 / a.union(b).count() as f64
}

fn cosine(a: &Set, b: &Set) -> f64 {
    a.intersection(b).count() as f64 / ((a.len() * b.len()) as f64).sqrt()
}

fn counts(words: &[String]) -> BTreeMap<&String, f64> {
    let mut counts = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_insert(0.0) += 1.0;
    }
    counts
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the sets of `chosen` out of `all` numbers, as bits.
fn choices(all: u32, chosen: u32) -> impl Iterator<Item = u32> {
    (0..1_u32 << all).filter(move |bits| bits.count_ones() == chosen)
}

/// The corpus, as a reader of the definitions would see it.
struct Oracle {
    texts: Vec<String>,
    words: Vec<Vec<String>>,
    sets: Vec<Set>,
    pairs: Vec<(usize, usize, f64)>,
    /// The documents A to D.
    worked: [usize; 4],
    numbers: BTreeMap<&'static str, Vec<f64>>,
}

impl Oracle {
    fn new() -> Self {
        let mut texts = Vec::new();
        for line in std::fs::read_to_string(CORPUS).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            texts.extend(line["text"].as_str().map(str::to_lowercase));
        }
        let cut = |text: &String| {
            let words = text.split(|c: char| !c.is_alphanumeric());
            words.filter(|w| !w.is_empty()).map(String::from).collect()
        };
        let words: Vec<Vec<String>> = texts.iter().map(cut).collect();
        let shingles = |words: &Vec<String>| words.windows(3).map(|it| it.join(" ")).collect();
        let sets: Vec<Set> = words.iter().map(shingles).collect();
        let mut pairs = Vec::new();
        for a in 0..sets.len() {
            pairs.extend((a + 1..sets.len()).map(|b| (a, b, jaccard(&sets[a], &sets[b]))));
        }
        let near = pairs.iter().filter(|(.., s)| (NEAR..1.0).contains(s));
        let off = |s: f64| (s - 0.75).abs();
        let &(a, b, _) = near.min_by(|x, y| off(x.2).total_cmp(&off(y.2))).unwrap();
        let to_a = |c: &usize| jaccard(&sets[a], &sets[*c]);
        let mut others: Vec<usize> = (0..sets.len()).filter(|c| ![a, b].contains(c)).collect();
        let near = others.iter().max_by(|c, d| to_a(c).total_cmp(&to_a(d)));
        let near = *near.unwrap();
        others.retain(|c| *c != near);
        let far = others.iter().min_by(|c, d| to_a(c).total_cmp(&to_a(d)));
        let worked = [a, b, near, *far.unwrap()];
        let numbers = numbers(&PAGE);
        Self {
            texts,
            words,
            sets,
            pairs,
            worked,
            numbers,
        }
    }

    fn page(&self, name: &str) -> f64 {
        self.numbers[name][0]
    }

    fn near(&self, is_near: bool) -> impl Iterator<Item = f64> {
        let similarities = self.pairs.iter().map(|(.., s)| *s);
        similarities.filter(move |s| (*s >= NEAR) == is_near)
    }

    /// Six words of each document: from where A and B share three words before they part, or C and D share
    /// three with these.
    fn windows(&self) -> Vec<&[String]> {
        let six = |document: usize, start: usize| {
            let words = &self.words[document];
            let start = start.min(words.len() - 6);
            &words[start..start + 6]
        };
        let three = |words: &[String], at: usize| words.get(at..at + 3).map(<[String]>::to_vec);
        let find = |words: &[String], same: &dyn Fn(usize) -> bool| {
            (0..words.len().saturating_sub(2)).find(|at| same(*at))
        };
        let [a, b, c, d] = self.worked;
        let (own, other) = (&self.words[a], &self.words[b]);
        let fork = (0..own.len() - 2).find_map(|i| {
            let parts = |j| three(other, j) == three(own, i) && other.get(j + 3) != own.get(i + 3);
            Some((i, find(other, &parts)?))
        });
        let (i, j) = fork.expect("A and B part somewhere");
        let mut windows = vec![six(a, i), six(b, j)];
        for document in [c, d] {
            let words = &self.words[document];
            let place =
                (0..4).find_map(|at| find(words, &|j| three(words, j) == three(windows[0], at)));
            windows.push(six(document, place.unwrap_or(0)));
        }
        windows
    }

    fn rows(&self) -> Vec<&String> {
        let mut rows = Vec::new();
        for word in self.windows().into_iter().flatten() {
            if !rows.contains(&word) {
                rows.push(word);
            }
        }
        rows
    }

    /// The place of row x under each function.
    fn images(&self, row: usize) -> Vec<f64> {
        let functions = self.numbers["factor"].iter().zip(&self.numbers["summand"]);
        functions
            .map(|(a, b)| (a * row as f64 + b) % self.page("modulus"))
            .collect()
    }

    /// The minima of a document, A to D.
    fn minima(&self, document: usize) -> Vec<f64> {
        let window = self.windows()[document];
        let rows = self.rows().into_iter().enumerate();
        let own: Vec<_> = rows
            .filter(|(_, word)| window.contains(word))
            .map(|(row, _)| self.images(row))
            .collect();
        let least = |at: usize| {
            own.iter()
                .map(|images| images[at])
                .fold(f64::INFINITY, f64::min)
        };
        (0..own[0].len()).map(least).collect()
    }

    /// The sets of characters' shingles of near or other pairs, compared.
    fn mean_of_size(&self, size: usize, is_near: bool) -> f64 {
        let cut = |text: &String| {
            let spaced: Vec<&str> = text.split_whitespace().collect();
            let characters: Vec<char> = spaced.join(" ").chars().collect();
            characters
                .windows(size)
                .map(String::from_iter)
                .collect::<Set>()
        };
        let pairs: Vec<_> = self.pairs.iter().collect();
        let kind = |s: f64| s < 1.0 && (s >= NEAR) == is_near;
        let chosen: Vec<_> = pairs.into_iter().filter(|(.., s)| kind(*s)).collect();
        let step = chosen.len().div_ceil(100);
        let compared = chosen.iter().step_by(step);
        mean(compared.map(|(a, b, _)| jaccard(&cut(&self.texts[*a]), &cut(&self.texts[*b]))))
    }

    /// Similarities of the pairs whose estimates are compared.
    fn compared(&self) -> Vec<f64> {
        let similarities = self.pairs.iter().map(|(.., s)| *s);
        similarities.filter(|s| (0.1..1.0).contains(s)).collect()
    }

    fn weighted(&self) -> f64 {
        let [a, b] = [0, 1].map(|place| counts(&self.words[self.worked[place]]));
        let words: BTreeSet<_> = a.keys().chain(b.keys()).collect();
        let (mut least, mut most) = (0.0, 0.0);
        for word in words {
            let [a, b] = [&a, &b].map(|counts| counts.get(word).copied().unwrap_or(0.0));
            (least, most) = (least + f64::min(a, b), most + f64::max(a, b));
        }
        least / most
    }

    /// The probability that bands find a pair.
    fn found(&self, s: f64) -> f64 {
        let (bands, rows) = (self.page("bands"), self.page("band-rows"));
        1.0 - (1.0 - s.powf(rows)).powf(bands)
    }

    /// The counts of the most frequent words in A and B.
    fn vector_cosine(&self) -> f64 {
        let all: Vec<String> = self.words.concat();
        let all = counts(&all);
        let mut often: Vec<_> = all.into_iter().collect();
        often.sort_by(|x, y| y.1.total_cmp(&x.1).then(x.0.cmp(y.0)));
        let [a, b] = [0, 1].map(|place| counts(&self.words[self.worked[place]]));
        let (mut products, mut squares_a, mut squares_b) = (0.0, 0.0, 0.0);
        for (word, _) in often.iter().take(64) {
            let [a, b] = [&a, &b].map(|counts| counts.get(word).copied().unwrap_or(0.0));
            (products, squares_a, squares_b) =
                (products + a * b, squares_a + a * a, squares_b + b * b);
        }
        products / f64::sqrt(squares_a * squares_b)
    }

    /// The fingerprint of eight bits of a document, and its sums of votes, the first bit first.
    fn small(&self, document: usize) -> (String, Vec<f64>, Vec<f64>) {
        let bit =
            |word: &String, bit: u32| f64::from((feature_hash(word.as_bytes()) >> bit & 1) as u8);
        let words = self.windows()[document];
        let vote = |word: &String, at: u32| 2.0 * bit(word, at) - 1.0;
        let bits = || (0..8).rev();
        let votes = words
            .iter()
            .flat_map(|word| bits().map(move |at| vote(word, at)));
        let sums: Vec<f64> = bits()
            .map(|at| words.iter().map(|word| vote(word, at)).sum())
            .collect();
        let fingerprint = sums
            .iter()
            .map(|sum| if *sum > 0.0 { '1' } else { '0' })
            .collect();
        (fingerprint, votes.collect(), sums)
    }

    /// The codes of the small fingerprints, table by table.
    fn codes(&self) -> Vec<f64> {
        let fingerprints: Vec<String> = (0..4).map(|document| self.small(document).0).collect();
        let mut all = Vec::new();
        for block in (0..8).step_by(2) {
            let moved = fingerprints.iter().map(|bits| {
                format!(
                    "{}{}{}",
                    &bits[block..block + 2],
                    &bits[..block],
                    &bits[block + 2..]
                )
            });
            let mut sorted: Vec<String> = moved.collect();
            sorted.sort();
            all.extend(
                sorted
                    .iter()
                    .map(|bits| f64::from(u8::from_str_radix(bits, 2).unwrap())),
            );
        }
        all
    }
}

/// A number's rule: its exact values, or their means with the greatest deviation that chance allows.
enum Expected {
    Is(Vec<f64>),
    About(Vec<f64>, f64),
}
use Expected::{About, Is};

/// Returns the deviation that a share of k independent trials does not exceed.
fn chance(p: f64, k: f64) -> f64 {
    5.0 * (p * (1.0 - p) / k).sqrt() + 1e-9
}

fn sets_and_matrix(oracle: &Oracle, name: &str) -> Option<Expected> {
    let [a, b, ..] = oracle.worked;
    let (set_a, set_b) = (&oracle.sets[a], &oracle.sets[b]);
    let shared = set_a.intersection(set_b).count() as f64;
    let documents = oracle.sets.len() as f64;
    let size = |size: &str| if size == "short" { 4 } else { 9 };
    let place = |letter: &str| "ABCD".find(letter).unwrap();
    let letters = |pair: &str| [place(&pair[..1]), place(&pair[1..])];
    let window = |place: usize| oracle.windows()[place].iter().cloned().collect::<Set>();
    let rows = oracle.rows();
    Some(Is(vec![match name.split_once('-').unwrap_or((name, "")) {
        ("documents", _) => documents,
        ("words", "") => oracle.words.concat().len() as f64,
        ("pairs", "") => documents * (documents - 1.0) / 2.0,
        ("near", "pairs") => oracle.near(true).count() as f64,
        ("shingle", "words") => 3.0,
        ("shingles", "a") => set_a.len() as f64,
        ("shingles", "b") => set_b.len() as f64,
        ("shared", "") => shared,
        ("union", "") => set_a.union(set_b).count() as f64,
        ("jaccard", "") => jaccard(set_a, set_b),
        ("distance", "") => 1.0 - jaccard(set_a, set_b),
        ("containment", "a") => shared / set_a.len() as f64,
        ("containment", "b") => shared / set_b.len() as f64,
        ("size", "short" | "long") => size(&name[5..]) as f64,
        ("size", "short-near" | "long-near") => {
            oracle.mean_of_size(size(&name[5..name.len() - 5]), true)
        }
        ("size", "short-far" | "long-far") => {
            oracle.mean_of_size(size(&name[5..name.len() - 4]), false)
        }
        ("size", "values") => 128.0,
        ("window", "words") => 6.0,
        ("matrix", "rows") => rows.len() as f64,
        ("functions", "") => 6.0,
        ("sketch", "values") => 1_024.0,
        ("exact", pair) => {
            let [a, b] = letters(pair);
            jaccard(&window(a), &window(b))
        }
        ("estimate", pair) => {
            let [a, b] = letters(pair).map(|document| oracle.minima(document));
            mean(a.iter().zip(&b).map(|(a, b)| f64::from(u8::from(a == b))))
        }
        ("sketch", pair) => {
            let [a, b] = letters(pair);
            let exact = jaccard(&window(a), &window(b));
            return Some(About(vec![exact], chance(exact, 1_024.0)));
        }
        ("row", "") => return Some(Is((0..rows.len()).map(|row| row as f64).collect())),
        ("has", letter) => {
            let window = window(place(letter));
            return Some(Is(rows
                .iter()
                .map(|it| f64::from(u8::from(window.contains(*it))))
                .collect()));
        }
        ("image", function) => {
            let place = ["h₁", "h₂", "h₃", "h₄", "h₅", "h₆"]
                .iter()
                .position(|it| *it == function);
            return Some(Is((0..rows.len())
                .map(|row| oracle.images(row)[place.unwrap()])
                .collect()));
        }
        ("minimum", letter) => return Some(Is(oracle.minima(place(letter)))),
        _ => return None,
    }]))
}

const SIZES: [f64; 6] = [64.0, 128.0, 256.0, 400.0, 512.0, 1024.0];

fn estimates(oracle: &Oracle, name: &str) -> Option<Expected> {
    let [a, b, ..] = oracle.worked;
    let compared = oracle.compared();
    let similarity = jaccard(&oracle.sets[a], &oracle.sets[b]);
    let variance = mean(compared.iter().map(|s| s * (1.0 - s)));
    let theory = SIZES.map(|k| (variance / k).sqrt()).to_vec();
    let bits = [1, 2, 4, 8, 16, 32];
    let lost = |bits: i32| 2_f64.powi(-bits);
    let agree = |bits: i32| similarity + (1.0 - similarity) * lost(bits);
    let (own, other) = (counts(&oracle.words[a]), counts(&oracle.words[b]));
    let mut often: Vec<_> = own.iter().collect();
    often.sort_by(|x, y| y.1.total_cmp(x.1).then(x.0.cmp(y.0)));
    let times = |of: &dyn Fn(f64, f64) -> f64| {
        let pairs = often
            .iter()
            .take(4)
            .map(|(word, times)| (**times, *other.get(*word).unwrap_or(&0.0)));
        Some(Is(pairs.map(|(own, other)| of(own, other)).collect()))
    };
    let distinct = |words: &[String]| words.iter().cloned().collect::<Set>();
    Some(Is(match name {
        "floor" => vec![0.1],
        "compared-pairs" => vec![compared.len() as f64],
        "seeds" => {
            let features: usize = oracle.sets.iter().map(Set::len).sum();
            vec![(20_000 / features).clamp(2, 32) as f64]
        }
        "error-k" | "family-k" => SIZES.to_vec(),
        "error-worst" => SIZES.map(|k| 0.5 / k.sqrt()).to_vec(),
        "error-theory" | "family-theory" => theory,
        // All pairs have the same functions, so the errors of a seed are alike.
        "error-measured" | "family-modular" | "family-jenkins" => return Some(About(theory, 0.02)),
        "family-difference" => {
            let pairs = oracle.numbers["family-jenkins"]
                .iter()
                .zip(&oracle.numbers["family-modular"]);
            pairs.map(|(jenkins, modular)| jenkins - modular).collect()
        }
        "bit-bits" => bits.map(f64::from).to_vec(),
        "bit-agree" => bits.map(agree).to_vec(),
        "bit-deviation" => {
            let deviation = |p: f64, lost: f64| (p * (1.0 - p) / 512.0).sqrt() / (1.0 - lost);
            bits.map(|bits| deviation(agree(bits), lost(bits))).to_vec()
        }
        "bit-bytes" => bits.map(|bits| f64::from(bits * 512 / 8)).to_vec(),
        "bit-values" | "weighted-values" => vec![512.0],
        "times-a" => return times(&|own, _| own),
        "times-b" => return times(&|_, other| other),
        "times-least" => return times(&f64::min),
        "times-most" => return times(&f64::max),
        "words-jaccard" => vec![jaccard(
            &distinct(&oracle.words[a]),
            &distinct(&oracle.words[b]),
        )],
        "words-weighted" => vec![oracle.weighted()],
        "words-estimate" => {
            let weighted = oracle.weighted();
            return Some(About(vec![weighted], chance(weighted, 512.0)));
        }
        "twice-weighted" => vec![0.5],
        "twice-estimate" => return Some(About(vec![0.5], chance(0.5, 512.0))),
        _ => return None,
    }))
}

/// The most rows whose bands reach a recall at the threshold, and the fewest such bands.
fn design() -> (f64, f64) {
    let reaches = |bands: i32, rows: i32| 1.0 - (1.0 - NEAR.powi(rows)).powi(bands) >= 0.95;
    let rows = (1..=128)
        .rev()
        .find(|rows| reaches(128 / rows, *rows))
        .unwrap();
    let bands = (1..).find(|bands| reaches(*bands, rows)).unwrap();
    (bands.into(), rows.into())
}

fn bands(oracle: &Oracle, name: &str) -> Option<Expected> {
    let (bands, rows) = design();
    let area = |from: f64, to: f64, height: &dyn Fn(f64) -> f64| {
        let middles = (0..100_000).map(|step| from + (to - from) * (f64::from(step) + 0.5) / 1e5);
        (to - from) * mean(middles.map(height))
    };
    let steps = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
    let seeds = oracle.page("curve-seeds");
    let of_pairs = |is_near| mean(oracle.near(is_near).map(|s| oracle.found(s)));
    let mut nearest: Vec<f64> = oracle
        .sets
        .iter()
        .map(|it| jaccard(&oracle.sets[oracle.worked[0]], it))
        .collect();
    nearest.sort_by(|x, y| y.total_cmp(x));
    let far = oracle.page("far");
    let nears = [0.8, 0.5, 0.3];
    let plan_rows = (1e6_f64.ln() / -far.ln()).ceil();
    let plan_bands = |p: f64| (-1.0 / (1.0 - p.powf(plan_rows)).ln()).ceil();
    let plans = |value: &dyn Fn(f64) -> f64| nears.map(value).to_vec();
    Some(Is(match name {
        "band-values" => vec![128.0],
        "bands" => vec![bands],
        "band-rows" => vec![rows],
        "threshold" | "near" => vec![NEAR; oracle.numbers[name].len()],
        // Two values of 32 bits may also agree by chance.
        "recall-at-threshold" => return Some(About(vec![oracle.found(NEAR)], 1e-8)),
        "steepest" => vec![(1.0 / bands).powf(1.0 / rows)],
        "false-positives" => return Some(About(vec![area(0.0, NEAR, &|s| oracle.found(s))], 1e-6)),
        "false-negatives" => {
            return Some(About(
                vec![area(NEAR, 1.0, &|s| 1.0 - oracle.found(s))],
                1e-6,
            ));
        }
        "curve-s" => steps.to_vec(),
        "curve-band" => steps.map(|s| s.powf(rows)).to_vec(),
        "curve-found" => steps.map(|s| oracle.found(s)).to_vec(),
        "curve-seeds" => vec![(2_000_000 / oracle.pairs.len()).clamp(16, 400) as f64],
        "found-near" | "found-far" => {
            let expected = of_pairs(name == "found-near");
            return Some(About(vec![expected], chance(expected, seeds)));
        }
        "found-near-theory" => vec![of_pairs(true)],
        "found-far-theory" => vec![of_pairs(false)],
        // Estimates decide about the order of neighbours that are about as near.
        "nearest-exact" | "nearest-estimate" => {
            return Some(About(nearest[..4].to_vec(), chance(0.5, 128.0)));
        }
        "far" => {
            return Some(About(
                vec![mean(oracle.pairs.iter().map(|(.., s)| *s))],
                1e-4,
            ));
        }
        "planned" => vec![1e6],
        "plan-near" => nears.to_vec(),
        "plan-rho" => plans(&|p| p.ln() / far.ln()),
        "plan-rows" => vec![plan_rows; 3],
        "plan-bands" => plans(&plan_bands),
        "plan-found" => plans(&|p| 1.0 - (1.0 - p.powf(plan_rows)).powf(plan_bands(p))),
        "plan-candidates" => plans(&|p| plan_bands(p) * 1e6 * far.powf(plan_rows)),
        _ => return None,
    }))
}

fn bits(oracle: &Oracle, name: &str) -> Option<Expected> {
    let (small_a, votes, sums) = oracle.small(0);
    let small_b = oracle.small(1).0;
    let number = |bits: &str| f64::from(u8::from_str_radix(bits, 2).unwrap());
    let [a, b, ..] = oracle.worked;
    let cosine = cosine(&oracle.sets[a], &oracle.sets[b]);
    let separated = |cosine: f64| cosine.acos() / std::f64::consts::PI;
    let differing = oracle.page("simhash-distance") / 64.0;
    let designs = [(4, 1), (5, 2), (6, 3), (7, 4)];
    let prefixes = |(blocks, leading): (u32, u32)| {
        let size = move |block: u32| (64 + block) / blocks;
        let of = move |chosen: u32| {
            (0..blocks)
                .filter(|block| chosen >> block & 1 == 1)
                .map(size)
                .sum::<u32>()
        };
        choices(blocks, leading).map(of).collect::<Vec<u32>>()
    };
    let of_designs =
        |value: &dyn Fn(Vec<u32>) -> f64| designs.map(|it| value(prefixes(it))).to_vec();
    let vector = oracle.vector_cosine();
    Some(Is(match name {
        "small-bits" => vec![8.0],
        "sign" => votes,
        "sign-sum" => sums,
        "sign-bit" => small_a
            .chars()
            .map(|c| if c == '1' { 1.0 } else { 0.0 })
            .collect(),
        "small-a" => vec![number(&small_a)],
        "small-b" => vec![number(&small_b)],
        "small-distance" => vec![
            small_a
                .chars()
                .zip(small_b.chars())
                .filter(|(a, b)| a != b)
                .count() as f64,
        ],
        "set-cosine" => vec![cosine],
        "set-angle" => vec![cosine.acos().to_degrees()],
        "simhash-bits" | "table-bits" => vec![64.0; oracle.numbers[name].len()],
        "simhash-distance" => {
            let share = separated(cosine);
            return Some(About(vec![64.0 * share], 64.0 * chance(share, 64.0)));
        }
        "simhash-same" => vec![1.0 - differing],
        "simhash-angle" => vec![180.0 * differing],
        "simhash-cosine" => vec![(std::f64::consts::PI * differing).cos()],
        "angle-seeds" => vec![16.0],
        "table-distance" | "apart" => vec![3.0],
        "apart-table" => vec![1.0],
        "probes" => vec![1.0 + 64.0 + 64.0 * 63.0 / 2.0 + 64.0 * 63.0 * 62.0 / 6.0],
        "blocks" => vec![4.0],
        "block-bits" => vec![2.0],
        "table-block" => vec![1.0, 2.0, 3.0, 4.0],
        "table-code" => oracle.codes(),
        "pages" => vec![8e9],
        "design-blocks" => designs.map(|(blocks, _)| f64::from(blocks)).to_vec(),
        "design-leading" => designs.map(|(_, leading)| f64::from(leading)).to_vec(),
        "design-tables" => of_designs(&|prefixes| prefixes.len() as f64),
        "design-prefix" => of_designs(&|prefixes| (*prefixes.iter().min().unwrap()).into()),
        "design-candidates" => of_designs(&|prefixes| {
            prefixes
                .iter()
                .map(|p| 8e9 * 2_f64.powi(-(*p as i32)))
                .sum()
        }),
        "design-bytes" => {
            of_designs(&|prefixes| prefixes.len() as f64 * oracle.page("design-bytes") / 4.0)
        }
        "dimensions" => vec![64.0],
        "vector-signs" => vec![512.0; 2],
        // Vectors have components of 32 bits.
        "vector-cosine" => return Some(About(vec![vector], 1e-6)),
        "vector-angle" => return Some(About(vec![vector.acos().to_degrees()], 1e-4)),
        "vector-theory" => return Some(About(vec![separated(vector)], 1e-6)),
        "vector-differ" => {
            return Some(About(
                vec![separated(vector)],
                chance(separated(vector), 512.0),
            ));
        }
        "vector-estimate" => vec![(std::f64::consts::PI * oracle.page("vector-differ")).cos()],
        _ => return None,
    }))
}

fn rivals(oracle: &Oracle, name: &str) -> Option<Expected> {
    // At least two of fourteen bands agree.
    let finds = |s: f64| {
        let band = s.powi(6);
        1.0 - (1.0 - band).powi(14) - 14.0 * band * (1.0 - band).powi(13)
    };
    let by_minhash = |value: f64| {
        let [_, simhash, both] = oracle.numbers[name][..] else {
            panic!("{name} has three rows")
        };
        Some(About(vec![value, simhash, both], value * chance(0.5, 32.0)))
    };
    let returned: f64 = oracle.pairs.iter().map(|(.., s)| finds(*s)).sum();
    let right: f64 = oracle.near(true).map(finds).sum();
    let near = oracle.near(true).count() as f64;
    Some(Is(vec![match name {
        "rival-values" => 84.0,
        "rival-bands" => 14.0,
        "rival-rows" => 6.0,
        "rival-agreeing" => 2.0,
        "rival-bits" => 128.0,
        "rival-alone" => 4.0,
        "rival-filter" => 9.0,
        "rival-seeds" => 32.0,
        "rival-returned" => return by_minhash(returned),
        "rival-precision" => return by_minhash(right / returned),
        "rival-recall" => return by_minhash(right / near),
        _ => return None,
    }]))
}

#[test]
fn every_number_of_the_book_is_right() {
    let oracle = Oracle::new();
    let modulus = oracle.page("modulus") as u64;
    assert!((2..modulus).all(|divisor| !modulus.is_multiple_of(divisor)));
    assert!(modulus as usize >= oracle.rows().len());
    for (name, found) in &oracle.numbers {
        if ["modulus", "factor", "summand"].contains(name) {
            assert!(
                found
                    .iter()
                    .all(|it| *it == modulus as f64 || it % modulus as f64 != 0.0)
            );
            continue;
        }
        let chapters = [sets_and_matrix, estimates, bands, bits, rivals];
        let rule = chapters.iter().find_map(|chapter| chapter(&oracle, name));
        let (expected, most) = match rule.unwrap_or_else(|| panic!("no rule computes {name}")) {
            Is(expected) => (expected, 1e-9),
            About(expected, most) => (expected, most),
        };
        // A number that the prose repeats is the same each time.
        let repeats = found.len().max(expected.len()) / expected.len();
        assert_eq!(found.len(), expected.len() * repeats, "{name}");
        for (found, expected) in found.iter().zip(expected.iter().cycle()) {
            let off = (found - expected).abs();
            assert!(
                off <= most * expected.abs().max(1.0),
                "{name}: {found}, expected {expected}"
            );
        }
    }
    // A filter can only remove.
    let [by_minhash, _, both] = oracle.numbers["rival-returned"][..] else {
        panic!("three rows")
    };
    assert!(both <= by_minhash);
    assert!(
        oracle.numbers["rival-precision"]
            .iter()
            .all(|share| (0.0..=1.0).contains(share))
    );
}

/// Returns a page without what lies between two marks.
fn without(page: &str, from: &str, to: &str) -> String {
    let mut parts = page.split(from);
    let first = parts.next().unwrap().to_owned();
    let rest = parts.map(|part| {
        part.split_once(to)
            .unwrap_or_else(|| panic!("{from} has no end"))
            .1
    });
    first + &rest.collect::<String>()
}

#[test]
fn no_number_of_the_prose_is_typed() {
    let mut prose = PAGE.clone();
    for (from, to) in [
        ("<style>", "</style>"),
        ("<svg", "</svg>"),
        ("<ul>", "</ul>"),
        ("<data", "</data>"),
        ("<cite", "</cite>"),
        ("<var", "</var>"),
        ("<q", "</q>"),
        ("<blockquote", "</blockquote>"),
        ("<", ">"),
    ] {
        prose = without(&prose, from, to);
    }
    let typed: Vec<&str> = prose
        .split_whitespace()
        .filter(|word| word.contains(|c: char| c.is_ascii_digit()))
        .collect();
    assert!(typed.is_empty(), "{typed:?}");
    assert!(prose.contains("Permutations and minima"));
}

#[test]
fn chapters_and_figures_are_complete() {
    let links: Vec<&str> = PAGE
        .split("<a href=\"#")
        .skip(1)
        .map(|part| part.split('"').next().unwrap())
        .collect();
    let headings: Vec<&str> = PAGE
        .split("<h2 id=\"")
        .skip(1)
        .map(|part| part.split('"').next().unwrap())
        .collect();
    assert_eq!(links, headings);
    assert_eq!(links.len(), 14);
    let figures: Vec<&str> = PAGE.split("<figure id=\"figure-").skip(1).collect();
    let names: Vec<&str> = figures
        .iter()
        .map(|figure| figure.split('"').next().unwrap())
        .collect();
    let expected = [
        "shingle-sizes",
        "shingle-errors",
        "shingle-times",
        "errors",
        "times",
        "families",
        "s-curve",
        "bits",
        "angles",
        "rho",
        "vectors",
    ];
    assert_eq!(names, expected);
    for figure in figures {
        assert!(
            figure.contains("<svg role=\"img\" aria-label=\"") && figure.contains("<figcaption>")
        );
        assert!(
            figure.contains("<polyline") || figure.contains("<circle"),
            "it draws something"
        );
    }
    assert_eq!(
        PAGE.matches("<polygon").count(),
        2,
        "both areas of the S-curve are shaded"
    );
    for (outside, why) in [
        ("src=", "a picture"),
        ("href=\"http", "a link"),
        ("<script", "a script"),
        ("NaN", "no number"),
    ] {
        assert!(!PAGE.contains(outside), "{why}");
    }
}

#[test]
fn readers_bring_their_own_corpus() {
    let folder = tempfile::tempdir().unwrap();
    for (place, line) in std::fs::read_to_string(CORPUS).unwrap().lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(text) = line["text"].as_str() {
            std::fs::write(folder.path().join(format!("{place:02}.txt")), text).unwrap();
        }
    }
    let page = made(&[folder.path()]);
    for name in ["documents", "jaccard", "compared-pairs", "found-near"] {
        assert_eq!(numbers(&page)[name], numbers(&PAGE)[name], "{name}");
    }
    let few = made(&[folder.path(), Path::new("8")]);
    assert_eq!(numbers(&few)["documents"], [8.0]);

    let news = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/news.jsonl"));
    let output = run(&[&folder.path().join("book.html"), news]);
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("four documents"), "{error}");
}
