//! redb: the open file, tables, verified pages, pages read beside redb, the journal of small commits, page trees, panics
//! caught, temporary files.
//!
//! The one room that knows redb: rooms above name its types through this one.

mod database;
mod errors;
mod files;
mod journal;
mod journaled_file;
mod layout;
mod layout_check;
mod leftovers;
mod overlay;
mod page_finder;
mod page_layout;
mod page_tree;
mod panics;
mod sync_ahead;
mod tables;
mod temporary;
mod verified_file;

pub(crate) use database::{
    RedbFile, commit_without_sync, file_size, open_database, pack, verify_pages,
};
pub(crate) use errors::{EngineResult, engine_error, io_error, is_of_page};
pub use files::{Access, Files};
pub(crate) use files::{FileOptions, FileSource, JournalLimits, folder_of};
pub(crate) use overlay::overlay;
pub(crate) use page_finder::{LeafPlaces, PageFinder, PagePlace, RowInPage, WantedRow};
pub(crate) use page_layout::{Leaf, PAGE_BYTES, Page, Widths, stated_count};
pub(crate) use page_tree::{
    Commit, KeyRange, LeafPage, PageFile, Tree, Walk, WalkStep, ids_of, ids_of_chunks, intact_rows,
    open_commit, problem_of, row_check,
};
pub(crate) use panics::{PanicSafe, catch_engine_panic, catch_panic};
pub(crate) use sync_ahead::SyncAhead;
#[cfg(test)]
pub(crate) use tables::Range;
pub(crate) use tables::{
    AccessGuard, BANDS, BlockTable, Cursor, DEAD, DOCUMENTS, EQUAL, FILTERS, KEYS, Key, LANES,
    META, OwnedAccessGuard, OwnedRange, PAYLOADS, PERMUTED, RUNS, ReadOnlyBlocks, ReadOnlyPieces,
    ReadOnlyTable, ReadTables, ReadTransaction, ReadableTable, ReadableTableMetadata, RowTable,
    StorageError, Table, TableDefinition, TableError, TableHandle, Value, WriteTransaction,
};
pub(crate) use temporary::{TemporaryFile, must_not_exist};
