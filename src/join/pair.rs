//! Two near documents.

use crate::types::DocumentId;

/// Two documents that are near-duplicates, `a` inserted before `b`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pair {
    /// The earlier document.
    pub a: DocumentId,
    /// The later document.
    pub b: DocumentId,
    /// The Jaccard similarity, 0 to 1: estimated, unless it is exact; `None` without MinHash in
    /// the schema, unless it was verified.
    pub similarity: Option<f64>,
    /// Whether the similarity is exact: the one that the closure of
    /// [`Snapshot::pairs_verified`](crate::Snapshot::pairs_verified) returned for these two. Else it is an estimate.
    pub is_exact: bool,
    /// The Hamming distance of the fingerprints; `None` without SimHash in the schema.
    pub distance: Option<u32>,
}

impl Pair {
    /// With what the caller says in the place of the estimate.
    pub(super) fn settled(mut self, told: Option<f64>) -> Self {
        if told.is_some() {
            (self.similarity, self.is_exact) = (told, true);
        }
        self
    }
}
