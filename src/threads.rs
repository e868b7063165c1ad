//! Threads with names, which the system's tools show up to a length of 15 bytes.

use std::io;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle, available_parallelism, scope};

use crate::error::{Error, Result};
use crate::invariant::OrBug;

/// The greatest number of threads that one operation starts: more are a slip.
pub(crate) const MAX_THREADS: usize = 1_024;

/// Returns the number of processors that this process may use, or 1 if the system does not know.
pub(crate) fn processors() -> usize {
    available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Starts a thread.
///
/// # Errors
/// [`Error::Io`] if the system allows no further one.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    named(name).spawn(run).map_err(failure)
}

/// Starts a thread within a scope.
///
/// # Errors
/// Returns the errors of [`spawn`].
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    named(name).spawn_scoped(scope, run).map_err(failure)
}

/// Runs tasks, the first in this thread and each other one in a separate thread. Returns the
/// results in the order of the tasks. A panic of another thread continues in this one, so that the
/// code that catches it can attribute it.
///
/// # Errors
/// The first error of a share, and [`Error::Io`] if the system allows no further thread.
pub fn in_shares<S: Send, T: Send>(
    name: &str,
    shares: impl IntoIterator<Item = S>,
    work: impl Fn(S) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let mut shares = shares.into_iter();
    let Some(own) = shares.next() else {
        return Ok(Vec::new());
    };
    scope(|scope| {
        let work = &work;
        let others = shares
            .map(|share| spawn_scoped(scope, name, move || work(share)))
            .collect::<Result<Vec<_>>>()?;
        let mut results = vec![work(own)?];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok(results)
    })
}

/// Makes items in a second thread, two ahead of the one that `take` receives, in order. Returns
/// false, without making any, if the system cannot start another thread.
///
/// # Errors
/// Returns the first error of an item or of `take`, and [`Error::Bug`] if making an item panics.
pub(crate) fn make_ahead<T: Send>(
    name: &str,
    items: &mut (impl Iterator<Item = Result<T>> + Send),
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<bool> {
    scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        // It ends when no thread waits for items any more.
        let make = move || items.try_for_each(|item| sender.send(item));
        let Ok(making) = named(name).spawn_scoped(scope, make) else {
            return Ok(false);
        };
        let taken = receiver.iter().try_for_each(|item| take(item?));
        drop(receiver);
        let made = making.join();
        // A panic ends the items early.
        let _ = made.ok().or_bug("a thread that makes items panicked")?;
        taken.map(|()| true)
    })
}

/// Makes items in this thread, and takes them in a second one, at most two behind, in order. `make` hands each item to
/// the function that it gets.
///
/// # Errors
/// Returns the first error of `take`, or that of `make`, and [`Error::Io`] if the system cannot start another thread.
pub fn take_behind<T: Send, R>(
    name: &str,
    make: impl FnOnce(&mut dyn FnMut(T) -> Result<()>) -> Result<R>,
    mut take: impl FnMut(T) -> Result<()> + Send,
) -> Result<R> {
    scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        let taking = spawn_scoped(scope, name, move || receiver.iter().try_for_each(&mut take))?;
        // Nobody receives any more after `take` has failed, with the error that counts.
        let made = make(&mut |item| {
            let sent = sender.send(item).ok();
            sent.or_bug("a thread that takes items has stopped")
        });
        drop(sender);
        let taken = taking.join().unwrap_or_else(|panic| resume_unwind(panic));
        taken.and(made)
    })
}

pub(crate) fn named(name: &str) -> Builder {
    Builder::new().name(format!("rsm-{name}"))
}

fn failure(source: io::Error) -> Error {
    let action = "starting a thread".into();
    Error::Io { action, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::bug;

    #[test]
    fn items_are_taken_in_order_up_to_the_first_failure() {
        let taken = |end: u32, refused: Option<u32>| {
            let mut taken = Vec::new();
            let make = |send: &mut dyn FnMut(u32) -> Result<()>| {
                numbers(end)
                    .try_for_each(|number| send(number?))
                    .map(|()| end)
            };
            let made = take_behind("test", make, |number| {
                taken.push(number);
                (refused != Some(number))
                    .then_some(())
                    .ok_or_else(|| bug("refused"))
            });
            (made, taken)
        };
        let (made, all) = taken(7, None);
        assert_eq!(made.unwrap(), 7);
        assert_eq!(all, (0..7).collect::<Vec<_>>());
        let (made, before) = taken(8, None);
        assert!(matches!(made, Err(Error::Busy)));
        assert_eq!(before, all);
        let (made, some) = taken(7, Some(3));
        assert!(made.unwrap_err().to_string().contains("refused"));
        assert_eq!(some, [0, 1, 2, 3]);
    }

    fn numbers(end: u32) -> impl Iterator<Item = Result<u32>> + Send {
        (0..end).map(|number| match number {
            7 => Err(Error::Busy),
            9 => panic!("nine"),
            _ => Ok(number),
        })
    }

    #[test]
    fn ordered_map_returns_items_up_to_the_first_failure() {
        let taken = |end, refused: Option<u32>| {
            let mut taken = Vec::new();
            let made = make_ahead("test", &mut numbers(end), |number| {
                taken.push(number);
                (refused != Some(number))
                    .then_some(())
                    .ok_or_else(|| bug("refused"))
            });
            (made, taken)
        };
        let (made, all) = taken(7, None);
        assert!(made.unwrap());
        assert_eq!(all, (0..7).collect::<Vec<_>>());
        let (made, before) = taken(8, None);
        assert!(matches!(made, Err(Error::Busy)));
        assert_eq!(before, all);
        let (made, some) = taken(8, Some(3));
        assert!(made.unwrap_err().to_string().contains("refused"));
        assert_eq!(some, [0, 1, 2, 3]);
        let mut behind = numbers(10).skip(8);
        let made = make_ahead("test", &mut behind, |_| Ok(()));
        assert!(matches!(made, Err(Error::Bug { .. })));
    }
}
