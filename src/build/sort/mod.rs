//! The external sort of postings.

mod batch;
mod merge;
mod sorting;
mod spill;

pub(crate) use batch::Layout;
pub(crate) use merge::{LaneChunks, merge_lanes};
pub(crate) use sorting::{MemoryPlan, Sorter, code_bits};
