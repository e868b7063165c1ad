//! The verb `repair`.

use std::path::PathBuf;

use clap::Args;
use resemblance::report::{IdRange, RepairReport};
use resemblance::schema::noun;
use resemblance::{Schema, Store};

use crate::failure::{Failure, Outcome, Result, unless_closed};
use crate::options::FormatOptions;
use crate::output::{Column, Counted, Results, Value, must_be_new};
use crate::session::{Context, bulk_options};

/// Make a new store from the readable parts of a damaged one
///
/// Keeps every document whose rows are intact, with its id, key, stamp, payload and signature, and rebuilds everything
/// else. The damaged store is only read, and need not have been closed properly; other processes cannot write to it
/// meanwhile.
///
/// Prints a line for the documents kept and a line for each loss (columns: what, first_id, last_id,
/// detail). A loss is a document id or a range of ids; ranges of `lost` and `may be back` can have ids
/// that no document ever had. Damage is listed too, with its place in the detail. Exits with 1 unless
/// all documents were kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance check seen.rsm || resemblance repair seen.rsm -o new.rsm
  resemblance repair seen.rsm -o new.rsm --schema-of backup/seen.rsm
  resemblance repair seen.rsm -o new.rsm --scan")]
pub(crate) struct RepairArguments {
    /// The damaged store
    pub(crate) store: PathBuf,
    /// The file to create; it must not exist
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// A store with the same schema, if the schema of the damaged one cannot be read: a copy, or a store that create
    /// made with the same options
    #[arg(long, value_name = "STORE")]
    schema_of: Option<PathBuf>,
    /// Read all pages of the file, if its tables cannot be found. Removed or replaced documents may reappear
    #[arg(long)]
    scan: bool,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn repair(context: &Context, arguments: &RepairArguments) -> Result<Outcome> {
    must_be_new(
        &arguments.output,
        "repair never overwrites: give another name",
    )?;
    let mut repair = Store::repair(&arguments.store, &arguments.output)
        .bulk(bulk_options(context))
        .scan(arguments.scan);
    if let Some(path) = &arguments.schema_of {
        repair = repair.schema(schema_of(context, path)?);
    }
    let (done, stopped) = context.carry_out(repair);
    let report = done.map_err(|error| stopped.unwrap_or_else(|| error.into()))?;
    unless_closed(print(arguments, &report))?;
    context.note(summary(&report, arguments.scan));
    Ok(Outcome::found(report.is_complete()))
}

fn schema_of(context: &Context, path: &PathBuf) -> Result<Schema> {
    match context.store_options.open_read_only(path) {
        Ok(store) => Ok(store.schema().clone()),
        Err(error) => Err(Failure::store(path.display(), error)),
    }
}

/// Prints a line for the kept documents, and for each loss and problem.
fn print(arguments: &RepairArguments, report: &RepairReport) -> Result<()> {
    let columns = Column::list("what first_id last_id detail");
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let mut line = |what, first: &str, last: &str, detail: &str| {
        results.row(&[
            Value::Text(what),
            Value::Text(first),
            Value::Text(last),
            Value::Text(detail),
        ])
    };
    line(
        "kept",
        "",
        "",
        &format!(
            "{} {}",
            report.documents,
            noun(report.documents, "document")
        ),
    )?;
    let ranges: [(&str, &[IdRange]); 2] =
        [("lost", &report.lost), ("may be back", &report.may_be_back)];
    for (what, ranges) in ranges {
        for range in ranges {
            let (first, last) = (range.first.to_string(), range.last.to_string());
            line(what, &first, &last, &range.reason)?;
        }
    }
    for problem in &report.damage {
        let detail = format!("{}: {}", problem.place, problem.detail);
        line("damage", "", "", &detail)?;
    }
    results.finish()
}

fn summary(report: &RepairReport, scan: bool) -> String {
    let mut summary = match report.documents_before {
        Some(before) => format!(
            "kept {} of {}",
            report.documents,
            Counted(before, "document")
        ),
        None => format!(
            "kept {}; the number before cannot be read",
            Counted(report.documents, "document")
        ),
    };
    if report.documents_replaced > 0 {
        let replaced = report.documents_replaced;
        summary += &format!("; skipped {replaced} with the key of a newer one");
    }
    if !report.may_be_back.is_empty() {
        summary += "; removed documents may be back";
    }
    if report.is_earlier_commit {
        summary += "; the last commit cannot be read, so this may be the state before it";
    }
    if !report.has_own_schema {
        summary += "; with the schema of the other store";
    }
    if !report.lost.is_empty() && !scan {
        summary += "; --scan may find more, and may bring back removed documents";
    }
    if report.truncated {
        summary += "; the lists are truncated";
    }
    summary
}
