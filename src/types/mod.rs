//! The types that callers pass and receive: documents, matches, reports, progress.
//!
//! Imports no other folder but `sketch`. Any folder may import it.

mod check_report;
mod document;
mod key_text;
mod matches;
mod novelty;
mod operation;
mod overlaps;
mod progress;

pub(crate) use crate::id::DocumentId;
pub use check_report::{CheckReport, Problem};
pub use document::{Document, Record};
pub(crate) use document::{KEY_LIMIT_BYTES, PAYLOAD_LIMIT_BYTES};
pub use key_text::key_text;
pub use matches::{BudgetExceeded, Match, Matches, Scope};
pub use novelty::{Novelty, Revision, Upserted};
pub use operation::{Operation, Report};
pub use overlaps::{FrequentPassage, Overlap, Overlaps, PlacedPassage};
pub(crate) use progress::Watch;
pub use progress::{Phase, Progress};
