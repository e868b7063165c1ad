//! Removes documents by age, by number or by choice.

mod eviction;
mod newest;
mod policy;

pub use eviction::EvictReport;
pub(crate) use eviction::evict;
pub use policy::EvictPolicy;
