use std::cell::Cell;
use std::collections::BTreeSet;

use redb::WriteTransaction;

use super::*;
use crate::format::{LaneSummary, NearCodes};
use crate::index::lane_probe::{FirstBlock, probe_lane_while};
use crate::index::run::ProbeCost;
use crate::index::run_cache::BlockSources;
use crate::index::segment::{CodeRange, ProbeControl};
use crate::index::sweep::{ProbeRange, SweepControl, sweep_lane};
use crate::index::testing::{Random, TABLE, begin_write, in_range, lane_ref, posting, write};

const MAX: u64 = u64::MAX;

/// Uniform codes, and few codes with many postings each.
fn lanes() -> [BTreeSet<Posting>; 2] {
    let mut random = Random(1);
    let uniform = (0..9_000).map(|id| posting(random.next() >> 24, id));
    let uniform = uniform.collect();
    let crowded = (0..9_000).map(|id| posting(random.below(3) << 62, id));
    [uniform, crowded.collect()]
}

/// A lane of a run, probed and swept with a cache.
struct Lane<'t> {
    transaction: &'t WriteTransaction,
    run: u32,
    summary: LaneSummary,
    /// How often its table was opened.
    opened: Cell<u32>,
}

impl<'t> Lane<'t> {
    fn write(transaction: &'t WriteTransaction, run: u32, postings: &BTreeSet<Posting>) -> Self {
        Self {
            transaction,
            run,
            summary: write(transaction, run, 2, postings),
            opened: Cell::new(0),
        }
    }

    fn probe(&self, cache: &BlockCache, low: u64, high: u64) -> (Vec<Posting>, ProbeCost) {
        self.probe_range(cache, &CodeRange::new(self.summary.lane, low, high))
    }

    fn probe_range(&self, cache: &BlockCache, range: &CodeRange) -> (Vec<Posting>, ProbeCost) {
        let table = self.transaction.open_table(TABLE).unwrap();
        let mut found = Vec::new();
        let open = || {
            self.opened.set(self.opened.get() + 1);
            Ok(&table)
        };
        let lane = lane_ref(self.run, &self.summary);
        let sources = BlockSources::memory(cache);
        let first = FirstBlock::find_all(sources, &[Some((lane, range.low_code))]).unwrap();
        let first = first.into_iter().next().unwrap();
        let cost = probe_lane_while(lane, first, open, sources, range, &mut |posting| {
            found.push(posting);
            Ok(ProbeControl::GoOn)
        });
        (found, cost.unwrap())
    }

    fn sweep(&self, cache: &BlockCache) -> ProbeCost {
        let table = self.transaction.open_table(TABLE).unwrap();
        let all = ProbeRange::new(0, 0, MAX);
        let lane = lane_ref(self.run, &self.summary);
        let visit = &mut |_, _| Ok(SweepControl::GoOn);
        sweep_lane(
            lane,
            || Ok(&table),
            BlockSources::memory(cache),
            &[all],
            visit,
        )
        .unwrap()
    }
}

#[test]
fn probes_with_any_cache_agree_with_a_set() {
    let transaction = begin_write();
    let lanes = lanes();
    let runs = [0, 1, u32::MAX].into_iter().zip(lanes.iter().cycle());
    let runs: Vec<_> = runs
        .map(|(run, postings)| {
            let in_order: Vec<Posting> = postings.iter().copied().collect();
            (Lane::write(&transaction, run, postings), postings, in_order)
        })
        .collect();
    for max_bytes in [0, 5_000, 50_000, 1 << 20] {
        let cache = BlockCache::new(max_bytes);
        let mut random = Random(7);
        for _ in 0..2_000 {
            let (lane, postings, in_order) = &runs[random.below(3) as usize];
            let some = in_order[random.below(9_000) as usize];
            let low = some.code - random.below(2).min(some.code);
            let high = low + [0, 1, 1 << 30][random.below(3) as usize];
            let (found, _) = lane.probe(&cache, low, high);
            assert_eq!(found, in_range(postings, low..=high));
            assert!(cache.size_bytes() <= max_bytes as u64);
        }
        assert_eq!(cache.size_bytes() > 0, max_bytes > 0);
    }
}

