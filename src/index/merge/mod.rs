//! Merging runs lane by lane, in slices that survive commits and crashes.

mod lane_merge;
mod lane_source;
mod lane_work;
mod levels;
mod pipeline;

pub(crate) use lane_merge::LaneMerge;
pub(crate) use levels::{MergePlan, Pace, RunShape, plan, whole_level};
pub(crate) use pipeline::MergeBudget;
