//! Progress bars on standard error for whatever takes longer than a second.

use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use resemblance::{Phase, Progress};

const DELAY: Duration = Duration::from_secs(1);

/// The unit that is shown in KiB, MiB and so on.
const BYTES: &str = "bytes";

/// Returns the text of a progress bar after this duration.
type ProgressText = dyn Fn(Duration) -> String + Send;

/// A bar that appears after a second, on terminals only.
pub(crate) struct ProgressDisplay {
    what: String,
    unit: &'static str,
    total: Option<u64>,
    /// The current phase of an operation of the library.
    phase: Option<Phase>,
    /// The latest progress that an operation has reported on another thread.
    reported: Arc<Mutex<Option<Progress>>>,
    is_wanted: bool,
    started: Instant,
    bar: Option<ProgressBar>,
    /// Instead of a number of documents.
    text: Option<Box<ProgressText>>,
}

impl ProgressDisplay {
    /// A bar that counts documents.
    pub(crate) fn new(what: &'static str, quiet: bool) -> Self {
        Self::with_total_bytes(what, quiet, || None)
    }

    /// Creates a bar over this number of bytes, which is computed only if a bar may be shown;
    /// `None` if it is unknown.
    pub(crate) fn with_total_bytes(
        what: &'static str,
        quiet: bool,
        total: impl FnOnce() -> Option<u64>,
    ) -> Self {
        let is_wanted = !quiet && std::io::stderr().is_terminal();
        let total = if is_wanted { total() } else { None };
        Self {
            what: what.into(),
            unit: if total.is_some() { BYTES } else { "documents" },
            total,
            phase: None,
            reported: Arc::default(),
            is_wanted,
            started: Instant::now(),
            bar: None,
            text: None,
        }
    }

    /// Creates a bar for work that describes its progress in words, given the time since it began.
    pub(crate) fn with_text(
        what: &'static str,
        quiet: bool,
        text: impl Fn(Duration) -> String + Send + 'static,
    ) -> Self {
        let mut display = Self::new(what, quiet);
        display.text = Some(Box::new(text));
        display
    }

    /// Returns a progress callback for an operation on another thread; [`tick`](Self::tick) shows
    /// its latest report.
    pub(crate) fn reporter(&self) -> impl FnMut(Progress) -> ControlFlow<()> + Send + 'static {
        let reported = Arc::clone(&self.reported);
        move |progress| {
            // Only a panic of ours poisons it, and that is reported elsewhere.
            if let Ok(mut reported) = reported.lock() {
                *reported = Some(progress);
            }
            ControlFlow::Continue(())
        }
    }

    /// Shows that work continues.
    pub(crate) fn tick(&mut self) {
        let reported = self.reported.lock().ok().and_then(|reported| *reported);
        if let Some(progress) = reported {
            self.show(progress);
        }
        let elapsed = self.started.elapsed();
        let text = self.text.as_ref().map(|text| text(elapsed));
        let message = text.map(|text| format!("{}: {text}", self.what));
        if let Some(bar) = self.shown() {
            if let Some(message) = message {
                bar.set_message(message);
            }
            bar.tick();
        }
    }

    /// Shows how far the work is.
    pub(crate) fn update(&mut self, documents: u64, bytes: u64) {
        let position = if self.unit == BYTES { bytes } else { documents };
        if let Some(bar) = self.shown() {
            bar.set_position(position);
        }
    }

    /// Shows the progress of an operation of the library, with one bar for each phase.
    pub(crate) fn show(&mut self, progress: Progress) {
        if self.phase != Some(progress.phase) {
            if let Some(bar) = self.bar.take() {
                bar.finish_and_clear();
            }
            self.phase = Some(progress.phase);
            self.what = progress.phase.to_string();
            self.unit = progress.phase.unit();
        }
        self.total = progress.total;
        if let Some(bar) = self.shown() {
            if let Some(total) = progress.total {
                bar.set_length(total);
            }
            bar.set_position(progress.done);
        }
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.started = Instant::now();
    }

    fn shown(&mut self) -> Option<&ProgressBar> {
        if !self.is_wanted {
            return None;
        }
        if self.bar.is_none() && self.started.elapsed() >= DELAY {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(self.total, target);
            let style = ProgressStyle::with_template(&self.template())
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            self.bar = Some(bar.with_style(style).with_message(self.what.clone()));
        }
        self.bar.as_ref()
    }

    fn template(&self) -> String {
        let unit = self.unit;
        if self.text.is_some() {
            return "{spinner} {wide_msg}".into();
        }
        match self.total {
            Some(_) if unit == BYTES => {
                "{msg} [{bar:32}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left".into()
            }
            Some(_) => {
                format!("{{msg}} [{{bar:32}}] {{pos}} of {{len}} {unit}, {{per_sec}}, {{eta}} left")
            }
            None => format!("{{msg}} {{spinner}} {{pos}} {unit}, {{per_sec}}, {{elapsed}}"),
        }
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.clear();
    }
}
