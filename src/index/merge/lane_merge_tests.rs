use std::collections::BTreeSet;

use redb::{ReadableTable, WriteTransaction};

use super::*;
use crate::format::{BlockKey, FilterShape};
use crate::index::filter_cache::FilterOf;
use crate::index::lane_iter::lane_iter;
use crate::index::lane_probe::probe_lane;
use crate::index::lane_writer::write_lane;
use crate::index::merge::lane_source::{InputBlock, LaneSource};
use crate::index::merge::pipeline::MergeBudget;
use crate::index::run_cache::RunCache;
use crate::index::testing::{
    BUCKETS, NAME, Random, TABLE, begin_write, database, lane_ref, pieces, posting, rows, tables,
    write, write_filtered,
};
use crate::sample::one_in;

/// The lane that is merged in these tests.
const LANE: u16 = 1;

/// A lane of some runs.
type Inputs = Vec<(u32, LaneSummary)>;

fn filter_of(run: u32, shape: FilterShape) -> FilterOf {
    FilterOf {
        run,
        lane: LANE,
        shape,
        buckets: BUCKETS,
    }
}

/// How codes are spread.
const SPREADS: [fn(&mut Random) -> u64; 3] = [
    |random| random.next(),
    |random| random.below(3),
    |random| random.below(1000) << 50,
];

/// Writes runs 0, 1, … with neighbouring ranges of ids, each with this number of documents.
fn write_runs(
    transaction: &WriteTransaction,
    sizes: &[u64],
    spread: fn(&mut Random) -> u64,
) -> (Inputs, BTreeSet<Posting>) {
    let mut random = Random(1);
    let (mut inputs, mut all) = (Vec::new(), BTreeSet::new());
    let mut first_id = 1 << 40;
    for (run, size) in (0..).zip(sizes) {
        let ids = first_id..first_id + size;
        let held: BTreeSet<_> = ids.map(|id| posting(spread(&mut random), id)).collect();
        let shape = FilterShape::new(*size, 10);
        inputs.push((run, write_filtered(transaction, run, LANE, shape, &held)));
        all.extend(held);
        first_id += size;
    }
    (inputs, all)
}

/// Returns the rows of blocks and filters that result from writing the postings in one step.
fn written_at_once(
    run: u32,
    shape: FilterShape,
    postings: &BTreeSet<Posting>,
) -> (Vec<(BlockKey, Vec<u8>)>, usize) {
    let transaction = begin_write();
    write_filtered(&transaction, run, LANE, shape, postings);
    (rows(&transaction), pieces(&transaction).len())
}

fn merge_of(tables: &RunTables<'_>, inputs: &Inputs, run: u32, output: LaneSummary) -> LaneMerge {
    LaneMerge::new(tables, BUCKETS, inputs.iter().copied(), run, output).unwrap()
}

/// Returns a step of this number of blocks.
fn step_of(blocks: usize) -> MergeBudget {
    MergeBudget {
        postings: 1,
        blocks,
        is_parallel: false,
    }
}

/// Merges with a pause after each budget, and calls `look` in each.
fn merge_with_pauses(
    transaction: &WriteTransaction,
    inputs: &mut Inputs,
    (run, shape): (u32, FilterShape),
    budget: MergeBudget,
    is_dropped: &(impl Fn(u64) -> bool + Sync),
    look: &mut dyn FnMut(&Inputs, &LaneSummary),
) -> LaneSummary {
    let mut output = LaneSummary {
        filter: Some(shape),
        ..LaneSummary::empty(LANE)
    };
    loop {
        let mut tables = tables(transaction);
        let mut merge = merge_of(&tables, inputs, run, output);
        let step = merge.advance(&mut tables, budget, is_dropped).unwrap();
        if step.is_last {
            return merge.finish(&mut tables).unwrap();
        }
        let (written, left) = merge.pause(&mut tables).unwrap();
        output = written;
        for (input, left) in inputs.iter_mut().zip(left) {
            input.1 = left;
        }
        drop(tables);
        look(inputs, &output);
    }
}

/// The postings of the inputs and the output together.
fn stream_all(
    transaction: &WriteTransaction,
    inputs: &Inputs,
    (run, output): (u32, &LaneSummary),
) -> Vec<Posting> {
    let table = transaction.open_table(TABLE).unwrap();
    let mut all = Vec::new();
    for (run, lane) in inputs.iter().chain([&(run, *output)]) {
        let stream = lane_iter(&table, NAME, *run, lane).unwrap();
        all.extend(stream.map(Result::unwrap));
    }
    all.sort_unstable();
    all
}

