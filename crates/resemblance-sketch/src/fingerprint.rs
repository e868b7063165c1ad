//! Fingerprints of up to 256 bits.

use std::fmt;
use std::str::FromStr;

use crate::error::{Result, SketchError};

/// The widths of fingerprints, in bits.
pub(crate) const WIDTHS: [u16; 4] = [32, 64, 128, 256];

/// A fingerprint of 32, 64, 128 or 256 bits, such as a SimHash or the perceptual hash of an image.
/// The fewer bits differ between two fingerprints, the more similar they are.
///
/// Create one from an integer, from 32 bytes (the first byte holds the highest bits), or by parsing
/// hexadecimal digits. It prints as hexadecimal digits.
///
/// ```
/// use resemblance_sketch::{Fingerprint, Signature};
/// let pdq: Fingerprint = "f8f8f0cee0f4a84f06370a22038f63f0b36e2ed596621e1d33e6b39c4e9c9b22".parse()?;
/// assert_eq!(pdq.bits(), 256);
/// assert_eq!(Fingerprint::from(0xbeef_u32).to_string(), "0000beef");
/// assert_eq!(Fingerprint::from(7_u64).hamming(&5_u64.into()), Some(1));
/// assert_eq!(Signature::from_fingerprint(pdq).fingerprint(), Some(pdq));
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    bits: u16,
    /// The highest word first, so that fingerprints of one width sort as numbers.
    words: [u64; 4],
}

impl Fingerprint {
    /// The number of bits: 32, 64, 128 or 256.
    #[must_use]
    #[inline]
    pub const fn bits(&self) -> u16 {
        self.bits
    }

    /// Returns the number of bits in which two fingerprints differ, or `None` if their widths
    /// differ.
    #[must_use]
    #[inline]
    pub fn hamming(&self, other: &Self) -> Option<u32> {
        (self.bits == other.bits).then(|| self.distance(other))
    }

    /// Returns the distance of two fingerprints of the same width.
    #[inline]
    pub fn distance(&self, other: &Self) -> u32 {
        let words = self.words.iter().zip(&other.words);
        words.map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    /// Returns the bits in which two fingerprints differ.
    #[inline]
    pub(crate) fn xor(&self, other: &Self) -> Self {
        let mut words = self.words;
        words.iter_mut().zip(other.words).for_each(|(a, b)| *a ^= b);
        Self { words, ..*self }
    }

    /// Returns 64 bits, starting at bit 64 · `word`; bit 0 is the least significant.
    #[inline]
    pub const fn word(&self, word: usize) -> u64 {
        let [fourth, third, second, first] = self.words;
        match word {
            0 => first,
            1 => second,
            2 => third,
            _ => fourth,
        }
    }

    /// Returns the fingerprint as an integer, or `None` if it has 256 bits.
    #[inline]
    pub(crate) fn number(&self) -> Option<u128> {
        let number = u128::from(self.word(1)) << 64 | u128::from(self.word(0));
        (self.bits <= 128).then_some(number)
    }

    /// Returns the fingerprint of `bits` bits, one of [`WIDTHS`], for an integer below 2^`bits`.
    #[inline]
    pub(crate) fn from_number(bits: u16, number: u128) -> Self {
        Self {
            bits,
            words: [0, 0, (number >> 64) as u64, number as u64],
        }
    }

    /// Appends the bytes of the fingerprint, the lowest bits first.
    #[inline]
    pub fn append_le_bytes(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len() + usize::from(self.bits / 8);
        for word in self.words.iter().rev() {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.truncate(end);
    }

    /// Returns the fingerprint with these bytes, the lowest bits first, or `None` unless there are
    /// 4, 8, 16 or 32 bytes.
    #[inline]
    pub fn from_le_bytes(bytes: &[u8]) -> Option<Self> {
        let bits = u16::try_from(bytes.len() * 8).ok()?;
        let mut padded = [0; 32];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        padded.reverse();
        let fingerprint = Self {
            bits,
            ..Self::from(padded)
        };
        WIDTHS.contains(&bits).then_some(fingerprint)
    }
}

impl From<u32> for Fingerprint {
    fn from(number: u32) -> Self {
        Self::from_number(32, number.into())
    }
}

impl From<u64> for Fingerprint {
    fn from(number: u64) -> Self {
        Self::from_number(64, number.into())
    }
}

impl From<u128> for Fingerprint {
    fn from(number: u128) -> Self {
        Self::from_number(128, number)
    }
}

impl From<[u8; 32]> for Fingerprint {
    /// The first byte has the highest bits.
    fn from(bytes: [u8; 32]) -> Self {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        Self { bits: 256, words }
    }
}

/// Prints all hexadecimal digits, leading zeros included.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = usize::from(self.bits / 4);
        let [fourth, third, second, first] = self.words;
        let all = format!("{fourth:016x}{third:016x}{second:016x}{first:016x}");
        f.write_str(all.get(all.len().saturating_sub(digits)..).unwrap_or(&all))
    }
}

impl FromStr for Fingerprint {
    type Err = SketchError;

    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] unless the text is 8, 16, 32 or 64 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self> {
        let refused = || {
            let shown: String = text.chars().take(80).collect();
            SketchError::invalid("fingerprint", shown, "8, 16, 32 or 64 hexadecimal digits")
        };
        let are_digits = text.bytes().all(|b| b.is_ascii_hexdigit());
        let mut widths = WIDTHS.into_iter().filter(|_| are_digits);
        let width = widths.find(|bits| usize::from(bits / 4) == text.len());
        let bits = width.ok_or_else(refused)?;
        let padded = format!("{text:0>64}");
        let mut words = [0; 4];
        for (word, start) in words.iter_mut().zip((0..64).step_by(16)) {
            let part = padded.get(start..start + 16).ok_or_else(refused)?;
            *word = u64::from_str_radix(part, 16).map_err(|_| refused())?;
        }
        Ok(Self { bits, words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_round_trip_through_text_and_bytes() {
        let bytes: [u8; 32] = std::array::from_fn(|index| index as u8 * 7 + 1);
        for fingerprint in [
            Fingerprint::from(0x0123_4567_u32),
            Fingerprint::from(0x0123_4567_89ab_cdef_u64),
            Fingerprint::from(u128::MAX / 3),
            Fingerprint::from(bytes),
        ] {
            assert_eq!(
                fingerprint.to_string().parse::<Fingerprint>().unwrap(),
                fingerprint
            );
            let mut stored = Vec::new();
            fingerprint.append_le_bytes(&mut stored);
            assert_eq!(stored.len() * 8, usize::from(fingerprint.bits()));
            assert_eq!(Fingerprint::from_le_bytes(&stored), Some(fingerprint));
        }
        assert!(Fingerprint::from(bytes).to_string().starts_with("01080f16"));
        assert_eq!(Fingerprint::from_le_bytes(&[1; 12]), None);
        for text in [
            "",
            "123",
            "0x012345",
            "0123456g",
            "ü123456",
            &"0".repeat(65),
        ] {
            assert!(text.parse::<Fingerprint>().is_err(), "{text}");
        }
    }
}
