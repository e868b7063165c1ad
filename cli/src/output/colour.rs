//! Whether what is printed has colours.

use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::ValueEnum;

/// When there are colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourChoice {
    /// On a terminal, unless NO_COLOR or CLICOLOR=0 is set; elsewhere with CLICOLOR_FORCE=1
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What was chosen for this run; before arguments are read, as for [`ColourChoice::Auto`].
static CHOICE: OnceLock<ColourChoice> = OnceLock::new();

impl ColourChoice {
    /// Chooses for the rest of the run: the first choice counts.
    pub(crate) fn choose(self) {
        let _ = CHOICE.set(self);
    }

    /// What is to be done on a terminal or elsewhere, by what a variable of the environment holds.
    fn is_coloured(
        self,
        is_terminal: bool,
        variable: impl Fn(&str) -> Option<std::ffi::OsString>,
    ) -> bool {
        let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
        let is = |name, wanted| variable(name).is_some_and(|value| value == wanted);
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if is_set("NO_COLOR") => false,
            Self::Auto if is_set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") => true,
            Self::Auto => is_terminal && !is("CLICOLOR", "0") && !is("TERM", "dumb"),
        }
    }
}

/// Returns true if what goes to a stream is to have colours.
pub(crate) fn has_colour(stream: &impl IsTerminal) -> bool {
    let choice = CHOICE.get().copied().unwrap_or_default();
    choice.is_coloured(stream.is_terminal(), |name| std::env::var_os(name))
}

/// A way to make text stand out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Paint {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

impl Paint {
    /// The text in this colour.
    pub(super) fn on(self, text: &str) -> String {
        let code = match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A table whose names of columns stand out, and the line below them does not.
pub(super) fn painted_table(table: &str) -> String {
    let is_rule = |line: &&str| line.starts_with('─');
    let header_lines = table.lines().take_while(|line| !is_rule(line)).count();
    let paint = |(number, line): (usize, &str)| match number {
        _ if number < header_lines => Paint::Bold.on(line),
        _ if number == header_lines => Paint::Dim.on(line),
        _ => line.to_owned(),
    };
    let lines: Vec<_> = table.lines().enumerate().map(paint).collect();
    lines.join("\n")
}

/// Counts such as `kept 3, dropped 0`: those that are not 0 have the colour of what they count.
pub(super) fn painted_counts(text: &str) -> String {
    let paint = |part: &str| {
        let (name, count) = part.rsplit_once(' ')?;
        let paint = match name {
            "kept" | "added" | "good" => Paint::Green,
            "dropped" => Paint::Yellow,
            "skipped" => Paint::Red,
            _ => return None,
        };
        (count != "0").then(|| paint.on(part))
    };
    let parts = text.split(", ");
    let parts: Vec<_> = parts
        .map(|part| paint(part).unwrap_or_else(|| part.to_owned()))
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_wins_over_the_environment_and_that_over_the_terminal() {
        use ColourChoice::{Always, Auto, Never};
        for (choice, is_terminal, set, expected) in [
            (Auto, true, &[][..], true),
            (Auto, false, &[], false),
            (Auto, true, &[("NO_COLOR", "1")], false),
            (Auto, true, &[("NO_COLOR", "")], true),
            (Auto, true, &[("TERM", "dumb")], false),
            (Auto, true, &[("CLICOLOR", "0")], false),
            (Auto, true, &[("CLICOLOR", "1")], true),
            (Auto, false, &[("CLICOLOR", "1")], false),
            (Auto, false, &[("CLICOLOR_FORCE", "1")], true),
            (Auto, false, &[("CLICOLOR_FORCE", "0")], false),
            (
                Auto,
                false,
                &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
                false,
            ),
            (Always, false, &[("NO_COLOR", "1")], true),
            (Never, true, &[("CLICOLOR_FORCE", "1")], false),
        ] {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.into())
            };
            let found = choice.is_coloured(is_terminal, variable);
            assert_eq!(found, expected, "{choice:?} {is_terminal} {set:?}");
        }
    }

    #[test]
    fn names_of_columns_and_counts_stand_out() {
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
