//! Forgetting documents by age, by number or by choice.

mod evict;
mod newest;
mod options;

pub(crate) use evict::{evict_older_than_with, evict_where_with, keep_newest_with};
pub use options::{EvictEvent, EvictOptions, EvictReport, StoredDocument};
