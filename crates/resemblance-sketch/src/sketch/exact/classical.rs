//! Sketches as textbooks define them, for hashes and functions that the caller provides. They share
//! no code with the frozen sketches.

use crate::error::{Result, SketchError};
use crate::sketch::simhash::quantise;

/// Returns the SimHash of features with given hashes (Charikar 2002, in the form of Manku, Jain and
/// Das Sarma 2007). Bit j is 1 if the features whose hash has bit j set weigh more than the others.
/// Ties and documents without features give 0.
///
/// Weights are rounded to multiples of 2⁻¹⁶, as [`Sketcher`](crate::Sketcher) rounds them, so that
/// sums are exact. A sketcher differs in that it hashes features itself and breaks ties fairly. Use
/// this function to compare with hashes from another program.
///
/// # Errors
///
/// [`SketchError::InvalidParameter`] if `bits` is not 1 to 128, a hash has more bits, or a weight
/// is not 0 to 65,536.
///
/// ```
/// use resemblance_sketch::exact::simhash;
/// let features = [(0b0110, 1.0), (0b0011, 0.9), (0b0101, 0.8)];
/// assert_eq!(simhash(features, 4)?, 0b0111);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
pub fn simhash(features: impl IntoIterator<Item = (u128, f64)>, bits: u32) -> Result<u128> {
    SketchError::require((1..=u128::BITS).contains(&bits), "bits", bits, "1 to 128")?;
    let mut sums = vec![0_i128; bits as usize];
    for (hash, weight) in features {
        let expected = format_args!("a number of {bits} bits");
        let is_valid = hash.checked_shr(bits).is_none_or(|rest| rest == 0);
        SketchError::require(is_valid, "hash", hash, expected)?;
        let weight = i128::from(quantise(weight)?);
        for (bit, sum) in sums.iter_mut().enumerate() {
            let is_set = (hash >> bit) & 1 == 1;
            *sum += if is_set { weight } else { -weight };
        }
    }
    let bit = |(position, &sum): (usize, &i128)| u128::from(sum > 0) << position;
    Ok(sums.iter().enumerate().map(bit).sum())
}

/// Returns the minima of the functions (a x + b) mod p over a set of numbers (Broder 1997). There
/// is one value for each (a, b) of `functions`; it is `u64::MAX` for an empty set. Each function
/// permutes the numbers below p if p is a prime that does not divide a.
///
/// # Errors
///
/// [`SketchError::InvalidParameter`] if the modulus is 0.
///
/// ```
/// use resemblance_sketch::exact::modular_minhash;
/// assert_eq!(modular_minhash([0, 2, 5], &[(1, 1), (3, 1)], 7)?, [1, 0]);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
pub fn modular_minhash(
    features: impl IntoIterator<Item = u64>,
    functions: &[(u64, u64)],
    modulus: u64,
) -> Result<Vec<u64>> {
    SketchError::require(modulus != 0, "modulus", modulus, "at least 1")?;
    let mut minima = vec![u64::MAX; functions.len()];
    for feature in features {
        for (minimum, &(a, b)) in minima.iter_mut().zip(functions) {
            // Fits: (2^64 - 1)² + 2^64 - 1 < 2^128.
            let image = u128::from(a) * u128::from(feature) + u128::from(b);
            *minimum = (*minimum).min((image % u128::from(modulus)) as u64);
        }
    }
    Ok(minima)
}

/// Returns a sorted table of permuted fingerprints (Manku, Jain and Das Sarma 2007): bit i of a
/// fingerprint becomes bit `places[i]`. Bit 0 is the most significant. A fingerprint has one bit
/// for each place.
///
/// # Errors
///
/// [`SketchError::InvalidParameter`] if `places` is not a permutation of 0, 1, ..., has more than
/// 128 entries, or a fingerprint has more bits than places.
///
/// ```
/// use resemblance_sketch::exact::permuted_table;
/// assert_eq!(permuted_table(&[0b110, 0b001], &[2, 0, 1])?, [0b010, 0b101]);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
pub fn permuted_table(fingerprints: &[u128], places: &[u8]) -> Result<Vec<u128>> {
    let bits = places.len();
    let mut sorted: Vec<usize> = places.iter().map(|&place| usize::from(place)).collect();
    sorted.sort_unstable();
    let are_places = bits <= 128 && sorted.into_iter().eq(0..bits);
    let expected = "each of 0, 1, ... once, at most 128";
    SketchError::require(are_places, "places", format_args!("{places:?}"), expected)?;
    let permuted = |fingerprint: u128| {
        let from = (0..bits).map(|bit| (fingerprint >> (bits - 1 - bit)) & 1);
        let moved = from
            .zip(places)
            .map(|(bit, &to)| bit << (bits - 1 - usize::from(to)));
        moved.sum::<u128>()
    };
    let mut table = Vec::with_capacity(fingerprints.len());
    for &fingerprint in fingerprints {
        let expected = format_args!("a number of {bits} bits");
        let is_valid = fingerprint
            .checked_shr(bits as u32)
            .is_none_or(|rest| rest == 0);
        SketchError::require(is_valid, "fingerprint", fingerprint, expected)?;
        table.push(permuted(fingerprint));
    }
    table.sort_unstable();
    Ok(table)
}
