//! Upkeep of a store: check, repair, compact, statistics, eviction, backup, transfer.
//!
//! Each file is one verb. Imports everything below; only `build` on its own floor.

mod backup;
mod check;
mod compact;
mod evict;
mod repair;
mod stats;
mod transfer;

pub(crate) use backup::backup_with;
pub use backup::{BackupEvent, BackupReport};
pub(crate) use check::{check_file, check_snapshot};
pub use compact::CompactReport;
pub(crate) use compact::compact_with;
pub use evict::{EvictEvent, EvictOptions, EvictReport, StoredDocument};
pub(crate) use evict::{evict_older_than_with, evict_where_with, keep_newest_with};
pub(crate) use repair::repair_with;
pub use repair::{IdRange, RepairEvent, RepairOptions, RepairReport};
pub(crate) use stats::stats;
pub use stats::{BucketSample, BucketStats, LaneStats, MergeStats, RunStats, Stats, TableStats};
pub use transfer::{
    ExistingKeys, ExportEvent, ExportReport, ImportEvent, ImportOptions, ImportReport,
};
pub(crate) use transfer::{export_with, import_with};
