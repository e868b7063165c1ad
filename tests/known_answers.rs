//! Answers that textbooks and papers give, and that anyone can follow by hand.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use resemblance::exact::{
    FeatureSet, fingerprints_within, jaccard, jaccard_of_bits, modular_minhash, permuted_table,
    same_bit_probability, sensitivity, simhash,
};
use resemblance::{Banding, Signature, TableDesign, Text};

fn shingles(text: &str, characters: u16) -> FeatureSet<String> {
    let mut shingles = Vec::new();
    Text::characters(characters).for_each_shingle(text, |shingle| shingles.push(shingle.into()));
    shingles.into_iter().collect()
}

/// 20 bands of 5 rows (Leskovec, Rajaraman and Ullman, *Mining of Massive Datasets*, chapter 3).
#[test]
fn the_s_curve() {
    let banding = Banding::explicit(20, 5, 100).unwrap();
    let probabilities = [
        (0.2, 0.006),
        (0.3, 0.047),
        (0.4, 0.186),
        (0.5, 0.470),
        (0.6, 0.802),
        (0.7, 0.975),
    ];
    for (similarity, expected) in probabilities {
        let found = banding.probability(similarity);
        assert!(
            (found - expected).abs() <= 0.000_51,
            "{similarity}: {found}"
        );
    }
    assert!((banding.probability(0.8) - 0.9996).abs() < 0.000_051);
    assert!((1.0 - banding.probability(0.8) - 0.000_36).abs() < 0.000_005_1);
    assert!((banding.probability(0.3) - 0.0475).abs() < 0.000_051);
    // At (1 / b)^(1 / r) a band is expected to agree once: 1 - (1 - 1 / b)^b.
    let threshold = (1.0_f64 / 20.0).powf(1.0 / 5.0);
    let expected = 1.0 - (1.0 - 1.0 / 20.0_f64).powi(20);
    assert!((banding.probability(threshold) - expected).abs() < 1e-12);
}

/// Rows a, is, java, language, programming, python, snake; functions x + 1 and 3 x + 1 modulo 7.
#[test]
fn minimum_values() {
    const ROWS: [&str; 7] = [
        "a",
        "is",
        "java",
        "language",
        "programming",
        "python",
        "snake",
    ];
    let documents = [
        "python is a programming language",
        "java is a programming language",
        "a programming language",
        "python is a snake",
    ];
    let row = |word: &str| ROWS.iter().position(|row| *row == word).unwrap() as u64;
    let sets = documents.map(|text| text.split(' ').map(row).collect::<FeatureSet<u64>>());
    let signatures = sets.each_ref().map(|set| {
        let rows = set.as_slice().iter().copied();
        modular_minhash(rows, &[(1, 1), (3, 1)], 7).unwrap()
    });
    assert_eq!(signatures, [[1, 1], [1, 0], [1, 1], [0, 1]]);
    let signatures = signatures
        .map(|values| Signature::from_minhash(values.iter().map(|&value| value as u32).collect()));
    let [s1, s2, s3, s4] = &sets;
    let [of1, of2, of3, of4] = &signatures;
    assert_eq!(
        (jaccard(s1, s3), of1.jaccard(of3).unwrap()),
        (3.0 / 5.0, 1.0)
    );
    assert_eq!(
        (jaccard(s2, s4), of2.jaccard(of4).unwrap()),
        (2.0 / 7.0, 0.0)
    );
}

#[test]
fn shingles_and_their_similarity() {
    assert_eq!(shingles("abcab", 2).as_slice(), ["ab", "bc", "ca"]);
    assert_eq!(
        jaccard(&shingles("Nadal", 2), &shingles("Nadia", 2)),
        2.0 / 6.0
    );
}

#[test]
fn sets_of_bits() {
    assert_eq!(jaccard_of_bits(&[0b10111], &[0b10011]), 3.0 / 4.0);
}

#[test]
fn the_heavier_features_make_the_fingerprint() {
    let noun = (0b0101_0101_0101_0111, 1.0);
    let verb = (0b0111_0111_0010_0111, 0.9);
    let adjective = (0b1100_1100_1100_1100, 0.8);
    assert_eq!(simhash([noun, verb], 16).unwrap(), noun.0);
    let three = simhash([noun, verb, adjective], 16).unwrap();
    assert_eq!(three, 0b0101_0101_0100_0111);
}

/// Bits 1 → 2, 2 → 4, 3 → 3, 4 → 1, numbered from the left.
#[test]
fn a_sorted_permuted_table() {
    let table = permuted_table(&[0b0110, 0b0010, 0b0010, 0b1001, 0b1110], &[1, 3, 2, 0]);
    assert_eq!(table.unwrap(), [0b0010, 0b0010, 0b0011, 0b0111, 0b1100]);
}

/// Manku, Jain and Das Sarma 2007: 2^34 fingerprints of 64 bits, distance 3.
#[test]
fn tables_for_the_web() {
    let design = TableDesign::new(64, 3, &[(5, 2)]).unwrap();
    assert_eq!((design.table_count(), design.prefix_bits()), (10, 25..=26));
    let candidates = design.prefix_bits().map(|bits| (1_u64 << 34) >> bits);
    assert!(candidates.eq([512, 256]));
    let within = |distance| fingerprints_within(distance, 64).unwrap();
    assert_eq!(within(3) - within(2), 41_664);
    assert_eq!(within(3), 43_745);
}

#[test]
fn sampled_bits() {
    assert_eq!(same_bit_probability(3, 64).unwrap(), 61.0 / 64.0);
    let near = same_bit_probability(8, 64).unwrap();
    let far = same_bit_probability(16, 64).unwrap();
    let expected = (64.0_f64 / 56.0).ln() / (64.0_f64 / 48.0).ln();
    assert!((sensitivity(near, far).unwrap() - expected).abs() < 1e-12);
    assert!(expected < 0.5);
}
