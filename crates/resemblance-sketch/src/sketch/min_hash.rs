//! MinHash of any kind.

use super::bottom_k::{BottomK, BottomKState};
use super::minhash::{MinHasher, Minima};
use super::one_pass::{OnePass, OnePassState};
use super::recipe::{MinHashKind, MinHashRecipe};
use super::simhash::WeightedHash;
use super::values::MinHashValues;
use super::weighted::{WeightProcess, WeightedMinHasher};

/// The MinHash functions of one recipe, of the kind that it chose.
#[derive(Debug)]
pub(super) enum AnyMinHasher {
    Functions(MinHasher),
    OnePass(OnePass),
    BottomK { sketch: BottomK, max_values: u16 },
    Weighted(WeightedMinHasher),
    External,
}

/// The state of a [`AnyMinHasher`] after some features. The variant is that of the hasher.
pub(super) enum MinHashState {
    Minima(Minima),
    OnePass(OnePassState),
    BottomK(BottomKState),
    /// Nothing is computed before all features and their weights are known.
    Deferred,
}

impl AnyMinHasher {
    pub(super) fn new(seed: u64, recipe: MinHashRecipe) -> Self {
        let values = recipe.values;
        match recipe.kind {
            MinHashKind::Functions(permutations) => {
                Self::Functions(MinHasher::new(seed, values, permutations))
            }
            MinHashKind::OnePass => Self::OnePass(OnePass::new(seed, values)),
            MinHashKind::BottomK => Self::BottomK {
                sketch: BottomK::new(seed, values),
                max_values: values,
            },
            MinHashKind::Weighted => {
                Self::Weighted(WeightedMinHasher::new(WeightProcess::Steps, seed, values))
            }
            MinHashKind::Probability => {
                Self::Weighted(WeightedMinHasher::new(WeightProcess::Rates, seed, values))
            }
            MinHashKind::External => Self::External,
        }
    }

    /// Returns true if values are made by [`weighted`](Self::weighted) alone.
    pub(super) fn needs_weights(&self) -> bool {
        matches!(self, Self::Weighted(_))
    }

    /// The state of a document without features.
    pub(super) fn state(&self) -> MinHashState {
        match self {
            Self::Functions(functions) => MinHashState::Minima(functions.minima()),
            Self::OnePass(sketch) => MinHashState::OnePass(sketch.state()),
            Self::BottomK { sketch, .. } => MinHashState::BottomK(sketch.state()),
            Self::Weighted(_) | Self::External => MinHashState::Deferred,
        }
    }

    /// Takes features in. Neither order nor repeats change the result.
    pub(super) fn update(&self, state: &mut MinHashState, hashes: &[u64]) {
        let each = hashes.iter().copied();
        match (self, state) {
            (Self::Functions(functions), MinHashState::Minima(minima)) => {
                functions.update(minima, hashes);
            }
            (Self::OnePass(sketch), MinHashState::OnePass(state)) => sketch.update(state, each),
            (Self::BottomK { sketch, .. }, MinHashState::BottomK(state)) => {
                sketch.update(state, each);
            }
            (Self::Weighted(_) | Self::External, MinHashState::Deferred) => {}
            _ => debug_assert!(false, "the state of another kind"),
        }
    }

    /// The values of the features that were taken in.
    pub(super) fn finish(&self, state: MinHashState) -> MinHashValues {
        match (self, state) {
            (Self::Functions(_), MinHashState::Minima(minima)) => {
                MinHashValues::Minima(minima.values())
            }
            (Self::OnePass(sketch), MinHashState::OnePass(state)) => {
                MinHashValues::Minima(sketch.values(state))
            }
            (Self::BottomK { sketch, max_values }, MinHashState::BottomK(state)) => {
                MinHashValues::Smallest {
                    max_count: *max_values,
                    hashes: sketch.values(&state),
                }
            }
            (Self::Weighted(sketch), _) => MinHashValues::Samples(sketch.values(&[])),
            (Self::External, _) => MinHashValues::Minima(Vec::new()),
            _ => {
                debug_assert!(false, "the state of another kind");
                MinHashValues::Minima(Vec::new())
            }
        }
    }

    /// The values of distinct features with positive weights. Kinds other than weighted MinHash see the
    /// set of the features.
    pub(super) fn weighted(&self, features: &[WeightedHash]) -> MinHashValues {
        if let Self::Weighted(sketch) = self {
            return MinHashValues::Samples(sketch.values(features));
        }
        let mut state = self.state();
        let hashes: Vec<u64> = features.iter().map(|&(hash, _)| hash).collect();
        self.update(&mut state, &hashes);
        self.finish(state)
    }
}
