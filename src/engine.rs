//! The storage engine: the tables of a store, and the parts of redb with verified pages that other
//! modules use.
//!
//! Other modules import tables and pages from this one. Errors, process locks and counters of
//! `redb_verified` are imported where they are mapped or counted: in `error`, `sync` and `observe`.

#[cfg(test)]
pub(crate) use redb_verified::Range;
pub use redb_verified::{Access, Files, OPENED_SINCE, kept_permissions, sync_folder};
pub(crate) use redb_verified::{
    AccessGuard, Commit, Cursor, EngineError, FileOptions, FileSource, HeadDamage, JournalLimits,
    Key, KeyRange, Leaf, LeafPage, LeafPlaces, OwnedAccessGuard, OwnedRange, PAGE_BYTES, Page,
    PageDamage, PageFile, PageFinder, PagePlace, PanicSafe, ReadOnlyTable, ReadTransaction,
    ReadableTable, ReadableTableMetadata, RedbFile, RowInPage, Sharing, StorageError, SyncAhead,
    Table, TableDefinition, TableError, TableHandle, TemporaryFile, Tree, Value, Walk, WalkStep,
    WantedRow, Widths, WriteTransaction, catch_engine_panic, catch_panic, commit_without_sync,
    file_size, folder_of, intact_rows, must_not_exist, open_commit, overlay, stated_count,
    verify_pages,
};

use redb_verified::PAGE_PLACE;

use crate::error::{Error, Result};

pub(crate) type RowTable = TableDefinition<'static, u64, &'static [u8]>;
pub(crate) type BlockTable = TableDefinition<'static, &'static [u8; 22], &'static [u8]>;
pub(crate) type FilterTable = TableDefinition<'static, &'static [u8; 10], &'static [u8]>;

pub(crate) const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");
pub(crate) const DOCUMENTS: RowTable = TableDefinition::new("documents");
pub(crate) const PAYLOADS: RowTable = TableDefinition::new("payloads");
/// The table of exact stores.
pub(crate) const SETS: RowTable = TableDefinition::new("sets");
/// Edges of the clusters that a store keeps: in each direction, from the lower key to the upper.
pub(crate) const FOREST: TableDefinition<'static, &[u8; 16], &[u8]> =
    TableDefinition::new("forest");
/// The cluster of each document that is in one.
pub(crate) const MEMBERS: RowTable = TableDefinition::new("members");
/// The state of each cluster that there ever was.
pub(crate) const CLUSTERS: RowTable = TableDefinition::new("clusters");
/// Changes of clusters, by the number of those before.
pub(crate) const FEED: RowTable = TableDefinition::new("feed");
pub(crate) const LANES: TableDefinition<'static, u16, &[u8]> = TableDefinition::new("lanes");
pub(crate) const RUNS: TableDefinition<'static, u32, &[u8]> = TableDefinition::new("runs");
pub(crate) const DEAD: RowTable = TableDefinition::new("dead");
pub(crate) const EQUAL: RowTable = TableDefinition::new("equal");
pub(crate) const KEYS: BlockTable = TableDefinition::new("keys");
pub(crate) const BANDS: BlockTable = TableDefinition::new("bands");
pub(crate) const PERMUTED: BlockTable = TableDefinition::new("permuted");
pub(crate) const FILTERS: FilterTable = TableDefinition::new("filters");

/// A table of blocks of a snapshot.
pub(crate) type ReadOnlyBlocks = ReadOnlyTable<&'static [u8; 22], &'static [u8]>;
/// The table of pieces of filters of a snapshot.
pub(crate) type ReadOnlyPieces = ReadOnlyTable<&'static [u8; 10], &'static [u8]>;

/// The tables that readers use, of one snapshot.
pub(crate) struct ReadTables {
    /// A transaction for the tables that few readers need.
    pub(crate) read: ReadTransaction,
    pub(crate) documents: ReadOnlyTable<u64, &'static [u8]>,
    pub(crate) payloads: ReadOnlyTable<u64, &'static [u8]>,
    /// `None` in a store without exact sets, or if its kept hashes are the exact sets.
    pub(crate) sets: Option<ReadOnlyTable<u64, &'static [u8]>>,
    pub(crate) keys: ReadOnlyBlocks,
    pub(crate) bands: ReadOnlyBlocks,
    pub(crate) permuted: ReadOnlyBlocks,
    pub(crate) filters: ReadOnlyPieces,
}

impl ReadTables {
    pub(crate) fn open(read: ReadTransaction, has_sets: bool) -> Result<Self> {
        // To open a table is to search redb's tree of tables, so it is done once, and not for each probe.
        let open_sets = || read.open_table(SETS).engine();
        Ok(Self {
            sets: has_sets.then(open_sets).transpose()?,
            documents: read.open_table(DOCUMENTS).engine()?,
            payloads: read.open_table(PAYLOADS).engine()?,
            keys: read.open_table(KEYS).engine()?,
            bands: read.open_table(BANDS).engine()?,
            permuted: read.open_table(PERMUTED).engine()?,
            filters: read.open_table(FILTERS).engine()?,
            read,
        })
    }
}

/// Visits the definition of each table of a store with this schema. Their keys have different
/// types.
macro_rules! for_each_table {
    ($schema:expr, $table:ident => $work:expr) => {
        for_each_table!(@ $table => $work,
            META LANES RUNS DOCUMENTS PAYLOADS DEAD EQUAL KEYS BANDS PERMUTED FILTERS);
        if $schema.has_sets() {
            for_each_table!(@ $table => $work, SETS);
        }
        if $schema.clusters().is_some() {
            for_each_table!(@ $table => $work, FOREST MEMBERS CLUSTERS FEED);
        }
    };
    (@ $table:ident => $work:expr, $($definition:ident)+) => {$(
        let $table = $crate::engine::$definition;
        $work;
    )+};
}
pub(crate) use for_each_table;

/// Results of the engine as ours.
pub(crate) trait EngineResult<T> {
    fn engine(self) -> Result<T>;
}

impl<T, E: Into<EngineError>> EngineResult<T> for std::result::Result<T, E> {
    fn engine(self) -> Result<T> {
        self.map_err(|error| error.into().into())
    }
}

/// Returns true if an error is about a damaged page.
pub(crate) fn is_of_page(error: &Error) -> bool {
    // The engine's error is converted by now: only its text shows where it arose.
    matches!(error, Error::Corrupt { place, .. } if place.starts_with(PAGE_PLACE))
}
