//! Records that are written differently from how they were read: texts without some of their parts,
//! and rows with more columns; and tables of verdicts on rows beside their table.
//!
//! Imports the readers' `line`, `fields` and `separated`, and no files.

mod added;
mod trims;
mod verdict;

pub use added::{AddedColumn, ColumnValues};
pub use added::{header_with, record_with};
pub(super) use added::{line_must_not_have, taken};
pub use trims::TextTrims;
pub(super) use trims::trimmed_line;
pub use verdict::{Verdict, WaitingDocument};
