//! What a store has done since it was opened, as its users get it.

use std::fmt;
use std::time::Duration;

use crate::observe::counters::{Counter, Histogram};
use crate::observe::reads::Reads;

/// How long something took, as often as it was done.
///
/// ```
/// use std::time::Duration;
/// # use resemblance::{MinHash, Schema, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// # store.append(&store.sketcher().hashes([1])?)?;
/// let commits = store.metrics().commit_latencies;
/// assert_eq!(commits.count, 1);
/// assert!(commits.quantile(0.99) <= commits.longest);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latencies {
    /// How many there were: the sum of the buckets.
    pub count: u64,
    /// All together.
    pub total: Duration,
    /// The longest one.
    pub longest: Duration,
    /// How many there were of each length. In the first bucket are those of less than a microsecond,
    /// in bucket i those of 2^(i - 1) to less than 2^i microseconds, in the last, 31, also all that
    /// took longer, 18 minutes and more.
    pub buckets: [u64; 32],
}

impl Latencies {
    /// What the latencies in a bucket are less than; `None` for the last one, which has no end, and
    /// where there is no such bucket.
    #[must_use]
    pub fn bucket_end(bucket: usize) -> Option<Duration> {
        let exponent = u32::try_from(bucket).ok().filter(|i| *i < 31)?;
        Some(Duration::from_micros(1 << exponent))
    }

    /// The mean; `None` if there were none.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        let nanos = self.total.as_nanos().checked_div(self.count.into())?;
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    /// An upper bound of the time within which this share of all was done, 0 to 1: the end of the
    /// bucket that the quantile is in, or the longest if that is less. From a microsecond to 18 minutes
    /// it is at most twice the quantile itself. Zero if there were none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (share * self.count as f64).ceil().max(1.0);
        let mut up_to = 0_u64;
        let bucket = self.buckets.iter().position(|count| {
            up_to = up_to.saturating_add(*count);
            up_to as f64 >= rank
        });
        let end = bucket.and_then(Self::bucket_end);
        end.map_or(self.longest, |end| end.min(self.longest))
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.count)?;
        let Some(mean) = self.mean() else {
            return Ok(());
        };
        let (most, longest) = (self.quantile(0.99), self.longest);
        write!(
            f,
            ", mean {mean:.1?}, 99 % within {most:.1?}, longest {longest:.1?}"
        )
    }
}

