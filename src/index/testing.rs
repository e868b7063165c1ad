//! Helpers for the tests of this module.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use redb::backends::InMemoryBackend;
use redb::{Database, ReadableTable, WriteTransaction};

use redb::TableDefinition;

use crate::format::{BlockKey, FilterKey, FilterShape, LaneSummary, Posting};
use crate::index::block_cache::BlockCache;
use crate::index::filter_writer::FilterPlan;
use crate::index::run::{Key, LaneRef, RunBlocks, RunTables, Value, lane_bounds};
use crate::index::run_cache::BlockSources;
use resemblance_sketch::lanes::BucketBits;
use resemblance_sketch::lanes::LaneCode;

pub(super) const NAME: &str = "bands";
pub(super) const TABLE: TableDefinition<'static, Key, Value> = TableDefinition::new(NAME);

const FILTERS: TableDefinition<'static, &FilterKey, Value> = TableDefinition::new("filters");

/// Codes of 64 bits, each a separate bucket.
pub(super) const BUCKETS: BucketBits = BucketBits {
    shift: 0,
    length: 64,
};

pub(super) fn lane_ref(run: u32, summary: &LaneSummary) -> LaneRef<'_> {
    LaneRef {
        table_name: NAME,
        run,
        summary,
    }
}

/// The tables, open for writing.
pub(crate) fn tables(transaction: &WriteTransaction) -> RunTables<'_> {
    RunTables {
        name: NAME,
        blocks: transaction.open_table(TABLE).unwrap(),
        filters: transaction.open_table(FILTERS).unwrap(),
    }
}

/// The pieces of all filters.
pub(crate) fn pieces(transaction: &WriteTransaction) -> Vec<(FilterKey, Vec<u8>)> {
    let table = transaction.open_table(FILTERS).unwrap();
    let rows = table.iter().unwrap().map(|row| {
        let (key, value) = row.unwrap();
        (*key.value(), value.value().to_vec())
    });
    rows.collect()
}

pub(super) use crate::sample::Random;

pub(super) fn posting(code: u64, id: u64) -> Posting {
    Posting { code, id }
}

pub(super) fn database() -> Database {
    let builder = Database::builder();
    builder.create_with_backend(InMemoryBackend::new()).unwrap()
}

/// Begins a transaction of a separate database.
pub(super) fn begin_write() -> WriteTransaction {
    let database: &Database = Box::leak(Box::new(database()));
    database.begin_write().unwrap()
}

/// Lanes with uniform, crowded, extreme and equal codes, and without any.
pub(super) fn lanes(count: u64) -> Vec<BTreeSet<Posting>> {
    const MAX: u64 = u64::MAX;
    let mut random = Random(1);
    let (mut uniform, mut crowded) = (BTreeSet::new(), BTreeSet::new());
    for id in 0..count {
        uniform.insert(posting(random.next() >> 24, id));
        crowded.insert(posting(random.below(3) << 60, random.next()));
        crowded.insert(posting(random.below(1000) << 54, MAX - id));
    }
    let extreme = [0, 1, MAX - 1, MAX].map(|code| [0, 1, MAX - 1, MAX].map(|id| posting(code, id)));
    vec![
        uniform,
        crowded,
        extreme.into_iter().flatten().collect(),
        BTreeSet::new(),
        [posting(0, 0)].into(),
        [posting(MAX, MAX)].into(),
    ]
}

/// Writes a lane and gives its summary.
pub(super) fn write(
    transaction: &WriteTransaction,
    run: u32,
    lane: u16,
    postings: &BTreeSet<Posting>,
) -> LaneSummary {
    let postings = postings.iter().copied().map(Ok);
    crate::index::lane_writer::write_lane(&mut tables(transaction), run, lane, None, postings)
        .unwrap()
}

/// Writes a lane with a filter of this shape.
pub(super) fn write_filtered(
    transaction: &WriteTransaction,
    run: u32,
    lane: u16,
    shape: FilterShape,
    postings: &BTreeSet<Posting>,
) -> LaneSummary {
    let filter = FilterPlan {
        shape,
        buckets: BUCKETS,
    };
    let postings = postings.iter().copied().map(Ok);
    crate::index::lane_writer::write_lane(
        &mut tables(transaction),
        run,
        lane,
        Some(filter),
        postings,
    )
    .unwrap()
}

/// All rows of the table.
pub(crate) fn rows(transaction: &WriteTransaction) -> Vec<(BlockKey, Vec<u8>)> {
    let table = transaction.open_table(TABLE).unwrap();
    let rows = table.iter().unwrap().map(|row| {
        let (key, value) = row.unwrap();
        (*key.value(), value.value().to_vec())
    });
    rows.collect()
}

/// Returns the postings that a probe of these codes must find.
pub(super) fn in_range(postings: &BTreeSet<Posting>, codes: RangeInclusive<u64>) -> Vec<Posting> {
    let low = posting(*codes.start(), 0);
    let high = posting(*codes.end(), u64::MAX);
    postings.range(low..=high).copied().collect()
}

/// The codes of a document that has one or none in each of some lanes.
pub(super) fn lane_codes(lanes: &[u16], codes: &[Option<u64>]) -> Vec<LaneCode> {
    let codes = lanes.iter().zip(codes);
    codes
        .filter_map(|(&lane, code)| code.map(|code| LaneCode { lane, code }))
        .collect()
}

/// Removes all blocks of a lane of a run.
pub(super) fn delete_run(table: &mut RunBlocks<'_>, run: u32, lane: u16) {
    let (low, high) = lane_bounds(run, &LaneSummary::empty(lane));
    table
        .retain_in::<&BlockKey, _>(&low..=&high, |_, _| false)
        .unwrap();
}

impl<'c> BlockSources<'c> {
    /// Returns sources with only what is in memory.
    pub(super) fn memory(blocks: &'c BlockCache) -> Self {
        let file = None;
        Self { blocks, file }
    }
}
