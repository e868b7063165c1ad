//! Whether similarities are estimates, or worked out from the features of the texts.

use clap::{Args, ValueEnum};
use resemblance::exact::jaccard_of_sorted;
use resemblance::{
    Document, Earlier, Error, MinHashKind, Novelty, Schema, Signature, Sketcher, WriteTransaction,
};

use super::Context;
use super::failure::{Failure, Result};
use super::features::Features;
use super::subject::must_take_text;

/// Features of documents that wait to be decided together take so much memory, about.
pub(crate) const MOST_HELD_BYTES: usize = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Verify {
    /// By the estimate from the signatures
    Estimate,
    /// By the features of the texts
    Exact,
}

/// How candidates are verified.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Bounds")]
pub(crate) struct VerifyOptions {
    /// How the similarity of candidates is told, those too whose estimate is not within the bounds;
    /// exact keeps the features of all texts in temporary files, 8 bytes each
    #[arg(long, value_name = "HOW", default_value = "estimate")]
    verify: Verify,
}

impl VerifyOptions {
    pub(crate) fn is_exact(self) -> bool {
        self.verify == Verify::Exact
    }

    /// Where the features of texts go, if they are wanted.
    pub(crate) fn features(self, context: &Context, schema: &Schema) -> Result<Option<Features>> {
        if !self.is_exact() {
            return Ok(None);
        }
        must_take_text(schema)?;
        if schema.minhash().is_none() {
            return Err(Failure::usage(
                "--verify exact is for the similarities of MinHash; the distances of SimHash are \
                 exact anyway",
            ));
        }
        must_compare_sets(schema)?;
        Ok(Some(Features::new(context.temp_dir.clone())?))
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

/// What is made of a text.
pub(crate) struct Sketched {
    pub(crate) signature: Signature,
    /// Its feature hashes, sorted and distinct; none unless they are wanted.
    pub(crate) features: Vec<u64>,
}

impl Sketched {
    pub(crate) fn of(sketcher: &Sketcher, with_features: bool, text: &str) -> Result<Self> {
        let features = with_features.then(|| sketcher.feature_hashes(text));
        Ok(Self {
            signature: sketcher.text(text)?,
            features: features.transpose()?.unwrap_or_default(),
        })
    }

    /// Memory that the features take.
    pub(crate) fn features_bytes(&self) -> usize {
        self.features.len() * size_of::<u64>()
    }
}

/// Inserts those documents that are new, every candidate verified from the features where they are
/// at hand, and keeps their features. `features` has those of earlier ones.
pub(crate) fn insert_many_if_new(
    transaction: &mut WriteTransaction,
    features: &mut Features,
    documents: &[(Document<'_>, &Sketched)],
) -> Result<Vec<Novelty>, Error> {
    let signatures = documents
        .iter()
        .map(|(d, sketched)| (*d, &sketched.signature));
    let signatures: Vec<_> = signatures.collect();
    let hashes = |index: usize| documents.get(index).map(|(_, s)| s.features.as_slice());
    let found = transaction.insert_many_if_new_verified(&signatures, |index, earlier| {
        let Some(own) = hashes(index) else {
            return Ok(None);
        };
        match earlier {
            Earlier::Stored(id) => features.similarity_to(own, id),
            Earlier::OfBatch(other) => Ok(hashes(other).map(|other| jaccard_of_sorted(own, other))),
        }
    })?;
    for (novelty, (_, sketched)) in found.iter().zip(documents) {
        if novelty.is_new() {
            features.put(novelty.id(), &sketched.features)?;
        }
    }
    features.flush()?;
    Ok(found)
}

/// Says, where exact similarities are wanted, which documents are compared by estimate.
pub(crate) fn tell_not_at_hand(context: &Context, store: impl std::fmt::Display, documents: u64) {
    if documents > 0 {
        context.messages.note(format!(
            "the texts of the {documents} documents in {store} are not at hand: similarities to \
             them are estimates"
        ));
    }
}
