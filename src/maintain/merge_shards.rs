//! Merges several stores with one recipe.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build::{BulkBuild, BulkOptions, BulkReport, bulk_build};
use crate::error::{Error, Result};
use crate::read::{Records, SnapshotView};
use crate::state::{OpenStore, open_read_only};
use crate::types::{Document, Operation, Phase, ReportSettings, Watch};
use resemblance_sketch::schema::Schema;

/// The parameter that errors name.
const SHARDS: &str = "shards";

/// Describes the merge of stores into a new one.
pub(crate) fn merge_shards<'a>(target: &Path, shards: Vec<PathBuf>) -> Operation<'a, BulkReport> {
    let path = target.to_path_buf();
    let settings = BulkOptions::new();
    Operation::new("the merge", settings, move |bulk, watch| {
        merge(&path, &shards, &bulk, watch)
    })
}

impl ReportSettings for BulkReport {
    type Settings = BulkOptions;
}

impl Operation<'_, BulkReport> {
    /// Sets the options with which the merged store is built: memory, threads, and the rule for
    /// repeated keys.
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
    /// let report = Store::merge(file("all"), [file("a"), file("b")])
    ///     .bulk(BulkOptions::new().duplicate_keys(DuplicateKeys::KeepLast))
    ///     .run()?;
    /// assert_eq!((report.documents, report.duplicates), (1, 1));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn bulk(mut self, options: BulkOptions) -> Self {
        self.settings = options;
        self
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
    // Shards that do not fit are reported before hours are spent on the others.
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
        build.insert(Document::from(&record), record.signature())?;
        watch.step(Phase::ReadingDocuments, build.len(), None)?;
    }
    watch.report(Phase::ReadingDocuments, build.len(), None)
}
