//! Dense vectors: their hash values, the form in which they are kept, and their exact similarity.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use super::hash::{derive, stream};
use super::values::MinHashValues;
use crate::error::{Result, SketchError};
use crate::lanes::{AgreementCurve, IntervalWidth, similarity_at};

/// The least number of dimensions of a vector.
const MIN_DIMENSIONS: u16 = 2;

/// The shortest block that is rotated. Vectors with fewer dimensions are padded with zeros: in
/// shorter blocks, the projections would depend on each other.
const MIN_BLOCK: usize = 256;

/// The distances within which vectors can be near. Beyond them, 1 / (1 + d) loses digits.
const DISTANCES: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// The number of random rotations of a block.
const ROTATIONS: usize = 3;

/// The greatest number of intervals between a vector and the origin. Beyond it, rounding would
/// move projections to other intervals.
const MAX_INTERVALS: f64 = 1e9;

/// The hash functions of a kind of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VectorKind {
    pub(crate) dimensions: u16,
    pub(crate) metric: VectorMetric,
}

/// The measure by which vectors are near.
///
/// ```
/// use resemblance_sketch::{Schema, Vector, VectorMetric};
/// let schema = Schema::builder().vector(Vector::cosine(3)).build()?;
/// assert_eq!(schema.vector().unwrap().metric(), VectorMetric::Cosine);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum VectorMetric {
    /// The cosine of the angle between two vectors. A value is the sign of a random projection.
    Cosine,
    /// The Euclidean distance. A value is the interval, of this width, of a random projection.
    Euclidean(IntervalWidth),
}

impl VectorKind {
    /// Returns the agreement curve of the hash values.
    pub(crate) fn curve(self) -> AgreementCurve {
        match self.metric {
            VectorMetric::Cosine => AgreementCurve::Angle,
            VectorMetric::Euclidean(width) => AgreementCurve::Interval(width),
        }
    }

    /// The number of bits of a hash value. Intervals that are 65,536 apart have the same value.
    pub(crate) fn value_bits(self) -> u8 {
        match self.metric {
            VectorMetric::Cosine => 1,
            VectorMetric::Euclidean(_) => 16,
        }
    }

    /// Checks a kind that was read from a file.
    pub(crate) fn validate(self) -> Result<()> {
        let is_valid = self.dimensions >= MIN_DIMENSIONS;
        let expected = "2 to 65,535";
        SketchError::require(is_valid, "dimensions", self.dimensions, expected)?;
        if let VectorMetric::Euclidean(width) = self.metric {
            let distance = width.get() / INTERVAL;
            let expected = "0.000001 to 1,000,000: scale the vectors";
            SketchError::require(
                DISTANCES.contains(&distance),
                "distance",
                distance,
                expected,
            )?;
        }
        Ok(())
    }

    /// The bytes of the kind in a recipe's fingerprint, after its code. Frozen.
    pub(crate) fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.dimensions.to_le_bytes());
        if let VectorMetric::Euclidean(width) = self.metric {
            bytes.extend(width.get().to_bits().to_le_bytes());
        }
    }

    /// Returns the similarity of two vectors: their cosine, or 1 / (1 + d) at a distance of d. A
    /// negative cosine counts as 0.
    pub(crate) fn similarity(self, a: &DenseVector, b: &DenseVector) -> f64 {
        match self.metric {
            _ if a == b => 1.0,
            VectorMetric::Cosine => {
                let norms = (a.norm_squared * b.norm_squared).sqrt();
                (a.dot(b) / norms).clamp(0.0, 1.0)
            }
            VectorMetric::Euclidean(_) => similarity_at(a.distance(b)),
        }
    }
}

/// The width of an interval, as a multiple of the distance within which vectors are near. Of the
/// values of vectors at that distance, four in five then agree.
pub(crate) const INTERVAL: f64 = 4.0;

