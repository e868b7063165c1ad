//! Stores and collections that are built from a corpus.

use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use resemblance::{
    BulkBuild, BulkOptions, Collected, Collection, Document, DocumentId, DuplicateKeys, Error,
    Progress, Schema, Signature, Store,
};
use resemblance_corpus::dedup::Deduplicator;
use resemblance_corpus::verification::FeatureSets;
use resemblance_corpus::{Corpus, ReadTotals};
use tempfile::TempDir;

use super::context::Context;
use super::documents::CorpusDocuments;
use super::job::Job;
use super::positions::BitList;
use super::positions::DocumentPositions;
use super::tally::DocumentTally;
use crate::failure::{Failure, Result};
use crate::output::{parent, scratch_builder};
use resemblance::invariant::bug;

/// Called with a document that an earlier one's key keeps out, and the key.
pub(super) type OnRepeatedKey<'r> = dyn FnMut(DocumentId, &[u8]) -> Result<()> + Send + 'r;

/// A destination for documents that is built offline.
pub(crate) trait DocumentSink {
    /// The type of the finished product.
    type Made;

    fn insert(
        &mut self,
        document: Document<'_>,
        signature: &Signature,
    ) -> resemblance::Result<DocumentId>;

    fn finish<'f>(
        self,
        on_progress: impl FnMut(Progress) -> ControlFlow<()> + Send + 'f,
        on_duplicate: impl FnMut(DocumentId, &[u8]) -> ControlFlow<()> + Send + 'f,
    ) -> resemblance::Result<Self::Made>
    where
        Self: 'f;
}

/// Implements the methods that both sinks share, and callbacks that are set before the end.
macro_rules! document_sink {
    ($sink:ident, $made:ty, $finished:expr) => {
        impl DocumentSink for $sink<'_> {
            type Made = $made;

            fn insert(
                &mut self,
                document: Document<'_>,
                signature: &Signature,
            ) -> resemblance::Result<DocumentId> {
                self.insert(document, signature)
            }

            fn finish<'f>(
                self,
                on_progress: impl FnMut(Progress) -> ControlFlow<()> + Send + 'f,
                on_duplicate: impl FnMut(DocumentId, &[u8]) -> ControlFlow<()> + Send + 'f,
            ) -> resemblance::Result<$made>
            where
                Self: 'f,
            {
                let sink: $sink<'f> = self;
                let watched = sink.on_progress(on_progress).on_duplicate(on_duplicate);
                watched.finish().map($finished)
            }
        }
    };
}

document_sink!(BulkBuild, (), drop);
document_sink!(Collection, Collected, |collected| collected);

/// Documents on their way into a store or a collection.
pub(crate) struct Building<'c, S> {
    context: &'c Context,
    sink: S,
    /// True if later documents with a repeated key are left out; otherwise they are an error.
    keeps_first: bool,
    /// Keeps the documents that are read for it.
    job: Option<Arc<Job>>,
    /// The name of the store in messages: the user does not know the temporary one.
    name: String,
}

/// A store on its way to its name.
pub(crate) type StoreBuilding<'c> = Building<'c, BulkBuild<'c>>;

impl<'c> StoreBuilding<'c> {
    /// `folder` is the store's place in messages, unless the store gets its name in it. `keeps_first` decides about repeated keys.
    pub(crate) fn begin(
        context: &'c Context,
        target: &Path,
        folder: &Path,
        schema: &Schema,
        keeps_first: bool,
    ) -> Result<Self> {
        let name = match parent(target) == folder {
            true => target.display().to_string(),
            false => temporary_name(folder),
        };
        Self::with(context, name, keeps_first, |options| {
            Store::bulk_build(target, schema.clone(), options)
        })
    }
}

impl<'c> Building<'c, Collection<'c>> {
    /// A collection of documents for this run alone.
    pub(crate) fn collect(
        context: &'c Context,
        schema: &Schema,
        keeps_first: bool,
    ) -> Result<Self> {
        let folder = &context.temp_dir;
        Self::with(context, temporary_name(folder), keeps_first, |bulk| {
            let options = bulk.clone().memory_bytes(context.corpus_bytes());
            Collection::new(folder, schema.clone(), &options)
        })
    }
}

impl<'c, S: DocumentSink> Building<'c, S> {
    fn with(
        context: &'c Context,
        name: String,
        keeps_first: bool,
        begin: impl FnOnce(&BulkOptions) -> resemblance::Result<S>,
    ) -> Result<Self> {
        let options = bulk_options(context).duplicate_keys(if keeps_first {
            DuplicateKeys::KeepFirst
        } else {
            DuplicateKeys::Refuse
        });
        let sink = begin(&options);
        Ok(Self {
            sink: sink.map_err(|error| failure(&name, error))?,
            context,
            keeps_first,
            job: None,
            name,
        })
    }

    /// Returns the same builder with a job that keeps the documents that are read, if there is one.
    pub(crate) fn with_job(self, job: Option<Arc<Job>>) -> Self {
        Self { job, ..self }
    }

    /// Inserts a document, which is at `place`.
    pub(crate) fn insert(
        &mut self,
        document: Document<'_>,
        signature: &Signature,
        place: impl FnOnce() -> String,
    ) -> Result<DocumentId> {
        let inserted = self.sink.insert(document, signature);
        inserted.map_err(|error| Failure::document(&self.name, place(), error))
    }

