//! Panics of the engine on damaged pages, caught.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};

/// Runs something in the engine; a panic there, which damaged pages can cause, becomes `Corrupt`.
pub(crate) fn catch_engine_panic<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let detail = text.unwrap_or("no message").to_owned();
            Err(Error::corrupt("the storage engine stopped", detail))
        }
    }
}

/// Something of the engine that is let go of without a panic: a lock that an earlier panic poisoned
/// makes the engine panic again whenever one of its values is dropped, outside any call.
pub(crate) struct PanicSafe<T>(Option<T>);

impl<T> PanicSafe<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn get(&self) -> Result<&T> {
        let reason = || Error::Closed {
            reason: "it was let go of".into(),
        };
        self.0.as_ref().ok_or_else(reason)
    }

    /// For what takes the value itself, which must be contained too.
    pub(crate) fn into_inner(mut self) -> Result<T> {
        let reason = || Error::Closed {
            reason: "it was let go of".into(),
        };
        self.0.take().ok_or_else(reason)
    }
}

impl<I: Iterator> Iterator for PanicSafe<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        self.0.as_mut()?.next()
    }
}

impl<T> Drop for PanicSafe<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            let _ = catch_engine_panic(|| {
                drop(value);
                Ok(())
            });
        }
    }
}
