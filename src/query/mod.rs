//! Which stored documents are near a signature: plan, candidates, score, collect.
//!
//! [`search`] is the one way through; what stands beside it are its parts. Reads through
//! `read::ReadView` alone.

mod bounds;
mod buckets;
mod budget;
mod candidates;
mod choice;
mod collect;
mod containment;
mod equal_classes;
mod gathered;
mod identical;
mod in_threads;
mod keys;
mod nearest;
mod plan;
mod probe;
mod request;
mod scan;
mod scored;
mod search;
mod stages;
mod subject;
mod sweep;
mod verify;

pub(crate) use bounds::ResolvedBounds;
pub use bounds::{Bounds, Family};
pub(crate) use budget::Budget;
pub(crate) use collect::{Collector, Found};
pub use containment::ContainmentQuery;
pub(crate) use containment::ShareOf;
pub(crate) use keys::find_keys;
pub use nearest::Nearest;
pub(crate) use plan::ProbePlan;
pub use request::{OneOrMany, Query};
pub(crate) use request::{candidates, in_batch};
pub(crate) use scored::Scored;
pub(crate) use search::Search;
pub(crate) use subject::Subject;
pub(crate) use sweep::for_each_piece;
pub use verify::Earlier;
pub(crate) use verify::{Ask, ExactSimilarity, Outside, checked};
