//! The verb `build`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use resemblance::Schema;
use resemblance::schema::DesignReport;

use crate::failure::{Outcome, Result};
use crate::options::{BoundOptions, ClusterOptions, CorpusOptions, SchemaOptions, StoredOptions};
use crate::output::{must_be_new, parent};
use crate::session::{Context, Job, StoreBuilding, fill, resolve_corpus_to_store, with_tf_idf};
use resemblance_corpus::ContentRule;

/// Make a store from a corpus
///
/// A failed build leaves no store. A repeated key is bad input, which is detected once everything has been read.
/// Postings are sorted within --memory, and beyond that in a temporary file beside the store or in --temp-dir. A long
/// build prints after its first second how much time and memory it expects to need.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance build seen.rsm corpus.jsonl.gz
  resemblance build texts.rsm folder/ --include '*.txt' --chars 9
  resemblance build embeddings.rsm embeddings.npy --vector 384
  zcat part-*.gz | resemblance build seen.rsm - --skip-bad")]
pub(crate) struct BuildArguments {
    /// The file to create; it must not exist
    #[arg(value_name = "NEW_STORE")]
    store: PathBuf,
    /// JSON Lines files, tables, folders or - (see resemblance --help)
    #[arg(required = true)]
    corpus: Vec<PathBuf>,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    clusters: ClusterOptions,
    #[command(flatten)]
    stored: StoredOptions,
    #[command(flatten)]
    options: CorpusOptions,
    /// Save the results for each file of the corpus in this folder, and reuse those of an interrupted run. Writing the
    /// store starts over
    #[arg(long, value_name = "OUT_DIR")]
    job: Option<PathBuf>,
}

impl BuildArguments {
    /// Returns the schema that the options ask for, or an error if they contradict each other.
    fn own_schema(&self) -> Result<Schema> {
        let schema = self.clusters.put(self.schema.build(&self.bounds)?)?;
        if self.job.is_some() {
            self.schema.must_not_weigh("--job")?;
        }
        Ok(schema)
    }

    /// An error if the values of options contradict each other, whatever the corpus is.
    pub(crate) fn must_agree(&self) -> Result<()> {
        self.own_schema()?;
        self.options.settings().map(drop)
    }
}

pub(crate) fn build(context: &Context, arguments: &BuildArguments) -> Result<Outcome> {
    let target = &arguments.store;
    let mut schema = arguments.own_schema()?;
    must_be_new(target, "add adds documents to an existing store")?;
    if arguments.schema.weighs_by_rarity() {
        schema = with_tf_idf(context, schema, &arguments.corpus, &arguments.options)?;
    }
    let (stored, content) = (Some(&arguments.stored), ContentRule::new(&schema, false));
    let options = &arguments.options;
    let corpus = resolve_corpus_to_store(context, &arguments.corpus, options, content, stored)?;
    let skip_bad = arguments.options.skip_bad;
    let folder = parent(target);
    let building = StoreBuilding::begin(context, target, &folder, &schema, skip_bad)?;
    let settings = [("the verb", "build".into())];
    let job = Job::open(
        context,
        arguments.job.as_deref(),
        &corpus,
        &schema,
        &settings,
    )?;
    let in_job = building.with_job(job);
    let filled = fill(context, &Arc::new(corpus), in_job, &schema, None)?;
    context.detail(&schema);
    context.counts(filled.tally.summary("added", filled.totals));
    let design = DesignReport::new(&schema, filled.tally.kept);
    context.messages.advise(&design);
    Ok(Outcome::Done)
}
