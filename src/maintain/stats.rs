//! Figures about the documents, runs, tables and lanes of a store.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::engine::{
    BANDS, DOCUMENTS, EngineResult, FILTERS, KEYS, Key, PAGE_BYTES, PAYLOADS, PERMUTED,
    ReadTransaction, ReadableTable, ReadableTableMetadata, SETS, TableDefinition, TableHandle,
    file_size, for_each_table,
};
use crate::error::Result;
use crate::format::{RunDescriptor, SET_CHUNK_BYTES};
use crate::invariant::OrBug;
use crate::maintain::backup::row_count;
use crate::read::PostingTable;
use crate::read::SnapshotView;
use crate::types::{DocumentId, Operation, Phase, ReportSettings, Watch};
use crate::write::{DENSE_SHARE, WINDOW_BYTES, filter_bits_per_document};
use resemblance_sketch::lanes::LaneRole;
use resemblance_sketch::schema::{DesignReport, noun};

/// Number of the largest buckets that are listed.
const NAMED_BUCKETS: usize = 10;

/// Number of documents of each that are listed.
const SAMPLES: usize = 5;

/// The bytes of pages outside all tables in a compacted file: at least this number, and one in
/// [`ENGINE_PART`] of the others.
const ENGINE_BYTES: u64 = 8 * PAGE_BYTES as u64;
const ENGINE_PART: u64 = 8_192;

/// Figures of a store. Made by [`Snapshot::stats`](crate::Snapshot::stats).
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let stats = store.snapshot()?.stats().run()?;
/// assert_eq!((stats.documents, stats.next_id, stats.runs.len()), (1, 1, 0));
/// assert!(stats.file_bytes > 0 && stats.bytes_per_document > 0.0);
/// assert!(stats.to_string().starts_with("1 document, ")); // a summary of a few lines
/// assert_eq!(serde_json::to_value(&stats).unwrap()["lanes"][0]["role"], "key");
/// println!("compacting would give {} bytes back", stats.compact_gain_bytes);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// The number of live documents.
    pub documents: u64,
    /// Compares the number of documents with the one for which the bands and tables were chosen.
    #[serde(rename = "expected_documents", serialize_with = "expected_documents")]
    pub design: DesignReport,
    /// The id that the next document gets, which is the number of documents ever inserted.
    pub next_id: u64,
    /// The number of documents inserted since the last flush, whose postings are in memory.
    pub memtable_documents: u64,
    /// The memory of the memtable in bytes.
    pub memtable_bytes: u64,
    /// The number of removed documents whose payloads and signatures are still in the file. Merges
    /// drop them.
    pub dead_rows: u64,
    /// The memory, in bytes, for the tombstones of documents whose postings are still in the file.
    pub dead_bytes: u64,
    /// The memory of filters of runs in bytes, which is part of the
    /// [cache](crate::StoreOptions::cache_bytes).
    pub filter_cache_bytes: u64,
    /// The memory of blocks of runs in bytes, which is part of the cache.
    pub block_cache_bytes: u64,
    /// The runs, ascending by the ids they hold.
    pub runs: Vec<RunStats>,
    /// The merges of runs that are in progress.
    pub merges: Vec<MergeStats>,
    /// The tables of the file.
    pub tables: Vec<TableStats>,
    /// The lanes.
    pub lanes: Vec<LaneStats>,
    /// The largest buckets, largest first.
    pub buckets: Vec<BucketStats>,
    /// The length of the file, in bytes.
    pub file_bytes: u64,
    /// The number of bytes that the file takes on disk if the system reports it, and otherwise its
    /// length.
    pub allocated_bytes: u64,
    /// An estimate of the bytes that [`Store::compact`](crate::Store::compact) would return to the
    /// disk: pages that are free, filters larger than those of a single run, and the remains of
    /// removed documents. Usually within a thirtieth of the file and 128 KiB of what it returns.
    pub compact_gain_bytes: u64,
    /// An estimate, as precise, of the bytes by which `compact` would shorten the file: more than it
    /// returns to the disk if the file has holes.
    pub compact_length_gain_bytes: u64,
    /// The bytes in all tables per live document, including overhead; 0 without documents.
    pub bytes_per_document: f64,
}

