//! The buckets of one signature, read whole or in part.

use std::collections::BinaryHeap;

use crate::error::Result;
use crate::format::Posting;
use crate::index::CodeRange;
use crate::invariant::{at, at_mut, invariant};
use crate::query::families::Families;
use crate::query::found_ids::FoundIds;
use crate::read::{PostingTable, ReadView};
use crate::sketch::Signature;
use crate::state::SharedContext;

/// The bucket of a signature in a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneProbe {
    pub(super) table: PostingTable,
    lane: u16,
    /// The signature's own.
    code: u64,
    low_code: u64,
    high_code: u64,
    /// The greatest distance at which a fingerprint is a candidate.
    most: u32,
}

/// Where the reading of a bucket in part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// At its least code.
    Start,
    /// At the signature's own code: after the greatest code comes the least.
    ExactCode,
}

/// What was read of a bucket.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Ordered from the code on where reading began, then by id. None is of a document with a tombstone.
    pub(super) postings: Vec<Posting>,
    /// True if there may be more.
    pub(super) is_cut: bool,
}

impl LaneProbe {
    /// The buckets of a signature: those of its bands, then those of its tables.
    pub(super) fn all(
        context: &SharedContext,
        signature: &Signature,
        families: Families,
    ) -> Result<Vec<Self>> {
        let lanes = &context.lanes;
        let asked = |table, lane, code| {
            let (low_code, high_code) = lanes.bucket_range(lane, code);
            Self {
                table,
                lane,
                code,
                low_code,
                high_code,
                most: families.max_distance.unwrap_or_default(),
            }
        };
        let mut codes = Vec::new();
        if families.bands {
            context.band_codes(signature, &mut codes)?;
        }
        let bands = (1..).zip(&codes);
        let bands = bands.map(|(lane, code)| asked(PostingTable::Bands, lane, *code));
        let mut all: Vec<Self> = bands.collect();
        codes.clear();
        if let (Some(fingerprint), true) = (signature.simhash(), families.max_distance.is_some()) {
            lanes.table_codes(fingerprint, &mut codes);
        }
        let tables = (1 + lanes.band_count()..).zip(&codes);
        all.extend(tables.map(|(lane, code)| asked(PostingTable::Permuted, lane, *code)));
        Ok(all)
    }

    /// The part of the bucket that has the signature's own code.
    pub(super) fn of_exact_code(self) -> Self {
        Self {
            low_code: self.code,
            high_code: self.code,
            ..self
        }
    }

    /// Returns true if the bucket is this one code.
    pub(super) fn has_one_code(&self) -> bool {
        self.low_code == self.high_code
    }

    /// Returns true if a posting of the bucket makes a candidate: the code of a fingerprint tells its
    /// distance, or of one of 128 bits a part of it.
    pub(crate) fn accepts(&self, posting: Posting) -> bool {
        self.table != PostingTable::Permuted || (self.code ^ posting.code).count_ones() <= self.most
    }

    /// Returns true if a posting has the signature's exact code.
    pub(super) fn is_own(&self, posting: Posting) -> bool {
        posting.code == self.code
    }

    fn range(&self, low_code: u64, high_code: u64) -> CodeRange {
        CodeRange {
            lane: self.lane,
            low_code,
            high_code,
        }
    }

    /// Returns its code ranges in the order of reading.
    fn ranges(&self, begin: Begin) -> impl Iterator<Item = CodeRange> {
        let origin = self.origin(begin);
        let before = origin.checked_sub(1).filter(|end| *end >= self.low_code);
        let before = before.map(|end| self.range(self.low_code, end));
        [self.range(origin, self.high_code)]
            .into_iter()
            .chain(before)
    }

    fn origin(&self, begin: Begin) -> u64 {
        match begin {
            Begin::Start => self.low_code,
            Begin::ExactCode => self.code,
        }
    }
}

/// Adds the candidates in these buckets, all of them.
pub(super) fn read_whole(
    source: &dyn ReadView,
    asked: &[LaneProbe],
    found: &mut FoundIds,
) -> Result<()> {
    for asked in asked.chunk_by(|a, b| a.table == b.table) {
        let ranges = asked.iter().map(|a| a.range(a.low_code, a.high_code));
        let ranges: Vec<CodeRange> = ranges.collect();
        let table = asked.first().map_or(PostingTable::Bands, |a| a.table);
        source.probe(table, &ranges, &mut |index, posting| {
            if at(asked, index)?.accepts(posting) {
                found.push(posting.id);
            }
            Ok(true)
        })?;
    }
    Ok(())
}

