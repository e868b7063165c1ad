//! Documents as a stream of bytes: export and import.

mod export;
mod import;

pub use export::ExportReport;
pub(crate) use export::export;
pub use import::{ExistingKeys, Import, ImportReport};
