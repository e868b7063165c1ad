//! Exact similarities in addition to estimates: an explanation of two texts, a store for the
//! features of texts, verification by them, and an exact join.
//!
//! [`exact`](resemblance::exact) contains the similarity functions themselves.

mod explanation;
mod features;
mod join;
mod verified;

pub use explanation::Explanation;
pub use features::FeatureSets;
pub(crate) use features::SetOverlap;
pub use join::{FEATURE_BYTES, Partner, exact_partners};
pub(crate) use verified::signatures_of;
pub use verified::{SketchedText, verify_exact};
