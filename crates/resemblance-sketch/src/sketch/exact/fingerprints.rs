//! Similarities of bit vectors.

use crate::error::{Result, SketchError};

/// Returns the Jaccard similarity, 0 to 1, of two sets that are given as bits: the number of bits
/// set in both, divided by the number set in either. If one slice is shorter, its missing bits
/// count as 0. Two empty sets have similarity 1.
///
/// ```
/// use resemblance_sketch::exact::jaccard_of_bits;
/// assert_eq!(jaccard_of_bits(&[0b10111], &[0b10011]), 3.0 / 4.0);
/// ```
#[must_use]
pub fn jaccard_of_bits(a: &[u64], b: &[u64]) -> f64 {
    let ones = |words: &[u64]| words.iter().map(|word| u64::from(word.count_ones())).sum();
    let (ones_of_a, ones_of_b): (u64, u64) = (ones(a), ones(b));
    let common = a
        .iter()
        .zip(b)
        .map(|(a, b)| u64::from((a & b).count_ones()));
    let shared: u64 = common.sum();
    match ones_of_a + ones_of_b - shared {
        0 => 1.0,
        all => shared as f64 / all as f64,
    }
}

/// Returns the Hamming distance of two fingerprints of up to 128 bits: the number of bits that
/// differ.
///
/// ```
/// assert_eq!(resemblance_sketch::exact::hamming(0b1011, 0b0001), 2);
/// ```
#[must_use]
pub const fn hamming(a: u128, b: u128) -> u32 {
    (a ^ b).count_ones()
}

/// Returns the angle in radians, 0 to π, that the Hamming distance d between SimHash fingerprints
/// of f = `bits` bits estimates: π d / f (Charikar, *Similarity estimation techniques from rounding
/// algorithms*, 2002).
///
/// # Errors
///
/// [`SketchError::InvalidParameter`] if `bits` is 0 or the distance exceeds it.
///
/// ```
/// use resemblance_sketch::exact::angle;
/// assert_eq!(angle(32, 64)?, std::f64::consts::FRAC_PI_2);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
pub fn angle(distance: u32, bits: u32) -> Result<f64> {
    Ok(std::f64::consts::PI * (1.0 - same_bit_probability(distance, bits)?))
}

/// Returns the probability 1 − d / f that two fingerprints of f = `bits` bits at distance d agree
/// in a random bit (bit sampling: Indyk and Motwani, *Approximate nearest neighbors*, 1998).
///
/// # Errors
///
/// [`SketchError::InvalidParameter`] if `bits` is 0 or the distance exceeds it.
///
/// ```
/// use resemblance_sketch::exact::same_bit_probability;
/// assert_eq!(same_bit_probability(16, 64)?, 0.75);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
pub fn same_bit_probability(distance: u32, bits: u32) -> Result<f64> {
    SketchError::require(bits != 0, "bits", bits, "at least 1")?;
    let expected = format_args!("at most the {bits} bits of a fingerprint");
    SketchError::require(distance <= bits, "distance", distance, expected)?;
    Ok(1.0 - f64::from(distance) / f64::from(bits))
}

/// Returns the sensitivity ρ = ln(1 / `near`) / ln(1 / `far`) of a family of hash functions. `near`
/// is the probability that a function agrees for a pair to be found, and `far` that it agrees for
/// another pair. An index of n documents examines about n^ρ of them (Indyk and Motwani 1998). The
/// result is below 1 if `near` is the greater.
///
/// # Errors
///
/// [`SketchError::InvalidParameter`] if a probability is not strictly between 0 and 1.
///
/// ```
/// use resemblance_sketch::exact::sensitivity;
/// assert!((sensitivity(0.9, 0.81)? - 0.5).abs() < 1e-12);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
pub fn sensitivity(near: f64, far: f64) -> Result<f64> {
    for (name, probability) in [("near", near), ("far", far)] {
        let expected = "above 0 and below 1";
        let is_valid = probability > 0.0 && probability < 1.0;
        SketchError::require(is_valid, name, probability, expected)?;
    }
    Ok(near.ln() / far.ln())
}

/// Returns the number of fingerprints of `bits` bits within a Hamming distance of a given one,
/// itself included: Σ C(bits, i) for i from 0 to the distance. An index without tables needs that
/// number of probes. Returns `None` if the number exceeds 2¹²⁸ − 1.
///
/// ```
/// use resemblance_sketch::exact::fingerprints_within;
/// assert_eq!(fingerprints_within(3, 64), Some(43_745));
/// ```
#[must_use]
pub fn fingerprints_within(distance: u32, bits: u32) -> Option<u128> {
    let mut choices = 1_u128;
    let mut sum = 1_u128;
    for chosen in 1..=distance.min(bits) {
        // C(n, i) = C(n, i - 1) (n - i + 1) / i, divided first: no number exceeds the result.
        let common = greatest_common_divisor(choices, u128::from(chosen));
        let factor = u128::from(bits - chosen + 1) / (u128::from(chosen) / common);
        choices = (choices / common).checked_mul(factor)?;
        sum = sum.checked_add(choices)?;
    }
    Some(sum)
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
