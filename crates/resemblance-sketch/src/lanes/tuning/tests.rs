use std::collections::BTreeSet;

use super::*;
use crate::sample::one_in;
use crate::{Schema, SimHash};

/// The greatest distance of 64 bits for which all designs of whole buckets are tried.
const MAX_TESTED: u8 = 8;

/// For every bit the set of tables in whose prefix it is, read off the permutations themselves.
/// Bits of one block have one set; a differing block spoils exactly these tables.
fn spoiled_tables(design: &TableDesign) -> Vec<u64> {
    let spoiled = |bit: u32| {
        let numbered = design.tables().iter().enumerate();
        numbered.fold(0, |set, (i, table)| {
            let is_leading =
                table.permute(&(1_u64 << bit).into()) >> (64 - table.prefix_bits()) != 0;
            set | u64::from(is_leading) << i
        })
    };
    let sets: BTreeSet<u64> = (0..64).map(spoiled).collect();
    sets.into_iter().collect()
}

/// Whether some `count` blocks spoil all of the tables, by trying all patterns of blocks.
fn can_be_spoiled_plainly(blocks: &[u64], count: u8, unspoiled: u64) -> bool {
    if unspoiled == 0 || count == 0 {
        return unspoiled == 0;
    }
    (0..blocks.len())
        .any(|i| can_be_spoiled_plainly(&blocks[i + 1..], count - 1, unspoiled & !blocks[i]))
}

/// The same, leaving out only patterns that cannot spoil: whichever table is unspoiled, one of its
/// leading blocks must be in the pattern.
fn can_be_spoiled(blocks: &[u64], count: u8, unspoiled: u64) -> bool {
    if unspoiled == 0 || count == 0 {
        return unspoiled == 0;
    }
    let table = unspoiled & unspoiled.wrapping_neg();
    blocks
        .iter()
        .any(|block| block & table != 0 && can_be_spoiled(blocks, count - 1, unspoiled & !block))
}

fn all_tables(design: &TableDesign) -> u64 {
    u64::MAX >> (64 - design.table_count())
}

/// The designs that are cheapest for some number of documents, if that number is large enough.
fn worth_choosing(max_distance: u8) -> Vec<TableDesign> {
    let mut fewest = u128::MAX;
    let mut listed = best_by_tables(64, max_distance);
    listed.retain(|candidate| {
        let fewer = candidate.candidates < fewest;
        fewest = fewest.min(candidate.candidates);
        fewer
    });
    listed
        .iter()
        .map(|candidate| TableDesign::new(64, max_distance, &candidate.groups).unwrap())
        .collect()
}

/// Numbers of documents: the extremes, and from 1 up in steps of a sixteenth.
fn numbers_of_documents() -> Vec<u64> {
    let mut numbers = vec![0, u64::MAX];
    let mut n = 1_u64;
    while n < u64::MAX / 2 {
        numbers.push(n);
        n += n / 16 + 1;
    }
    numbers
}

/// One in seven designs, all with `RESEMBLANCE_TESTS=all`.
#[test]
fn every_design_finds_everything_within_its_distance() {
    let (mut count, distance) = (0, one_in(7));
    for k in 1..=MAX_TESTED {
        for_each_design(k, MAX_BLOCKS, &mut |groups| {
            count += 1;
            if count % distance != 0 {
                return;
            }
            let candidate = DesignOption::new(64, groups).unwrap();
            let design = TableDesign::new(64, k, &candidate.groups).unwrap();
            let blocks = spoiled_tables(&design);
            let tables = all_tables(&design);
            assert!(!can_be_spoiled(&blocks, k, tables), "{design}");
            assert!(!can_be_spoiled_plainly(&blocks, k, tables), "{design}");
            // One differing block more, or one table less, and something is missed.
            assert!(can_be_spoiled(&blocks, k + 1, tables), "{design}");
            let removed = 1 << (count % design.table_count());
            assert!(can_be_spoiled(&blocks, k, tables & !removed), "{design}");
        });
    }
    // There is something to choose from: the whole list was seen.
    assert!(count > 10_000, "{count}");
}

