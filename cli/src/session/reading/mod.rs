//! The documents of a corpus in its order, worked on by all threads; and jobs, which keep what was made of files that
//! were read.
//!
//! It knows the context of a run and the counts that are told.

mod documents;
mod in_flight;
mod job;
mod key_ledger;
mod pipeline;
mod read_document;
mod shard;

pub(crate) use documents::{
    CorpusDocuments, DOCUMENTS_TOGETHER, MAX_HELD_BYTES, resolve, resolve_corpus,
    resolve_corpus_to_store, sketch_documents,
};
pub(crate) use job::Job;
pub(super) use pipeline::WorkerPanicked;
pub(crate) use read_document::{ReadDocument, WorkedDocument};
pub(crate) use shard::{JobContent, JobValue};
