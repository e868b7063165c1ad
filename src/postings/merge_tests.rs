use std::collections::BTreeSet;

use redb::{ReadableTable, WriteTransaction};

use super::super::lane_iter::lane_iter;
use super::super::run::write_lane;
use super::super::testing::{NAME, Random, TABLE, database, posting, rows, write};
use super::*;
use crate::Error;

/// Runs with neighbouring id ranges: lane 0 uniform, lane 1 crowded, lane 2 in some runs only.
fn runs(
    transaction: &WriteTransaction,
    sizes: &[u64],
) -> (Vec<RunDescriptor>, [BTreeSet<Posting>; 3]) {
    let mut random = Random(1);
    let mut all = [const { BTreeSet::new() }; 3];
    let mut descriptors = Vec::new();
    let mut first_id = 1 << 40;
    for (run, size) in (0..).zip(sizes) {
        let mut held = [const { BTreeSet::new() }; 3];
        for id in first_id..first_id + size {
            held[0].insert(posting(random.next(), id));
            held[1].insert(posting(random.below(3), id));
            held[2].insert(posting(random.below(1000) << 50, id));
        }
        let lanes = if run % 2 == 0 { 0..3 } else { 0..2 };
        let mut lane_summaries = Vec::new();
        for lane in lanes {
            lane_summaries.push(write(transaction, run, lane, &held[usize::from(lane)]));
            all[usize::from(lane)].extend(&held[usize::from(lane)]);
        }
        descriptors.push(RunDescriptor {
            run,
            level: 0,
            first_id,
            last_id: first_id + size,
            documents: size + 1,
            lanes: lane_summaries,
        });
        first_id += size;
    }
    (descriptors, all)
}

/// The rows that the postings would have if they had been written at once.
fn written_at_once(run: u32, lanes: &[BTreeSet<Posting>]) -> Vec<(BlockKey, Vec<u8>)> {
    let database = database();
    let transaction = database.begin_write().unwrap();
    for (lane, postings) in (0..).zip(lanes) {
        write(&transaction, run, lane, postings);
    }
    rows(&transaction)
}

#[test]
fn a_merge_gives_the_blocks_of_a_run_written_at_once() {
    let drops: [&dyn Fn(u64) -> bool; 4] =
        [&|_| false, &|id| id % 3 == 0, &|id| id % 7 != 0, &|_| true];
    for sizes in [&[4_000, 3_000, 1, 2_000][..], &[5_000], &[0, 10, 0]] {
        for is_dropped in drops {
            let database = database();
            let transaction = database.begin_write().unwrap();
            let (inputs, mut lanes) = runs(&transaction, sizes);
            let inputs: Vec<&RunDescriptor> = inputs.iter().collect();
            let mut table = transaction.open_table(TABLE).unwrap();
            let is_dropped = |id| is_dropped(id);
            let merged =
                merge_runs(&mut table, NAME, &[0, 1, 2], &inputs, 77, &is_dropped).unwrap();
            for (summary, lane) in merged.iter().zip(&mut lanes) {
                lane.retain(|posting| !is_dropped(posting.id));
                let found = lane_iter(&table, NAME, 77, summary).unwrap();
                assert!(found.map(Result::unwrap).eq(lane.iter().copied()));
            }
            drop(table);
            assert_eq!(merged.len(), 3);
            assert!(rows(&transaction) == written_at_once(77, &lanes));
        }
    }
}

#[test]
fn slices_of_any_size_give_the_same() {
    for blocks in [0, 1, 2, 5, 1_000] {
        let database = database();
        let transaction = database.begin_write().unwrap();
        let (inputs, lanes) = runs(&transaction, &[6_000, 6_000, 6_000]);
        let total: u64 = inputs.iter().map(|run| run.lanes[0].blocks).sum();
        let mut table = transaction.open_table(TABLE).unwrap();
        let of_lane = inputs.iter().map(|run| (run.run, run.lanes[0]));
        let mut merge = LaneMerge::new(NAME, of_lane, 3, 0);
        let (mut steps, mut most_postings, mut most_blocks) = (0, 0, 0);
        while !merge.step(&mut table, blocks, &|_| false).unwrap() {
            steps += 1;
            let held: usize = merge.inputs.iter().map(|input| input.postings.len()).sum();
            most_postings = most_postings.max(held);
            let (low, high) = (lane_bounds(0, 0).0, lane_bounds(3, 0).1);
            let blocks = table.range::<&BlockKey>(&low..=&high).unwrap().count() as u64;
            most_blocks = most_blocks.max(blocks - total.min(blocks));
        }
        merge.finish(&mut table).unwrap();
        drop(table);
        let others = |row: &(BlockKey, Vec<u8>)| row.0[5] == 0;
        let found: Vec<_> = rows(&transaction).into_iter().filter(others).collect();
        assert!(found == written_at_once(3, &lanes[..1]));
        // About 480 postings of 64-bit codes fit a block.
        assert!(most_postings <= 600 * blocks.max(3));
        if blocks < 3 {
            assert!(steps > 20);
            // Blocks are removed as they are passed: those in both runs at a time are those of
            // the writer's memory.
            assert!(most_blocks < 40, "{most_blocks}");
        }
    }
}

#[test]
fn a_damaged_input_ends_the_merge() {
    let database = database();
    let transaction = database.begin_write().unwrap();
    let (inputs, _) = runs(&transaction, &[3_000, 3_000]);
    let inputs: Vec<&RunDescriptor> = inputs.iter().collect();
    transaction.commit().unwrap();
    let (all, blocks) = {
        let transaction = database.begin_write().unwrap();
        (
            rows(&transaction),
            inputs.iter().map(|run| run.blocks()).sum::<u64>(),
        )
    };
    assert_eq!(all.len() as u64, blocks);
    for (index, (key, value)) in all.iter().enumerate() {
        let transaction = database.begin_write().unwrap();
        let mut table = transaction.open_table(TABLE).unwrap();
        if index % 2 == 0 {
            table.remove(key).unwrap().unwrap();
        } else {
            let mut damaged = value.clone();
            damaged[value.len() / 2] ^= 4;
            table.insert(key, damaged.as_slice()).unwrap();
        }
        let merged = merge_runs(&mut table, NAME, &[0, 1, 2], &inputs, 2, &|_| false);
        assert!(matches!(merged, Err(Error::Corrupt { .. })), "{index}");
        drop(table);
        transaction.abort().unwrap();
    }
}

#[test]
fn a_posting_in_two_inputs_is_noticed() {
    let database = database();
    let transaction = database.begin_write().unwrap();
    let mut table = transaction.open_table(TABLE).unwrap();
    let mut lane = |run| {
        let postings = [posting(1, 1), posting(2, 2)].map(Ok).into_iter();
        (run, write_lane(&mut table, NAME, run, 0, postings).unwrap())
    };
    let inputs = [lane(0), lane(1)];
    let mut merge = LaneMerge::new(NAME, inputs, 2, 0);
    let step = merge.step(&mut table, 64, &|_| false);
    assert!(matches!(step, Err(Error::Corrupt { .. })));
}
