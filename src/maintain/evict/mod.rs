//! Forgetting documents by age, by number or by choice.

mod eviction;
mod newest;
mod options;

pub(crate) use eviction::{evict_older_than_with, evict_where_with, keep_newest_with};
pub use options::{EvictEvent, EvictOptions, EvictReport, StoredDocument};
