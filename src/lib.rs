//! An embedded, transactional, on-disk store for near-duplicate search.
//!
//! *Have I already got something like this?* A store answers that question for texts, sets,
//! weighted features, vectors and signatures of other programs. It uses MinHash (estimated Jaccard
//! similarity), SimHash (Hamming distance), or both, and hashes of [`Vector`]s (cosine, Euclidean
//! distance). A store is one durable file; documents can be added and removed at any time.
//!
//! ```
//! use resemblance::{MinHash, Schema, SimHash, Store, Text};
//!
//! let schema = Schema::builder()
//!     .text(Text::words(3))                         // how a text becomes a set of shingles
//!     .minhash(MinHash::new(128).threshold(0.7))    // bands chosen for a recall of 0.95 at 0.7
//!     .simhash(SimHash::bits64().max_distance(3))   // optional: both families in one file
//!     .build()?;
//! let store = Store::in_memory(schema)?;            // or `Store::open_or_create(path, schema)`
//!
//! let page = store.sketch_text("It was the best of times, it was the worst of times, it was \
//!     the age of wisdom, it was the age of foolishness, it was the epoch of belief")?;
//! assert!(store.insert_if_new("page/1", &page)?.is_new()); // one step, safe from many threads
//!
//! let again = store.sketch_text("It was the best of times, it was the worst of times; it was \
//!     the age of wisdom, it was the age of foolishness, it was the epoch of BELIEF...")?;
//! let snapshot = store.snapshot()?;                 // isolated from later writes
//! let matches = snapshot.query(&again).min_similarity(0.7).limit(10).run()?;
//! assert_eq!(matches[0].key_str().as_deref(), Some("page/1"));
//! # Ok::<(), resemblance::Error>(())
//! ```
//!
//! # Where to start
//!
//! - [`guide`] has a short program for each task.
//! - [`Schema`] defines how documents are compared. How signatures are computed is fixed when a
//!   store is created; how they are indexed can be changed by [`Store::reband`].
//! - [`Store`] is a file, or is [in memory](Store::in_memory). [`WriteTransaction`]s change it, and
//!   [`Snapshot`]s read it.
//! - [`Store::bulk_build`] builds a new store of many documents, offline.
//! - [`Sketcher`] computes [`Signature`]s of texts and features, in any thread, with or without a
//!   store.
//! - [`Snapshot::query`], [`Snapshot::pairs`] and [`Snapshot::clusters`] find near-duplicates.
//! - [`exact`] computes the similarities that signatures estimate; [`Query::verify`] and
//!   [`Join::verify`] replace estimates by exact ones. [`exact::shared_spans`] shows which parts
//!   two texts share.
//! - [`Collection`] and [`KeptDocuments`] compare the documents of one job without a store. The crate
//!   `resemblance-corpus` reads corpora and finds their duplicates, `resemblance-eval` compares schemas.
//! - [`Store::touch`] renews a document, [`Store::evict`] removes those that were not renewed.
//!   [`Revision`] relates a document to its last version.
//! - [`Store::check`] and [`Snapshot::stats`] inspect a store, and [`Store::metrics`] counts what
//!   it has done since it was opened. [`Store::compact`] shrinks a store and drops the remains of
//!   removed documents; [`Store::repair`] rebuilds a damaged one from what can be read.
//! - [`Snapshot::backup`] copies a store that is in use; [`Snapshot::export`] and [`Store::import`] move
//!   documents from one store to another.
//! - Every long operation reports its [`Progress`] to a callback, which can stop it, and returns a
//!   [`report`].
//!
//! The names that most programs need are at the root. The modules contain the rest: [`schema`],
//! [`search`], [`report`], [`stats`] and [`metrics`] have the details of a schema, an answer, an
//! operation and a store; [`distributed`] has the parts that only joins over many machines need.
//!
//! # Kinds of signatures
//!
//! - [`MinHash::new`]: minima of k hash functions. The default choice.
//! - [`MinHash::one_pass`]: equally accurate, at a cost per feature that does not depend on k. Use
//!   it for many values and long documents.
//! - [`MinHash::bottom_k`]: the k smallest hashes, exact for small sets.
//! - [`MinHash::weighted`]: weighted Jaccard similarity, where it matters how often a feature
//!   occurs.
//! - [`MinHash::probability`]: probability Jaccard similarity, where only the shares of features matter.
//! - [`MinHash::external`]: values computed elsewhere, which [`Signature::from_minhash`] and
//!   related functions accept.
//! - [`MinHash::value_bits`]: the number of bits per value, from 1 to 32, for every kind except
//!   bottom-k. Default: 16.
//! - [`SimHash::bits64`] and [`SimHash::bits128`]: fingerprints that differ in few bits if the
//!   documents are nearly identical.
//!
//! [`Signature::merge`] makes the signature of a union from those of its parts.
//! [`DocumentFrequencies`](schema::DocumentFrequencies) give rare features more weight.
//! [`Sketcher::text_reader`] reads texts that are too long for memory.
//!
//! # What can be relied on
//!
//! - Changes survive a crash once their commit has returned `Ok`; uncommitted changes are never
//!   visible.
//! - A search by Hamming distance finds every document within the distance. A search by similarity
//!   finds a pair with a probability that the schema prints and every answer states. A result
//!   reports whatever was capped, skipped or estimated.
//! - `format-spec.md` freezes the hashes and the bytes on disk. Whenever a file is opened, a
//!   self-test in it is repeated.
//! - All bounds are inclusive. Matches are sorted best first, and ties by order of insertion.
//! - No input and no file makes the library panic. Every page is verified when it is read from the
//!   file: damage is [`Error::Corrupt`], never a wrong or a shorter answer. (If the storage engine
//!   panics nevertheless, the panic is caught and returned as an error, unless the program is built
//!   with `panic = "abort"`.)
//!
//! `docs/promises.md` in the repository lists all promises, each with the test that checks it.
//!
//! # Features
//!
//! No feature is enabled by default. `languages` adds the steps of [`Text`] that depend on a
//! language: stop words and stems. `log` reports events of stores through the crate `log`, under
//! targets that begin with `resemblance::`; [`guide::metrics`] lists the events. The command-line
//! tool is a separate package, `resemblance-cli`, with `languages`.

