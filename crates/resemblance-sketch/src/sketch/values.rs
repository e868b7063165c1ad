//! MinHash values: how they are stored, and how the values of two documents are compared.

use std::borrow::Cow;

use super::b_bit::cut;
use super::bottom_k::{bottom_k_jaccard, shared};
use super::{b_bit, bottom_k};
use crate::error::{Result, SketchError};
use crate::lanes::{AgreementCurve, Banding, binomial_terms};

/// The agreement of equal bottom-k signatures. Their estimates are multiples of 1 / 2^30.
const MAX_BOTTOM_K_AGREEMENT: usize = 1 << 30;

/// Bytes of a hash of bottom-k.
const HASH_BYTES: usize = 8;

/// The MinHash values of a signature.
#[derive(Clone, Debug)]
pub(crate) enum MinHashValues {
    /// Minima of 32 bits. The smaller of two minima is the value of the union.
    Minima(Vec<u32>),
    /// Samples of 32 bits. They are equal with the estimated probability, but are not minima.
    Samples(Vec<u32>),
    /// Values of 1 to 16 bits.
    Cut {
        bits: u8,
        /// True if values were mixed before they were cut.
        was_mixed: bool,
        curve: AgreementCurve,
        values: Vec<u32>,
    },
    /// The smallest hashes of a set, ascending and distinct, at most `max_count`.
    Smallest { max_count: u16, hashes: Vec<u64> },
}

/// The layout of a schema's MinHash values in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueLayout {
    /// `count` values of 1, 2, 4, 8, 16 or 32 bits, packed from the least significant bit of the
    /// first byte.
    Packed {
        /// The number of values.
        count: u16,
        /// The bits of each.
        bits: u8,
        /// True if values are mixed before they are cut to these bits. Values of other programs are
        /// not, because they may already have this width.
        is_mixed: bool,
        /// How probable it is that two documents agree in a value.
        curve: AgreementCurve,
    },
    /// At most `max_count` hashes of 64 bits, ascending, little-endian.
    Smallest {
        /// The maximum number of hashes.
        max_count: u16,
    },
}

impl ValueLayout {
    /// The number of values, or the maximum number of hashes.
    #[inline]
    pub fn count(self) -> u16 {
        match self {
            Self::Packed { count, .. } => count,
            Self::Smallest { max_count } => max_count,
        }
    }

    /// The number of bits of a value.
    #[inline]
    pub fn bits(self) -> u8 {
        match self {
            Self::Packed { bits, .. } => bits,
            Self::Smallest { .. } => 64,
        }
    }

    /// Returns the probability that two documents of this similarity agree in a value.
    #[inline]
    pub fn agreement_probability(self, similarity: f64) -> f64 {
        let agreement = self.curve().agreement(similarity);
        agreement + (1.0 - agreement) * self.chance()
    }

    /// Returns an agreement that a pair of this true similarity, or a greater one, reaches, except
    /// with a probability of at most `missed`, if all values agree independently. 0 for bottom-k.
    #[must_use]
    pub fn plausible_agreement(self, similarity: f64, missed: f64) -> usize {
        let Self::Packed { count, .. } = self else {
            return 0;
        };
        let terms = binomial_terms(count.into(), self.agreement_probability(similarity));
        let below = terms.iter().scan(0.0, |sum, term| {
            *sum += term;
            Some(*sum)
        });
        below.take_while(|sum| *sum <= missed).count()
    }

    /// Returns the agreement curve of the values, before they are cut.
    #[must_use]
    pub fn curve(self) -> AgreementCurve {
        match self {
            Self::Packed { curve, .. } => curve,
            Self::Smallest { .. } => AgreementCurve::Identity,
        }
    }

    /// Returns the probability that unequal values become equal when they are cut. For values of 32
    /// bits, rows of bottom-k and values of vectors it is taken to be 0.
    #[inline]
    fn chance(self) -> f64 {
        match self {
            Self::Packed {
                bits,
                curve: AgreementCurve::Identity,
                ..
            } if bits < 32 => b_bit::chance(bits),
            _ => 0.0,
        }
    }

    /// The number of bytes of a signature with all its values.
    #[inline]
    pub fn size_bytes(self) -> usize {
        self.size_bytes_for(self.count())
    }