#[test]
fn cached_blocks_are_found_without_the_table() {
    let transaction = begin_write();
    let [uniform, crowded] = lanes();
    for (run, postings) in [(3, &uniform), (4, &crowded)] {
        let lane = Lane::write(&transaction, run, postings);
        let cache = BlockCache::new(1 << 20);
        let (_, first) = lane.probe(&cache, 0, MAX);
        let (found, second) = lane.probe(&cache, 0, MAX);
        assert!(found.iter().eq(postings));
        assert_eq!(
            (first.blocks, first.cached_blocks),
            (lane.summary.blocks, 0)
        );
        assert_eq!(second.cached_blocks, lane.summary.blocks);
        assert_eq!(lane.sweep(&cache), second);
        assert_eq!(lane.opened.get(), 1);
        cache.retain_runs(|other| other != run);
        assert_eq!(cache.size_bytes(), 0);
        assert_eq!(lane.probe(&cache, 0, MAX).1, first);
    }
}

/// Places in lanes of several runs, in some that are not there, and none.
#[test]
fn block_cache_batch_agrees_with_single_lookups() {
    let transaction = begin_write();
    let mut random = Random(5);
    let cache = BlockCache::new(200_000);
    let [uniform, crowded] = lanes();
    let runs = [
        (0, uniform),
        (1, crowded),
        (2, (0..20_000).map(|id| posting(id << 30, id)).collect()),
    ];
    for (run, postings) in &runs {
        let lane = Lane::write(&transaction, *run, postings);
        (0..40).for_each(|_| drop(lane.probe(&cache, random.next() >> 24, MAX)));
    }
    let (mut held, mut absent) = (0, 0);
    for count in [0, 1, 2, 7, 50] {
        for _ in 0..100 {
            let place = |_| {
                let lane = 2 + (random.below(9) == 0) as u16;
                let place = (
                    random.below(4) as u32,
                    lane,
                    posting(random.next() >> 24, 3),
                );
                (random.below(9) > 0).then_some(place)
            };
            let asked: Vec<_> = (0..count).map(place).collect();
            let one = |asked: &Option<(u32, u16, Posting)>| {
                asked.and_then(|(run, lane, target)| cache.get(run, lane, target))
            };
            let all = cache.get_all(&asked).unwrap();
            assert_eq!(all.len(), asked.len());
            for (found, one) in all.iter().zip(asked.iter().map(one)) {
                let place = |block: &Arc<CachedBlock>| block.place;
                assert_eq!(found.as_ref().map(place), one.as_ref().map(place));
                held += u32::from(one.is_some());
                absent += u32::from(one.is_none());
            }
        }
    }
    assert!(held > 100 && absent > 100, "{held} {absent}");
}

/// For codes that are not close together, at most one block is read for each, in addition to the
/// blocks that they share.
#[test]
fn block_cache_skips_dissimilar_documents() {
    let transaction = begin_write();
    let cache = BlockCache::new(1 << 20);
    let [uniform, _] = lanes();
    let crowded = (0..60_000).map(|id| posting((id % 3) << 62, id)).collect();
    for (run, postings) in [(0, uniform), (1, crowded)] {
        let lane = Lane::write(&transaction, run, &postings);
        let blocks_of = |code: u64| lane.probe(&cache, code, code).1.blocks;
        for code in [0, 1 << 62, 2 << 62] {
            for max_distance in [0, 1, 20] {
                let near = NearCodes { code, max_distance };
                let range = CodeRange {
                    near: Some(near),
                    ..CodeRange::new(lane.summary.lane, 0, MAX)
                };
                let (found, cost) = lane.probe_range(&cache, &range);
                let expected = postings.iter().filter(|posting| near.have(posting.code));
                assert!(found.iter().eq(expected), "{near:?}");
                if run == 1 && max_distance == 0 {
                    let blocks = blocks_of(code);
                    assert!(blocks > 4 && cost.blocks <= blocks + 2, "{blocks} {cost:?}");
                }
            }
        }
    }
}

