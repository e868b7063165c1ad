use std::collections::BTreeSet;

use redb::WriteTransaction;

use super::*;
use crate::error::Error;
use crate::format::{LaneSummary, NearCodes, split_block_key};
use crate::index::block_cache::BlockCache;
use crate::index::lane_probe::probe_lane;
use crate::index::run::{RunBlocks, is_of};
use crate::index::testing::{
    Random, TABLE, begin_write, in_range, lane_ref, lanes, posting, rows, write,
};
use crate::sample::one_in;

const MAX: u64 = u64::MAX;

/// Ranges of all widths, equal and overlapping ones among them, sorted by low code.
fn ranges(random: &mut Random, count: u32, postings: &BTreeSet<Posting>) -> Vec<ProbeRange> {
    let held: Vec<u64> = postings.iter().map(|posting| posting.code).collect();
    let mut wanted: Vec<ProbeRange> = (0..count)
        .map(|query_index| {
            let low_code = match random.below(4) {
                0 => random.next() >> random.below(64),
                1 => [0, 1, 1 << 60, MAX - 1, MAX][random.below(5) as usize],
                _ if held.is_empty() => MAX,
                _ => held[random.below(held.len() as u64) as usize],
            };
            let width = match random.below(8) {
                0 => random.next() >> random.below(64),
                1 => 1 << 34,
                _ => 0,
            };
            let near = NearCodes {
                code: low_code,
                max_distance: random.below(40) as u32,
            };
            ProbeRange {
                near: (random.below(2) == 0).then_some(near),
                ..ProbeRange::new(query_index, low_code, low_code.saturating_add(width))
            }
        })
        .collect();
    wanted.sort_by_key(|wanted| (wanted.low_code, wanted.query_index));
    wanted
}

fn is_near(wanted: &ProbeRange, posting: &Posting) -> bool {
    wanted.near.is_none_or(|near| near.have(posting.code))
}

/// The query of a range.
fn asked(postings: &BTreeSet<Posting>, wanted: &ProbeRange) -> Vec<Posting> {
    let mut asked = in_range(postings, wanted.low_code..=wanted.high_code);
    asked.retain(|posting| is_near(wanted, posting));
    asked
}

/// The results of each query_index, in order.
type Found = Vec<Vec<Posting>>;

fn sweep(
    transaction: &WriteTransaction,
    lane: &LaneSummary,
    wanted: &[ProbeRange],
) -> Result<(Found, ProbeCost)> {
    let table = transaction.open_table(TABLE).unwrap();
    let mut found = vec![Vec::new(); wanted.len()];
    let cost = sweep_lane(
        lane_ref(7, lane),
        || Ok(&table),
        BlockSources::memory(&BlockCache::new(0)),
        wanted,
        &mut |query_index, posting| {
            found[query_index as usize].push(posting);
            Ok(SweepControl::GoOn)
        },
    )?;
    Ok((found, cost))
}

/// The same, one range after the other.
fn probe(
    transaction: &WriteTransaction,
    lane: &LaneSummary,
    wanted: &[ProbeRange],
) -> Result<(Found, ProbeCost)> {
    let table = transaction.open_table(TABLE).unwrap();
    let mut found = vec![Vec::new(); wanted.len()];
    let mut cost = ProbeCost::default();
    for wanted in wanted {
        let visit = &mut |posting: Posting| {
            if is_near(wanted, &posting) {
                found[wanted.query_index as usize].push(posting);
            }
            Ok(())
        };
        let (low, high) = (wanted.low_code, wanted.high_code);
        cost.blocks += probe_lane(&table, lane_ref(7, lane), low, high, visit)?.blocks;
    }
    Ok((found, cost))
}

#[test]
fn sweep_agrees_with_probes_and_reads_each_block_once() {
    let transaction = begin_write();
    let mut random = Random(2);
    for (number, postings) in (2..).zip(lanes(20_000)) {
        for neighbour in [number - 1, number + 1] {
            write(&transaction, 7, neighbour, &postings);
        }
        let lane = write(&transaction, 7, number, &postings);
        for count in [0, 1, 2, 10, 100, 1_000] {
            let wanted = ranges(&mut random, count, &postings);
            let (swept, cost) = sweep(&transaction, &lane, &wanted).unwrap();
            let (probed, apart) = probe(&transaction, &lane, &wanted).unwrap();
            assert_eq!(swept, probed);
            assert!(cost.blocks <= lane.blocks, "{cost:?} of {lane:?}");
            if count <= 1 {
                assert_eq!(cost, apart);
            }
            for wanted in &wanted {
                let expected = asked(&postings, wanted);
                assert_eq!(swept[wanted.query_index as usize], expected);
            }
        }
        for neighbour in [number - 1, number, number + 1] {
            let mut table = transaction.open_table(TABLE).unwrap();
            crate::index::testing::delete_run(&mut table, 7, neighbour);
        }
    }
}