#[test]
fn every_table_of_a_chosen_design_is_needed() {
    for k in 1..=MAX_TESTED {
        for design in worth_choosing(k) {
            let blocks = spoiled_tables(&design);
            let tables = all_tables(&design);
            assert!(!can_be_spoiled_plainly(&blocks, k, tables), "{design}");
            for i in 0..design.table_count() {
                let others = tables & !(1 << i);
                assert!(can_be_spoiled(&blocks, k, others), "{design}");
                assert!(can_be_spoiled_plainly(&blocks, k, others), "{design}");
            }
        }
    }
}

/// One in 48 numbers of documents, one in 16 with `RESEMBLANCE_TESTS=all`, and the ends.
#[test]
fn chosen_designs_are_in_the_proved_list_for_any_number_of_documents() {
    for k in 1..=MAX_TESTED {
        let listed = worth_choosing(k);
        let mut last_tables = 0;
        let mut numbers = numbers_of_documents();
        numbers.sort_unstable();
        // A choice is some milliseconds.
        let kept = numbers.iter().step_by(16 * one_in(3)).chain(numbers.last());
        for &documents in kept {
            let design = whole_bucket_design(64, k, documents).unwrap().unwrap();
            assert!(listed.contains(&design), "{k} {documents}: {design}");
            assert!(design.table_count() >= last_tables, "{k} {documents}");
            last_tables = design.table_count();
        }
    }
}

#[test]
fn chosen_design_is_the_cheapest() {
    // Against the whole enumeration, with blocks cut finer still, by the cost in plain floats.
    for k in 1..=MAX_TESTED {
        let mut all: Vec<(f64, f64)> = Vec::new();
        for_each_design(k, MAX_BLOCKS + 2, &mut |groups| {
            let candidate = DesignOption::new(64, groups).unwrap();
            let design = TableDesign::new(64, k, &candidate.groups).unwrap();
            let exact = candidate.candidates as f64 / 2_f64.powi(64);
            assert_eq!(design.candidates(1), exact, "{design}");
            assert_eq!(design.table_count() as u64, candidate.tables, "{design}");
            all.push((design.table_count() as f64, exact));
        });
        for documents in [0, 1, 1_000, 1_000_000, 30_000_000, 1_000_000_000, 1 << 40] {
            let cost = |tables: f64, share: f64| tables * 320.0 + share * documents as f64;
            let cheapest = all
                .iter()
                .map(|&(tables, share)| cost(tables, share))
                .fold(f64::INFINITY, f64::min);
            let design = whole_bucket_design(64, k, documents).unwrap().unwrap();
            let found = cost(design.table_count() as f64, design.candidates(1));
            assert!(
                found <= cheapest * (1.0 + 1e-12),
                "{k} {documents}: {design}"
            );
        }
    }
}

#[test]
fn whole_bucket_designs_match_known_choices() {
    let design = |k, documents| whole_bucket_design(64, k, documents).unwrap().unwrap();
    let chosen = |k, documents| design(k, documents).to_string();
    assert_eq!(
        chosen(3, 0),
        "(1,1) (1,1) (1,1) (1,1): 4 tables, prefix 16 bits"
    );
    assert_eq!(chosen(3, 1_000_000), chosen(3, 0));
    assert_eq!(
        chosen(3, 10_000_000),
        "(3,2) (2,2) (2,2): 5 tables, prefix 18 to 19 bits"
    );
    assert_eq!(
        chosen(3, 100_000_000),
        "(3,2) (3,2): 6 tables, prefix 21 to 22 bits"
    );
    assert_eq!(
        chosen(3, 1_000_000_000),
        "(4,3) (4,3): 8 tables, prefix 24 bits"
    );
    assert_eq!(
        chosen(1, 1_000_000_000),
        "(1,1) (1,1): 2 tables, prefix 32 bits"
    );
}

