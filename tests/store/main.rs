//! Tests the promises of a store to its users, one theme for each module.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

mod backup;
mod bulk;
#[path = "../common/mod.rs"]
mod common;
mod evict;
mod exact_sets;
mod file_length;
mod group;
mod kept_clusters;
mod life;
mod limits;
mod merge_shards;
mod merges;
mod metrics;
mod open;
mod positions;
mod progress;
mod reband;
mod records;
mod removal;
mod run_cache;
mod signatures;
mod threads;
mod transfer;
mod weights;
