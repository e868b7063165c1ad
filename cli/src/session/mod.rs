//! Shared parts of the verbs: the context of a run, documents of a corpus that all threads work on,
//! unfinished stores, and the counts that are printed.
//!
//! It knows the shared options, and no verb.

mod building;
mod context;
mod copying;
mod documents;
mod interrupt;
mod job;
mod joins;
mod pipeline;
mod positions;
mod reported;
mod sampling;
mod shard;
mod stores;
mod subject;
mod tally;
mod texts;

pub(crate) use building::{
    Building, ScratchStore, StoreBuilding, bulk_options, deduplicator, fill, temporary_name,
};
pub(crate) use context::Context;
#[cfg(feature = "sqlite")]
pub(crate) use copying::corpus_changed;
pub(crate) use copying::{
    CopiedRecords, Revisits, TrimmedCorpus, copy_records, must_be_same, spool_sources, trim_corpus,
};
pub(crate) use documents::{
    CorpusDocuments, DOCUMENTS_TOGETHER, MAX_HELD_BYTES, resolve, resolve_corpus,
    resolve_corpus_to_store, sketch_documents,
};
pub(crate) use interrupt::{INTERRUPT, Interrupt};
pub(crate) use job::Job;
pub(crate) use joins::{
    JoinProduct, JoinProgress, limited, missed_pairs, prepare_join, print_certainty,
    print_left_out, print_suspicious,
};
pub(crate) use positions::BitList;
pub(crate) use reported::{ReportedRow, document_key, read_report};
pub(crate) use sampling::{SampleSource, read_sample, weighed, with_tf_idf};
pub(crate) use shard::{JobContent, JobValue};
pub(crate) use stores::{
    change_each, change_store, find_document, must_take_text, open_to_read, open_with_clusters,
};
pub(crate) use subject::Subject;
pub(crate) use tally::{DocumentTally, ReadDocument, WorkedDocument};
pub(crate) use texts::{
    KnownTexts, MissingText, StoredTexts, must_be_rereadable, read_numbered_texts, read_text,
    read_texts_of, taken_text,
};