impl fmt::Display for VectorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dimensions = self.dimensions;
        match self.metric {
            VectorMetric::Cosine => write!(f, "signs of vectors of {dimensions} dimensions"),
            VectorMetric::Euclidean(width) => {
                let width = width.get();
                write!(
                    f,
                    "intervals of {width} of vectors of {dimensions} dimensions"
                )
            }
        }
    }
}

/// The form in which a store keeps vectors for the exact comparison.
///
/// A store compares what it keeps, and a query is rounded in the same way. So all verbs agree, also
/// about vectors that were rounded.
///
/// ```
/// use resemblance_sketch::{KeptVector, Schema, Vector};
/// let vector = Vector::cosine(384).kept(KeptVector::I8); // 386 bytes a document
/// let schema = Schema::builder().vector(vector).build()?;
/// assert_eq!(schema.vector().unwrap().kept(), Some(KeptVector::I8));
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeptVector {
    /// Numbers of 32 bits, as they were given. A cosine is of vectors scaled to length 1.
    F32,
    /// Numbers of 16 bits (IEEE 754 binary16), with 11 significant bits.
    F16,
    /// Whole numbers of 8 bits, from −127 to 127, with a power of two for each vector that scales
    /// them: the greatest component keeps 7 significant bits.
    I8,
}

impl KeptVector {
    /// The number of bits of a component.
    pub(crate) const fn bits(self) -> u8 {
        match self {
            Self::F32 => 32,
            Self::F16 => 16,
            Self::I8 => 8,
        }
    }

    /// Returns the form with this number of bits.
    pub fn of_bits(bits: u8) -> Option<Self> {
        [Self::F32, Self::F16, Self::I8]
            .into_iter()
            .find(|form| form.bits() == bits)
    }

    /// Rounds components to this form. Returns the name of the fault if one has no such form.
    fn round(self, components: &mut [f32]) -> Result<()> {
        match self {
            Self::F32 => {}
            Self::F16 => {
                for component in &mut *components {
                    *component = half_to_single(single_to_half(*component));
                }
                let is_valid = components.iter().all(|component| component.is_finite());
                let expected = "components of at most 65,504, which 16 bits can hold";
                SketchError::require(is_valid, VECTOR, "a greater component", expected)?;
            }
            Self::I8 => {
                let step = step_of(exponent_of(components));
                for component in components {
                    let steps = (f64::from(*component) / step).round_ties_even();
                    *component = (steps * step) as f32;
                }
            }
        }
        Ok(())
    }

    /// The number of bytes of a vector.
    pub fn size_bytes(self, dimensions: u16) -> usize {
        let components = usize::from(dimensions) * usize::from(self.bits() / 8);
        match self {
            Self::I8 => components + size_of::<i16>(),
            _ => components,
        }
    }

    /// Appends a vector that was rounded to this form: its components, little-endian; with 8 bits,
    /// first the exponent of the power of two that scales them.
    pub fn encode(self, vector: &DenseVector, bytes: &mut Vec<u8>) {
        let components = vector.components.iter();
        match self {
            Self::F32 => bytes.extend(components.flat_map(|it| it.to_le_bytes())),
            Self::F16 => bytes.extend(components.flat_map(|it| single_to_half(*it).to_le_bytes())),
            Self::I8 => {
                let exponent = exponent_of(&vector.components);
                bytes.extend(exponent.to_le_bytes());
                let step = step_of(exponent);
                bytes.extend(components.map(|it| (f64::from(*it) / step) as i8 as u8));
            }
        }
    }