/// A sweep uses free room, and does not evict what probes read.
#[test]
fn sweeps_evict_no_cached_block() {
    let transaction = begin_write();
    let [uniform, _] = lanes();
    let lanes = [0, 1].map(|run| Lane::write(&transaction, run, &uniform));
    let bytes = lanes[0].summary.bytes as usize;
    let cache = BlockCache::new(bytes + ENTRY_BYTES * lanes[0].summary.blocks as usize);
    lanes[0].sweep(&cache);
    let blocks = lanes[0].summary.blocks;
    for _ in 0..3 {
        assert_eq!(lanes[1].sweep(&cache).cached_blocks, 0);
        assert_eq!(lanes[0].sweep(&cache).cached_blocks, blocks);
    }
    // Probes do, after a while.
    for _ in 0..50 {
        lanes[1].probe(&cache, 0, MAX);
    }
    assert!(lanes[1].probe(&cache, 0, MAX).1.cached_blocks > blocks / 2);
}

#[test]
fn smaller_cache_limit_drops_blocks() {
    let transaction = begin_write();
    let [uniform, _] = lanes();
    let lane = Lane::write(&transaction, 9, &uniform);
    let cache = BlockCache::new(1 << 20);
    lane.sweep(&cache);
    let all = cache.size_bytes();
    for max_bytes in [all, all / 2, 10_000, 0] {
        cache.set_max_bytes(max_bytes as usize);
        assert!(cache.size_bytes() <= max_bytes && cache.size_bytes() + 5_000 > max_bytes);
        let (found, _) = lane.probe(&cache, 0, MAX);
        assert!(found.iter().eq(&uniform));
    }
}

/// A lane of a few postings: one block. Returns it with the bytes that it takes in a cache.
fn one_block(transaction: &WriteTransaction, run: u32) -> (Lane<'_>, usize) {
    let postings = (0..20).map(|id| posting(id << 40, id)).collect();
    let lane = Lane::write(transaction, run, &postings);
    assert_eq!(lane.summary.blocks, 1);
    let size = lane.summary.bytes as usize + ENTRY_BYTES;
    (lane, size)
}

#[test]
fn a_block_as_large_as_the_cache_is_kept() {
    let transaction = begin_write();
    let (lane, size) = one_block(&transaction, 5);
    for (max_bytes, held) in [(size, size), (size - 1, 0)] {
        let cache = BlockCache::new(max_bytes);
        lane.probe(&cache, 0, MAX);
        assert_eq!(cache.size_bytes(), held as u64);
    }
}

/// Two threads that miss the same block both read it, and both bring it.
#[test]
fn block_cache_holds_a_block_once() {
    let transaction = begin_write();
    let (lane, size) = one_block(&transaction, 5);
    let cache = BlockCache::new(1 << 20);
    lane.probe(&cache, 0, MAX);
    let held = cache.get(5, 2, posting(0, 0)).unwrap();
    let again = cache.keep(5, 2, held.header, &held.value, BlockAccess::Probe);
    assert_eq!(again.unwrap().value, held.value);
    assert_eq!(cache.size_bytes(), size as u64);
}

#[test]
fn hit_block_outlives_blocks_read_once() {
    let transaction = begin_write();
    let [uniform, _] = lanes();
    let (wanted, size) = one_block(&transaction, 5);
    let others = Lane::write(&transaction, 6, &uniform);
    let bytes = others.summary.bytes as usize + ENTRY_BYTES * others.summary.blocks as usize;
    let cache = BlockCache::new(size + bytes / 2);
    wanted.probe(&cache, 0, MAX);
    let mut random = Random(3);
    for _ in 0..5_000 {
        let code = random.next() >> 24;
        others.probe(&cache, code, code);
        assert_eq!(wanted.probe(&cache, 0, MAX).1.cached_blocks, 1);
    }
}

#[test]
fn empty_lane_leaves_no_cache_entry() {
    let transaction = begin_write();
    let cache = BlockCache::new(1 << 20);
    for run in 0..40 {
        one_block(&transaction, run).0.probe(&cache, 0, MAX);
    }
    let lanes = || -> usize {
        let shards = cache.shards.iter();
        shards.map(|it| it.read().unwrap().lanes.len()).sum()
    };
    assert_eq!(lanes(), 40);
    cache.set_max_bytes(0);
    assert_eq!((lanes(), cache.size_bytes()), (0, 0));
}
