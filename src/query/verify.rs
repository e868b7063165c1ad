//! Similarities that the caller computes, which replace estimates.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

use crate::error::{Error, Result};
use crate::query::bounds::Wanted;
use crate::read::ReadView;
use crate::sync::IgnorePoison;
use crate::types::DocumentId;

/// The exact similarity of a candidate, from 0 to 1, as the caller computed it. `None` if the
/// caller cannot compute it; then the estimate decides.
pub(crate) type ExactSimilarity = Result<Option<f64>>;

/// The answer of a caller who verifies, or of the sets of an exact store, about a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CallerVerdict {
    /// Estimates decide.
    NotAsked,
    /// The caller cannot compute the similarity: the estimate decides.
    Unknown,
    Similarity(f64),
}

impl CallerVerdict {
    /// Returns the similarity that replaces the estimate.
    pub(super) fn similarity(self) -> Option<f64> {
        match self {
            Self::Similarity(similarity) => Some(similarity),
            Self::NotAsked | Self::Unknown => None,
        }
    }
}

/// The source of the similarities that decide.
#[derive(Clone, Copy)]
pub(crate) enum Referee<'v> {
    Estimate,
    /// The exact sets of the store decide.
    Sets,
    /// The caller decides. If it cannot compute the similarity, the sets of an exact store decide.
    /// In other stores, the estimate decides.
    Caller(&'v Ask<'v>),
}

impl<'v> Referee<'v> {
    /// Returns the referee of a view for a request that this caller, if any, verifies.
    pub(crate) fn of(view: &dyn ReadView, caller: Option<&'v Ask<'v>>) -> Self {
        caller.map_or_else(
            || Self::without_caller(view.context().exact.is_some()),
            Self::Caller,
        )
    }

    /// Returns the referee for a request without a caller who verifies: sets or estimates.
    pub(super) fn without_caller(by_sets: bool) -> Self {
        match by_sets {
            true => Self::Sets,
            false => Self::Estimate,
        }
    }

    /// Returns whether sets decide, or `None` if a caller verifies. This is for threads, which
    /// cannot ask a caller.
    pub(super) fn by_sets_alone(self) -> Option<bool> {
        match self {
            Self::Estimate => Some(false),
            Self::Sets => Some(true),
            Self::Caller(_) => None,
        }
    }

    /// Returns the candidates that it needs.
    pub(super) fn wanted(self) -> Wanted {
        match self {
            Self::Estimate => Wanted::Accepted,
            Self::Sets => Wanted::Plausible,
            Self::Caller(_) => Wanted::All,
        }
    }

    /// Returns true if candidates are compared by anything but their estimates.
    pub(super) fn verifies(self) -> bool {
        !matches!(self, Self::Estimate)
    }
}

/// Asks the caller how similar the signature at an index and the document with an id are. For a
/// similarity below the floor, any number below it may be returned.
pub(crate) type Ask<'v> = dyn Fn(usize, u64, f64) -> ExactSimilarity + 'v;

/// Returns the similarity of the signature at an index and a document.
pub(super) type Verify<'v> = dyn Fn(usize, DocumentId) -> ExactSimilarity + 'v;

/// A document that another one of a batch is compared with.
///
/// ```
/// use resemblance::search::Earlier;
/// let texts = ["one text", "another text", "one text"]; // those of a batch
/// let similarity = |index: usize, earlier| match earlier {
///     Earlier::OfBatch(other) => Some(f64::from(texts[index] == texts[other])),
///     _ => None, // the estimate decides
/// };
/// assert_eq!(similarity(2, Earlier::OfBatch(0)), Some(1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Earlier {
    /// The store held it before the batch.
    Stored(DocumentId),
    /// The earlier document is in the batch, at this index, and was inserted.
    OfBatch(usize),
}

/// Asks the caller while the engine is on the stack, where a panic counts as damage, and an error as
/// one of this store. Both are held here until the engine has returned.
#[derive(Default)]
pub(crate) struct Outside {
    failure: Mutex<Option<CallerFailure>>,
}

enum CallerFailure {
    Error(Error),
    Panic(Box<dyn Any + Send>),
}

impl Outside {
    pub(crate) fn ask(&self, caller: impl FnOnce() -> ExactSimilarity) -> ExactSimilarity {
        checked(self.call(caller))
    }

    /// Calls any closure of the caller, from any thread.
    pub(crate) fn call<T>(&self, caller: impl FnOnce() -> Result<T>) -> Result<T> {
        let failure = match catch_unwind(AssertUnwindSafe(caller)) {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => CallerFailure::Error(error),
            Err(panic) => CallerFailure::Panic(panic),
        };
        let mut held = self.failure.lock().ignore_poison();
        // A panic must not get lost behind the error of another thread.
        if held.is_none() || matches!(failure, CallerFailure::Panic(_)) {
            *held = Some(failure);
        }
        let reason = "a closure of the caller has failed".into();
        Err(Error::Closed { reason })
    }

    /// Returns the answer of the engine, or the caller's error. Lets the caller's panic continue.
    pub(crate) fn leave<T>(self, answer: Result<T>) -> Result<T> {
        match self.failure.into_inner().ignore_poison() {
            Some(CallerFailure::Panic(panic)) => resume_unwind(panic),
            Some(CallerFailure::Error(error)) => Err(error),
            None => answer,
        }
    }
}

/// Runs a search that asks a caller who verifies. An error or a panic of the caller's closure
/// continues afterwards, outside of the engine.
pub(super) fn asking<T>(
    verify: Option<&Verify<'_>>,
    search: impl FnOnce(Option<&Ask<'_>>) -> Result<T>,
) -> Result<T> {
    let outside = Outside::default();
    let ask =
        verify.map(|verify| |index, id, _: f64| outside.ask(|| verify(index, DocumentId::new(id))));
    let answer = search(ask.as_ref().map(|ask| ask as &Ask<'_>));
    outside.leave(answer)
}

/// Returns the similarity, or an error if it is not a number from 0 to 1.
pub(crate) fn checked(exact_similarity: ExactSimilarity) -> ExactSimilarity {
    match exact_similarity? {
        Some(similarity) if !(0.0..=1.0).contains(&similarity) => Err(Error::invalid(
            "verify",
            similarity,
            "a similarity of 0 to 1",
        )),
        // Turns -0 into 0, whose bits sort correctly.
        exact_similarity => Ok(exact_similarity.map(|similarity| similarity + 0.0)),
    }
}
