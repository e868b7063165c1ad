//! The options that say how results are written.

use clap::Args;

use crate::output::{Format, Layout};

/// How results are written.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormatOptions {
    /// Form of the results [default: table on a terminal, else tsv]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Leave out the first line of tsv and csv, which has the names of the columns
    #[arg(long)]
    no_header: bool,
    /// What --no-header turns off, for commands that were written before it was the default
    #[arg(long, hide = true, conflicts_with = "no_header")]
    header: bool,
}

impl FormatOptions {
    /// The layout that was asked for.
    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self.format, self.header || !self.no_header)
    }
}
