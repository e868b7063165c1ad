//! Inserting documents that are new by the exact similarity of their texts.

use super::features::FeatureFiles;
use crate::error::Result;
use crate::invariant::at;
use crate::query::Earlier;
use crate::sketch::exact::jaccard_of_sorted;
use crate::sketch::{Signature, Sketcher};
use crate::types::{Document, Novelty};
use crate::write::Transaction;

/// A text's signature, and its features where similarities are to be exact.
///
/// ```
/// use resemblance::verification::SketchedText;
/// use resemblance::{MinHash, Schema, Text};
///
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let sketched = SketchedText::new(&schema.sketcher(), true, "the quick brown fox")?;
/// assert_eq!(sketched.features.len(), 3);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SketchedText {
    /// The signature.
    pub signature: Signature,
    /// Its feature hashes, sorted and distinct; empty unless they were requested.
    pub features: Vec<u64>,
}

impl SketchedText {
    /// Sketches a text, and keeps its features if `with_features`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Sketcher::text`].
    pub fn new(sketcher: &Sketcher, with_features: bool, text: &str) -> Result<Self> {
        let (signature, features) = if with_features {
            sketcher.text_and_feature_hashes(text)?
        } else {
            (sketcher.text(text)?, Vec::new())
        };
        Ok(Self {
            signature,
            features,
        })
    }

    /// Returns the memory that the features take, in bytes.
    #[must_use]
    pub fn feature_bytes(&self) -> usize {
        self.features.len() * size_of::<u64>()
    }
}

/// See [`crate::WriteTransaction::insert_many_if_new_exact`].
pub(crate) fn insert_many_if_new(
    transaction: &mut Transaction,
    features: &mut FeatureFiles,
    documents: &[(Document<'_>, &SketchedText)],
) -> Result<Vec<Novelty>> {
    let signatures: Vec<_> = documents
        .iter()
        .map(|(document, sketched)| (document.into(), &sketched.signature))
        .collect();
    let features_at = |index: usize| -> Result<&[u64]> {
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
