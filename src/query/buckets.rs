//! The buckets of one signature, read whole or in part.

use std::collections::BinaryHeap;

use crate::error::Result;
use crate::format::Posting;
use crate::index::{CodeRange, ProbeControl};
use crate::invariant::{at, at_mut, invariant};
use crate::query::candidates::{Candidate, Gathered};
use crate::query::equal_classes::EqualClasses;
use crate::query::gate::{Gate, leaves_out};
use crate::query::plan::{ProbePlan, ProbedLane};
use crate::read::{PostingTable, ReadView};
use crate::state::BucketKey;

/// The bucket of a signature in a lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneProbe {
    lane: ProbedLane,
    /// The signature's own code.
    pub(super) code: u64,
    /// The code nearest to it in the bucket: its own, or one of another prefix.
    near_code: u64,
    low_code: u64,
    high_code: u64,
}

/// The point at which the reading of a part of a bucket begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// At its lowest code.
    Start,
    /// At the signature's code, or the nearest one after it; after the greatest code follows the
    /// lowest.
    ExactCode,
}

/// The part of a bucket that was read.
#[derive(Debug, Default)]
pub(super) struct ReadBucket {
    /// Ordered from the code on where reading began, then by id. None is of a document that the view leaves out.
    pub(super) postings: Vec<Posting>,
    /// True if there may be more.
    pub(super) is_cut: bool,
}

impl LaneProbe {
    /// The buckets of the one signature of a plan: its own, one for each lane, before those near it.
    pub(super) fn of_plan(view: &dyn ReadView, plan: &ProbePlan) -> Vec<Self> {
        let context = view.context();
        let probe = |lane: ProbedLane, code: u64, near_code: u64| {
            let (low_code, high_code) = lane.bucket_range(context, near_code);
            Self {
                lane,
                code,
                near_code,
                low_code,
                high_code,
            }
        };
        let own = plan.row(0).map(|(lane, code)| probe(lane, code, code));
        let near = plan.row(0).flat_map(|(lane, code)| {
            // The first of these is the code itself, whose bucket is among the own ones.
            let others = lane.near_codes(context, code).skip(1);
            others.map(move |near_code| probe(lane, code, near_code))
        });
        // Own buckets hold most of the near documents, and an identical one in any case.
        own.chain(near).collect()
    }

    /// The part of the bucket that has the signature's own code.
    pub(super) fn of_exact_code(self) -> Self {
        Self {
            low_code: self.code,
            high_code: self.code,
            ..self
        }
    }

    /// Returns the lane and the lowest code.
    pub(super) fn key(&self) -> BucketKey {
        (self.lane.lane, self.low_code)
    }

    /// Returns true if the bucket has a code.
    pub(super) fn has_code(&self, code: u64) -> bool {
        (self.low_code..=self.high_code).contains(&code)
    }

    /// Returns true if the bucket is this one code.
    pub(super) fn has_one_code(&self) -> bool {
        self.low_code == self.high_code
    }

    /// Returns true if a posting of the bucket makes a candidate.
    #[inline]
    pub(super) fn accepts(&self, plan: &ProbePlan, posting: Posting) -> bool {
        plan.accepts(self.lane, self.code, posting.code)
    }

    /// The document of a posting of the bucket.
    #[inline]
    pub(super) fn candidate(&self, plan: &ProbePlan, posting: Posting) -> Candidate {
        plan.candidate(0, self.code, posting)
    }

    fn range(&self, low_code: u64, high_code: u64) -> CodeRange {
        CodeRange::new(self.lane.lane, low_code, high_code)
    }

    /// Returns its code ranges in the order of reading.
    fn ranges(&self, begin: Begin) -> impl Iterator<Item = CodeRange> {
        let origin = self.origin(begin);
        // A bucket is read as a ring: from the own code up to its end, and then from its beginning. So the first
        // postings are those of the own code, and a bucket that is cut short never misses them.
        let end = origin.checked_sub(1).filter(|end| *end >= self.low_code);
        let before = end.map(|end| self.range(self.low_code, end));
        std::iter::once(self.range(origin, self.high_code)).chain(before)
    }

