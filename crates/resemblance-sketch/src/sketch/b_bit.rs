//! b-bit MinHash: values cut to b bits (Li and König, *b-Bit Minwise Hashing*, WWW 2010; *Theory
//! and applications of b-bit minwise hashing*, CACM 2011).
//!
//! The values of two different features are equal after the cut with probability C. Cut values
//! therefore agree with probability P = C + (1 - C) J, and (share of equal ones - C) / (1 - C) is
//! an unbiased estimate of J, with variance P (1 - P) / (k (1 - C)²). In general C is two numbers
//! that depend on r₁ = |A| / D and r₂ = |B| / D, for a universe of D features: with A(r) = r (1 -
//! r)^(2^b - 1) / (1 - (1 - r)^(2^b)), they are the means of A(r₁) and A(r₂), weighted by r₂ : r₁
//! for the addend and r₁ : r₂ for the factor. Both tend to 2^-b as r tends to 0. This crate uses
//! the limit. Features are hashed to 64 bits, so r is below 2^-30 even for a billion features, and
//! sizes need not be stored. Values are mixed before they are cut, so their original distribution
//! does not matter.
//!
//! Values that were equal by chance before the cut remain equal; the documentation of each kind
//! states how often that happens.

/// Cuts a value to its `bits` low bits, 1 to 32; with 32 it does not change. With `is_mixed`, mixes
/// it first, for two reasons. Minima are small numbers, so their high bits distinguish little, and
/// with very many features the low bits do not either. And the low bits of a product depend only on
/// the low bits of its factors, so features that agree there would agree in all values. The mix is
/// MurmurHash3's 32-bit finalizer (Appleby), a bijection.
#[inline]
pub(super) fn cut(value: u32, bits: u8, is_mixed: bool) -> u32 {
    let is_mixed = is_mixed && bits < 32;
    let value = if is_mixed { mix32(value) } else { value };
    value & low_mask(bits) as u32
}

#[inline]
pub(super) fn mix32(value: u32) -> u32 {
    let value = (value ^ (value >> 16)).wrapping_mul(0x85eb_ca6b);
    let value = (value ^ (value >> 13)).wrapping_mul(0xc2b2_ae35);
    value ^ (value >> 16)
}

/// Estimates J if `equal` of `values` values of `bits` bits are equal. The estimate is unbiased,
/// hence sometimes negative for dissimilar sets. It is NaN for no values.
#[inline]
pub(super) fn unclamped(equal: usize, values: usize, bits: u8) -> f64 {
    // Both are whole numbers below 2^53, so only the division rounds: an estimate of nine tenths is
    // the number 0.9, and meets that bound.
    let (equal, values, most) = (equal as f64, values as f64, low_mask(bits) as f64);
    (equal * (most + 1.0) - values) / (values * most)
}

/// Returns the variance of the unclamped estimate of `similarity` for independent values.
#[inline]
pub(crate) fn variance(similarity: f64, values: usize, bits: u8) -> f64 {
    let chance = chance(bits);
    let agree = chance + (1.0 - chance) * similarity;
    agree * (1.0 - agree) / (values as f64 * (1.0 - chance) * (1.0 - chance))
}

/// 2^-bits.
#[inline]
pub(super) fn chance(bits: u8) -> f64 {
    1.0 / (low_mask(bits) as f64 + 1.0)
}

fn low_mask(bits: u8) -> u64 {
    (1_u64 << u32::from(bits).min(32)) - 1
}

/// Appends cut values of `bits` bits, 1, 2, 4, 8 or 16, one after another, beginning with the
/// lowest bit of the first byte. Unused bits of the last byte are 0.
pub(super) fn pack(values: impl IntoIterator<Item = u32>, bits: u8, bytes: &mut Vec<u8>) {
    if bits == 16 {
        for value in values {
            bytes.extend_from_slice(&(value as u16).to_le_bytes());
        }
        return;
    }
    let (mut pending, mut filled) = (0_u64, 0_u32);
    for value in values {
        pending |= (u64::from(value) & low_mask(bits)) << filled;
        filled += u32::from(bits);
        while filled >= u8::BITS {
            bytes.push(pending as u8);
            pending >>= u8::BITS;
            filled -= u8::BITS;
        }
    }
    if filled > 0 {
        bytes.push(pending as u8);
    }
}

/// Returns the first `count` packed values, or all of them if there are fewer.
pub(super) fn unpack(bytes: &[u8], count: usize, bits: u8) -> Vec<u32> {
    if bits == 16 {
        let words = bytes.as_chunks::<2>().0.iter().take(count);
        return words
            .map(|bytes| u16::from_le_bytes(*bytes).into())
            .collect();
    }
    let mut unread = bytes.iter();
    let (mut pending, mut filled) = (0_u64, 0_u32);
    let mut next = || {
        while filled < u32::from(bits) {
            pending |= u64::from(*unread.next()?) << filled;
            filled += u8::BITS;
        }
        let value = (pending & low_mask(bits)) as u32;
        pending >>= bits;
        filled -= u32::from(bits);
        Some(value)
    };
    std::iter::from_fn(&mut next).take(count).collect()
}

/// Counts the packed values that are equal, position by position, among `count` values of `bits`
/// bits (1, 2, 4, 8 or 16). Compares 64 bits at a time and folds each difference of two values into
/// its lowest bit. Both slices must be packed as [`pack`] does, which makes their unused bits
/// equal. Values that a shorter slice lacks count as unequal.
#[inline]
pub(super) fn count_equal(a: &[u8], b: &[u8], count: usize, bits: u8) -> usize {
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    if a.len() != b.len() {
        let equal = |(a, b): &(u32, u32)| a == b;
        let (a, b) = (unpack(a, count, bits), unpack(b, count, bits));
        return a.into_iter().zip(b).filter(equal).count();
    }
    let words = a_words.iter().zip(b_words);
    let in_words: usize = words
        .map(|(a, b)| differing(u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b), bits))
        .sum();
    let rest = a_rest.iter().zip(b_rest).rev();
    let last_word = rest.fold(0, |word, (a, b)| word << u8::BITS | u64::from(a ^ b));
    // Packed bytes of a damaged file may also differ after the last value. The count must not
    // underflow.
    count.saturating_sub(in_words + differing(last_word, bits))
}

/// Returns the number of nonzero values in a word.
#[inline]
fn differing(word: u64, bits: u8) -> usize {
    let mut folded = word;
    let mut step = 1;
    while step < u32::from(bits) {
        folded |= folded >> step;
        step *= 2;
    }
    let lowest = u64::MAX / low_mask(bits).max(1);
    (folded & lowest).count_ones() as usize
}
