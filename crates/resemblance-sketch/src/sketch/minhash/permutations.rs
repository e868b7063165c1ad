//! The families of MinHash functions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The family of MinHash's k functions. It is part of the recipe, so signatures of different
/// families cannot be compared.
///
/// A function maps a feature's 64-bit hash, mixed with the schema's seed, to 32 bits, and
/// represents a random order of the features. All families are unbiased, except for 32-bit
/// collisions (an over-estimate of at most about (1 − J) n / 2³³ for n features). All have the
/// variance of independent functions, J (1 − J) / k. The default is by far the fastest. Use another
/// family to match a system that uses it, or for comparison.
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
    /// Sixteen multipliers a and k / 16 pairs (c, b) make k functions. A feature therefore costs
    /// few multiplications, and one 32-bit addition and comparison for each function. For a random
    /// hash, the values of any two functions are independent except for their lowest bits, so the
    /// variance is exactly J (1 − J) / k. Any 16 consecutive functions are independent except for
    /// linear relations with large coefficients, so bands of up to 16 rows behave as theory
    /// predicts. Four functions that share two multipliers and two pairs depend on each other. This
    /// does not change the variance; it is visible only in higher moments, for sets of about ten
    /// features.
    #[default]
    PairMultiply,
    /// The high 32 bits of (a·u + b) mod 2⁶⁴, a odd (Dietzfelbinger, Hagerup, Katajainen and
    /// Penttonen 1997): the simple choice among the fast families, in which functions share
    /// nothing. It is several times slower than the default.
    MultiplyShift,
    /// The high 32 of the 61 bits of (a·u + b) mod p, p = 2⁶¹ − 1 (Carter and Wegman 1979; for
    /// min-wise use Broder, Charikar, Frieze and Mitzenmacher 2000): the family of the textbooks,
    /// and the slowest.
    Modular,
    /// Simple tabulation: the exclusive or of eight random words, one for each byte of the hash
    /// (Pătraşcu and Thorup 2012, who prove it nearly min-wise). Its guarantees need the weakest
    /// assumptions. Every function has separate tables, 8 KiB for each value (1 MiB for 128). They
    /// are built when the first features are sketched, and clones of a sketcher share them.
    Tabulation,
    /// Robert Jenkins' mix of three 32-bit words (Dr. Dobb's Journal, September 1997): one word for
    /// the function, two for the hash. It is used elsewhere, but nothing is proven about it.
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
