//! The families to choose from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The family that MinHash's k functions are taken from: part of what a signature is, so that
/// signatures of different families are not compared.
///
/// A function maps a feature's 64-bit hash, mixed with the schema's seed, to 32 bits, and
/// represents a random order of the features. All families are unbiased, except for collisions of
/// 32 bits (an over-estimate of at most about (1 − J) n / 2³³ for n features), and have the
/// variance J (1 − J) / k that independent functions have. The default is by far the quickest; the
/// others exist to agree with a system that uses them, or to compare.
///
/// ```
/// use resemblance_sketch::Permutations;
/// assert_eq!(Permutations::default(), Permutations::PairMultiply);
/// assert_eq!(Permutations::MultiplyShift.to_string(), "multiply-shift");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Permutations {
    /// (a·x + c·y + b) mod 2³² of the two halves x and y of the hash: the strongly universal
    /// hashing of two words (Dietzfelbinger 1996, Thorup 2015) without its shift.
    ///
    /// Sixteen multipliers a and k / 16 pairs (c, b) make k functions, so that a feature costs few
    /// multiplications and then an addition and a comparison of 32 bits a function. For a random
    /// hash the values of any two functions are independent, except for their lowest bits, so the
    /// variance is exactly J (1 − J) / k; so are those of any 16 consecutive functions up to linear
    /// relations with large coefficients, so bands of up to 16 rows behave as in theory. Four
    /// functions that share two multipliers and two pairs depend on each other; this changes no
    /// variance, and shows only in higher moments for sets of some ten features.
    #[default]
    PairMultiply,
    /// The high 32 bits of (a·u + b) mod 2⁶⁴, a odd (Dietzfelbinger, Hagerup, Katajainen and
    /// Penttonen 1997): the plain choice among the quick families, with nothing shared between
    /// functions. Several times slower than the default.
    MultiplyShift,
    /// The high 32 of the 61 bits of (a·u + b) mod p, p = 2⁶¹ − 1 (Carter and Wegman 1979; for
    /// min-wise use Broder, Charikar, Frieze and Mitzenmacher 2000): the textbook's family.
    /// The slowest.
    Modular,
    /// Simple tabulation: the exclusive or of eight random words, one for each byte of the hash
    /// (Pătraşcu and Thorup 2012, who prove it nearly min-wise). Every function has tables of its
    /// own: 8 KiB a value, 1 MiB for 128, made when the first features are sketched and shared by
    /// a sketcher's clones. The one whose guarantees assume least.
    Tabulation,
    /// Robert Jenkins' mix of three 32-bit words (Dr. Dobb's Journal, September 1997), one for the
    /// function and two for the hash. Nothing is proven about it; it is in use elsewhere.
    Jenkins,
}

impl fmt::Display for Permutations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PairMultiply => "pair-multiply",
            Self::MultiplyShift => "multiply-shift",
            Self::Modular => "modular",
            Self::Tabulation => "tabulation",
            Self::Jenkins => "jenkins",
        })
    }
}
