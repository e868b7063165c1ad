//! What a verb looks at: a store, or a corpus in a temporary store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use resemblance::{Bounds, Error, Schema, Signature, Sketcher, Snapshot, Store};

use super::Context;
use super::arguments::{BoundOptions, CorpusOptions};
use super::build;
use super::building::Building;
use super::failure::{Failure, Result};
use super::features::Features;
use super::schema::SchemaOptions;
use super::scratch::ScratchStore;
use super::verify::VerifyOptions;
use crate::corpus::{self, Corpus, Document};

/// A snapshot with whatever must live as long.
pub(crate) struct Subject {
    pub(crate) snapshot: Snapshot,
    /// What the options ask for; the schema's own bounds where a corpus was read.
    pub(crate) bounds: Bounds,
    /// Of all documents, if similarities are to be exact.
    pub(crate) features: Option<Arc<Features>>,
    _scratch: Option<ScratchStore>,
}

/// The options that decide how a subject is opened.
pub(crate) struct SubjectOptions<'a> {
    pub(crate) inputs: &'a [PathBuf],
    pub(crate) corpus: &'a CorpusOptions,
    pub(crate) schema: &'a SchemaOptions,
    pub(crate) bounds: &'a BoundOptions,
    pub(crate) verify: VerifyOptions,
}

impl Subject {
    pub(crate) fn open(context: &Context, options: &SubjectOptions<'_>) -> Result<Self> {
        if let Some(path) = corpus::only_store(options.inputs) {
            return Self::of_store(context, path, options);
        }
        if let Some(store) = options.inputs.iter().find(|path| corpus::is_store(path)) {
            return Err(Failure::usage(format!(
                "{} is a store; give one store alone, or corpora",
                store.display()
            )));
        }
        Self::of_corpus(context, options)
    }

    fn of_store(context: &Context, path: &Path, options: &SubjectOptions<'_>) -> Result<Self> {
        if options.verify.is_exact() {
            return Err(Failure::usage(format!(
                "--verify exact needs the texts, and {} is a store, which has none; give its corpus",
                path.display()
            )));
        }
        let store = open_to_read(context, path)?;
        options.schema.must_agree(store.schema())?;
        options.bounds.must_lie_within(store.schema())?;
        Ok(Self {
            snapshot: store.snapshot()?,
            bounds: options.bounds.bounds(),
            features: None,
            _scratch: None,
        })
    }

    fn of_corpus(context: &Context, options: &SubjectOptions<'_>) -> Result<Self> {
        let schema = options.schema.build_for_texts(options.bounds)?;
        let corpus = Corpus::resolve(options.inputs, options.corpus.settings()?)?;
        warn_if_nothing_included(context, &corpus);
        let corpus = Arc::new(corpus);
        let skip_bad = options.corpus.skip_bad;
        let mut features = options.verify.features(context, &schema)?;
        let (scratch, filled) = ScratchStore::build_unnamed(context, |path| {
            let building = Building::begin(context, path, &context.temp_dir, &schema, skip_bad)?;
            build::fill(context, &corpus, building, &schema, features.as_mut())
        })?;
        if let Some(features) = &mut features {
            features.flush()?;
            let bytes = features.size_bytes();
            context
                .messages
                .detail(format!("{bytes} bytes of features in temporary files"));
        }
        context
            .messages
            .note(filled.tally.summary("kept", filled.totals));
        Ok(Self {
            snapshot: scratch.store().snapshot()?,
            bounds: Bounds::new(),
            features: features.map(Arc::new),
            _scratch: Some(scratch),
        })
    }
}

/// Opens for reading. A store that was not closed properly is repaired first, which needs one
/// opening for writing; if there is no room to note that it was repaired, it is read as it is then.
pub(crate) fn open_to_read(context: &Context, path: &Path) -> Result<Store> {
    let options = &context.store_options;
    match Store::open_read_only_with(path, options) {
        Err(unreadable @ Error::NeedsRecovery { .. }) => {
            let name = path.display();
            match Store::open_with(path, options) {
                Ok(store) => drop(store),
                Err(error @ (Error::Io { .. } | Error::Storage(_))) => {
                    let why = Failure::from(error);
                    return Err(Failure::from(unreadable).with_note(&format!("tried, but {why}")));
                }
                Err(other) => return Err(other.into()),
            }
            match Store::open_read_only_with(path, options) {
                // Nothing tells of a failure to close: a full disk, as a rule.
                Err(Error::NeedsRecovery { .. }) => {
                    let note = format!("{name} cannot be closed properly; is its disk full?");
                    context.messages.note(note);
                    Ok(Store::open_with(path, options)?)
                }
                opened => {
                    let note = format!("{name} was not closed properly; repaired");
                    context.messages.note(note);
                    Ok(opened?)
                }
            }
        }
        opened => Ok(opened?),
    }
}

/// The signatures of some documents.
pub(crate) fn sketch(sketcher: &Sketcher, documents: &[Document<'_>]) -> Result<Vec<Signature>> {
    let signatures = documents
        .iter()
        .map(|document| sketcher.text(&document.text));
    Ok(signatures.collect::<resemblance::Result<_>>()?)
}

/// An error if texts cannot be sketched for this schema.
pub(crate) fn must_take_text(schema: &Schema) -> Result<()> {
    match schema.text() {
        Some(_) => Ok(()),
        None => Err(Failure::usage(
            "the store was made without a rule for texts, so only programs can add to it or query it",
        )),
    }
}

/// A pattern with a slip in it would otherwise look like an empty corpus.
pub(crate) fn warn_if_nothing_included(context: &Context, corpus: &Corpus) {
    if corpus.sources.is_empty() {
        context.messages.note("no file was found in the corpus");
    }
}