mod build;
mod clusters;
mod engine;
mod error;
mod format;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod group_commit;
pub mod guide;
mod id;
mod index;
#[doc(hidden)]
pub mod invariant;
mod join;
mod maintain;
mod memory;
mod observe;
mod options;
mod query;
mod read;
#[cfg(test)]
#[path = "../tests/common/sample.rs"]
mod sample;
mod snapshot;
mod state;
mod store;
mod sync;
#[cfg(test)]
mod testing;
mod threads;
mod types;
mod write;

pub use build::{BulkBuild, BulkOptions, DuplicateKeys};
pub use clusters::ClusterChanges;
#[doc(hidden)]
pub use engine::{Access, Files, OPENED_SINCE, kept_permissions, sync_folder};
pub use error::{Error, Result};
pub use group_commit::{Closed, Queue, Ticket};
pub use id::{ClusterId, DocumentId};
pub use join::{Clusters, GrownCluster, Join, Pair, Pairs, Representative};
#[doc(hidden)]
pub use join::{FamilySums, MissedPairs};
pub use maintain::{EvictPolicy, ExistingKeys};
pub use memory::{Collected, Collection, KeptDocuments, LoneDocuments, LookAhead};
pub use options::StoreOptions;
pub use query::{Bounds, ContainmentQuery, Family, Nearest, Query, SearchOptions};
pub use read::Records;
pub use resemblance_sketch::{
    Combine, Containment, Fingerprint, MinHash, Schema, SchemaBuilder, Signature, SimHash,
    Sketcher, Text, Vector, exact,
};
pub use snapshot::Snapshot;
pub use store::Store;
#[doc(hidden)]
pub use threads::{in_shares, take_behind};
#[doc(hidden)]
pub use types::{CertaintyBasis, Watch};
pub use types::{
    ClusterChange, ClusterEvent, Document, Filter, Match, Matches, Novelty, Operation, Overlap,
    Overlaps, Phase, Progress, Record, Revision, StoredDocument, Upserted, key_text,
};
pub use write::{InsertMany, WriteTransaction};

/// Details of a [`Schema`]: kinds of MinHash, the designs of bands and tables, units and languages
/// of texts, frequencies of features, and the error of sketching. Most programs set them through a
/// [`SchemaBuilder`] and use few of these names.
pub mod schema {
    #[doc(hidden)]
    pub use resemblance_sketch::schema::noun;
    pub use resemblance_sketch::schema::{ClusterBounds, Linkage};
    pub use resemblance_sketch::{
        Banding, DesignReport, DocumentFrequencies, EmptyDocuments, KeptVector, Language,
        MinHashKind, MinHashSchema, Permutations, Rebanding, ShingleUnit, SketchError,
        StreamedText, TYPICAL_FEATURES, TableDesign, UNICODE_VERSION, VectorMetric, VectorSchema,
        feature_hash,
    };
}

/// Details of queries and answers: where a query searched, what a budget or a full bucket left out,
/// which passages are shared, and the candidates that a caller verifies.
pub mod search {
    pub use crate::join::{JoinedDocuments, LeftOut, SuspiciousCluster};
    pub use crate::query::{Earlier, OneOrMany};
    pub use crate::types::{BudgetExceeded, Certainty, FrequentPassage, PlacedPassage, Scope};
}

/// Reports that long operations return when they are done ([`Operation`] runs them), and estimates
/// of the resources that they will need.
pub mod report {
    pub use crate::build::{BuildEstimate, BulkReport, RebandReport};
    pub use crate::join::JoinEstimate;
    pub use crate::maintain::{
        BackupReport, CompactReport, EvictReport, ExportReport, IdRange, ImportReport, RepairReport,
    };
    pub use crate::types::{CheckReport, Problem, Report};
}

/// The contents of a store, as [`Snapshot::stats`] counts them: documents, runs, tables, lanes and
/// buckets; and the version of the file format that this release writes.
pub mod stats {
    pub use crate::format::FORMAT_VERSION;
    pub use crate::maintain::{
        BucketSample, BucketStats, LaneStats, MergeStats, RunStats, Stats, TableStats,
    };
    pub use resemblance_sketch::sketch::vector_instructions;
}

/// Counters and latencies since a store was opened, which [`Store::metrics`] returns.
pub mod metrics {
    pub use crate::observe::{Latencies, Metrics};
}

/// The parts of a join over many machines that each worker runs: signatures as bytes, the codes of
/// their buckets, and the rule that decides on a pair. The job on Spark in the Python package uses
/// it.
pub mod distributed {
    pub use crate::maintain::{Codec, PairRule, PairScore};
}

/// The examples of the README and the tutorial, which are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/tutorial.md")]
struct Readme;
