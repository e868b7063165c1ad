//! SimHash on real texts: nothing within the distance is missed, nothing beyond it returned.

use std::collections::BTreeMap;

use resemblance::{Schema, SimHash, Text};

use crate::evaluation::corpus::{Corpus, Places, say};
use crate::evaluation::stored::{Measures, Stored};

fn check(name: &'static str, max_distance: u8) {
    let Some(corpus) = Corpus::read(name) else {
        return;
    };
    let schema = Schema::builder()
        .text(Text::words(5))
        .simhash(SimHash::bits64().max_distance(max_distance))
        .build()
        .unwrap();
    let stored = Stored::new(&corpus, schema, 400);
    let fingerprints: Vec<u64> = stored
        .signatures
        .iter()
        .map(|signature| signature.simhash().unwrap() as u64)
        .collect();
    let mut expected: BTreeMap<Places, Measures> = BTreeMap::new();
    for (b, y) in fingerprints.iter().enumerate() {
        for (a, x) in fingerprints[..b].iter().enumerate() {
            let distance = (x ^ y).count_ones();
            if distance <= u32::from(max_distance) {
                expected.insert((a, b), (None, Some(distance)));
            }
        }
    }
    say(&format!(
        "{name}: {} pairs within distance {max_distance} by brute force",
        expected.len()
    ));
    let farthest = (None, Some(u32::from(max_distance)));
    assert!(expected.values().any(|measures| *measures == farthest));
    assert_eq!(stored.pairs(), expected);
    assert_eq!(stored.queried(), expected);
}

#[test]
fn fingerprints_find_versions_within_three_bits() {
    check("versions", 3);
}

#[test]
fn fingerprints_find_debian_docs_within_three_bits() {
    check("debian-docs", 3);
}

#[test]
fn fingerprints_find_versions_within_six_bits() {
    check("versions", 6);
}
