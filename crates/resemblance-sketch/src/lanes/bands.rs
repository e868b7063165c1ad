//! MinHash bands: how many there are, how long they are, and how a band becomes a code.

use std::fmt;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::tables::product;
use crate::error::{Result, SketchError};

/// The division of a MinHash signature's values into bands.
///
/// Band `i` holds the `rows` values that begin at value `i * rows`. Values beyond `bands * rows`
/// belong to no band. Two signatures are candidates if they agree in all rows of at least one band.
/// If the sets have Jaccard similarity `s`, a row agrees with probability `s`, so the pair is found
/// with [probability](Banding::probability) `1 - (1 - s^rows)^bands` (Leskovec, Rajaraman and
/// Ullman, *Mining of Massive Datasets*, section 3.4).
///
/// ```
/// use resemblance_sketch::Banding;
/// let banding = Banding::explicit(13, 7, 128)?;
/// assert_eq!((banding.bands(), banding.rows()), (13, 7));
/// assert!(banding.probability(0.8) >= 0.95);
/// assert!(banding.probability(0.4) < 0.03);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[doc(alias("lsh"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u16, u16)", into = "(u16, u16)")]
pub struct Banding {
    bands: u16,
    rows: u16,
}

impl Banding {
    /// Returns the banding that finds at least the share `recall` of the pairs with similarity
    /// `threshold`, with as few false candidates as this number of `values` allows. `agreement` is
    /// the probability that a pair at the threshold agrees in a value.
    ///
    /// It has the largest number of rows for which some number of bands, at most `values / rows`,
    /// reaches the recall; then the smallest such number of bands. `values` is at least 1,
    /// `threshold` in (0, 1], `recall` in (0, 1).
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if a parameter is out of range, or if even `values` bands
    /// of one row do not reach the recall.
    pub(crate) fn by_recall(
        values: u16,
        threshold: f64,
        recall: f64,
        agreement: f64,
    ) -> Result<Self> {
        SketchError::require(values != 0, "values", values, "at least 1")?;
        check_threshold("threshold", threshold)?;
        check_recall(recall)?;
        let enough = recall - ROUNDING;
        let reaches = |bands, rows| Self { bands, rows }.probability(agreement) >= enough;
        for rows in (1..=values).rev() {
            let max_bands = values / rows;
            if reaches(max_bands, rows) {
                return Ok(Self {
                    bands: smallest(max_bands, |bands| reaches(bands, rows)),
                    rows,
                });
            }
        }
        let best = Self::explicit(values, 1, values)?;
        let expected = format!(
            "at most {:.4}, which {values} bands of one row reach at threshold {threshold}; \
             raise the number of values or the threshold, or lower the recall",
            best.probability(agreement)
        );
        Err(SketchError::invalid("recall", recall, expected))
    }

    /// Creates a banding with given numbers of bands and rows, for signatures of `values` values.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if `bands` or `rows` is 0 or `bands * rows` exceeds `values`.
    ///
    /// ```
    /// use resemblance_sketch::Banding;
    /// assert!(Banding::explicit(20, 5, 100).is_ok());
    /// assert!(Banding::explicit(20, 6, 100).is_err());
    /// ```
    #[inline]
    pub fn explicit(bands: u16, rows: u16, values: u16) -> Result<Self> {
        let banding = Self::try_from((bands, rows))?;
        let expected = format_args!("bands x rows of at most the {values} values of a signature");
        let is_valid = banding.values() <= u32::from(values);
        SketchError::require(is_valid, "banding", banding, expected)?;
        Ok(banding)
    }

