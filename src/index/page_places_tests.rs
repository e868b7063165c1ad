use std::cell::Cell;
use std::collections::BTreeSet;

use redb::WriteTransaction;

use super::*;
use crate::engine::{FILTERS as FILTER_TABLE, RedbFile};
use crate::format::{FilterShape, LaneSummary};
use crate::index::filter_cache::FilterOf;
use crate::index::lane_probe::{FirstBlock, probe_lane_while};
use crate::index::run::ProbeCost;
use crate::index::run_cache::RunCache;
use crate::index::segment::{CodeRange, ProbeControl};
use crate::index::testing::delete_run;
use crate::index::testing::{
    BUCKETS, Random, TABLE, in_range, lane_ref, posting, tables, write, write_filtered,
};
use crate::options::StoreOptions;

/// Room for some two hundred places and a dozen blocks.
const MEMORY_BYTES: usize = 80_000;

const SHAPE: FilterShape = FilterShape {
    pieces: 60,
    blocks: 126,
    set_bits: 8,
};

struct File {
    engine: RedbFile,
    memory: RunCache,
    _folder: tempfile::TempDir,
}

/// A lane of a run, and what a probe must find of it.
struct Lane {
    run: u32,
    summary: LaneSummary,
    postings: BTreeSet<Posting>,
}

impl File {
    fn new(filter_bytes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions::new().cache_bytes(1 << 20);
        Self {
            engine: RedbFile::create(&folder.path().join("file"), &options.file_options()).unwrap(),
            memory: RunCache::new(MEMORY_BYTES, filter_bytes),
            _folder: folder,
        }
    }

    fn finder(&self) -> &PageFinder {
        self.engine.page_finder.as_ref().unwrap()
    }

    /// Writes lane 2 of some runs in a commit.
    fn commit(&self, runs: impl Iterator<Item = u32>) -> Vec<Lane> {
        let transaction = self.engine.begin_write().unwrap();
        let lanes = runs.map(|run| Lane::write(&transaction, run)).collect();
        transaction.commit().unwrap();
        lanes
    }

    /// Probes for some of the postings. Returns what it cost, and how often the engine was asked.
    fn probe(&self, transaction: &WriteTransaction, lane: &Lane) -> (ProbeCost, u32) {
        let table = transaction.open_table(TABLE).unwrap();
        let opened = Cell::new(0);
        let mut cost = ProbeCost::default();
        let sources = self.memory.sources(Some(self.finder()));
        for wanted in lane.postings.iter().step_by(97) {
            let lane_ref = lane_ref(lane.run, &lane.summary);
            let mut found = Vec::new();
            let open = || {
                opened.set(opened.get() + 1);
                Ok(&table)
            };
            let code = wanted.code;
            let range = CodeRange::new(lane.summary.lane, code, code);
            let first = FirstBlock::find_all(sources, &[Some((lane_ref, wanted.code))]).unwrap();
            let first = first.into_iter().next().unwrap();
            let visit = &mut |posting| {
                found.push(posting);
                Ok(ProbeControl::GoOn)
            };
            cost.add(probe_lane_while(lane_ref, first, open, sources, &range, visit).unwrap());
            assert_eq!(found, in_range(&lane.postings, code..=code));
        }
        (cost, opened.get())
    }
}

impl Lane {
    fn write(transaction: &WriteTransaction, run: u32) -> Self {
        let mut random = Random(run.into());
        let postings = (0..20_000).map(|id| posting(random.next(), id)).collect();
        Self {
            run,
            summary: write(transaction, run, 2, &postings),
            postings,
        }
    }
}

/// Once the pages around each have been found, the engine is not asked any more.
#[test]
fn blocks_are_read_at_their_places() {
    let file = File::new(0);
    let lanes = file.commit(0..3);
    let transaction = file.engine.begin_write().unwrap();
    for lane in &lanes {
        let (first, asked) = file.probe(&transaction, lane);
        assert!(asked > 0 && u64::from(asked) < first.blocks / 4, "{asked}");
        let (second, asked) = file.probe(&transaction, lane);
        // The memory has some of the blocks only.
        assert!(second.cached_blocks < second.blocks / 2);
        assert_eq!(asked, 0);
    }
    let held = file.memory.block_bytes();
    assert!(held <= MEMORY_BYTES as u64, "{held}");
    file.memory.retain_runs(|run| run == 1);
    assert_eq!(file.probe(&transaction, &lanes[1]).1, 0);
    assert!(file.probe(&transaction, &lanes[2]).1 > 0);
    file.memory.clear();
    assert_eq!(file.memory.block_bytes(), 0);
}