    fn origin(&self, begin: Begin) -> u64 {
        match begin {
            Begin::Start => self.low_code,
            Begin::ExactCode => self.near_code,
        }
    }
}

/// Number of postings of a bucket from which equal documents are looked for among them.
const MANY_POSTINGS: u32 = if cfg!(test) { 8 } else { 64 };

/// The reading of a bucket.
#[derive(Clone, Copy, Default)]
struct BucketReading {
    postings: u32,
    /// The code of the last posting, if that made no candidate.
    rejected: Option<u64>,
}

impl BucketReading {
    /// Takes a posting that makes no candidate: no later one of its code makes one.
    fn reject(&mut self, posting: Posting) -> ProbeControl {
        let next = posting.code.checked_add(1).map(Posting::lowest_of);
        match (self.rejected.replace(posting.code), next) {
            // A single one is not worth a search.
            (Some(code), Some(next)) if code == posting.code => ProbeControl::SkipTo(next),
            _ => ProbeControl::GoOn,
        }
    }

    /// Takes a posting that makes a candidate, which is added to `found` or to the classes met.
    fn accept(
        &mut self,
        code: u64,
        candidate: Candidate,
        found: &mut Gathered<Candidate>,
        equal: Option<&mut EqualClasses<'_>>,
    ) -> Result<ProbeControl> {
        self.postings = self.postings.saturating_add(1);
        if self.postings > MANY_POSTINGS
            && let Some(equal) = equal
            && let Some(id) = equal.take(candidate.id)?
        {
            return Ok(ProbeControl::SkipTo(Posting { code, id }));
        }
        found.push(candidate);
        Ok(ProbeControl::GoOn)
    }
}

/// Visits all postings of a bucket.
pub(super) fn read_postings(
    view: &dyn ReadView,
    probe: &LaneProbe,
    visit: &mut dyn FnMut(Posting) -> Result<ProbeControl>,
) -> Result<()> {
    let ranges = [probe.range(probe.low_code, probe.high_code)];
    view.probe(probe.lane.table, &ranges, &mut |_, posting| visit(posting))
}

/// Adds the candidates below an id in these buckets, all of them: to the classes met, if `equal` is given, those
/// that are known to be equal to others, and to `found` the others. Returns the number of these postings in each bucket.
pub(super) fn read_whole(
    view: &dyn ReadView,
    plan: &ProbePlan,
    probes: &[LaneProbe],
    below: u64,
    found: &mut Gathered<Candidate>,
    mut equal: Option<&mut EqualClasses<'_>>,
) -> Result<Vec<usize>> {
    let mut postings = Vec::with_capacity(probes.len());
    for probes in probes.chunk_by(|a, b| a.lane.table == b.lane.table) {
        let ranges = probes.iter().map(|probe| CodeRange {
            near: plan.accepted(probe.lane, probe.code),
            ..probe.range(probe.low_code, probe.high_code)
        });
        let ranges: Vec<CodeRange> = ranges.collect();
        let table = probes.first().map_or(PostingTable::Bands, |p| p.lane.table);
        let mut readings = vec![BucketReading::default(); probes.len()];
        view.probe(table, &ranges, &mut |index, posting| {
            let reading = at_mut(&mut readings, index)?;
            let probe = at(probes, index)?;
            if posting.id >= below {
                Ok(reading.reject(posting))
            } else if probe.accepts(plan, posting) {
                let candidate = probe.candidate(plan, posting);
                reading.accept(posting.code, candidate, found, equal.as_deref_mut())
            } else {
                Ok(reading.reject(posting))
            }
        })?;
        postings.extend(readings.iter().map(|reading| reading.postings as usize));
    }
    Ok(postings)
}

/// Collects the first postings of a bucket, in whatever order they arrive.
struct FirstPostings {
    origin: u64,
    most: usize,
    /// Distance of the code from the origin, and id; the last one on top. It holds one more than
    /// the limit, which shows that there are more.
    heap: BinaryHeap<(u64, u64)>,
}

