//! The native half of the Python package `resemblance`; the parts that are better written in Python
//! are in `python/resemblance`.
//!
//! Files import from those above them in this list: `lease`, `errors`, `python`, `waiting`, `keys`, `schema`,
//! `exact`, `signature`, `batches`, `files`, `filter`, `answers`, `progress`, `joins`, `reads`, `snapshot`, `transaction`, `tickets`,
//! `store`, `vectors`, `maintain`, `repeats`, `corpus`, `distributed`.

mod answers;
mod batches;
mod comparison;
mod corpus;
mod distributed;
mod errors;
mod exact;
mod files;
mod filter;
mod joins;
mod kept_clusters;
mod keys;
mod lease;
mod maintain;
mod progress;
mod python;
mod reads;
mod repeats;
mod schema;
mod signature;
mod snapshot;
mod store;
mod tickets;
mod transaction;
mod vectors;
mod waiting;

use std::collections::BTreeMap;

use pyo3::prelude::*;

/// Returns what identifies this build in a report of a bug, as `resemblance --version --verbose` prints it.
#[pyfunction]
fn version_details() -> BTreeMap<&'static str, String> {
    let (major, minor, update) = resemblance::schema::UNICODE_VERSION;
    BTreeMap::from([
        ("commit", env!("RESEMBLANCE_COMMIT").into()),
        ("features", "html, sqlite, tables, warc".into()),
        (
            "store format",
            resemblance::stats::FORMAT_VERSION.to_string(),
        ),
        ("target", env!("RESEMBLANCE_TARGET").into()),
        ("Unicode", format!("{major}.{minor}.{update}")),
        (
            "vector instructions",
            resemblance::stats::vector_instructions().into(),
        ),
        ("version", env!("CARGO_PKG_VERSION").into()),
    ])
}

/// The classes and functions that the package exports.
// Classes are immutable or lock what their methods change, except for four that iterate and count inside the package: a
// second call beside a running one raises an error.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::{
        answers::{Match, Matches, Novelty, Record, Upserted},
        batches::{ArrowBatches, arrow_list, number_key},
        comparison::StoreComparison,
        corpus::{
            BulkBuild, Deduplicator, TemporaryCorpus, banding_choice, evaluate_sample, merge,
            table_choice,
        },
        distributed::{BucketPairs, Components, FirstKept, PairRule, shard_numbers, table_lines},
        exact::{
            WholeTexts, explanation_of_texts, passage_of_texts, similarity_of_sets,
            similarity_of_weights, spans_of_texts,
        },
        files::{CorpusFiles, parse_stamp},
        filter::Filter,
        joins::{Cluster, Clusters, Pair, Pairs},
        kept_clusters::{ClusterChange, ClusterChanges},
        keys::several,
        maintain::{check, compact, reband, repair},
        reads::Records,
        repeats::RepeatedParts,
        schema::Schema,
        signature::{Signature, Signatures},
        snapshot::Snapshot,
        store::Store,
        tickets::Ticket,
        transaction::Transaction,
        version_details,
    };

    use numpy::{PyArray1, PyArrayMethods};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // The first array loads the interface of NumPy, and Ctrl-C meanwhile would be a panic.
        let _ = module.py().import("numpy")?;
        let _ = PyArray1::<u64>::from_vec(module.py(), Vec::new()).readonly();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("FORMAT_VERSION", resemblance::stats::FORMAT_VERSION)
    }
}
