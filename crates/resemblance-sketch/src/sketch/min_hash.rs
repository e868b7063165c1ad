//! MinHash of any kind.

use super::bottom_k::{BottomK, BottomKState};
use super::minhash::{MinHasher, Minima};
use super::one_pass::{OnePass, OnePassState};
use super::recipe::{MinHashKind, MinHashRecipe};
use super::simhash::WeightedHash;
use super::values::MinHashValues;
use super::weighted::{WeightProcess, WeightedMinHasher};

/// The MinHash functions of a recipe.
#[derive(Debug)]
pub(super) enum AnyMinHasher {
    Functions(MinHasher),
    OnePass(OnePass),
    BottomK {
        sketch: BottomK,
        max_values: u16,
    },
    Weighted(WeightedMinHasher),
    /// Values that the caller provides, or that a [`VectorHasher`](super::vector::VectorHasher) makes.
    Elsewhere,
}

/// The state of an [`AnyMinHasher`] after some features, without its functions.
pub(super) enum MinHashState<'a> {
    Minima(&'a MinHasher, Minima),
    OnePass(&'a OnePass, OnePassState),
    BottomK(&'a BottomK, BottomKState, u16),
    /// Values are computed only when all features and weights are known, or never.
    Deferred,
}

impl AnyMinHasher {
    pub(super) fn new(seed: u64, recipe: MinHashRecipe) -> Self {
        let values = recipe.values;
        let weighted = |process| Self::Weighted(WeightedMinHasher::new(process, seed, values));
        match recipe.kind {
            MinHashKind::Functions(permutations) => {
                Self::Functions(MinHasher::new(seed, values, permutations))
            }
            MinHashKind::OnePass => Self::OnePass(OnePass::new(seed, values)),
            MinHashKind::BottomK => Self::BottomK {
                sketch: BottomK::new(seed, values),
                max_values: values,
            },
            MinHashKind::Weighted => weighted(WeightProcess::Steps),
            MinHashKind::Probability => weighted(WeightProcess::Rates),
            MinHashKind::External | MinHashKind::Vector(_) => Self::Elsewhere,
        }
    }

    /// Returns true if only [`weighted`](Self::weighted) makes values.
    pub(super) fn needs_weights(&self) -> bool {
        matches!(self, Self::Weighted(_))
    }

    /// Returns the state of a document without features.
    pub(super) fn state(&self) -> MinHashState<'_> {
        match self {
            Self::Functions(functions) => MinHashState::Minima(functions, functions.minima()),
            Self::OnePass(sketch) => MinHashState::OnePass(sketch, sketch.state()),
            Self::BottomK { sketch, max_values } => {
                MinHashState::BottomK(sketch, sketch.state(), *max_values)
            }
            Self::Weighted(_) | Self::Elsewhere => MinHashState::Deferred,
        }
    }

    /// Returns the values of distinct features with positive weights. Kinds without weights use the
    /// set of features.
    pub(super) fn weighted(&self, features: &[WeightedHash]) -> MinHashValues {
        if let Self::Weighted(sketch) = self {
            return MinHashValues::Samples(sketch.values(features));
        }
        let mut state = self.state();
        let hashes: Vec<u64> = features.iter().map(|&(hash, _)| hash).collect();
        state.update(&hashes);
        state.finish()
    }
}

impl MinHashState<'_> {
    /// Adds features. Neither order nor repeats change the result.
    pub(super) fn update(&mut self, hashes: &[u64]) {
        let each = hashes.iter().copied();
        match self {
            Self::Minima(functions, minima) => functions.update(minima, hashes),
            Self::OnePass(sketch, state) => sketch.update(state, each),
            Self::BottomK(sketch, state, _) => sketch.update(state, each),
            Self::Deferred => {}
        }
    }

    /// Returns the values of the added features, or no values if they are deferred.
    pub(super) fn finish(self) -> MinHashValues {
        match self {
            Self::Minima(_, minima) => MinHashValues::Minima(minima.values()),
            Self::OnePass(sketch, state) => MinHashValues::Minima(sketch.values(state)),
            Self::BottomK(sketch, state, max_count) => {
                let hashes = sketch.values(&state);
                MinHashValues::Smallest { max_count, hashes }
            }
            Self::Deferred => MinHashValues::Minima(Vec::new()),
        }
    }
}
