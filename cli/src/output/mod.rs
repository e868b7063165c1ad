//! Output of the tool: results, files that get their name when they are complete, charts, and
//! messages on standard error.
//!
//! It knows no options and no verbs; a part imports only parts that are simpler than itself.

mod colour;
mod destination;
mod drawing;
pub(crate) mod escape;
pub(crate) mod guard;
mod messages;
mod pair_sorter;
#[cfg(feature = "tables")]
mod parquet_rows;
mod progress;
mod report;
mod results;
mod sections;
mod sink;
mod target;
mod value;

pub(crate) use colour::{ColourChoice, has_colour};
pub(crate) use destination::{
    CompleteFile, Destination, make_folder, may_be_folder, must_be_free, must_be_new, open_folder,
    scratch_builder, sync_folder,
};
pub(crate) use drawing::write_chart;
pub(crate) use guard::parent;
pub(crate) use messages::{
    BinarySize, Counted, GroupedNumber, Messages, print_failure, print_help, print_usage,
};
pub(crate) use pair_sorter::{PairSorter, SortedPairs, UnsortedPair};
pub(crate) use progress::ProgressDisplay;
pub(crate) use report::{DropReport, Evidence, RejectedReport, Survivor, SurvivorPlace};
pub(crate) use results::{Format, Layout, Results};
pub(crate) use sections::{Section, SectionItem, SectionRow};
pub(crate) use sink::{CompleteSink, Sink};
pub(crate) use target::OutputTarget;
pub(crate) use value::{
    Column, ColumnKind, Value, euclidean_column, euclidean_distance, id_name, longest_run,
    nearness_columns, passage_positions,
};
