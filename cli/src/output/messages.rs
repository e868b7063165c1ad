//! The one place that writes to standard error.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use resemblance::DesignReport;

use super::escape;
use crate::failure::Failure;

const PREFIX: &str = "resemblance: ";

/// Which messages are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    /// Notes were told before: the same work is done once more.
    pub(crate) is_repeated: bool,
}

impl Messages {
    /// A count or a remark; not with `-q`.
    pub(crate) fn note(self, message: impl Display) {
        if !self.quiet && !self.is_repeated {
            write(message, false);
        }
    }

    /// A warning if a store has more documents than it was laid out for; not with `-q`.
    pub(crate) fn advise(self, design: &DesignReport) {
        if let Some(advice) = &design.advice {
            self.note(format_args!("warning: {advice}"));
        }
    }

    /// How something was done; only with `-v`.
    pub(crate) fn detail(self, message: impl Display) {
        if self.verbose && !self.quiet && !self.is_repeated {
            write(message, false);
        }
    }
}

/// Why the exit code is not 0: the cause, the place and what can be done, on lines of their own.
/// Always written.
pub(crate) fn tell_failure(failure: &Failure) {
    let lines: Vec<_> = failure
        .lines()
        .map(|line| escape::one_line(&line))
        .collect();
    write(lines.join("\n  "), true);
}

/// A mistake on the command line; always written.
pub(crate) fn tell_usage(text: &str) {
    write(text, true);
}

/// Help that was not asked for, to someone who gave no verb.
pub(crate) fn tell_help(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

fn write(message: impl Display, is_error: bool) {
    let mut stderr = std::io::stderr().lock();
    let text = message.to_string();
    let text = escape::for_terminal(&text);
    // a closed standard error leaves no one to tell
    let _ = if is_error && has_colour(&stderr) {
        writeln!(stderr, "\x1b[1;31m{PREFIX}\x1b[0m{text}")
    } else {
        writeln!(stderr, "{PREFIX}{text}")
    };
}

/// Returns true if a stream is a terminal that shows colours, and its user has not refused them.
pub(crate) fn has_colour(stream: &impl IsTerminal) -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !refused && !dumb && stream.is_terminal()
}
