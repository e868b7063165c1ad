//! Exact similarities beside estimates: two texts explained, the features of texts in temporary files,
//! verification by them, and an exact join.
//!
//! [`exact`](crate::exact) has the similarities themselves. Imports `write` and below.

mod explanation;
mod features;
mod join;
mod verified;

pub use explanation::Explanation;
pub use features::FeatureSets;
pub(crate) use join::FEATURE_BYTES;
pub use join::{Partner, exact_partners};
pub use verified::SketchedText;
pub(crate) use verified::signatures_of;
