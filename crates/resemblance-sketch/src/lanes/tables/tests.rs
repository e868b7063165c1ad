use super::*;
use crate::sample::Random;

type Groups = &'static [(u8, u8)];

const DESIGNS: [(u8, Groups); 12] = [
    (0, &[(1, 1)]),
    (0, &[(64, 64)]),
    (1, &[(3, 2)]),
    (2, &[(4, 3), (3, 3)]),
    (3, &[(1, 1), (1, 1), (1, 1), (1, 1)]),
    (3, &[(4, 1)]),
    (3, &[(3, 2), (2, 2), (2, 2)]),
    (3, &[(3, 2), (3, 2)]),
    (3, &[(5, 2)]),
    (3, &[(6, 3)]),
    (6, &[(6, 4), (5, 4), (5, 4)]),
    (1, &[(64, 63)]),
];

fn designs() -> impl Iterator<Item = TableDesign> {
    DESIGNS
        .iter()
        .map(|&(k, groups)| TableDesign::new(64, k, groups).unwrap())
}

/// A table as the rule reads: the bits of a fingerprint, counted from the most significant, in the
/// order of the code, and how many of them lead.
fn naive_tables(groups: &[(u8, u8)]) -> Vec<(Vec<usize>, usize)> {
    let count: usize = groups.iter().map(|&(s, _)| usize::from(s)).sum();
    let start = |i: usize| i * 64 / count + usize::from(!(i * 64).is_multiple_of(count));
    let bits = |i: usize| start(i)..start(i + 1);
    let mut tables = Vec::new();
    let mut first = 0;
    for &(s, r) in groups {
        let (s, r) = (usize::from(s), usize::from(r));
        // Lexicographic successor, from the first choice on.
        let mut chosen: Vec<usize> = (0..r).collect();
        loop {
            let leading: Vec<usize> = chosen.iter().map(|i| first + i).collect();
            let others = (0..count).filter(|i| !leading.contains(i));
            let order: Vec<usize> = leading
                .iter()
                .copied()
                .chain(others)
                .flat_map(bits)
                .collect();
            tables.push((order, leading.iter().map(|&i| bits(i).len()).sum()));
            let Some(at) = (0..r).rev().find(|&at| chosen[at] < s - r + at) else {
                break;
            };
            chosen[at] += 1;
            for next in at + 1..r {
                chosen[next] = chosen[next - 1] + 1;
            }
        }
        first += s;
    }
    tables
}

fn naive_permute(order: &[usize], fingerprint: u64) -> u64 {
    order
        .iter()
        .fold(0, |code, &bit| code << 1 | fingerprint >> (63 - bit) & 1)
}

#[test]
fn tables_permute_bits_as_specified() {
    let mut random = Random(1);
    for design in designs() {
        let expected = naive_tables(design.groups());
        assert_eq!(design.table_count(), expected.len(), "{design}");
        for (table, (order, prefix_bits)) in design.tables().iter().zip(&expected) {
            assert_eq!(usize::from(table.prefix_bits()), *prefix_bits, "{design}");
            let single_bits = (0..64).map(|bit| 1 << bit);
            let drawn: Vec<u64> = (0..200).map(|_| random.next()).collect();
            for fingerprint in single_bits.chain(drawn).chain([0, u64::MAX]) {
                let code = table.permute(&fingerprint.into());
                assert_eq!(code, naive_permute(order, fingerprint), "{design}");
                assert_eq!(table.restore(code), fingerprint, "{design}");
                assert_eq!(
                    table.permute(&table.restore(fingerprint).into()),
                    fingerprint
                );
            }
        }
    }
}

#[test]
fn blocks_cover_the_bits_evenly() {
    for bits in [64, 128] {
        for count in 1..=u32::from(bits) {
            let mut next = 0;
            for block in cut(bits, count) {
                assert_eq!(block.first, next);
                let even = u32::from(bits) / count;
                assert!(block.bits == even || block.bits == even + 1);
                next += block.bits;
            }
            assert_eq!(next, u32::from(bits));
        }
    }
    let sizes: Vec<u32> = cut(64, 7).map(|block| block.bits).collect();
    assert_eq!(sizes, [10, 9, 9, 9, 9, 9, 9]);
    let sizes: Vec<u32> = cut(64, 6).map(|block| block.bits).collect();
    assert_eq!(sizes, [11, 11, 10, 11, 11, 10]);
}

