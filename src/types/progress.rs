//! Stopping long work from its progress callback.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// Returns an error if the progress callback breaks off; `work` names what is stopped.
pub(crate) fn go_on(answer: ControlFlow<()>, work: &str) -> Result<()> {
    match answer {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Io {
            action: format!("{work} was stopped"),
            source: std::io::ErrorKind::Interrupted.into(),
        }),
    }
}