/// Collects the first postings of a bucket, in whatever order they come.
struct FirstPostings {
    origin: u64,
    most: usize,
    /// Distance of the code from the origin, and id; the last one on top. It holds one more than the limit,
    /// which tells that there are more.
    heap: BinaryHeap<(u64, u64)>,
}

impl FirstPostings {
    /// Adds a posting. Returns false once no later posting of its range can be among the first.
    fn push(&mut self, posting: Posting) -> bool {
        let rank = (posting.code.wrapping_sub(self.origin), posting.id);
        if self.heap.len() <= self.most {
            self.heap.push(rank);
            return true;
        }
        match self.heap.peek_mut() {
            Some(mut last) if rank < *last => {
                *last = rank;
                true
            }
            _ => false,
        }
    }

    fn into_bucket(self) -> Bucket {
        let is_cut = self.heap.len() > self.most;
        let posting = |(code, id)| Posting {
            code: self.origin.wrapping_add(code),
            id,
        };
        let mut postings: Vec<Posting> = self
            .heap
            .into_sorted_vec()
            .into_iter()
            .map(posting)
            .collect();
        postings.dedup();
        Bucket { postings, is_cut }
    }
}

/// Returns the first `most` postings of each bucket, and one more where there are more. Of each segment
/// and each run no more than that many are read, besides those of deleted documents.
pub(super) fn read_first(
    source: &dyn ReadView,
    asked: &[LaneProbe],
    most: usize,
    begin: Begin,
) -> Result<Vec<Bucket>> {
    let mut firsts: Vec<FirstPostings> = Vec::with_capacity(asked.len());
    for of_table in asked.chunk_by(|a, b| a.table == b.table) {
        let first_position = firsts.len();
        let (mut ranges, mut positions) = (Vec::new(), Vec::new());
        for (position, asked) in (first_position..).zip(of_table) {
            ranges.extend(asked.ranges(begin));
            positions.resize(ranges.len(), position);
            firsts.push(FirstPostings {
                origin: asked.origin(begin),
                most,
                heap: BinaryHeap::new(),
            });
        }
        let table = of_table.first().map_or(PostingTable::Bands, |a| a.table);
        source.context().reads.add_lanes(of_table.len());
        let mut visit = |index: usize, posting: Posting| {
            if source.is_dead(posting.id) {
                return Ok(true);
            }
            let position = *at(&positions, index)?;
            Ok(at_mut(&mut firsts, position)?.push(posting))
        };
        source.probe_until(table, &ranges, &mut visit, &mut || Ok(false))?;
    }
    let (read, expected) = (firsts.len(), asked.len());
    invariant!(read == expected, "read {read} of {expected} buckets");
    Ok(firsts.into_iter().map(FirstPostings::into_bucket).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_postings_are_kept_whatever_their_order() {
        let posting = |(code, id)| Posting { code, id };
        let codes = [(7, 3), (7, 1), (9, 0), (5, 2), (6, 8), (7, 2), (9, 4)];
        let in_order = [(7, 1), (7, 2), (7, 3), (9, 0), (9, 4), (5, 2), (6, 8)];
        for most in 0..9 {
            for turn in 0..codes.len() {
                let mut firsts = FirstPostings {
                    origin: 7,
                    most,
                    heap: BinaryHeap::new(),
                };
                for at in 0..codes.len() {
                    firsts.push(posting(codes[(at + turn) % codes.len()]));
                }
                let bucket = firsts.into_bucket();
                assert_eq!(bucket.is_cut, most < codes.len());
                let expected = in_order.into_iter().map(posting).take(most + 1);
                assert!(bucket.postings.into_iter().eq(expected));
            }
        }
    }

    #[test]
    fn reading_from_the_own_code_asks_for_the_whole_bucket() {
        let asked = |code, low_code, high_code| LaneProbe {
            table: PostingTable::Permuted,
            lane: 3,
            code,
            low_code,
            high_code,
            most: 0,
        };
        for (code, expected) in [
            (0, vec![(0, 15)]),
            (5, vec![(5, 15), (0, 4)]),
            (15, vec![(15, 15), (0, 14)]),
        ] {
            let asked = asked(code, 0, 15);
            let ranges = asked.ranges(Begin::ExactCode);
            let ranges: Vec<_> = ranges.map(|r| (r.low_code, r.high_code)).collect();
            assert_eq!(ranges, expected);
            let whole: Vec<_> = asked.ranges(Begin::Start).collect();
            assert_eq!(whole, [asked.range(0, 15)]);
            let own: Vec<_> = asked.of_exact_code().ranges(Begin::ExactCode).collect();
            assert_eq!(own, [asked.range(code, code)]);
        }
    }
}
