//! Counters, metrics and log events of a store.
//!
//! Imports no other module. Any module may import it.

mod counters;
mod latencies;
pub(crate) mod log;
mod metrics;

pub(crate) use counters::{LiveSnapshot, SharedCounters, TransactionCounters};
pub use latencies::Latencies;
pub(crate) use log::{COMMIT, DAMAGE, MERGE, STORE, UPKEEP};
pub use metrics::Metrics;