    /// Decodes the bytes of a vector. Returns `None` unless they are those that
    /// [`encode`](Self::encode) appends for it.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Option<DenseVector> {
        let components: Vec<f32> = match self {
            Self::F32 => {
                let words = bytes.as_chunks::<4>().0.iter();
                words.map(|word| f32::from_le_bytes(*word)).collect()
            }
            Self::F16 => {
                let words = bytes.as_chunks::<2>().0.iter();
                let halves = words.map(|word| u16::from_le_bytes(*word));
                halves.map(half_to_single).collect()
            }
            Self::I8 => {
                let (exponent, steps) = bytes.split_first_chunk::<2>()?;
                let exponent = i16::from_le_bytes(*exponent);
                let step = step_of(exponent);
                let scale = |byte: &u8| (f64::from(*byte as i8) * step) as f32;
                let components: Vec<f32> = steps.iter().map(scale).collect();
                if exponent_of(&components) != exponent {
                    return None;
                }
                components
            }
        };
        let is_kept = |it: &f32| it.is_finite() && it.to_bits() != NEGATIVE_ZERO;
        let is_valid = components.iter().all(is_kept);
        is_valid.then(|| DenseVector::new(components))
    }
}

impl fmt::Display for KeptVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::I8 => "i8",
        })
    }
}

/// The bits of the number that no component is.
const NEGATIVE_ZERO: u32 = 0x8000_0000;

/// The exponent of the least power of two that is a component.
const MIN_EXPONENT: i16 = -149;

/// Returns the least exponent, at least [`MIN_EXPONENT`], of a power of two of which each component
/// is at most 127 times, rounded. Returns 0 for zeros.
fn exponent_of(components: &[f32]) -> i16 {
    let greatest = components
        .iter()
        .fold(0.0_f32, |most, it| most.max(it.abs()));
    if greatest == 0.0 {
        return 0;
    }
    let greatest = f64::from(greatest);
    // The exponent of the number itself, less the seven bits of 127, or one more.
    let exponent = ((greatest.to_bits() >> 52) & 0x7ff) as i16 - 1023 - 6;
    let is_enough = greatest / step_of(exponent) < 127.5;
    i16::max(exponent + i16::from(!is_enough), MIN_EXPONENT)
}

/// Returns 2 to the power of an exponent.
fn step_of(exponent: i16) -> f64 {
    2_f64.powi(exponent.into())
}

/// Rounds to binary16, to the nearest, and to the even one of two.
fn single_to_half(single: f32) -> u16 {
    let bits = single.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = f32::from_bits(bits & 0x7fff_ffff);
    if magnitude >= 65_520.0 {
        return sign | 0x7c00;
    }
    if magnitude < 6.103_515_6e-5 {
        // Below the normal numbers, a step is 2^-24.
        let steps = (f64::from(magnitude) * 16_777_216.0).round_ties_even();
        return sign | steps as u16;
    }
    let bits = magnitude.to_bits();
    let rounded = bits + 0xfff + ((bits >> 13) & 1);
    sign | ((rounded >> 13) - (112 << 10)) as u16
}

/// Returns the number of a binary16, exactly.
#[must_use]
pub fn half_to_single(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let magnitude = u32::from(half & 0x7fff);
    if magnitude >= 0x7c00 {
        return f32::from_bits(sign | 0x7f80_0000 | (magnitude & 0x3ff) << 13);
    }
    if magnitude < 0x400 {
        let number = magnitude as f32 / 16_777_216.0;
        return f32::from_bits(sign | number.to_bits());
    }
    f32::from_bits(sign | ((magnitude << 13) + (112 << 23)))
}

/// A dense vector of finite components. Both zeros are equal, so none is negative.
#[derive(Clone, Debug)]
pub struct DenseVector {
    components: Box<[f32]>,
    norm_squared: f64,
}

/// Vectors are equal if all components are.
impl PartialEq for DenseVector {
    fn eq(&self, other: &Self) -> bool {
        self.components == other.components
    }
}

impl Eq for DenseVector {}

impl Hash for DenseVector {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for component in &self.components {
            component.to_bits().hash(state);
        }
    }
}

/// The number of sums that are added side by side, so that vector registers are full. Frozen: it
/// decides how sums are rounded.
const SIDE_BY_SIDE: usize = 16;

impl DenseVector {
    fn new(components: Vec<f32>) -> Self {
        let mut vector = Self {
            components: components.into_iter().map(|it| it + 0.0).collect(),
            norm_squared: 0.0,
        };
        vector.norm_squared = vector.dot(&vector);
        vector
    }

