//! What callers give and get: documents, matches, reports, files.
//!
//! Knows no other room but signatures. Any room may import it.

mod check_report;
mod document;
mod files;
mod id;
mod matches;
mod progress;

pub use check_report::{CheckReport, Problem};
pub use document::{Document, Match, Novelty, Record, Revision, Upserted};
pub use files::{Access, Files};
pub(crate) use files::{FileSource, folder_of};
pub use id::DocumentId;
pub use matches::{Matches, Scope};
pub(crate) use progress::go_on;
