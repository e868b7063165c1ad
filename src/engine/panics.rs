//! Catches panics: those of the engine on damaged pages, and our own.

use std::any::Any;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use crate::error::{Error, Result};
use crate::invariant::OrBug;
use crate::observe::SharedCounters;
use crate::sync::HomeProcess;

/// Runs nothing but calls of the engine: opening, committing, closing. A panic there comes of damaged
/// pages, and becomes [`Error::Corrupt`].
pub(crate) fn catch_engine_panic<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(panic) => Err(engine_stopped(message_of(&*panic))),
    }
}

/// Runs our own code, which calls the engine. A panic becomes [`Error::Bug`] at the line of the caller,
/// or [`Error::Corrupt`] if the file has failed before.
///
/// The rule: the engine sees the file through the verification of pages alone, so it meets nothing
/// unexpected before that has refused or let pass a damaged page, or the operating system has refused
/// an access; `counters` remember either. Afterwards a panic may well be the engine's, which unwraps
/// such errors in places. Before, it cannot be the file's fault, whoever panicked: it is a bug. The
/// text of a panic does not tell whose it is.
#[track_caller]
pub(crate) fn catch_panic<T>(
    counters: &SharedCounters,
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let caller = Location::caller();
    // Nobody uses what the panic left half made: the caller closes the handle, or has opened none yet.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(panic) if counters.has_file_failed() => Err(engine_stopped(message_of(&*panic))),
        Err(panic) => Err(Error::Bug {
            what: format!("it panicked: {}", message_of(&*panic)),
            file: caller.file(),
            line: caller.line(),
        }),
    }
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no message")
}

fn engine_stopped(message: &str) -> Error {
    Error::corrupt("the storage engine stopped", message)
}

/// A value of the engine that is dropped without a panic: a lock that an earlier panic poisoned makes
/// the engine panic again whenever one of its values is dropped, outside any call. In another process
/// than the one that made it, the value is forgotten: the engine would write to the file and unlock it.
pub(crate) struct PanicSafe<T> {
    value: Option<T>,
    home: HomeProcess,
}

impl<T> PanicSafe<T> {
    pub(crate) fn new(value: T) -> Self {
        Self::new_in(value, HomeProcess::current())
    }

    /// The same in a process that is known: asking for it costs as much as a short read.
    pub(crate) fn new_in(value: T, home: HomeProcess) -> Self {
        Self {
            value: Some(value),
            home,
        }
    }

    pub(crate) fn get(&self) -> Result<&T> {
        self.value
            .as_ref()
            .or_bug("a value of the engine, already dropped")
    }

    /// Returns the value itself, for a call that consumes it; the caller catches panics of that call.
    pub(crate) fn into_inner(mut self) -> Result<T> {
        self.home.check()?;
        self.value
            .take()
            .or_bug("a value of the engine, already dropped")
    }
}

impl<I: Iterator> Iterator for PanicSafe<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        self.value.as_mut()?.next()
    }
}

impl<T> Drop for PanicSafe<T> {
    fn drop(&mut self) {
        if !self.home.is_current() {
            std::mem::forget(self.value.take());
        } else if let Some(value) = self.value.take() {
            let _ = catch_engine_panic(|| {
                drop(value);
                Ok(())
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panicking() -> Result<()> {
        panic!("index {} of 2", 3);
    }

    #[test]
    fn our_own_panic_is_a_bug_at_the_line_of_the_caller() {
        let counters = SharedCounters::default();
        let line = line!() + 1;
        let found = catch_panic(&counters, panicking).unwrap_err();
        let Error::Bug {
            what,
            file,
            line: at,
        } = found
        else {
            panic!("another error: {found}");
        };
        assert_eq!(what, "it panicked: index 3 of 2");
        assert!(file.ends_with("panics.rs"));
        assert_eq!(at, line);
    }

    #[test]
    fn a_panic_after_the_file_has_failed_is_damage() {
        let counters = SharedCounters::default();
        counters.note_file_failure();
        for found in [
            catch_panic(&counters, panicking),
            catch_engine_panic(panicking),
        ] {
            let text = found.unwrap_err().to_string();
            assert_eq!(text, "damaged: the storage engine stopped: index 3 of 2");
        }
    }

    #[test]
    fn what_does_not_panic_is_passed_on() {
        let counters = SharedCounters::default();
        assert_eq!(catch_panic(&counters, || Ok(5)).unwrap(), 5);
        let refused = catch_panic::<()>(&counters, || Err(Error::ReadOnly));
        assert!(matches!(refused, Err(Error::ReadOnly)));
    }
}