/// Runs are removed and others take their pages, commit after commit: the right blocks are found throughout.
#[test]
fn page_places_follow_moved_pages() {
    let file = File::new(0);
    let mut lanes = file.commit(0..4);
    for round in 1..6 {
        let transaction = file.engine.begin_write().unwrap();
        lanes.iter().for_each(|lane| {
            file.probe(&transaction, lane);
        });
        let gone = lanes.remove(0);
        delete_run(&mut tables(&transaction).blocks, gone.run, 2);
        transaction.commit().unwrap();
        // Pages are free for others after the commit that follows.
        lanes.extend(file.commit(round * 10..round * 10 + 1));
    }
}

/// A transaction probes what it has written itself: the pages of the last commit do not have it, and are searched
/// once.
#[test]
fn uncommitted_rows_are_searched_for_once() {
    let file = File::new(0);
    file.commit(0..3);
    let transaction = file.engine.begin_write().unwrap();
    let lane = Lane::write(&transaction, 9);
    file.probe(&transaction, &lane);
    let read = || file.engine.counters.reads.get();
    let before = read();
    let (cost, asked) = file.probe(&transaction, &lane);
    assert!(u64::from(asked) > cost.blocks / 2);
    // The engine's own cache has the pages of the transaction.
    assert_eq!(read(), before);
    transaction.commit().unwrap();
    let transaction = file.engine.begin_write().unwrap();
    file.probe(&transaction, &lane);
    assert_eq!(file.probe(&transaction, &lane).1, 0);
}

#[test]
fn pieces_of_filters_are_read_at_their_places() {
    // Room for a few of the pieces.
    let file = File::new(20_000);
    let transaction = file.engine.begin_write().unwrap();
    let mut random = Random(5);
    let postings: BTreeSet<_> = (0..9_000).map(|id| posting(random.next(), id)).collect();
    for run in [3, 4] {
        write_filtered(&transaction, run, 2, SHAPE, &postings);
    }
    transaction.commit().unwrap();
    let transaction = file.engine.begin_write().unwrap();
    let table = transaction.open_table(FILTER_TABLE).unwrap();
    let ask = |run: u32, code: u64| {
        let filter = FilterOf {
            run,
            lane: 2,
            shape: SHAPE,
            buckets: BUCKETS,
        };
        let opened = Cell::new(false);
        let open = || {
            opened.set(true);
            Ok(&table)
        };
        let memory = &file.memory;
        let answer = memory.read_filter(open, Some(file.finder()), &filter, code, code);
        (answer.unwrap(), opened.get())
    };
    for run in [3, 4] {
        let opened = postings.iter().step_by(9).map(|posting| {
            let (may_hold, opened) = ask(run, posting.code);
            assert!(may_hold);
            opened
        });
        let opened = opened.filter(|opened| *opened).count();
        assert!((1..20).contains(&opened), "{opened}");
        let absent = (0..1_000).filter(|_| {
            let (may_hold, opened) = ask(run, random.next());
            assert!(!opened);
            !may_hold
        });
        // With 150 postings in each piece and 200 bits for each piece, hardly one in a thousand is
        // a false positive.
        assert!(absent.count() > 950);
    }
}

/// If lanes are queried at random, those that have room find their places, whichever is evicted:
/// 4,000 questions with a share of 1/4 that find none have a standard deviation of 27.
#[test]
fn page_places_evict_lanes_in_turn() {
    const ROOM: usize = 30;
    let named = || NamedPages {
        after: None,
        pages: Box::new([(Posting::MAX, PagePlace::default())]),
    };
    let size = named().size_bytes();
    let places = PagePlaces::new(ROOM * size);
    let mut random = Random(5);
    let mut missed = 0;
    for question in 0..4_000 {
        let run = (random.next() % 40) as u32;
        let row = RunRow::block("bands", (run, 1), Posting::lowest_of(question));
        if places.page_of(&row).is_none() {
            missed += 1;
            places.note(&mut places.lanes.write().unwrap(), row.rows, named());
        }
        assert!(places.size_bytes() <= ROOM * size);
    }
    assert!(
        (1_000 - 8 * 27..1_000 + 8 * 27).contains(&missed),
        "{missed}"
    );
    assert_eq!(places.size_bytes(), ROOM * size);
    places.set_max_bytes(10 * size);
    let rows = RunRow::block("bands", (99, 1), Posting::MAX).rows;
    let too_many = NamedPages {
        after: None,
        pages: vec![(Posting::MAX, PagePlace::default()); 1_000].into(),
    };
    places.note(&mut places.lanes.write().unwrap(), rows, too_many);
    assert_eq!(places.size_bytes(), 10 * size);
    places.set_max_bytes(0);
    assert_eq!(places.size_bytes(), 0);
}
