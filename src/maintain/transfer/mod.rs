//! Documents as a stream of bytes: export and import.

mod export;
mod import;

pub(crate) use export::export_with;
pub use export::{ExportEvent, ExportReport};
pub(crate) use import::import_with;
pub use import::{ExistingKeys, ImportEvent, ImportOptions, ImportReport};