    /// The number of bytes of a signature with `count` values.
    #[inline]
    pub fn size_bytes_for(self, count: u16) -> usize {
        (usize::from(count) * usize::from(self.bits())).div_ceil(8)
    }

    /// Returns true if a signature can have `count` values.
    #[inline]
    pub fn allows(self, count: u16) -> bool {
        match self {
            Self::Packed { count: all, .. } => count == all,
            Self::Smallest { max_count } => count <= max_count,
        }
    }

    /// Returns the agreement of the stored values of two documents that both have features. The
    /// agreement is a whole number that grows with the estimate. For packed values it is the number
    /// of equal values.
    #[inline]
    pub fn agreement(self, a: &[u8], b: &[u8]) -> usize {
        match self {
            Self::Packed { bits: 32, .. } => {
                equal_words(a.as_chunks::<4>().0, b.as_chunks::<4>().0)
            }
            Self::Packed { bits: 16, .. } => {
                equal_words(a.as_chunks::<2>().0, b.as_chunks::<2>().0)
            }
            Self::Packed { count, bits, .. } => b_bit::count_equal(a, b, count.into(), bits),
            Self::Smallest { max_count } => {
                let hashes = |bytes| hashes(bytes).collect::<Vec<u64>>();
                bottom_k_agreement(shared(&hashes(a), &hashes(b), max_count.into()))
            }
        }
    }

    /// The agreement of equal signatures.
    #[inline]
    pub fn max_agreement(self) -> usize {
        match self {
            Self::Packed { count, .. } => count.into(),
            Self::Smallest { .. } => MAX_BOTTOM_K_AGREEMENT,
        }
    }

    /// Returns the similarity that an agreement estimates, 0 to 1.
    #[inline]
    pub fn similarity(self, agreement: usize) -> f64 {
        self.unclamped(agreement).clamp(0.0, 1.0)
    }

    /// Returns the unbiased estimate for an agreement. With cut values it may be negative.
    fn unclamped(self, agreement: usize) -> f64 {
        match self {
            Self::Packed {
                count, bits, curve, ..
            } => unclamped(agreement, count.into(), bits, curve),
            Self::Smallest { .. } => agreement as f64 / MAX_BOTTOM_K_AGREEMENT as f64,
        }
    }

    /// Returns the variance of the unbiased estimate for independent values. Values of 32 bits are
    /// taken never to be equal by chance.
    #[inline]
    pub(crate) fn variance(self, similarity: f64) -> f64 {
        match (self.curve(), self.bits()) {
            (AgreementCurve::Identity, bits @ ..32) => {
                b_bit::variance(similarity, self.count().into(), bits)
            }
            (curve @ (AgreementCurve::Angle | AgreementCurve::Interval(_)), _) => {
                curve.variance(similarity, self.count())
            }
            _ => similarity * (1.0 - similarity) / f64::from(self.count()),
        }
    }

    /// Returns a bound on the probability that a pair shares no band although its estimate is at
    /// least `estimate`. Returns `None` for bottom-k, whose rows are not the values that estimate.
    #[must_use]
    pub fn missed_estimate(self, banding: Banding, estimate: f64) -> Option<f64> {
        match self {
            Self::Packed { count, .. } => {
                Some(banding.missed_if_agreeing(count, self.min_agreement(estimate)))
            }
            Self::Smallest { .. } => None,
        }
    }

    /// Returns a bound on the probability that a pair of this true similarity, or a greater one,
    /// shares no band or has an estimate below `accepted_from`, if all values agree independently.
    /// Without a banding, only the estimate counts. Returns `None` for bottom-k.
    #[must_use]
    pub fn missed_similarity(
        self,
        banding: Option<Banding>,
        similarity: f64,
        accepted_from: f64,
    ) -> Option<f64> {
        let Self::Packed { count, .. } = self else {
            return None;
        };
        let agreement = self.agreement_probability(similarity);
        let least = self.min_agreement(accepted_from);
        let all = binomial_terms(count.into(), agreement);
        let below: f64 = all.iter().take(least).sum();
        let missed = banding.map(|banding| banding.terms_without_band(count, agreement));
        let missed: f64 = missed.iter().flatten().skip(least).sum();
        Some(f64::min(below + missed, 1.0))
    }