/// A run: the flushed postings of documents with consecutive ids.
///
/// ```
/// # use resemblance::{MinHash, Schema, StoreOptions, Text};
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let store = StoreOptions::new().flush_after(1).create_in_memory(schema)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let stats = store.snapshot()?.stats().run()?;
/// let run = &stats.runs[0];
/// assert_eq!((run.first_id, run.last_id, run.level), (0, 0, 0));
/// assert_eq!(run.postings, store.schema().lanes() as u64);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunStats {
    /// The number of the run.
    pub run: u32,
    /// The number of times that its postings have been merged.
    pub level: u8,
    /// The lowest id of its range.
    pub first_id: u64,
    /// The highest id of its range.
    pub last_id: u64,
    /// The number of postings in all lanes, without those that have already moved to the run into
    /// which it is merged.
    pub postings: u64,
    /// The number of blocks in all lanes.
    pub blocks: u64,
    /// The number of removed documents whose postings are still in the run.
    pub dead: u64,
}

/// A merge of runs that is in progress. Commits advance it in proportion to what they insert and
/// remove.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let stats = store.snapshot()?.stats().run()?;
/// for merge in &stats.merges {
///     println!("run {}: {} postings are left", merge.run, merge.postings_left);
/// }
/// assert!(stats.merges.is_empty());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MergeStats {
    /// The number of the run that is being made.
    pub run: u32,
    /// The level of that run.
    pub level: u8,
    /// The runs that are being merged.
    #[serde(serialize_with = "number_of")]
    pub inputs: Vec<u32>,
    /// The number of postings in the new run.
    pub postings: u64,
    /// The number of blocks in the new run.
    pub blocks: u64,
    /// The number of postings that are still in the old runs.
    pub postings_left: u64,
    /// The number of removed documents whose payloads and signatures the merge has yet to drop,
    /// which it does first.
    pub rows_left: u64,
}

/// A table of the file.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let stats = store.snapshot()?.stats().run()?;
/// for table in &stats.tables {
///     assert!(table.total_bytes() >= table.stored_bytes);
///     println!("{}: {} rows, {} bytes", table.name, table.rows, table.total_bytes());
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TableStats {
    /// The name of the table, as in the format specification.
    #[serde(rename = "table")]
    pub name: String,
    /// The number of rows.
    pub rows: u64,
    /// The number of bytes of keys and values.
    pub stored_bytes: u64,
    /// The number of bytes of the tree around them.
    pub metadata_bytes: u64,
    /// The number of unused bytes in its pages.
    pub fragmented_bytes: u64,
}

impl TableStats {
    /// Returns the bytes of all its pages.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.stored_bytes + self.metadata_bytes + self.fragmented_bytes
    }
}

/// A lane.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let stats = store.snapshot()?.stats().run()?;
/// let roles: Vec<&str> = stats.lanes.iter().map(|lane| &*lane.role).collect();
/// assert_eq!(roles[..2], ["key", "band 0"]);
/// assert!(stats.lanes.iter().all(|lane| (lane.postings, lane.blocks) == (1, 0)));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LaneStats {
    /// The number of the lane.
    pub lane: u16,
    /// The role of the lane: `key`, `band 3`, `table 2`.
    pub role: String,
    /// The number of postings in runs and in memory, including those of removed documents that no
    /// merge has dropped.
    pub postings: u64,
    /// The number of blocks on disk.
    pub blocks: u64,
}

/// A bucket: documents that share a code or, in a permuted table, the prefix of one.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b"] {
///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
/// }
/// let stats = store.snapshot()?.stats().run()?;
/// let largest = &stats.buckets[0];
/// assert_eq!((&*largest.role, largest.documents), ("band 0", 2));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BucketStats {
    /// The number of its lane.
    pub lane: u16,
    /// The role of the lane, such as `band 3`.
    pub role: String,
    /// The number of live documents in the bucket.
    pub documents: u64,
    /// Up to five of its documents, the lowest ids first.
    pub samples: Vec<BucketSample>,
}