    /// Returns the banding of about `values` values whose [curve](Self::approximate_threshold) is
    /// steepest near a similarity (Leskovec, Rajaraman and Ullman, section 3.4.2). With `r` rows
    /// there are `b = values / r` bands, rounded down, and the curve is steepest near `(1 / b)^(1 /
    /// r)`. The function chooses the `r` that comes closest, and the greatest one if several are
    /// equally close. Such bands find about 63 % of the pairs at that similarity. Use a
    /// [recall](crate::MinHash::recall) instead to get bands that find a given share.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if `values` is 0 or the similarity is not in (0, 1].
    ///
    /// ```
    /// use resemblance_sketch::Banding;
    /// let banding = Banding::by_curve(64, 0.5)?;
    /// assert_eq!((banding.bands(), banding.rows()), (16, 4));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[inline]
    pub fn by_curve(values: u16, similarity: f64) -> Result<Self> {
        SketchError::require(values != 0, "values", values, "at least 1")?;
        check_threshold("similarity", similarity)?;
        let of_rows = |rows| Self {
            bands: values / rows,
            rows,
        };
        let off = |banding: &Self| (banding.approximate_threshold() - similarity).abs();
        let mut best = of_rows(values);
        for banding in (1..values).rev().map(of_rows) {
            if off(&banding) < off(&best) - ROUNDING {
                best = banding;
            }
        }
        Ok(best)
    }

    /// Returns the two areas beside the S-curve at a threshold: the false positives (under the
    /// curve, below the threshold) and the false negatives (over the curve, above it). Each is at
    /// most 1. Minimising their sum is the usual rule elsewhere, but the bands it chooses for 128
    /// values at threshold 0.8 find only 40 % of the pairs at the threshold.
    ///
    /// ```
    /// use resemblance_sketch::Banding;
    /// let (positives, negatives) = Banding::explicit(1, 1, 1)?.areas(0.8);
    /// assert!((positives - 0.32).abs() < 1e-9 && (negatives - 0.02).abs() < 1e-9);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn areas(self, threshold: f64) -> (f64, f64) {
        /// Number of intervals of Simpson's rule, even.
        const INTERVALS: u32 = 1_000;
        let integral = |from: f64, to: f64, height: &dyn Fn(f64) -> f64| {
            let step = (to - from) / f64::from(INTERVALS);
            let sum = (0..=INTERVALS).fold(0.0, |sum, point| {
                let weight = match point {
                    0 | INTERVALS => 1.0,
                    odd if odd % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                sum + weight * height(from + step * f64::from(point))
            });
            sum * step / 3.0
        };
        let bound = threshold.clamp(0.0, 1.0);
        let positives = integral(0.0, bound, &|s| self.probability(s));
        let negatives = integral(bound, 1.0, &|s| 1.0 - self.probability(s));
        (positives, negatives)
    }

    /// The number of bands, at least 1.
    #[must_use]
    #[inline]
    pub const fn bands(self) -> u16 {
        self.bands
    }

    /// The number of rows of a band, at least 1.
    #[must_use]
    #[inline]
    pub const fn rows(self) -> u16 {
        self.rows
    }

    /// The number of signature values that the bands use, `bands * rows`.
    #[inline]
    pub(crate) fn values(self) -> u32 {
        u32::from(self.bands) * u32::from(self.rows)
    }

