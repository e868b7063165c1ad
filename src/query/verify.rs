//! Similarities that the caller works out, in the place of estimates.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::{Error, Result};
use crate::types::DocumentId;

/// What the caller says of a candidate: its similarity, or `None` where that cannot be told.
pub(crate) type Told = Result<Option<f64>>;

/// Asks the caller how similar the signature at an index and the document with an id are.
pub(crate) type Ask<'v> = dyn Fn(usize, u64) -> Told + 'v;

/// A document that another one of a batch is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Earlier {
    /// The store held it before the batch.
    Stored(DocumentId),
    /// It came before in the batch, at this index, and was inserted.
    OfBatch(usize),
}

/// Asks the caller where the engine runs. There a panic is taken for damage; one of the caller's
/// own is held here until the engine has been left.
#[derive(Default)]
pub(crate) struct Outside {
    panic: RefCell<Option<Box<dyn Any + Send>>>,
}

impl Outside {
    pub(crate) fn ask(&self, caller: impl FnOnce() -> Told) -> Told {
        match catch_unwind(AssertUnwindSafe(caller)) {
            Ok(told) => checked(told),
            Err(panic) => {
                *self.panic.borrow_mut() = Some(panic);
                let reason = "the closure that verifies has panicked".into();
                Err(Error::Closed { reason })
            }
        }
    }

    /// Lets a panic of the caller's go on.
    pub(crate) fn leave(self) {
        if let Some(panic) = self.panic.into_inner() {
            resume_unwind(panic);
        }
    }
}

/// Refuses what is no similarity.
pub(crate) fn checked(told: Told) -> Told {
    match told? {
        Some(similarity) if !(0.0..=1.0).contains(&similarity) => Err(Error::invalid(
            "verify",
            similarity,
            "a similarity of 0 to 1",
        )),
        // Of the two zeros the one whose bits are in order.
        told => Ok(told.map(|similarity| similarity + 0.0)),
    }
}