/// A document in a bucket.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b"] {
///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
/// }
/// let stats = store.snapshot()?.stats().run()?;
/// let sample = &stats.buckets[0].samples[1];
/// assert_eq!((sample.id.get(), sample.key.as_deref()), (1, Some(&b"b"[..])));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketSample {
    /// Its id.
    pub id: DocumentId,
    /// Its key, if it has one.
    pub key: Option<Vec<u8>>,
}

/// A key that is not UTF-8 is null, and in hexadecimal in `key_hex`.
impl Serialize for BucketSample {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let text = self.key.as_deref().map(std::str::from_utf8);
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("id", &self.id)?;
        fields.serialize_entry("key", &text.and_then(std::result::Result::ok))?;
        if let (Some(key), Some(Err(_))) = (&self.key, text) {
            let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            fields.serialize_entry("key_hex", &digits)?;
        }
        fields.end()
    }
}

fn expected_documents<S: Serializer>(
    design: &DesignReport,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_u64(design.expected_documents)
}

fn number_of<S: Serializer>(runs: &[u32], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_u64(runs.len() as u64)
}

/// Returns a number with its thousands set apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Prints a summary for people, of a few lines.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let state = match self.design.is_outgrown {
            true => "outgrown",
            false => "within its design",
        };
        writeln!(
            f,
            "{} {}, {:.1} MB, {state}",
            grouped(self.documents),
            noun(self.documents, "document"),
            megabytes(self.allocated_bytes)
        )?;
        writeln!(
            f,
            "{} {}, {} {} under way, {} {} not flushed",
            self.runs.len(),
            noun(self.runs.len() as u64, "run"),
            self.merges.len(),
            noun(self.merges.len() as u64, "merge"),
            grouped(self.memtable_documents),
            noun(self.memtable_documents, "document")
        )?;
        write!(
            f,
            "{:.0} bytes a document; compacting would give back {:.1} MB",
            self.bytes_per_document,
            megabytes(self.compact_gain_bytes)
        )?;
        match &self.design.advice {
            Some(advice) => write!(f, "\n{advice}"),
            None => Ok(()),
        }
    }
}

/// The documents of a bucket as they are counted.
#[derive(Default)]
struct Counted {
    documents: u64,
    /// The smallest ids, ascending.
    first: Vec<u64>,
}

impl Counted {
    fn add(&mut self, id: u64) {
        self.documents += 1;
        if self.first.len() < SAMPLES || self.first.last() > Some(&id) {
            let index = self.first.partition_point(|first| *first < id);
            self.first.insert(index, id);
            self.first.truncate(SAMPLES);
        }
    }
}

impl ReportSettings for Stats {
    type Settings = ();
}

/// Returns figures of a snapshot and its file. Reads all rows of all tables.
pub(crate) fn stats(snapshot: &SnapshotView) -> Operation<'_, Stats> {
    Operation::new("the statistics", (), |(), watch| count(snapshot, watch))
}