#[test]
fn table_count_is_the_binomial_coefficient() {
    // Pascal's triangle.
    let mut row = vec![1_u64];
    for s in 1..=20_u8 {
        let inner = row.windows(2).map(|pair| pair[0] + pair[1]);
        row = std::iter::once(1).chain(inner).chain([1]).collect();
        for r in 1..=s {
            assert_eq!(binomial(s, r), row[usize::from(r)], "({s},{r})");
        }
    }
    for r in 1..=12 {
        let found = choices(3, 12, r);
        assert_eq!(found.len() as u64, binomial(12, r));
        assert!(found.iter().all(|set| set.count_ones() == u32::from(r)
            && set.trailing_zeros() >= 3
            && set >> 15 == 0));
    }
    assert_eq!(choices(1, 3, 2), [0b0110, 0b1010, 0b1100]);
    assert_eq!(binomial(64, 32), 1_832_624_140_942_590_534);
    assert_eq!(binomial(255, 127), u64::MAX);
}

#[test]
fn prefix_ranges_hold_the_codes_that_share_the_prefix() {
    let mut random = Random(2);
    for design in designs() {
        for table in design.tables() {
            let p = u32::from(table.prefix_bits());
            let code = random.next();
            let (low, high) = table.prefix_range(code);
            let prefix = |code: u64| u128::from(code) >> (64 - p);
            for inside in [low, code, high] {
                assert!((low..=high).contains(&inside));
                assert_eq!(prefix(inside), prefix(code));
            }
            assert!(low == 0 || prefix(low - 1) != prefix(code));
            assert!(high == u64::MAX || prefix(high + 1) != prefix(code));
        }
    }
}

#[test]
fn first_meeting_table_has_equal_prefixes() {
    let mut random = Random(3);
    for design in designs() {
        let (mut met, mut missed) = (0, 0);
        for round in 0..3_000 {
            let a = random.next();
            // From equal to unrelated.
            let flips = round % 30;
            let b = (0..flips).fold(a, |b, _| b ^ 1 << (random.next() % 64));
            let shares_prefix = |table: &PermutedTable| {
                let (low, high) = table.prefix_range(table.permute(&a.into()));
                (low..=high).contains(&table.permute(&b.into()))
            };
            let expected = design.tables().iter().position(shares_prefix);
            assert_eq!(
                design.first_shared_table(&a.into(), &b.into()),
                expected,
                "{design}"
            );
            match expected {
                Some(_) => met += 1,
                None => missed += 1,
            }
        }
        assert!(met > 0);
        assert!(missed > 0, "{design}");
    }
}

#[test]
fn designs_that_miss_matches_are_refused() {
    let refused: [(u16, u8, Groups, &str); 11] = [
        (16, 3, &[(4, 1)], "bits"),
        (32, 3, &[(33, 30)], "groups"),
        (96, 3, &[(4, 1)], "bits"),
        (64, 3, &[], "groups"),
        (64, 0, &[], "groups"),
        (64, 3, &[(4, 0)], "groups"),
        (64, 3, &[(4, 5)], "groups"),
        (64, 40, &[(4, 2)], "groups"),
        (64, 64, &[(3, 2), (3, 2)], "max_distance"),
        (64, 63, &[(65, 1)], "groups"),
        (64, 3, &[(64, 32)], "groups"),
    ];
    for (bits, k, groups, expected) in refused {
        match TableDesign::new(bits, k, groups) {
            Err(SketchError::InvalidParameter { parameter, .. }) => assert_eq!(parameter, expected),
            other => panic!("{bits} {k} {groups:?}: {other:?}"),
        }
    }
    let many = vec![(255, 100); 1_000];
    assert!(TableDesign::new(64, 255, &many).is_err());
    assert!(TableDesign::new(64, 63, &[(64, 1)]).is_ok());
}

