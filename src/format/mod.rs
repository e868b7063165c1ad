//! The bytes on disk and nothing else: one file for each chapter of `format-spec.md`.
//!
//! No I/O. Only this module decides about byte order and checksums.

mod bits;
mod block;
mod block_encoder;
pub(crate) mod checksum;
mod cluster_rows;
mod deleted_chunk;
pub(crate) mod document_row;
mod document_stream;
mod equal;
mod feed_row;
mod filter;
pub(crate) mod header;
mod kept_hashes;
mod posting;
mod run_descriptor;
mod runs;
mod set_chunk;

#[cfg(any(test, fuzzing))]
pub(crate) use block::BLOCK_VALUE_BYTES;
pub(crate) use block::{BLOCK_POSTINGS, Block, VerifiedHeader, claimed_postings};
pub(crate) use block_encoder::encode_if;
pub(crate) use cluster_rows::{
    ClusterRow, KeptCluster, Link, decode_member, edge_key, encode_member, split_edge_key,
};
#[cfg(any(test, fuzzing))]
pub(crate) use deleted_chunk::DEAD;
pub(crate) use deleted_chunk::{CHUNK_DOCUMENTS, DeletedChunk, TombstoneChanges};
pub(crate) use document_row::{
    DOCUMENTS, DocumentRow, PAYLOADS, RowHead, SETS, Shape, check_packed, decode_body,
    decode_payload, decode_set, decode_set_body, encode_document, encode_payload, encode_set,
    encode_signature, no_row, open_set, set_count,
};
pub(crate) use document_stream::{StreamDocument, StreamHeader, StreamReader, StreamWriter};
#[cfg(any(test, fuzzing))]
pub(crate) use equal::EQUAL;
pub(crate) use equal::EqualChunk;
pub(crate) use feed_row::{FEED, FeedRow, MAX_POSITIONS, decode_feed, position_after};
pub(crate) use filter::{
    FILTERS, FilterKey, FilterPiece, FilterProbe, FilterShape, filter_key, split_filter_key,
};
pub use header::FORMAT_VERSION;
#[cfg(any(test, fuzzing))]
pub(crate) use header::{HEADER, META, SCHEMA, SELF_TEST, STATE, encode_meta};
pub(crate) use header::{Header, State, decode_meta};
pub(crate) use kept_hashes::VectorForm;
pub(crate) use posting::{BlockKey, NearCodes, Posting, block_key, split_block_key};
pub(crate) use run_descriptor::{LaneSummary, RunDescriptor};
#[cfg(any(test, fuzzing))]
pub(crate) use runs::{LANES, RUNS};
pub(crate) use runs::{LaneRow, decode_run, encode_run};
pub(crate) use set_chunk::{ChunkSets, SET_CHUNK_BYTES, SetChunk};
