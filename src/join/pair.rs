//! Two near documents.

use crate::query::Scored;
use crate::types::DocumentId;

/// Two documents that are near-duplicates, `a` inserted before `b`.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// for key in ["a", "b"] {
///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
/// }
/// let mut pairs = store.snapshot()?.pairs().run()?;
/// let pair = pairs.next().expect("one pair is near")?;
/// assert_eq!((pair.a.get(), pair.b.get()), (0, 1));
/// assert_eq!((pair.similarity, pair.is_exact, pair.distance), (Some(1.0), false, None));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pair {
    /// The earlier document.
    pub a: DocumentId,
    /// The later document.
    pub b: DocumentId,
    /// The Jaccard similarity, from 0 to 1. It is an estimate unless `is_exact` is set. `None`
    /// without MinHash in the schema, unless the pair was verified.
    pub similarity: Option<f64>,
    /// True if the similarity is exact: the one that the closure of
    /// [`Join::verify`](crate::Join::verify) returned for these two. Else it is an estimate.
    pub is_exact: bool,
    /// The Hamming distance of the fingerprints; `None` without SimHash in the schema.
    pub distance: Option<u32>,
}

impl Pair {
    /// Returns the score of the later document, which is what a search for the earlier one would give.
    pub(super) fn scored(&self) -> Scored {
        Scored {
            id: self.b.get(),
            similarity: self.similarity.unwrap_or_default(),
            is_exact: self.is_exact,
            distance: self.distance.unwrap_or_default(),
        }
    }

    /// Returns the pair with a verified score.
    pub(super) fn verified(self, scored: Scored) -> Self {
        let is_known = scored.is_exact || self.similarity.is_some();
        Self {
            similarity: is_known.then_some(scored.similarity),
            is_exact: scored.is_exact,
            ..self
        }
    }
}
