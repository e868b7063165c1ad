//! The verb `list`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use resemblance::{DocumentId, Record};

use crate::failure::{Failure, Outcome, Result};
use crate::options::{FormatOptions, parse_age, parse_key};
use crate::output::escape::PrintedKey;
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
    /// Only documents whose key begins with these bytes
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<OsString>,
    /// --prefix is given as results print keys, with escapes
    #[arg(short, long, requires = "prefix")]
    escaped: bool,
    /// Only documents whose stamps are smaller than this age such as 14d (s, m, h, d, w), stamp, or time such as
    /// 2026-01-31T08:00:00Z
    #[arg(long, value_name = "AGE|STAMP", value_parser = parse_age)]
    older_than: Option<u64>,
    /// Only documents whose stamps are at least this
    #[arg(long, value_name = "AGE|STAMP", value_parser = parse_age)]
    newer_than: Option<u64>,
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

impl ListArguments {
    fn wants(&self, record: &Record) -> bool {
        let stamp = record.stamp();
        self.older_than.is_none_or(|least| stamp < least)
            && self.newer_than.is_none_or(|least| stamp >= least)
    }

    fn prefix(&self) -> Result<Vec<u8>> {
        let Some(prefix) = &self.prefix else {
            return Ok(Vec::new());
        };
        match parse_key(prefix, self.escaped)? {
            PrintedKey::Key(prefix) => Ok(prefix),
            PrintedKey::Id(id) => Err(Failure::usage(format!(
                "--prefix: found \\#{id}, expected the first bytes of keys"
            ))
            .with_note(format!("--from-id {id} starts at that document"))),
        }
    }
}

pub(crate) fn list(context: &Context, arguments: &ListArguments) -> Result<Outcome> {
    let prefix = arguments.prefix()?;
    let snapshot = open_to_read(context, &arguments.store)?.snapshot()?;
    let mut columns = vec![Column::new("key"), Column::new("stamp")];
    let payloads = arguments
        .payloads
        .then(|| Column::list("payload_hex payload"));
    columns.extend(payloads.into_iter().flatten());
    let mut results = Results::new(arguments.format.layout(), columns)?;
    // Ids begin at 0.
    let first_id = DocumentId::new(arguments.from_id.unwrap_or(0));
    let records = snapshot.iter().from_id(first_id).key_prefix(prefix);
    let mut listed = 0;
    for record in records {
        context.interrupt.check()?;
        let record = record?;
        if arguments.limit == Some(listed) {
            break;
        }
        if arguments.wants(&record) {
            listed += 1;
            // The last two have columns only if they were requested.
            results.row(&[
                Value::Document {
                    id: record.id().get(),
                    key: record.key(),
                },
                Value::Stamp(record.stamp()),
                Value::Bytes(record.payload()),
                Value::OptionalText(std::str::from_utf8(record.payload()).ok()),
            ])?;
        }
    }
    results.finish()?;
    Ok(Outcome::Done)
}
