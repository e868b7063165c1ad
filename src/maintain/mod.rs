//! Upkeep of a store: check, repair, compact, statistics, eviction, backup, transfer, merging of
//! shards.
//!
//! Each file is one verb. Imports everything below; only `build` on its own floor.

mod backup;
mod check;
mod compact;
mod evict;
mod merge_shards;
mod repair;
mod stats;
mod transfer;

pub use backup::{Backup, BackupReport};
pub(crate) use check::{check_file, check_snapshot};
pub use compact::CompactReport;
pub(crate) use compact::compact;
pub use evict::{EvictPolicy, EvictReport, Eviction, StoredDocument};
pub use merge_shards::ShardMerge;
pub use repair::{IdRange, Repair, RepairReport};
pub(crate) use stats::stats;
pub use stats::{BucketSample, BucketStats, LaneStats, MergeStats, RunStats, Stats, TableStats};
pub(crate) use transfer::export;
pub use transfer::{Codec, ExistingKeys, ExportReport, Import, ImportReport, PairRule, PairScore};
