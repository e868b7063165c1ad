//! The options of a join of a store or a corpus.

use std::path::PathBuf;

use clap::Args;

use super::bounds::{BoundOptions, ByOptions, JoinLimits};
use super::corpus::CorpusOptions;
use super::schema::SchemaOptions;
use super::verify::VerifyOptions;

/// What is joined, within which bounds, and how it is read.
#[derive(Debug, Args)]
pub(crate) struct JoinOptions {
    #[command(flatten)]
    pub(crate) bounds: BoundOptions,
    #[command(flatten)]
    pub(crate) by: ByOptions,
    #[command(flatten)]
    pub(crate) limits: JoinLimits,
    #[command(flatten)]
    pub(crate) verify: VerifyOptions,
    #[command(flatten)]
    pub(crate) schema: SchemaOptions,
    #[command(flatten)]
    pub(crate) corpus: CorpusOptions,
    /// Keep what was made of each file of the corpus in this folder, and go on with what a run that was
    /// stopped has left there. Finding pairs begins anew
    #[arg(long, value_name = "DIR")]
    pub(crate) job: Option<PathBuf>,
}