#[test]
fn paused_merge_writes_the_run_of_an_unpaused_one() {
    let drops: [fn(u64) -> bool; 4] = [|_| false, |id| id % 3 == 0, |id| id % 7 != 0, |_| true];
    let mut pauses = 0;
    for sizes in [&[4_000, 3_000, 1, 2_000][..], &[5_000], &[0, 10, 0]] {
        for (spread, is_dropped) in SPREADS.into_iter().flat_map(|s| drops.map(|d| (s, d))) {
            for blocks in [1, 9, 10_000] {
                let transaction = begin_write();
                let (mut inputs, all) = write_runs(&transaction, sizes, spread);
                let shape = FilterShape::new(all.len() as u64, 10);
                let kept: BTreeSet<_> = all.iter().filter(|p| !is_dropped(p.id)).copied().collect();
                let summary = merge_with_pauses(
                    &transaction,
                    &mut inputs,
                    (77, shape),
                    step_of(blocks),
                    &is_dropped,
                    &mut |inputs, output| {
                        pauses += 1;
                        if pauses % 8 == 1 {
                            let found = stream_all(&transaction, inputs, (77, output));
                            assert!(found.is_sorted_by(|a, b| a < b));
                            let found: BTreeSet<_> = found.into_iter().collect();
                            assert!(kept.is_subset(&found) && found.is_subset(&all));
                        }
                    },
                );
                let table = transaction.open_table(TABLE).unwrap();
                let found = lane_iter(&table, NAME, 77, &summary).unwrap();
                assert!(found.map(Result::unwrap).eq(kept.iter().copied()));
                drop(table);
                let (blocks, filter_pieces) = written_at_once(77, shape, &kept);
                assert!(rows(&transaction) == blocks);
                assert_eq!(pieces(&transaction).len(), filter_pieces);
                assert_eq!(summary.after, None);
            }
        }
    }
    assert!(pauses > 150, "{pauses}");
}

/// Blocks and pieces of filters after each pause, and the summary in the end.
fn history(budget: MergeBudget, is_dropped: &(impl Fn(u64) -> bool + Sync)) -> Vec<String> {
    let transaction = begin_write();
    let sizes = [7_000, 3_000, 1, 5_000];
    let (mut inputs, all) = write_runs(&transaction, &sizes, SPREADS[0]);
    let shape = FilterShape::new(all.len() as u64, 10);
    let mut history = Vec::new();
    let content = || {
        let tables = (rows(&transaction), pieces(&transaction));
        format!(
            "{:x}",
            xxhash_rust::xxh3::xxh3_128(format!("{tables:?}").as_bytes())
        )
    };
    let mut look = |inputs: &Inputs, output: &LaneSummary| {
        history.push(format!("{} {inputs:?} {output:?}", content()));
    };
    let output = (77, shape);
    let summary = merge_with_pauses(
        &transaction,
        &mut inputs,
        output,
        budget,
        is_dropped,
        &mut look,
    );
    history.push(format!("{} {summary:?}", content()));
    history
}

/// Each budget with one of the ways to drop in turn, with all of them with `RESEMBLANCE_TESTS=all`.
#[test]
fn merge_with_two_threads_equals_merge_with_one() {
    let distance = one_in(3);
    let drops: [fn(u64) -> bool; 3] = [|_| false, |id| id % 3 == 0, |_| true];
    let mut pauses = 0;
    let budgets = [(1, 4), (1_000, 1), (7_000, 8), (u64::MAX, 64)];
    for (number, (postings, blocks)) in budgets.into_iter().enumerate() {
        for is_dropped in drops.iter().skip(number % distance).step_by(distance) {
            let [one, two] = [false, true].map(|is_parallel| {
                let budget = MergeBudget {
                    postings,
                    blocks,
                    is_parallel,
                };
                history(budget, is_dropped)
            });
            assert!(one == two, "{postings} {blocks}");
            pauses += one.len() - 1;
        }
    }
    assert!(pauses > 50 / distance, "{pauses}");
}

