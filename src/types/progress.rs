//! How whoever watches long work ends it.

use std::ops::ControlFlow;

use crate::error::{Error, Result};

/// An error if whoever was told of progress breaks off; `work` is what is stopped.
pub(crate) fn go_on(answer: ControlFlow<()>, work: &str) -> Result<()> {
    match answer {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Io {
            action: format!("{work} was stopped"),
            source: std::io::ErrorKind::Interrupted.into(),
        }),
    }
}