    /// Completes the product. `repeated` is called for each document that is left out because of
    /// its key, or for the first, if that is an error: then it must return one.
    pub(crate) fn finish(self, repeated: &mut OnRepeatedKey<'_>) -> Result<S::Made> {
        let Self {
            context,
            sink,
            name,
            ..
        } = self;
        context.interrupt.check()?;
        let (mut watched, mut refused) = (context.watch(), None);
        let finished = sink.finish(
            |progress| watched.report(progress),
            |id, key| match repeated(id, key) {
                Ok(()) => ControlFlow::Continue(()),
                Err(failure) => {
                    refused = Some(failure);
                    ControlFlow::Break(())
                }
            },
        );
        let stopped = refused.or(watched.signal());
        match finished {
            Ok(made) => Ok(made),
            Err(Error::KeyTwice { key, second, .. }) => {
                repeated(second, &key)?;
                Err(bug("a key that came twice was let pass").into())
            }
            Err(error) => Err(stopped.unwrap_or_else(|| failure(&name, error))),
        }
    }
}

/// Returns the command line's options for bulk work.
pub(crate) fn bulk_options(context: &Context) -> BulkOptions {
    let mut options = BulkOptions::new()
        .store(context.store_options.clone())
        .memory_bytes(context.sorting_bytes);
    // one of them inserts
    if let Some(threads) = NonZeroUsize::new(context.threads.saturating_sub(1).max(1)) {
        options = options.threads(threads);
    }
    if let Some(folder) = &context.given_temp_dir {
        options = options.temp_dir(folder);
    }
    options
}

/// Returns a name for a store in a folder, for messages: the user does not know its real name.
pub(crate) fn temporary_name(folder: &Path) -> String {
    format!("temporary store in {}", folder.display())
}

/// Returns a deduplicator that decides on documents one by one, in a store named by [`temporary_name`]. `budget` is
/// the number of candidates that a document is compared with, if it is limited.
pub(crate) fn deduplicator(
    context: &Context,
    schema: &Schema,
    budget: Option<NonZeroU64>,
) -> Result<Deduplicator> {
    let mut options = context.store_options.clone();
    if let Some(budget) = budget {
        options = options.probe_budget(budget.get());
    }
    let folder = &context.temp_dir;
    let begun = Deduplicator::create(folder, schema.clone(), &options)
        .map_err(|error| Failure::store(temporary_name(folder), error))?
        .memory_bytes(context.corpus_bytes());
    Ok(match NonZeroUsize::new(context.threads) {
        Some(threads) => begun.threads(threads),
        None => begun,
    })
}

fn failure(name: &str, error: Error) -> Failure {
    match error {
        // this one names the target
        error @ Error::AlreadyExists { .. } => error.into(),
        error => Failure::store(name, error),
    }
}

/// A store or a collection with its documents, and counts of them.
pub(crate) struct Filled<M> {
    pub(crate) made: M,
    pub(crate) tally: DocumentTally,
    pub(crate) totals: ReadTotals,
}

/// Puts a corpus into a sink, by this schema, in corpus order, and completes it. If it keeps the
/// first of equal keys, bad documents are skipped too. `features` gets those of the documents.
pub(crate) fn fill<S: DocumentSink>(
    context: &Context,
    corpus: &Arc<Corpus>,
    mut building: Building<'_, S>,
    schema: &Schema,
    mut features: Option<&mut FeatureSets>,
) -> Result<Filled<S::Made>> {
    let skip_bad = building.keeps_first;
    let sketcher = schema.sketcher();
    let with_features = features.is_some();
    let mut documents =
        CorpusDocuments::start_job(context, corpus, building.job.clone(), move |document| {
            Ok(document.content.sketch(&sketcher, with_features)?)
        });
    let mut positions = DocumentPositions::new(context.temp_dir.clone());
    let mut empty = BitList::default();
    let mut tally = DocumentTally::default();
    while let Some(read) = documents.next()? {
        let (source, line) = (read.source, read.line);
        let Some(document) = read.take(context, corpus, &mut tally, skip_bad)? else {
            continue;
        };
        let signature = &document.value.signature;
        let position = || corpus.position(source, line);
        match building.insert(document.to_store(), signature, position) {
            Ok(id) => {
                tally.kept += 1;
                tally.empty += u64::from(signature.is_empty());
                empty.push(signature.is_empty());
                positions.push(source, line)?;
                if let Some(features) = &mut features {
                    features.put(id, document.value.features)?;
                }
            }
            Err(failure) => tally.skip(context, failure, skip_bad)?,
        }
    }
    let totals = documents.end(context, &tally)?;
    let mut on_repeated = |id: DocumentId, key: &[u8]| {
        let (source, line) = positions.get(id.get())?;
        let failure = Failure::repeated_key(key, corpus.position(source, line));
        tally.skip(context, failure, skip_bad)?;
        tally.kept -= 1;
        tally.empty -= u64::from(empty.get(id.get())?);
        Ok(())
    };
    let made = building.finish(&mut on_repeated)?;
    Ok(Filled {
        made,
        tally,
        totals,
    })
}

/// A store in a temporary folder, removed when dropped.
pub(crate) struct ScratchStore {
    // in this order: the store is closed before its folder is removed
    store: Store,
    _folder: Option<TempDir>,
}

impl ScratchStore {
    /// A store that `build` makes under the name it is given, for reading.
    pub(crate) fn build_unnamed<T>(
        context: &Context,
        build: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<(Self, T)> {
        let name = temporary_name(&context.temp_dir);
        let folder = scratch_builder()
            .tempdir_in(&context.temp_dir)
            .map_err(|e| Failure::io(&name, &e))?;
        let path = folder.path().join("store.rsm");
        let built = build(&path)?;
        let store = context
            .store_options
            .open_read_only(&path)
            .map_err(|e| Failure::store(&name, e))?;
        let folder = if cfg!(unix) {
            folder.close().map_err(|e| Failure::io(&name, &e))?;
            None
        } else {
            Some(folder)
        };
        let scratch = Self {
            store,
            _folder: folder,
        };
        Ok((scratch, built))
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}
