//! Panics are told like every other failure, in one sentence and with an exit code.
//!
//! The library answers a panic of the storage engine, which damaged files can cause, with an error;
//! the panic's own text would only stand in front of that.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, PoisonError};

use super::reading::WorkerPanicked;
use crate::failure::{Failure, Result};

static LAST: Mutex<Option<String>> = Mutex::new(None);

/// From now on no panic writes to standard error; the last one is remembered.
pub(crate) fn silence_panics() {
    panic::set_hook(Box::new(|information| {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        // "panicked at PLACE:\nMESSAGE"
        *last = Some(information.to_string().replace('\n', " "));
    }));
}

/// Runs the tool; a panic that nobody answered is a failure.
pub(crate) fn contain_panics<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(internal_error()))
}

/// What to say when a thread has ended without an answer.
pub(super) fn internal_error() -> Failure {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let detail = last.unwrap_or_else(|| "a thread ended without an answer".into());
    Failure::refused(format!("internal error: {detail}"))
}

impl From<WorkerPanicked> for Failure {
    fn from(_: WorkerPanicked) -> Self {
        internal_error()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_that_says_where() {
        let hook = panic::take_hook();
        silence_panics();
        let contained: Result<()> = contain_panics(|| panic!("seven of nine"));
        panic::set_hook(hook);
        let failure = contained.unwrap_err();
        assert_eq!(failure.exit_code(), 4);
        let message = failure.brief();
        assert!(message.starts_with("internal error: "), "{message}");
        assert!(message.contains("panics.rs"), "{message}");
        assert!(message.contains("seven of nine"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}