    /// Returns the probability, in [0, 1], that a pair of this Jaccard similarity shares a band and
    /// is therefore found. Similarities outside [0, 1] are clamped; NaN returns NaN.
    ///
    /// ```
    /// use resemblance_sketch::Banding;
    /// let banding = Banding::explicit(20, 5, 100)?;
    /// assert!((banding.probability(0.8) - 0.99964).abs() < 1e-5);
    /// assert!((banding.probability(0.3) - 0.0475).abs() < 1e-4);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn probability(self, similarity: f64) -> f64 {
        // Through logarithms, for 1 - s^r loses a small s^r to rounding.
        let band = similarity.clamp(0.0, 1.0).powf(f64::from(self.rows));
        -(f64::from(self.bands) * (-band).ln_1p()).exp_m1()
    }

    /// Returns the probability that a pair shares no band if `agreeing` of its `values` values
    /// agree.
    ///
    /// The agreeing values are equally probable at all places. Of the C(k, m) choices, those miss
    /// the pair that complete no band: the coefficient of xᵐ in ((1 + x)ʳ − xʳ)ᵇ (1 + x)ᵏ⁻ᵇʳ. The
    /// probability falls as more values agree.
    ///
    /// ```
    /// use resemblance_sketch::Banding;
    /// let banding = Banding::explicit(2, 1, 4)?;
    /// assert_eq!(banding.missed_if_agreeing(4, 3), 0.0);
    /// assert!((banding.missed_if_agreeing(4, 2) - 1.0 / 6.0).abs() < 1e-12);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn missed_if_agreeing(self, values: u16, agreeing: usize) -> f64 {
        // Any probability of agreement cancels out. With this one, neither number vanishes.
        let agreement = agreeing as f64 / f64::from(values);
        let missed = self.terms_without_band(values, agreement);
        let all = binomial_terms(values.into(), agreement);
        // With more agreeing values than `missed` has terms, some band is complete.
        let shares = missed.get(agreeing).zip(all.get(agreeing));
        shares.map_or(0.0, |(missed, all)| f64::min(missed / all, 1.0))
    }

    /// Returns, for 0, 1, 2, … agreeing values, the probability that this number of `values` values
    /// agree and no band is complete, if each value agrees independently with the probability
    /// `agreement`.
    #[must_use]
    pub fn terms_without_band(self, values: u16, agreement: f64) -> Vec<f64> {
        let mut incomplete = binomial_terms(self.rows.into(), agreement);
        incomplete.pop();
        let others = u32::from(values).saturating_sub(self.values());
        let others = binomial_terms(others, agreement);
        (0..self.bands).fold(others, |terms, _| product(&terms, &incomplete))
    }

    /// Returns the similarity near which the S-curve is steepest, `(1/bands)^(1/rows)` (Leskovec,
    /// Rajaraman and Ullman, section 3.4.2). A pair of that similarity is found with probability
    /// 1 - (1 - 1/bands)^bands, which is at least 0.63. Pairs are found reliably only above the
    /// [threshold](crate::MinHash::threshold) of a schema.
    ///
    /// ```
    /// use resemblance_sketch::Banding;
    /// let banding = Banding::explicit(16, 4, 64)?;
    /// assert!((banding.approximate_threshold() - 0.5).abs() < 1e-12);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn approximate_threshold(self) -> f64 {
        f64::from(self.bands)
            .recip()
            .powf(f64::from(self.rows).recip())
    }

    /// Returns the expected number of candidates of a query among this many documents, if each
    /// document has the similarity `background` to it: `documents * probability(background)`. For a
    /// real corpus, replace the second factor by the mean of [`probability`](Self::probability)
    /// over its pairs. The result does not count unequal bands whose codes collide: with 40-bit
    /// codes they add `documents * bands / 2^40`.
    ///
    /// ```
    /// use resemblance_sketch::Banding;
    /// let banding = Banding::explicit(20, 5, 100)?;
    /// assert!((banding.candidates(1_000, 0.3) - 47.5).abs() < 0.1);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn candidates(self, documents: u64, background: f64) -> f64 {
        documents as f64 * self.probability(background)
    }
}

#[inline]
pub(crate) fn check_threshold(parameter: &'static str, similarity: f64) -> Result<()> {
    let is_within = similarity > 0.0 && similarity <= 1.0;
    let expected = "a similarity above 0, at most 1";
    SketchError::require(is_within, parameter, similarity, expected)
}

#[inline]
pub(crate) fn check_recall(recall: f64) -> Result<()> {
    let is_within = recall > 0.0 && recall < 1.0;
    let expected = "a probability above 0 and below 1";
    SketchError::require(is_within, "recall", recall, expected)
}

/// Returns the probabilities that 0, 1, 2, … of `count` values agree, if each agrees independently
/// with this probability.
pub(crate) fn binomial_terms(count: u32, probability: f64) -> Vec<f64> {
    // Through logarithms: the numbers of choices and the powers are out of range.
    let ln_power = |base: f64, exponent: u32| match exponent {
        0 => 0.0,
        exponent => f64::from(exponent) * base.ln(),
    };
    let mut ln_choices = 0.0;
    let mut terms = Vec::with_capacity(count as usize + 1);
    for agreeing in 0..=count {
        let left = count - agreeing;
        let ln_powers = ln_power(probability, agreeing) + ln_power(1.0 - probability, left);
        terms.push((ln_choices + ln_powers).exp());
        ln_choices += (f64::from(left) / f64::from(agreeing + 1)).ln();
    }
    terms
}

