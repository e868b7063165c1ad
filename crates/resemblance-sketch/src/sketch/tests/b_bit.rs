use super::*;
use crate::lanes::AgreementCurve;
use crate::sketch::b_bit::{count_equal, cut, mix32, pack, unclamped, unpack, variance};

const WIDTHS: [u8; 5] = [1, 2, 4, 8, 16];

fn random(count: usize, start: u64) -> Vec<u32> {
    (0..count as u64).map(|i| mix64(start + i) as u32).collect()
}

fn packed(values: &[u32], bits: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack(values.iter().copied(), bits, &mut bytes);
    bytes
}

#[test]
fn packed_values_round_trip_and_compare() {
    for bits in WIDTHS {
        for count in [0, 1, 3, 16, 63, 64, 65, 127, 128, 1_000] {
            let a: Vec<u32> = random(count, 1)
                .iter()
                .map(|&value| cut(value, bits, true))
                .collect();
            let mut b: Vec<u32> = random(count, 7_000)
                .iter()
                .map(|&value| cut(value, bits, true))
                .collect();
            b.iter_mut().zip(&a).step_by(3).for_each(|(b, a)| *b = *a);
            let (packed, other) = (packed(&a, bits), packed(&b, bits));
            assert_eq!(packed.len(), (count * usize::from(bits)).div_ceil(8));
            assert_eq!(unpack(&packed, count, bits), a);
            let equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
            assert_eq!(count_equal(&packed, &other, count, bits), equal);
            assert_eq!(count_equal(&packed, &packed, count, bits), count);
            if count >= 64 {
                let short = &other[..other.len() / 2];
                let values = short.len() * 8 / usize::from(bits);
                let equal = a
                    .iter()
                    .zip(&b)
                    .take(values)
                    .filter(|(a, b)| a == b)
                    .count();
                assert_eq!(count_equal(&packed, short, count, bits), equal);
            }
        }
    }
}

/// A bijection, so that no values become equal by the mix: their 32 bits are all different.
#[test]
fn value_mix_is_a_bijection_that_spreads_small_numbers() {
    let mut mixed: Vec<u32> = (0..100_000).map(mix32).collect();
    mixed.sort_unstable();
    mixed.dedup();
    assert_eq!(mixed.len(), 100_000);
    // Chi-square of small numbers, and of multiples of 2^16, over 16 cells: mean 15, variance 30.
    for shift in [0, 16] {
        let mut counts = [0_u32; 16];
        (0..16_000_u32).for_each(|value| counts[cut(value << shift, 4, true) as usize] += 1);
        let square = |&count: &u32| (f64::from(count) - 1_000.0).powi(2) / 1_000.0;
        let score = (counts.iter().map(square).sum::<f64>() - 15.0) / 30.0_f64.sqrt();
        assert!(score.abs() < SCORE, "{score}");
    }
}

#[test]
fn estimates_of_cut_values_are_corrected_for_chance() {
    for bits in WIDTHS {
        let chance = 0.5_f64.powi(bits.into());
        let expected = |share: f64| (share - chance) / (1.0 - chance);
        assert_eq!(unclamped(0, 64, bits), expected(0.0));
        assert_eq!(unclamped(64, 64, bits), 1.0);
        assert!((unclamped(40, 64, bits) - expected(0.625)).abs() < 1e-15);
        assert!(unclamped(0, 64, bits) < 0.0);
        // Li and König's variance; at many bits that of whole values.
        let agree = chance + (1.0 - chance) * 0.5;
        let expected = agree * (1.0 - agree) / 64.0 / (1.0 - chance).powi(2);
        assert!((variance(0.5, 64, bits) - expected).abs() < 1e-15);
    }
    assert!((variance(0.5, 64, 16) / (0.25 / 64.0) - 1.0).abs() < 1e-4);
    assert!((variance(0.5, 64, 1) / (0.25 / 64.0) - 3.0).abs() < 1e-12);
}

/// 19 of 20 values of one bit estimate 0.9: (0.95 - 0.5) / 0.5 was less.
#[test]
fn estimate_that_equals_a_decimal_bound_meets_it() {
    for bits in WIDTHS {
        let others = (1_u64 << bits) - 1;
        for count in 1..=300_u64 {
            let layout = ValueLayout::Packed {
                count: count as u16,
                bits,
                is_mixed: true,
                curve: AgreementCurve::Identity,
            };
            for thousandths in (50..=1_000).step_by(50) {
                // The estimate is (equal (others + 1) - count) / (count others).
                let bound = thousandths * count * others;
                let is_met = |equal: &u64| 1_000 * equal * (others + 1) >= 1_000 * count + bound;
                let least = (0..=count).find(is_met).unwrap();
                let found = layout.min_agreement(thousandths as f64 / 1_000.0);
                assert_eq!(found as u64, least, "{bits} bits, {count}, {thousandths}");
            }
        }
    }
}
