//! Long operations of the library, with this tool's progress bars and signals.

use std::ops::ControlFlow;

use resemblance::Progress;

use super::context::Context;
use super::interrupt::Interrupt;
use crate::failure::Failure;
use crate::output::ProgressDisplay;

/// Shows the progress of an operation, and breaks it off at a signal.
pub(crate) struct Watched<'c> {
    interrupt: &'c Interrupt,
    display: ProgressDisplay,
    signal: Option<Failure>,
}

impl<'c> Watched<'c> {
    pub(crate) fn new(context: &'c Context) -> Self {
        Self {
            interrupt: &context.interrupt,
            display: context.progress("beginning"),
            signal: None,
        }
    }

    /// The progress callback of the operation.
    pub(crate) fn tell(&mut self, progress: Progress) -> ControlFlow<()> {
        self.display.show(progress);
        match self.interrupt.check() {
            Ok(()) => ControlFlow::Continue(()),
            Err(signal) => {
                self.signal = Some(signal);
                ControlFlow::Break(())
            }
        }
    }

    /// Returns the signal that broke the operation off, if one did, and takes the bar off the screen.
    pub(crate) fn signal(self) -> Option<Failure> {
        self.signal
    }
}
