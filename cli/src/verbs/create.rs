//! The verb `create`.

use std::path::PathBuf;

use clap::Args;
use itertools::Itertools as _;

use crate::failure::{Failure, Outcome, Result};
use resemblance::Schema;

use crate::options::{BoundOptions, ClusterOptions, CorpusOptions, SchemaOptions};
use crate::output::must_be_new;
use crate::session::{Context, open_to_read, with_tf_idf};

/// Make an empty store
///
/// Prints the schema, and with -v the probability of finding a pair near the threshold. How signatures are computed is
/// fixed from then on; reband can change bands and tables. A store with --features accepts documents by their features,
/// one with --vector by their vectors, and one with --minhash-kind external accepts signatures from another program.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance create seen.rsm
  resemblance create seen.rsm --chars 9 --minhash 256 --threshold 0.7 --recall 0.99
  resemblance create pages.rsm --simhash 64 --distance 3 --expected 100000000
  resemblance create next.rsm --like seen.rsm
  resemblance create news.rsm --threshold 0.7 --clusters
  resemblance create crawl.rsm --shared-writers
  resemblance create small.rsm --minhash 512 --minhash-kind one-pass --value-bits 1
  resemblance create others.rsm --minhash-kind external --value-bits 16
  resemblance create embeddings.rsm --vector 384 --threshold 0.97")]
pub(crate) struct CreateArguments {
    /// The file to create; it must not exist
    #[arg(value_name = "NEW_STORE")]
    store: PathBuf,
    /// Copy the schema of this store. Other schema options must agree with it
    #[arg(long, value_name = "STORE", conflicts_with_all = ["threshold", "euclidean", "distance", "tf_idf_of", "tf_idf"])]
    like: Option<PathBuf>,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    clusters: ClusterOptions,
    /// Let several processes write the store in turns. Each commit then also writes which pages of the file are free.
    /// Other processes can read any store while one writes it
    #[arg(long)]
    shared_writers: bool,
    /// Weight features by their rarity in these corpora (tf-idf). The store keeps the counts
    #[arg(long, value_name = "CORPUS", num_args = 1.., conflicts_with = "tf_idf")]
    tf_idf_of: Vec<PathBuf>,
    #[command(flatten)]
    options: CorpusOptions,
}

impl CreateArguments {
    /// Returns the schema that the options ask for, or an error if they contradict each other.
    fn own_schema(&self) -> Result<Schema> {
        self.clusters.put(self.schema.build(&self.bounds)?)
    }

    /// An error if the values of options contradict each other.
    pub(crate) fn must_agree(&self) -> Result<()> {
        match self.like {
            Some(_) => Ok(()),
            None => self.own_schema().map(drop),
        }
    }
}

pub(crate) fn create(context: &Context, arguments: &CreateArguments) -> Result<Outcome> {
    if arguments.schema.weighs_by_rarity() {
        return Err(
            Failure::usage("--tf-idf needs documents, and create reads none")
                .with_note("use --tf-idf-of CORPUS"),
        );
    }
    let mut schema = match &arguments.like {
        Some(other) => {
            let other = open_to_read(context, other)?;
            arguments.schema.must_agree(other.schema())?;
            arguments.clusters.put(other.schema().clone())?
        }
        None => arguments.own_schema()?,
    };
    must_be_new(
        &arguments.store,
        "create never overwrites: give another name",
    )?;
    if !arguments.tf_idf_of.is_empty() {
        schema = with_tf_idf(context, schema, &arguments.tf_idf_of, &arguments.options)?;
    }
    let options = context.store_options.clone();
    let options = options.shared_writers(arguments.shared_writers);
    let store = options.create(&arguments.store, schema)?;
    let schema = match context.messages.verbose {
        true => format!("{:#}", store.schema()),
        false => {
            let schema = store.schema().to_string();
            schema
                .lines()
                .filter(|line| !line.starts_with("  "))
                .join("\n")
        }
    };
    context.note(format!("made {}; {schema}", arguments.store.display()));
    Ok(Outcome::Done)
}
