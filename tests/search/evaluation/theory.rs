//! The probability that a pair is returned, exactly.

use resemblance::schema::MinHashSchema;

/// The conditions under which a pair is returned: it must agree in all rows of some band, and in at
/// least `least_equal` of all values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) values: usize,
    pub(crate) bands: usize,
    pub(crate) rows: usize,
    pub(crate) least_equal: usize,
}

impl Rule {
    pub(crate) fn of(schema: MinHashSchema) -> Self {
        let values = usize::from(schema.values());
        let reaches = |equal: &usize| *equal as f64 / values as f64 >= schema.threshold();
        Self {
            values,
            bands: schema.bands().into(),
            rows: schema.rows().into(),
            least_equal: (0..=values).find(reaches).unwrap(),
        }
    }

    /// P(candidate and estimate at the threshold or above) where each value agrees, independently,
    /// with probability `similarity`: P(enough equal) less P(enough equal and no band whole).
    pub(crate) fn probability(self, similarity: f64) -> f64 {
        let mut broken_band = binomial(self.rows, similarity);
        broken_band.pop();
        let mut no_band = vec![1.0];
        for _ in 0..self.bands {
            no_band = convolve(&no_band, &broken_band);
        }
        let rest = self.values - self.bands * self.rows;
        let missed = convolve(&no_band, &binomial(rest, similarity));
        let enough = |counts: &[f64]| counts.iter().skip(self.least_equal).sum::<f64>();
        (enough(&binomial(self.values, similarity)) - enough(&missed)).clamp(0.0, 1.0)
    }
}

/// The distribution of the number of successes in `trials`.
fn binomial(trials: usize, success: f64) -> Vec<f64> {
    let mut counts = vec![1.0];
    for _ in 0..trials {
        counts = convolve(&counts, &[1.0 - success, success]);
    }
    counts
}

fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; a.len() + b.len() - 1];
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            sums[i + j] += a * b;
        }
    }
    sums
}

#[test]
fn group_recall_equals_the_sum_over_all_outcomes() {
    // Two bands of two rows and two values in no band: all 64 outcomes, summed.
    for least_equal in 0..=6 {
        let rule = Rule {
            values: 6,
            bands: 2,
            rows: 2,
            least_equal,
        };
        for similarity in [0.0_f64, 0.3, 0.8, 1.0] {
            let returned = (0..64_u32).filter(|outcome| {
                let band = outcome & 0b11 == 0b11 || outcome & 0b1100 == 0b1100;
                band && outcome.count_ones() as usize >= least_equal
            });
            let sum: f64 = returned
                .map(|outcome| {
                    let equal = outcome.count_ones() as i32;
                    similarity.powi(equal) * (1.0 - similarity).powi(6 - equal)
                })
                .sum();
            let found = rule.probability(similarity);
            assert!((found - sum).abs() < 1e-12, "{rule:?} {similarity}");
        }
    }
}

#[test]
fn default_rule_is_met_by_the_theory() {
    let schema = crate::evaluation::default_schema().build().unwrap();
    let rule = Rule::of(schema.minhash().unwrap());
    assert_eq!(
        (rule.values, rule.bands, rule.rows, rule.least_equal),
        (128, 13, 7, 103)
    );
    assert_eq!(rule.probability(1.0), 1.0);
    // Hardly any pair below 0.5 is returned, so the truth need not list them.
    assert!(rule.probability(0.5) < 1e-11);
}