fn count(snapshot: &SnapshotView, watch: &mut Watch<'_>) -> Result<Stats> {
    snapshot.context().run_checked(|| {
        let committed = &snapshot.inner.version;
        let state = committed.state;
        let runs = committed.runs.current.iter().map(|run| RunStats {
            run: run.descriptor.run,
            level: run.descriptor.level,
            first_id: run.descriptor.first_id,
            last_id: run.descriptor.last_id,
            postings: run.descriptor.postings(),
            blocks: run.descriptor.blocks(),
            dead: run.deleted,
        });
        let tables = all_table_stats(snapshot, watch)?;
        let lanes = lane_stats(snapshot);
        let total: u64 = tables.iter().map(TableStats::total_bytes).sum();
        let (file_bytes, allocated_bytes) = file_size(
            &snapshot.context().path,
            &snapshot.context().options.file_options(),
        )?;
        let kept_tables = total.saturating_sub(droppable_bytes(snapshot, &tables));
        let kept = ENGINE_BYTES + kept_tables + kept_tables / ENGINE_PART;
        let per_document = total as f64 / state.documents.max(1) as f64;
        Ok(Stats {
            documents: state.documents,
            design: DesignReport::new(snapshot.schema(), snapshot.len()),
            next_id: state.next_id,
            memtable_documents: state.unflushed_documents,
            memtable_bytes: committed.memtable.heap_bytes() as u64,
            dead_rows: dead_rows(&tables, state.documents),
            dead_bytes: committed.deleted.heap_bytes(),
            filter_cache_bytes: snapshot.context().cache.filter_bytes(),
            block_cache_bytes: snapshot.context().cache.block_bytes(),
            runs: runs.collect(),
            merges: merge_stats(snapshot)?,
            buckets: largest_buckets(snapshot, &lanes, watch)?,
            lanes,
            file_bytes,
            allocated_bytes,
            compact_gain_bytes: allocated_bytes.saturating_sub(kept),
            compact_length_gain_bytes: file_bytes.saturating_sub(kept),
            bytes_per_document: if state.documents == 0 {
                0.0
            } else {
                per_document
            },
            tables,
        })
    })
}

fn merge_stats(snapshot: &SnapshotView) -> Result<Vec<MergeStats>> {
    let runs = &snapshot.inner.version.runs;
    let to_stats = |output: &Arc<RunDescriptor>| {
        let inputs = runs.inputs(output).or_bug("the runs of a merge")?;
        let left = inputs.iter().map(|run| run.descriptor.postings());
        Ok(MergeStats {
            run: output.run,
            level: output.level,
            inputs: output.inputs.clone(),
            postings: output.postings(),
            blocks: output.blocks(),
            postings_left: left.fold(0, u64::saturating_add),
            rows_left: snapshot.inner.version.rows_left(output),
        })
    };
    runs.outputs.iter().map(to_stats).collect()
}

/// Returns about the number of bytes of tables that a merge of all runs would drop.
fn droppable_bytes(snapshot: &SnapshotView, tables: &[TableStats]) -> u64 {
    let committed = &snapshot.inner.version;
    let deleted = committed.runs.current.iter().map(|run| {
        let lane_bytes = run.descriptor.lanes.iter().map(|lane| lane.bytes);
        let bytes = lane_bytes.fold(0, u64::saturating_add);
        let share = run.deleted as f64 / run.descriptor.documents.max(1) as f64;
        (bytes as f64 * share.min(1.0)) as u64
    });
    let dead = dead_rows(tables, committed.state.documents);
    let dropped = [DOCUMENTS, PAYLOADS, SETS].map(|table| {
        let found = tables.iter().find(|found| found.name == table.name());
        found.map_or(0, |table| dropped_row_bytes(snapshot, table, dead))
    });
    deleted
        .fold(0, u64::saturating_add)
        .saturating_add(dropped.iter().sum())
        .saturating_add(repacked_bytes(snapshot, tables))
}

/// Returns about the number of bytes of a table of documents' rows that a merge of all runs would
/// free. Where few rows of a window are dropped, their pages keep gaps, unless they have no others.
fn dropped_row_bytes(snapshot: &SnapshotView, table: &TableStats, dead: u64) -> u64 {
    let committed = &snapshot.inner.version;
    let deleted = &committed.deleted;
    let documents = committed.state.documents + dead;
    if dead == 0 || table.rows == 0 || deleted.len() == 0 {
        return 0;
    }
    // A chunk of sets gets a smaller page if half of it is gone.
    let (rows, window_bytes, dense_share) = match table.name == SETS.name() {
        true => (documents, SET_CHUNK_BYTES, 2),
        false => (table.rows, WINDOW_BYTES, DENSE_SHARE + 1),
    };
    let row_bytes = table.total_bytes() / rows;
    let has_own_pages = 2 * row_bytes > PAGE_BYTES as u64;
    // The ids of as many rows as a window has, of which some are gone.
    let window_rows = window_bytes as u64 / row_bytes.max(1);
    let window = window_rows.saturating_mul(committed.state.next_id) / documents;
    let (mut freed, mut in_window, mut end) = (0, 0, 0);
    let freed_of = |rows: u64| {
        if has_own_pages || rows * dense_share as u64 >= window_rows {
            rows
        } else {
            0
        }
    };
    for id in deleted.ids() {
        if id >= end {
            freed += freed_of(in_window);
            (in_window, end) = (0, id.saturating_add(window));
        }
        in_window += 1;
    }
    freed += freed_of(in_window);
    // A merge under way has already dropped the rows of some.
    let share = freed as f64 / deleted.len() as f64 * dead as f64 / documents as f64;
    (table.total_bytes() as f64 * share.min(1.0)) as u64
}

