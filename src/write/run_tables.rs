//! The tables that runs are written to, and read from while a transaction writes.

use std::cell::OnceCell;

use crate::engine::{
    BANDS, BlockTable, EngineResult, FILTERS, KEYS, PERMUTED, PageFinder, WriteTransaction,
};
use crate::error::Result;
use crate::index::{FilterPieces, RunBlocks, RunTables};
use crate::read::{PostingTable, ReadView, RunReader};
use crate::state::SharedContext;
use crate::write::writer::Writer;

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

/// The runs of a transaction, for lanes of one kind. The engine lets a table be opened once at a time, and so they
/// are closed after each probe.
pub(super) struct WriterRuns<'w> {
    writer: &'w Writer,
    table: PostingTable,
    opened: OnceCell<RunTables<'w>>,
}

impl<'w> WriterRuns<'w> {
    pub(super) fn new(writer: &'w Writer, table: PostingTable) -> Self {
        Self {
            writer,
            table,
            opened: OnceCell::new(),
        }
    }

    fn opened(&self) -> Result<&RunTables<'w>> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let tables = run_tables(self.writer.write()?, self.table)?;
        Ok(self.opened.get_or_init(|| tables))
    }
}

impl<'w> RunReader for WriterRuns<'w> {
    type Blocks = RunBlocks<'w>;
    type Filters = FilterPieces<'w>;

    fn context(&self) -> &SharedContext {
        self.writer.context()
    }

    fn table(&self) -> PostingTable {
        self.table
    }

    fn finder(&self) -> Option<&PageFinder> {
        self.writer.store.engine.page_finder.as_ref()
    }

    fn blocks(&self) -> Result<&RunBlocks<'w>> {
        Ok(&self.opened()?.blocks)
    }

    fn filters(&self) -> Result<&FilterPieces<'w>> {
        Ok(&self.opened()?.filters)
    }
}
