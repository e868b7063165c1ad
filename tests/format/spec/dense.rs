//! Dense vectors, written from `format-spec.md` alone: nothing here calls the library but the tests.

use resemblance::Schema;
use resemblance::distributed::Codec;

use crate::spec::bytes::Bytes;
use crate::spec::recipe::derive;
use crate::spec::signatures::vector_of;
use crate::spec::vectors::{check, number};
use crate::spec::{hex, minhash};

/// The vectors of a schema.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dense {
    pub(crate) dimensions: u16,
    /// The width of intervals, if vectors are compared by their distance.
    pub(crate) width: Option<f64>,
}

fn power_of_two(exponent: i32) -> f64 {
    2_f64.powi(exponent)
}

/// The number of a binary16 that is finite, or of the one after these if that was a number.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1_023));
    let size = match exponent {
        0 => fraction * power_of_two(-24),
        _ => (1_024.0 + fraction) * power_of_two(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// The nearest of all binary16, and of two the even one.
fn nearest_half(number: f32) -> u16 {
    let size = f64::from(number.abs());
    let (mut below, mut above) = (0, 0x7c00);
    while above - below > 1 {
        let middle = (below + above) / 2;
        match half(middle) <= size {
            true => below = middle,
            false => above = middle,
        }
    }
    let (down, up) = (size - half(below), half(above) - size);
    let is_below = down < up || (down == up && below % 2 == 0);
    let nearest = if is_below { below } else { above };
    assert!(nearest < 0x7c00);
    nearest | u16::from(number < 0.0 && nearest > 0) << 15
}

/// The exponent of vectors with 8 bits.
fn exponent(vector: &[f32]) -> i32 {
    let greatest = vector
        .iter()
        .fold(0.0_f64, |most, x| most.max(x.abs().into()));
    let is_enough = |exponent: &i32| greatest < 127.5 * power_of_two(*exponent);
    match greatest > 0.0 {
        true => (-149..).find(is_enough).unwrap(),
        false => 0,
    }
}

/// Section 2.10.
pub(crate) fn encode(vector: &[f32], bits: u8) -> Vec<u8> {
    let components = vector.iter();
    match bits {
        32 => components.flat_map(|x| x.to_le_bytes()).collect(),
        16 => components
            .flat_map(|x| nearest_half(*x).to_le_bytes())
            .collect(),
        _ => {
            let exponent = exponent(vector);
            let steps = components.map(|x| f64::from(*x) / power_of_two(exponent));
            let steps = steps.map(|steps| steps.round_ties_even() as i8 as u8);
            let first = (exponent as i16).to_le_bytes();
            first.into_iter().chain(steps).collect()
        }
    }
}

fn transform(numbers: &mut [f64]) {
    if numbers.len() > 1 {
        let (left, right) = numbers.split_at_mut(numbers.len() / 2);
        transform(left);
        transform(right);
        for (left, right) in left.iter_mut().zip(right) {
            (*left, *right) = (*left + *right, *left - *right);
        }
    }
}

fn sum(terms: &[f32]) -> f64 {
    let (whole, rest) = terms.split_at(terms.len() / 16 * 16);
    let side = |i| {
        whole
            .iter()
            .skip(i)
            .step_by(16)
            .fold(0.0, |sum, term| sum + term)
    };
    let sums: Vec<f32> = (0..16).map(side).collect();
    let all = rest.iter().chain(&sums);
    all.fold(0.0, |sum, term| sum + f64::from(*term))
}

impl Dense {
    /// Section 4.
    pub(crate) fn decode(bytes: &mut Bytes<'_>) -> Self {
        let dimensions = bytes.u16();
        let measure = bytes.u32();
        let width = (measure == 1).then(|| f64::from_bits(bytes.u64()));
        assert!(measure < 2 && dimensions > 1);
        assert!(width.is_none_or(|width| (1e-6..=1e6).contains(&(width / 4.0))));
        Self { dimensions, width }
    }

    /// Section 5.8.
    pub(crate) fn append_to(self, bytes: &mut Vec<u8>) {
        bytes.push(if self.width.is_some() { 22 } else { 21 });
        bytes.extend(self.dimensions.to_le_bytes());
        bytes.extend(self.width.iter().flat_map(|width| width.to_le_bytes()));
    }

    pub(crate) fn decode_vector(self, bytes: &mut Bytes<'_>, bits: u8) -> Vec<f32> {
        let count = usize::from(self.dimensions);
        let length = count * usize::from(bits / 8) + if bits == 8 { 2 } else { 0 };
        let stored = bytes.take(length);
        let vector: Vec<f32> = match bits {
            32 => {
                let words = stored.chunks(4).map(|word| word.try_into().unwrap());
                words.map(f32::from_le_bytes).collect()
            }
            16 => {
                let words = stored.chunks(2).map(|word| word.try_into().unwrap());
                words
                    .map(|word| half(u16::from_le_bytes(word)) as f32)
                    .collect()
            }
            _ => {
                let exponent = i16::from_le_bytes([stored[0], stored[1]]);
                let step = power_of_two(exponent.into());
                let steps = stored[2..].iter().map(|byte| f64::from(*byte as i8));
                steps.map(|steps| (steps * step) as f32).collect()
            }
        };
        let is_allowed = |x: &f32| x.is_finite() && (*x != 0.0 || x.is_sign_positive());
        assert!(vector.iter().all(is_allowed));
        assert_eq!(encode(&vector, bits), stored);
        vector
    }

    fn squares(vector: &[f32]) -> f64 {
        let wide = vector.iter().map(|x| f64::from(*x));
        wide.fold(0.0, |sum, x| sum + x * x)
    }

    /// Rounds a vector to this number of bits, or to none if vectors are not kept.
    pub(crate) fn rounded(self, vector: &[f32], bits: u8) -> Vec<f32> {
        let length = Self::squares(vector).sqrt();
        let scaled = vector.iter().map(|x| match self.width {
            None => (f64::from(*x) / length) as f32,
            Some(_) => *x,
        });
        let scaled: Vec<f32> = scaled.collect();
        let step = power_of_two(exponent(&scaled));
        let rounded = scaled.iter().map(|x| match bits {
            8 => ((f64::from(*x) / step).round_ties_even() * step) as f32,
            16 => half(nearest_half(*x)) as f32,
            _ => *x,
        });
        rounded.map(|x| if x == 0.0 { 0.0 } else { x }).collect()
    }

    /// The values of a rounded vector.
    pub(crate) fn values(self, seed: u64, count: u16, vector: &[f32]) -> Vec<u32> {
        let n = usize::from(self.dimensions).next_power_of_two().max(256);
        let (signs, shifts) = (derive(seed, 8), derive(seed, 9));
        let scale = self.width.map_or(1.0, |width| 1.0 / width / n as f64);
        let mut values = Vec::new();
        for block in 0..usize::from(count).div_ceil(n) {
            let padded = vector.iter().copied().chain(std::iter::repeat(0.0));
            let mut v: Vec<f64> = padded.take(n).map(|x| f64::from(x) * scale).collect();
            for r in 0..3 {
                for (j, v) in v.iter_mut().enumerate() {
                    let p = ((3 * block + r) * n + j) as u64;
                    if derive(signs, p / 64) >> (p % 64) & 1 == 1 {
                        *v = -*v;
                    }
                }
                transform(&mut v);
            }
            values.extend(v.iter().enumerate().map(|(j, v)| {
                let shift = derive(shifts, (block * n + j) as u64) >> 11;
                let shifted = v + shift as f64 / power_of_two(53);
                match self.width {
                    None => u32::from(*v >= 0.0),
                    Some(_) => shifted.floor().rem_euclid(65_536.0) as u32,
                }
            }));
        }
        values.truncate(count.into());
        values
    }

    /// The similarity of two rounded vectors.
    fn similarity(self, a: &[f32], b: &[f32]) -> f64 {
        let product =
            |a: &[f32], b: &[f32]| sum(&a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<f32>>());
        let differences = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
        match self.width {
            _ if a == b => 1.0,
            None => (product(a, b) / (product(a, a) * product(b, b)).sqrt()).clamp(0.0, 1.0),
            Some(_) => 1.0 / (1.0 + sum(&differences.collect::<Vec<f32>>()).sqrt()),
        }
    }
}

/// Components one by one, or whole numbers as a range.
fn components(text: &str) -> Vec<f32> {
    match text.split_once(" to ") {
        Some((first, last)) => {
            let (first, last) = (number(first.trim()), number(last));
            (first..=last).map(|number| number as f32).collect()
        }
        None => text
            .split_whitespace()
            .map(|x| x.parse().unwrap())
            .collect(),
    }
}

/// Parses `cosine`, or `distance` and a number.
fn measured(text: &str, dimensions: usize) -> Dense {
    let distance: Option<f64> = text.strip_prefix("distance ").map(|it| it.parse().unwrap());
    Dense {
        dimensions: dimensions.try_into().unwrap(),
        width: distance.map(|distance| 4.0 * distance),
    }
}

fn schema(dense: Dense, bits: u8, seed: u64) -> Schema {
    let vector = vector_of(dense, 262, bits).banding(1, 1);
    Schema::builder().vector(vector).seed(seed).build().unwrap()
}

#[test]
fn values_of_vectors_follow_the_specification() {
    check("vectors", |input| {
        let (settings, vector) = input.split_once(": ").unwrap();
        let [measure, bits, seed] = settings.split(", ").collect::<Vec<_>>()[..] else {
            panic!("{settings}");
        };
        let (vector, seed) = (components(vector), number(seed));
        let bits = number(bits.trim_end_matches(" bits")) as u8;
        let dense = measured(measure, vector.len());
        let rounded = dense.rounded(&vector, bits);
        let (values, stored) = (dense.values(seed, 262, &rounded), encode(&rounded, bits));
        let schema = schema(dense, bits, seed);
        let found = schema.sketcher().vector(&vector).unwrap();
        assert_eq!(found.minhash().unwrap(), values, "{input}");
        assert_eq!(found.vector().unwrap(), rounded, "{input}");
        let bytes = Codec::new(&schema).unwrap().encode(&found).unwrap();
        assert!(bytes.ends_with(&stored), "{input}");
        let value_bits = if dense.width.is_some() { 16 } else { 1 };
        assert!(
            values
                .iter()
                .all(|value| minhash::low_bits(*value, value_bits) == *value)
        );
        let shown = values[..6].iter().chain(&values[256..]);
        let shown: Vec<String> = shown.map(|value| format!("{value:x}")).collect();
        format!(
            "{}; {}",
            shown.join(" "),
            hex(&stored[..stored.len().min(8)])
        )
    });
}

#[test]
fn similarities_of_vectors_follow_the_specification() {
    check("vector-similarities", |input| {
        let (measure, vectors) = input.split_once(": ").unwrap();
        let vectors: Vec<Vec<f32>> = vectors.split("; ").map(components).collect();
        let dense = measured(measure, vectors[0].len());
        let schema = schema(dense, 32, 1);
        let found: Vec<_> = vectors
            .iter()
            .map(|it| schema.sketcher().vector(it).unwrap())
            .collect();
        let [a, b] = [0, 1].map(|i| dense.rounded(&vectors[i], 32));
        let (a_set, b_set) = (found[0].exact_set().unwrap(), found[1].exact_set().unwrap());
        let kind = schema.minhash().unwrap().kind();
        let own = dense.similarity(&a, &b);
        assert_eq!(
            a_set.similarity_from(0.0, b_set, kind).unwrap(),
            own,
            "{input}"
        );
        format!("{:016x}", own.to_bits())
    });
}