/// The amount by which a probability may fall short of the recall. Without it, rounding (which
/// differs between platforms) would decide where both are equal: one row at threshold 0.1 reaches
/// exactly recall 0.1.
const ROUNDING: f64 = 1e-12;

/// The smallest number in `1..=max` for which `holds` is true. It must be true for `max`, and for all
/// numbers above one for which it is true.
fn smallest(max: u16, holds: impl Fn(u16) -> bool) -> u16 {
    let (mut low, mut high) = (1, max);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

impl TryFrom<(u16, u16)> for Banding {
    type Error = SketchError;

    /// Creates a banding from (bands, rows).
    fn try_from((bands, rows): (u16, u16)) -> Result<Self> {
        SketchError::require(bands != 0, "bands", bands, "at least 1")?;
        SketchError::require(rows != 0, "rows", rows, "at least 1")?;
        Ok(Self { bands, rows })
    }
}

impl From<Banding> for (u16, u16) {
    fn from(banding: Banding) -> Self {
        (banding.bands, banding.rows)
    }
}

/// Prints bands, then rows: "13 x 7".
impl fmt::Display for Banding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.bands, self.rows)
    }
}

/// The least number of bits in a band's code.
pub(super) const MIN_CODE_BITS: u8 = 32;
/// The greatest number of bits in a band's code.
pub(super) const MAX_CODE_BITS: u8 = 64;

/// The greatest number of rows that a stack buffer holds for hashing.
const BUFFERED_ROWS: usize = 64;

/// The greatest number of rows that the short buffer holds. Clearing the long buffer would take as
/// long as hashing so few rows.
const FEW_ROWS: usize = 8;

/// The number of rows that determine the first bits of a band's code, if the band has more rows.
pub(super) const LEADING_ROWS: u16 = 2;

/// The minimum number of bits of a value for rows to lead a code. Two narrower rows are equal in
/// too many documents to be a useful key, and would fill too few of the first bits of a code.
pub(super) const MIN_LEADING_BITS: u8 = 8;

/// Returns the number of bits of a code that the leading rows determine.
#[inline]
pub(super) const fn leading_bits(code_bits: u8) -> u8 {
    code_bits * 3 / 5
}

/// Returns the code of a band, with `code_bits` bits, 32 to 64. Frozen by the format.
///
/// Rows are hashed as little-endian 32-bit words with XXH3-64, seed 0, and the code takes the top
/// bits of the hash. If rows do not lead, or there are only one or two, the code is the hash of all
/// rows. If they lead, the first three fifths of the code hold the hash of the first two rows, and
/// the rest holds the hash of the others. Documents that share the first two rows are then
/// neighbours, so that a query can also use the bands as bands of two rows.
///
/// The band's number is not hashed. Every band has its own lane, so codes of different bands are
/// never compared.
#[inline]
pub(super) fn band_code(rows: &[u32], code_bits: u8, rows_lead: bool) -> u64 {
    debug_assert!((MIN_CODE_BITS..=MAX_CODE_BITS).contains(&code_bits));
    let top = |rows, bits: u8| hash_rows(rows) >> (MAX_CODE_BITS - bits);
    match rows.split_at_checked(LEADING_ROWS.into()) {
        Some((leading, others)) if rows_lead && !others.is_empty() => {
            let other_bits = code_bits - leading_bits(code_bits);
            top(leading, leading_bits(code_bits)) << other_bits | top(others, other_bits)
        }
        _ => top(rows, code_bits),
    }
}

