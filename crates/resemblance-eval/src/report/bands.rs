//! Counts pairs by similarity, and keeps samples of each band.

use resemblance::invariant::{OrBug, at_mut};
use resemblance::schema::feature_hash;
use resemblance::{DocumentId, Pair, Result, Schema};

use super::groups::Likeness;

/// The number of bands between the threshold and 1.
const BANDS: usize = 5;

/// The maximum number of distance bands.
const DISTANCE_BANDS: u32 = 6;

/// The number of steps in which similarities are counted.
const PARTS: usize = 100;

/// A pair in a band's sample.
#[derive(Debug)]
pub(super) struct SampledPair {
    pub(super) a: DocumentId,
    pub(super) b: DocumentId,
    pub(super) likeness: Likeness,
    rank: u64,
}

/// The pairs of about the same similarity.
#[derive(Debug)]
pub(super) struct PairBand {
    pub(super) name: String,
    pub(super) pairs: u64,
    /// The pairs whose ids have the lowest hashes.
    pub(super) samples: Vec<SampledPair>,
}

/// The counts of all pairs.
#[derive(Debug)]
pub struct PairBands {
    /// The number of pairs.
    pub pairs: u64,
    /// The bands, the most similar pairs last.
    pub(super) bands: Vec<PairBand>,
    /// The number of pairs for each hundredth of similarity, with those of similarity 1 last; or
    /// for each distance.
    pub(super) counts: Vec<u64>,
    /// The threshold, or `None` if pairs have only distances.
    threshold: Option<f64>,
    /// The number of distances in a band, if pairs have only distances.
    width: u32,
    samples: usize,
}

impl PairBands {
    /// Creates counts for the pairs of a schema. Each band keeps `samples` pairs.
    #[must_use]
    pub fn new(schema: &Schema, samples: usize) -> Self {
        let threshold = schema.minhash().map(|minhash| minhash.threshold());
        let max_distance = schema.simhash().map_or(0, |s| u32::from(s.max_distance()));
        let bands = DISTANCE_BANDS.min(max_distance + 1);
        let width = (max_distance + 1).div_ceil(bands);
        let (names, counts) = match threshold {
            Some(threshold) => {
                let edge = |band: usize| threshold + (1.0 - threshold) * band as f64 / BANDS as f64;
                let below = format!("similarity below {threshold:.3}");
                let between = (0..BANDS).map(|band| {
                    format!(
                        "similarity {:.3} to below {:.3}",
                        edge(band),
                        edge(band + 1)
                    )
                });
                let names: Vec<String> = std::iter::once(below)
                    .chain(between)
                    .chain(["similarity 1".to_owned()])
                    .collect();
                (names, PARTS + 1)
            }
            None => {
                let firsts = (0..=max_distance).step_by(width as usize);
                let name = |first: u32| match (first + width - 1).min(max_distance) {
                    last if last == first => format!("distance {first}"),
                    last => format!("distance {first} to {last}"),
                };
                (firsts.map(name).collect(), max_distance as usize + 1)
            }
        };
        let band = |name| PairBand {
            name,
            pairs: 0,
            samples: Vec::new(),
        };
        Self {
            pairs: 0,
            bands: names.into_iter().map(band).collect(),
            counts: vec![0; counts],
            threshold,
            width,
            samples,
        }
    }

    /// Returns true if pairs have similarities.
    pub(super) fn are_by_similarity(&self) -> bool {
        self.threshold.is_some()
    }

    /// Counts a pair that represents `weight` pairs.
    ///
    /// # Errors
    ///
    /// Only [`Error::Bug`](resemblance::Error::Bug), if a different schema compared the pair.
    pub fn add(&mut self, pair: &Pair, weight: u64) -> Result<()> {
        self.pairs += weight;
        let (band, part) = self.place(pair)?;
        *at_mut(&mut self.counts, part)? += weight;
        let band = at_mut(&mut self.bands, band)?;
        band.pairs += weight;
        let ids = [pair.a.get().to_le_bytes(), pair.b.get().to_le_bytes()];
        let sample = SampledPair {
            a: pair.a,
            b: pair.b,
            likeness: Likeness::of(pair.similarity, pair.distance)?,
            rank: feature_hash(ids.as_flattened()),
        };
        // The result must not depend on the order in which threads find pairs.
        let order = |sample: &SampledPair| (sample.rank, sample.a, sample.b);
        let place = band
            .samples
            .partition_point(|other| order(other) < order(&sample));
        if place < self.samples {
            band.samples.insert(place, sample);
            band.samples.truncate(self.samples);
        }
        Ok(())
    }

    /// Returns the index of a pair's band, and that of its count.
    fn place(&self, pair: &Pair) -> Result<(usize, usize)> {
        Ok(match (self.threshold, pair.similarity) {
            (Some(threshold), Some(similarity)) => {
                let part = (similarity * PARTS as f64 + 1e-9).floor() as usize;
                let above = (similarity - threshold) / (1.0 - threshold) * BANDS as f64;
                let band = match similarity {
                    1.0.. => BANDS + 1,
                    _ if similarity < threshold => 0,
                    _ => 1 + (above.floor() as usize).min(BANDS - 1),
                };
                // Only similarity 1 counts as 1.
                let most = if similarity >= 1.0 { PARTS } else { PARTS - 1 };
                (band, part.min(most))
            }
            _ => {
                let distance = pair.distance.or_bug("a pair with a distance")?;
                ((distance / self.width) as usize, distance as usize)
            }
        })
    }
}
