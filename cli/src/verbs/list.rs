//! The verb `list`.

use std::path::PathBuf;

use clap::Args;
use resemblance::{DocumentId, Filter};

use crate::failure::{Outcome, Result};
use crate::options::{FilterOptions, FormatOptions};
use crate::output::{Column, Results, Value};
use crate::session::{Context, open_to_read};

/// List the documents of a store in the order of insertion
///
/// Columns: key, stamp, and with --payloads payload_hex and payload (if it is UTF-8 text); jsonl and json also have id.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance list seen.rsm --prefix https://example.org/
  resemblance list seen.rsm --older-than 14d --format csv")]
pub(crate) struct ListArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// --prefix is given as results print keys, with escapes
    #[arg(short, long, requires = "prefix")]
    escaped: bool,
    #[command(flatten)]
    filter: FilterOptions,
    /// Start at the document with this id, or at the next one
    #[arg(long, value_name = "ID")]
    from_id: Option<u64>,
    /// At most N documents
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Also show payloads, in hexadecimal and, if they are UTF-8, as text
    #[arg(long)]
    payloads: bool,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn list(context: &Context, arguments: &ListArguments) -> Result<Outcome> {
    let filter = arguments.filter.filter(arguments.escaped)?;
    let snapshot = open_to_read(context, &arguments.store)?.snapshot()?;
    let mut columns = vec![Column::new("key"), Column::new("stamp")];
    let payloads = arguments
        .payloads
        .then(|| Column::list("payload_hex payload"));
    columns.extend(payloads.into_iter().flatten());
    let mut results = Results::new(arguments.format.layout(), columns)?;
    // Ids begin at 0.
    let first_id = DocumentId::new(arguments.from_id.unwrap_or(0));
    let records = snapshot.iter().from_id(first_id);
    let records = records.passing(filter.unwrap_or_else(Filter::all));
    for record in records.take(arguments.limit.unwrap_or(usize::MAX)) {
        context.interrupt.check()?;
        let record = record?;
        // The last two have columns only if they were requested.
        results.row(&[
            Value::document(record.id(), record.key()),
            Value::Stamp(record.stamp()),
            Value::Bytes(record.payload()),
            Value::OptionalText(std::str::from_utf8(record.payload()).ok()),
        ])?;
    }
    results.finish()?;
    Ok(Outcome::Done)
}
