//! The verb `clusters`.

use std::path::PathBuf;

use clap::Args;
use resemblance::Clusters;
use resemblance::search::{Certainty, LeftOut, SuspiciousCluster};
use resemblance_corpus::is_store;
use resemblance_corpus::verification::verify_exact;

use crate::failure::{Outcome, Result};
use crate::options::{FilterOptions, FormatOptions, JoinOptions, ReadOptions};
use crate::output::{Column, ColumnKind, Counted, PairSorter, Results, SortedPairs, UnsortedPair};
use crate::session::{
    Context, JoinProduct, Subject, prepare_join, print_certainty, print_left_out, print_suspicious,
};
use resemblance::invariant::bug;

/// List the clusters of near-duplicates of a store or a corpus
///
/// --prefix, --older-than and --newer-than choose the documents of a store that take part; the others link nothing.
///
/// A cluster is a connected component of the near-duplicate pairs. tsv columns: cluster_key, key. cluster_key is the
/// key of the first member in the order of insertion or of the corpus, which is listed as a member too. Documents
/// without a near-duplicate are omitted. Lines are sorted by both columns. jsonl fields: cluster_id, cluster_key, id,
/// key.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance clusters seen.rsm
  resemblance clusters corpus.jsonl --verify exact
  resemblance clusters corpus.jsonl.zst --threshold 0.9 --format jsonl")]
pub(crate) struct ClustersArguments {
    /// One store (recognized by its content), or JSON Lines files, tables, folders or - (see resemblance --help)
    #[arg(required = true, value_name = "STORE|CORPUS")]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    join: JoinOptions,
    #[command(flatten)]
    filter: FilterOptions,
    #[command(flatten)]
    reading: ReadOptions,
    #[command(flatten)]
    format: FormatOptions<true>,
}

struct FoundClusters {
    rows: SortedPairs,
    clusters: u64,
    members: u64,
    left_out: LeftOut,
    suspicious: Vec<SuspiciousCluster>,
    certainty: Certainty,
}

impl ClustersArguments {
    /// An error if the values of options contradict each other, whatever the corpus is.
    pub(crate) fn must_agree(&self) -> Result<()> {
        match self.inputs.iter().any(|input| is_store(input)) {
            true => Ok(()),
            false => self.join.must_agree(),
        }
    }
}

pub(crate) fn clusters(context: &Context, arguments: &ClustersArguments) -> Result<Outcome> {
    let subject = Subject::open(
        context,
        &arguments.inputs,
        &arguments.join,
        &arguments.filter,
        &arguments.reading,
    )?;
    let (documents, features) = (&subject.documents, subject.features.clone());
    let (clusters, limits) = (documents.clusters(), arguments.join.limits);
    let product = JoinProduct::SortedClusters;
    let passing = match subject.filter.clone() {
        Some(filter) => clusters.filter(filter),
        None => clusters,
    };
    let (join, joining) = prepare_join(context, passing, subject.bounds, limits, product)?;
    let followed = joining.follow(join);
    let sorter = documents.pair_sorter(context);
    let mut progress = joining.display("finding clusters", context.messages.quiet);
    let found = context.interrupt.while_working(&mut progress, move || {
        sort(verify_exact(followed, features).run()?, sorter)
    })?;

    let columns = vec![
        Column::of("cluster_key", ColumnKind::Document),
        Column::of("key", ColumnKind::Document),
    ];
    let mut results = Results::new(arguments.format.layout(), columns)?;
    for row in found.rows {
        let row = row?;
        context.interrupt.check()?;
        results.row(&[row.a.value(), row.b.value()])?;
    }
    results.finish()?;
    print_left_out(context, found.left_out);
    print_certainty(context, "a pair", found.certainty, None);
    for cluster in &found.suspicious {
        let key = subject.documents.key(cluster.first)?;
        print_suspicious(context, cluster, key.as_deref());
    }
    let clusters = found.clusters;
    context.note(format!(
        "{}, {} in {}",
        Counted(clusters, "cluster"),
        Counted(found.members, "document"),
        if clusters == 1 { "it" } else { "them" }
    ));
    Ok(Outcome::found(clusters > 0))
}

fn sort(mut found: Clusters, mut sorter: PairSorter) -> Result<FoundClusters> {
    let (mut clusters, mut members) = (0, 0);
    for cluster in found.by_ref() {
        let first = *cluster
            .first()
            .ok_or_else(|| bug("a cluster without members"))?;
        clusters += 1;
        for member in cluster {
            members += 1;
            sorter.push(UnsortedPair {
                a: first,
                b: member,
                similarity: None,
                distance: None,
            })?;
        }
    }
    Ok(FoundClusters {
        rows: sorter.finish()?,
        clusters,
        members,
        left_out: found.left_out(),
        suspicious: found.suspicious().to_vec(),
        certainty: found.certainty(),
    })
}
