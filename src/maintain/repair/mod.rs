//! A new store from what is left of a damaged one.

mod dead;
mod losses;
mod meta;
mod repair;
mod rows;
mod scan;
mod scanner;

pub use losses::IdRange;
pub(crate) use repair::repair_with;
pub use repair::{RepairEvent, RepairOptions, RepairReport};
