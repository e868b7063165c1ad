//! Turns texts into shingles: normalisation, units, runs of units.
//!
//! Every module above may import [`Text`], [`Shingler`] and their parts. This module imports only
//! errors; it knows neither signatures nor files.

mod ascii;
mod data;
#[cfg(feature = "languages")]
mod filter;
mod language;
#[cfg(feature = "languages")]
mod language_data;
mod located;
mod normal;
mod recipe;
mod recorded;
mod shingler;
#[cfg(test)]
mod tests;
mod unicode;
mod unit_buffer;
mod unit_reader;
mod utf8;

pub use language::Language;
pub use located::LocatedShingle;
pub use recipe::{ShingleUnit, Text};
pub use shingler::Shingler;
pub use unicode::{UNICODE_VERSION, UnicodeVersion};
pub use utf8::for_each_piece;
