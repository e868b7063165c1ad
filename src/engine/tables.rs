//! The tables of a store, and the names of redb that rooms above need.

pub(crate) use redb::{
    AccessGuard, Cursor, Key, OwnedAccessGuard, OwnedRange, ReadOnlyTable, ReadTransaction,
    ReadableTable, ReadableTableMetadata, StorageError, Table, TableDefinition, TableError,
    TableHandle, Value, WriteTransaction,
};

#[cfg(test)]
pub(crate) use redb::Range;

use super::errors::EngineResult;
use crate::error::Result;

pub(crate) type RowTable = TableDefinition<'static, u64, &'static [u8]>;
pub(crate) type BlockTable = TableDefinition<'static, &'static [u8; 22], &'static [u8]>;
pub(super) type FilterTable = TableDefinition<'static, &'static [u8; 10], &'static [u8]>;

pub(crate) const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");
pub(crate) const DOCUMENTS: RowTable = TableDefinition::new("documents");
pub(crate) const PAYLOADS: RowTable = TableDefinition::new("payloads");
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
    /// For the tables that few readers ask for.
    pub(crate) read: ReadTransaction,
    pub(crate) documents: ReadOnlyTable<u64, &'static [u8]>,
    pub(crate) payloads: ReadOnlyTable<u64, &'static [u8]>,
    pub(crate) keys: ReadOnlyBlocks,
    pub(crate) bands: ReadOnlyBlocks,
    pub(crate) permuted: ReadOnlyBlocks,
    pub(crate) filters: ReadOnlyPieces,
}

impl ReadTables {
    pub(crate) fn open(read: ReadTransaction) -> Result<Self> {
        Ok(Self {
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