#[test]
fn table_designs_are_printed() {
    let printed = |k, groups: Groups| TableDesign::new(64, k, groups).unwrap().to_string();
    assert_eq!(
        printed(3, &[(3, 2), (2, 2), (2, 2)]),
        "(3,2) (2,2) (2,2): 5 tables, prefix 18 to 19 bits"
    );
    assert_eq!(
        printed(3, &[(4, 3), (4, 3)]),
        "(4,3) (4,3): 8 tables, prefix 24 bits"
    );
    assert_eq!(printed(0, &[(1, 1)]), "(1,1): 1 table, prefix 64 bits");
}

#[test]
fn stored_designs_are_checked() {
    let configuration = bincode::config::standard();
    for design in designs() {
        let bytes = bincode::serde::encode_to_vec(&design, configuration).unwrap();
        // bits, max_distance, the number of groups, two bytes a group
        assert_eq!(bytes.len(), 3 + 2 * design.groups().len());
        let (read, _): (TableDesign, usize) =
            bincode::serde::decode_from_slice(&bytes, configuration).unwrap();
        assert_eq!(read, design);
    }
    let read = |bytes: &[u8]| {
        bincode::serde::decode_from_slice::<TableDesign, _>(bytes, configuration).is_ok()
    };
    assert!(read(&[64, 3, 1, 5, 2]));
    let wide = TableDesign::new(256, 3, &[(5, 1)]).unwrap();
    let bytes = bincode::serde::encode_to_vec(&wide, configuration).unwrap();
    assert_eq!(bytes, [0, 3, 1, 5, 1]);
    let read_again = bincode::serde::decode_from_slice(&bytes, configuration);
    assert_eq!(
        read_again
            .map(|(design, _): (TableDesign, usize)| design)
            .unwrap(),
        wide
    );
    assert!(read(&[64, 4, 1, 5, 2]));
    assert!(!read(&[64, 40, 1, 5, 2]));
    assert!(!read(&[63, 3, 1, 5, 2]));
    assert!(!read(&[64, 3, 1, 5, 6]));
    assert!(!read(&[64, 3, 200, 5, 2]));
    // Any three groups give a design or an error.
    let mut random = Random(4);
    for _ in 0..20_000 {
        let bytes = random.next().to_le_bytes();
        let groups = [bytes[0] % 70, bytes[1] % 70, bytes[2] % 9, bytes[3] % 9];
        read(&[
            64,
            bytes[4] % 8,
            2,
            groups[0],
            groups[1],
            groups[2],
            groups[3],
        ]);
        read(&[&[64, 3, 4], &bytes[..]].concat());
    }
}

/// Random fingerprints at a distance share a prefix with the computed probability. Up to the
/// greatest distance, all of them share one.
#[test]
fn the_probability_at_a_distance_is_that_of_random_bits() {
    let mut random = Random(9);
    let designs = [
        (64, TableDesign::new(64, 3, &[(5, 2)]).unwrap()),
        (
            64,
            TableDesign::new(64, 3, &[(3, 2), (2, 2), (2, 2)]).unwrap(),
        ),
        (
            64,
            TableDesign::new(64, 6, &[(6, 4), (5, 4), (5, 4)]).unwrap(),
        ),
        (32, TableDesign::new(32, 2, &[(3, 2), (1, 1)]).unwrap()),
        (128, TableDesign::new(128, 5, &[(8, 3)]).unwrap()),
    ];
    for (bits, design) in designs {
        let bits: u16 = bits;
        for dropped in 0..=design.max_dropped() {
            for distance in [1, 3, 5, 8, 12, 20] {
                let (mut shared, tries) = (0, 1_000);
                let wide = |number| Fingerprint::from_number(bits, number);
                for _ in 0..tries {
                    let fingerprint = u128::from(random.next()) << 64 | u128::from(random.next());
                    let fingerprint = fingerprint & (u128::MAX >> (128 - u32::from(bits)));
                    let mut other = fingerprint;
                    while (fingerprint ^ other).count_ones() < distance {
                        let bit = 1_u128 << (random.next() % u64::from(bits));
                        if (fingerprint ^ other) & bit == 0 {
                            other ^= bit;
                        }
                    }
                    shared += u32::from(design.tables().iter().any(|table| {
                        let (low, high) =
                            table.shorter_prefix_range(table.permute(&wide(fingerprint)), dropped);
                        (low..=high).contains(&table.permute(&wide(other)))
                    }));
                }
                let reported = design.shortened_probability_at(distance, dropped);
                let deviation = (reported * (1.0 - reported) * f64::from(tries)).sqrt();
                let off = f64::from(shared) - reported * f64::from(tries);
                assert!(
                    off.abs() <= 4.5 * deviation + 1e-6,
                    "{design} without {dropped} at {distance}: {shared}, reported {reported}"
                );
                let complete = TableDesign::complete_distance(design.groups());
                assert!(distance > complete.into() || reported == 1.0);
            }
        }
        assert_eq!(design.shortened_probability_at(129, 0), 0.0);
    }
    // Four bits in four different blocks of 16: 16^4 of 635,376 choices are missed.
    let blocks = TableDesign::new(64, 3, &[(1, 1); 4]).unwrap();
    let expected = 1.0 - 65_536.0 / 635_376.0;
    assert!((blocks.shortened_probability_at(4, 0) - expected).abs() < 1e-12);
}

