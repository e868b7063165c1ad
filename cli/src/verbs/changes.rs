//! The verb `changes`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use resemblance::{ClusterEvent, ClusterId, Snapshot, Store};

use crate::failure::{FailureKind, Outcome, Result};
use crate::options::{FormatOptions, parse_seconds};
use crate::output::{Column, ColumnKind, Format, Layout, Results, Value};
use crate::session::{Context, INTERRUPT, open_with_clusters};

/// List how the clusters of a store have changed
///
/// The store must have been made with --clusters. One line for each change, in the order in which they were made: the
/// position after it, the number of its commit, the cluster, and what happened to it: joined or left (by the document
/// with that key, or #ID if the document is gone), united (all its members are now in the cluster other), split (the
/// cluster is new, of documents from the cluster other, which join it next), or ended (the last member was removed).
///
/// Continue with --since and the last position. A store keeps the last 1,048,576 changes at least. If some since that
/// position are gone, begin with --all.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance changes news.rsm --since 1730 --format jsonl
  resemblance changes news.rsm --all --follow")]
pub(crate) struct ChangesArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// Begin after this position, which is 0 before the first change
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    since: u64,
    /// Begin with all clusters as they are, as documents that join them
    #[arg(long, conflicts_with_all = ["since", "limit"])]
    all: bool,
    /// At most N changes
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Look for further changes every SECONDS (by default 1) until interrupted, and print tsv instead of a table
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, value_parser = parse_seconds)]
    #[arg(default_missing_value = "1")]
    follow: Option<Duration>,
    #[command(flatten)]
    format: FormatOptions,
}

/// Prints changes up to a number.
struct Printer<'c> {
    context: &'c Context,
    results: Results,
    left: usize,
}

pub(crate) fn changes(context: &Context, arguments: &ChangesArguments) -> Result<Outcome> {
    let store = open_with_clusters(context, &arguments.store)?;
    let layout = match arguments.format.layout() {
        layout if layout.is_table() && arguments.follow.is_some() => {
            Layout::new(Some(Format::Tsv), true)
        }
        layout => layout,
    };
    let count = |name| Column::of(name, ColumnKind::Count);
    let mut columns = vec![count("position"), count("commit"), count("cluster")];
    columns.extend([Column::new("change"), count("other")]);
    columns.push(Column::of("key", ColumnKind::Document));
    let mut printer = Printer {
        context,
        results: Results::new(layout, columns)?,
        left: arguments.limit.unwrap_or(usize::MAX),
    };
    let snapshot = store.snapshot()?;
    let mut position = match arguments.all {
        true => printer.all(&snapshot)?,
        false => arguments.since,
    };
    position = printer.since(&snapshot, position)?;
    drop(snapshot);
    if let Some(interval) = arguments.follow {
        printer.follow(&store, position, interval)?;
    }
    printer.results.finish()?;
    Ok(Outcome::Done)
}

impl Printer<'_> {
    /// Prints the members of all clusters, and returns the position of the snapshot.
    fn all(&mut self, snapshot: &Snapshot) -> Result<u64> {
        let position = snapshot.cluster_position()?;
        let mut clusters = snapshot.largest_clusters(usize::MAX)?;
        clusters.sort_unstable();
        for (cluster, _) in clusters {
            for document in snapshot.members(cluster)? {
                let event = ClusterEvent::Joined { document };
                self.print(snapshot, position, snapshot.commits(), cluster, event)?;
            }
        }
        Ok(position)
    }

    /// Prints the changes since a position, and returns the position after them.
    fn since(&mut self, snapshot: &Snapshot, position: u64) -> Result<u64> {
        let mut changes = snapshot.cluster_changes(position)?;
        while self.left > 0
            && let Some(change) = changes.next().transpose()?
        {
            let (position, commit) = (change.position, change.commit);
            self.print(snapshot, position, commit, change.cluster, change.event)?;
            self.left -= 1;
        }
        Ok(changes.position())
    }

    /// Prints further changes in each interval until an interrupt, which is the usual end.
    fn follow(&mut self, store: &Store, mut position: u64, interval: Duration) -> Result<()> {
        while self.left > 0 {
            self.results.pass_on()?;
            match self
                .context
                .interrupt
                .sleep_until(Instant::now() + interval)
            {
                Err(failure) if failure.kind == FailureKind::Signal(INTERRUPT) => break,
                slept => slept?,
            }
            position = self.since(&store.snapshot()?, position)?;
        }
        Ok(())
    }

    fn print(
        &mut self,
        snapshot: &Snapshot,
        position: u64,
        commit: u64,
        cluster: ClusterId,
        event: ClusterEvent,
    ) -> Result<()> {
        self.context.interrupt.check()?;
        let (change, other, document) = match event {
            ClusterEvent::Joined { document } => ("joined", None, Some(document)),
            ClusterEvent::Left { document } => ("left", None, Some(document)),
            ClusterEvent::United { into } => ("united", Some(into), None),
            ClusterEvent::SplitFrom { from } => ("split", Some(from), None),
            ClusterEvent::Ended => ("ended", None, None),
            _ => ("other", None, None),
        };
        let key = document.map_or(Ok(None), |id| snapshot.key(id))?;
        self.results.row(&[
            Value::Stamp(position),
            Value::Stamp(commit),
            Value::Stamp(cluster.get()),
            Value::Text(change),
            Value::Position(other.and_then(|id| usize::try_from(id.get()).ok())),
            match document {
                None => Value::OptionalText(None),
                Some(id) => Value::document(id, key.as_deref()),
            },
        ])
    }
}
