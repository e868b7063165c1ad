//! The documents of one job, joined and then forgotten: in memory while they fit there, beyond that in
//! a temporary store. The answers are those of a store, in the same order.
//!
//! Imports `join`, `build` and below.

mod collected;
mod collecting;
mod memory;
mod row_arena;
#[cfg(test)]
mod tests;

pub use collected::Collected;
pub use collecting::Collection;
pub(crate) use row_arena::RowArena;