/// Wherever a fingerprint's bits differ from another's, up to a distance, some table has its prefix within the
/// radius: blocks of few bits are tried with all sets of differing bits.
#[test]
fn probe_radii_cover_the_distance() {
    let designs: [(u16, Groups); 7] = [
        (32, &[(1, 1), (1, 1)]),
        (32, &[(3, 2)]),
        (64, &[(1, 1), (1, 1), (1, 1)]),
        (64, &[(4, 2), (2, 1)]),
        (64, &[(5, 2)]),
        (128, &[(1, 1), (1, 1), (1, 1), (1, 1)]),
        (256, &[(1, 1), (1, 1), (3, 1), (3, 2)]),
    ];
    for (bits, groups) in designs {
        let Ok(design) = TableDesign::new(bits, 0, groups) else {
            panic!("{bits} {groups:?}");
        };
        let blocks: u32 = groups.iter().map(|&(s, _)| u32::from(s)).sum();
        let blocks: Vec<BitBlock> = cut(bits, blocks).collect();
        for distance in 0..14 {
            for documents in [0, 1_000, 1_000_000_000] {
                let Some(radii) = design.probe_radii(distance, documents) else {
                    continue;
                };
                let mut counts = vec![0; blocks.len()];
                spread(distance, &mut counts, 0, &mut |counts| {
                    let fits = counts
                        .iter()
                        .zip(&blocks)
                        .all(|(count, block)| *count <= block.bits);
                    let is_found = || {
                        let mut tables = design.tables().iter().zip(radii.by_table());
                        tables.any(|(table, radius)| {
                            let leading = blocks.iter().zip(counts).filter(|(block, _)| {
                                let bit = u32::from(bits) - 1 - block.first;
                                let word = &table.words[(bit / 64) as usize];
                                word.leading >> (bit % 64) & 1 == 1
                            });
                            let differing: u32 = leading.map(|(_, count)| *count).sum();
                            differing <= u32::from(*radius)
                        })
                    };
                    assert!(!fits || is_found(), "{design} at {distance}: {counts:?}");
                });
            }
        }
    }
}

/// Visits all ways to spread `left` differing bits over blocks.
fn spread(left: u32, counts: &mut [u32], block: usize, visit: &mut impl FnMut(&[u32])) {
    if block + 1 == counts.len() {
        counts[block] = left;
        visit(counts);
        return;
    }
    for count in 0..=left {
        counts[block] = count;
        spread(left - count, counts, block + 1, visit);
    }
}

#[test]
fn flips_yield_every_prefix_within_the_radius() {
    use crate::lanes::radii::prefix_flips;
    for prefix_bits in [1, 2, 7, 16, 64] {
        for radius in 0..=3 {
            let flips: Vec<u64> = prefix_flips(prefix_bits, radius).collect();
            let mut distinct = flips.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), flips.len());
            assert!(!flips.contains(&0));
            let most = u32::from(radius.min(prefix_bits));
            assert!(flips.iter().all(|flip| flip.count_ones() <= most
                && flip.trailing_zeros() >= 64 - u32::from(prefix_bits)));
            let ways: u64 = (1..=radius.min(prefix_bits))
                .map(|r| binomial(prefix_bits, r))
                .sum();
            assert_eq!(flips.len() as u64, ways, "{prefix_bits} {radius}");
        }
    }
}