impl FirstPostings {
    /// Adds a posting. Ends the range once no later posting of it can be among the first.
    fn push(&mut self, posting: Posting) -> ProbeControl {
        // Codes before the origin wrap around, and so rank after all others, as on the ring that
        // `ranges` reads.
        let rank = (posting.code.wrapping_sub(self.origin), posting.id);
        // One more than requested: it shows whether the bucket is cut.
        if self.heap.len() <= self.most {
            self.heap.push(rank);
            return ProbeControl::GoOn;
        }
        // Postings of one segment are ordered, so the rest of it is further away.
        match self.heap.peek_mut() {
            Some(mut last) if rank < *last => {
                *last = rank;
                ProbeControl::GoOn
            }
            _ => ProbeControl::End,
        }
    }

    fn into_bucket(self) -> ReadBucket {
        let is_cut = self.heap.len() > self.most;
        let posting = |(code, id)| Posting {
            code: self.origin.wrapping_add(code),
            id,
        };
        let ranked = self.heap.into_sorted_vec();
        let mut postings: Vec<Posting> = ranked.into_iter().map(posting).collect();
        postings.dedup();
        ReadBucket { postings, is_cut }
    }
}

/// Returns the first `most` postings of each bucket, plus one if there are more. Reads no more than
/// that number from each segment and run, except for postings of deleted documents.
pub(super) fn read_first(
    view: &dyn ReadView,
    gate: Option<&Gate<'_>>,
    probes: &[LaneProbe],
    most: usize,
    begin: Begin,
) -> Result<Vec<ReadBucket>> {
    let mut firsts: Vec<FirstPostings> = Vec::with_capacity(probes.len());
    for of_table in probes.chunk_by(|a, b| a.lane.table == b.lane.table) {
        let first_position = firsts.len();
        let (mut ranges, mut positions) = (Vec::new(), Vec::new());
        for (position, probe) in (first_position..).zip(of_table) {
            ranges.extend(probe.ranges(begin));
            positions.resize(ranges.len(), position);
            firsts.push(FirstPostings {
                origin: probe.origin(begin),
                most,
                heap: BinaryHeap::new(),
            });
        }
        let table = of_table
            .first()
            .map_or(PostingTable::Bands, |a| a.lane.table);
        view.context().counters.lanes_probed(of_table.len());
        let mut visit = |index: usize, posting: Posting| {
            // Documents that are left out take no room among the first.
            if leaves_out(view, gate, posting.id)? {
                return Ok(ProbeControl::GoOn);
            }
            let position = *at(&positions, index)?;
            Ok(at_mut(&mut firsts, position)?.push(posting))
        };
        view.probe_until(table, &ranges, &mut visit, &mut || Ok(false))?;
    }
    let (read, expected) = (firsts.len(), probes.len());
    invariant!(read == expected, "read {read} of {expected} buckets");
    Ok(firsts.into_iter().map(FirstPostings::into_bucket).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_bucket_keeps_its_first_postings() {
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
    fn bucket_is_read_whole_from_its_own_code() {
        let probe = |code, low_code, high_code| LaneProbe {
            lane: ProbedLane {
                table: PostingTable::Permuted,
                lane: 3,
                radius: 0,
            },
            code,
            near_code: code,
            low_code,
            high_code,
        };
        for (code, expected) in [
            (0, vec![(0, 15)]),
            (5, vec![(5, 15), (0, 4)]),
            (15, vec![(15, 15), (0, 14)]),
        ] {
            let probe = probe(code, 0, 15);
            let ranges = probe.ranges(Begin::ExactCode);
            let ranges: Vec<_> = ranges.map(|r| (r.low_code, r.high_code)).collect();
            assert_eq!(ranges, expected);
            let whole: Vec<_> = probe.ranges(Begin::Start).collect();
            assert_eq!(whole, [probe.range(0, 15)]);
            let own: Vec<_> = probe.of_exact_code().ranges(Begin::ExactCode).collect();
            assert_eq!(own, [probe.range(code, code)]);
        }
    }
}
