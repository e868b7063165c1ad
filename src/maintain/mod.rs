//! Maintenance of a store: check, repair, compact, statistics, eviction, backup, transfer, merging
//! of shards.
//!
//! Each file contains one operation. Imports everything below, and on the same level only `build`.

mod backup;
mod check;
mod compact;
mod evict;
mod merge_shards;
mod repair;
mod stats;
mod stored_keys;
mod transfer;

pub use backup::BackupReport;
pub(crate) use backup::backup;
pub(crate) use check::{check_file, check_snapshot};
pub use compact::CompactReport;
pub(crate) use compact::compact;
pub(crate) use evict::evict;
pub use evict::{EvictPolicy, EvictReport};
pub(crate) use merge_shards::merge_shards;
pub(crate) use repair::repair;
pub use repair::{IdRange, RepairReport};
pub(crate) use stats::stats;
pub use stats::{BucketSample, BucketStats, LaneStats, MergeStats, RunStats, Stats, TableStats};
pub use transfer::{Codec, ExistingKeys, ExportReport, ImportReport, PairRule, PairScore};
pub(crate) use transfer::{export, import};
