//! Estimates of what a long join will take, and messages about its results.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use resemblance::report::JoinEstimate;
use resemblance::search::{Certainty, LeftOut, SuspiciousCluster};
use resemblance::{Bounds, Clusters, Join, MissedPairs, Schema};

use super::context::Context;
use crate::failure::Result;
use crate::options::JoinLimits;
use crate::output::{Counted, ProgressDisplay, escape};

/// Shorter work is not announced.
const MIN_SECONDS: f64 = 5.0;

/// The approximate size of a pair in a temporary file, its keys included.
const PAIR_BYTES: u64 = 100;

/// The memory that a document takes while clusters are found.
const MEMBER_BYTES: u64 = 8;

/// The kind of result that a join produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinProduct {
    /// Sorted pairs.
    Pairs,
    /// Clusters, for a sorted list of their members.
    SortedClusters,
    /// Clusters alone.
    Clusters,
}

/// The progress of a join: the pairs that were found, and the expected duration.
#[derive(Clone, Debug, Default)]
pub(crate) struct JoinProgress {
    found: Arc<AtomicU64>,
    lanes_read: Arc<AtomicU64>,
    lanes: Arc<AtomicU64>,
    /// 0 if nothing is known.
    expected: Duration,
}

impl JoinProgress {
    /// Counts a pair, and notes how many lanes were read of how many.
    pub(crate) fn add_pair(&self, (lanes_read, lanes): (usize, usize)) {
        self.found.fetch_add(1, Ordering::Relaxed);
        self.note_lanes(lanes_read as u64, lanes as u64);
    }

    /// Returns a search for clusters that notes here how many lanes it has read of how many.
    pub(crate) fn follow<'j>(&self, join: Join<'j, Clusters>) -> Join<'j, Clusters> {
        let noted = self.clone();
        join.on_progress(move |progress| {
            if let Some(lanes) = progress.total {
                noted.note_lanes(progress.done, lanes);
            }
            ControlFlow::Continue(())
        })
    }

    fn note_lanes(&self, lanes_read: u64, lanes: u64) {
        self.lanes_read.store(lanes_read, Ordering::Relaxed);
        self.lanes.store(lanes, Ordering::Relaxed);
    }

    /// A bar for this join.
    pub(crate) fn display(&self, what: &'static str, quiet: bool) -> ProgressDisplay {
        let progress = self.clone();
        ProgressDisplay::with_text(what, quiet, move |elapsed| progress.text(elapsed))
    }

    fn text(&self, elapsed: Duration) -> String {
        let mut parts = Vec::new();
        let found = self.found.load(Ordering::Relaxed);
        if found > 0 {
            let per_second = found as f64 / elapsed.as_secs_f64().max(0.001);
            let found = Counted(found, "pair");
            parts.push(format!("{found}, {per_second:.0} a second"));
        }
        let lanes = self.lanes.load(Ordering::Relaxed);
        let lanes_read = self.lanes_read.load(Ordering::Relaxed);
        if lanes > 0 {
            let lanes = Counted(lanes, "lane");
            parts.push(format!("{lanes_read} of {lanes}"));
        }
        parts.push(format!("{} s", elapsed.as_secs()));
        if let Some(left) = self.left(elapsed, lanes_read, lanes) {
            parts.push(format!("about {} left", duration(left.as_secs_f64())));
        }
        parts.join(", ")
    }

    /// Returns the remaining time, by the lanes once some were read, else by the estimate.
    fn left(&self, elapsed: Duration, lanes_read: u64, lanes: u64) -> Option<Duration> {
        if lanes_read > 0 {
            let left = lanes.saturating_sub(lanes_read) as f64 / lanes_read as f64;
            return Some(elapsed.mul_f64(left));
        }
        self.expected.checked_sub(elapsed)
    }
}

