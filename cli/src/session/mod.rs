//! What the verbs share: the context of a run, documents of a corpus worked on by all threads, stores
//! on their way to their names, and the counts that are told.
//!
//! It knows the shared options, and no verb.

mod bit_list;
mod building;
mod context;
mod copying;
mod filling;
mod interrupt;
mod joins;
mod keys;
mod opening;
mod panics;
mod positions;
mod reading;
mod sampling;
mod scratch_store;
mod store_texts;
mod subject;
mod tally;
mod texts;
mod trimming;
mod watched;
mod weighing;

pub(crate) use bit_list::BitList;
pub(crate) use building::{Building, StoreBuilding, bulk_options, deduplicator};
pub(crate) use context::Context;
#[cfg(feature = "sqlite")]
pub(crate) use copying::corpus_changed;
pub(crate) use copying::{CopiedRecords, copy_records, must_be_same, spool_sources};
pub(crate) use filling::fill;
pub(crate) use interrupt::Interrupt;
pub(crate) use joins::{
    JoinProduct, JoinProgress, announce_join, limited, tell_left_out, tell_suspicious,
};
pub(crate) use keys::{change_each, pair_sorter};
pub(crate) use opening::{must_take_text, open_to_read, open_to_write};
pub(crate) use panics::{contain_panics, silence_panics};
pub(crate) use reading::{
    CorpusDocuments, DOCUMENTS_TOGETHER, Job, JobContent, JobValue, MAX_HELD_BYTES, ReadDocument,
    WorkedDocument, resolve_corpus, resolve_corpus_to_store, sketch_documents,
};
pub(crate) use sampling::{SampleSource, read_sample};
pub(crate) use scratch_store::ScratchStore;
pub(crate) use store_texts::NamedStore;
pub(crate) use subject::Subject;
pub(crate) use tally::DocumentTally;
pub(crate) use texts::{KnownTexts, must_be_rereadable, read_text, read_texts_of, taken_text};
pub(crate) use trimming::{TrimmedCorpus, trim_corpus};
pub(crate) use watched::Watched;
pub(crate) use weighing::with_tf_idf;
