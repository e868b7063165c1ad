//! Upkeep of a store: check, repair, compact, statistics, eviction, backup, transfer.
//!
//! Each file is one verb. Imports everything below; only `build` on its own floor.

mod backup;
mod check;
mod compact;
mod design;
mod evict;
mod repair;
mod stats;
mod transfer;

pub use backup::{BackupEvent, BackupReport};
pub use compact::CompactReport;
pub use evict::{EvictEvent, EvictOptions, EvictReport, StoredDocument};
pub use repair::{IdRange, RepairEvent, RepairOptions, RepairReport};
pub(crate) use stats::file_size;
pub use stats::{BucketSample, BucketStats, LaneStats, MergeStats, RunStats, Stats, TableStats};
pub use transfer::{
    ExistingKeys, ExportEvent, ExportReport, ImportEvent, ImportOptions, ImportReport,
};