/// Prints how long a join is expected to take, and why, if it is long.
fn announce_join<A>(
    context: &Context,
    join: &Join<'_, A>,
    product: JoinProduct,
    limits: JoinLimits,
) -> Result<JoinProgress> {
    if context.messages.quiet {
        return Ok(JoinProgress::default());
    }
    let expected = bounded(join.estimate()?, limits);
    let rows = match product {
        JoinProduct::Pairs => expected.pairs,
        // A document that is in a cluster is in one pair at least.
        JoinProduct::SortedClusters => expected.documents.min(2 * expected.pairs),
        JoinProduct::Clusters => 0,
    };
    let row_bytes = rows.saturating_mul(PAIR_BYTES);
    let held_bytes = row_bytes.min(context.results_bytes());
    let members_bytes = match product {
        JoinProduct::Pairs => 0,
        _ => MEMBER_BYTES * expected.documents,
    };
    // Rows that fit into memory are not written. Merging runs needs the space of some of them a
    // second time.
    let temporary_bytes = match row_bytes.checked_sub(context.results_bytes()) {
        None => 0,
        Some(_) => row_bytes.saturating_mul(2),
    };
    let memory_bytes = expected.memory_bytes + members_bytes + held_bytes;
    if let Some(message) = message(expected.seconds, memory_bytes, temporary_bytes) {
        context.note(message);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = context.threads.min(cores).max(1);
    let seconds = expected.seconds / threads as f64;
    context.detail(format_args!(
        "{} to join, about {}",
        Counted(expected.documents, "document"),
        Counted(expected.pairs, "pair")
    ));
    Ok(JoinProgress {
        // Not shown if it is longer than a duration can be.
        expected: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO),
        ..JoinProgress::default()
    })
}

/// The estimate, which knows no limits, within what a limit on buckets lets through: each posting is compared with
/// the first documents of its bucket at most.
fn bounded(mut expected: JoinEstimate, limits: JoinLimits) -> JoinEstimate {
    let Some(first) = limits.max_bucket else {
        return expected;
    };
    let most = expected.postings.saturating_mul(first.get().into());
    if expected.comparisons > most {
        let share = most as f64 / expected.comparisons as f64;
        expected.seconds *= share;
        expected.comparisons = most;
    }
    expected.pairs = expected.pairs.min(most);
    expected
}

/// The sentence, if there is reason for one.
fn message(seconds: f64, memory_bytes: u64, temporary_bytes: u64) -> Option<String> {
    (seconds >= MIN_SECONDS).then(|| {
        format!(
            "estimated from a sample: about {} on one core, {} of memory besides the cache, {} of \
             temporary files",
            duration(seconds),
            size(memory_bytes),
            size(temporary_bytes)
        )
    })
}

fn duration(seconds: f64) -> String {
    if seconds < 100.0 {
        format!("{seconds:.0} seconds")
    } else if seconds < 6_000.0 {
        format!("{:.0} minutes", seconds / 60.0)
    } else {
        format!("{:.0} hours", seconds / 3_600.0)
    }
}

fn size(bytes: u64) -> String {
    let mebibytes = bytes.div_ceil(1 << 20);
    if mebibytes < 10_240 {
        format!("{mebibytes} MiB")
    } else {
        format!("{} GiB", mebibytes.div_ceil(1 << 10))
    }
}

/// Prints how much was not compared because of `--max-bucket`.
pub(crate) fn print_left_out(context: &Context, left_out: LeftOut) {
    if !left_out.is_empty() {
        let LeftOut {
            buckets,
            documents,
            pairs,
            ..
        } = left_out;
        context.note(format!(
            "warning: --max-bucket left out comparisons in {}; compared with the first documents only: {}; not \
             compared: {}",
            Counted(buckets, "bucket"),
            Counted(documents, "document"),
            Counted(pairs, "pair")
        ));
    }
}

/// Returns the pairs that a run with these bounds is expected to miss, before any is found. Returns
/// `None` if nothing is missed for want of a shared band.
pub(crate) fn missed_pairs(schema: &Schema, bounds: Bounds, is_exact: bool) -> Option<MissedPairs> {
    let certainty = bounds.certainty(schema, is_exact).ok()?;
    let minhash = schema
        .minhash()
        .filter(|_| certainty.about() != Some("signature"))?;
    let bound = bounds.min_similarity.unwrap_or(minhash.threshold());
    Some(MissedPairs::new(minhash, bound, is_exact))
}

/// Prints how sure a run is that it finds a pair or a document, and how many it is expected to have
/// missed, if that was counted.
pub(crate) fn print_certainty(
    context: &Context,
    subject: &str,
    certainty: Certainty,
    missed: Option<&MissedPairs>,
) {
    let mut message = format!("{subject} {certainty}");
    if let Some(missed) = missed.filter(|_| certainty != Certainty::Uncertified) {
        let (least, most) = missed.interval();
        // A run that hardly misses any says nothing about them.
        if most >= 1.0 {
            let (expected, least, most) = (missed.expected(), least.floor(), most.ceil());
            message += &format!("; about {expected:.1} were missed, probably {least} to {most}");
        }
    }
    context.note(message);
}

