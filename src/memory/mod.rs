//! The documents of one job, which are joined or searched and then dropped. They are in memory
//! while they fit, and otherwise in a temporary store. Answers and their order are the same as
//! those of a store.
//!
//! Imports `join`, `build`, `write` and below.

mod collected;
mod collecting;
mod documents;
mod index;
mod kept;
mod look_ahead;
mod row_arena;
#[cfg(test)]
mod tests;

pub use collected::Collected;
pub use collecting::Collection;
pub use kept::KeptDocuments;
pub use look_ahead::{LoneDocuments, LookAhead};