    /// Returns the components.
    #[must_use]
    pub fn components(&self) -> &[f32] {
        &self.components
    }

    /// Returns the inner product. Each addition is rounded, in an order that does not depend on the
    /// processor.
    fn dot(&self, other: &Self) -> f64 {
        self.sum(other, |a, b| a * b)
    }

    fn distance(&self, other: &Self) -> f64 {
        self.sum(other, |a, b| (a - b) * (a - b)).sqrt()
    }

    #[inline(always)]
    fn sum(&self, other: &Self, term: impl Fn(f32, f32) -> f32) -> f64 {
        let (a, a_rest) = self.components.as_chunks::<SIDE_BY_SIDE>();
        let (b, b_rest) = other.components.as_chunks::<SIDE_BY_SIDE>();
        let mut sums = [0.0_f32; SIDE_BY_SIDE];
        for (a, b) in a.iter().zip(b) {
            for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                *sum += term(*a, *b);
            }
        }
        let rest = a_rest.iter().zip(b_rest).map(|(a, b)| term(*a, *b));
        rest.chain(sums).map(f64::from).sum()
    }
}

/// The parameter that errors name.
const VECTOR: &str = "vector";

/// Makes the hash values of vectors, by random rotations.
///
/// A block of a power of two components is rotated three times: each component gets a random sign,
/// and the Hadamard transform mixes the block. The result has about the distribution of projections
/// with normal weights (Ailon and Chazelle 2006; Choromanski et al., *Triplespin*, 2016), and takes
/// n log n steps. A block gives one projection for each component; further blocks have different
/// signs.
#[derive(Debug)]
pub(super) struct VectorHasher {
    kind: VectorKind,
    kept: Option<KeptVector>,
    values: u16,
    /// The signs of all rotations of all blocks, −1 or 1.
    signs: Vec<f64>,
    /// The shift of each projection, in intervals, 0 to 1.
    shifts: Vec<f64>,
}

impl VectorHasher {
    /// Creates the functions. Frozen.
    pub(super) fn new(seed: u64, values: u16, kind: VectorKind, kept: Option<KeptVector>) -> Self {
        let block = block_of(kind.dimensions);
        let blocks = usize::from(values).div_ceil(block);
        let key = derive(seed, stream::VECTOR_KEY);
        let sign = |place: u64| {
            let bit = derive(key, place / 64) >> (place % 64) & 1;
            if bit == 1 { -1.0 } else { 1.0 }
        };
        let places = (blocks * ROTATIONS * block) as u64;
        let shift_key = derive(seed, stream::INTERVAL_KEY);
        let shift = |value| (derive(shift_key, value) >> 11) as f64 / (1_u64 << 53) as f64;
        Self {
            kind,
            kept,
            values,
            signs: (0..places).map(sign).collect(),
            shifts: match kind.metric {
                VectorMetric::Cosine => Vec::new(),
                VectorMetric::Euclidean(_) => (0..values.into()).map(shift).collect(),
            },
        }
    }

    /// Checks a vector, and returns its values and the vector as it is kept.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] for another number of dimensions, for numbers that are not
    /// finite, for zeros alone if the measure is the cosine, and for components out of range.
    pub(super) fn hash(&self, components: &[f32]) -> Result<(MinHashValues, Option<DenseVector>)> {
        let mut components = self.checked(components)?;
        if let Some(kept) = self.kept {
            kept.round(&mut components)?;
        }
        let vector = DenseVector::new(components);
        let values = MinHashValues::Cut {
            bits: self.kind.value_bits(),
            was_mixed: false,
            curve: self.kind.curve(),
            values: self.values(&vector.components)?,
        };
        Ok((values, self.kept.map(|_| vector)))
    }

