use std::collections::BTreeSet;

use redb::{Database, ReadableDatabase, WriteTransaction};

use super::*;
use crate::error::Error;
use crate::format::{BlockKey, LaneSummary, split_block_key};
use crate::index::k_way::ChunkIter;
use crate::index::lane_iter::{lane_iter, read_lane};
use crate::index::lane_writer::write_lane;
use crate::index::run::{RunBlocks, is_of};
use crate::index::testing::delete_run;
use crate::index::testing::{
    NAME, Random, TABLE, begin_write, database, in_range, lane_ref, lanes, posting, rows, tables,
    write,
};

const MAX: u64 = u64::MAX;

fn probe(
    transaction: &WriteTransaction,
    run: u32,
    lane: &LaneSummary,
    codes: std::ops::RangeInclusive<u64>,
) -> Result<(Vec<Posting>, ProbeCost)> {
    let table = transaction.open_table(TABLE).unwrap();
    let mut found = Vec::new();
    let (low, high) = codes.into_inner();
    let cost = probe_lane(&table, lane_ref(run, lane), low, high, &mut |posting| {
        found.push(posting);
        Ok(())
    })?;
    Ok((found, cost))
}

fn stream(transaction: &WriteTransaction, run: u32, lane: &LaneSummary) -> Result<Vec<Posting>> {
    let table = transaction.open_table(TABLE).unwrap();
    lane_iter(&table, NAME, run, lane)?.collect()
}

/// Two runs of the same lanes, so that each lane has neighbours.
fn two_runs(database: &Database) -> (WriteTransaction, Vec<(u32, LaneSummary, BTreeSet<Posting>)>) {
    let transaction = database.begin_write().unwrap();
    let mut written = Vec::new();
    for run in [0, u32::MAX] {
        for (lane, postings) in lanes(5_000).into_iter().enumerate() {
            let lane = if lane == 5 { u16::MAX } else { lane as u16 };
            let summary = write(&transaction, run, lane, &postings);
            assert_eq!(summary.lane, lane);
            assert_eq!(summary.postings, postings.len() as u64);
            assert_eq!(summary.last, postings.last().copied());
            written.push((run, summary, postings));
        }
    }
    (transaction, written)
}

#[test]
fn lane_summary_counts_the_table() {
    let database = database();
    let (transaction, written) = two_runs(&database);
    let rows = rows(&transaction);
    let blocks: u64 = written.iter().map(|(_, lane, _)| lane.blocks).sum();
    let bytes: u64 = written.iter().map(|(_, lane, _)| lane.bytes).sum();
    assert_eq!(blocks, rows.len() as u64);
    assert_eq!(bytes, rows.iter().map(|(_, v)| v.len() as u64).sum::<u64>());
}

#[test]
fn probes_agree_with_a_set() {
    let database = database();
    let (transaction, written) = two_runs(&database);
    let mut random = Random(2);
    for (run, lane, postings) in &written {
        let mut codes = vec![0, 1, 2, 3, MAX - 1, MAX];
        codes.extend((0..50).map(|_| random.next() >> random.below(64)));
        let held: Vec<u64> = postings.iter().map(|posting| posting.code).collect();
        codes.extend(
            held.iter()
                .step_by(97)
                .flat_map(|code| [*code, code.saturating_add(1)]),
        );
        for low in codes {
            for high in [low, low | 0xffff, low | (MAX >> 10), MAX] {
                let (found, cost) = probe(&transaction, *run, lane, low..=high).unwrap();
                assert_eq!(found, in_range(postings, low..=high));
                // At most one block that holds nothing of the range.
                let least = found.len() as u64 / crate::format::BLOCK_POSTINGS as u64;
                assert!(cost.blocks >= least && cost.blocks <= lane.blocks);
            }
        }
    }
}

