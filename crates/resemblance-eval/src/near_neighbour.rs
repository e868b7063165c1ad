//! The bands that the theory of near neighbours prescribes.

use resemblance::{Error, Result};

/// The maximum number of bands. An `f64` and a `u32` hold it exactly.
const MAX_BANDS: f64 = 4_294_967_295.0;

/// The bands that find the near neighbours of a query according to theory: Indyk and Motwani,
/// *Approximate Nearest Neighbors: Towards Removing the Curse of Dimensionality* (STOC 1998), theorem 5.
/// The theory assumes a family of hash functions that agree with probability p₁ for near documents,
/// and with at most p₂ for far ones.
///
/// ```
/// use resemblance_eval::near_neighbour_plan;
/// let plan = near_neighbour_plan(0.5, 0.25, 1_024)?;
/// assert_eq!((plan.rho, plan.rows, plan.bands), (0.5, 5, 32));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct NearNeighbourPlan {
    /// ρ = ln (1 / p₁) / ln (1 / p₂). The time of a query grows as n to the power ρ.
    pub rho: f64,
    /// k = ln n / ln (1 / p₂), rounded up: the number of rows in a band. Among n far documents, at
    /// most one is expected in a bucket.
    pub rows: u32,
    /// l: the smallest number of bands that finds a near document with probability 1 − 1 / e. Without
    /// rounding it is at most n^ρ = p₁⁻ᵏ; rounding k up needs at most 1 / p₁ times as many.
    pub bands: u32,
    /// The probability 1 − (1 − p₁ᵏ)ˡ that these bands find a near document, at least 1 − 1 / e.
    pub probability: f64,
    /// The maximum expected number of far candidates of a query, l n p₂ᵏ.
    pub candidates: f64,
}

/// Plans bands for `documents` documents. `near` and `far` are the probabilities that a value
/// agrees for near and for far documents. For MinHash they are similarities; for SimHash they are 1
/// − distance / bits.
///
/// # Errors
///
/// [`Error::InvalidParameter`] unless 0 < `far` < `near` < 1; if there are no documents; or if
/// there would be more than 2³² bands.
///
/// ```
/// use resemblance_eval::near_neighbour_plan;
/// let plan = near_neighbour_plan(0.8, 0.05, 1_000_000)?;
/// assert_eq!((plan.rows, plan.bands), (5, 3));
/// assert!((plan.rho - 0.0745).abs() < 1e-4);
/// // Half the similarity needs many more bands.
/// assert_eq!(near_neighbour_plan(0.4, 0.05, 1_000_000)?.bands, 98);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn near_neighbour_plan(near: f64, far: f64, documents: u64) -> Result<NearNeighbourPlan> {
    if !(near > 0.0 && near < 1.0) {
        return Err(Error::invalid(
            "near",
            near,
            "a probability above 0 and below 1",
        ));
    }
    if !(far > 0.0 && far < near) {
        let expected = format!("a probability above 0 and below {near}, that of near documents");
        return Err(Error::invalid("far", far, expected));
    }
    if documents == 0 {
        return Err(Error::invalid("documents", documents, "at least 1"));
    }
    let n = documents as f64;
    let rho = near.ln() / far.ln();
    let rows = (n.ln() / -far.ln()).ceil().max(1.0);
    // The theorem takes l = n^ρ, which is p₁⁻ᵏ only before k is rounded: a band of the rounded k matches
    // less often, so l follows from (1 − p₁ᵏ)ˡ ≤ 1 / e.
    let band_differs = (-near.powf(rows)).ln_1p();
    let bands = (-1.0 / band_differs).ceil();
    if rows.max(bands) > MAX_BANDS {
        let expected = format!("a greater distance from {near}: {bands:.0} bands would be needed");
        return Err(Error::invalid("far", far, expected));
    }
    Ok(NearNeighbourPlan {
        rho,
        rows: rows as u32,
        bands: bands as u32,
        probability: -(bands * band_differs).exp_m1(),
        candidates: bands * n * far.powf(rows),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// According to Indyk and Motwani, ρ is at most 1 / c for Hamming distance, radius r and factor
    /// c.
    #[test]
    fn rho_is_within_the_bound_of_the_theory() {
        for dimensions in [64.0, 128.0, 1_000.0] {
            for radius in [1.0, 3.0, 6.0] {
                for factor in [1.5, 2.0, 4.0] {
                    let near = 1.0 - radius / dimensions;
                    let far = 1.0 - factor * radius / dimensions;
                    let plan = near_neighbour_plan(near, far, 1_000_000).unwrap();
                    assert!(plan.rho <= 1.0 / factor, "{plan:?}");
                    assert!(plan.rho > 0.8 / factor, "{plan:?}");
                }
            }
        }
    }

    /// The probability is computed here by multiplication, the plan uses logarithms.
    #[test]
    fn the_fewest_bands_that_keep_the_promise_are_planned() {
        let promised = 1.0 - (-1.0_f64).exp();
        for documents in [1, 2, 10, 1_000, 46_654, 1_000_000, 1_000_000_000] {
            for near in [0.1, 0.3, 0.4, 0.5, 0.632, 0.64, 0.8, 0.9, 0.95, 0.99] {
                for ratio in [0.02, 0.1, 0.25, 0.5, 0.7] {
                    let far = near * ratio;
                    let plan = near_neighbour_plan(near, far, documents).unwrap();
                    let band = near.powi(plan.rows as i32);
                    let found = |bands: u32| 1.0 - (1.0 - band).powf(f64::from(bands));
                    // The power of a rounded number deviates by an epsilon a factor.
                    let rounding = f64::from(plan.bands) * f64::EPSILON;
                    assert!(
                        found(plan.bands) >= promised - rounding,
                        "{near} {far} {plan:?}"
                    );
                    assert!(
                        found(plan.bands - 1) < promised + rounding,
                        "{near} {far} {plan:?}"
                    );
                    assert!(
                        (plan.probability - found(plan.bands)).abs() < 1e-6,
                        "{plan:?}"
                    );
                    let unrounded = (documents as f64).powf(plan.rho);
                    assert!(
                        f64::from(plan.bands) <= (unrounded / near).ceil(),
                        "{plan:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn planned_bands_meet_both_probabilities() {
        for (near, far) in [(0.8, 0.05), (0.5, 0.1), (0.3, 0.02)] {
            for documents in [1_000, 1_000_000, 1_000_000_000] {
                let plan = near_neighbour_plan(near, far, documents).unwrap();
                // The number of far documents in a bucket, also with one row less.
                let far_ones = |rows: u32| documents as f64 * far.powi(rows as i32);
                assert!(far_ones(plan.rows) <= 1.0 + 1e-9 && far_ones(plan.rows - 1) > 1.0 - 1e-9);
                assert!(plan.candidates <= f64::from(plan.bands) + 1e-6);
            }
        }
        for (near, far, documents) in [(1.0, 0.1, 9), (0.5, 0.5, 9), (0.5, 0.0, 9), (0.5, 0.1, 0)] {
            assert!(near_neighbour_plan(near, far, documents).is_err());
        }
        assert!(near_neighbour_plan(0.001, 0.000_9, u64::MAX).is_err());
    }
}
