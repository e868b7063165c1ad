//! The verb `cluster`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use resemblance::invariant::OrBug;
use resemblance::{ClusterId, DocumentId, Pair, Snapshot};
use resemblance_corpus::RepresentativeRule;

use crate::failure::{Outcome, Result};
use crate::options::{FormatOptions, parse_age, parse_key, similarity_name};
use crate::output::{Column, ColumnKind, Results, Value, escape, nearness_columns};
use crate::session::{Context, find_document, open_with_clusters};

/// Show a cluster that a store keeps
///
/// The store must have been made with --clusters. A document without a near-duplicate is in no cluster. With a key or
/// --id, the columns are cluster and key, one line for each member in the order of insertion; jsonl also has id. With
/// --edges and --why they are key_a, key_b, similarity (similarity_estimate unless the store is exact) and distance. With --largest they are cluster
/// and documents, and with --newer-than also new_documents and latest, the latest stamp; --representative adds key.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("which").required(true),
    after_help = "\
Examples:
  resemblance cluster news.rsm https://example.org/story
  resemblance cluster news.rsm https://example.org/story --why https://example.net/report
  resemblance cluster news.rsm --id 4711 --format jsonl
  resemblance cluster news.rsm --largest 20
  resemblance cluster news.rsm --newer-than 1d --representative quality:max"
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
    /// List the clusters with a document whose stamp is at least this age such as 14d, stamp, or time such as
    /// 2026-01-31T08:00:00Z, the one with the latest stamp first. Reads the rows of all documents
    #[arg(long, value_name = "AGE|STAMP", group = "which", value_parser = parse_age)]
    newer_than: Option<u64>,
    /// Show only the member that represents each cluster: the first inserted, the one with the latest stamp, the
    /// longest (with the most features, in an exact store or one with shared passages), the medoid (nearest to the
    /// others; of a large cluster 64 members are compared), or the one with the greatest or least number in a field of
    /// its payload, such as quality:max or price:min. Payloads must then be JSON objects; members without that number
    /// come last. Among equals the earlier one is shown
    #[arg(long, value_name = "RULE", conflicts_with_all = ["why", "edges"])]
    representative: Option<RepresentativeRule>,
    /// Show why the document and the one with this key are in one cluster: the near pairs that lead from one to the
    /// other
    #[arg(long, value_name = "KEY", requires = "key")]
    why: Option<OsString>,
    /// Show the near pairs that keep the cluster together, one fewer than it has members
    #[arg(long, conflicts_with_all = ["largest", "newer_than", "why"])]
    edges: bool,
    /// Keys are given as results print them, with escapes, or as \#ID
    #[arg(short, long, conflicts_with_all = ["id", "largest", "newer_than"])]
    escaped: bool,
    #[command(flatten)]
    format: FormatOptions,
}

pub(crate) fn cluster(context: &Context, arguments: &ClusterArguments) -> Result<Outcome> {
    let snapshot = open_with_clusters(context, &arguments.store)?.snapshot()?;
    if arguments.largest.is_some() || arguments.newer_than.is_some() {
        return list_clusters(&snapshot, arguments);
    }
    let find = |key: &OsStr| -> Result<Option<DocumentId>> {
        let key = parse_key(key, arguments.escaped)?;
        let found = find_document(&snapshot, &key)?.map(|record| record.id());
        if found.is_none() {
            let key = escape::printed(&key);
            context.note(format!("no document has the key {key}"));
        }
        Ok(found)
    };
    let cluster = match (&arguments.key, arguments.id) {
        (Some(key), _) => {
            let Some(document) = find(key)? else {
                return Ok(Outcome::Nothing);
            };
            if let Some(other) = &arguments.why {
                let Some(other) = find(other)? else {
                    return Ok(Outcome::Nothing);
                };
                return show_path(context, &snapshot, document, other, &arguments.format);
            }
            snapshot.cluster_of_id(document)?
        }
        (None, id) => id.map(ClusterId::new),
    };
    if let Some(cluster) = cluster.filter(|_| arguments.edges) {
        return show_edges(
            &snapshot,
            snapshot.cluster_edges(cluster)?,
            &arguments.format,
        );
    }
    let members = match (cluster, &arguments.representative) {
        (Some(id), Some(rule)) => rule.find(&snapshot, id)?.into_iter().collect(),
        (Some(id), None) => snapshot.members(id)?,
        (None, _) => Vec::new(),
    };
    list_members(context, &snapshot, &members, &arguments.format)?;
    if members.is_empty() {
        context.note(match cluster {
            Some(id) => format!("no document is in cluster {id}"),
            None => "the document is in no cluster".into(),
        });
    }
    Ok(Outcome::found(!members.is_empty()))
}

