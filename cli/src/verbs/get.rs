//! The verb `get`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use resemblance::Snapshot;
use resemblance::invariant::OrBug;

use crate::failure::{Outcome, Result};
use crate::options::{FormatOptions, parse_key};
use crate::output::{Column, Results, Value, escape};
use crate::session::{Context, find_document, open_to_read};

/// Show the document that a store has under a key, or a position
///
/// Columns: key, stamp, minhash (comma-separated values, at the width the store keeps; for bottom-k the hashes, 16
/// hexadecimal digits each) or vector (comma-separated numbers as the store keeps them: for the cosine, scaled to length 1),
/// simhash (8 to 64 hexadecimal digits), payload_hex, and payload if it is UTF-8 text; jsonl also has id. --position
/// prints a position alone, with escapes as in keys. Exit status 1 if there is none.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance get seen.rsm https://example.org/
  resemblance get seen.rsm --escaped '\\#17' --format jsonl
  resemblance get seen.rsm --position pages-0")]
pub(crate) struct GetArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// The key as bytes; after -- if it begins with -
    #[arg(required_unless_present = "position")]
    key: Option<OsString>,
    /// Print the position of this name instead of a document
    #[arg(long, value_name = "NAME", conflicts_with_all = ["key", "escaped", "format", "no_header", "header"])]
    position: Option<String>,
    /// The key is given as results print it, with escapes, or as \#ID
    #[arg(short, long)]
    escaped: bool,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn get(context: &Context, arguments: &GetArguments) -> Result<Outcome> {
    let parse = |key| parse_key(key, arguments.escaped);
    let given = arguments.key.as_deref().map(parse).transpose()?;
    let snapshot = open_to_read(context, &arguments.store)?.snapshot()?;
    let Some(key) = given else {
        return print_position(context, arguments, &snapshot);
    };
    let Some(record) = find_document(&snapshot, &key)? else {
        let key = escape::printed(&key);
        context.note(format!("no document has the key {key}"));
        return Ok(Outcome::Nothing);
    };
    let schema = snapshot.schema();
    let has_vectors = schema.vector().is_some();
    let columns = vec![
        Column::new("key"),
        Column::new("stamp"),
        match has_vectors {
            true => Column::new("vector").shown_if(schema.is_exact()),
            false => Column::new("minhash").shown_if(schema.minhash().is_some()),
        },
        Column::new("simhash").shown_if(schema.simhash().is_some()),
        Column::new("payload_hex"),
        Column::new("payload"),
    ];
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let signature = record.signature();
    results.row(&[
        Value::document(record.id(), record.key()),
        Value::Stamp(record.stamp()),
        match signature.bottom_k() {
            Some(hashes) => Value::Hashes(hashes),
            None if has_vectors => Value::Vector(signature.vector()),
            None => Value::Values(signature.minhash()),
        },
        Value::Fingerprint(signature.fingerprint()),
        Value::Bytes(record.payload()),
        Value::OptionalText(std::str::from_utf8(record.payload()).ok()),
    ])?;
    results.finish()?;
    Ok(Outcome::Done)
}

fn print_position(
    context: &Context,
    arguments: &GetArguments,
    snapshot: &Snapshot,
) -> Result<Outcome> {
    let given = arguments.position.as_deref();
    let name = given.or_bug("a position where no key is given")?;
    let Some(position) = snapshot.position(name)? else {
        context.note(format!(
            "the store has no position {name:?}; add --position or a program stores one"
        ));
        return Ok(Outcome::Nothing);
    };
    let layout = arguments.format.layout();
    layout.paragraph(&escape::key(&position))?;
    Ok(Outcome::Done)
}
