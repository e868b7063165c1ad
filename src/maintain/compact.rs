//! `compact`: leaves one run and no free pages.

use std::path::Path;

use std::sync::Arc;

use crate::engine::{RedbFile, file_size, verify_pages};
use crate::error::Result;
use crate::index::{MergePlan, RunShape, whole_level};
use crate::invariant::OrBug;
use crate::observe::{UPKEEP, log as events};
use crate::options::StoreOptions;
use crate::state;
use crate::state::may_write;
use crate::types::{Operation, Phase, ReportSettings, Watch};
use crate::write::{WriteTransaction, Writer};

/// The result of a compaction.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # Store::create(&path, schema)?;
/// let report = Store::compact(&path).run()?;
/// let gained = report.size_before_bytes - report.size_after_bytes;
/// println!("{gained} bytes are free again");
/// # assert!(gained < 1 << 30);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// Bytes on disk before.
    pub size_before_bytes: u64,
    /// Bytes on disk after.
    pub size_after_bytes: u64,
    /// The length of the file before, including holes.
    pub length_before_bytes: u64,
    /// The length of the file after.
    pub length_after_bytes: u64,
}

impl ReportSettings for CompactReport {
    type Settings = ();
}

/// Merges all runs into one, and gives free pages back to the disk.
pub(crate) fn compact<'a>(path: &Path, options: &StoreOptions) -> Operation<'a, CompactReport> {
    let (path, options) = (path.to_path_buf(), options.clone());
    Operation::new("the compaction", (), move |(), watch| {
        compact_file(&path, &options, watch)
    })
}

fn compact_file(
    path: &Path,
    options: &StoreOptions,
    watch: &mut Watch<'_>,
) -> Result<CompactReport> {
    let options = &options.alone();
    let file = &options.file_options();
    let may_write = may_write(path, options)?;
    // Measured before anything is opened for writing, which lengthens the file.
    let (length_before_bytes, size_before_bytes) = file_size(path, file)?;
    // Merging and moving would give damaged pages good checksums, and moving does not even end
    // where the records of free pages are damaged.
    if may_write {
        verify_pages(path, file, |done, total| {
            watch.report(Phase::VerifyingPages, done, total)
        })?;
    }
    let store = Arc::new(state::open(path, &options.written_at_once())?);
    let mut merging = Merging {
        phase: Phase::FinishingMerges,
        done: 0,
    };
    while merging.advance(WriteTransaction::begin(&store)?, watch)? {}
    drop(store);
    let engine = RedbFile::open(path, file)?;
    let mut passes = 0;
    watch.report(Phase::MovingPages, passes, None)?;
    engine.pack(|| {
        passes += 1;
        watch.report(Phase::MovingPages, passes, None)
    })?;
    let (length_after_bytes, size_after_bytes) = file_size(path, file)?;
    let message =
        format_args!("compacted: {size_before_bytes} bytes before, {size_after_bytes} now");
    events::debug(UPKEEP, path, message);
    Ok(CompactReport {
        size_before_bytes,
        size_after_bytes,
        length_before_bytes,
        length_after_bytes,
    })
}

/// Postings that one transaction of a compaction merges: bounds the pages that it writes.
const POSTINGS_PER_COMMIT: u64 = 1 << 23;

/// The merge of all runs into one, after the merges that are under way.
struct Merging {
    phase: Phase,
    /// Postings that were merged in this phase.
    done: u64,
}

impl Merging {
    /// Continues the merge in a separate transaction. Returns whether there was anything left to
    /// do.
    fn advance(
        &mut self,
        mut transaction: WriteTransaction,
        watch: &mut Watch<'_>,
    ) -> Result<bool> {
        let left = transaction.change(|writer| {
            if writer.runs.outputs.is_empty() && !self.begin_last(writer)? {
                return Ok(None);
            }
            let before = postings_left(writer)?;
            watch.report(self.phase, self.done, self.done + before)?;
            writer.advance_merges(POSTINGS_PER_COMMIT)?;
            let left = postings_left(writer)?;
            let merged = before.checked_sub(left);
            self.done += merged.or_bug("a merge has more left than before")?;
            Ok(Some(left))
        })?;
        transaction.commit()?;
        let Some(left) = left else {
            return Ok(false);
        };
        watch.report(self.phase, self.done, self.done + left)?;
        Ok(true)
    }

    /// Begins the merge of all runs. Returns false if there is one at most, with nothing to drop.
    fn begin_last(&mut self, writer: &mut Writer) -> Result<bool> {
        let shapes = writer.runs.shapes();
        let deleted: u64 = shapes.iter().map(|run| run.deleted).sum();
        if shapes.len() < 2 && deleted == 0 {
            return Ok(false);
        }
        let documents = shapes.iter().map(RunShape::live).sum();
        let context = &writer.store.context;
        let lane = context.lanes.kept_lane();
        let kept_lanes = writer.runs.descriptors().filter_map(|run| run.lane(lane?));
        let kept = kept_lanes.map(|summary| summary.postings).sum();
        let plan = MergePlan {
            runs: shapes.iter().map(|run| run.run).collect(),
            level: whole_level(
                &context.options,
                context.lanes.single_count(),
                documents,
                kept,
            ),
        };
        writer.begin_merge(&plan, 0)?;
        *self = Self {
            phase: Phase::MergingRuns,
            done: 0,
        };
        Ok(true)
    }
}

/// Returns the number of postings that the merges under way have still to read.
fn postings_left(writer: &Writer) -> Result<u64> {
    let mut postings = 0_u64;
    for output in &writer.runs.outputs {
        let inputs = writer.runs.inputs(output);
        for input in inputs.or_bug("the runs that are being merged")? {
            postings += input.descriptor.postings();
        }
    }
    Ok(postings)
}