#[test]
fn sweep_reads_one_block_per_distant_code() {
    let transaction = begin_write();
    let postings = &lanes(20_000)[0];
    let lane = write(&transaction, 7, 2, postings);
    assert!(lane.blocks > 20);
    let wanted: Vec<ProbeRange> = (0..)
        .zip(postings.iter().step_by(postings.len() / 5 + 1))
        .map(|(query_index, posting)| ProbeRange::new(query_index, posting.code, posting.code))
        .collect();
    let (found, cost) = sweep(&transaction, &lane, &wanted).unwrap();
    assert!(found.iter().all(|found| found.len() == 1));
    assert_eq!((wanted.len(), cost.blocks), (5, 5));
}

#[test]
fn a_sweep_ends_when_its_visitor_stops() {
    let transaction = begin_write();
    let postings = &lanes(20_000)[1];
    let lane = write(&transaction, 7, 2, postings);
    let all = ProbeRange::new(0, 0, MAX);
    for wanted in [vec![all], vec![all; 500]] {
        let mut seen = 0;
        let table = transaction.open_table(TABLE).unwrap();
        let cost = sweep_lane(
            lane_ref(7, &lane),
            || Ok(&table),
            BlockSources::memory(&BlockCache::new(0)),
            &wanted,
            &mut |_, _| {
                seen += 1;
                Ok(if seen < 10 {
                    SweepControl::GoOn
                } else {
                    SweepControl::End
                })
            },
        );
        assert_eq!((seen, cost.unwrap().blocks), (10, 1));
    }
    let failed = {
        let table = transaction.open_table(TABLE).unwrap();
        let visit = &mut |_, _| Err(Error::Busy);
        let cache = BlockCache::new(0);
        sweep_lane(
            lane_ref(7, &lane),
            || Ok(&table),
            BlockSources::memory(&cache),
            &[all],
            visit,
        )
    };
    assert!(matches!(failed, Err(Error::Busy)));
}

/// One in fifteen blocks, one in five with `RESEMBLANCE_TESTS=all`, and the last.
#[test]
fn sweep_detects_lost_and_damaged_blocks() {
    let transaction = begin_write();
    let mut random = Random(3);
    for postings in &lanes(20_000)[..2] {
        write(&transaction, 7, 1, postings);
        write(&transaction, 7, 3, postings);
        let lane = write(&transaction, 7, 2, postings);
        let blocks = rows(&transaction);
        let blocks: Vec<_> = blocks.iter().filter(|(key, _)| is_of(key, 7, 2)).collect();
        let all = ProbeRange::new(0, 0, MAX);
        for (key, value) in blocks.iter().step_by(5 * one_in(3)).chain(blocks.last()) {
            let last = split_block_key(key).2;
            let of_last = ProbeRange::new(0, last.code, last.code);
            let mut flipped = value.clone();
            flipped[30] ^= 1;
            for wrong in [None, Some(flipped), Some(Vec::new())] {
                let mut table = transaction.open_table(TABLE).unwrap();
                match wrong {
                    Some(value) => drop(table.insert(key, value.as_slice()).unwrap()),
                    None => drop(table.remove(key).unwrap()),
                }
                drop(table);
                for wanted in [all, of_last] {
                    let damaged = sweep(&transaction, &lane, &[wanted]);
                    assert!(matches!(damaged, Err(Error::Corrupt { .. })));
                }
                let wanted = ranges(&mut random, 200, postings);
                match sweep(&transaction, &lane, &wanted) {
                    Ok((found, _)) => {
                        let probed = probe(&transaction, &lane, &wanted).unwrap();
                        assert_eq!(found, probed.0);
                    }
                    Err(error) => assert!(matches!(error, Error::Corrupt { .. })),
                }
            }
            let mut table: RunBlocks<'_> = transaction.open_table(TABLE).unwrap();
            table.insert(key, value.as_slice()).unwrap();
        }
        let whole = sweep(&transaction, &lane, &[all]).unwrap();
        assert!(whole.0[0].iter().eq(postings));
        for lane in 1..=3 {
            let mut table = transaction.open_table(TABLE).unwrap();
            crate::index::testing::delete_run(&mut table, 7, lane);
        }
    }
}

#[test]
fn sweep_searches_slices_for_near_and_distant_codes() {
    let mut random = Random(4);
    for length in [0, 1, 2, 3, 4, 5, 100, 1_000] {
        let postings: BTreeSet<Posting> = (0..length)
            .map(|id| posting(random.below(length) * 3, id))
            .collect();
        let sorted: Vec<Posting> = postings.iter().copied().collect();
        for code in 0..length * 3 + 2 {
            let below = sorted.iter().filter(|posting| posting.code < code).count();
            assert_eq!(postings_from(&sorted, code).unwrap(), &sorted[below..]);
        }
        let wanted = ranges(&mut random, 50, &postings);
        let mut found = vec![Vec::new(); wanted.len()];
        let visit = &mut |query_index: u32, posting| {
            found[query_index as usize].push(posting);
            Ok(SweepControl::GoOn)
        };
        assert!(sweep_slice(SortedPostings::Plain(&sorted), &wanted, visit).unwrap());
        for wanted in &wanted {
            let expected = asked(&postings, wanted);
            assert_eq!(found[wanted.query_index as usize], expected);
        }
    }
}