#[test]
fn a_panic_of_the_second_thread_is_an_error() {
    let transaction = begin_write();
    let (inputs, _) = write_runs(&transaction, &[30_000, 30_000], SPREADS[0]);
    let mut tables = tables(&transaction);
    let mut merge = merge_of(&tables, &inputs, 2, LaneSummary::empty(LANE));
    let budget = MergeBudget {
        postings: u64::MAX,
        blocks: 4,
        is_parallel: true,
    };
    let is_dropped = |id| {
        assert!(id != (1 << 40) + 25_000, "a surprise");
        false
    };
    let error = merge.advance(&mut tables, budget, &is_dropped).unwrap_err();
    assert!(error.to_string().contains("a surprise"), "{error}");
    assert!(matches!(error, Error::Bug { .. }));
}

/// Each posting is found by a probe that asks the filters first, in every pause; and what is in
/// no input is mostly ruled out.
#[test]
fn probes_find_everything_during_a_merge() {
    let transaction = begin_write();
    let (mut inputs, all) = write_runs(&transaction, &[9_000, 9_000, 9_000], SPREADS[0]);
    let shape = FilterShape::new(27_000, 10);
    let mut looks = 0;
    let probe = |(run, lane): (u32, LaneSummary), code: u64, found: &mut Vec<Posting>| {
        let tables = tables(&transaction);
        let is_output = run == 77;
        if lane.after.is_some_and(|after| code < after.code) {
            // A reader skips such a lane: the pieces of its filter have been removed.
            assert!(!is_output);
        } else if let Some(shape) = lane.filter.filter(|_| !is_output) {
            // Nothing stays in this cache: the pieces themselves are asked.
            let cache = RunCache::new(0, 0);
            let filter = filter_of(run, shape);
            let held = cache.read_filter(|| Ok(&tables.filters), None, &filter, code, code);
            if !held.unwrap() {
                return;
            }
        }
        let blocks = &tables.blocks;
        probe_lane(blocks, lane_ref(run, &lane), code, code, &mut |posting| {
            found.push(posting);
            Ok(())
        })
        .unwrap();
    };
    let mut look = |inputs: &Inputs, output: &LaneSummary| {
        looks += 1;
        for expected in all.iter().skip(looks % 50).step_by(50) {
            let mut found = Vec::new();
            for lane in inputs.iter().copied().chain([(77, *output)]) {
                probe(lane, expected.code, &mut found);
            }
            assert_eq!(found, [*expected]);
        }
    };
    let dropped = |_| false;
    let summary = merge_with_pauses(
        &transaction,
        &mut inputs,
        (77, shape),
        step_of(2),
        &dropped,
        &mut look,
    );
    assert!(looks > 10, "{looks}");
    let tables = tables(&transaction);
    let cache = RunCache::new(1 << 20, 1 << 20);
    for expected in &all {
        let code = expected.code;
        let filter = filter_of(77, summary.filter.unwrap());
        assert!(
            cache
                .read_filter(|| Ok(&tables.filters), None, &filter, code, code)
                .unwrap()
        );
    }
}

#[test]
fn pipeline_memory_is_bounded_and_passed_blocks_are_freed() {
    for blocks in [0, 1, 2, 5] {
        let transaction = begin_write();
        let (inputs, _) = write_runs(&transaction, &[6_000, 6_000, 6_000], SPREADS[0]);
        let total = rows(&transaction).len() as u64;
        let mut tables = tables(&transaction);
        let mut merge = merge_of(&tables, &inputs, 3, LaneSummary::empty(LANE));
        let (mut steps, mut most_postings, mut most_blocks) = (0, 0, 0);
        while !merge.step(&mut tables, blocks, &|_| false).unwrap().is_last {
            steps += 1;
            most_postings = most_postings.max(merge.work.held());
            let there = tables.blocks.iter().unwrap().count() as u64;
            most_blocks = most_blocks.max(there - total.min(there));
        }
        merge.finish(&mut tables).unwrap();
        // About 480 postings of 64-bit codes fit a block.
        assert!(most_postings <= 600 * blocks.max(3));
        if blocks < 3 {
            assert!(steps > 20);
            // Both runs contain only as many at a time as fit into the writer's memory.
            assert!(most_blocks < 40, "{most_blocks}");
        }
    }
}

