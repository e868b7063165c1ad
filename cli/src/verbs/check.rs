//! The verb `check`.

use std::path::PathBuf;

use clap::Args;
use resemblance::Error;

use crate::failure::{Failure, Outcome, Result, unless_closed};
use crate::options::FormatOptions;
use crate::output::{Column, ColumnKind, Counted, GroupedNumber, Results, Value};
use crate::session::Context;

/// Verify a store from end to end
///
/// Prints one line for each problem found (columns: problem, place, detail; json and parquet also have the number of the
/// invariant in the format specification) and exits with 1 if there was any. The file is not changed. If another process
/// has the store open for writing, its last commit is checked with all documents and postings, and free pages are not.
/// Otherwise a process that wants to write waits for the check. The verb repair builds a new store from the readable
/// parts.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  resemblance check seen.rsm && cp seen.rsm backup/")]
pub(crate) struct CheckArguments {
    /// The store
    pub(crate) store: PathBuf,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn check(context: &Context, arguments: &CheckArguments) -> Result<Outcome> {
    let path = arguments.store.clone();
    let options = context.store_options.clone();
    let mut progress = context.progress("checking");
    let notify = progress.reporter();
    let checked = context.interrupt.while_working(&mut progress, move || {
        Ok(options.check(path).on_progress(notify).run())
    })?;
    match checked {
        Ok(report) => {
            let found = report.problems.len() as u64;
            let verdict = match found {
                0 => "is sound".to_owned(),
                1 => "has a problem".to_owned(),
                _ => format!("has {} problems", GroupedNumber(found)),
            };
            context.note(format!(
                "{} {verdict}: checked {}, {} in {}",
                arguments.store.display(),
                Counted(report.documents, "document"),
                Counted(report.postings, "posting"),
                Counted(report.blocks, "block")
            ));
            if report.while_written {
                context.note(
                    "another process has it open for writing: pages outside its last commit were not checked",
                );
            }
            let rows = report.problems.iter().map(|problem| {
                [
                    Value::Text(summary(problem.invariant)),
                    Value::Text(&problem.place),
                    Value::Text(&problem.detail),
                    Value::Count(problem.invariant.into()),
                ]
            });
            print(arguments, rows)?;
            if report.truncated {
                context.note("the list is truncated: there are more problems");
            }
            if !report.is_clean() {
                advise_repair(context, arguments);
            }
            Ok(Outcome::found(report.is_clean()))
        }
        // damage that ends the check is damage found
        Err(Error::Corrupt { place, detail }) => {
            let row = [
                Value::Text("the rest cannot be read"),
                Value::Text(&place),
                Value::Text(&detail),
                Value::Count(0),
            ];
            print(arguments, [row])?;
            advise_repair(context, arguments);
            Ok(Outcome::Nothing)
        }
        Err(other) => Err(Failure::from(other)),
    }
}

/// Prints a line for each problem.
fn print<'a>(
    arguments: &CheckArguments,
    rows: impl IntoIterator<Item = [Value<'a>; 4]>,
) -> Result<()> {
    let mut columns = Column::list("problem place detail");
    columns.push(Column::of("invariant", ColumnKind::Count).shown_if(false));
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let mut rows = rows.into_iter();
    unless_closed(rows.try_for_each(|row| results.row(&row)))?;
    unless_closed(results.finish())
}

/// Returns in a few words what is wrong where an invariant of the format specification does not hold.
fn summary(invariant: u8) -> &'static str {
    match invariant {
        1 => "documents and payloads disagree",
        2 => "a value is damaged",
        3 => "a run and its blocks disagree",
        4 => "a posting or a tombstone has no document",
        5 => "a document has other postings than it should",
        6 => "a key is there twice",
        7 => "a block is damaged or out of order",
        8 => "a page of the file is damaged",
        9 => "a filter is wrong",
        10 => "a note on equal documents is wrong",
        _ => "something is damaged",
    }
}

fn advise_repair(context: &Context, arguments: &CheckArguments) {
    let store = arguments.store.display();
    context.note(format!(
        "restore a backup, or make a new store from the readable parts: resemblance repair {store} -o NEW"
    ));
}
