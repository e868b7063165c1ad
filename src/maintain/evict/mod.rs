//! Forgetting documents by age, by number or by choice.

mod evict;
mod newest;
mod options;

pub use options::{EvictEvent, EvictOptions, EvictReport, StoredDocument};