#[test]
fn merge_ends_at_a_damaged_input() {
    let database = database();
    let transaction = database.begin_write().unwrap();
    let (inputs, _) = write_runs(&transaction, &[3_000, 3_000], SPREADS[0]);
    transaction.commit().unwrap();
    let all = rows(&database.begin_write().unwrap());
    for (index, (key, value)) in all.iter().enumerate() {
        let transaction = database.begin_write().unwrap();
        let mut tables = tables(&transaction);
        if index % 2 == 0 {
            tables.blocks.remove(key).unwrap().unwrap();
        } else {
            let mut damaged = value.clone();
            damaged[value.len() / 2] ^= 4;
            tables.blocks.insert(key, damaged.as_slice()).unwrap();
        }
        let mut merge = merge_of(&tables, &inputs, 2, LaneSummary::empty(LANE));
        let budget = MergeBudget {
            postings: u64::MAX,
            blocks: 4,
            is_parallel: index % 3 == 0,
        };
        let error = merge.advance(&mut tables, budget, &|_| false).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{index}");
        drop(tables);
        transaction.abort().unwrap();
    }
}

#[test]
fn merge_detects_a_posting_in_two_inputs() {
    let transaction = begin_write();
    let postings = [posting(1, 1), posting(2, 2)];
    let lane = |run| {
        let postings = postings.map(Ok).into_iter();
        let written = write_lane(&mut tables(&transaction), run, LANE, None, postings);
        (run, written.unwrap())
    };
    let inputs = vec![lane(0), lane(1)];
    let mut tables = tables(&transaction);
    let mut merge = merge_of(&tables, &inputs, 2, LaneSummary::empty(LANE));
    let step = merge.step(&mut tables, 64, &|_| false);
    assert!(matches!(step, Err(Error::Corrupt { .. })));
}

#[test]
fn merge_includes_a_lane_of_one_input() {
    let transaction = begin_write();
    let held: BTreeSet<_> = (0..100).map(|id| posting(id % 7, id)).collect();
    let inputs = vec![
        (0, LaneSummary::empty(LANE)),
        (1, write(&transaction, 1, LANE, &held)),
    ];
    let mut tables = tables(&transaction);
    let mut merge = merge_of(&tables, &inputs, 2, LaneSummary::empty(LANE));
    assert!(merge.step(&mut tables, 64, &|_| false).unwrap().is_last);
    let summary = merge.finish(&mut tables).unwrap();
    let found = lane_iter(&tables.blocks, NAME, 2, &summary).unwrap();
    assert!(found.map(Result::unwrap).eq(held));
}

/// The faults that may occur between the tables and the merge of a block.
const SLIPS: [fn(&mut MergeChunk, usize); 5] = [
    // The last block of each input is left out.
    |chunk, _| {
        let last = |blocks: &[InputBlock], at: usize| {
            let next = blocks.get(at + 1);
            next.is_none_or(|next| next.input != blocks[at].input)
        };
        forge(chunk, |blocks, at| {
            (!last(blocks, at)).then_some(blocks[at])
        });
    },
    // One block in fifty is attributed to another input.
    |chunk, inputs| {
        forge(chunk, |blocks, at| {
            let mut block = blocks[at];
            if at % 50 == 49 {
                block.input = (block.input + 1) % inputs;
            }
            Some(block)
        });
    },
    // One block in fifty is attributed to an input that does not exist.
    |chunk, _| {
        forge(chunk, |blocks, at| {
            let mut block = blocks[at];
            if at % 50 == 49 {
                block.input = usize::MAX;
            }
            Some(block)
        });
    },
    // A block is left out in the middle.
    |chunk, _| forge(chunk, |blocks, at| (at != 7).then_some(blocks[at])),
    // The chunk extends beyond what has been read.
    |chunk, _| chunk.bound = Some(Posting::MAX),
];

fn forge(chunk: &mut MergeChunk, change: impl Fn(&[InputBlock], usize) -> Option<InputBlock>) {
    let rows: Vec<(InputBlock, Vec<u8>)> = chunk
        .blocks
        .iter()
        .map(|row| row.map(|(block, value)| (*block, value.to_vec())))
        .collect::<crate::error::Result<_>>()
        .unwrap();
    let blocks: Vec<InputBlock> = rows.iter().map(|(block, _)| *block).collect();
    chunk.blocks.clear();
    for (at, (_, value)) in rows.iter().enumerate() {
        if let Some(block) = change(&blocks, at) {
            chunk.blocks.push(block, value);
        }
    }
}

