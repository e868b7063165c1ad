//! Records which documents have equal signatures when their postings are written to a run.

use std::ops::RangeInclusive;

use crate::engine::{
    DOCUMENTS, EQUAL, EngineResult, ReadableTable, ReadableTableMetadata, TableHandle,
    WriteTransaction,
};
use crate::error::Result;
use crate::format::{CHUNK_DOCUMENTS, DocumentRow, EqualChunk, Posting, no_row};
use crate::read::visit_rows;
use crate::state::{MergeDrops, SharedContext, Tombstones};
use resemblance_sketch::lanes::{LaneCode, LaneSet};

/// Number of documents of a chunk from which equal ones are noted: about one in a thousand. Fewer are
/// read one by one at little cost.
const MIN_EQUAL: usize = if cfg!(test) { 4 } else { 16 };

/// The first lane of bands or tables.
const FIRST_LANE: u16 = 1;

/// Collects the documents that may be equal to others: those that share their codes with many, in the first
/// lane and in the last. Equal ones do in all lanes; documents that have a template in common mostly do in
/// some. It takes a bit a document, in chunks of ids that have any.
pub(crate) struct EqualCollector {
    /// The last one of them; 0 without any.
    last_lane: u16,
    /// The documents found in the lane before.
    before: Tombstones,
    candidates: Tombstones,
    /// The lane and the code of the posting that is being examined.
    code: LaneCode,
    /// The documents of the code, as long as they are few.
    few: Vec<u64>,
}

impl EqualCollector {
    /// Creates records for the postings of a store with these lanes.
    pub(crate) fn new(lanes: &LaneSet) -> Self {
        Self {
            last_lane: lanes.single_count().saturating_sub(1),
            before: Tombstones::default(),
            candidates: Tombstones::default(),
            code: LaneCode { lane: 0, code: 0 },
            few: Vec::new(),
        }
    }

    /// Takes the postings of a lane as they pass.
    pub(crate) fn collect(
        &mut self,
        lane: u16,
        postings: impl Iterator<Item = Result<Posting>>,
    ) -> impl Iterator<Item = Result<Posting>> {
        postings.inspect(move |posting| {
            if let Ok(posting) = posting {
                self.push(lane, *posting);
            }
        })
    }

    /// Takes the next posting of a lane.
    #[inline]
    pub(super) fn push(&mut self, lane: u16, posting: Posting) {
        // Without bands and tables there are no buckets for which records matter.
        let is_asked = lane == FIRST_LANE || lane == self.last_lane;
        if !is_asked || !(FIRST_LANE..=self.last_lane).contains(&lane) {
            return;
        }
        let Posting { code, id } = posting;
        if lane != self.code.lane {
            self.before = std::mem::take(&mut self.candidates);
        }
        let lane_code = LaneCode { lane, code };
        if lane_code != self.code {
            self.code = lane_code;
            self.few.clear();
        }
        if lane != FIRST_LANE && !self.before.contains(id) {
            return;
        }
        if self.few.len() >= MIN_EQUAL {
            self.candidates.insert(id);
            return;
        }
        self.few.push(id);
        if self.few.len() == MIN_EQUAL {
            self.few.iter().for_each(|id| self.candidates.insert(*id));
        }
    }

    /// Records the equal documents, in addition to those recorded before.
    ///
    /// # Errors
    /// Returns the errors of reading and writing, and [`Error::Corrupt`] for a document without a row.
    pub(crate) fn write(self, context: &SharedContext, write: &WriteTransaction) -> Result<()> {
        let mut ids = self.candidates.ids().peekable();
        while let Some(chunk) = ids.peek().map(|id| id / CHUNK_DOCUMENTS) {
            let of_chunk = std::iter::from_fn(|| ids.next_if(|id| id / CHUNK_DOCUMENTS == chunk));
            let of_chunk: Vec<u64> = of_chunk.collect();
            let mut members = digests(context, write, &of_chunk)?;
            let mut table = write.open_table(EQUAL).engine()?;
            if let Some(row) = ReadableTable::get(&table, chunk).engine()? {
                members.extend(EqualChunk::decode(chunk, row.value())?.members(chunk));
            }
            keep_many(&mut members);
            if let Some(row) = EqualChunk::new(&members) {
                table.insert(chunk, row.encode(chunk).as_slice()).engine()?;
            }
        }
        Ok(())
    }
}