/// Returns about the number of bytes by which the filters exceed those of a single run, and of the
/// room in pages that a single run, whose blocks fill pages, does not leave.
fn repacked_bytes(snapshot: &SnapshotView, tables: &[TableStats]) -> u64 {
    let runs = &snapshot.inner.version.runs;
    if runs.current.len() < 2 && runs.current.iter().all(|run| run.deleted == 0) {
        return 0;
    }
    let named = |name: &str| tables.iter().find(|table| table.name == name);
    let blocks = [KEYS, BANDS, PERMUTED].map(|table| named(table.name()));
    let gaps = blocks
        .into_iter()
        .flatten()
        .map(|table| table.fragmented_bytes);
    let filters = named(FILTERS.name()).map_or(0, |filters| {
        let per_byte = filters.total_bytes() as f64 / filters.stored_bytes.max(1) as f64;
        let needed = needed_filter_bytes(snapshot) as f64 * per_byte;
        filters.total_bytes().saturating_sub(needed as u64)
    });
    gaps.sum::<u64>() + filters
}

/// Returns about the number of bytes of the filters of a single run with all documents.
fn needed_filter_bytes(snapshot: &SnapshotView) -> u64 {
    let (context, documents) = (snapshot.context(), snapshot.len());
    let max_bytes = context.options.filter_cache_bytes() as u64;
    let bits = filter_bits_per_document(&context.lanes, max_bytes, documents);
    bits.saturating_mul(documents) / 8
}

fn lane_stats(snapshot: &SnapshotView) -> Vec<LaneStats> {
    let version = &snapshot.inner.version;
    let to_stats = |(role, lane): (LaneRole, u16)| {
        let summaries = version.runs.descriptors().filter_map(|run| run.lane(lane));
        let blocks = summaries.map(|summary| summary.blocks);
        LaneStats {
            lane,
            role: role.to_string(),
            postings: version.lane_postings(lane),
            blocks: blocks.fold(0, u64::saturating_add),
        }
    };
    let roles = snapshot.context().lanes.roles().zip(0u16..);
    roles.map(to_stats).collect()
}

fn largest_buckets(
    snapshot: &SnapshotView,
    all_lanes: &[LaneStats],
    watch: &mut Watch<'_>,
) -> Result<Vec<BucketStats>> {
    let lanes = &snapshot.context().lanes;
    let deleted = &snapshot.inner.version.deleted;
    let unflushed = snapshot.unflushed_ids()?;
    let flushed_below = snapshot.inner.version.state.flushed_below;
    let is_live = |id: u64| {
        if id < flushed_below {
            !deleted.contains(id)
        } else {
            unflushed.binary_search(&id).is_ok()
        }
    };
    let asked = 1..lanes.single_count();
    let of_buckets = all_lanes.iter().filter(|lane| asked.contains(&lane.lane));
    let total = of_buckets
        .map(|lane| lane.postings)
        .fold(0, u64::saturating_add);
    let mut done = 0;
    // The smallest of the largest is on top. Among equals, the one with the lowest lane and id is
    // kept.
    let mut largest = BinaryHeap::new();
    for (role, lane) in lanes
        .roles()
        .zip(0u16..)
        .filter(|(role, _)| !matches!(role, LaneRole::Key | LaneRole::Kept))
    {
        let mut note = |counted: Counted| {
            if counted.documents > 1 {
                let name = Reverse((lane, counted.first));
                largest.push(Reverse((counted.documents, name)));
            }
            if largest.len() > NAMED_BUCKETS {
                largest.pop();
            }
        };
        let (mut high, mut counted) = (None, Counted::default());
        for posting in snapshot.inner.lane_stream(PostingTable::of(role), lane)? {
            let posting = posting?;
            watch.step(Phase::CountingPostings, done, total)?;
            done += 1;
            if !is_live(posting.id) {
                continue;
            }
            if high.is_none_or(|high| posting.code > high) {
                note(std::mem::take(&mut counted));
                high = Some(lanes.bucket_range(lane, posting.code).1);
            }
            counted.add(posting.id);
        }
        note(counted);
    }
    watch.report(Phase::CountingPostings, done, total)?;
    named_buckets(snapshot, largest)
}

