//! The options that say how results are written.

use clap::{Args, ValueEnum};

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

/// The forms of results whose columns have types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TypedFormat {
    /// Aligned columns for reading
    Table,
    /// Tab-separated values
    Tsv,
    /// Comma-separated values, quoted where need be
    Csv,
    /// One JSON object per line
    Jsonl,
    /// One JSON array of objects
    Json,
    /// A Parquet file with the fields of jsonl
    Parquet,
}

impl TypedFormat {
    fn format(self) -> Format {
        match self {
            Self::Table => Format::Table,
            Self::Tsv => Format::Tsv,
            Self::Csv => Format::Csv,
            Self::Jsonl => Format::Jsonl,
            Self::Json => Format::Json,
            Self::Parquet => Format::Parquet,
        }
    }
}

/// How results are written whose columns have types.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TypedFormatOptions {
    /// Form of the results [default: table on a terminal, else tsv]
    #[arg(long, value_name = "FORMAT")]
    format: Option<TypedFormat>,
    /// Leave out the first line of tsv and csv, which has the names of the columns
    #[arg(long)]
    no_header: bool,
    /// What --no-header turns off, for commands that were written before it was the default
    #[arg(long, hide = true, conflicts_with = "no_header")]
    header: bool,
}

impl TypedFormatOptions {
    /// The layout that was asked for.
    pub(crate) fn layout(&self) -> Layout {
        let format = self.format.map(TypedFormat::format);
        Layout::new(format, self.header || !self.no_header)
    }
}

impl FormatOptions {
    /// The layout that was asked for.
    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self.format, self.header || !self.no_header)
    }
}
