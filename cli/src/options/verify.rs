//! The option that says whether similarities are estimates, or computed from the features of texts.

use std::path::Path;

use clap::{Args, ValueEnum};
use resemblance::verification::FeatureFiles;
use resemblance::{MinHashKind, Schema};

use crate::failure::{Failure, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VerifyOption {
    /// By the estimate from the signatures
    Estimate,
    /// By the features of the texts
    Exact,
}

/// How candidates are verified.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Bounds")]
pub(crate) struct VerifyOptions {
    /// How the similarity of every candidate is computed; exact keeps the features of all texts in
    /// temporary files, 8 bytes each
    #[arg(long, value_name = "HOW", default_value = "estimate")]
    verify: VerifyOption,
}

impl VerifyOptions {
    pub(crate) fn is_exact(self) -> bool {
        self.verify == VerifyOption::Exact
    }

    /// Files for the features of texts, if similarities are to be exact. The schema takes texts.
    pub(crate) fn features(self, temp_dir: &Path, schema: &Schema) -> Result<Option<FeatureFiles>> {
        if !self.is_exact() {
            return Ok(None);
        }
        if schema.minhash().is_none() {
            return Err(Failure::usage(
                "--verify exact is for the similarities of MinHash; the distances of SimHash are \
                 exact anyway",
            ));
        }
        must_compare_sets(schema)?;
        Ok(Some(FeatureFiles::create(temp_dir)?))
    }

    /// The name of the column that has the similarity.
    pub(crate) fn similarity_name(self) -> &'static str {
        if self.is_exact() {
            "similarity"
        } else {
            ESTIMATE
        }
    }
}

/// An error if the estimates are of weighted similarity: what is exact here is that of sets.
pub(crate) fn must_compare_sets(schema: &Schema) -> Result<()> {
    let kind = schema.minhash().map(|minhash| minhash.kind());
    if kind == Some(MinHashKind::Weighted) {
        return Err(Failure::usage(
            "--minhash-kind weighted: the exact similarities here are of sets of shingles, \
             unweighted; choose another kind",
        ));
    }
    Ok(())
}

/// The name of a column that has an estimate.
pub(crate) const ESTIMATE: &str = "similarity_estimate";
