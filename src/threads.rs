//! Threads with names, which the system's tools show: at most 15 bytes of them.

use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::error::{Error, Result};

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
/// As [`spawn`].
pub(crate) fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    named(name).spawn_scoped(scope, run).map_err(failure)
}

pub(crate) fn named(name: &str) -> Builder {
    Builder::new().name(format!("rsm-{name}"))
}

fn failure(source: io::Error) -> Error {
    let action = "starting a thread".into();
    Error::Io { action, source }
}
