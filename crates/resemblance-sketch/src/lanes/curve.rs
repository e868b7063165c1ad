//! Agreement curves: how probable it is that two documents agree in a hash value, for each
//! similarity. Bands, recall and estimates of every kind of values follow from its curve.

use std::f64::consts::{PI, SQRT_2};

use serde::{Deserialize, Serialize};

/// The agreement curve of a family of hash functions.
///
/// ```
/// use resemblance_sketch::lanes::AgreementCurve;
/// let curve = AgreementCurve::Angle;
/// assert!((curve.agreement(0.5) - 2.0 / 3.0).abs() < 1e-12); // an angle of 60 degrees
/// assert!((curve.similarity(2.0 / 3.0) - 0.5).abs() < 1e-12);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AgreementCurve {
    /// MinHash: two documents agree with the probability of their similarity (Broder 1997).
    Identity,
    /// Signs of random projections: vectors at an angle θ agree with the probability 1 − θ / π, and
    /// the similarity is cos θ (Charikar 2002).
    Angle,
    /// Random projections cut into intervals of a width (Datar, Immorlica, Indyk and Mirrokni 2004,
    /// for the normal distribution). The similarity is 1 / (1 + d) for vectors at a Euclidean
    /// distance of d.
    Interval(IntervalWidth),
}

/// The width of the intervals of projections, a positive finite number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IntervalWidth(u64);

impl IntervalWidth {
    /// Returns the width as a value that can be compared and stored, or `None` unless it is
    /// positive and finite.
    #[must_use]
    pub fn new(width: f64) -> Option<Self> {
        (width > 0.0 && width.is_finite()).then(|| Self(width.to_bits()))
    }

    /// Returns a width that a schema checks when it is built or read.
    pub(crate) fn unchecked(width: f64) -> Self {
        Self(width.to_bits())
    }

    /// The width.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// Returns the similarity of vectors at a Euclidean distance, 0 to 1.
pub(crate) fn similarity_at(distance: f64) -> f64 {
    1.0 / (1.0 + distance)
}

/// Returns the Euclidean distance at which vectors have this similarity.
pub(crate) fn distance_at(similarity: f64) -> f64 {
    1.0 / similarity - 1.0
}

impl AgreementCurve {
    /// Returns the name of values with this curve, for messages.
    #[must_use]
    pub fn value_name(self) -> &'static str {
        match self {
            Self::Identity => "MinHash values",
            Self::Angle | Self::Interval(_) => "values of a vector",
        }
    }

    /// Returns the probability that two documents of this similarity agree in a value.
    #[must_use]
    pub fn agreement(self, similarity: f64) -> f64 {
        match self {
            Self::Identity => similarity,
            Self::Angle => 1.0 - similarity.clamp(-1.0, 1.0).acos() / PI,
            Self::Interval(width) => interval(width.get() / distance_at(similarity)),
        }
    }

    /// Returns the similarity at which documents agree in a value with this probability.
    #[must_use]
    pub fn similarity(self, agreement: f64) -> f64 {
        match self {
            Self::Identity => agreement,
            Self::Angle => (PI * (1.0 - agreement)).cos(),
            Self::Interval(_) if agreement >= 1.0 => 1.0,
            Self::Interval(_) if agreement <= 0.0 => 0.0,
            Self::Interval(width) => {
                // Bisects the logarithm of width by distance, in which the curve rises.
                let (mut low, mut high) = (-50.0_f64, 50.0_f64);
                for _ in 0..60 {
                    let middle = (low + high) / 2.0;
                    if interval(middle.exp()) < agreement {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                similarity_at(width.get() / high.exp())
            }
        }
    }

    /// Returns the similarity that this number of equal values among `count` estimates.
    pub(crate) fn estimate(self, equal: usize, count: usize) -> f64 {
        let count = count.max(1);
        match self {
            // Rounded once less than `similarity`: two thirds estimate a cosine of 0.5, and meet that
            // bound.
            Self::Angle => (PI * (count.saturating_sub(equal) as f64 / count as f64)).cos(),
            curve => curve.similarity(equal as f64 / count as f64),
        }
    }

    /// Returns the variance of the estimate from this number of independent values, to first
    /// order, for curves other than the identity.
    pub(crate) fn variance(self, similarity: f64, count: u16) -> f64 {
        const STEP: f64 = 1e-5;
        let (below, above) = ((similarity - STEP).max(STEP), (similarity + STEP).min(1.0));
        let slope = (self.agreement(above) - self.agreement(below)) / (above - below);
        let agree = self.agreement(similarity);
        agree * (1.0 - agree) / f64::from(count) / (slope * slope)
    }
}

/// Returns the probability that two projections with a normally distributed difference fall into
/// the same interval, for this ratio of the interval's width to the difference's deviation.
fn interval(ratio: f64) -> f64 {
    if ratio == f64::INFINITY {
        return 1.0;
    }
    let below = (-ratio * ratio / 2.0).exp_m1();
    let within = 1.0 - erfc(ratio / SQRT_2);
    (within + below * (2.0 / PI).sqrt() / ratio).clamp(0.0, 1.0)
}

/// Returns the complementary error function of a number that is not negative. Its relative error is
/// below 1.2 × 10⁻⁷ (Press et al., *Numerical Recipes*, section 6.2).
fn erfc(number: f64) -> f64 {
    const TERMS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let place = 1.0 / (1.0 + number / 2.0);
    let series = TERMS.iter().rev().fold(0.0, |sum, term| sum * place + term);
    place * (series - number * number).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_inverted_and_rise() {
        let width = IntervalWidth::new(2.0).unwrap();
        for curve in [
            AgreementCurve::Identity,
            AgreementCurve::Angle,
            AgreementCurve::Interval(width),
        ] {
            let mut last = -1.0;
            for step in 1..=100 {
                let similarity = f64::from(step) / 100.0;
                let agreement = curve.agreement(similarity);
                assert!(agreement > last, "{curve:?} {similarity}");
                let found = curve.similarity(agreement);
                // The error function has seven digits.
                assert!(
                    (found - similarity).abs() < 1e-4,
                    "{curve:?} {similarity} {found}"
                );
                last = agreement;
            }
            assert_eq!(curve.agreement(1.0), 1.0);
        }
    }

    #[test]
    fn shares_of_the_decimal_cosines_estimate_them_or_more() {
        let angle = AgreementCurve::Angle;
        for third in 1..200 {
            assert!(angle.estimate(2 * third, 3 * third) >= 0.5);
            assert!(angle.estimate(third, 2 * third) >= 0.0);
        }
        assert_eq!((angle.estimate(7, 7), angle.estimate(0, 7)), (1.0, -1.0));
    }

    /// The integral of Datar et al., section 3.2, by Simpson's rule.
    #[test]
    fn interval_curve_is_that_of_the_integral() {
        for ratio in [0.1, 0.5, 1.0, 4.0, 20.0] {
            let density = |t: f64| (2.0 / PI).sqrt() * (-t * t / 2.0).exp() * (1.0 - t / ratio);
            let step = ratio / 10_000.0;
            let sum: f64 = (0..=10_000)
                .map(|point| {
                    let weight = match point {
                        0 | 10_000 => 1.0,
                        odd if odd % 2 == 1 => 4.0,
                        _ => 2.0,
                    };
                    weight * density(f64::from(point) * step)
                })
                .sum();
            let expected = sum * step / 3.0;
            assert!((interval(ratio) - expected).abs() < 1e-6, "{ratio}");
        }
        assert_eq!(IntervalWidth::new(0.0), None);
        assert_eq!(IntervalWidth::new(f64::NAN), None);
    }
}
