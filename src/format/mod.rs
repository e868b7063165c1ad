//! Bytes on disk and nothing else: what is written here is frozen by the format.

mod bits;
pub(crate) mod block;
mod block_encoder;
pub(crate) mod checksum;
pub(crate) mod dead;
pub(crate) mod engine;
pub(crate) mod filter;
pub(crate) mod header;
mod metadata;
pub(crate) mod pages;
pub(crate) mod posting;
pub(crate) mod rows;
pub(crate) mod run_descriptor;
pub(crate) mod runs;
pub(crate) mod stream;

pub use header::FORMAT_VERSION;
