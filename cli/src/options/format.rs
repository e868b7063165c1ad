//! The options for how results are written.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::output::{Format, Layout};

/// Options for the format of results, which can be Parquet too if their columns have types.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormatOptions<const HAS_TYPES: bool = false> {
    /// Format of the results [default: table on a terminal, otherwise tsv]
    #[arg(long, value_name = "FORMAT", value_parser = form_parser(HAS_TYPES))]
    pub(crate) format: Option<Format>,
    /// Omit the header line of tsv and csv
    #[arg(long)]
    no_header: bool,
    /// Print the header line even if --no-header is the default of the configuration file
    #[arg(long, hide = true, conflicts_with = "no_header")]
    header: bool,
}

fn form_parser(has_types: bool) -> impl TypedValueParser<Value = Format> {
    let forms = Format::value_variants().iter();
    let had = forms.filter(|form| has_types || **form != Format::Parquet);
    PossibleValuesParser::new(had.filter_map(ValueEnum::to_possible_value))
        .try_map(|name| Format::from_str(&name, false))
}

impl<const HAS_TYPES: bool> FormatOptions<HAS_TYPES> {
    /// Returns the requested layout.
    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self.format, self.header || !self.no_header)
    }
}
