//! Exact similarities beside estimates: two texts explained, the features of texts in temporary files,
//! verification by them, and an exact join.
//!
//! [`exact`](resemblance::exact) has the similarities themselves.

mod explanation;
mod features;
mod join;
mod verified;

pub use explanation::Explanation;
pub use features::FeatureSets;
pub use join::{FEATURE_BYTES, Partner, exact_partners};
pub(crate) use verified::signatures_of;
pub use verified::{SketchedText, verify_exact};
