//! Inserting documents that are new by the exact similarity of their texts.

use resemblance::exact::jaccard_of_sorted;
use resemblance::{
    Document, Earlier, Error, Novelty, Result, Signature, Sketcher, WriteTransaction,
};

use super::features::FeatureFiles;
use crate::bug::at;

/// The memory, in bytes, that the features of documents may take that wait to be decided together.
pub(crate) const MAX_HELD_BYTES: usize = 64 << 20;

/// A text's signature, and its features where similarities are to be exact.
pub(crate) struct SketchedText {
    pub(crate) signature: Signature,
    /// Its feature hashes, sorted and distinct; none unless they were asked for.
    pub(crate) features: Vec<u64>,
}

impl SketchedText {
    /// Sketches a text, and keeps its features if `with_features`.
    pub(crate) fn new(sketcher: &Sketcher, with_features: bool, text: &str) -> Result<Self> {
        let features = if with_features {
            sketcher.feature_hashes(text)?
        } else {
            Vec::new()
        };
        Ok(Self {
            signature: sketcher.text(text)?,
            features,
        })
    }

    /// The memory that the features take.
    pub(crate) fn feature_bytes(&self) -> usize {
        self.features.len() * size_of::<u64>()
    }
}

/// Inserts those documents that are new, each with its novelty, and keeps the features of what was
/// inserted. Every candidate is verified from the features where `features` has them; a stored
/// document without any is told by its estimate.
pub(crate) fn insert_many_if_new(
    transaction: &mut WriteTransaction,
    features: &mut FeatureFiles,
    documents: &[(Document<'_>, &SketchedText)],
) -> Result<Vec<Novelty>> {
    let signatures: Vec<_> = documents
        .iter()
        .map(|(document, sketched)| (*document, &sketched.signature))
        .collect();
    let features_at = |index: usize| -> Result<&[u64], Error> {
        let (_, sketched) = at(documents, index)?;
        Ok(&sketched.features)
    };
    let novelties = transaction.insert_many_if_new_verified(&signatures, |index, earlier| {
        let own = features_at(index)?;
        match earlier {
            Earlier::Stored(id) => features.similarity_to(own, id),
            Earlier::OfBatch(other) => Ok(Some(jaccard_of_sorted(own, features_at(other)?))),
        }
    })?;
    for (novelty, (_, sketched)) in novelties.iter().zip(documents) {
        if novelty.is_new() {
            features.put(novelty.id(), &sketched.features)?;
        }
    }
    features.flush()?;
    Ok(novelties)
}