/// Warns of a cluster that is too large to be believed; `key` is its first member's.
pub(crate) fn print_suspicious(context: &Context, cluster: &SuspiciousCluster, key: Option<&[u8]>) {
    let first = match key {
        Some(key) => escape::key(key),
        None => escape::without_key(cluster.first.get()).into(),
    };
    context.note(format!(
        "warning: the cluster of {first} has {} documents, {:.0} % of all: more than {:.0} % is \
         suspicious; look at some of them, or try a higher threshold",
        cluster.documents,
        cluster.share * 100.0,
        Clusters::SUSPICIOUS_SHARE * 100.0
    ));
}

/// Gives a join its bounds, the tool's threads and memory, and the limits that were given.
pub(crate) fn limited<'j, A>(
    context: &Context,
    join: Join<'j, A>,
    bounds: Bounds,
    limits: JoinLimits,
) -> Join<'j, A> {
    let bounded = join
        .bounds(bounds)
        .threads(context.threads)
        .memory_bytes(context.corpus_bytes());
    match limits.max_bucket {
        Some(documents) => bounded.max_bucket(documents.get() as usize),
        None => bounded,
    }
}

/// Limits a join, and prints how long it is expected to take, and why, if it is long.
pub(crate) fn prepare_join<'j, A>(
    context: &Context,
    join: Join<'j, A>,
    bounds: Bounds,
    limits: JoinLimits,
    product: JoinProduct,
) -> Result<(Join<'j, A>, JoinProgress)> {
    let prepared = limited(context, join, bounds, limits);
    let joining = announce_join(context, &prepared, product, limits)?;
    Ok((prepared, joining))
}

#[cfg(test)]
mod tests {
    use resemblance::{MinHash, Schema, Store, Text};

    use super::*;

    #[test]
    fn join_progress_shows_pairs_found_and_work_left() {
        let progress = JoinProgress {
            expected: Duration::from_secs(40),
            ..JoinProgress::default()
        };
        let at = |seconds| progress.text(Duration::from_secs(seconds));
        assert_eq!(at(10), "10 s, about 30 seconds left");
        (0..50).for_each(|_| progress.add_pair((0, 13)));
        assert_eq!(at(50), "50 pairs, 1 a second, 0 of 13 lanes, 50 s");
        progress.add_pair((5, 13));
        let text = "51 pairs, 1 a second, 5 of 13 lanes, 50 s, about 80 seconds left";
        assert_eq!(at(50), text);
        let unknown = JoinProgress::default().text(Duration::from_secs(2));
        assert_eq!(unknown, "2 s");
    }

    #[test]
    fn cluster_progress_shows_its_share() {
        let folder = tempfile::tempdir().unwrap();
        let minhash = MinHash::new(128).threshold(0.8);
        let schema = Schema::builder()
            .text(Text::words(2))
            .minhash(minhash)
            .build()
            .unwrap();
        let store = Store::create(folder.path().join("a.rsm"), schema).unwrap();
        let progress = JoinProgress::default();
        let join = progress.follow(store.snapshot().unwrap().clusters());
        assert_eq!(join.run().unwrap().count(), 0);
        let text = progress.text(Duration::from_secs(2));
        assert_eq!(text, "13 of 13 lanes, 2 s, about 0 seconds left");
    }

    #[test]
    fn max_bucket_bounds_the_expected_comparisons() {
        let mut expected = JoinEstimate::default();
        expected.documents = 500_000;
        expected.postings = 6_500_000;
        expected.comparisons = 1_600_000_000_000;
        expected.pairs = 2_000_000_000_000;
        expected.seconds = 1e6;
        let limited = |max_bucket| bounded(expected, JoinLimits { max_bucket });
        assert_eq!(limited(None), expected);
        let ten = limited(std::num::NonZeroU32::new(10));
        assert_eq!((ten.pairs, ten.comparisons), (65_000_000, 65_000_000));
        assert!(ten.seconds < 100.0, "{ten:?}");
    }

    #[test]
    fn only_long_joins_are_announced() {
        assert_eq!(message(4.9, 1 << 40, 1 << 40), None);
        let text = message(5.0, 300 << 20, 0).unwrap();
        let expected = "estimated from a sample: about 5 seconds on one core, 300 MiB of memory besides the \
                        cache, 0 MiB of temporary files";
        assert_eq!(text, expected);
        let text = message(7_200.0, 1, 20 << 30).unwrap();
        assert!(text.contains("about 2 hours"), "{text}");
        assert!(text.contains("1 MiB of memory"), "{text}");
        assert!(text.contains("20 GiB of temporary files"), "{text}");
        assert_eq!(duration(600.0), "10 minutes");
    }
}
