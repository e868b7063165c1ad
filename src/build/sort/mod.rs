//! The external sort of postings.

mod merge;
mod sort_batch;
mod sorting;
mod spill;

pub(crate) use merge::{LaneChunks, merge_lanes};
pub(crate) use sort_batch::PostingLayout;
pub(crate) use sorting::{MemoryPlan, Sorter, code_bits};