/// The largest buckets on a heap, each with its lane and its first documents.
type LargestBuckets = BinaryHeap<Reverse<(u64, Reverse<(u16, Vec<u64>)>)>>;

/// Returns the buckets, largest first, with keys of some of their documents.
fn named_buckets(snapshot: &SnapshotView, largest: LargestBuckets) -> Result<Vec<BucketStats>> {
    let lanes = &snapshot.context().lanes;
    let mut buckets = Vec::new();
    for Reverse((documents, Reverse((lane, first)))) in largest.into_sorted_vec() {
        let role = lanes
            .roles()
            .nth(lane.into())
            .or_bug("a lane of the schema")?;
        let samples = first.into_iter().map(|id| {
            Ok(BucketSample {
                id: DocumentId::new(id),
                key: snapshot.view().key_of(id)?.flatten(),
            })
        });
        buckets.push(BucketStats {
            lane,
            role: role.to_string(),
            documents,
            samples: samples.collect::<Result<_>>()?,
        });
    }
    Ok(buckets)
}

/// Documents whose rows are there though they are not live.
fn dead_rows(tables: &[TableStats], live: u64) -> u64 {
    let documents = tables.iter().find(|table| table.name == DOCUMENTS.name());
    documents.map_or(0, |table| table.rows.saturating_sub(live))
}

fn all_table_stats(snapshot: &SnapshotView, watch: &mut Watch<'_>) -> Result<Vec<TableStats>> {
    let mut rows = RowCount {
        read: &snapshot.inner.tables()?.read,
        done: 0,
        total: row_count(snapshot)?,
        watch,
    };
    let mut stats = Vec::new();
    for_each_table!(snapshot.schema(), table => stats.push(rows.table_stats(table)?));
    rows.watch
        .report(Phase::CountingRows, rows.done, rows.total)?;
    Ok(stats)
}

/// The rows of all tables as they are counted.
struct RowCount<'a, 'w> {
    read: &'a ReadTransaction,
    done: u64,
    total: u64,
    watch: &'a mut Watch<'w>,
}

impl RowCount<'_, '_> {
    fn table_stats<K: Key + 'static>(
        &mut self,
        definition: TableDefinition<'static, K, &'static [u8]>,
    ) -> Result<TableStats> {
        let table = self.read.open_table(definition).engine()?;
        // The engine's walk for its figures does not end where damaged pages form a circle, and
        // overflows the stack. Reading all rows does end there, with an error.
        let mut rows = 0;
        for row in ReadableTable::iter(&table).engine()? {
            row.engine()?;
            self.watch
                .step(Phase::CountingRows, self.done, self.total)?;
            self.done += 1;
            rows += 1;
        }
        let stats = table.stats().engine()?;
        Ok(TableStats {
            name: definition.name().to_owned(),
            rows,
            stored_bytes: stats.stored_bytes(),
            metadata_bytes: stats.metadata_bytes(),
            fragmented_bytes: stats.fragmented_bytes(),
        })
    }
}
