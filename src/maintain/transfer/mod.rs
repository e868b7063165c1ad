//! Documents as a stream of bytes: export and import; signatures and schemas as separate bytes.

mod codec;
mod export;
mod import;
mod pair_rule;

pub use codec::Codec;
pub use export::ExportReport;
pub(crate) use export::export;
pub(crate) use import::import;
pub use import::{ExistingKeys, ImportReport};
pub use pair_rule::{PairRule, PairScore};
