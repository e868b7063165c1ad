//! The tables that runs are written to.

use crate::engine::{BANDS, BlockTable, FILTERS, KEYS, PERMUTED};
use crate::error::Result;
use crate::index::RunTables;
use crate::read::PostingTable;

/// Opens the table of blocks of this kind, and that of filters, for writing.
pub(crate) fn run_tables(
    write: &redb::WriteTransaction,
    table: PostingTable,
) -> Result<RunTables<'_>> {
    Ok(RunTables {
        name: table.name(),
        blocks: write.open_table(block_table(table))?,
        filters: write.open_table(FILTERS)?,
    })
}

/// The engine's table for a kind of lane.
fn block_table(table: PostingTable) -> BlockTable {
    match table {
        PostingTable::Keys => KEYS,
        PostingTable::Bands => BANDS,
        PostingTable::Permuted => PERMUTED,
    }
}
