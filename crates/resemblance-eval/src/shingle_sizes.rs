//! Jaccard similarity by the size of shingles, with and without spaces.

use std::collections::{BTreeMap, BTreeSet};

use resemblance::exact::jaccard_of_sorted;
use resemblance::invariant::{at, at_mut};
use resemblance::{Error, Result, Schema, SimHash, Text};

use super::chart::{Chart, ChartAxis, ChartMark};
use super::compared::ComparedPairs;
use super::evaluation_charts::NamedChart;
use super::sample::DocumentSample;

/// The maximum number of pairs of each kind to average.
const PAIRS: usize = 100;

/// The numbers of characters in a shingle.
const SIZES: [u16; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20];

/// Pairs of documents with about the same similarity, by their keys.
#[derive(Debug)]
struct PairGroup {
    name: String,
    pairs: Vec<[Vec<u8>; 2]>,
}

/// Pairs of a sample to compare by the size of shingles: near-duplicates, other pairs that share
/// something, and arbitrary pairs.
#[derive(Debug)]
pub struct ShingleSizes(Vec<PairGroup>);

impl ShingleSizes {
    /// Selects the pairs from those that reach a floor.
    ///
    /// # Errors
    ///
    /// [`Error::Bug`] if the pairs belong to another sample.
    pub fn choose(
        sample: &DocumentSample,
        found: &ComparedPairs,
        threshold: f64,
        floor: f64,
    ) -> Result<Self> {
        let chosen = |is_chosen: &dyn Fn(f64) -> bool| {
            let pairs = found
                .iter()
                .filter(|(_, _, similarity)| is_chosen(*similarity));
            let indexes = pairs.take(PAIRS).map(|(a, b, _)| (a, b));
            indexes.collect::<Vec<(usize, usize)>>()
        };
        // Documents that are far apart in the corpus, each in one pair.
        let half = sample.len() / 2;
        let step = half.div_ceil(PAIRS).max(1);
        let others = (0..half).step_by(step).map(|a| (a, a + half)).collect();
        let key = |document| at(&sample.keys, document).map(|key| key.to_vec());
        let mut groups = Vec::new();
        for (name, indexes) in [
            (format!("J ≥ {threshold}"), chosen(&|j| j >= threshold)),
            (
                format!("J of {floor} to {threshold}"),
                chosen(&|j| j < threshold),
            ),
            ("any two".to_owned(), others),
        ] {
            let keyed = indexes.into_iter().map(|(a, b)| Ok([key(a)?, key(b)?]));
            let pairs = keyed.collect::<Result<Vec<_>>>()?;
            if !pairs.is_empty() {
                groups.push(PairGroup { name, pairs });
            }
        }
        Ok(Self(groups))
    }

    /// Returns the keys of the documents in the pairs.
    #[must_use]
    pub fn keys(&self) -> BTreeSet<Vec<u8>> {
        let pairs = self.0.iter().flat_map(|group| &group.pairs);
        pairs.flatten().cloned().collect()
    }

    /// Cuts texts, given by key, into shingles of many sizes, and draws the mean similarities.
    /// Calls `on_text` before each text, and stops if that returns an error.
    ///
    /// # Errors
    ///
    /// The errors of sketching, and those of `on_text`.
    pub fn chart<E: From<Error>>(
        &self,
        texts: &BTreeMap<Vec<u8>, String>,
        mut on_text: impl FnMut() -> Result<(), E>,
    ) -> Result<NamedChart, E> {
        let mut means = vec![[Vec::new(), Vec::new()]; self.0.len()];
        for size in SIZES {
            let kept = Text::characters(size);
            for (place, text) in [kept, kept.remove_spaces()].into_iter().enumerate() {
                // A schema must have signatures, although none are made here.
                let schema = Schema::builder().text(text).simhash(SimHash::bits64());
                let cutter = schema.build().map_err(Error::from)?.sketcher();
                let mut features = BTreeMap::new();
                for (key, text) in texts {
                    on_text()?;
                    features.insert(key, cutter.feature_hashes(text).map_err(Error::from)?);
                }
                for (group, means) in self.0.iter().zip(&mut means) {
                    let cut = group.pairs.iter().filter_map(|[a, b]| {
                        let pair = features.get(a).zip(features.get(b));
                        pair.map(|(a, b)| jaccard_of_sorted(a, b))
                    });
                    let similarities: Vec<f64> = cut.collect();
                    let mean = similarities.iter().sum::<f64>() / similarities.len() as f64;
                    at_mut(means, place)?.push((f64::from(size), mean));
                }
            }
        }
        Ok(("shingle-sizes.svg", self.draw(means)))
    }

    fn draw(&self, means: Vec<[Vec<(f64, f64)>; 2]>) -> Chart {
        // Leaves room for the labels of the lines.
        let [.., last] = SIZES;
        let mut chart = Chart::new(
            "Similarity by the size of shingles",
            ChartAxis::linear("characters in a shingle", 0.0, 1.5 * f64::from(last)),
            ChartAxis::share("mean exact Jaccard similarity"),
        );
        for (group, [kept, removed]) in self.0.iter().zip(means) {
            let name = &group.name;
            let count = match group.pairs.len() {
                1 => "1 pair".to_owned(),
                count => format!("{count} pairs"),
            };
            chart.add(
                format!("{name}, {count}, spaces kept"),
                kept,
                ChartMark::Both,
            );
            chart.add(format!("{name}, spaces removed"), removed, ChartMark::Line);
        }
        chart
    }
}
