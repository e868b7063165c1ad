//! The verb `cluster`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use resemblance::invariant::OrBug;
use resemblance::{ClusterId, Snapshot};

use crate::failure::{Failure, Outcome, Result};
use crate::options::{FormatOptions, parse_key};
use crate::output::{Column, ColumnKind, Results, Value, escape};
use crate::session::{Context, find_document, open_to_read};

/// Show a cluster that a store keeps
///
/// The store must have been made with --clusters. A document without a near-duplicate is in no cluster. With a key or
/// --id, the columns are cluster and key, one line for each member in the order of insertion; jsonl also has id. With
/// --largest, they are cluster and documents.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("which").required(true),
    after_help = "\
Examples:
  resemblance cluster news.rsm https://example.org/story
  resemblance cluster news.rsm --id 4711 --format jsonl
  resemblance cluster news.rsm --largest 20"
)]
pub(crate) struct ClusterArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// The key of a document, whose cluster is shown; after -- if it begins with -
    #[arg(group = "which")]
    key: Option<OsString>,
    /// Show the cluster with this id. An id that was united with another shows the cluster that it has become
    #[arg(long, value_name = "ID", group = "which")]
    id: Option<u64>,
    /// List the N largest clusters
    #[arg(long, value_name = "N", group = "which")]
    largest: Option<usize>,
    /// The key is given as results print it, with escapes, or as \#ID
    #[arg(short, long, conflicts_with_all = ["id", "largest"])]
    escaped: bool,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn cluster(context: &Context, arguments: &ClusterArguments) -> Result<Outcome> {
    let snapshot = open_to_read(context, &arguments.store)?.snapshot()?;
    if snapshot.schema().clusters().is_none() {
        let message = format!("{} keeps no clusters", arguments.store.display());
        let advice = "create a store with --clusters, and import an export of this one into it";
        return Err(Failure::usage(message).with_note(advice));
    }
    if let Some(count) = arguments.largest {
        return list_largest(&snapshot, count, &arguments.format);
    }
    let cluster = match (&arguments.key, arguments.id) {
        (Some(key), _) => {
            let key = parse_key(key, arguments.escaped)?;
            let Some(record) = find_document(&snapshot, &key)? else {
                let key = escape::printed(&key);
                context.note(format!("no document has the key {key}"));
                return Ok(Outcome::Nothing);
            };
            snapshot.cluster_of_id(record.id())?
        }
        (None, id) => id.map(ClusterId::new),
    };
    let members = match cluster {
        Some(id) => snapshot.members(id)?,
        None => Vec::new(),
    };
    let columns = vec![
        Column::of("cluster", ColumnKind::Count),
        Column::of("key", ColumnKind::Document),
    ];
    let mut results = Results::new(arguments.format.layout(), columns)?;
    // A former id leads to the same members as the present one.
    let now = match members.first() {
        Some(first) => snapshot.cluster_of_id(*first)?,
        None => None,
    };
    for member in &members {
        context.interrupt.check()?;
        let id = now.or_bug("a member of a cluster that is in none")?;
        results.row(&[
            Value::Stamp(id.get()),
            Value::Document {
                id: member.get(),
                key: snapshot.key(*member)?.as_deref(),
            },
        ])?;
    }
    results.finish()?;
    if members.is_empty() {
        context.note(match cluster {
            Some(id) => format!("no document is in cluster {id}"),
            None => "the document is in no cluster".into(),
        });
    }
    Ok(Outcome::found(!members.is_empty()))
}

fn list_largest(snapshot: &Snapshot, count: usize, format: &FormatOptions) -> Result<Outcome> {
    let columns = vec![
        Column::of("cluster", ColumnKind::Count),
        Column::of("documents", ColumnKind::Count),
    ];
    let mut results = Results::new(format.layout(), columns)?;
    let largest = snapshot.largest_clusters(count)?;
    for (id, documents) in &largest {
        results.row(&[Value::Stamp(id.get()), Value::Count(*documents)])?;
    }
    results.finish()?;
    Ok(Outcome::found(!largest.is_empty()))
}
