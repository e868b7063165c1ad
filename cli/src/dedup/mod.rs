//! A corpus without its near-duplicates: which documents of a stream are kept, by either policy.
//!
//! It knows neither corpora nor options: documents come sketched, and keys stand in the payloads of
//! a temporary store, because they need not be unique.

mod bit_list;
mod clusters;
mod kept;

pub(crate) use bit_list::BitList;
pub(crate) use clusters::{clusters_of, followers_of, nearness_of};
pub(crate) use kept::{Decision, KeptDocuments};