/// One in seven cases, all with `RESEMBLANCE_TESTS=all`.
#[test]
fn chosen_designs_have_few_tables() {
    let chosen = |bits, k, documents| {
        let design = choose_design(bits, k, documents).unwrap();
        let (first, last) = design.prefix_bits().into_inner();
        (design.table_count(), first, last)
    };
    assert_eq!(chosen(64, 3, 1_000_000), (4, 16, 16));
    assert_eq!(chosen(64, 3, 10_000_000), (4, 16, 16));
    assert_eq!(chosen(64, 3, 100_000_000), (6, 21, 22));
    assert_eq!(chosen(64, 3, 1_000_000_000), (8, 24, 24));
    assert_eq!(chosen(64, 8, 1_000_000).0, 5);
    assert_eq!(chosen(64, 8, 10_000_000).0, 4);
    let distances = [32, 64, 128, 256]
        .into_iter()
        .flat_map(|bits| (1..=max_distance_of(bits)).map(move |k| (bits, k)));
    let numbers = [0, 1_000, 1_000_000, 1_000_000_000];
    let cases = distances.flat_map(|(bits, k)| numbers.map(|documents| (bits, k, documents)));
    for (bits, k, documents) in cases.step_by(one_in(7)) {
        let design = choose_design(bits, k, documents).unwrap();
        assert!(design.buckets(documents) <= 1 << 16, "{design}");
        assert_eq!((design.bits(), design.max_distance()), (bits, k));
    }
}

#[test]
fn parameters_out_of_range_are_named() {
    for (bits, k, expected) in [
        (16, 3, "bits"),
        (32, 6, "max_distance"),
        (96, 3, "bits"),
        (128, 21, "max_distance"),
        (256, 41, "max_distance"),
        (64, 0, "max_distance"),
        (64, 11, "max_distance"),
    ] {
        match choose_design(bits, k, 1_000) {
            Err(SketchError::InvalidParameter { parameter, .. }) => assert_eq!(parameter, expected),
            other => panic!("{bits} {k}: {other:?}"),
        }
    }
    for (bits, distance) in [(64, 64), (32, 32), (64, u32::MAX), (256, u32::MAX)] {
        match TableDesign::by_whole_buckets(bits, distance, 1_000) {
            Err(SketchError::InvalidParameter { found, .. }) => {
                assert_eq!(found, distance.to_string());
            }
            other => panic!("{bits} {distance}: {other:?}"),
        }
    }
}

#[test]
fn candidate_counts_of_known_designs_match() {
    type KnownGroups = &'static [(u8, u8)];
    let known: [(KnownGroups, f64, f64); 6] = [
        (&[(1, 1), (1, 1), (1, 1), (1, 1)], 61.0, 0.5),
        (&[(3, 2), (2, 2), (2, 2)], 15.0, 0.5),
        (&[(3, 2), (3, 2)], 2.4, 0.05),
        (&[(4, 3), (4, 3)], 0.477, 0.0005),
        (&[(5, 2)], 0.209, 0.0005),
        (&[(6, 3)], 0.005, 0.0005),
    ];
    for (groups, expected, tolerance) in known {
        let design = TableDesign::new(64, 3, groups).unwrap();
        let found = design.candidates(1_000_000);
        assert!((found - expected).abs() <= tolerance, "{design}: {found}");
    }
}

#[test]
fn candidate_probability_covers_equal_and_disjoint_sets() {
    // Disjoint sets: every bit is a coin.
    let disjoint = (1.0 + 64.0 + 2_016.0 + 41_664.0) / 2_f64.powi(64);
    for features in [1, 2, 3, 400, 12_345, u64::MAX] {
        assert!((simhash_probability(64, 3, 1.0, features) - 1.0).abs() < 1e-12);
        let found = simhash_probability(64, 3, 0.0, features);
        assert!((found / disjoint - 1.0).abs() < 1e-9, "{features}: {found}");
        assert!((simhash_probability(64, 64, 0.3, features) - 1.0).abs() < 1e-12);
        assert!((simhash_probability(128, 128, 0.3, features) - 1.0).abs() < 1e-12);
    }
    assert_eq!(simhash_probability(64, 3, 0.5, 0), 1.0);
}