/// Returns documents with the digests of their signatures.
fn digests(
    context: &SharedContext,
    write: &WriteTransaction,
    ids: &[u64],
) -> Result<Vec<(u64, u128)>> {
    let mut members = Vec::with_capacity(ids.len());
    let table = write.open_table(DOCUMENTS).engine()?;
    visit_rows(&table, ids, &|_| false, &mut |id, row| {
        let bytes = row.ok_or_else(|| no_row(DOCUMENTS.name(), id, 4))?;
        let row = DocumentRow::decode(id, bytes, context.shape())?;
        members.push((id, row.digest()));
        Ok(())
    })?;
    Ok(members)
}

/// Keeps documents of which enough are equal, ascending by id.
fn keep_many(members: &mut Vec<(u64, u128)>) {
    members.sort_unstable_by_key(|(id, digest)| (*digest, *id));
    let classes = members.chunk_by(|(_, a), (_, b)| a == b);
    let many = classes.filter(|class| class.len() >= MIN_EQUAL);
    *members = many.flatten().copied().collect();
    members.sort_unstable();
}

/// Forgets the documents whose tombstones the merge of a range of ids clears.
///
/// # Errors
/// Returns the errors of reading and writing.
pub(super) fn forget_dropped(
    write: &WriteTransaction,
    ids: &RangeInclusive<u64>,
    dropped: &MergeDrops,
) -> Result<()> {
    let mut table = write.open_table(EQUAL).engine()?;
    if table.is_empty().engine()? {
        return Ok(());
    }
    let is_dropped = |id: u64| ids.contains(&id) && dropped.contains(id);
    let mut next = Some(*ids.start());
    while let Some(id) = next.and_then(|id| dropped.first_from(id)) {
        if id > *ids.end() {
            break;
        }
        let chunk = id / CHUNK_DOCUMENTS;
        next = (chunk + 1).checked_mul(CHUNK_DOCUMENTS);
        let row = match ReadableTable::get(&table, chunk).engine()? {
            Some(row) => EqualChunk::decode(chunk, row.value())?,
            None => continue,
        };
        let left = row.members(chunk).filter(|(id, _)| !is_dropped(*id));
        match EqualChunk::new(&left.collect::<Vec<_>>()) {
            Some(left) if left == row => {}
            Some(left) => drop(
                table
                    .insert(chunk, left.encode(chunk).as_slice())
                    .engine()?,
            ),
            None => drop(table.remove(chunk).engine()?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use resemblance_sketch::lanes::Banding;

    #[test]
    fn equal_notes_compare_documents_with_common_codes() {
        let banding = Banding::explicit(3, 2, 6).unwrap();
        let lanes = LaneSet::new(Some((banding, 40)), None).unwrap();
        let mut collector = EqualCollector::new(&lanes);
        let mut push = |lane, code, ids: &[u64]| {
            for id in ids {
                collector.push(lane, Posting { code, id: *id });
            }
        };
        push(1, 5, &[0, 1, 2, 3]);
        push(1, 6, &[4, 5, 6]);
        push(1, 7, &[7, 8, 9, 10, 11, 12]);
        // The lanes between are not examined.
        (0..13).for_each(|id| push(2, id, &[id]));
        push(3, 1, &[0, 1, 2, 3]);
        push(3, 2, &[4, 5, 6, 8, 9, 10, 11]);
        push(3, 3, &[7, 12]);
        let candidates: Vec<u64> = collector.candidates.ids().collect();
        assert_eq!(candidates, [0, 1, 2, 3, 8, 9, 10, 11]);
    }
}
