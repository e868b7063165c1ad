//! Verifying candidates by the caller's own similarities, some thousand at a time.

use std::panic::resume_unwind;

use crate::error::Result;
use crate::join::pair::Pair;
use crate::join::settings::Settings;
use crate::query::{ExactSimilarity, ResolvedBounds, checked};
use crate::sync::{IgnorePoison, Mutex};
use crate::threads::spawn_scoped;
use crate::types::DocumentId;

/// Returns the caller's exact similarity of two documents, `None` if the caller cannot compute it.
pub(super) type PairSimilarity = dyn Fn(DocumentId, DocumentId) -> ExactSimilarity + Send + Sync;

/// Candidates that are verified together: bounds what is in memory.
pub(super) const ROUND_CANDIDATES: usize = 1 << 14;

/// Candidates that a thread takes at a time.
const SHARE_CANDIDATES: usize = 1 << 8;

/// What verifies candidates.
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
            threads: settings.options.threads,
        }
    }

    /// Returns the candidates that are within the bounds, in their order whatever the number of threads, up
    /// to the first that fails. This thread does something else first, and what that returns comes with
    /// them; the others begin at once.
    pub(super) fn round<T>(
        self,
        candidates: &[Pair],
        meanwhile: impl FnOnce() -> T,
    ) -> (Vec<Result<Pair>>, T) {
        let shares = candidates.chunks(SHARE_CANDIDATES);
        let others = self.threads.saturating_sub(1).min(shares.len());
        let shares = Mutex::new(shares.enumerate());
        let take = || -> Vec<(usize, Vec<Result<Pair>>)> {
            let next = || shares.lock().ignore_poison().next();
            let taken = std::iter::from_fn(next);
            taken
                .map(|(number, share)| (number, self.share(share)))
                .collect()
        };
        std::thread::scope(|scope| {
            // What a thread that cannot be started would have done is done by those that are there.
            let others: Vec<_> = (0..others)
                .map_while(|_| spawn_scoped(scope, "verify", take).ok())
                .collect();
            let done = meanwhile();
            let mut verified = take();
            for other in others {
                // A panic is the caller's own, and goes on where it was called from.
                verified.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            verified.sort_unstable_by_key(|(number, _)| *number);
            let verified = verified.into_iter().flat_map(|(_, share)| share);
            (verified.collect(), done)
        })
    }

    fn share(self, candidates: &[Pair]) -> Vec<Result<Pair>> {
        let mut verified = Vec::new();
        for candidate in candidates {
            match checked((self.verify)(candidate.a, candidate.b)) {
                Ok(exact_similarity) => {
                    let scored = candidate.scored();
                    let scored = scored.verified(exact_similarity, Some(&self.bounds));
                    verified.extend(scored.map(|scored| Ok(candidate.verified(scored))));
                }
                Err(error) => {
                    verified.push(Err(error));
                    break;
                }
            }
        }
        verified
    }
}
