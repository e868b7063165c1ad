//! Which stored documents are near a signature: bounds, candidates, score, budget, verification.
//!
//! Reads through `read::ReadView` alone.

pub(crate) mod batch;
pub(crate) mod best;
mod bounds;
mod buckets;
mod budget;
mod families;
mod found_ids;
mod query_many;
mod request;
mod scored;
mod subject;
mod verify;

pub(crate) use batch::{
    Candidate, CandidateSweep, Codes, PieceCandidates, ProbeCounts, SignaturePieces, find_keys,
};
pub(crate) use best::{Best, MAX_IDENTICAL_TRIES};
pub(crate) use bounds::ResolvedBounds;
pub use bounds::{Bounds, By};
pub(crate) use budget::Budget;
pub(crate) use families::Families;
pub use query_many::QueryMany;
pub(crate) use query_many::{candidates_many, query_many};
pub use request::Query;
pub(crate) use request::{candidates, nearest};
pub(crate) use scored::Scored;
pub(crate) use subject::Subject;
pub use verify::Earlier;
pub(crate) use verify::{Ask, Outside, Told, checked};