#[test]
fn merge_reports_a_lost_or_swapped_block_as_a_bug() {
    for (slip, cause) in SLIPS.into_iter().enumerate() {
        let transaction = begin_write();
        let (inputs, _) = write_runs(&transaction, &[40_000, 40_000], SPREADS[0]);
        let tables = tables(&transaction);
        let mut merge = merge_of(&tables, &inputs, 2, LaneSummary::empty(LANE));
        let mut chunk = MergeChunk::default();
        merge
            .progress
            .source
            .read(&tables, 120, &mut chunk)
            .unwrap();
        assert!(!chunk.is_last);
        cause(&mut chunk, inputs.len());
        let error = merge.work.step(&mut chunk, |_| false).unwrap_err();
        assert!(matches!(error, Error::Bug { .. }), "{slip}: {error}");
    }
}

/// Leaves out the last of the blocks that each input has left, in each slice.
fn merge_without_last_blocks(blocks: usize, inputs: &Inputs, tables: &mut RunTables<'_>) -> Error {
    let mut inputs = inputs.clone();
    let mut output = LaneSummary::empty(LANE);
    loop {
        let mut merge = merge_of(tables, &inputs, 7, output);
        let fewer = inputs.iter().map(|(run, lane)| {
            let blocks = lane.blocks.min(1).max(lane.blocks.saturating_sub(1));
            (*run, LaneSummary { blocks, ..*lane })
        });
        merge.progress.source = LaneSource::new(BUCKETS, fewer);
        let step = match merge.advance(tables, step_of(blocks), &|id| id % 3 == 0) {
            Ok(step) => step,
            Err(error) => return error,
        };
        if step.is_last {
            return merge.finish(tables).unwrap_err();
        }
        let (written, left) = match merge.pause(tables) {
            Ok(paused) => paused,
            Err(error) => return error,
        };
        output = written;
        for (input, left) in inputs.iter_mut().zip(left) {
            // The block that was left out is still in the table.
            let blocks = left.blocks + u64::from(input.1.blocks > 1);
            input.1 = LaneSummary { blocks, ..left };
        }
    }
}

#[test]
fn merge_without_the_last_blocks_is_a_bug() {
    for sizes in [&[9_000, 9_000, 9_000, 9_000][..], &[9_000]] {
        for blocks in [1, 9, 10_000] {
            let transaction = begin_write();
            let (inputs, _) = write_runs(&transaction, sizes, SPREADS[0]);
            let mut tables = tables(&transaction);
            let error = merge_without_last_blocks(blocks, &inputs, &mut tables);
            assert!(matches!(error, Error::Bug { .. }), "{blocks}: {error}");
        }
    }
}

#[test]
fn incomplete_merge_is_a_bug() {
    let transaction = begin_write();
    let (inputs, _) = write_runs(&transaction, &[9_000, 9_000], SPREADS[0]);
    let mut tables = tables(&transaction);
    let mut merge = merge_of(&tables, &inputs, 2, LaneSummary::empty(LANE));
    merge.step(&mut tables, 8, &|_| false).unwrap();
    let error = merge.finish(&mut tables).unwrap_err();
    assert!(matches!(error, Error::Bug { .. }), "{error}");
}

#[test]
fn descriptors_that_contradict_the_blocks_are_damage() {
    let forgeries: [fn(&mut LaneSummary); 5] = [
        |lane| lane.postings -= 1,
        |lane| lane.blocks -= 1,
        |lane| lane.blocks += 1,
        |lane| lane.bytes += 1,
        |lane| lane.postings = 1,
    ];
    for forge in forgeries {
        for blocks in [1, 10_000] {
            let transaction = begin_write();
            let (mut inputs, _) = write_runs(&transaction, &[9_000, 9_000], SPREADS[0]);
            forge(&mut inputs[1].1);
            let mut tables = tables(&transaction);
            let mut merge = merge_of(&tables, &inputs, 2, LaneSummary::empty(LANE));
            let error = loop {
                match merge.step(&mut tables, blocks, &|_| false) {
                    Ok(step) => assert!(!step.is_last),
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        }
    }
    let transaction = begin_write();
    let (mut inputs, _) = write_runs(&transaction, &[900, 0], SPREADS[0]);
    inputs[1].1.postings = 3;
    let mut tables = tables(&transaction);
    let mut merge = merge_of(&tables, &inputs, 2, LaneSummary::empty(LANE));
    assert!(merge.step(&mut tables, 64, &|_| false).unwrap().is_last);
    let error = merge.finish(&mut tables).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}