    /// Returns the smallest agreement that estimates at least `similarity`, which is at most 1.
    #[inline]
    pub fn min_agreement(self, similarity: f64) -> usize {
        match self {
            // Equal signatures have the estimate 1.
            Self::Packed { count, .. } => {
                let (mut low, mut high) = (0, usize::from(count));
                while low < high {
                    let middle = (low + high) / 2;
                    if self.similarity(middle) >= similarity {
                        high = middle;
                    } else {
                        low = middle + 1;
                    }
                }
                low
            }
            Self::Smallest { .. } => (similarity * MAX_BOTTOM_K_AGREEMENT as f64).round() as usize,
        }
    }
}

/// Returns the unbiased estimate if `equal` of `count` values of `bits` bits are equal. Corrects
/// for chance if there are fewer than 32 bits.
fn unclamped(equal: usize, count: usize, bits: u8, curve: AgreementCurve) -> f64 {
    match curve {
        AgreementCurve::Identity if bits < 32 => b_bit::unclamped(equal, count, bits),
        curve => curve.estimate(equal, count),
    }
}

/// Counts the equal words, position by position, up to the end of the shorter slice.
#[inline]
fn equal_words<const BYTES: usize>(a: &[[u8; BYTES]], b: &[[u8; BYTES]]) -> usize {
    // Counters of 32 bits, no narrower than the words, keep vector registers full. A chunk of 2^15
    // words cannot overflow them.
    let pieces = a.chunks(1 << 15).zip(b.chunks(1 << 15));
    pieces
        .map(|(a, b)| a.iter().zip(b).map(|(a, b)| u32::from(a == b)).sum::<u32>() as usize)
        .sum()
}

/// Counts the values that equal the words at their positions.
#[inline]
fn equal_to_words<const BYTES: usize>(values: &[u32], words: &[[u8; BYTES]]) -> usize {
    let pairs = values.iter().zip(words);
    let equal = |(value, word): (&u32, &[u8; BYTES])| {
        let mut bytes = [0; 4];
        for (to, from) in bytes.iter_mut().zip(word) {
            *to = *from;
        }
        u32::from(*value == u32::from_le_bytes(bytes))
    };
    pairs.map(equal).sum::<u32>() as usize
}

