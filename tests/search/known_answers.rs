//! Answers that textbooks and papers give, and that anyone can follow by hand.

use crate::common::sample::{Random, trials};
use resemblance::exact::{
    FeatureSet, fingerprints_within, jaccard, jaccard_of_bits, modular_minhash, permuted_table,
    same_bit_probability, sensitivity, simhash,
};
use resemblance::schema::{Banding, TableDesign};
use resemblance::{MinHash, Schema, Signature, SimHash, Store, Text};

fn shingles(text: &str, characters: u16) -> FeatureSet<String> {
    let mut shingles = Vec::new();
    Text::characters(characters).for_each_shingle(text, |shingle| shingles.push(shingle.into()));
    shingles.into_iter().collect()
}

/// Rows a, is, java, language, programming, python, snake; functions x + 1 and 3 x + 1 modulo 7.
#[test]
fn minhash_values_match_the_textbook() {
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
fn shingle_similarity_matches_the_textbook() {
    assert_eq!(shingles("abcab", 2).as_slice(), ["ab", "bc", "ca"]);
    assert_eq!(
        jaccard(&shingles("Nadal", 2), &shingles("Nadia", 2)),
        2.0 / 6.0
    );
}

#[test]
fn bit_set_similarity_matches_the_textbook() {
    assert_eq!(jaccard_of_bits(&[0b10111], &[0b10011]), 3.0 / 4.0);
}

#[test]
fn simhash_follows_the_heavier_features() {
    let noun = (0b0101_0101_0101_0111, 1.0);
    let verb = (0b0111_0111_0010_0111, 0.9);
    let adjective = (0b1100_1100_1100_1100, 0.8);
    assert_eq!(simhash([noun, verb], 16).unwrap(), noun.0);
    let three = simhash([noun, verb, adjective], 16).unwrap();
    assert_eq!(three, 0b0101_0101_0100_0111);
}

/// Bits 1 → 2, 2 → 4, 3 → 3, 4 → 1, numbered from the left.
#[test]
fn permuted_table_matches_the_paper() {
    let table = permuted_table(&[0b0110, 0b0010, 0b0010, 0b1001, 0b1110], &[1, 3, 2, 0]);
    assert_eq!(table.unwrap(), [0b0010, 0b0010, 0b0011, 0b0111, 0b1100]);
}

#[test]
fn sampled_bits_match_the_textbook() {
    assert_eq!(same_bit_probability(3, 64).unwrap(), 61.0 / 64.0);
    let near = same_bit_probability(8, 64).unwrap();
    let far = same_bit_probability(16, 64).unwrap();
    let expected = (64.0_f64 / 56.0).ln() / (64.0_f64 / 48.0).ln();
    assert!((sensitivity(near, far).unwrap() - expected).abs() < 1e-12);
    assert!(expected < 0.5);
}

/// Half of the last digit that a published figure has, and a little for rounding.
fn assert_near(found: f64, published: f64, last_digit: f64) {
    let error = (found - published).abs();
    assert!(error <= 0.51 * last_digit, "{found}, published {published}");
}

/// Leskovec, Rajaraman and Ullman, *Mining of Massive Datasets*, figure 3.8 and example 3.12.
#[test]
fn banding_of_twenty_by_five_matches_the_textbook() {
    let banding = Banding::explicit(20, 5, 100).unwrap();
    let published = [
        (0.2, 0.006, 1e-3),
        (0.3, 0.047, 1e-3),
        (0.4, 0.186, 1e-3),
        (0.5, 0.470, 1e-3),
        (0.6, 0.802, 1e-3),
        (0.7, 0.975, 1e-3),
        (0.8, 0.9996, 1e-4),
    ];
    for (similarity, probability, last_digit) in published {
        // The table cuts 0.0475 at the third digit.
        let slack = if similarity == 0.3 { 2e-3 } else { last_digit };
        assert_near(banding.probability(similarity), probability, slack);
    }
    assert_near(1.0 - banding.probability(0.8), 0.000_36, 1e-5);
    assert_near(banding.probability(0.3), 0.0475, 1e-4);

    // A schema with these bands gives the same.
    let minhash = MinHash::new(100).value_bits(32);
    let minhash = minhash.threshold(0.8).banding(20, 5);
    let schema = Schema::builder().minhash(minhash).build().unwrap();
    let recall = schema.minhash().unwrap().recall_at_threshold();
    assert_eq!(recall, banding.probability(0.8));
}

#[test]
fn the_curve_climbs_at_the_approximate_threshold() {
    for (bands, rows) in [(20, 5), (16, 4), (13, 7), (1, 9), (50, 1)] {
        let banding = Banding::explicit(bands, rows, bands * rows).unwrap();
        let threshold = banding.approximate_threshold();
        // One band in `bands` is expected to agree there: threshold^rows = 1 / bands.
        let one_band = threshold.powi(rows.into());
        assert!(
            (one_band * f64::from(bands) - 1.0).abs() < 1e-9,
            "{banding}"
        );
        // So the pair is found with a probability of 1 - (1 - 1/b)^b, at least 1 - 1/e.
        let found = banding.probability(threshold);
        assert!(found >= 1.0 - (-1.0_f64).exp(), "{banding}: {found}");
    }
    // The book's example: 16 bands of 4 rows have a threshold of about 1/2.
    let banding = Banding::explicit(16, 4, 64).unwrap();
    assert!((banding.approximate_threshold() - 0.5).abs() < 1e-12);
}

#[test]
fn candidates_are_documents_times_probability() {
    let schema = Schema::builder()
        .minhash(MinHash::new(128))
        .build()
        .unwrap();
    let banding = schema.minhash().unwrap().banding();
    assert_eq!((banding.bands(), banding.rows()), (13, 7));
    // 1 - (1 - s^7)^13 is 13 s^7 but for a share of 6 s^7.
    let expected = 1e6 * 13.0 * 0.05_f64.powi(7);
    let found = banding.candidates(1_000_000, 0.05);
    assert!((found / expected - 1.0).abs() < 1e-7, "{found}");
    assert_eq!(banding.candidates(7, 1.0), 7.0);
    assert_eq!(banding.candidates(0, 0.5), 0.0);
}

/// Manku, Jain and Das Sarma, *Detecting Near-Duplicates for Web Crawling* (WWW 2007), section 3:
/// 2^34 fingerprints of 64 bits, distance 3, five blocks of which two lead.
#[test]
fn ten_tables_of_a_web_crawl_match_the_paper() {
    let design = TableDesign::new(64, 3, &[(5, 2)]).unwrap();
    assert_eq!(design.table_count(), 10);
    assert_eq!(design.prefix_bits(), 25..=26);
    let mut lengths: Vec<u8> = design.table_prefix_bits().collect();
    lengths.sort_unstable();
    // Four blocks of 13 bits and one of 12: six choices of two have 26 bits, four have 25.
    assert_eq!(lengths, [25, 25, 25, 25, 26, 26, 26, 26, 26, 26]);
    let documents = 1_u64 << 34;
    for (bits, candidates) in [(25, 512), (26, 256)] {
        assert_eq!(documents >> bits, candidates);
    }
    assert_eq!(design.candidates(documents), f64::from(4 * 512 + 6 * 256));
}

#[test]
fn probes_without_tables_match_the_paper() {
    let within = |distance, bits| fingerprints_within(distance, bits).unwrap();
    assert_eq!(within(3, 64) - within(2, 64), 41_664);
    assert_eq!(within(3, 64), 43_745);
    for bits in 0..=127 {
        // All fingerprints, however the sum is cut short.
        assert_eq!(within(bits, bits), 1 << bits);
        assert_eq!(within(255, bits), 1 << bits);
        // Half of them are nearer than half of an odd number of bits.
        if bits % 2 == 1 {
            assert_eq!(within(bits / 2, bits), 1 << (bits - 1));
        }
    }
    assert_eq!(fingerprints_within(128, 128), None);
    assert_eq!(within(127, 128), u128::MAX);
    assert_eq!(within(126, 128), u128::MAX - 128);
    assert_eq!(fingerprints_within(200, 255), None);
}

#[test]
fn designs_have_a_width_and_a_distance_within_their_range() {
    for (simhash, is_valid) in [
        (SimHash::bits64().max_distance(3), true),
        (SimHash::bits64().max_distance(0), false),
        (SimHash::bits64().max_distance(11), false),
        (SimHash::external(63).max_distance(3), false),
    ] {
        assert_eq!(Schema::builder().simhash(simhash).build().is_ok(), is_valid);
    }
}

/// Compares P(distance <= 3) of unweighted sets, as the design predicts it, with sketches: 0.009 at
/// J = 0.8, 0.09 at 0.9, 0.32 at 0.95, 0.87 at 0.99. Uses 400 seeds, or 2,000 with
/// `RESEMBLANCE_TESTS=all`.
#[test]
fn distance_three_means_nearly_identical() {
    let schema = Schema::builder()
        .simhash(SimHash::bits64())
        .build()
        .unwrap();
    let design = schema.simhash().unwrap();
    let published = [
        (0.8, 0.009, 1e-3),
        (0.9, 0.09, 1e-2),
        (0.95, 0.32, 1e-2),
        (0.99, 0.87, 1e-2),
    ];
    for (similarity, probability, last_digit) in published {
        let found = design.probability(similarity, 400);
        assert_near(found, probability, last_digit);
    }
    assert_near(design.probability(1.0, 400), 1.0, 1e-12);

    // Two sets of 380 features that share 361, J = 361 / 399, under many seeds. The count within
    // distance 3 is binomial; 5 of its deviations are passed by chance once in 10^6.
    let trials = trials(400_u32, 2_000);
    let mut within = 0;
    let similarity = 361.0 / 399.0;
    for trial in 0..trials {
        let schema = Schema::builder()
            .simhash(SimHash::bits64())
            .seed(trial.into());
        let sketcher = schema.build().unwrap().sketcher();
        let a = sketcher.hashes(0..380).unwrap();
        let b = sketcher.hashes(19..399).unwrap();
        within += u32::from(a.hamming(&b).unwrap() <= 3);
    }
    let expected = design.probability(similarity, 399);
    let share = f64::from(within) / f64::from(trials);
    let deviation = (expected * (1.0 - expected) / f64::from(trials)).sqrt();
    let error = (share - expected).abs();
    assert!(
        error < 5.0 * deviation,
        "{share}, expected {expected} +- {deviation}"
    );
}

/// A text of frequent and rare words without spaces between them. `letters` are the first letters of
/// the ranges that its words are made of.
fn text_without_spaces(random: &mut Random, letters: &[(u32, u32)], length: usize) -> Vec<char> {
    let mut text = Vec::new();
    while text.len() < length {
        // The square makes some of 4,000 words frequent. A word is 1 to 3 letters.
        let rank = (random.below(64) * random.below(64)) % 4_000;
        let mut word = Random(rank);
        for _ in 0..=word.below(3) {
            let (first, count) = letters[word.below(letters.len() as u64) as usize];
            let number = first + word.below(count.into()) as u32;
            text.push(char::from_u32(number).unwrap());
        }
        if random.below(12) == 0 {
            text.push(['。', '，', '\n', ' '][random.below(4) as usize]);
        }
    }
    text
}

/// Near-copies of 400 letters with three letters replaced, inserted or removed, and all punctuation
/// changed.
#[test]
fn near_copies_in_scripts_without_spaces_are_found_by_default() {
    let scripts: [&[(u32, u32)]; 3] = [
        &[(0x4e00, 3_000)],
        &[(0x3041, 80), (0x30a1, 80), (0x4e00, 2_000)],
        &[(0x0e01, 46)],
    ];
    for letters in scripts {
        let mut random = Random(46);
        let mut texts = Vec::new();
        for _ in 0..100 {
            let text = text_without_spaces(&mut random, letters, 400);
            let mut copy = text.clone();
            for _ in 0..3 {
                let at = random.below(copy.len() as u64) as usize;
                let other = char::from_u32(letters[0].0 + 1 + random.below(40) as u32).unwrap();
                match random.below(3) {
                    0 => copy[at] = other,
                    1 => copy.insert(at, other),
                    _ => drop(copy.remove(at)),
                }
            }
            let copy = String::from_iter(copy).replace(['。', '，', '\n', ' '], "、");
            texts.push([String::from_iter(text), copy]);
        }
        let found = |text| {
            let schema = Schema::builder().text(text).minhash(MinHash::new(128));
            let store = Store::in_memory(schema.build().unwrap()).unwrap();
            for (number, pair) in texts.iter().enumerate() {
                let original = store.sketch_text(&pair[0]).unwrap();
                store.insert(number.to_string(), &original).unwrap();
            }
            let (mut right, mut wrong) = (0, 0);
            for (number, pair) in texts.iter().enumerate() {
                let copy = store.sketch_text(&pair[1]).unwrap();
                let matches = store.snapshot().unwrap().query(&copy).run().unwrap();
                for found in &matches {
                    let is_original = found.id().get() == number as u64;
                    right += u32::from(is_original);
                    wrong += u32::from(!is_original);
                }
            }
            (right, wrong)
        };
        let (right, wrong) = found(Text::auto());
        assert!(right >= 95 && wrong == 0, "{right} found, {wrong} wrong");
        assert_eq!(found(Text::words(5)).0, 0);
    }
}
