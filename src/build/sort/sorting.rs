//! Sorts the postings of documents as they arrive. It gathers them in one batch while another one
//! is sorted and spilled.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::build::sort::merge::Sorted;
use crate::build::sort::sort_batch::{
    MAX_DOCUMENTS, PostingColumn, PostingLayout, SortBatch, SortLimits,
};
use crate::build::sort::spill::{Extent, Spill};
use crate::error::Result;
use crate::invariant::{OrBug, invariant};
use crate::sync::{HomeProcess, IgnorePoison};
use crate::threads::spawn;
use crate::types::{Phase, Watch};
use resemblance_sketch::lanes::{LaneCode, LaneRole};
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::KEPT_HASH_BITS;

/// The postings of a build.
pub(crate) struct Sorter {
    layouts: Vec<PostingLayout>,
    limits: SortLimits,
    threads: usize,
    spill: Arc<Spill>,
    batch: SortBatch,
    /// The batch before, on its way to the file.
    job: Option<SortJob>,
    /// The extents of the lanes of each spilled batch.
    extents: Vec<Vec<Extent>>,
    /// Postings that were pushed, in all lanes.
    pushed: u64,
}

/// The result of a job: the batch, for reuse, and its extents in the file.
type Spilled = (SortBatch, Result<Vec<Extent>>);

/// A thread that is waited for, whatever happens.
struct SortJob {
    handle: Option<JoinHandle<Spilled>>,
    home: HomeProcess,
}

impl SortJob {
    fn new(handle: JoinHandle<Spilled>) -> Self {
        Self {
            handle: Some(handle),
            home: HomeProcess::current(),
        }
    }

    fn wait(&mut self) -> Option<Spilled> {
        let handle = self.handle.take();
        if !self.home.is_current() {
            // The thread continues in the process that started it.
            std::mem::forget(handle);
            return None;
        }
        handle.and_then(|handle| handle.join().ok())
    }
}

impl Drop for SortJob {
    fn drop(&mut self) {
        self.wait();
    }
}

/// The division of memory among batches and their sort, for lanes of given layouts.
pub(crate) struct MemoryPlan {
    pub(crate) limits: SortLimits,
    chunk_postings: usize,
}

impl MemoryPlan {
    /// `has_kept_lane` is true if documents have any number of postings in the last lane.
    pub(crate) fn new(
        layouts: &[PostingLayout],
        has_kept_lane: bool,
        memory_bytes: u64,
        threads: usize,
    ) -> Self {
        // Two batches, and on each thread room to sort a lane.
        let lanes = layouts.iter().map(|layout| layout.memory_bytes());
        let rooms = threads.min(layouts.len()) as u64;
        let document_bytes = 2 * lanes.clone().sum::<u64>() + rooms * lanes.max().unwrap_or(1);
        let fitting = memory_bytes / document_bytes.max(1);
        let max = layouts.iter().map(|layout| layout.max_documents()).min();
        Self {
            limits: SortLimits {
                documents: fitting.clamp(1, max.unwrap_or(MAX_DOCUMENTS)),
                kept_postings: layouts.last().filter(|_| has_kept_lane).map(|layout| {
                    // Two batches and the room to sort share the memory, most of which is this lane's.
                    (memory_bytes / (4 * layout.memory_bytes())).max(1)
                }),
            },
            // At the end, each lane of hundreds of batches is read in pieces of this size.
            chunk_postings: (memory_bytes / 16_384).clamp(64, 8192) as usize,
        }
    }
}

/// Returns the number of bits of the codes of each lane.
pub(crate) fn code_bits(schema: &Schema) -> Result<Vec<u32>> {
    let band_bits = schema.minhash().map_or(64, |minhash| minhash.code_bits());
    let roles = schema.lane_set()?.roles();
    let bits = roles.map(|role| match role {
        LaneRole::Band(_) => u32::from(band_bits),
        LaneRole::Key | LaneRole::Table(_) => u64::BITS,
        LaneRole::Kept => u32::from(KEPT_HASH_BITS),
    });
    Ok(bits.collect())
}

impl Sorter {
    /// Creates a sorter for lanes whose codes have these numbers of bits. `has_kept_lane` is true
    /// if documents have any number of postings in the last one.
    pub(crate) fn new(
        code_bits: &[u32],
        has_kept_lane: bool,
        memory_bytes: u64,
        threads: usize,
        folder: &std::path::Path,
    ) -> Self {
        let layouts: Vec<PostingLayout> = code_bits
            .iter()
            .copied()
            .map(PostingLayout::for_code_bits)
            .collect();
        let plan = MemoryPlan::new(&layouts, has_kept_lane, memory_bytes, threads);
        Self {
            batch: SortBatch::new(&layouts, 0, plan.limits),
            limits: plan.limits,
            spill: Arc::new(Spill::new(folder, plan.chunk_postings)),
            layouts,
            threads,
            job: None,
            extents: Vec::new(),
            pushed: 0,
        }
    }

    /// Adds a document whose id is above all before, with its codes.
    pub(crate) fn push(&mut self, id: u64, codes: &[LaneCode]) -> Result<()> {
        if !self.batch.has_room_for(id) {
            if self.batch.is_empty() {
                self.batch.restart(id);
            } else {
                self.spill_batch(id)?;
            }
        }
        self.pushed += codes.len() as u64;
        self.batch.push(id, codes)
    }