/// Every outcome of the coins is listed, and so is every feature that may decide a tie.
#[test]
fn bits_of_small_sets_differ_as_often_as_listed_coins() {
    for union in 2..=9_usize {
        for different in 0..=union {
            let (first, second) = (different.div_ceil(2), different / 2);
            let shared = union - different;
            let jaccard = shared as f64 / union as f64;
            let mut differing = 0.0;
            for coins in 0_u32..1 << union {
                let sign = |feature: usize| if coins >> feature & 1 == 1 { 1 } else { -1 };
                // The shared features are numbered first, then those of the first set.
                let members: [Vec<usize>; 2] = [
                    (0..shared + first).collect(),
                    (0..shared)
                        .chain(shared + first..shared + first + second)
                        .collect(),
                ];
                let sums = members
                    .each_ref()
                    .map(|set| set.iter().map(|&i| sign(i)).sum::<i32>());
                // A random order of the union has a random first member, and after it a random
                // first member of the other set.
                let pairs = if sums.contains(&0) {
                    deciders(&members)
                } else {
                    vec![(0, 0, 1.0)]
                };
                for (a, b, share) in pairs {
                    let bit =
                        |sum: i32, decider| if sum == 0 { sign(decider) > 0 } else { sum > 0 };
                    let [x, y] = sums;
                    differing += share * f64::from(u8::from(bit(x, a) != bit(y, b)));
                }
            }
            let listed = differing / f64::from(1_u32 << union);
            let found = bit_differs(jaccard, union as u64);
            assert!(
                (found - listed).abs() < 1e-12,
                "{union} {different}: {found} {listed}"
            );
        }
    }
}

/// Returns the members of both sets that decide ties, with the probability of each pair.
fn deciders(sets: &[Vec<usize>; 2]) -> Vec<(usize, usize, f64)> {
    let [first, second] = sets;
    let union: BTreeSet<usize> = first.iter().chain(second).copied().collect();
    let mut pairs = Vec::new();
    for &least in &union {
        let [own, other] = [first, second].map(|set| match set.contains(&least) {
            true => vec![least],
            false => set.clone(),
        });
        for &a in &own {
            for &b in &other {
                let share = 1.0 / (union.len() * own.len() * other.len()) as f64;
                pairs.push((a, b, share));
            }
        }
    }
    pairs
}

/// Bits of sketches are independent coins given the sets, so a share of n of them deviates from the
/// truth by more than 5 / (2 √n) once in 10^6 cases at most.
#[test]
fn bits_of_sketches_differ_as_often_as_computed() {
    for (features, different) in [
        (2_u64, 1_u64),
        (5, 2),
        (20, 2),
        (100, 1),
        (101, 3),
        (400, 4),
    ] {
        let (first, second) = (different.div_ceil(2), different / 2);
        let shared = features - different;
        let trials = 100;
        let mut differing = 0;
        for trial in 0..trials {
            let schema = Schema::builder().simhash(SimHash::bits64()).seed(trial);
            let sketcher = schema.build().unwrap().sketcher();
            let a = sketcher.hashes(0..shared + first).unwrap();
            let b = (0..shared).chain(features - second..features);
            differing += a.hamming(&sketcher.hashes(b).unwrap()).unwrap();
        }
        let bits = 64.0 * trials as f64;
        let jaccard = shared as f64 / features as f64;
        let expected = bit_differs(jaccard, features);
        let deviation = (expected * (1.0 - expected) / bits).sqrt();
        let share = f64::from(differing) / bits;
        assert!(
            (share - expected).abs() < 5.0 * deviation,
            "{features}: {share} {expected}"
        );
    }
}

/// The correction vanishes as sets differ in more features, about as 1 / (4 × their number).
#[test]
fn large_sets_approach_the_angle() {
    for (features, jaccard) in [(1_000_000, 0.99_f64), (100_000, 0.9), (20_000, 0.5)] {
        let angle = (2.0 * jaccard / (1.0 + jaccard)).acos() / std::f64::consts::PI;
        let different = features as f64 * (1.0 - jaccard);
        let error = (bit_differs(jaccard, features) / angle - 1.0).abs();
        assert!(error < 1.0 / different, "{features} {jaccard}: {error}");
        assert!((bit_differs(jaccard, u64::MAX) - angle).abs() < 1e-15);
    }
    // The measured share of near-identical texts of 400 shingles.
    let found = simhash_probability(64, 3, 0.99, TYPICAL_FEATURES);
    assert!((found - 0.871).abs() < 4e-3, "{found}");
}
