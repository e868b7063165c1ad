//! The verb `create`.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Outcome, Result};
use crate::options::{BoundOptions, SchemaOptions};
use crate::session::Context;

/// Make an empty store
///
/// Prints the schema, with the probability of finding a pair near the threshold. How signatures are made
/// is fixed from then on; reband changes bands and tables. A store with --minhash-kind external takes
/// no texts: programs fill it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance create seen.rsm
  resemblance create seen.rsm --chars 9 --minhash 256 --threshold 0.7 --recall 0.99
  resemblance create pages.rsm --simhash 64 --distance 3 --expected 100000000
  resemblance create small.rsm --minhash 512 --minhash-kind one-pass --value-bits 1
  resemblance create others.rsm --minhash-kind external --value-bits 16")]
pub(crate) struct CreateArguments {
    /// The file to make; it must not exist
    store: PathBuf,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    bounds: BoundOptions,
}

pub(crate) fn create(context: &Context, arguments: &CreateArguments) -> Result<Outcome> {
    let schema = arguments.schema.build(&arguments.bounds)?;
    let store = context.store_options.create(&arguments.store, schema)?;
    let name = arguments.store.display();
    context
        .messages
        .note(format!("made {name}\n{}", store.schema()));
    Ok(Outcome::Done)
}
