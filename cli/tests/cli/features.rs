//! Documents other than texts: features, weights, hashes and signatures in JSON Lines.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::support::Folder;

/// A generator of the tests' own.
struct Draws(u64);

impl Draws {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

fn jaccard(a: &BTreeSet<u64>, b: &BTreeSet<u64>) -> f64 {
    a.intersection(b).count() as f64 / a.union(b).count() as f64
}

/// The rows `key key value` of pairs whose value is within a bound, as the tool sorts them.
fn expected(
    keys: &[String],
    value: impl Fn(usize, usize) -> f64,
    is_near: impl Fn(f64) -> bool,
) -> BTreeMap<(String, String), f64> {
    let mut rows = BTreeMap::new();
    for b in 0..keys.len() {
        for a in 0..b {
            let value = value(a, b);
            if is_near(value) {
                let (a, b) = (keys[a].clone(), keys[b].clone());
                rows.insert(if a < b { (a, b) } else { (b, a) }, value);
            }
        }
    }
    rows
}

fn found(stdout: &str) -> BTreeMap<(String, String), f64> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let key = (fields[0].to_owned(), fields[1].to_owned());
        (key, fields[2].parse().unwrap())
    };
    stdout.lines().map(row).collect()
}

fn assert_same(
    found: &BTreeMap<(String, String), f64>,
    expected: &BTreeMap<(String, String), f64>,
) {
    assert!(found.keys().eq(expected.keys()), "{found:?}\n{expected:?}");
    for (pair, similarity) in expected {
        assert!((found[pair] - similarity).abs() < 1e-6, "{pair:?}");
    }
}

/// Customers with the numbers of what they bought: of each family some baskets that differ in few of 100
/// products.
fn baskets() -> (Vec<String>, Vec<BTreeSet<u64>>) {
    let (mut draws, mut baskets) = (Draws(1), Vec::new());
    for _ in 0..40 {
        let first: BTreeSet<u64> = (0..100).map(|_| draws.next(5_000)).collect();
        for changes in [0, 2, 10, 40] {
            let mut basket = first.clone();
            for _ in 0..changes {
                let dropped = basket.iter().nth(draws.next(basket.len() as u64) as usize);
                let dropped = *dropped.unwrap();
                basket.remove(&dropped);
                basket.insert(draws.next(5_000));
            }
            baskets.push(basket);
        }
    }
    let keys = (0..baskets.len()).map(|customer| format!("customer-{customer:03}"));
    (keys.collect(), baskets)
}

#[test]
fn features_compare_customers_by_products() {
    let (keys, baskets) = baskets();
    let folder = Folder::new();
    // Numbers, and the same as strings, are the same features; so are baskets in any order.
    let lines = keys
        .iter()
        .zip(&baskets)
        .enumerate()
        .map(|(place, (key, basket))| {
            let features = match place % 2 {
                0 => json!(basket),
                _ => json!(basket.iter().rev().map(u64::to_string).collect::<Vec<_>>()),
            };
            format!("{}\n", json!({"id": key, "features": features, "text": 7}))
        });
    folder.write("c.jsonl", lines.collect::<String>());
    let of_sets = |a: usize, b: usize| jaccard(&baskets[a], &baskets[b]);
    let expected = expected(&keys, of_sets, |j| j >= 0.7);
    assert!(
        expected.len() > 60 && expected.len() < 200,
        "{}",
        expected.len()
    );
    let options = [
        "--features",
        "--threshold",
        "0.7",
        "--recall",
        "0.99999",
        "--minhash",
        "512",
    ];
    let pairs = [&["pairs", "c.jsonl"][..], &options].concat();
    assert_same(&found(&folder.run(&pairs).expect(0).stdout), &expected);
    // The same from a store, by estimate, which finds all that is well within the bound.
    let build = [&["build", "s.rsm", "c.jsonl"][..], &options].concat();
    folder.run(&build).expect(0);
    let estimated = found(&folder.run("pairs s.rsm").expect(0).stdout);
    let near = expected
        .iter()
        .filter(|(_, similarity)| **similarity > 0.85);
    assert!(
        near.into_iter()
            .all(|(pair, _)| estimated.contains_key(pair))
    );
    // Queries, clusters and a corpus without its near-duplicates take the same lines.
    let query = "query s.rsm --corpus c.jsonl --limit 1";
    let answers = folder.run(query).expect(0).stdout;
    let own = |line: &str| line.split('\t').next() == line.split('\t').nth(1);
    assert_eq!(answers.lines().filter(|line| own(line)).count(), keys.len());
    let clusters = [&["clusters", "c.jsonl"][..], &options].concat();
    folder.run(&clusters).expect(0);
    let dedup = [&["dedup", "c.jsonl", "-o", "u.jsonl"][..], &options].concat();
    folder.run(&dedup).expect(0);
    let kept = folder.read_text("u.jsonl").lines().count();
    assert!((40..140).contains(&kept), "{kept}");
    let eval = [&["eval", "c.jsonl", "--min", "0.5"][..], &options].concat();
    let eval = folder.run(&eval).expect(0).stdout;
    let pairs = format!("minhash\t0.7\tpairs\t{}\n", expected.len());
    assert!(eval.contains(&pairs), "{eval}");
}

/// Pictures with perceptual hashes of 64 bits, as other programs compute them.
#[test]
fn fingerprints_compare_pictures() {
    let mut draws = Draws(2);
    let mut hashes = Vec::new();
    for _ in 0..60 {
        let first = draws.next(u64::MAX);
        for changes in [0, 1, 3, 6] {
            let flipped = |hash: u64, _| hash ^ 1 << draws.next(64);
            hashes.push((0..changes).fold(first, flipped));
        }
    }
    let keys: Vec<String> = (0..hashes.len()).map(|n| format!("{n:03}.jpg")).collect();
    let lines = keys
        .iter()
        .zip(&hashes)
        .enumerate()
        .map(|(place, (key, hash))| {
            let signature = match place % 2 {
                0 => json!(format!("{hash:016x}")),
                _ => json!(hash),
            };
            format!("{}\n", json!({"id": key, "signature": signature}))
        });
    let folder = Folder::new();
    folder.write("p.jsonl", lines.collect::<String>());
    let distance = |a: usize, b: usize| f64::from((hashes[a] ^ hashes[b]).count_ones());
    let expected = expected(&keys, distance, |distance| distance <= 4.0);
    assert!(expected.len() > 100);
    let options = ["--features", "--simhash", "64", "--distance", "4"];
    let pairs = [&["pairs", "p.jsonl"][..], &options].concat();
    assert_eq!(found(&folder.run(&pairs).expect(0).stdout), expected);
    let create = [&["create", "s.rsm"][..], &options].concat();
    folder.run(&create).expect(0);
    folder.run("add s.rsm p.jsonl").expect(0);
    assert_eq!(found(&folder.run("pairs s.rsm").expect(0).stdout), expected);
}
