//! What a store counts and tells: counters, metrics, log events.
//!
//! Knows no other room. Any room may import it.

mod counters;
pub(crate) mod log;
mod metrics;
mod reads;

pub(crate) use counters::{LiveSnapshot, SharedCounters, TransactionCounters};
pub(crate) use log::{COMMIT, DAMAGE, MERGE, STORE, UPKEEP};
pub use metrics::{Latencies, Metrics};
pub(crate) use reads::ReadCounters;
pub use reads::Reads;
