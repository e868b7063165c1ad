//! Verifies candidates by the caller's similarities, some thousands at a time.

use std::panic::resume_unwind;

use crate::error::Result;
use crate::join::settings::Settings;
use crate::query::{ExactSimilarity, ResolvedBounds, Scored, checked};
use crate::sync::{IgnorePoison, Mutex};
use crate::threads::spawn_scoped;
use crate::types::DocumentId;

/// Two documents that are near-duplicates, `a` inserted before `b`.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
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
    /// True if the similarity is exact: the closure of [`Join::verify`](crate::Join::verify)
    /// returned it for this pair, or the schema is [exact](crate::SchemaBuilder::exact). Otherwise it is an estimate.
    pub is_exact: bool,
    /// The Hamming distance of the fingerprints; `None` without SimHash in the schema.
    pub distance: Option<u32>,
}

impl Pair {
    /// Returns the score of the later document, the same that a search for the earlier one would
    /// return.
    pub(super) fn scored(&self) -> Scored {
        Scored {
            id: self.b.get(),
            // A schema without the family has no bound on it either.
            similarity: self.similarity.unwrap_or(0.0),
            is_exact: self.is_exact,
            distance: self.distance.unwrap_or(0),
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

/// Returns the caller's exact similarity of two documents, `None` if the caller cannot compute it.
pub(super) type PairSimilarity = dyn Fn(DocumentId, DocumentId) -> ExactSimilarity + Send + Sync;

/// The number of candidates that are verified together, which bounds the memory.
pub(super) const ROUND_CANDIDATES: usize = 1 << 14;

/// Candidates that a thread takes at a time.
const SHARE_CANDIDATES: usize = 1 << 8;

/// The verification of candidates by the caller, in threads.
#[derive(Clone, Copy)]
pub(super) struct Verifier<'v> {
    verify: &'v PairSimilarity,
    bounds: ResolvedBounds,
    threads: usize,
}

impl<'v> Verifier<'v> {
    pub(super) fn new(verify: &'v PairSimilarity, settings: &Settings) -> Self {
        Self {
            verify,
            bounds: settings.bounds,
            threads: settings.threads,
        }
    }

    /// Returns the candidates that are within the bounds, up to the first that fails. Their order
    /// does not depend on the number of threads. This thread does other work first, and returns its
    /// result too; the other threads begin at once.
    pub(super) fn round<T>(
        self,
        candidates: &[Pair],
        meanwhile: impl FnOnce() -> T,
    ) -> (Vec<Result<Pair>>, T) {
        let shares = candidates.chunks(SHARE_CANDIDATES);
        let others = self.threads.saturating_sub(1).min(shares.len());
        let shares = Mutex::new(shares.enumerate());
        let take = || -> Vec<(usize, Vec<Result<Pair>>)> {
            std::iter::from_fn(|| shares.lock().ignore_poison().next())
                .map(|(number, share)| (number, self.share(share)))
                .collect()
        };
        std::thread::scope(|scope| {
            // If a thread cannot be started, the others do its work.
            let others: Vec<_> = (0..others)
                .map_while(|_| spawn_scoped(scope, "verify", take).ok())
                .collect();
            let done = meanwhile();
            let mut verified = take();
            for other in others {
                // A panic is the caller's own, and continues where it was called from.
                verified.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            verified.sort_unstable_by_key(|(number, _)| *number);
            let pairs = verified.into_iter().flat_map(|(_, share)| share);
            (pairs.collect(), done)
        })
    }

    fn share(self, candidates: &[Pair]) -> Vec<Result<Pair>> {
        let mut verified = Vec::new();
        for candidate in candidates {
            match checked((self.verify)(candidate.a, candidate.b)) {
                Ok(exact_similarity) => {
                    let estimate = candidate.scored();
                    let scored = estimate.verified(exact_similarity, Some(&self.bounds));
                    verified.extend(scored.map(|scored| Ok(candidate.verified(scored))));
                }
                Err(error) => {
                    verified.push(Err(error));
                    // The join ends with this error, so the caller is not asked about the rest.
                    break;
                }
            }
        }
        verified
    }
}
