//! The tables of runs, which a transaction writes and also reads while it writes.

use crate::engine::{BANDS, BlockTable, EngineResult, FILTERS, KEYS, PERMUTED, WriteTransaction};
use crate::error::Result;
use crate::index::RunTables;
use crate::read::PostingTable;

/// Opens, for writing, the table of blocks for a kind of lane, and that of filters.
pub(crate) fn run_tables(write: &WriteTransaction, table: PostingTable) -> Result<RunTables<'_>> {
    Ok(RunTables {
        name: table.name(),
        blocks: write.open_table(block_table(table)).engine()?,
        filters: write.open_table(FILTERS).engine()?,
    })
}

fn block_table(table: PostingTable) -> BlockTable {
    match table {
        PostingTable::Keys => KEYS,
        PostingTable::Bands => BANDS,
        PostingTable::Permuted => PERMUTED,
    }
}
