//! Exact similarities: the features of texts in temporary files, verification by them, an exact
//! join, and the sorting of more pairs than memory holds.
//!
//! It knows neither corpora nor options; whoever uses it gives features and names a folder for
//! temporary files.

mod features;
mod join;
mod pair_sorter;
mod verified;

pub(crate) use features::FeatureFiles;
pub(crate) use join::{ExactJoin, FEATURE_BYTES, Partner};
pub(crate) use pair_sorter::{DocumentLabel, LabelledPair, PairSorter, SortedPairs};
pub(crate) use verified::{MAX_HELD_BYTES, SketchedText, insert_many_if_new};
