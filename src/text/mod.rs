//! Bytes become features: normalisation, words, shingles.
//!
//! Imports nothing but errors. `schema`, `sketch` and callers import recipes and shinglers from here.

mod data;
#[cfg(feature = "languages")]
mod filter;
mod language;
pub(crate) mod line;
#[cfg(feature = "languages")]
mod normal;
mod recipe;
mod recorded;
mod shingler;
#[cfg(test)]
mod tests;
pub(crate) mod unicode;
mod utf8;

pub use language::Language;
pub use recipe::{ShingleUnit, Text};
pub use shingler::Shingler;
pub use unicode::UNICODE_VERSION;
pub(crate) use utf8::for_each_piece;
