#![doc = include_str!("../README.md")]

mod database;
mod engine_error;
mod file_counters;
mod files;
mod journal;
mod journaled_file;
mod layout;
mod layout_check;
mod leftovers;
mod lock_holder;
mod overlay;
mod page_finder;
mod page_layout;
mod page_tree;
mod panics;
mod process;
#[cfg(test)]
#[path = "../../../tests/common/sample.rs"]
mod sample;
mod sync_ahead;
mod temporary;
mod verified_file;

pub use database::{RedbFile, commit_without_sync, file_size, verify_pages};
pub use engine_error::{EngineError, PAGE_PLACE, Result};
pub use file_counters::{Counter, FileCounters, Histogram};
pub use files::{
    Access, FileOptions, FileSource, Files, JournalLimits, Sharing, folder_of, kept_permissions,
    sync_folder,
};
pub use overlay::{OPENED_SINCE, overlay};
pub use page_finder::{LeafPlaces, PageFinder, PagePlace, RowInPage, WantedRow};
pub use page_layout::{Leaf, PAGE_BYTES, Page, Widths, stated_count};
pub use page_tree::{
    Commit, HeadDamage, KeyRange, LeafPage, PageDamage, PageFile, Tree, Walk, WalkStep,
    intact_rows, open_commit,
};
pub use panics::{PanicSafe, catch_engine_panic, catch_panic};
pub use process::{HomeProcess, IgnorePoison};
pub use redb::{
    AccessGuard, Cursor, Key, OwnedAccessGuard, OwnedRange, Range, ReadOnlyTable, ReadTransaction,
    ReadableTable, ReadableTableMetadata, StorageBackend, StorageError, Table, TableDefinition,
    TableError, TableHandle, Value, WriteTransaction,
};
pub use sync_ahead::SyncAhead;
pub use temporary::{TemporaryFile, must_not_exist};
