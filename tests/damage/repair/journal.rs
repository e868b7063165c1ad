//! A journal that a crash has left and that is also damaged. An earlier commit must never pass for
//! the last.

use std::collections::BTreeSet;

use crate::common::memory::MemoryFiles;
use crate::common::sample::{one_in, trials};
use crate::common::{Random, sealing_after};
use crate::repair::{Contents, STORE, contents, repair, schema, signature};
use resemblance::Error;

const SECTOR_BYTES: usize = 512;

/// The file of a store as a crash leaves it, with commits in its journal, and its contents after each of these.
fn left() -> (Vec<u8>, Vec<Contents>) {
    let files = MemoryFiles::default();
    let options = files.options(&sealing_after(64).journal(1 << 20, 0));
    let store = options.create(STORE, schema()).unwrap();
    let mut states = Vec::new();
    for number in 0..24 {
        let key = format!("key {number}");
        store.insert(key, &signature(number)).unwrap();
        states.push(contents(&store.snapshot().unwrap()));
    }
    (files.read(STORE), states)
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The first bytes of the sectors of each record: format-spec.md, 1.6.
fn records(bytes: &[u8]) -> Vec<Vec<usize>> {
    let mut records = Vec::new();
    let mut at = number_at(bytes, 336) as usize;
    let first = number_at(bytes, 352);
    while number_at(bytes, at + 488) == first + records.len() as u64 {
        let count = (number_at(bytes, at + 496) >> 32) as usize;
        records.push(
            (0..count)
                .map(|sector| at + sector * SECTOR_BYTES)
                .collect(),
        );
        at += (count * SECTOR_BYTES).next_multiple_of(4_096);
    }
    records
}

#[test]
fn missing_journal_record_is_damage() {
    let (bytes, states) = left();
    let records = records(&bytes);
    let (last, earlier) = records.split_last().unwrap();
    for sector in earlier.iter().flatten() {
        let mut damaged = bytes.clone();
        damaged[*sector..][..SECTOR_BYTES].fill(0);
        let error = read(&damaged);
        assert!(
            matches!(error, Err(Error::Corrupt { .. })),
            "byte {sector}: {error:?}"
        );
    }
    // The mark behind the last one shows that it was synced. Without the mark, it may as well never
    // have been there as a whole.
    let mark = (last.last().unwrap() + SECTOR_BYTES).next_multiple_of(4_096);
    for sector in last {
        let mut torn = bytes.clone();
        torn[*sector..][..SECTOR_BYTES].fill(0);
        let error = read(&torn);
        assert!(
            matches!(error, Err(Error::Corrupt { .. })),
            "byte {sector}: {error:?}"
        );
        torn[mark..][..SECTOR_BYTES].fill(0);
        assert_eq!(read(&torn).unwrap(), states[states.len() - 2]);
    }
    let journal = number_at(&bytes, 336) as usize;
    for length in [journal, journal + SECTOR_BYTES, bytes.len() - 1] {
        let error = read(&bytes[..length]);
        assert!(
            matches!(error, Err(Error::Corrupt { .. })),
            "{length}: {error:?}"
        );
    }
}

/// The contents of a file, read without writing to it.
fn read(bytes: &[u8]) -> Result<Contents, Error> {
    let files = MemoryFiles::with(STORE, bytes.to_vec());
    let store = files.options(&sealing_after(64)).open_read_only(STORE)?;
    let found = contents(&store.snapshot()?);
    drop(store);
    assert!(files.read(STORE) == bytes);
    Ok(found)
}

/// One byte in 13, each with `RESEMBLANCE_TESTS=all`: a sector has 25 of them.
#[test]
fn flipped_bit_never_reveals_an_earlier_commit() {
    let (bytes, states) = left();
    let last = states.last().unwrap();
    assert_eq!(&read(&bytes).unwrap(), last);
    let records = records(&bytes);
    assert!(records.len() > 8, "{}", records.len());
    let end = records.last().unwrap().last().unwrap() + SECTOR_BYTES;
    let mut random = Random(7);
    let mut places: BTreeSet<usize> = (336..368).collect();
    for sector in records.iter().flatten() {
        let number = sector + 488;
        places.extend(number..sector + SECTOR_BYTES);
        places.insert(sector + random.below(488) as usize);
    }
    for &at in places.iter().step_by(one_in(13)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << random.below(8);
        for error in [read(&damaged).map(drop), open(&damaged).map(drop)] {
            assert!(
                matches!(error, Err(Error::Corrupt { .. })),
                "byte {at}: {error:?}"
            );
        }
    }
    // Nothing is lost with bytes that no record has.
    for _ in 0..trials(5, 20) {
        let mut damaged = bytes.clone();
        let rest = end.next_multiple_of(4_096) + SECTOR_BYTES..bytes.len();
        damaged[rest.start + random.below(rest.len() as u64) as usize] ^= 1;
        assert_eq!(&read(&damaged).unwrap(), last);
    }
}

fn open(bytes: &[u8]) -> Result<Contents, Error> {
    let files = MemoryFiles::with(STORE, bytes.to_vec());
    let store = files.options(&sealing_after(64)).open(STORE)?;
    Ok(contents(&store.snapshot()?))
}

#[test]
fn repair_keeps_the_commits_before_a_damaged_record() {
    let (bytes, states) = left();
    let count = records(&bytes).len();
    assert!(count > 8);
    // Earlier commits belong to the empty store.
    let first = count.saturating_sub(states.len() - 1).max(2);
    for (index, record) in records(&bytes).iter().enumerate().skip(first) {
        let mut damaged = bytes.clone();
        damaged[record[record.len() / 2] + 100] ^= 4;
        let (report, kept) = repair(&damaged);
        // Every change is a separate record, and the last record is that of the last state.
        let behind = count - index;
        assert_eq!(kept, states[states.len() - 1 - behind], "record {index}");
        assert!(report.is_earlier_commit && !report.is_complete());
        let problem = &report.damage[0];
        assert!(problem.place.contains("journal"), "{problem:?}");
        let files = MemoryFiles::with(STORE, damaged);
        let checked = files.options(&sealing_after(64)).check(STORE).run();
        assert!(checked.unwrap().problems.contains(problem));
    }
    let (report, kept) = repair(&bytes);
    assert!(report.is_complete() && Some(&kept) == states.last());
}