fn hash_rows(rows: &[u32]) -> u64 {
    if rows.len() <= FEW_ROWS {
        return xxh3_64(little_endian(rows, &mut [0; FEW_ROWS * 4]));
    }
    let mut buffer = [0_u8; BUFFERED_ROWS * 4];
    if rows.len() <= BUFFERED_ROWS {
        return xxh3_64(little_endian(rows, &mut buffer));
    }
    let mut hasher = Xxh3::new();
    for rows in rows.chunks(BUFFERED_ROWS) {
        hasher.update(little_endian(rows, &mut buffer));
    }
    hasher.digest()
}

/// Writes the bytes of the first rows that fit into the buffer, and returns those bytes.
fn little_endian<'a>(rows: &[u32], buffer: &'a mut [u8]) -> &'a [u8] {
    let (words, _) = buffer.as_chunks_mut::<4>();
    for (word, row) in words.iter_mut().zip(rows) {
        *word = row.to_le_bytes();
    }
    let (bytes, _) = buffer.split_at(4 * rows.len());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn band_probability_is_precise_for_small_values() {
        let banding = Banding::explicit(2, 32, 64).unwrap();
        // 1 - (1 - x)^2 = 2x - x^2 with x = 10^-32, which vanishes in 1 - x.
        let found = banding.probability(0.1);
        assert!((found / 2e-32 - 1.0).abs() < 1e-12, "{found}");
        assert_eq!(banding.probability(0.0), 0.0);
        assert_eq!(banding.probability(1.0), 1.0);
        assert_eq!(banding.probability(-3.0), 0.0);
        assert_eq!(banding.probability(3.0), 1.0);
        assert!(banding.probability(f64::NAN).is_nan());
    }

    #[test]
    fn by_recall_agrees_with_brute_force() {
        for values in [1, 2, 3, 7, 16, 32, 64, 100, 128, 200, 256] {
            for threshold in [
                0.05, 0.1, 0.3, 0.5, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0,
            ] {
                for recall in [0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999] {
                    let mut best: Option<(u16, u16)> = None;
                    for rows in 1..=values {
                        for bands in 1..=values / rows {
                            // The plain formula, not the code under test.
                            let missed =
                                (1.0 - f64::powi(threshold, rows.into())).powi(bands.into());
                            let better =
                                best.is_none_or(|(b, r)| rows > r || (rows == r && bands < b));
                            if 1.0 - missed >= recall - 1e-12 && better {
                                best = Some((bands, rows));
                            }
                        }
                    }
                    let found = Banding::by_recall(values, threshold, recall, threshold);
                    assert_eq!(
                        found.ok().map(<(u16, u16)>::from),
                        best,
                        "{values} values, threshold {threshold}, recall {recall}"
                    );
                }
            }
        }
    }

    #[test]
    fn by_recall_returns_known_bandings() {
        let usual = Banding::by_recall(128, 0.8, 0.95, 0.8).unwrap();
        assert_eq!((usual.bands(), usual.rows()), (13, 7));
        assert!((usual.probability(0.8) - 0.953).abs() < 0.0005);
        assert_eq!(usual.to_string(), "13 x 7");
        // The least-area rule chooses 9 x 13, which finds 40 % at the threshold.
        let least_area = Banding::explicit(9, 13, 128).unwrap();
        assert!((least_area.probability(0.8) - 0.40).abs() < 0.005);
        let equal = Banding::by_recall(128, 1.0, 0.999_999, 1.0).unwrap();
        assert_eq!((equal.bands(), equal.rows()), (1, 128));
        let large = Banding::by_recall(u16::MAX, 0.5, 0.95, 0.5).unwrap();
        assert!(large.probability(0.5) >= 0.95);
    }

    /// datasketch and most other libraries weigh the two areas equally: 9 bands of 13 rows for
    /// threshold 0.8 with 128 values.
    #[test]
    fn least_area_banding_agrees_with_datasketch() {
        for (values, threshold, expected) in [(128, 0.8, (9, 13)), (128, 0.5, (25, 5))] {
            let bandings = (1..=values)
                .flat_map(|rows| (1..=values / rows).map(move |bands| Banding { bands, rows }));
            let area = |banding: &Banding| {
                let (positives, negatives) = banding.areas(threshold);
                positives + negatives
            };
            let least = bandings.min_by(|a, b| area(a).total_cmp(&area(b))).unwrap();
            assert_eq!((least.bands(), least.rows()), expected);
        }
        // The integral of 1 - (1 - s^r)^b by its binomial sum.
        let (positives, _) = Banding { bands: 2, rows: 3 }.areas(0.7);
        let exact = 2.0 * 0.7_f64.powi(4) / 4.0 - 0.7_f64.powi(7) / 7.0;
        assert!((positives - exact).abs() < 1e-9);
    }

    #[test]
    fn banding_curve_is_steepest_at_the_threshold() {
        // Mining of Massive Datasets: 20 bands of 5 rows, 0.55.
        let usual = Banding::by_curve(100, 0.549_280_271_653).unwrap();
        assert_eq!((usual.bands(), usual.rows()), (20, 5));
        for values in [1, 7, 64, 128, 200] {
            for similarity in [0.05, 0.3, 0.5, 0.8, 1.0] {
                let found = Banding::by_curve(values, similarity).unwrap();
                let off = |b: f64, r: f64| ((1.0 / b).powf(1.0 / r) - similarity).abs();
                let least = (1..=values).map(|r| off(f64::from(values / r), r.into()));
                let least = least.fold(f64::MAX, f64::min);
                let own = off(found.bands().into(), found.rows().into());
                assert!(own <= least + 1e-11, "{values} {similarity}");
            }
        }
        assert_eq!(parameter(Banding::by_curve(0, 0.5)), "values");
        assert_eq!(parameter(Banding::by_curve(9, f64::NAN)), "similarity");
    }

    fn parameter(result: Result<Banding>) -> &'static str {
        match result {
            Err(SketchError::InvalidParameter { parameter, .. }) => parameter,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn banding_parameters_out_of_range_are_named() {
        for threshold in [0.0, -0.1, 1.000_1, f64::NAN, f64::INFINITY] {
            assert_eq!(
                parameter(Banding::by_recall(128, threshold, 0.9, threshold)),
                "threshold"
            );
        }
        for recall in [0.0, 1.0, -1.0, 2.0, f64::NAN] {
            assert_eq!(
                parameter(Banding::by_recall(128, 0.8, recall, 0.8)),
                "recall"
            );
        }
        assert_eq!(parameter(Banding::by_recall(0, 0.8, 0.9, 0.8)), "values");
        assert_eq!(parameter(Banding::explicit(0, 1, 10)), "bands");
        assert_eq!(parameter(Banding::explicit(1, 0, 10)), "rows");
        assert_eq!(parameter(Banding::explicit(3, 4, 11)), "banding");
        assert!(Banding::explicit(3, 4, 12).is_ok());
        assert_eq!(
            parameter(Banding::explicit(u16::MAX, u16::MAX, u16::MAX)),
            "banding"
        );
        let unreachable = Banding::by_recall(4, 0.1, 0.95, 0.1)
            .unwrap_err()
            .to_string();
        assert!(unreachable.contains("raise the number of values"));
        assert!(unreachable.contains("0.3439"), "{unreachable}"); // 1 - 0.9^4
    }

    #[test]
    fn stored_bandings_are_checked() {
        let banding = Banding::explicit(13, 7, 128).unwrap();
        let stored = serde_json::to_string(&banding).unwrap();
        assert_eq!(stored, "[13,7]");
        assert_eq!(serde_json::from_str::<Banding>(&stored).unwrap(), banding);
        assert!(serde_json::from_str::<Banding>("[0,7]").is_err());
        assert!(serde_json::from_str::<Banding>("[13,0]").is_err());
    }

    #[test]
    fn missed_share_equals_that_of_all_placements() {
        for (bands, rows, values) in [(2, 2, 6), (3, 1, 3), (1, 5, 9), (4, 3, 12), (2, 4, 9)] {
            let banding = Banding::explicit(bands, rows, values).unwrap();
            let band = |i: u16| ((1_u32 << rows) - 1) << (i * rows);
            let is_missed = |equal: &u32| (0..bands).all(|i| equal & band(i) != band(i));
            for agreeing in 0..=usize::from(values) {
                let all =
                    (0..1_u32 << values).filter(|equal| equal.count_ones() as usize == agreeing);
                let missed = all.clone().filter(is_missed).count();
                let share = missed as f64 / all.count() as f64;
                let found = banding.missed_if_agreeing(values, agreeing);
                assert!(
                    (share - found).abs() < 1e-12,
                    "{banding} {agreeing}: {share} {found}"
                );
            }
        }
    }

    #[test]
    fn terms_without_band_add_up_to_the_curve() {
        for (bands, rows, values) in [(13, 7, 128), (34, 11, 512), (1, 128, 128), (60, 16, 1_000)] {
            let banding = Banding::explicit(bands, rows, values).unwrap();
            for agreement in [0.0, 0.05, 0.5, 0.8, 0.99, 1.0] {
                let missed: f64 = banding.terms_without_band(values, agreement).iter().sum();
                let expected = 1.0 - banding.probability(agreement);
                assert!(
                    (missed - expected).abs() < 1e-9,
                    "{banding} {agreement}: {missed}"
                );
                let all: f64 = binomial_terms(values.into(), agreement).iter().sum();
                assert!((all - 1.0).abs() < 1e-9, "{values} {agreement}: {all}");
            }
            let shares = (0..=usize::from(values)).step_by(usize::from(values) / 64);
            let shares: Vec<f64> = shares
                .map(|m| banding.missed_if_agreeing(values, m))
                .collect();
            assert!(
                shares.is_sorted_by(|a, b| *a >= b - 1e-9),
                "{banding}: {shares:?}"
            );
        }
    }

    #[test]
    fn band_codes_are_hashes_of_the_first_rows_and_of_the_others() {
        let rows: Vec<u32> = (0..500_u32).map(|i| i * i + 7).collect();
        let hash = |rows: &[u32]| {
            let bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
            xxh3_64(&bytes)
        };
        for n in [0, 1, 2] {
            assert_eq!(
                band_code(&rows[..n], 64, true),
                hash(&rows[..n]),
                "{n} rows"
            );
        }
        for n in [0, 2, 3, 64, 65, 500] {
            assert_eq!(
                band_code(&rows[..n], 64, false),
                hash(&rows[..n]),
                "{n} rows"
            );
        }
        for n in [3, 64, 65, 66, 67, 128, 500] {
            for bits in [32, 40, 64] {
                let first_bits = 3 * bits / 5;
                let code = band_code(&rows[..n], bits, true);
                let others = hash(&rows[2..n]) >> (64 - (bits - first_bits));
                assert_eq!(
                    code >> (bits - first_bits),
                    hash(&rows[..2]) >> (64 - first_bits)
                );
                assert_eq!(code & ((1 << (bits - first_bits)) - 1), others, "{n} rows");
            }
        }
    }

    #[test]
    fn band_codes_are_uniform() {
        // 2^16 codes of consecutive, small rows in 256 cells by their top 8 bits: chi-square with
        // 255 degrees of freedom has mean 255 and standard deviation 22.6; the bound is mean + 6
        // deviations, exceeded by chance with probability below 10^-6. The same holds for the
        // lowest 8 bits.
        for bits in [32, 40, 64] {
            let (mut top, mut bottom) = ([0_u32; 256], [0_u32; 256]);
            for i in 0..65_536_u32 {
                let code = band_code(&[i, i + 1, i + 2, 0, 0], bits, true);
                assert!(bits == 64 || code < 1 << bits);
                top[(code >> (bits - 8)) as usize] += 1;
                bottom[(code & 255) as usize] += 1;
            }
            for cells in [top, bottom] {
                let chi_square: f64 = cells
                    .iter()
                    .map(|&n| (f64::from(n) - 256.0).powi(2) / 256.0)
                    .sum();
                assert!(chi_square < 255.0 + 6.0 * 22.6, "{bits} bits: {chi_square}");
            }
        }
    }
}