    fn checked(&self, components: &[f32]) -> Result<Vec<f32>> {
        let expected = format_args!("{} numbers, as in the schema", self.kind.dimensions);
        let is_valid = components.len() == usize::from(self.kind.dimensions);
        let found = format_args!("{} numbers", components.len());
        SketchError::require(is_valid, VECTOR, found, expected)?;
        let odd = components.iter().zip(0..).find(|(it, _)| !it.is_finite());
        if let Some((found, place)) = odd {
            let found = format!("{found} at position {place}");
            return Err(SketchError::invalid(VECTOR, found, "finite numbers"));
        }
        let VectorMetric::Cosine = self.kind.metric else {
            return Ok(components.to_vec());
        };
        let length = length_of(components);
        let expected = "at least one number other than 0: zeros have no direction";
        SketchError::require(length > 0.0, VECTOR, "zeros", expected)?;
        let scaled = |it: &f32| (f64::from(*it) / length) as f32;
        Ok(components.iter().map(scaled).collect())
    }

    /// Returns the values of checked components.
    fn values(&self, components: &[f32]) -> Result<Vec<u32>> {
        let block = block_of(self.kind.dimensions);
        let scale = match self.kind.metric {
            VectorMetric::Cosine => 1.0,
            VectorMetric::Euclidean(width) => {
                self.check_range(components, width)?;
                // Three transforms without scaling multiply lengths by block^1.5, and a projection
                // with normal weights has the length of the vector, not a share of it.
                1.0 / width.get() / block as f64
            }
        };
        let mut values = Vec::with_capacity(self.signs.len() / ROTATIONS);
        let mut rotated = vec![0.0; block];
        for signs in self.signs.chunks_exact(ROTATIONS * block) {
            rotated.fill(0.0);
            for (to, from) in rotated.iter_mut().zip(components) {
                *to = f64::from(*from) * scale;
            }
            for signs in signs.chunks_exact(block) {
                for (number, sign) in rotated.iter_mut().zip(signs) {
                    *number *= sign;
                }
                hadamard(&mut rotated);
            }
            let first = values.len();
            match self.kind.metric {
                VectorMetric::Cosine => {
                    values.extend(rotated.iter().map(|number| u32::from(*number >= 0.0)));
                }
                VectorMetric::Euclidean(_) => {
                    let shifts = self.shifts.iter().skip(first);
                    let shifted = rotated
                        .iter()
                        .zip(shifts)
                        .map(|(number, shift)| number + shift);
                    values.extend(shifted.map(|number| (number.floor() as i64) as u32 & 0xffff));
                }
            }
        }
        values.truncate(self.values.into());
        Ok(values)
    }

    fn check_range(&self, components: &[f32], width: IntervalWidth) -> Result<()> {
        let most = MAX_INTERVALS * width.get();
        let length = length_of(components);
        let distance = width.get() / INTERVAL;
        let expected = format_args!("at most {most} for the distance {distance}");
        let found = format_args!("a length of {length}");
        SketchError::require(length <= most, VECTOR, found, expected)
    }
}

/// Returns the length of a vector.
fn length_of(components: &[f32]) -> f64 {
    let wide = components.iter().map(|it| f64::from(*it));
    wide.map(|it| it * it).sum::<f64>().sqrt()
}

/// Returns the number of components that are rotated together.
fn block_of(dimensions: u16) -> usize {
    usize::from(dimensions).next_power_of_two().max(MIN_BLOCK)
}

