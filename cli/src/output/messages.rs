//! The one place that writes to standard error.

use std::fmt;
use std::fmt::Display;
use std::io::{IsTerminal, Write};

use resemblance::schema::{DesignReport, noun};

use super::colour::{has_colour, painted_counts};
use super::escape;
use crate::failure::Failure;

const PREFIX: &str = "resemblance: ";

/// The messages that the user wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    /// True if notes were printed before: the same work is repeated.
    pub(crate) is_repeated: bool,
}

impl Messages {
    /// A count or a remark; not with `-q`.
    pub(crate) fn note(self, message: impl Display) {
        if !self.quiet && !self.is_repeated {
            write(message, MessageKind::Remark);
        }
    }

    /// Prints a file that could not be read and was skipped, even with `-q`.
    pub(crate) fn skipped(message: impl Display) {
        write(format_args!("skipped: {message}"), MessageKind::Remark);
    }

    /// Prints the number of documents for each outcome, unless `-q` is given.
    pub(crate) fn counts(self, message: impl Display) {
        if !self.quiet && !self.is_repeated {
            write(message, MessageKind::Counts);
        }
    }

    /// A warning if a store has more documents than it was laid out for; not with `-q`.
    pub(crate) fn advise(self, design: &DesignReport) {
        if let Some(advice) = &design.advice {
            self.note(format_args!("warning: {advice}"));
        }
    }

    /// Prints how something was done, only with `-v`.
    pub(crate) fn detail(self, message: impl Display) {
        if self.verbose && !self.quiet && !self.is_repeated {
            write(message, MessageKind::Remark);
        }
    }
}

/// Prints why the exit code is not 0: the cause, the place and the advice, on separate lines.
/// Always printed.
pub(crate) fn print_failure(failure: &Failure) {
    let lines: Vec<_> = failure
        .lines()
        .map(|line| escape::one_line(&line))
        .collect();
    write(lines.join("\n  "), MessageKind::Failure);
}

/// A mistake on the command line; always written.
pub(crate) fn print_usage(text: &str) {
    write(text, MessageKind::Failure);
}

/// Prints help that was not requested, because no verb was given.
pub(crate) fn print_help(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The subject of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageKind {
    Remark,
    Counts,
    Failure,
}

fn write(message: impl Display, kind: MessageKind) {
    let mut stderr = std::io::stderr().lock();
    let text = message.to_string();
    let text = escape::for_terminal(&text);
    let has_colour = has_colour(&stderr);
    // with standard error closed, nobody can be informed
    let _ = match kind {
        MessageKind::Failure if has_colour => writeln!(stderr, "\x1b[1;31m{PREFIX}\x1b[0m{text}"),
        MessageKind::Counts if has_colour => {
            writeln!(stderr, "{PREFIX}{}", painted_counts(&text))
        }
        _ => writeln!(stderr, "{PREFIX}{text}"),
    };
}

/// A count in a message, with commas between its thousands if the message goes to a terminal.
pub(crate) struct GroupedNumber(pub(crate) u64);

impl fmt::Display for GroupedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::io::stderr().is_terminal() {
            true => f.write_str(&escape::grouped(self.0)),
            false => write!(f, "{}", self.0),
        }
    }
}

/// A count in a message with the noun that it counts, such as `1 pair` or `2 pairs`.
pub(crate) struct Counted(pub(crate) u64, pub(crate) &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", GroupedNumber(self.0), noun(self.0, self.1))
    }
}

/// Bytes in MiB, or in GiB from 10 GiB on.
pub(crate) struct BinarySize(pub(crate) u64);

impl fmt::Display for BinarySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.div_ceil(1 << 20) {
            size @ ..10_240 => write!(f, "{size} MiB"),
            size => write!(f, "{:.1} GiB", size as f64 / 1024.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_follow_their_counts() {
        let counted = [(1, "pair"), (2, "pair"), (0, "hash")].map(|(n, noun)| Counted(n, noun));
        let printed = counted.map(|counted| counted.to_string());
        assert_eq!(printed, ["1 pair", "2 pairs", "0 hashes"]);
    }

    #[test]
    fn sizes_are_printed_with_few_digits() {
        let size = |bytes| BinarySize(bytes).to_string();
        assert_eq!(
            [size(1), size(500 << 20), size(25 << 29)],
            ["1 MiB", "500 MiB", "12.5 GiB"]
        );
    }
}
