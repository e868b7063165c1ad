//! The hashing of one kind of MinHash, whichever it is.

use crate::sketch::bottom_k::{BottomK, BottomKState};
use crate::sketch::minhash::{MinHasher, Minima};
use crate::sketch::one_pass::{OnePass, OnePassState};
use crate::sketch::recipe::{MinHashKind, MinHashRecipe};
use crate::sketch::simhash::Weighted;
use crate::sketch::values::Values;
use crate::sketch::weighted::WeightedMinHasher;

/// The hash functions of one recipe.
#[derive(Debug)]
pub(crate) enum Hasher {
    Functions(MinHasher),
    OnePass(OnePass),
    BottomK { sketch: BottomK, most: u16 },
    Weighted(WeightedMinHasher),
    External,
}

/// Features as far as they have been taken in.
pub(crate) enum State {
    Minima(Minima),
    OnePass(OnePassState),
    BottomK(BottomKState),
    /// Weights are needed, which are known at the end.
    Nothing,
}

impl Hasher {
    pub(crate) fn new(seed: u64, recipe: MinHashRecipe) -> Self {
        let values = recipe.values;
        match recipe.kind {
            MinHashKind::Functions(permutations) => {
                Self::Functions(MinHasher::new(seed, values, permutations))
            }
            MinHashKind::OnePass => Self::OnePass(OnePass::new(seed, values)),
            MinHashKind::BottomK => Self::BottomK {
                sketch: BottomK::new(seed, values),
                most: values,
            },
            MinHashKind::Weighted => Self::Weighted(WeightedMinHasher::new(seed, values)),
            MinHashKind::External => Self::External,
        }
    }

    /// Whether it makes nothing of features without weights.
    pub(crate) fn needs_weights(&self) -> bool {
        matches!(self, Self::Weighted(_))
    }

    pub(crate) fn state(&self) -> State {
        match self {
            Self::Functions(functions) => State::Minima(functions.minima()),
            Self::OnePass(sketch) => State::OnePass(sketch.state()),
            Self::BottomK { sketch, .. } => State::BottomK(sketch.state()),
            Self::Weighted(_) | Self::External => State::Nothing,
        }
    }

    /// Takes features in; their order and repeats change nothing.
    pub(crate) fn update(&self, state: &mut State, hashes: &[u64]) {
        match (self, state) {
            (Self::Functions(functions), State::Minima(minima)) => {
                functions.update(minima, hashes.iter().copied());
            }
            (Self::OnePass(sketch), State::OnePass(state)) => {
                sketch.update(state, hashes.iter().copied());
            }
            (Self::BottomK { sketch, .. }, State::BottomK(state)) => {
                sketch.update(state, hashes.iter().copied());
            }
            _ => {}
        }
    }

    pub(crate) fn finish(&self, state: State) -> Values {
        match (self, state) {
            (Self::Functions(_), State::Minima(minima)) => Values::Minima(minima.values()),
            (Self::OnePass(sketch), State::OnePass(state)) => Values::Minima(sketch.values(state)),
            (Self::BottomK { sketch, most }, State::BottomK(state)) => Values::Smallest {
                most: *most,
                hashes: sketch.values(&state),
            },
            (Self::Weighted(sketch), _) => Values::Samples(sketch.values(&[])),
            _ => Values::Minima(Vec::new()),
        }
    }

    /// Distinct features with their weights, none of them 0.
    pub(crate) fn weighted(&self, features: &[Weighted]) -> Values {
        if let Self::Weighted(sketch) = self {
            return Values::Samples(sketch.values(features));
        }
        let mut state = self.state();
        let hashes: Vec<u64> = features.iter().map(|&(hash, _)| hash).collect();
        self.update(&mut state, &hashes);
        self.finish(state)
    }
}