/// Counts the equal values, up to the end of the shorter slice.
fn equal_count(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

/// Returns the hashes of a stored bottom-k signature.
fn hashes(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let hashes = bytes.as_chunks::<HASH_BYTES>().0;
    // Signatures that are stored side by side in memory are padded to full length with `u64::MAX`,
    // which is never a hash.
    hashes
        .iter()
        .map(|bytes| u64::from_le_bytes(*bytes))
        .filter(|hash| *hash != u64::MAX)
}

/// Returns the share of shared hashes as an agreement, rounded to the nearest.
fn bottom_k_agreement((shared, all): (usize, usize)) -> usize {
    if all == 0 {
        // Two documents without features are equal sets, if they are compared at all.
        return MAX_BOTTOM_K_AGREEMENT;
    }
    // `shared` and `all` have 16 bits, so the product is below 2^47, and exceeds a `usize` of 32 bits.
    let [part, whole, max] = [shared, all, MAX_BOTTOM_K_AGREEMENT].map(|count| count as u64);
    ((2 * part * max + whole) / (2 * whole)) as usize
}

impl MinHashValues {
    /// Returns the name of the kind of the values, and the first three values.
    #[inline]
    pub(super) fn first_values(&self) -> (&'static str, Vec<u64>) {
        let kind = match self {
            Self::Minima(_) => "minima",
            Self::Samples(_) => "samples",
            Self::Cut { .. } => "cut values",
            Self::Smallest { .. } => "smallest hashes",
        };
        let words = self.words().into_iter().flatten();
        let hashes = self.hashes().into_iter().flatten().copied();
        let values = words.map(|word| u64::from(*word)).chain(hashes);
        (kind, values.take(3).collect())
    }

    /// Returns the values, or `None` for bottom-k.
    #[inline]
    pub(super) fn words(&self) -> Option<&[u32]> {
        match self {
            Self::Minima(values) | Self::Samples(values) | Self::Cut { values, .. } => Some(values),
            Self::Smallest { .. } => None,
        }
    }

    /// Returns the hashes, for bottom-k only.
    #[inline]
    pub(super) fn hashes(&self) -> Option<&[u64]> {
        match self {
            Self::Smallest { hashes, .. } => Some(hashes),
            _ => None,
        }
    }

    /// The number of values (or the maximum number of hashes), and the bits of each.
    #[inline]
    pub(super) fn shape(&self) -> (usize, u8) {
        match self {
            Self::Minima(values) | Self::Samples(values) => (values.len(), 32),
            Self::Cut { bits, values, .. } => (values.len(), *bits),
            Self::Smallest { max_count, .. } => ((*max_count).into(), 64),
        }
    }

    /// The number of values, or of hashes.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.hashes().map_or(self.shape().0, <[u64]>::len)
    }

    /// Returns the values cut to `bits` bits. Bottom-k values, and values with `bits` or fewer
    /// bits, do not change.
    pub(super) fn into_cut(self, bits: u8, is_mixed: bool) -> Self {
        let (mut values, was_mixed, is_cut) = match self {
            Self::Minima(values) | Self::Samples(values) if bits < 32 => (values, is_mixed, false),
            Self::Cut {
                bits: had_bits,
                was_mixed,
                curve: AgreementCurve::Identity,
                values,
            } if bits < had_bits => (values, was_mixed, true),
            other => return other,
        };
        for value in &mut values {
            *value = cut(*value, bits, is_mixed && !is_cut);
        }
        Self::Cut {
            bits,
            was_mixed,
            curve: AgreementCurve::Identity,
            values,
        }
    }

    /// Returns the agreement curve of the values.
    pub(super) fn curve(&self) -> AgreementCurve {
        match self {
            Self::Cut { curve, .. } => *curve,
            _ => AgreementCurve::Identity,
        }
    }

    /// Returns true if the values have more than `bits` bits and can be cut.
    #[inline]
    pub(super) fn is_wider_than(&self, bits: u8) -> bool {
        let can_be_cut = self.hashes().is_none() && self.curve() == AgreementCurve::Identity;
        can_be_cut && self.shape().1 > bits
    }

    /// Returns the values as the layout stores them, or `None` for bottom-k.
    #[inline]
    pub(super) fn kept(&self, layout: ValueLayout) -> Option<Cow<'_, [u32]>> {
        match layout {
            ValueLayout::Packed { bits, is_mixed, .. } => self.kept_bits(bits, is_mixed),
            ValueLayout::Smallest { .. } => self.words().map(Cow::Borrowed),
        }
    }

    fn kept_bits(&self, bits: u8, is_mixed: bool) -> Option<Cow<'_, [u32]>> {
        match self.is_wider_than(bits) {
            true => Some(self.cut_words(bits, is_mixed).collect()),
            false => self.words().map(Cow::Borrowed),
        }
    }

    /// Returns the values cut to `bits` bits, of which they must have at least that number. Returns
    /// none for bottom-k.
    fn cut_words(&self, bits: u8, is_mixed: bool) -> impl Iterator<Item = u32> {
        let is_mixed = is_mixed && !matches!(self, Self::Cut { .. });
        let words = self.words().into_iter().flatten();
        words.map(move |value| cut(*value, bits, is_mixed))
    }

    /// Appends the values as bytes. The caller has checked that they fit the layout.
    pub(super) fn encode(&self, layout: ValueLayout, bytes: &mut Vec<u8>) {
        debug_assert!(self.has_kind_of(layout));
        match (self, layout) {
            (Self::Smallest { hashes, .. }, _) => {
                for hash in hashes {
                    bytes.extend_from_slice(&hash.to_le_bytes());
                }
            }
            (_, ValueLayout::Packed { bits: 32, .. }) => {
                for value in self.words().into_iter().flatten() {
                    bytes.extend_from_slice(&value.to_le_bytes());
                }
            }
            (_, ValueLayout::Packed { bits, is_mixed, .. }) => {
                b_bit::pack(self.cut_words(bits, is_mixed), bits, bytes);
            }
            // The kinds differ.
            (_, ValueLayout::Smallest { .. }) => {}
        }
    }

    /// Returns true if both are bottom-k, or neither is.
    fn has_kind_of(&self, layout: ValueLayout) -> bool {
        let is_bottom_k = matches!(layout, ValueLayout::Smallest { .. });
        matches!(self, Self::Smallest { .. }) == is_bottom_k
    }

    /// Decodes the values from `bytes` in this layout. Values of 32 bits are minima unless
    /// `are_samples`.
    pub(crate) fn decode(layout: ValueLayout, bytes: &[u8], are_samples: bool) -> Self {
        match layout {
            ValueLayout::Packed { bits: 32, .. } => {
                let words = bytes.as_chunks::<4>().0.iter();
                let values = words.map(|bytes| u32::from_le_bytes(*bytes)).collect();
                if are_samples {
                    Self::Samples(values)
                } else {
                    Self::Minima(values)
                }
            }
            ValueLayout::Packed {
                count,
                bits,
                is_mixed,
                curve,
            } => Self::Cut {
                bits,
                was_mixed: is_mixed,
                curve,
                values: b_bit::unpack(bytes, count.into(), bits),
            },
            ValueLayout::Smallest { max_count } => Self::Smallest {
                max_count,
                hashes: hashes(bytes).collect(),
            },
        }
    }

    /// Creates the values of a packed layout. Cuts them to its bits if any value has more.
    pub(super) fn of_layout(layout: ValueLayout, values: Vec<u32>, are_samples: bool) -> Self {
        let (bits, was_mixed, curve) = match layout {
            ValueLayout::Packed {
                bits,
                is_mixed,
                curve,
                ..
            } => (bits, is_mixed, curve),
            ValueLayout::Smallest { .. } => (32, false, AgreementCurve::Identity),
        };
        if bits < 32 && values.iter().all(|value| value >> bits == 0) {
            return Self::Cut {
                bits,
                was_mixed,
                curve,
                values,
            };
        }
        let whole = match are_samples {
            true => Self::Samples(values),
            false => Self::Minima(values),
        };
        whole.into_cut(bits, was_mixed)
    }

    /// Returns true if these are the values of a document without features.
    pub(super) fn are_of_no_features(&self, layout: ValueLayout) -> bool {
        let ValueLayout::Packed { bits, is_mixed, .. } = layout else {
            return self.count() == 0;
        };
        if self.curve() != AgreementCurve::Identity {
            // Each vector has a direction, or a place.
            return false;
        }
        let none = cut(u32::MAX, bits, is_mixed);
        self.words().into_iter().flatten().all(|word| *word == none)
    }

    /// Returns true if the values were mixed before they were cut.
    pub(super) fn was_mixed(&self) -> bool {
        matches!(
            self,
            Self::Cut {
                was_mixed: true,
                ..
            }
        )
    }

    /// Returns the [`ValueLayout::agreement`] with stored values of this layout, which these values
    /// must fit.
    #[inline]
    pub(crate) fn agreement_with(&self, layout: ValueLayout, stored: &[u8]) -> usize {
        debug_assert!(self.has_kind_of(layout));
        match (layout, self.hashes(), self.kept(layout)) {
            (ValueLayout::Smallest { max_count }, Some(own), _) => {
                let stored: Vec<u64> = hashes(stored).collect();
                bottom_k_agreement(shared(own, &stored, max_count.into()))
            }
            (ValueLayout::Packed { count, bits, .. }, _, Some(own)) => match bits {
                32 => equal_to_words(&own, stored.as_chunks::<4>().0),
                16 => equal_to_words(&own, stored.as_chunks::<2>().0),
                8 => equal_to_words(&own, stored.as_chunks::<1>().0),
                _ => equal_count(&own, &b_bit::unpack(stored, count.into(), bits)),
            },
            _ => 0,
        }
    }

    /// Returns the [`ValueLayout::agreement`] of two signatures as if both were stored in this
    /// layout. Returns 0 for values of another kind.
    #[inline]
    pub(crate) fn agreement(&self, layout: ValueLayout, other: &Self) -> usize {
        match layout {
            ValueLayout::Smallest { max_count } => {
                let shared = |(own, other)| shared(own, other, max_count.into());
                let hashes = self.hashes().zip(other.hashes());
                hashes.map_or(0, |pair| bottom_k_agreement(shared(pair)))
            }
            ValueLayout::Packed { bits, is_mixed, .. } => self.equal_of(other, bits, is_mixed),
        }
    }

    /// Counts the equal values of two signatures, cut to `bits` bits. Returns 0 for bottom-k.
    fn equal_of(&self, other: &Self, bits: u8, is_mixed: bool) -> usize {
        let own = self.kept_bits(bits, is_mixed);
        let values = own.zip(other.kept_bits(bits, is_mixed));
        values.map_or(0, |(own, other)| equal_count(&own, &other))
    }

    /// Returns the unbiased estimate from the values of two signatures. If one has more bits, its
    /// values are cut for the comparison.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if the values cannot be compared.
    pub(super) fn estimate(&self, other: &Self) -> Result<f64> {
        let ((count, bits), (other_count, other_bits)) = (self.shape(), other.shape());
        let (own_hashes, other_hashes) = (self.hashes(), other.hashes());
        if let (Some(own), Some(other)) = (own_hashes, other_hashes) {
            return Ok(bottom_k_jaccard(own, other, count.min(other_count)));
        }
        let was_mixed = |values: &Self| match values {
            Self::Cut { was_mixed, .. } => Some(*was_mixed),
            _ => None,
        };
        let mixed = (was_mixed(self), was_mixed(other));
        let is_same = !matches!(mixed, (Some(a), Some(b)) if a != b);
        let fits = is_same && self.curve() == other.curve();
        if count != other_count || !fits || own_hashes.or(other_hashes).is_some() {
            let [name, other_name] = [self, other].map(|it| it.curve().value_name());
            let found = format!("{other_count} {other_name} of {other_bits} bits");
            let expected = format!("{count} of {bits} bits, as the other signature has");
            return Err(SketchError::signature(name, found, expected));
        }
        let least_bits = bits.min(other_bits);
        let is_mixed = mixed.0.or(mixed.1) == Some(true);
        let equal = self.equal_of(other, least_bits, is_mixed);
        Ok(unclamped(equal, count, least_bits, self.curve()))
    }

    /// Returns the values of the union of both documents' features.
    ///
    /// # Errors
    ///
    /// [`SketchError::SignatureMismatch`] if they do not follow from these values.
    pub(super) fn merge(&self, other: &Self) -> Result<Self> {
        match (self, other) {
            _ if self.shape() != other.shape() => {}
            (Self::Minima(a), Self::Minima(b)) => {
                let lesser = a.iter().zip(b).map(|(a, b)| *a.min(b));
                return Ok(Self::Minima(lesser.collect()));
            }
            (Self::Smallest { max_count, hashes }, Self::Smallest { hashes: others, .. }) => {
                return Ok(Self::Smallest {
                    max_count: *max_count,
                    hashes: bottom_k::merge(hashes, others, (*max_count).into()),
                });
            }
            _ => {}
        }
        Err(SketchError::signature(
            self.curve().value_name(),
            "values that cannot be merged",
            "minima of 32 bits, as many in both, or the smallest hashes of both",
        ))
    }
}

