//! The documents of one job, joined or searched and then forgotten: in memory while they fit there, beyond
//! that in a temporary store. The answers are those of a store, in the same order.
//!
//! Imports `join`, `build`, `write` and below.

mod collected;
mod collecting;
mod documents;
mod index;
mod kept;
mod row_arena;
#[cfg(test)]
mod tests;

pub use collected::Collected;
pub use collecting::Collection;
pub use kept::KeptDocuments;
