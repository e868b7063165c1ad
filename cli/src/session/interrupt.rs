//! Signals: the first asks all loops to stop, and another one, a second later, ends the process at once.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use resemblance::Progress;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::{Failure, Result};
use crate::output::ProgressDisplay;
use resemblance::invariant::bug;

/// The interval at which a waiting loop looks at the flag.
const POLL: Duration = Duration::from_millis(50);

/// The time after the first signal in which others mean the same. `timeout`, and other programs that pass a signal on,
/// make two of one.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

#[cfg(unix)]
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, signal_hook::consts::SIGHUP];
#[cfg(not(unix))]
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// The number of the signal that Ctrl-C sends.
pub(crate) const INTERRUPT: usize = 2;

/// The number of the signal that has arrived, or 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Installs the handlers.
    pub(crate) fn install() -> Result<Self> {
        let cannot_handle = |e| Failure::io("cannot handle signals", &e);
        let interrupt = Self::default();
        let ends_at_once = Arc::new(AtomicBool::new(false));
        for signal in SIGNALS {
            let number =
                usize::try_from(signal).map_err(|_| bug("the number of a signal is negative"))?;
            signal_hook::flag::register_conditional_shutdown(
                signal,
                128 + signal,
                Arc::clone(&ends_at_once),
            )
            .and_then(|_| {
                signal_hook::flag::register_usize(signal, Arc::clone(&interrupt.0), number)
            })
            .map_err(cannot_handle)?;
        }
        // Handlers of signals cannot read a clock.
        let number = Arc::clone(&interrupt.0);
        let arm = move || {
            while number.load(Ordering::Relaxed) == 0 {
                thread::sleep(POLL);
            }
            thread::sleep(SAME_SIGNAL);
            ends_at_once.store(true, Ordering::Relaxed);
        };
        let named = thread::Builder::new().name("rsm-signal".into());
        named
            .spawn(arm)
            .map_err(|e| Failure::io("starting a thread", &e))?;
        // a file that may not grow further is an error that the write returns, not the end
        #[cfg(unix)]
        signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())
            .map_err(cannot_handle)?;
        Ok(interrupt)
    }

    /// An error once a signal has arrived.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            number => Err(Failure::signal(number)),
        }
    }

    /// Waits; fails once a signal has arrived.
    pub(crate) fn sleep_until(&self, time: Instant) -> Result<()> {
        loop {
            self.check()?;
            match time.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Ok(()),
                left => thread::sleep(left.min(POLL)),
            }
        }
    }

    /// Does something long on another thread, so that a signal is answered meanwhile. After a
    /// signal the work continues until the process ends, so it must be harmless to cut short.
    pub(crate) fn while_working<T: Send + 'static>(
        &self,
        progress: &mut ProgressDisplay,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = mpsc::channel();
        let started = thread::Builder::new()
            .name("rsm-job".into())
            .spawn(move || {
                // After a signal, the receiver no longer exists.
                let _ = sender.send(work());
            });
        started.map_err(|e| Failure::io("starting a thread", &e))?;
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(result) => {
                    progress.clear();
                    return result;
                }
                Err(RecvTimeoutError::Timeout) => progress.tick(),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::internal());
                }
            }
            self.check()?;
        }
    }
}

/// Shows the progress of an operation, and breaks it off at a signal.
pub(crate) struct Watched<'c> {
    interrupt: &'c Interrupt,
    display: ProgressDisplay,
    signal: Option<Failure>,
}

impl<'c> Watched<'c> {
    pub(super) fn new(interrupt: &'c Interrupt, display: ProgressDisplay) -> Self {
        Self {
            interrupt,
            display,
            signal: None,
        }
    }

    /// The progress callback of the operation.
    pub(crate) fn report(&mut self, progress: Progress) -> ControlFlow<()> {
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