#[test]
fn a_probe_of_one_code_mostly_reads_one_block() {
    let database = database();
    let (transaction, written) = two_runs(&database);
    let (run, lane, postings) = &written[0];
    let mut blocks = 0;
    for posting in postings {
        let codes = posting.code..=posting.code;
        blocks += probe(&transaction, *run, lane, codes).unwrap().1.blocks;
    }
    // Codes are unique: only the last one of a block, which is there once a block, makes a probe
    // look into the next one.
    assert_eq!(blocks, postings.len() as u64 + lane.blocks - 1);
}

#[test]
fn lane_streams_its_postings_unchanged() {
    let database = database();
    let (transaction, written) = two_runs(&database);
    for (run, lane, postings) in &written {
        let streamed = stream(&transaction, *run, lane).unwrap();
        assert!(streamed.iter().eq(postings));
    }
    transaction.commit().unwrap();
    for (run, lane, postings) in &written {
        let reading = database.begin_read().unwrap();
        let table = reading.open_table(TABLE).unwrap();
        let streamed = ChunkIter::new(read_lane(&table, NAME, *run, lane).unwrap());
        drop((table, reading));
        let streamed: Vec<_> = streamed.collect::<Result<_>>().unwrap();
        assert!(streamed.iter().eq(postings));
    }
}

#[test]
fn bucket_of_hundreds_of_blocks_is_probed() {
    let transaction = begin_write();
    let first_id = MAX - 2_000_000;
    let ids = |from: u64| (from..from + 1_000_000).map(|id| posting(7, id));
    let postings: BTreeSet<_> = ids(first_id)
        .chain([posting(6, 5), posting(8, 5)])
        .collect();
    let lane = write(&transaction, 1, 2, &postings);
    assert!(lane.blocks > 200, "{}", lane.blocks);
    let (found, cost) = probe(&transaction, 1, &lane, 7..=7).unwrap();
    assert!(found.into_iter().eq(ids(first_id)));
    assert_eq!(cost.blocks, lane.blocks);
    for code in [6, 8] {
        let (found, _) = probe(&transaction, 1, &lane, code..=code).unwrap();
        assert_eq!(found, [posting(code, 5)]);
    }
    assert!(stream(&transaction, 1, &lane).unwrap().iter().eq(&postings));
}

#[test]
fn postings_out_of_order_are_refused() {
    let transaction = begin_write();
    let mut tables = tables(&transaction);
    for wrong in [[posting(2, 1), posting(1, 1)], [posting(1, 1); 2]] {
        let error = write_lane(&mut tables, 1, 2, None, wrong.into_iter().map(Ok)).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }));
    }
    let failing = [Ok(posting(1, 1)), Err(Error::Busy)];
    let error = write_lane(&mut tables, 1, 2, None, failing.into_iter()).unwrap_err();
    assert!(matches!(error, Error::Busy));
}

#[test]
fn an_error_of_the_visitor_ends_the_probe() {
    let transaction = begin_write();
    let lane = write(
        &transaction,
        1,
        2,
        &(0..9).map(|id| posting(1, id)).collect(),
    );
    let table = transaction.open_table(TABLE).unwrap();
    let mut visits = 0;
    let result = probe_lane(&table, lane_ref(1, &lane), 1, 1, &mut |_| {
        visits += 1;
        if visits == 3 {
            Err(Error::Busy)
        } else {
            Ok(())
        }
    });
    assert!(matches!(result, Err(Error::Busy)));
    assert_eq!(visits, 3);
}

#[test]
fn deleting_a_lane_leaves_its_neighbours() {
    let database = database();
    let (transaction, written) = two_runs(&database);
    let mut left: Vec<BlockKey> = rows(&transaction).into_iter().map(|(key, _)| key).collect();
    for (run, lane, _) in &written {
        let mut table = transaction.open_table(TABLE).unwrap();
        delete_run(&mut table, *run, lane.lane);
        drop(table);
        left.retain(|key| !is_of(key, *run, lane.lane));
        assert!(rows(&transaction).iter().map(|(key, _)| key).eq(&left));
    }
    assert!(left.is_empty());
}

