//! Several stores with one recipe become one.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::{BulkBuild, BulkOptions, BulkReport, bulk_build};
use crate::error::{Error, Result};
use crate::read::{Records, SnapshotView};
use crate::schema::Schema;
use crate::state::{OpenStore, open_read_only};
use crate::types::{Document, Phase, Progress, Record, Watch};

/// The parameter that errors name.
const SHARDS: &str = "shards";

/// A merge of stores that has been described and not yet begun: see [`Store::merge`](crate::Store::merge).
///
/// ```
/// # use resemblance::{BulkOptions, DuplicateKeys, MinHash, Schema, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = |name: &str| folder.path().join(name);
/// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
/// # for name in ["a", "b"] {
/// #     let store = Store::create(file(name), schema.clone())?;
/// #     store.insert("key", &store.sketcher().hashes([1])?)?;
/// # }
/// use std::ops::ControlFlow;
/// let report = Store::merge(file("all"), [file("a"), file("b")])
///     .bulk(BulkOptions::new().duplicate_keys(DuplicateKeys::KeepLast))
///     .on_progress(|progress| {
///         eprintln!("{progress}");
///         ControlFlow::Continue(())
///     })
///     .run()?;
/// assert_eq!((report.documents, report.duplicates), (1, 1));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "a merge does nothing until it is run"]
pub struct ShardMerge<'a> {
    target: PathBuf,
    shards: Vec<PathBuf>,
    bulk: BulkOptions,
    watch: Watch<'a>,
}

impl<'a> ShardMerge<'a> {
    pub(crate) fn new(target: &Path, shards: Vec<PathBuf>) -> Self {
        Self {
            target: target.into(),
            shards,
            bulk: BulkOptions::new(),
            watch: Watch::new("the merge"),
        }
    }

    /// The options by which the new store is built: memory, threads, and what happens to a document
    /// whose key an earlier one has.
    pub fn bulk(mut self, options: BulkOptions) -> Self {
        self.bulk = options;
        self
    }

    /// Sets what is told of the progress, and may stop the merge: see [`Progress`]. There is no new
    /// store then.
    pub fn on_progress(mut self, callback: impl FnMut(Progress) -> ControlFlow<()> + 'a) -> Self {
        self.watch.set(callback);
        self
    }

    /// Makes the new store.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if there is no shard, or one was made by another recipe than the
    /// first; those of [`Store::open_read_only`](crate::Store::open_read_only) for a shard;
    /// [`Error::AlreadyExists`], [`Error::KeyTwice`], [`Error::Stopped`] and [`Error::Io`] as a bulk
    /// build. There is no new store then.
    pub fn run(self) -> Result<BulkReport> {
        let (target, shards, bulk) = (&self.target, &self.shards, &self.bulk);
        self.watch.run(|watch| merge(target, shards, bulk, watch))
    }
}

impl fmt::Debug for ShardMerge<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardMerge")
            .field("target", &self.target)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}

fn merge(
    target: &Path,
    shards: &[PathBuf],
    bulk: &BulkOptions,
    watch: &mut Watch<'_>,
) -> Result<BulkReport> {
    let Some((first, others)) = shards.split_first() else {
        return Err(Error::invalid(SHARDS, "none", "one or more"));
    };
    let opened = Arc::new(open_read_only(first, &bulk.store)?);
    let schema = opened.schema().clone();
    // Those that do not fit are told of before hours are spent on the others.
    for path in others {
        check(&schema, path, open_read_only(path, &bulk.store)?.schema())?;
    }
    let mut build = bulk_build(target, schema.clone(), bulk)?;
    copy(&mut build, &opened, watch)?;
    drop(opened);
    for path in others {
        let opened = Arc::new(open_read_only(path, &bulk.store)?);
        // Another process may have replaced it.
        check(&schema, path, opened.schema())?;
        copy(&mut build, &opened, watch)?;
    }
    build.finish_watched(watch, &mut |_, _| ControlFlow::Continue(()))
}

/// Checks that signatures of a shard are those of the first one.
fn check(schema: &Schema, path: &Path, shard: &Schema) -> Result<()> {
    let bits = |schema: &Schema| schema.minhash().map(|minhash| minhash.value_bits());
    let difference = schema.recipe_difference(shard);
    let (part, found, expected) = match difference {
        Some(difference) => (difference.part, difference.found, difference.expected),
        None if schema.weights() != shard.weights() => (
            "weights of features",
            shard.weights_in_words(),
            schema.weights_in_words(),
        ),
        None if bits(schema) != bits(shard) => {
            let words = |schema| format!("{:?}", bits(schema));
            ("bits of a value", words(shard), words(schema))
        }
        None => return Ok(()),
    };
    let found = format!("{}, {part}: {found}", path.display());
    Err(Error::invalid(
        SHARDS,
        found,
        format!("{expected}, as in the first"),
    ))
}

/// Adds the documents of a shard.
fn copy(build: &mut BulkBuild<'_>, shard: &Arc<OpenStore>, watch: &mut Watch<'_>) -> Result<()> {
    let snapshot = SnapshotView::open(shard)?;
    for record in Records::new(&snapshot) {
        let record = record?;
        build.insert(document(&record), record.signature())?;
        watch.step(Phase::ReadingDocuments, build.len(), None)?;
    }
    watch.tell(Phase::ReadingDocuments, build.len(), None)
}

fn document(record: &Record) -> Document<'_> {
    let document = record
        .key()
        .map_or_else(Document::without_key, Document::new);
    document.stamp(record.stamp()).payload(record.payload())
}