/// One list of what is counted, for the counters, what is read of them, and their names.
macro_rules! metrics {
    (
        $(#[$about:meta])*
        numbers { $($(#[$number_doc:meta])+ $number:ident,)+ }
        latencies { $($(#[$latency_doc:meta])+ $latency:ident,)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Metrics {
            $($(#[$number_doc])+ pub $number: u64,)+
            $($(#[$latency_doc])+ pub $latency: Latencies,)+
            /// What look-ups and queries have read of the postings on disk.
            pub reads: Reads,
            /// For how long the oldest snapshot has lived that is still there.
            pub oldest_snapshot: Option<Duration>,
        }

        impl Metrics {
            /// All numbers, each with the name of its field, in the order of the fields.
            pub fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($number), self.$number),)+].into_iter()
            }

            /// All latencies, each with the name of its field, in the order of the fields.
            pub fn latencies(&self) -> impl Iterator<Item = (&'static str, &Latencies)> {
                [$((stringify!($latency), &self.$latency),)+].into_iter()
            }
        }

        /// What all threads count, without locks.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $number: Counter,)+
            $(pub(crate) $latency: Histogram,)+
        }

        impl Counters {
            pub(crate) fn get(&self) -> Metrics {
                Metrics {
                    $($number: self.$number.get(),)+
                    $($latency: self.$latency.get(),)+
                    ..Metrics::default()
                }
            }
        }
    };
}

metrics! {
    /// What all handles of an open store have done since it was opened, with their clones, snapshots
    /// and transactions: made by [`Store::metrics`](crate::Store::snapshot).
    ///
    /// What transactions do is counted when they are committed, before `commit` returns; of what is
    /// rolled back, or has failed, only that it was. Other things are counted as they happen. Numbers
    /// never go down, but for `documents`, `calls_waiting` and `snapshots`, which say how it is now.
    /// Each is exact once no call is under way; meanwhile they are read one after the other and may be
    /// a call apart. Then `documents` is what it was when the store was opened, plus `inserted`, minus
    /// `replaced`, `removed` and `evicted`; and `transactions_begun` is the sum of how they have ended
    /// and those that are open.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// store.insert("a", &store.sketcher().hashes([1, 2, 3])?)?;
    /// let metrics = store.metrics();
    /// assert_eq!((metrics.inserted, metrics.transactions_committed), (1, 1));
    ///
    /// // As text for Prometheus:
    /// for (name, value) in metrics.numbers() {
    ///     println!("resemblance_{name} {value}");
    /// }
    /// for (name, latencies) in metrics.latencies() {
    ///     for share in [0.5, 0.99] {
    ///         let seconds = latencies.quantile(share).as_secs_f64();
    ///         println!("resemblance_{name}{{quantile=\"{share}\"}} {seconds}");
    ///     }
    ///     println!("resemblance_{name}_sum {}", latencies.total.as_secs_f64());
    ///     println!("resemblance_{name}_count {}", latencies.count);
    /// }
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    numbers {
        /// Documents after the last commit.
        documents,
        /// Documents inserted, those included that replaced others.
        inserted,
        /// Documents that another of the same key took the place of.
        replaced,
        /// Documents removed one by one.
        removed,
        /// Documents removed by eviction.
        evicted,
        /// Documents whose stamp was renewed.
        touched,
        /// Documents that `insert_if_new` and its kin did not take because their key was there.
        known,
        /// Documents that `insert_if_new` and its kin did not take because one was near.
        near_duplicates,
        /// Documents that `upsert` found as they were.
        unchanged,
        /// Write transactions begun, those of the one-call forms included.
        transactions_begun,
        /// Write transactions committed, with something to write.
        transactions_committed,
        /// Write transactions committed that had nothing to write.
        transactions_unchanged,
        /// Write transactions dropped, or given up by a commit before it wrote.
        transactions_rolled_back,
        /// Write transactions whose commit failed while it wrote: the outcome is unknown until the store
        /// is opened again.
        transactions_failed,
        /// Groups of calls of the one-call forms that were committed together.
        groups,
        /// The most calls of a group.
        largest_group,
        /// Calls of the one-call forms that are waiting for their answer now.
        calls_waiting,
        /// The most calls that waited at a time.
        most_calls_waiting,
        /// Runs written of what was in memory.
        flushes,
        /// Postings in them.
        flushed_postings,
        /// Merges of runs begun.
        merges_begun,
        /// Merges of runs ended.
        merges_ended,
        /// Postings that merges have read.
        merged_postings,
        /// Blocks of postings that merges have written.
        merged_blocks,
        /// Queries answered, one for each signature of [`query_many`](crate::Snapshot::query_many)
        /// and its kin.
        queries,
        /// Documents that were compared with a signature, by queries, by `insert_if_new` and its kin.
        candidates,
        /// Documents that `insert_if_new` and its kin compared with a part of the candidates only, for the
        /// budget of the store.
        budgets_met,
        /// Snapshots that are alive now, one for each [`snapshot`](crate::Store::snapshot) of which a
        /// clone is left. Space that is freed while one lives is not used again.
        snapshots,
        /// Reads of the file, what opening it took included.
        file_reads,
        /// Bytes read from the file. What was in the cache of pages is not read again.
        file_read_bytes,
        /// Writes to the file, what creating or recovering it took included.
        file_writes,
        /// Bytes written to the file.
        file_written_bytes,
    }
    latencies {
        /// Commits that had something to write, their slices of merges included: one for each of
        /// `transactions_committed`.
        commit_latencies,
        /// Calls of the one-call forms, from the call to the durable answer, errors included.
        call_latencies,
        /// Syncs of the file.
        sync_latencies,
    }
}

/// A line for each number and each of the latencies.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.numbers() {
            writeln!(f, "{name} {value}")?;
        }
        for (name, latencies) in self.latencies() {
            writeln!(f, "{name} {latencies}")?;
        }
        let Reads {
            blocks, ruled_out, ..
        } = self.reads;
        writeln!(f, "reads.blocks {blocks}")?;
        writeln!(f, "reads.ruled_out {ruled_out}")?;
        match self.oldest_snapshot {
            Some(age) => writeln!(f, "oldest_snapshot {age:.1?}"),
            None => Ok(()),
        }
    }
}
