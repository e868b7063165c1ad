//! Catches panics of the engine on damaged pages, and panics of this program.

use std::any::Any;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use crate::engine_error::{EngineError, Result};
use crate::file_counters::FileCounters;
use crate::process::HomeProcess;

/// Runs calls of the engine only: opening, committing, closing. A panic there results from damaged
/// pages and becomes [`EngineError::Corrupt`].
///
/// # Errors
/// The errors of the calls.
pub fn catch_engine_panic<T, E: From<EngineError>>(
    run: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(engine_stopped(&*panic).into()))
}

/// Runs other code that calls the engine. A panic becomes [`EngineError::Corrupt`] if the file has
/// failed before, and otherwise [`EngineError::Bug`] at the line of the caller.
///
/// The engine sees the file only through verified pages. It meets nothing unexpected until
/// verification has refused or passed a damaged page, or the operating system has refused an
/// access; `counters` record both. After such a failure a panic may be the engine's, because it
/// unwraps such errors in places. Without one, the file cannot be the cause, so the panic is a bug.
/// The text of a panic does not show whose it is.
///
/// # Errors
/// The errors of the code.
#[track_caller]
pub fn catch_panic<T, E: From<EngineError>>(
    counters: &FileCounters,
    run: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let caller = Location::caller();
    // Nothing uses values that the panic left half changed: the caller closes the handle, or has
    // not opened one.
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

/// A value of the engine that can be dropped without a panic. If an earlier panic poisoned a lock,
/// the engine panics again whenever one of its values is dropped, outside any call. In a process
/// other than the one that made it, the value is leaked instead: the engine would write to the file
/// and unlock it.
pub struct PanicSafe<T> {
    value: Option<T>,
    home: HomeProcess,
}

impl<T> PanicSafe<T> {
    /// Wraps a value of the current process.
    pub fn new(value: T) -> Self {
        Self::new_in(value, HomeProcess::current())
    }

    /// Wraps a value of a known process. Querying the process costs as much as a short read.
    pub fn new_in(value: T, home: HomeProcess) -> Self {
        Self {
            value: Some(value),
            home,
        }
    }

    /// Returns a reference to the value.
    ///
    /// # Errors
    /// Only [`EngineError::Bug`].
    pub fn get(&self) -> Result<&T> {
        self.value.as_ref().ok_or_else(already_dropped)
    }

    /// Returns a mutable reference to the value.
    ///
    /// # Errors
    /// Only [`EngineError::Bug`].
    pub fn get_mut(&mut self) -> Result<&mut T> {
        self.value.as_mut().ok_or_else(already_dropped)
    }

    /// Returns the value for a call that consumes it. The caller must catch panics of that call.
    ///
    /// # Errors
    /// [`EngineError::Forked`] in a process other than the one that made the value.
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
