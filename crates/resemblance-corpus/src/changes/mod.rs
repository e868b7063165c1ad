//! Changes to records between reading and writing: texts without some of their parts, rows with
//! additional columns, and tables of verdicts beside a table of rows.
//!
//! Imports only the readers' `line`, `fields` and `separated`; knows no files.

mod added;
mod trims;
mod verdict;

pub use added::{AddedColumn, ColumnValues};
pub use added::{header_with, record_with};
pub(super) use added::{line_must_not_have, taken};
pub use trims::TextTrims;
pub(super) use trims::trimmed_line;
pub use verdict::{Verdict, WaitingDocument};