/// A probe of a damaged lane returns all postings or reports the damage; it never returns fewer
/// postings.
fn assert_noticed(
    transaction: &WriteTransaction,
    lane: &LaneSummary,
    postings: &BTreeSet<Posting>,
    lost: &Posting,
) {
    let streamed = stream(transaction, 1, lane);
    assert!(matches!(streamed, Err(Error::Corrupt { .. })));
    let codes: BTreeSet<u64> = postings.iter().map(|posting| posting.code).collect();
    for code in codes.iter().step_by(7).chain([&lost.code]) {
        match probe(transaction, 1, lane, *code..=*code) {
            Ok((found, _)) => assert_eq!(found, in_range(postings, *code..=*code)),
            Err(error) => assert!(matches!(error, Error::Corrupt { .. })),
        }
    }
    let lost = probe(transaction, 1, lane, lost.code..=lost.code);
    assert!(matches!(lost, Err(Error::Corrupt { .. })));
    let all = probe(transaction, 1, lane, 0..=MAX);
    assert!(matches!(all, Err(Error::Corrupt { .. })));
}

#[test]
fn a_lost_block_is_noticed() {
    for neighbours in [false, true] {
        let transaction = begin_write();
        for postings in &lanes(5_000)[..2] {
            if neighbours {
                write(&transaction, 1, 1, postings);
                write(&transaction, 1, 3, postings);
            }
            let lane = write(&transaction, 1, 2, postings);
            assert!(lane.blocks > 5);
            let blocks = rows(&transaction);
            for (key, value) in blocks.iter().filter(|(key, _)| is_of(key, 1, 2)) {
                let remove = |table: &mut RunBlocks<'_>| table.remove(key).unwrap().is_some();
                assert!(remove(&mut transaction.open_table(TABLE).unwrap()));
                assert_noticed(&transaction, &lane, postings, &split_block_key(key).2);
                let mut table = transaction.open_table(TABLE).unwrap();
                table.insert(key, value.as_slice()).unwrap();
            }
            assert!(stream(&transaction, 1, &lane).unwrap().iter().eq(postings));
            for lane in 1..=3 {
                delete_run(&mut transaction.open_table(TABLE).unwrap(), 1, lane);
            }
        }
    }
}

#[test]
fn a_foreign_or_damaged_block_is_noticed() {
    let transaction = begin_write();
    let postings = &lanes(5_000)[0];
    let lane = write(&transaction, 1, 2, postings);
    let blocks = rows(&transaction);
    for pair in blocks.windows(2) {
        let [(key, value), (_, foreign)] = pair else {
            unreachable!()
        };
        let mut flipped = value.clone();
        flipped[100] ^= 1;
        for wrong in [foreign, &flipped, &Vec::new()] {
            let mut table = transaction.open_table(TABLE).unwrap();
            table.insert(key, wrong.as_slice()).unwrap();
            drop(table);
            assert_noticed(&transaction, &lane, postings, &split_block_key(key).2);
        }
        let mut table = transaction.open_table(TABLE).unwrap();
        table.insert(key, value.as_slice()).unwrap();
    }
}

#[test]
fn lane_stream_with_wrong_counts_is_detected() {
    let transaction = begin_write();
    let lane = write(&transaction, 1, 2, &lanes(5_000)[0]);
    let more = LaneSummary {
        postings: lane.postings + 1,
        ..lane
    };
    let end = LaneSummary {
        last: Some(posting(MAX, 0)),
        ..lane
    };
    for wrong in [more, end, LaneSummary::empty(2)] {
        let mut found = 0;
        let table = transaction.open_table(TABLE).unwrap();
        let mut postings = lane_iter(&table, NAME, 1, &wrong).unwrap();
        let error = loop {
            match postings.next().unwrap() {
                Ok(_) => found += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Corrupt { .. }));
        assert_eq!(found, lane.postings);
        assert!(postings.next().is_none());
    }
}
