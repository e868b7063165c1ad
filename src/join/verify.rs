//! Verifying candidates by the caller's own similarities, some thousand at a time.

use std::panic::resume_unwind;

use crate::error::Result;
use crate::join::pair::Pair;
use crate::join::settings::Settings;
use crate::query::{ExactSimilarity, checked};
use crate::threads::spawn_scoped;
use crate::types::DocumentId;

/// Returns the caller's exact similarity of two documents, `None` if the caller cannot compute it.
pub(super) type PairSimilarity = dyn Fn(DocumentId, DocumentId) -> ExactSimilarity + Send + Sync;

/// Candidates that are verified together: bounds what is in memory.
pub(super) const ROUND_CANDIDATES: usize = 1 << 14;

/// Fewer are not worth a thread.
const MIN_PER_THREAD: usize = 1 << 5;

/// Returns the candidates that are within the bounds, in their order whatever the number of
/// threads, up to the first that fails.
pub(super) fn verify_round(
    candidates: &[Pair],
    verify: &PairSimilarity,
    settings: &Settings,
) -> Vec<Result<Pair>> {
    let threads = settings.options.threads;
    let threads = threads.min(candidates.len() / MIN_PER_THREAD).max(1);
    let share = candidates.len().div_ceil(threads).max(1);
    let mut shares = candidates.chunks(share);
    let own = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .map(|share| {
                spawn_scoped(scope, "verify", move || {
                    verify_share(share, verify, settings)
                })
            })
            .collect();
        let mut verified = verify_share(own, verify, settings);
        for other in others {
            let other = match other {
                Ok(other) => other,
                Err(error) => {
                    verified.push(Err(error));
                    break;
                }
            };
            // A panic is the caller's own, and goes on where it was called from.
            verified.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        verified
    })
}

fn verify_share(
    candidates: &[Pair],
    verify: &PairSimilarity,
    settings: &Settings,
) -> Vec<Result<Pair>> {
    let mut verified = Vec::new();
    for candidate in candidates {
        match checked(verify(candidate.a, candidate.b)) {
            Ok(exact_similarity) => {
                let scored = candidate
                    .scored()
                    .verified(exact_similarity, Some(&settings.bounds));
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
