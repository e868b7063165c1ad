//! The subject that a verb examines: a store, or a corpus.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use resemblance::Collected;
use resemblance::{Bounds, Clusters, DocumentId, Filter, Join, Pairs, Schema, Snapshot};
use resemblance_corpus::verification::FeatureSets;

use super::building::Building;
use super::building::fill;
use super::context::Context;
use super::documents::resolve_corpus;
use super::job::Job;
use super::sampling::weighed;
use super::stores::open_to_read;
use crate::failure::{Failure, Result};
use crate::options::{CorpusOptions, FilterOptions, JoinOptions, ReadOptions};
use crate::output::{Counted, PairSorter};
use resemblance_corpus::{ContentRule, is_store, only_store};

/// The documents that are joined.
#[derive(Clone)]
pub(crate) enum SubjectDocuments {
    OfStore(Snapshot),
    OfCorpus(Collected),
}

impl SubjectDocuments {
    pub(crate) fn pairs<'a>(&self) -> Join<'a, Pairs> {
        match self {
            Self::OfStore(snapshot) => snapshot.pairs(),
            Self::OfCorpus(collected) => collected.pairs(),
        }
    }

    pub(crate) fn clusters<'a>(&self) -> Join<'a, Clusters> {
        match self {
            Self::OfStore(snapshot) => snapshot.clusters(),
            Self::OfCorpus(collected) => collected.clusters(),
        }
    }

    pub(crate) fn key(&self, id: DocumentId) -> resemblance::Result<Option<Vec<u8>>> {
        match self {
            Self::OfStore(snapshot) => snapshot.key(id),
            Self::OfCorpus(collected) => collected.key(id),
        }
    }

    /// Returns a sorter for pairs of these documents, by their keys.
    pub(crate) fn pair_sorter(&self, context: &Context) -> PairSorter {
        let (memory, folder) = (context.results_bytes(), context.temp_dir.clone());
        let documents = self.clone();
        PairSorter::new(memory, folder, move |id| documents.key(id))
    }

    pub(crate) fn schema(&self) -> &Schema {
        match self {
            Self::OfStore(snapshot) => snapshot.schema(),
            Self::OfCorpus(collected) => collected.schema(),
        }
    }
}

/// The subject of a join, and its bounds.
pub(crate) struct Subject {
    pub(crate) documents: SubjectDocuments,
    /// The bounds that the options ask for, or the schema's own bounds where a corpus was read.
    pub(crate) bounds: Bounds,
    /// Feature sets of all documents, if similarities are to be exact.
    pub(crate) features: Option<Arc<FeatureSets>>,
    /// The documents of a store that take part, if not all.
    pub(crate) filter: Option<Filter<'static>>,
}

impl Subject {
    pub(crate) fn open(
        context: &Context,
        inputs: &[PathBuf],
        options: &JoinOptions,
        filter: &FilterOptions,
        reading: &ReadOptions,
    ) -> Result<Self> {
        if let Some(path) = only_store(inputs) {
            return Ok(Self {
                filter: filter.filter(false)?,
                ..Self::open_store(context, path, options, reading)?
            });
        }
        if let Some(store) = inputs.iter().find(|path| is_store(path)) {
            return Err(Failure::usage(format!(
                "{} is a store, and a store must be the only input",
                store.display()
            ))
            .with_note("give one store, or only corpora"));
        }
        inputs
            .iter()
            .try_for_each(|corpus| filter.must_not_suit(corpus))?;
        Self::read_corpus(context, inputs, options, reading)
    }

    fn open_store(
        context: &Context,
        path: &Path,
        options: &JoinOptions,
        reading: &ReadOptions,
    ) -> Result<Self> {
        if reading.job.is_some() || reading.sample.is_some() {
            return Err(Failure::usage(format!(
                "--job and --sample need a corpus, and {} is a store",
                path.display()
            )));
        }
        let store = open_to_read(context, path)?;
        options.verify.must_suit_store(path, store.schema())?;
        options.schema.must_agree(store.schema())?;
        options.bounds.must_be_found(store.schema())?;
        options.by.must_suit(store.schema())?;
        Ok(Self {
            documents: SubjectDocuments::OfStore(store.snapshot()?),
            bounds: options.by.apply(options.bounds.bounds()),
            features: None,
            filter: None,
        })
    }

    fn read_corpus(
        context: &Context,
        inputs: &[PathBuf],
        options: &JoinOptions,
        reading: &ReadOptions,
    ) -> Result<Self> {
        if reading.job.is_some() {
            options.schema.must_not_weigh("--job")?;
        }
        options.must_have_family()?;
        let (corpus, bounds) = (&options.corpus, options.by.apply(Bounds::new()));
        let unweighed = options.schema.build(&options.bounds)?;
        let is_exact = options.verify.is_exact(&unweighed, false)?;
        let schema = weighed(context, unweighed, &options.schema, inputs, corpus)?;
        let (collected, features) =
            Self::collect(context, inputs, corpus, reading, &schema, is_exact)?;
        Ok(Self {
            documents: SubjectDocuments::OfCorpus(collected),
            bounds,
            features,
            filter: None,
        })
    }

    /// Reads a corpus, and the features of its documents if similarities are to be exact.
    pub(crate) fn collect(
        context: &Context,
        inputs: &[PathBuf],
        options: &CorpusOptions,
        reading: &ReadOptions,
        schema: &Schema,
        is_exact: bool,
    ) -> Result<(Collected, Option<Arc<FeatureSets>>)> {
        let content = ContentRule::new(schema, is_exact);
        let mut corpus = resolve_corpus(context, inputs, options, content)?;
        corpus.settings.sample = reading.sample;
        let corpus = Arc::new(corpus);
        let mut features = context.features(is_exact);
        let building = Building::collect(context, schema, options.skip_bad)?;
        let settings = [
            ("the verb", "pairs".into()),
            ("--verify", is_exact.to_string()),
        ];
        let job = Job::open(context, reading.job.as_deref(), &corpus, schema, &settings)?;
        let in_job = building.with_job(job);
        let filled = fill(context, &corpus, in_job, schema, features.as_mut())?;
        if let Some(features) = &mut features {
            features.flush()?;
            let bytes = features.file_bytes();
            let bytes = Counted(bytes, "byte");
            context.detail(format!("{bytes} of features in a temporary file"));
        }
        if let Some(share) = reading.sample {
            let (read, records) = (filled.tally.read, filled.totals.records);
            context.note(format!(
                "--sample {share}: {read} of {}, by hashes of their keys; a pair is found only if both are among \
                 them",
                Counted(records, "document")
            ));
        }
        context.counts(filled.tally.reading(filled.totals));
        Ok((filled.made, features.map(Arc::new)))
    }
}
