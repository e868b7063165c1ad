//! Documents as a stream of bytes: export and import.

mod export;
mod import;

pub use export::{ExportEvent, ExportReport};
pub use import::{ExistingKeys, ImportEvent, ImportOptions, ImportReport};
