//! Postings of any lane: in memory until sealed, then in runs of blocks that are merged level by
//! level. Nothing here knows what a code means.

pub(crate) mod filter_cache;
pub(crate) mod filter_writer;
pub(crate) mod k_way;
pub(crate) mod lane_iter;
pub(crate) mod lane_source;
pub(crate) mod lane_work;
pub(crate) mod lane_writer;
pub(crate) mod levels;
pub(crate) mod memtable;
pub(crate) mod merge;
pub(crate) mod pipeline;
pub(crate) mod radix;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod segment;
pub(crate) mod sweep;
#[cfg(test)]
mod testing;

pub(crate) use crate::format::posting::Posting;
pub(crate) use filter_cache::{FilterCache, FilterOf, Reader as FilterReader};
pub(crate) use filter_writer::{FilterPlan, FilterTable};
pub(crate) use k_way::{KWayMerge, merge_slices};
pub(crate) use lane_iter::lane_iter_owned;
pub(crate) use lane_writer::{write_lane, write_sorted};
pub(crate) use levels::{MergePlan, Pace, RunShape, level_of, plan};
pub(crate) use memtable::Memtable;
pub(crate) use merge::LaneMerge;
pub(crate) use pipeline::Stretch;
pub(crate) use radix::sort_by_number;
pub(crate) use run::{BlockTable, LaneSummary, ProbeCost, RunTables, probe_lane_while};
pub(crate) use segment::{CodeRange, SegmentBuilder};
pub(crate) use sweep::{Next, VisitAsked, Wanted, sweep_lane};
