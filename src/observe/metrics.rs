//! The list of everything that a store counts since it was opened, and the snapshot of it for
//! users.

use std::fmt;
use std::time::Duration;

use redb_verified::{Counter, Histogram};

use crate::observe::latencies::Latencies;

/// Makes of one list the shared counters, the snapshot of them, and the names of its fields.
macro_rules! metrics {
    (
        $(#[$about:meta])*
        numbers { $($(#[$number_doc:meta])+ $number:ident,)+ }
        numbers_of_file { $($(#[$file_number_doc:meta])+ $file_number:ident,)+ }
        latencies { $($(#[$latency_doc:meta])+ $latency:ident,)+ }
        latencies_of_file { $($(#[$file_latency_doc:meta])+ $file_latency:ident,)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Metrics {
            $($(#[$number_doc])+ pub $number: u64,)+
            $($(#[$file_number_doc])+ pub $file_number: u64,)+
            $($(#[$latency_doc])+ pub $latency: Latencies,)+
            $($(#[$file_latency_doc])+ pub $file_latency: Latencies,)+
            /// The age of the oldest live snapshot, or `None` if there is none.
            pub oldest_snapshot: Option<Duration>,
        }

        impl Metrics {
            /// Returns all numbers, each with the name of its field, in the order of the fields.
            pub fn numbers(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [
                    $((stringify!($number), self.$number),)+
                    $((stringify!($file_number), self.$file_number),)+
                ]
                .into_iter()
            }

            /// Returns all latencies, each with the name of its field, in the order of the fields.
            pub fn latencies(&self) -> impl Iterator<Item = (&'static str, &Latencies)> {
                [
                    $((stringify!($latency), &self.$latency),)+
                    $((stringify!($file_latency), &self.$file_latency),)+
                ]
                .into_iter()
            }
        }

        /// The numbers and latencies of a store except those of its file. All threads count them
        /// without locks.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $number: Counter,)+
            $(pub(crate) $latency: Histogram,)+
        }

        impl Counters {
            /// Adds all numbers to those of others.
            pub(super) fn add_to(&self, others: &Self) {
                $(others.$number.add(self.$number.get());)+
            }

            pub(super) fn get(&self) -> Metrics {
                Metrics {
                    $($number: self.$number.get(),)+
                    $($latency: Latencies::of(&self.$latency),)+
                    ..Metrics::default()
                }
            }
        }
    };
}

metrics! {
    /// Counts of everything that has happened through an open store since it was opened: through
    /// its handles and their clones, snapshots and transactions. `Store::metrics` returns it.
    ///
    /// A transaction's changes are counted when it is committed, before `commit` returns. If a
    /// transaction is rolled back or fails, only its end is counted. Everything else is counted as
    /// it happens. Numbers never decrease, except `documents`, `calls_waiting`, `snapshots` and the
    /// bytes of caches, which describe the present. Each number is exact when no call is in
    /// progress. During calls, numbers that belong together may differ by a call, because they are
    /// read one after another.
    ///
    /// When no call is in progress, two equations hold. `documents` is its value when the store was
    /// opened, plus `inserted`, minus `replaced`, `removed` and `evicted`. `transactions_begun` is
    /// the sum of the four numbers of transactions that have ended and the number of those that are
    /// open.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store};
    /// # let store = Store::in_memory(Schema::builder().minhash(MinHash::new(64)).build()?)?;
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
        /// Documents that another one under the same key replaced.
        replaced,
        /// Documents removed one by one, by key or id.
        removed,
        /// Documents removed by eviction.
        evicted,
        /// Documents that got another stamp.
        touched,
        /// Documents that a form of `insert_if_new` did not insert because their key was taken.
        known,
        /// Documents that a form of `insert_if_new` did not insert because of a near-duplicate.
        near_duplicates,
        /// Documents that `upsert` found with the same signature.
        unchanged,
        /// Write transactions begun, including those of the one-call forms.
        transactions_begun,
        /// Write transactions committed, with something to write.
        transactions_committed,
        /// Write transactions committed that had nothing to write.
        transactions_unchanged,
        /// Write transactions dropped, and those whose commit failed before it wrote.
        transactions_rolled_back,
        /// Write transactions whose commit failed while it wrote. Their outcome is unknown until the store
        /// is opened again.
        transactions_failed,
        /// Commits of another process that this handle, which only reads, has followed.
        commits_followed,
        /// Groups of one-call forms that were committed together, groups of one included.
        groups,
        /// Number of calls in the largest group.
        largest_group,
        /// Calls of the one-call forms that wait for their answer now.
        calls_waiting,
        /// Greatest number of calls that waited at the same time.
        most_calls_waiting,
        /// Flushes of the memtable, each of which writes a run.
        flushes,
        /// Postings that flushes have written.
        flushed_postings,
        /// Merges of runs begun.
        merges_begun,
        /// Merges of runs ended.
        merges_ended,
        /// Postings that merges have read.
        merged_postings,
        /// Blocks of postings that merges have written.
        merged_blocks,
        /// Queries answered; a query of many signatures counts once for each of them.
        queries,
        /// Candidates: documents that a query or a form of `insert_if_new` compared with a signature, and those that
        /// `candidates` found.
        candidates,
        /// Documents that a form of `insert_if_new` compared with a part of the candidates only, because
        /// of the store's budget.
        budgets_met,
        /// Lanes that look-ups and queries probed for a code or a prefix: one for the key and one for each band
        /// and table, for each document that was looked up. Documents that are not flushed yet are found in
        /// memory.
        lanes_probed,
        /// Lanes of runs that a filter ruled out, without a block read.
        lanes_ruled_out,
        /// Blocks of postings that look-ups and queries searched.
        blocks_read,
        /// Number of these blocks that were in the cache. The others came from a page of the file.
        cached_blocks_read,
        /// Rows of documents that were looked up for their signatures, to compare these. If a
        /// signature is a fingerprint of at most 64 bits, postings determine the distance of most
        /// documents, and no row is read.
        signatures_read,
        /// Rows of documents that were looked up for key and stamp.
        documents_read,
        /// Payloads that were looked up.
        payloads_read,
        /// Snapshots that are alive now; a snapshot and its clones count once. Space that the writer frees
        /// is not used again while one of them is older.
        snapshots,
        /// Bytes of memory that filters of runs take, a part of the cache of the store.
        filter_cache_bytes,
        /// Bytes of memory that blocks of runs take, a part of the cache of the store.
        block_cache_bytes,
    }
    numbers_of_file {
        /// Reads of the file, including those of opening it.
        file_reads,
        /// Bytes read from the file. A page that is in the cache is not read again.
        file_read_bytes,
        /// Writes to the file, including those of creating or recovering it.
        file_writes,
        /// Bytes written to the file.
        file_written_bytes,
    }
    latencies {
        /// Commits that had something to write, from beginning to end with their slices of merges: one for
        /// each of `transactions_committed`.
        commit_latencies,
        /// Calls of the one-call forms, from the call to the durable answer or the error.
        call_latencies,
    }
    latencies_of_file {
        /// Syncs of the file.
        sync_latencies,
        /// Waits for the turn to write, one for each turn, where several processes write the store.
        turn_latencies,
    }
}

/// Prints a line for each number and for each of the latencies.
impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.numbers() {
            writeln!(f, "{name} {value}")?;
        }
        for (name, latencies) in self.latencies() {
            writeln!(f, "{name} {latencies}")?;
        }
        match self.oldest_snapshot {
            Some(age) => writeln!(f, "oldest_snapshot {age:.1?}"),
            None => Ok(()),
        }
    }
}
