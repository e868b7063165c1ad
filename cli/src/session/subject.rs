//! What a verb looks at: a store, or a corpus in a temporary store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use resemblance::verification::FeatureFiles;
use resemblance::{Bounds, Snapshot};

use super::building::StoreBuilding;
use super::context::Context;
use super::documents::resolve_corpus;
use super::filling::fill_store;
use super::opening::open_to_read;
use super::scratch_store::ScratchStore;
use crate::corpus::{is_store, only_store};
use crate::failure::{Failure, Result};
use crate::options::{BoundOptions, CorpusOptions, SchemaOptions, VerifyOptions};

/// A snapshot with whatever must live as long.
pub(crate) struct Subject {
    pub(crate) snapshot: Snapshot,
    /// What the options ask for; the schema's own bounds where a corpus was read.
    pub(crate) bounds: Bounds,
    /// Of all documents, if similarities are to be exact.
    pub(crate) features: Option<Arc<FeatureFiles>>,
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
        if let Some(path) = only_store(options.inputs) {
            return Self::open_store(context, path, options);
        }
        if let Some(store) = options.inputs.iter().find(|path| is_store(path)) {
            return Err(Failure::usage(format!(
                "{} is a store; give one store alone, or corpora",
                store.display()
            )));
        }
        Self::read_corpus(context, options)
    }

    fn open_store(context: &Context, path: &Path, options: &SubjectOptions<'_>) -> Result<Self> {
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

    fn read_corpus(context: &Context, options: &SubjectOptions<'_>) -> Result<Self> {
        let schema = options.schema.build_for_texts(options.bounds)?;
        let corpus = Arc::new(resolve_corpus(context, options.inputs, options.corpus)?);
        let skip_bad = options.corpus.skip_bad;
        let mut features = options.verify.features(&context.temp_dir, &schema)?;
        let (scratch, filled) = ScratchStore::build_unnamed(context, |path| {
            let building =
                StoreBuilding::begin(context, path, &context.temp_dir, &schema, skip_bad)?;
            fill_store(context, &corpus, building, &schema, features.as_mut())
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
