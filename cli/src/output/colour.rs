//! The decision whether output is coloured.

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default();

/// The conditions under which output is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal, unless NO_COLOR or CLICOLOR=0 is set; elsewhere with CLICOLOR_FORCE=1
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl ColourChoice {
    /// Chooses for the rest of the run. Before that it is as for [`Auto`](Self::Auto).
    pub(crate) fn choose(self) {
        let choice = match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// Returns true if output to a stream is to be coloured.
pub(crate) fn has_colour(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

fn painted(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// Returns a table with emphasized names of columns, and a plain line below them.
pub(super) fn painted_table(table: &str) -> String {
    let is_rule = |line: &&str| line.starts_with('─');
    let header_lines = table.lines().take_while(|line| !is_rule(line)).count();
    let paint = |(number, line): (usize, &str)| match number {
        _ if number < header_lines => painted(line, BOLD),
        _ if number == header_lines => painted(line, DIM),
        _ => line.to_owned(),
    };
    let lines: Vec<_> = table.lines().enumerate().map(paint).collect();
    lines.join("\n")
}

/// Counts such as `kept 3, dropped 0`: those that are not 0 have the colour of what they count.
pub(super) fn painted_counts(text: &str) -> String {
    let paint = |part: &str| {
        let (name, count) = part.rsplit_once(' ')?;
        let style = match name {
            "kept" | "added" | "good" => GREEN,
            "dropped" => YELLOW,
            "skipped" => RED,
            _ => return None,
        };
        (count != "0").then(|| painted(part, style))
    };
    let parts: Vec<_> = text
        .split(", ")
        .map(|part| paint(part).unwrap_or_else(|| part.to_owned()))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_highlights_column_names_and_counts() {
        assert_eq!(
            painted_table("a  b\n────\n1  ─\n"),
            "\x1b[1ma  b\x1b[0m\n\x1b[2m────\x1b[0m\n1  ─"
        );
        assert_eq!(
            painted_counts("read 3, kept 2, dropped 1, skipped 0"),
            "read 3, \x1b[32mkept 2\x1b[0m, \x1b[33mdropped 1\x1b[0m, skipped 0"
        );
    }
}
