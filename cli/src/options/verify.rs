//! The option that decides whether similarities are estimates, or computed from the features of
//! texts.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use resemblance::Schema;
use resemblance::schema::MinHashKind;

use crate::failure::{Failure, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VerifyOption {
    /// Estimate it from the signatures
    Estimate,
    /// Compute it from the features of the texts
    Exact,
}

/// Options for the verification of candidates.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Bounds")]
pub(crate) struct VerifyOptions {
    /// How to compute the similarity of each candidate. exact keeps the features of the texts, 8 bytes each, in memory
    /// or in a temporary file [default: exact if the texts are available, estimate with --budget]
    #[arg(long, value_name = "HOW")]
    verify: Option<VerifyOption>,
}

impl VerifyOptions {
    /// True if a way was given.
    pub(crate) fn is_given(self) -> bool {
        self.verify.is_some()
    }

    /// Returns true if exact similarities are requested explicitly.
    pub(crate) fn asks_for_exact(self) -> bool {
        self.verify == Some(VerifyOption::Exact)
    }

    /// Fails if estimates are requested of an exact schema.
    fn must_suit_exact(self) -> Result<()> {
        match self.verify {
            Some(VerifyOption::Estimate) => Err(Failure::usage(
                "--verify estimate does not go with an exact schema, whose similarities are all exact",
            )),
            _ => Ok(()),
        }
    }

    /// Fails if a store, which has no texts, cannot compare as it is asked to.
    pub(crate) fn must_suit_store(self, store: &Path, schema: &Schema) -> Result<()> {
        if schema.is_exact() {
            return self.must_suit_exact();
        }
        match self.asks_for_exact() {
            true => Err(Failure::usage(format!(
                "--verify exact needs the texts, and {} is a store, which has none",
                store.display()
            ))
            .with_note("give its corpus")),
            false => Ok(()),
        }
    }

    /// Returns true if the features of texts are to be kept, so that similarities are exact. Distances are exact
    /// anyway, and so is an exact schema. Weighted similarities, and those of a search with a budget, which looks for an
    /// identical signature first, are estimates; requesting exact ones is an error.
    pub(crate) fn is_exact(self, schema: &Schema, has_budget: bool) -> Result<bool> {
        if schema.is_exact() {
            // The sets of the schema decide, and nothing else has to be kept.
            return self.must_suit_exact().map(|()| false);
        }
        match self.verify {
            Some(VerifyOption::Estimate) => Ok(false),
            Some(VerifyOption::Exact) => {
                must_have_similarities("--verify exact", schema).map(|()| true)
            }
            None => {
                let minhash = schema.minhash();
                let has_features = minhash.is_some_and(|m| m.kind() != MinHashKind::External);
                let can_be = has_features && must_compare_sets(schema).is_ok();
                Ok(can_be && !has_budget)
            }
        }
    }
}

/// Fails if the texts of a store are given where no similarity becomes exact by them.
pub(crate) fn must_use_texts(texts: &[PathBuf], schema: &Schema, is_exact: bool) -> Result<()> {
    if texts.is_empty() || is_exact {
        return Ok(());
    }
    if schema.is_exact() {
        return Err(Failure::usage(
            "--texts has no effect with an exact store, whose similarities are all exact",
        ));
    }
    must_have_similarities("--texts", schema)?;
    Err(Failure::usage(
        "--texts makes similarities exact, and with these options they are estimates",
    )
    .with_note("omit --texts, or give --verify exact"))
}

/// The name of the column that has the similarity.
pub(crate) fn similarity_name(is_exact: bool) -> &'static str {
    if is_exact { "similarity" } else { ESTIMATE }
}

/// Fails if there are no similarities that an option could make exact.
pub(crate) fn must_have_similarities(option: &str, schema: &Schema) -> Result<()> {
    if schema.minhash().is_none() {
        return Err(Failure::usage(format!(
            "{option} needs MinHash: the distances of SimHash are always exact"
        )));
    }
    must_compare_sets(schema)
}

/// Fails if the estimates are of weighted similarity: exact similarities are those of sets.
pub(crate) fn must_compare_sets(schema: &Schema) -> Result<()> {
    let kind = schema.minhash().map(|minhash| minhash.kind());
    if schema.vector().is_some() {
        return Err(Failure::usage(
            "vectors have no features that could be compared",
        ));
    }
    if kind == Some(MinHashKind::External) {
        return Err(Failure::usage(
            "external signatures have no features, so similarities cannot be exact",
        ));
    }
    if let Some(kind) = kind.filter(|kind| kind.is_weighted()) {
        return Err(Failure::usage(format!(
            "exact similarities are those of sets, and --minhash-kind {kind} weights shingles"
        ))
        .with_note("choose another kind"));
    }
    Ok(())
}

/// The name of a column that has an estimate.
const ESTIMATE: &str = "similarity_estimate";
