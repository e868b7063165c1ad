//! Many signatures shared out between threads.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread::scope;

use crate::error::Result;
use crate::sketch::Signature;
use crate::threads::spawn_scoped;

/// Number of signatures below which another thread costs more than it saves.
const MIN_SIGNATURES: usize = if cfg!(test) { 30 } else { 512 };

/// Answers signatures in parts, each on a thread: as many as the machine runs at once, or at most `threads`.
/// Returns the answers in the order of the signatures.
///
/// # Errors
/// That of the first part that fails, and [`crate::Error::Io`] if the system allows no further thread.
pub(super) fn in_threads<T: Send>(
    signatures: &[&Signature],
    threads: Option<usize>,
    answer: impl Fn(&[&Signature]) -> Result<Vec<T>> + Sync,
) -> Result<Vec<T>> {
    if signatures.len() <= MIN_SIGNATURES {
        return answer(signatures);
    }
    // To ask the system takes longer than a short query. Where it does not tell, one thread will do.
    let available = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.unwrap_or_else(available).max(1);
    let size = signatures.len().div_ceil(threads).max(MIN_SIGNATURES);
    let Some((own, others)) = signatures.split_at_checked(size) else {
        return answer(signatures);
    };
    scope(|scope| {
        let answer = &answer;
        let parts = others.chunks(size);
        let parts = parts.map(|part| spawn_scoped(scope, "query", move || answer(part)));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        // The first part is this thread's.
        let mut answers = answer(own)?;
        for part in parts {
            // Whoever catches panics of this thread says whose they are.
            answers.append(&mut part.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok(answers)
    })
}
