//! Catches panics: those of the engine on damaged pages, and our own.

use std::any::Any;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use crate::engine_error::{EngineError, Result};
use crate::file_counters::FileCounters;
use crate::process::HomeProcess;

/// Runs only calls of the engine: opening, committing, closing. A panic there results from damaged
/// pages, and becomes [`EngineError::Corrupt`].
///
/// # Errors
/// Returns the errors of the calls.
pub fn catch_engine_panic<T, E: From<EngineError>>(
    run: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(engine_stopped(&*panic).into()))
}

/// Runs other code, which calls the engine. A panic becomes [`EngineError::Bug`] at the line of the caller,
/// or [`EngineError::Corrupt`] if the file has failed before.
///
/// The rule: the engine sees the file only through the verification of pages, so it meets nothing
/// unexpected before the verification has refused or passed a damaged page, or the operating system
/// has refused an access; `counters` remember either. Afterwards a panic may well be the engine's,
/// which unwraps such errors in places. Before, it cannot be the file's fault, whoever panicked: it
/// is a bug. The text of a panic does not show whose it is.
///
/// # Errors
/// Returns the errors of the code.
#[track_caller]
pub fn catch_panic<T, E: From<EngineError>>(
    counters: &FileCounters,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let caller = Location::caller();
    // Nobody uses anything that the panic left half made: the caller closes the handle, or has
    // opened none yet.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let error = match counters.has_failed() {
            true => engine_stopped(&*panic),
            false => EngineError::bug_at(format!("it panicked: {}", message_of(&*panic)), caller),
        };
        Err(error.into())
    })
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "no message",
    }
}

fn engine_stopped(panic: &(dyn Any + Send)) -> EngineError {
    EngineError::corrupt("the storage engine stopped", message_of(panic))
}

/// A value of the engine that is dropped without a panic: a lock that an earlier panic poisoned makes
/// the engine panic again whenever one of its values is dropped, outside any call. In another process
/// than the one that made it, the value is forgotten: the engine would write to the file and unlock it.
pub struct PanicSafe<T> {
    value: Option<T>,
    home: HomeProcess,
}

impl<T> PanicSafe<T> {
    /// Wraps a value of the process that runs this.
    pub fn new(value: T) -> Self {
        Self::new_in(value, HomeProcess::current())
    }

    /// Wraps a value of a process that is known: asking for it costs as much as a short read.
    pub fn new_in(value: T, home: HomeProcess) -> Self {
        Self {
            value: Some(value),
            home,
        }
    }

    /// Returns the value.
    ///
    /// # Errors
    /// [`EngineError::Bug`], never.
    pub fn get(&self) -> Result<&T> {
        self.value.as_ref().ok_or_else(already_dropped)
    }

    /// Returns the value, to be changed.
    ///
    /// # Errors
    /// [`EngineError::Bug`], never.
    pub fn get_mut(&mut self) -> Result<&mut T> {
        self.value.as_mut().ok_or_else(already_dropped)
    }

    /// Returns the value itself, for a call that consumes it; the caller catches panics of that call.
    ///
    /// # Errors
    /// [`EngineError::Forked`] in another process than the one that made it.
    pub fn into_inner(mut self) -> Result<T> {
        self.home.check()?;
        self.value.take().ok_or_else(already_dropped)
    }
}

fn already_dropped() -> EngineError {
    EngineError::bug("a value of the engine, already dropped")
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
            let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
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
    fn panic_is_reported_as_a_bug_at_the_callers_line() {
        let counters = FileCounters::default();
        let line = line!() + 1;
        let found = catch_panic(&counters, panicking).unwrap_err();
        let EngineError::Bug {
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
    fn panic_after_a_file_error_is_reported_as_damage() {
        let counters = FileCounters::default();
        counters.note_failure();
        for found in [
            catch_panic(&counters, panicking),
            catch_engine_panic(panicking),
        ] {
            let text = found.unwrap_err().to_string();
            assert_eq!(text, "damaged: the storage engine stopped: index 3 of 2");
        }
    }

    #[test]
    fn results_without_a_panic_are_passed_on() {
        let counters = FileCounters::default();
        assert_eq!(
            catch_panic::<_, EngineError>(&counters, || Ok(5)).unwrap(),
            5
        );
        let refused = catch_panic::<(), _>(&counters, || Err(EngineError::ReadOnly));
        assert!(matches!(refused, Err(EngineError::ReadOnly)));
    }
}
