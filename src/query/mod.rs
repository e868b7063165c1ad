//! Finds the stored documents near a signature: plan, candidates, score, collect.
//!
//! Every search goes through [`search`]; the other files are its parts. Reads only through
//! `read::ReadView`.

mod bounds;
mod buckets;
mod candidates;
mod collect;
mod containment;
mod equal_classes;
mod gate;
mod near_parts;
mod nearest;
mod plan;
mod probe;
mod request;
mod scan;
mod score;
mod search;
mod stages;
mod sweep;
mod verify;

pub use bounds::{Bounds, Family, SearchOptions};
pub(crate) use bounds::{ResolvedBounds, Wanted};
pub(crate) use candidates::Budget;
pub(crate) use collect::{Collector, FoundDocuments};
pub use containment::ContainmentQuery;
pub(crate) use containment::ShareOf;
pub(crate) use gate::{Gate, gated};
pub(crate) use near_parts::PartSearch;
pub use nearest::Nearest;
pub(crate) use plan::ProbePlan;
pub(crate) use request::in_batch;
pub use request::{OneOrMany, Query};
pub(crate) use score::{Scored, Scorer};
pub(crate) use search::SearchSpec;
pub(crate) use sweep::{find_keys, for_each_piece};
pub use verify::Earlier;
pub(crate) use verify::{Ask, ExactSimilarity, Outside, Referee, checked};