/// The Hadamard transform of a power of two of numbers, without scaling.
fn hadamard<T: Copy + Add<Output = T> + Sub<Output = T>>(numbers: &mut [T]) {
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half);
            for (left, right) in left.iter_mut().zip(right) {
                (*left, *right) = (*left + *right, *left - *right);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{MinHash, Schema, SimHash, Vector};
    use crate::sketch::Sketcher;
    use crate::text::Text;

    fn number(seed: u64, place: u64) -> f64 {
        (derive(seed, place) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A vector with normally distributed components (Box and Muller).
    fn normal(seed: u64, dimensions: u16) -> Vec<f64> {
        let component = |place: u64| {
            let (a, b) = (1.0 - number(seed, 2 * place), number(seed, 2 * place + 1));
            (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
        };
        (0..dimensions.into()).map(component).collect()
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Two vectors of length 1 at an angle.
    fn at_angle(seed: u64, dimensions: u16, angle: f64) -> (Vec<f32>, Vec<f32>) {
        let scale = |vector: &[f64]| {
            let length = dot(vector, vector).sqrt();
            vector.iter().map(|it| it / length).collect::<Vec<f64>>()
        };
        let first = scale(&normal(seed, dimensions));
        let other = normal(seed + 1_000_000, dimensions);
        let along = dot(&first, &other);
        let across: Vec<f64> = first
            .iter()
            .zip(&other)
            .map(|(a, b)| b - along * a)
            .collect();
        let across = scale(&across);
        let turned = first.iter().zip(&across);
        let turned = turned.map(|(a, b)| (angle.cos() * a + angle.sin() * b) as f32);
        (
            first.iter().map(|it| *it as f32).collect(),
            turned.collect(),
        )
    }

    fn sketcher(vector: Vector, seed: u64) -> Sketcher {
        Schema::builder()
            .vector(vector)
            .seed(seed)
            .build()
            .unwrap()
            .sketcher()
    }

    /// The values of vectors at an angle agree with the probability of theory, and whole bands do
    /// as if their values were independent. Each seed gives 512 values and 64 bands of 8. The
    /// bounds are five standard deviations of as many independent values, and of as many seeds for
    /// bands, whose number in a seed varies by at most the square root of 64 / 4.
    #[test]
    fn signs_agree_as_the_angle_says() {
        const SEEDS: u64 = 100;
        for dimensions in [2, 3, 24, 300] {
            for angle in [0.1, 0.3, 1.0, 2.0] {
                let (mut equal, mut bands) = (0.0, 0.0);
                for seed in 0..SEEDS {
                    let sketcher = sketcher(Vector::cosine(dimensions).values(512), seed);
                    let (a, b) = at_angle(seed, dimensions, angle);
                    let (a, b) = (sketcher.vector(&a).unwrap(), sketcher.vector(&b).unwrap());
                    let (a, b) = (a.minhash().unwrap(), b.minhash().unwrap());
                    equal += a.iter().zip(b).filter(|(a, b)| a == b).count() as f64;
                    let rows = a.chunks(8).zip(b.chunks(8));
                    bands += rows.filter(|(a, b)| a == b).count() as f64;
                }
                let expected = 1.0 - angle / std::f64::consts::PI;
                let count = 512.0 * SEEDS as f64;
                let bound = 5.0 * (expected * (1.0 - expected) / count).sqrt();
                let found = equal / count;
                assert!(
                    (found - expected).abs() < bound,
                    "{dimensions} {angle}: {found} {expected}"
                );
                let (expected, count) = (expected.powi(8), 64.0 * SEEDS as f64);
                let bound = 5.0 * (expected * (1.0 - expected) / count).sqrt();
                let found = bands / count;
                assert!(
                    (found - expected).abs() < bound,
                    "{dimensions} {angle}: {found} {expected}"
                );
            }
        }
    }

    /// The same for distances; see [`signs_agree_as_the_angle_says`].
    #[test]
    fn intervals_agree_as_the_distance_says() {
        const SEEDS: u64 = 100;
        for dimensions in [2, 24, 300] {
            for (distance, offset) in [(0.5, 0.0), (1.0, 1_000.0), (3.0, 0.0)] {
                let vector = Vector::euclidean(dimensions, 1.0);
                let curve = AgreementCurve::Interval(IntervalWidth::new(INTERVAL).unwrap());
                let mut equal = 0.0;
                for seed in 0..SEEDS {
                    let sketcher = sketcher(vector, seed);
                    let (_, direction) = at_angle(seed, dimensions, 0.0);
                    let a = vec![offset; usize::from(dimensions)];
                    let b: Vec<f32> = a
                        .iter()
                        .zip(&direction)
                        .map(|(a, b)| a + b * distance as f32)
                        .collect();
                    let (a, b) = (sketcher.vector(&a).unwrap(), sketcher.vector(&b).unwrap());
                    let (a, b) = (a.minhash().unwrap(), b.minhash().unwrap());
                    equal += a.iter().zip(b).filter(|(a, b)| a == b).count() as f64;
                }
                let expected = curve.agreement(similarity_at(distance));
                let count = 512.0 * SEEDS as f64;
                let bound = 5.0 * (expected * (1.0 - expected) / count).sqrt();
                let found = equal / count;
                assert!(
                    (found - expected).abs() < bound,
                    "{dimensions} {distance}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn hadamard_transform_is_that_of_the_matrix() {
        let numbers: Vec<f64> = (0..16).map(|it| number(7, it)).collect();
        let mut found = numbers.clone();
        hadamard(&mut found);
        for (row, found) in found.iter().enumerate() {
            let sign = |column: usize| {
                if (row & column).count_ones().is_multiple_of(2) {
                    1.0
                } else {
                    -1.0
                }
            };
            let expected: f64 = numbers.iter().enumerate().map(|(i, it)| sign(i) * it).sum();
            assert!((found - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn halves_round_to_the_nearest() {
        for half in 0..=u16::MAX {
            let single = half_to_single(half);
            if single.is_nan() {
                continue;
            }
            assert_eq!(single_to_half(single), half);
            // Between two neighbours, the nearer one, and the even one in the middle.
            let next = half_to_single(half + 1);
            if half & 0x7fff < 0x7bff {
                let middle = ((f64::from(single) + f64::from(next)) / 2.0) as f32;
                assert_eq!(single_to_half(middle), half + (half & 1), "{half:x}");
                assert_eq!(single_to_half(middle.next_down().min(middle.next_up())), {
                    if single < next { half } else { half + 1 }
                });
            }
        }
        assert_eq!(single_to_half(65_520.0), 0x7c00);
        assert_eq!(single_to_half(-1e30), 0xfc00);
    }

    #[test]
    fn kept_vectors_round_trip_and_refuse_other_bytes() {
        for form in [KeptVector::F32, KeptVector::F16, KeptVector::I8] {
            for scale in [0.0, 1e-43, 1e-30, 1.0, 100.0, 30_000.0] {
                let mut components: Vec<f32> = (0..40)
                    .map(|it| ((number(3, it) - 0.5) * scale) as f32)
                    .collect();
                let exact = components.clone();
                form.round(&mut components).unwrap();
                let greatest = exact.iter().fold(0.0_f32, |most, it| most.max(it.abs()));
                let close = match form {
                    KeptVector::F32 => 0.0,
                    KeptVector::F16 => (greatest / 2048.0).max(3e-8),
                    // Half a step, of which there are 64 or more.
                    KeptVector::I8 => greatest / 126.0,
                };
                for (rounded, exact) in components.iter().zip(&exact) {
                    assert!((rounded - exact).abs() <= close, "{form} {scale}");
                }
                let vector = DenseVector::new(components);
                let mut bytes = Vec::new();
                form.encode(&vector, &mut bytes);
                assert_eq!(bytes.len(), form.size_bytes(40));
                assert_eq!(form.decode(&bytes), Some(vector));
            }
        }
        // A rounded negative number is no negative zero, which the bytes of a store never have.
        for form in [KeptVector::F16, KeptVector::I8] {
            let sketcher = sketcher(Vector::cosine(3).kept(form), 1);
            let rounded = sketcher.vector(&[1.0, -1e-9, 0.0]).unwrap();
            let exact = sketcher.vector(&[1.0, 0.0, 0.0]).unwrap();
            assert_eq!((&rounded, rounded.digest()), (&exact, exact.digest()));
        }
        assert_eq!(KeptVector::F32.decode(&[0, 0, 0, 0x80]), None);
        assert_eq!(KeptVector::F16.decode(&[0, 0x80]), None);
        // Infinity, and a number of steps that half as long a step would double.
        assert_eq!(KeptVector::F32.decode(&[0, 0, 0x80, 0x7f]), None);
        assert_eq!(KeptVector::F16.decode(&[0, 0x7c]), None);
        assert_eq!(KeptVector::I8.decode(&[0, 0, 63, 1]), None);
        assert!(KeptVector::I8.decode(&[0, 0, 64, 1]).is_some());
        let large = Vector::euclidean(2, 1_000.0).kept(KeptVector::F16);
        assert!(sketcher(large, 1).vector(&[70_000.0, 0.0]).is_err());
    }

    #[test]
    fn vectors_that_have_no_place_are_refused_by_name() {
        let cosine = sketcher(Vector::cosine(3), 1);
        let euclidean = sketcher(Vector::euclidean(3, 0.1), 1);
        let found =
            |sketcher: &Sketcher, vector: &[f32]| sketcher.vector(vector).unwrap_err().to_string();
        for sketcher in [&cosine, &euclidean] {
            assert!(found(sketcher, &[1.0, f32::NAN, 0.0]).contains("NaN at position 1"));
            assert!(found(sketcher, &[1.0, 0.0, f32::INFINITY]).contains("inf at position 2"));
            assert!(found(sketcher, &[1.0]).contains("3 numbers"));
        }
        assert!(found(&cosine, &[0.0; 3]).contains("direction"));
        assert!(euclidean.vector(&[0.0; 3]).is_ok());
        assert!(found(&euclidean, &[1e30, 0.0, 0.0]).contains("length"));
        let build = |vector: Vector| Schema::builder().vector(vector).build();
        for refused in [
            Vector::cosine(1),
            Vector::euclidean(3, f64::NAN),
            Vector::euclidean(3, -1.0),
            Vector::euclidean(3, 1e9),
            Vector::cosine(3).threshold(1.5),
            Vector::cosine(3).values(8),
        ] {
            assert!(build(refused).is_err(), "{refused:?}");
        }
        let text = Schema::builder()
            .text(Text::words(2))
            .vector(Vector::cosine(3));
        assert!(text.build().is_err());
    }

    #[test]
    fn vectors_beside_texts_leave_these_unchanged() {
        let texts = || {
            Schema::builder()
                .text(Text::words(2))
                .simhash(SimHash::bits64())
        };
        let alone = texts().build().unwrap().sketcher();
        let both = texts()
            .vector(Vector::cosine(3))
            .build()
            .unwrap()
            .sketcher();
        let text = "a text beside a vector";
        let rest = both.beside_vector().unwrap().text(text).unwrap();
        let signature = both.with_vector(rest.clone(), &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(
            signature.fingerprint(),
            alone.text(text).unwrap().fingerprint()
        );
        assert!(signature.vector().is_some());
        assert!(both.text(text).is_err() && both.vector(&[1.0, 2.0, 3.0]).is_err());
        assert!(alone.with_vector(rest, &[1.0, 2.0, 3.0]).is_err());
        let empty = both.beside_vector().unwrap().text("").unwrap();
        assert!(both.with_vector(empty, &[1.0, 2.0, 3.0]).is_err());
        let minhash = Schema::builder().minhash(MinHash::new(64)).build().unwrap();
        assert!(minhash.sketcher().vector(&[1.0]).is_err());
    }

    #[test]
    fn values_are_frozen() {
        let self_test = |vector| sketcher(vector, 1).self_test().unwrap();
        let found = [
            self_test(Vector::cosine(3).values(512)),
            self_test(Vector::cosine(384).values(512).kept(KeptVector::I8)),
            self_test(Vector::euclidean(700, 0.5).kept(KeptVector::F16)),
        ];
        assert_eq!(
            found,
            [
                9_017_871_700_790_850_230,
                2_829_822_987_239_443_678,
                16_673_850_316_210_042_625
            ]
        );
    }
}
