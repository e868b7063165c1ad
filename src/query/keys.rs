//! Looking up many keys at once.

use crate::error::Result;
use crate::index::{ProbeRange, SweepControl};
use crate::invariant::{OrBug, at, at_mut};
use crate::lanes::hash_key;
use crate::query::candidates::Candidate;
use crate::read::{PostingTable, ReadView};

/// Number of keys that are looked up together.
const PIECE_KEYS: usize = 1 << 19;

/// Returns the live document with each key.
pub(crate) fn find_keys(view: &dyn ReadView, keys: &[Option<&[u8]>]) -> Result<Vec<Option<u64>>> {
    let mut holders = vec![None; keys.len()];
    for (keys, holders) in keys.chunks(PIECE_KEYS).zip(holders.chunks_mut(PIECE_KEYS)) {
        let ranges = (0..).zip(keys).filter_map(|(query_index, key)| {
            let code = hash_key((*key)?);
            Some(ProbeRange::new(query_index, code, code))
        });
        let mut ranges: Vec<ProbeRange> = ranges.collect();
        ranges.sort_unstable_by_key(|range| (range.low_code, range.query_index));
        let mut found = Vec::new();
        view.context().counters.lanes_probed(ranges.len());
        view.sweep(
            PostingTable::Keys,
            0,
            &ranges,
            &mut |query_index, posting| {
                found.push(Candidate::new(posting.id, query_index));
                Ok(SweepControl::GoOn)
            },
        )?;
        // Newest first: a document that replaced another has the greater id.
        found.sort_unstable_by(|a, b| b.cmp(a));
        for Candidate {
            id, query_index, ..
        } in found
        {
            let key = at(keys, query_index as usize)?.or_bug("a key that was looked up")?;
            let holder = at_mut(holders, query_index as usize)?;
            if holder.is_none() && view.has_key(id, key)? {
                *holder = Some(id);
            }
        }
    }
    Ok(holders)
}
