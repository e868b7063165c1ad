//! The bytes of a file: decompressed, and cut into lines that have a limit.
//!
//! It knows how files are compressed, and no documents.

mod bounded;
mod compression;
mod opened;

pub use bounded::read_bounded;
pub(super) use bounded::{Lines, read_all};
pub use compression::{Compression, Encoder};
pub(super) use opened::{Decoded, decode};
