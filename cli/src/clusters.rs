//! The verb `clusters`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use resemblance::{Bounds, Clusters, JoinOptions, LeftOut, Snapshot, SuspiciousCluster};

use super::Context;
use super::arguments::{BoundOptions, CorpusOptions, FormatOptions, JoinLimits};
use super::escape;
use super::expect::{self, Product};
use super::failure::{Outcome, Result};
use super::features::Features;
use super::keys::Keys;
use super::pairs::document;
use super::progress::Progress;
use super::results::{Column, Results};
use super::schema::SchemaOptions;
use super::spill::{Row, Sorted, Sorter};
use super::subject::{Subject, SubjectOptions};
use super::verify::VerifyOptions;

/// List the clusters of near-duplicates of a store or a corpus
///
/// A cluster is a connected component of the near-duplicate pairs. tsv columns: cluster_key, key;
/// cluster_key is the member that was inserted first (of a corpus: comes first), which is listed
/// as a member too. Documents without a near-duplicate are left out. Lines are sorted by both.
/// jsonl fields: cluster_id, cluster_key, id, key.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance clusters seen.rsm
  resemblance clusters corpus.jsonl --verify exact
  resemblance clusters corpus.jsonl.zst --threshold 0.9 --format jsonl")]
pub(crate) struct Arguments {
    /// One store (told by its content), or JSON Lines files, folders, - (see resemblance --help)
    #[arg(required = true, value_name = "STORE|CORPUS")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    limits: JoinLimits,
    #[command(flatten)]
    verify: VerifyOptions,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    options: CorpusOptions,
    #[command(flatten)]
    format: FormatOptions,
}

struct Found {
    rows: Sorted,
    clusters: u64,
    members: u64,
    left_out: LeftOut,
    suspicious: Vec<SuspiciousCluster>,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Outcome> {
    let subject = Subject::open(
        context,
        &SubjectOptions {
            inputs: &arguments.inputs,
            corpus: &arguments.options,
            schema: &arguments.schema,
            bounds: &arguments.bounds,
            verify: arguments.verify,
        },
    )?;
    let snapshot = subject.snapshot.clone();
    let (bounds, features) = (subject.bounds, subject.features.clone());
    let join = arguments.limits.options(context);
    expect::announce(context, &snapshot, bounds, Product::SortedClusters)?;
    let (keys, sorter) = Keys::with_sorter(context, &snapshot);
    let mut progress = Progress::new("finding clusters", context.messages.quiet);
    let found = context.interrupt.while_working(&mut progress, move || {
        let clusters = clusters_of(&snapshot, bounds, join, features)?;
        sort(clusters, keys, sorter)
    })?;

    let columns = vec![Column::new("cluster_key"), Column::new("key")];
    let mut results = Results::new(&arguments.format, columns)?;
    for row in found.rows {
        let row = row?;
        context.interrupt.check()?;
        results.row(&[document(&row.a), document(&row.b)])?;
    }
    results.finish()?;
    expect::tell_left_out(context, found.left_out);
    for cluster in &found.suspicious {
        let key = subject.snapshot.key(cluster.first)?;
        tell_suspicious(context, cluster, key.as_deref());
    }
    let (clusters, members) = (found.clusters, found.members);
    context
        .messages
        .note(format!("{clusters} clusters, {members} documents in them"));
    Ok(Outcome::found(clusters > 0))
}

/// Warns of a cluster that is too large to be believed; `key` is its first member's.
pub(crate) fn tell_suspicious(context: &Context, cluster: &SuspiciousCluster, key: Option<&[u8]>) {
    let first = match key {
        Some(key) => escape::key(key),
        None => escape::without_key(cluster.first.get()).into(),
    };
    context.messages.note(format!(
        "warning: the cluster of {first} holds {} documents, {:.0} % of all: more than {:.0} % is \
         suspicious; look at some of them, or try a higher threshold",
        cluster.documents,
        cluster.share * 100.0,
        Clusters::SUSPICIOUS_SHARE * 100.0
    ));
}

/// The clusters of a snapshot, with exact similarities if there are features.
pub(crate) fn clusters_of(
    snapshot: &Snapshot,
    bounds: Bounds,
    join: JoinOptions,
    features: Option<Arc<Features>>,
) -> Result<Clusters> {
    Ok(match features {
        Some(features) => {
            snapshot.clusters_verified(bounds, &join, move |a, b| features.similarity(a, b))?
        }
        None => snapshot.clusters_with(bounds, &join)?,
    })
}

fn sort(mut found: Clusters, mut keys: Keys, mut sorter: Sorter) -> Result<Found> {
    let (mut clusters, mut members) = (0, 0);
    for cluster in found.by_ref() {
        let Some(first) = cluster.first() else {
            continue;
        };
        clusters += 1;
        let first = keys.label(*first)?;
        for member in cluster {
            members += 1;
            sorter.push(Row {
                a: first.clone(),
                b: keys.label(member)?,
                similarity: None,
                distance: None,
            })?;
        }
    }
    Ok(Found {
        rows: sorter.finish()?,
        clusters,
        members,
        left_out: found.left_out(),
        suspicious: found.suspicious().to_vec(),
    })
}
