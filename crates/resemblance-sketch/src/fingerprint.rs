//! Fingerprints of up to 256 bits.

use std::fmt;
use std::str::FromStr;

use crate::error::{Result, SketchError};

/// The widths of fingerprints, in bits.
const WIDTHS: [u16; 4] = [32, 64, 128, 256];

/// Returns an error unless fingerprints of this many bits exist.
pub(crate) fn check_width(bits: u16) -> Result<()> {
    let expected = format_args!("32, 64, 128 or 256{}", way_out(bits.into(), MAX_BITS));
    SketchError::require(WIDTHS.contains(&bits), "bits", bits, expected)
}

const MAX_BITS: usize = 256;

/// Returns what to do with a hash of `bits` bits where it has to have `expected_bits`, or up to that.
fn way_out(bits: usize, expected_bits: usize) -> &'static str {
    if bits > MAX_BITS {
        "; compute a larger hash again with at most 256 bits, such as 16 × 16"
    } else if bits < expected_bits {
        "; pad a shorter hash with leading zeros, which changes no distance"
    } else {
        ""
    }
}

/// A fingerprint of 32, 64, 128 or 256 bits, such as a SimHash or the perceptual hash of an image.
/// The fewer bits differ between two fingerprints, the more similar they are.
///
/// Create one from an integer, from 32 bytes (the first byte holds the highest bits), or by parsing
/// hexadecimal digits, leading zeros included. It prints as hexadecimal digits.
///
/// ```
/// use resemblance_sketch::{Fingerprint, Signature};
/// let pdq: Fingerprint = "f8f8f0cee0f4a84f06370a22038f63f0b36e2ed596621e1d33e6b39c4e9c9b22".parse()?;
/// assert_eq!(pdq.bits(), 256);
/// assert_eq!(Fingerprint::from(0xbeef_u32).to_string(), "0000beef");
/// assert_eq!(Fingerprint::from(7_u64).hamming(&5_u64.into()), Some(1));
/// assert_eq!(Fingerprint::from(-1_i64), Fingerprint::from(u64::MAX));
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

    /// Parses the hexadecimal digits of a fingerprint of `bits` bits, one for every four bits.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] for another number of digits, and for other text. Programs
    /// that print a hash as a number leave out its leading zeros, which have to be added.
    ///
    /// ```
    /// use resemblance_sketch::Fingerprint;
    /// assert_eq!(Fingerprint::from_hex("00000000000000ff", 64)?, 255_u64.into());
    /// let refused = Fingerprint::from_hex("ff", 64).unwrap_err().to_string();
    /// assert!(refused.contains("pad a shorter hash with leading zeros"));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn from_hex(text: &str, bits: u16) -> Result<Self> {
        check_width(bits)?;
        let digits = usize::from(bits / 4);
        let refused = || wrong_digits(text, &digits.to_string(), bits.into());
        if text.len() != digits || !is_hexadecimal(text) {
            return Err(refused());
        }
        let padded = format!("{text:0>64}");
        let mut words = [0; 4];
        for (word, start) in words.iter_mut().zip((0..64).step_by(16)) {
            let part = padded.get(start..start + 16).ok_or_else(refused)?;
            *word = u64::from_str_radix(part, 16).map_err(|_| refused())?;
        }
        Ok(Self { bits, words })
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

impl From<i64> for Fingerprint {
    /// Takes the bits of a signed number: SQL and Arrow often keep hashes as such.
    fn from(number: i64) -> Self {
        Self::from(number.cast_unsigned())
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
        let has_width = |bits: &u16| usize::from(bits / 4) == text.len();
        match WIDTHS.into_iter().find(has_width) {
            Some(bits) if is_hexadecimal(text) => Self::from_hex(text, bits),
            _ => Err(wrong_digits(text, "8, 16, 32 or 64", MAX_BITS)),
        }
    }
}

fn is_hexadecimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns the error for a text that should be this number of digits.
fn wrong_digits(text: &str, digits: &str, expected_bits: usize) -> SketchError {
    let shown: String = text.chars().take(80).collect();
    let (found, advice) = match is_hexadecimal(text) {
        true => {
            let found = format!("{shown:?} ({} digits)", text.len());
            (found, way_out(text.len() * 4, expected_bits))
        }
        false => (format!("{shown:?}"), ""),
    };
    let expected = format!("{digits} hexadecimal digits{advice}");
    SketchError::invalid("fingerprint", found, expected)
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
    #[test]
    fn hashes_of_other_lengths_are_refused_with_a_way_out() {
        let error = |refused: Result<Fingerprint>| refused.unwrap_err().to_string();
        // A hash that was printed as a number lacks its leading zeros.
        let short = format!("{:x}", 0x0f0e_4c2d_1a5b_6978_u64);
        let (pad, shrink) = ("pad a shorter hash with leading zeros", "at most 256 bits");
        for refused in [short.parse(), Fingerprint::from_hex(&short, 64)] {
            let error = error(refused);
            assert!(error.contains("\"f0e4c2d1a5b6978\" (15 digits)"), "{error}");
            assert!(error.contains(pad), "{error}");
        }
        assert!(Fingerprint::from_hex(&format!("0{short}"), 64).is_ok());
        for bits in [512_u16, 576] {
            let digits = "f".repeat(usize::from(bits / 4));
            for refused in [digits.parse(), Fingerprint::from_hex(&digits, 256)] {
                let error = error(refused);
                assert!(error.contains(&format!("({} digits)", bits / 4)), "{error}");
                assert!(error.contains(shrink), "{error}");
            }
            let error = check_width(bits).unwrap_err().to_string();
            assert!(error.contains(shrink), "{error}");
        }
        for (text, bits) in [("0123456g", 32), ("f".repeat(32).as_str(), 64)] {
            let error = error(Fingerprint::from_hex(text, bits));
            assert!(!error.contains(pad) && !error.contains(shrink), "{error}");
        }
    }
}