/// Minima made by this crate equal the same numbers from another program.
impl PartialEq for MinHashValues {
    fn eq(&self, other: &Self) -> bool {
        (self.shape(), self.words(), self.hashes())
            == (other.shape(), other.words(), other.hashes())
    }
}

impl Eq for MinHashValues {}

impl std::hash::Hash for MinHashValues {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.shape(), self.words(), self.hashes()).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(count: u16, bits: u8) -> ValueLayout {
        ValueLayout::Packed {
            count,
            bits,
            is_mixed: true,
            curve: AgreementCurve::Identity,
        }
    }

    fn numbers(seed: u32, count: u16) -> Vec<u32> {
        let number = |place: u32| (place ^ seed).wrapping_mul(0x9e37_79b9);
        (0..u32::from(count)).map(number).collect()
    }

    #[test]
    fn values_round_trip_and_compare_equally_in_all_forms() {
        for bits in [1, 2, 4, 8, 16, 32] {
            for count in [16, 17, 63, 64, 65, 128, 1_024] {
                let layout = places(count, bits);
                let a = MinHashValues::Minima(numbers(1, count));
                let b: Vec<u32> = numbers(1, count)
                    .into_iter()
                    .zip(numbers(9, count))
                    .enumerate()
                    .map(|(place, (same, other))| if place % 3 == 0 { same } else { other })
                    .collect();
                let b = MinHashValues::Minima(b);
                let (mut x, mut y) = (Vec::new(), Vec::new());
                a.encode(layout, &mut x);
                b.encode(layout, &mut y);
                assert_eq!(x.len(), layout.size_bytes());
                let cut = |values: &MinHashValues| -> Vec<u32> {
                    let words = values.words().unwrap().iter();
                    words.map(|v| super::cut(*v, bits, true)).collect()
                };
                let expected = cut(&a)
                    .iter()
                    .zip(cut(&b))
                    .filter(|(a, b)| **a == *b)
                    .count();
                assert_eq!(layout.agreement(&x, &y), expected, "{bits} bits, {count}");
                assert_eq!(a.agreement_with(layout, &y), expected);
                assert_eq!(a.agreement(layout, &b), expected);
                let read = MinHashValues::decode(layout, &y, false);
                assert_eq!(read.words().unwrap(), cut(&b));
                assert_eq!(read.agreement_with(layout, &x), expected);
                assert_eq!(a.estimate(&read).unwrap(), layout.unclamped(expected));
                assert_eq!(
                    layout
                        .min_agreement(layout.similarity(expected))
                        .max(expected),
                    expected
                );
            }
        }
    }

    #[test]
    fn hashes_are_not_compared_with_values() {
        let hashes = MinHashValues::Smallest {
            max_count: 16,
            hashes: (0..16).collect(),
        };
        let values = MinHashValues::Minima(numbers(1, 16));
        for refused in [hashes.estimate(&values), values.estimate(&hashes)] {
            assert!(matches!(
                refused,
                Err(SketchError::SignatureMismatch { .. })
            ));
        }
        let bottom_k = ValueLayout::Smallest { max_count: 16 };
        let packed = ValueLayout::Packed {
            count: 16,
            bits: 32,
            is_mixed: false,
            curve: AgreementCurve::Identity,
        };
        for layout in [bottom_k, packed] {
            assert_eq!(values.agreement(layout, &hashes), 0);
            assert_eq!(hashes.agreement(layout, &values), 0);
        }
    }

    #[test]
    fn values_beyond_the_limit_of_a_store_are_compared() {
        let a = MinHashValues::Minima(vec![1; 140_000]);
        let half = [vec![1; 70_000], vec![2; 70_000]].concat();
        assert_eq!(a.estimate(&MinHashValues::Minima(half)).unwrap(), 0.5);
    }

    #[test]
    fn bottom_k_values_are_compared_on_the_union() {
        let smallest = |hashes: &[u64]| MinHashValues::Smallest {
            max_count: 4,
            hashes: hashes.to_vec(),
        };
        let (a, b) = (smallest(&[1, 3, 5, 7]), smallest(&[1, 2, 5, 9]));
        // The union is 1 2 3 5, and both sets have 1 and 5.
        assert_eq!(a.estimate(&b).unwrap(), 0.5);
        let few = smallest(&[1, 2]);
        // The union is 1 2 5 9.
        assert_eq!(few.estimate(&b).unwrap(), 0.5);
        assert_eq!(few.estimate(&smallest(&[2])).unwrap(), 0.5);
        assert_eq!(a.merge(&b).unwrap(), smallest(&[1, 2, 3, 5]));
        let layout = ValueLayout::Smallest { max_count: 4 };
        let mut bytes = Vec::new();
        b.encode(layout, &mut bytes);
        let agreement = a.agreement_with(layout, &bytes);
        assert_eq!(layout.similarity(agreement), 0.5);
        assert!(
            agreement >= layout.min_agreement(0.5) && agreement < layout.min_agreement(0.500_001)
        );
        assert_eq!(MinHashValues::decode(layout, &bytes, false), b);
    }
}
