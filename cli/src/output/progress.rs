//! Progress bars on standard error for whatever takes longer than a second.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const DELAY: Duration = Duration::from_secs(1);

/// What a bar says of work that tells of itself, after so much time.
type ProgressText = dyn Fn(Duration) -> String;

/// A bar that appears after a second, on terminals only.
pub(crate) struct ProgressDisplay {
    what: &'static str,
    total: Option<u64>,
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

    /// A bar over so many bytes, asked for only if a bar may be shown; `None` if that is unknown.
    pub(crate) fn with_total_bytes(
        what: &'static str,
        quiet: bool,
        total: impl FnOnce() -> Option<u64>,
    ) -> Self {
        let is_wanted = !quiet && std::io::stderr().is_terminal();
        Self {
            what,
            total: if is_wanted { total() } else { None },
            is_wanted,
            started: Instant::now(),
            bar: None,
            text: None,
        }
    }

    /// A bar for work that says in words how far it is, given the time since it began.
    pub(crate) fn with_text(
        what: &'static str,
        quiet: bool,
        text: impl Fn(Duration) -> String + 'static,
    ) -> Self {
        let mut display = Self::new(what, quiet);
        display.text = Some(Box::new(text));
        display
    }

    /// Shows that work goes on.
    pub(crate) fn tick(&mut self) {
        let elapsed = self.started.elapsed();
        let text = self.text.as_ref().map(|text| text(elapsed));
        let what = self.what;
        if let Some(bar) = self.shown() {
            if let Some(text) = text {
                bar.set_message(format!("{what}: {text}"));
            }
            bar.tick();
        }
    }

    /// Shows how far the work is.
    pub(crate) fn update(&mut self, documents: u64, bytes: u64) {
        let position = if self.total.is_some() {
            bytes
        } else {
            documents
        };
        if let Some(bar) = self.shown() {
            bar.set_position(position);
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
            let (bar, template) = match self.total {
                Some(total) => (
                    ProgressBar::with_draw_target(Some(total), target),
                    "{msg} [{bar:32}] {bytes} of {total_bytes}, {eta} left",
                ),
                None => (
                    ProgressBar::with_draw_target(None, target),
                    if self.text.is_some() {
                        "{spinner} {wide_msg}"
                    } else {
                        "{msg} {spinner} {pos} documents, {elapsed}"
                    },
                ),
            };
            let style = ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            self.bar = Some(bar.with_style(style).with_message(self.what));
        }
        self.bar.as_ref()
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.clear();
    }
}
