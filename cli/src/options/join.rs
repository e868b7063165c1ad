//! The options of a join of a store or a corpus.

use std::path::PathBuf;

use clap::Args;

use super::bounds::{BoundOptions, ByOptions, JoinLimits};
use super::corpus::CorpusOptions;
use super::schema::SchemaOptions;
use super::verify::VerifyOptions;
use crate::failure::Result;

/// The input of a join, its bounds, and how the input is read.
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
}

impl JoinOptions {
    /// An error if the values of these options contradict each other for a corpus, whatever is in it.
    pub(crate) fn must_agree(&self) -> Result<()> {
        let schema = self.schema.build(&self.bounds)?;
        self.by.must_suit(&schema)?;
        self.verify.is_exact(&schema, false)?;
        self.corpus.settings().map(drop)
    }

    /// An error if the family that is to decide is not one of the schema that the options ask for. To be
    /// called before the corpus is read.
    pub(crate) fn must_have_family(&self) -> Result<()> {
        if !self.by.is_given() {
            return Ok(());
        }
        self.by.must_suit(&self.schema.build(&self.bounds)?)
    }
}

/// Options for reading a corpus that is only joined.
#[derive(Debug, Default, Args)]
pub(crate) struct ReadOptions {
    /// Read only this share of the documents of a corpus, such as 0.01: those whose keys have the least hashes, always
    /// the same ones. A pair is found only if both documents are in the sample, so a hundredth of the documents has
    /// about a ten-thousandth of the pairs
    #[arg(long, value_name = "SHARE", value_parser = parse_share, conflicts_with = "job")]
    pub(crate) sample: Option<f64>,
    /// Save the results for each file of the corpus in this folder, and reuse those of an interrupted run. The search
    /// for pairs starts over
    #[arg(long, value_name = "OUT_DIR")]
    pub(crate) job: Option<PathBuf>,
}

/// A number of at least 0 and below 1.
pub(crate) fn parse_part(text: &str) -> Result<f64, String> {
    let part = text.parse::<f64>().ok();
    let part = part.filter(|part| *part >= 0.0 && *part < 1.0);
    part.ok_or_else(|| "expected a number of at least 0 and below 1, such as 0.05".into())
}

/// A number above 0, and at most 1.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = text
        .parse::<f64>()
        .ok()
        .filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "expected a number above 0 and at most 1, such as 0.01".into())
}