    /// Sends the full batch away and begins one from document `next_id` on.
    fn spill_batch(&mut self, next_id: u64) -> Result<()> {
        // The memory is planned for two batches: before this one is sent, the one before it has to
        // be done.
        let mut empty = match self.wait()? {
            Some(batch) => batch,
            None => SortBatch::new(&self.layouts, next_id, self.limits),
        };
        empty.restart(next_id);
        let full = std::mem::replace(&mut self.batch, empty);
        let (spill, threads) = (Arc::clone(&self.spill), self.threads);
        let job = spawn("sort", move || sort_and_spill(full, &spill, threads))?;
        self.job = Some(SortJob::new(job));
        Ok(())
    }

    /// Waits until the batch before is in the file; it can be used again.
    fn wait(&mut self) -> Result<Option<SortBatch>> {
        let Some(mut job) = self.job.take() else {
            return Ok(None);
        };
        let (batch, extents) = job.wait().or_bug("a sorting thread panicked")?;
        let extents = extents?;
        let (found, lanes) = (extents.len(), self.layouts.len());
        invariant!(found == lanes, "spilled {found} of {lanes} lanes");
        self.extents.push(extents);
        Ok(Some(batch))
    }

    /// Sorts the rest in memory, after which everything can be merged.
    pub(crate) fn finish(&mut self, watch: &mut Watch<'_>) -> Result<()> {
        let pushed = self.pushed;
        watch.report(Phase::SortingPostings, 0, pushed)?;
        // The merge needs no second batch, so its memory is released now.
        drop(self.wait()?);
        self.batch.sort(self.threads, |_, _| {});
        let sorted = self.sorted_postings();
        invariant!(pushed == sorted, "sorted {sorted} of {pushed} postings");
        watch.report(Phase::SortingPostings, sorted, pushed)
    }

    /// Returns all postings. Call it after [`finish`](Self::finish).
    pub(crate) fn sorted(&self) -> Sorted<'_> {
        Sorted {
            spill: &self.spill,
            extents: &self.extents,
            batch: &self.batch,
        }
    }

    pub(crate) fn lanes(&self) -> Result<u16> {
        let lanes = u16::try_from(self.layouts.len()).ok();
        lanes.or_bug("more lanes than a store numbers")
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Returns the number of postings pushed so far, over all lanes.
    pub(crate) fn postings(&self) -> u64 {
        self.pushed
    }

    fn sorted_postings(&self) -> u64 {
        let spilled = self.extents.iter().flatten().map(Extent::postings);
        let held = self.batch.columns().iter().map(PostingColumn::len);
        spilled.chain(held).map(|postings| postings as u64).sum()
    }

    /// Returns the number of batches that were written to the file.
    pub(crate) fn spills(&self) -> u64 {
        self.extents.len() as u64
    }

    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.spill.size_bytes()
    }
}

fn sort_and_spill(mut batch: SortBatch, spill: &Spill, threads: usize) -> Spilled {
    let first_id = batch.first_id();
    let written = Mutex::new(Vec::new());
    batch.sort(threads, |lane, column| {
        let extent = spill.write(column, first_id);
        written.lock().ignore_poison().push((lane, extent));
    });
    let mut by_lane = written.into_inner().ignore_poison();
    by_lane.sort_by_key(|(lane, _)| *lane);
    let extents = by_lane.into_iter().map(|(_, extent)| extent).collect();
    (batch, extents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::ChunkIter;

    #[test]
    fn sort_batches_fit_memory_and_layout() {
        for code_bits in [&[64, 40][..], &[64; 5], &[64, 32, 32], &[64, 44]] {
            let layouts: Vec<PostingLayout> = code_bits
                .iter()
                .copied()
                .map(PostingLayout::for_code_bits)
                .collect();
            let lane_bytes = layouts.iter().map(|layout| layout.memory_bytes());
            let (all, largest) = (lane_bytes.clone().sum::<u64>(), lane_bytes.max().unwrap());
            let most = layouts
                .iter()
                .map(|layout| layout.max_documents())
                .min()
                .unwrap();
            for shift in [20, 24, 28, 40, 60] {
                for threads in [1, 2, 64] {
                    let plan = MemoryPlan::new(&layouts, false, 1 << shift, threads);
                    let documents = plan.limits.documents;
                    assert!((1..=most).contains(&documents));
                    let rooms = threads.min(layouts.len()) as u64;
                    let used = documents * (2 * all + rooms * largest);
                    assert!(used <= 1 << shift);
                    let fills = documents * 4 * all > 1 << shift;
                    assert!(fills || documents == most, "{shift} {threads}");
                }
            }
        }
    }

    /// Ids of a store from which most documents were removed.
    #[test]
    fn distant_ids_start_a_new_sort_batch() {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(&[64, 40], false, 1 << 20, 2, folder.path());
        let ids = [
            5_000_000_000,
            5_000_000_001,
            1 << 33,
            (1 << 33) + (1 << 24),
            1 << 40,
        ];
        for id in ids {
            sorter.push(id, &[LaneCode { lane: 1, code: 7 }]).unwrap();
        }
        sorter.finish(&mut Watch::new("a test")).unwrap();
        assert_eq!((sorter.spills(), sorter.postings()), (3, 5));
        let merged = crate::build::sort::merge::merge_lanes(&sorter.sorted(), 2, 2, |lanes| {
            assert!(ChunkIter::new(lanes.lane(0)?).next().is_none());
            ChunkIter::new(lanes.lane(1)?).collect::<Result<Vec<_>>>()
        });
        let expected = ids.map(|id| crate::format::Posting { code: 7, id });
        assert_eq!(merged.unwrap(), expected);
    }
}
