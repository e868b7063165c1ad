//! The log-structured merge index: memtable, segments, runs, filters, probes, merges.
//!
//! Imports `engine` and `format`. It knows postings, and neither documents nor signatures.

mod block_cache;
mod bucket_map;
mod clock;
mod code_search;
mod filter_cache;
mod filter_writer;
mod k_way;
mod lane_blocks;
mod lane_index;
mod lane_iter;
mod lane_probe;
mod lane_writer;
mod memtable;
mod merge;
mod mixer;
mod page_places;
mod radix;
mod row_buffer;
mod run;
mod run_cache;
mod segment;
mod sweep;
#[cfg(test)]
mod testing;

pub(crate) use bucket_map::BucketMap;
pub(crate) use filter_cache::{FilterOf, FilterQuestion, FilterVerdict, RunFilters};
pub(crate) use filter_writer::{FilterPieces, FilterPlan};
pub(crate) use k_way::{ChunkIter, KWayMerge, PostingChunks};
pub(crate) use lane_iter::{OwnedLane, read_lane};
pub(crate) use lane_probe::{FirstBlock, probe_lane_while};
pub(crate) use lane_writer::{PackedLane, write_lane};
pub(crate) use memtable::{Memtable, TOMBSTONE_LANE};
pub(crate) use merge::{LaneMerge, MergeBudget, MergePlan, Pace, RunShape, plan, whole_level};
pub(crate) use mixer::Mixer;
pub(crate) use page_places::RunRow;
pub(crate) use radix::sort_by_number;
pub(crate) use run::{LaneRef, ProbeCost, RunBlocks, RunTables};
pub(crate) use run_cache::{BlockSources, RunCache};
pub(crate) use segment::{CodeRange, ProbeControl, SegmentBuilder};
pub(crate) use sweep::{ProbeRange, SweepControl, VisitProbe, sweep_lane};
