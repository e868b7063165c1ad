//! The verb `cluster`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use resemblance::{ClusterId, Snapshot};

use crate::failure::{Outcome, Result};
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
    let columns = vec![
        Column::of("cluster", ColumnKind::Count),
        Column::of("key", ColumnKind::Document),
    ];
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let mut now = None;
    for member in cluster.map_or(Ok(Vec::new()), |id| snapshot.members(id))? {
        context.interrupt.check()?;
        // A former id leads to the same members as the present one.
        let id = match now {
            Some(id) => id,
            None => *now.insert(snapshot.cluster_of_id(member)?),
        };
        results.row(&[
            Value::Stamp(id.map_or(0, ClusterId::get)),
            Value::Document {
                id: member.get(),
                key: snapshot.key(member)?.as_deref(),
            },
        ])?;
    }
    results.finish()?;
    if now.is_none() {
        context.note(match cluster {
            Some(id) => format!("no document is in cluster {id}"),
            None => "the document is in no cluster".into(),
        });
    }
    Ok(Outcome::found(now.is_some()))
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
