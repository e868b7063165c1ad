//! `compact`: one run, and no free pages.

use std::path::Path;

use std::sync::Arc;

use crate::engine::file_size;
use crate::engine::{catch_engine_panic, close_packed, open_database, verify_pages};
use crate::error::Result;
use crate::index::{MergePlan, RunShape, level_of};
use crate::observe::{UPKEEP, log as events};
use crate::options::StoreOptions;
use crate::state;
use crate::state::may_write;
use crate::write::Transaction;

/// The result of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// Bytes on disk before.
    pub size_before_bytes: u64,
    /// Bytes on disk after.
    pub size_after_bytes: u64,
}

/// Merges all runs into one, and gives free pages back to the disk.
pub(crate) fn compact_with(
    path: impl AsRef<Path>,
    options: &StoreOptions,
) -> Result<CompactReport> {
    let path = path.as_ref();
    // Merging and moving would give damaged pages good checksums, and moving does not even end
    // where those that say what is free are damaged.
    if may_write(path, options)? {
        verify_pages(path, options)?;
    }
    let store = Arc::new(state::open(path, options)?);
    let (_, size_before_bytes) = file_size(path, options)?;
    while compact_some(Transaction::begin(&store)?)? {}
    drop(store);
    let database = open_database(path, options)?;
    catch_engine_panic(|| close_packed(database))?;
    let (_, size_after_bytes) = file_size(path, options)?;
    let message =
        format_args!("compacted: {size_before_bytes} bytes before, {size_after_bytes} now");
    events::debug(UPKEEP, path, message);
    Ok(CompactReport {
        size_before_bytes,
        size_after_bytes,
    })
}

/// Postings that one transaction of a compaction merges: bounds the pages that it writes.
const POSTINGS_PER_COMMIT: u64 = 1 << 23;

/// Goes on merging all runs into one. Returns whether there was anything left to do.
fn compact_some(mut transaction: Transaction) -> Result<bool> {
    let is_busy = transaction.change(|writer| {
        if writer.runs.outputs.is_empty() {
            let shapes = writer.runs.shapes();
            let dead: u64 = shapes.iter().map(|run| run.dead).sum();
            if shapes.len() < 2 && dead == 0 {
                return Ok(false);
            }
            let documents = shapes.iter().map(RunShape::live).sum();
            let flush_after = writer.store.context.options.flush_after_documents;
            let plan = MergePlan {
                runs: shapes.iter().map(|run| run.run).collect(),
                level: level_of(documents, flush_after),
            };
            writer.begin_merge(&plan, 0)?;
        }
        writer.advance_merges(POSTINGS_PER_COMMIT)?;
        Ok(true)
    })?;
    transaction.commit()?;
    Ok(is_busy)
}
