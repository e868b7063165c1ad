//! The kept hashes that queries share with documents, found by one sweep of their lane.

use crate::error::Result;
use crate::format::Posting;
use crate::index::{ProbeRange, SweepControl};
use crate::invariant::{OrBug, at, at_mut};
use crate::query::gate::{Gate, leaves_out};
use crate::read::{PostingTable, ReadView};
use resemblance_sketch::sketch::Signature;

/// The number of postings that are held together, unless a single query has more: 16 bytes each.
const PIECE_POSTINGS: usize = if cfg!(test) { 200 } else { 1 << 24 };

/// A posting that was found: the position of its code in the codes, and the document.
type FoundPosting = (u32, u64);

/// The documents that have each kept hash of some queries.
pub(super) struct SharedHashes {
    /// The hashes, ascending, each once.
    codes: Vec<u64>,
    /// Ascending by code, then by id.
    found: Vec<FoundPosting>,
    /// The end of each code's postings in `found`.
    ends: Vec<usize>,
    /// A flag for each code: true if more documents than allowed have it.
    is_capped: Vec<bool>,
}

impl SharedHashes {
    /// Looks up the hashes of `signatures`. Those that more than `max_frequency` documents have are
    /// capped. Returns `None` if there are so many postings that the signatures must be halved.
    pub(super) fn find(
        view: &dyn ReadView,
        gate: Option<&Gate<'_>>,
        signatures: &[&Signature],
        max_frequency: u64,
    ) -> Result<Option<Self>> {
        let hashes = signatures
            .iter()
            .flat_map(|signature| signature.kept_hashes());
        let mut codes: Vec<u64> = hashes.flatten().copied().collect();
        codes.sort_unstable();
        codes.dedup();
        let mut shared = Self {
            is_capped: vec![false; codes.len()],
            ends: Vec::with_capacity(codes.len()),
            found: Vec::new(),
            codes,
        };
        if !shared.sweep(view, gate, signatures.len() > 1, max_frequency)? {
            return Ok(None);
        }
        shared.found.sort_unstable();
        shared.leave_removed_out(view)?;
        shared.index(max_frequency)?;
        Ok(Some(shared))
    }

    /// Reads the postings of all codes. Returns false if they are too many to hold.
    fn sweep(
        &mut self,
        view: &dyn ReadView,
        gate: Option<&Gate<'_>>,
        can_be_halved: bool,
        max_frequency: u64,
    ) -> Result<bool> {
        let ranges = (0..)
            .zip(&self.codes)
            .map(|(query_index, &code)| ProbeRange::new(query_index, code, code));
        let ranges: Vec<ProbeRange> = ranges.collect();
        view.context().counters.lanes_probed(ranges.len());
        let flushed_below = view.flushed_below();
        let mut frequencies = vec![0_u64; self.codes.len()];
        let (found, is_capped) = (&mut self.found, &mut self.is_capped);
        let mut fits = true;
        let mut visit = |index: u32, posting: Posting| {
            if *at(is_capped, index as usize)? {
                return Ok(SweepControl::SkipRange);
            }
            if leaves_out(view, gate, posting.id)? {
                return Ok(SweepControl::GoOn);
            }
            // Documents that are in no run may have been removed and keep their postings all the same: they
            // are counted once their rows have been looked for.
            if posting.id < flushed_below {
                let frequency = at_mut(&mut frequencies, index as usize)?;
                *frequency += 1;
                if *frequency > max_frequency {
                    *at_mut(is_capped, index as usize)? = true;
                    return Ok(SweepControl::SkipRange);
                }
            }
            found.push((index, posting.id));
            fits = !can_be_halved || found.len() <= PIECE_POSTINGS;
            Ok(if fits {
                SweepControl::GoOn
            } else {
                SweepControl::End
            })
        };
        let kept_lane = view.context().lanes.kept_lane();
        let lane = kept_lane.or_bug("a lane of kept hashes")?;
        view.sweep(PostingTable::Bands, lane, &ranges, &mut visit)?;
        Ok(fits)
    }

    /// Leaves documents out that are in no run and were removed.
    fn leave_removed_out(&mut self, view: &dyn ReadView) -> Result<()> {
        let flushed_below = view.flushed_below();
        let unflushed = self.found.iter().map(|(_, id)| *id);
        let mut ids: Vec<u64> = unflushed.filter(|id| *id >= flushed_below).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut live = Vec::with_capacity(ids.len());
        view.context().counters.signatures_read(ids.len());
        view.document_rows(&ids, &mut |id, row| {
            live.extend(row.map(|_| id));
            Ok(())
        })?;
        if live.len() < ids.len() {
            let is_live = |id: u64| id < flushed_below || live.binary_search(&id).is_ok();
            self.found.retain(|(_, id)| is_live(*id));
        }
        Ok(())
    }

    /// Records where the postings of each code end, and which codes are capped.
    fn index(&mut self, max_frequency: u64) -> Result<()> {
        let mut start = 0;
        for index in 0..self.codes.len() {
            let rest = self.found.get(start..).or_bug("postings by their codes")?;
            let of_code = rest.iter().take_while(|(code, _)| *code as usize == index);
            let count = of_code.count();
            if count as u64 > max_frequency {
                *at_mut(&mut self.is_capped, index)? = true;
            }
            start += count;
            self.ends.push(start);
        }
        Ok(())
    }

    fn index_of(&self, hash: u64) -> Result<usize> {
        let index = self.codes.binary_search(&hash).ok();
        index.or_bug("a hash that was looked for")
    }

    /// Returns true if more documents have a kept hash than may.
    pub(super) fn is_capped(&self, hash: u64) -> Result<bool> {
        Ok(*at(&self.is_capped, self.index_of(hash)?)?)
    }

    /// Visits the documents that have a kept hash, ascending by id. Returns false if the hash is capped.
    pub(super) fn documents(&self, hash: u64, visit: &mut dyn FnMut(u64)) -> Result<bool> {
        let index = self.index_of(hash)?;
        if *at(&self.is_capped, index)? {
            return Ok(false);
        }
        let start = match index.checked_sub(1) {
            Some(before) => *at(&self.ends, before)?,
            None => 0,
        };
        let found = self.found.get(start..*at(&self.ends, index)?);
        for (_, id) in found.or_bug("the postings of a hash")? {
            visit(*id);
        }
        Ok(true)
    }
}
