//! The bytes of a file, decompressed and cut into lines of limited length.
//!
//! It knows how files are compressed, but not what documents are.

mod bounded;
mod compression;
mod opened;

pub use bounded::read_bounded;
pub(super) use bounded::{Lines, read_all};
pub use compression::{Compression, Encoder};
pub(super) use opened::{Decoded, decode};
