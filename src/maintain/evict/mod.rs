//! Forgetting documents by age, by number or by choice.

mod eviction;
mod newest;
mod policy;

pub use eviction::{EvictReport, Eviction};
pub use policy::{EvictPolicy, StoredDocument};