/// Lists members of one cluster.
fn list_members(
    context: &Context,
    snapshot: &Snapshot,
    members: &[DocumentId],
    format: &FormatOptions,
) -> Result<()> {
    let columns = vec![
        Column::of("cluster", ColumnKind::Count),
        Column::of("key", ColumnKind::Document),
    ];
    let mut results = Results::new(format.layout(), columns)?;
    // A former id leads to the same members as the present one.
    let now = match members.first() {
        Some(first) => snapshot.cluster_of_id(*first)?,
        None => None,
    };
    for member in members {
        context.interrupt.check()?;
        let id = now.or_bug("a member of a cluster that is in none")?;
        results.row(&[
            Value::Stamp(id.get()),
            Value::document(*member, snapshot.key(*member)?.as_deref()),
        ])?;
    }
    results.finish()
}

/// Lists pairs as they are kept.
fn show_edges(snapshot: &Snapshot, edges: Vec<Pair>, format: &FormatOptions) -> Result<Outcome> {
    let name = similarity_name(snapshot.schema().is_exact());
    let [similarity, distance] = nearness_columns(snapshot.schema(), name);
    let key = |name| Column::of(name, ColumnKind::Document);
    let columns = vec![key("key_a"), key("key_b"), similarity, distance];
    let mut results = Results::new(format.layout(), columns)?;
    let are_found = !edges.is_empty();
    for edge in edges {
        let (key_a, key_b) = (snapshot.key(edge.a)?, snapshot.key(edge.b)?);
        results.row(&[
            Value::document(edge.a, key_a.as_deref()),
            Value::document(edge.b, key_b.as_deref()),
            Value::Similarity(edge.similarity),
            Value::Distance(edge.distance),
        ])?;
    }
    results.finish()?;
    Ok(Outcome::found(are_found))
}

/// Lists the pairs that lead from one document to another, in this direction.
fn show_path(
    context: &Context,
    snapshot: &Snapshot,
    from: DocumentId,
    to: DocumentId,
    format: &FormatOptions,
) -> Result<Outcome> {
    let Some(mut path) = snapshot.cluster_path(from, to)? else {
        context.note("the documents are not in one cluster");
        return Ok(Outcome::Nothing);
    };
    let mut at = from;
    for edge in &mut path {
        if edge.a != at {
            std::mem::swap(&mut edge.a, &mut edge.b);
        }
        at = edge.b;
    }
    show_edges(snapshot, path, format)
}

/// Lists clusters with some numbers about each, and the documents that represent them if that is wanted.
fn list_clusters(snapshot: &Snapshot, arguments: &ClusterArguments) -> Result<Outcome> {
    let (names, rows): (&[_], Vec<_>) = if let Some(stamp) = arguments.newer_than {
        let grown = snapshot.clusters_since(stamp, usize::MAX)?.into_iter();
        let rows = grown.map(|it| {
            let [documents, new_documents] = [it.documents, it.new_documents].map(Value::Count);
            let numbers = vec![documents, new_documents, Value::Stamp(it.latest)];
            (it.cluster, numbers)
        });
        (&["documents", "new_documents", "latest"], rows.collect())
    } else {
        let count = arguments.largest.unwrap_or(0);
        let largest = snapshot.largest_clusters(count)?.into_iter();
        let rows = largest.map(|(cluster, documents)| (cluster, vec![Value::Count(documents)]));
        (&["documents"], rows.collect())
    };
    let mut columns = vec![Column::of("cluster", ColumnKind::Count)];
    columns.extend(names.iter().map(|name| Column::of(name, ColumnKind::Count)));
    let key = arguments
        .representative
        .as_ref()
        .map(|_| Column::of("key", ColumnKind::Document));
    columns.extend(key);
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let are_found = !rows.is_empty();
    for (cluster, numbers) in rows {
        let mut row = vec![Value::Stamp(cluster.get())];
        row.extend(numbers);
        let found = match &arguments.representative {
            Some(rule) => rule.find(snapshot, cluster)?,
            None => None,
        };
        let key = found.map_or(Ok(None), |id| snapshot.key(id))?;
        row.extend(found.map(|id| Value::document(id, key.as_deref())));
        results.row(&row)?;
    }
    results.finish()?;
    Ok(Outcome::found(are_found))
}
