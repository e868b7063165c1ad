//! The verbs: one file each, with its arguments and a function of its name. No verb knows another.

pub(crate) mod add;
mod add_outputs;
#[cfg(feature = "sqlite")]
mod add_verdicts;
pub(crate) mod backup;
pub(crate) mod build;
pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod clusters;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod contain;
pub(crate) mod create;
pub(crate) mod decontaminate;
pub(crate) mod dedup;
pub(crate) mod eval;
pub(crate) mod evict;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod pairs;
pub(crate) mod query;
pub(crate) mod reband;
pub(crate) mod remove;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod stats;
pub(crate) mod touch;
pub(crate) mod tune;
mod verdicts;
