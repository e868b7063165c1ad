//! The only merge of sorted postings: of slices in memory, and of streams that are read chunk by
//! chunk.

use crate::error::Result;
use crate::format::Posting;
use crate::invariant::{OrBug, bug, invariant};

/// Gives sorted postings chunk by chunk.
pub(crate) trait PostingChunks {
    /// Appends the next postings, and none at the end.
    fn read(&mut self, postings: &mut Vec<Posting>) -> Result<()>;
}

/// Iterates over the postings of chunks. The first error ends it.
pub(crate) struct ChunkIter<C> {
    chunks: C,
    /// The chunk that was read last.
    postings: Vec<Posting>,
    /// The number of its postings that were taken.
    taken: usize,
    has_ended: bool,
}

impl<C: PostingChunks> ChunkIter<C> {
    pub(crate) fn new(chunks: C) -> Self {
        Self {
            chunks,
            postings: Vec::new(),
            taken: 0,
            has_ended: false,
        }
    }

    /// Reads the next chunk, if everything has been taken.
    fn fill(&mut self) -> Result<()> {
        if self.has_ended || self.taken < self.postings.len() {
            return Ok(());
        }
        self.postings.clear();
        self.taken = 0;
        let read = self.chunks.read(&mut self.postings);
        if read.is_err() {
            // The rest of a bad chunk was not checked.
            self.postings.clear();
        }
        self.has_ended = self.postings.is_empty();
        read
    }

    fn rest(&self) -> Result<&[Posting]> {
        let rest = self.postings.get(self.taken..);
        rest.or_bug("postings of a chunk, behind those that were taken")
    }
}

impl<C: PostingChunks> Iterator for ChunkIter<C> {
    type Item = Result<Posting>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.taken >= self.postings.len()
            && let Err(error) = self.fill()
        {
            return Some(Err(error));
        }
        let posting = self.postings.get(self.taken)?;
        self.taken += 1;
        Some(Ok(*posting))
    }
}

/// Merges sorted streams of postings into one.
pub(crate) struct KWayMerge<C> {
    streams: Vec<ChunkIter<C>>,
    merger: SliceMerger,
}

impl<C: PostingChunks> KWayMerge<C> {
    pub(crate) fn new(streams: impl IntoIterator<Item = C>) -> Self {
        Self {
            streams: streams.into_iter().map(ChunkIter::new).collect(),
            merger: SliceMerger::default(),
        }
    }
}

impl<C: PostingChunks> PostingChunks for KWayMerge<C> {
    fn read(&mut self, postings: &mut Vec<Posting>) -> Result<()> {
        for stream in &mut self.streams {
            stream.fill()?;
        }
        self.streams.retain(|stream| !stream.has_ended);
        // Everything that a stream has not read yet follows the last posting that it has here, so
        // everything up to the smallest of these last ones can be merged now.
        let lasts = self
            .streams
            .iter()
            .filter_map(|stream| stream.postings.last());
        let Some(bound) = lasts.min().copied() else {
            return Ok(());
        };
        let mut heads = Vec::with_capacity(self.streams.len());
        for stream in &self.streams {
            let rest = stream.rest()?;
            let (head, _) = rest.split_at(rest.partition_point(|posting| *posting <= bound));
            heads.push(head);
        }
        self.merger.append(&heads, postings)?;
        let lengths: Vec<usize> = heads.iter().map(|head| head.len()).collect();
        for (stream, length) in self.streams.iter_mut().zip(lengths) {
            stream.taken += length;
        }
        Ok(())
    }
}

/// Appends the merge of two sorted slices. It works from both ends at once. Neither end waits for
/// the other's comparisons, so the processor overlaps them.
fn merge_two<'p>(
    mut a: &'p [Posting],
    mut b: &'p [Posting],
    merged: &mut Vec<Posting>,
) -> Result<()> {
    let start = merged.len();
    // A slot that were not overwritten would be a posting of a document that has no such code, and the count
    // would still match: so each step checks that slots and postings are equally many.
    merged.resize(start + a.len() + b.len(), Posting::lowest_of(0));
    let (_, mut slots) = merged.split_at_mut(start);
    loop {
        // Neither side can be used up by this number of steps.
        let steps = a.len().min(b.len()) / 2;
        if steps == 0 {
            return merge_rest(a, b, slots);
        }
        let (low, rest) = slots.split_at_mut(steps);
        let (middle, high) = rest.split_at_mut(rest.len() - steps);
        (a, b) = merge_ends(a, b, low, high)?;
        slots = middle;
    }
}

/// Fills `low` with the first postings of both slices, and `high` with the last. Returns the rest.
#[inline]
fn merge_ends<'p>(
    a: &'p [Posting],
    b: &'p [Posting],
    low: &mut [Posting],
    high: &mut [Posting],
) -> Result<(&'p [Posting], &'p [Posting])> {
    let (steps, shortest) = (low.len(), a.len().min(b.len()));
    invariant!(
        high.len() == steps && 0 < steps && 2 * steps <= shortest,
        "{steps} steps from below and {} from above, of {shortest} postings",
        high.len()
    );
    let (last_a, last_b) = (a.len() - 1, b.len() - 1);
    let (mut low_a, mut high_a) = (0, 0);
    for (step, (low, high)) in low.iter_mut().zip(high.iter_mut().rev()).enumerate() {
        let (Some(first_a), Some(first_b), Some(last_a), Some(last_b)) = (
            a.get(low_a),
            b.get(step - low_a),
            a.get(last_a - high_a),
            b.get(last_b - (step - high_a)),
        ) else {
            return Err(bug(format!(
                "step {step} of {steps} is beyond {shortest} postings"
            )));
        };
        let takes_low_a = first_a.rank() <= first_b.rank();
        let takes_high_a = last_a.rank() > last_b.rank();
        *low = *if takes_low_a { first_a } else { first_b };
        *high = *if takes_high_a { last_a } else { last_b };
        low_a += usize::from(takes_low_a);
        high_a += usize::from(takes_high_a);
    }
    let left_a = a.get(low_a..a.len() - high_a);
    let left_b = b.get(steps - low_a..b.len() - (steps - high_a));
    left_a
        .zip(left_b)
        .or_bug("postings between both ends of a merge")
}

/// Fills `slots` with the merge of two slices, one of which has at most one posting.
fn merge_rest(a: &[Posting], b: &[Posting], slots: &mut [Posting]) -> Result<()> {
    let (one, many) = if a.len() <= 1 { (a, b) } else { (b, a) };
    invariant!(
        one.len() <= 1 && slots.len() == one.len() + many.len(),
        "{} slots for {} and {} postings",
        slots.len(),
        one.len(),
        many.len()
    );
    let is_before = |posting: &Posting| one.first().is_some_and(|one| posting < one);
    let (below, above) = many.split_at(many.partition_point(is_before));
    let (low, rest) = slots.split_at_mut(below.len());
    let (middle, high) = rest.split_at_mut(one.len());
    low.copy_from_slice(below);
    middle.copy_from_slice(one);
    high.copy_from_slice(above);
    Ok(())
}

/// Merges sorted slices two by two, which is twice as fast as a heap for a few slices, and reuses
/// the memory of intermediate results.
#[derive(Default)]
pub(super) struct SliceMerger {
    spare: Vec<Vec<Posting>>,
}

impl SliceMerger {
    /// Appends the merge of sorted slices.
    pub(super) fn append(
        &mut self,
        slices: &[&[Posting]],
        merged: &mut Vec<Posting>,
    ) -> Result<()> {
        match slices {
            [] => {}
            [one] => merged.extend_from_slice(one),
            [a, b] => merge_two(a, b, merged)?,
            _ => {
                let (front, back) = slices.split_at(middle_of(slices));
                // Room that was used before, if there is any.
                let mut room = [(); 2].map(|()| self.spare.pop().unwrap_or_default());
                let [of_front, of_back] = &mut room;
                let front = self.merged(front, of_front)?;
                let back = self.merged(back, of_back)?;
                merge_two(front, back, merged)?;
                self.spare.extend(room);
            }
        }
        Ok(())
    }

    /// Returns the merge of sorted slices: the only one itself, else the contents of `room`.
    fn merged<'p>(
        &mut self,
        slices: &[&'p [Posting]],
        room: &'p mut Vec<Posting>,
    ) -> Result<&'p [Posting]> {
        if let [one] = slices {
            return Ok(one);
        }
        room.clear();
        self.append(slices, room)?;
        Ok(room)
    }
}

/// Returns where to cut slices into two halves with about equally many postings. A large slice
/// beside small ones is then copied once, and slices of equal size are copied equally often.
fn middle_of(slices: &[&[Posting]]) -> usize {
    let half = slices.iter().map(|slice| slice.len()).sum::<usize>() / 2;
    let mut before = 0;
    let middle = slices.iter().position(|slice| {
        before += slice.len();
        before > half
    });
    // The slice that crosses the middle belongs to the second half, unless nothing is before it.
    middle.map_or(1, |middle| middle.clamp(1, slices.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn posting(code: u64) -> Posting {
        Posting { code, id: code % 7 }
    }

    /// Returns postings three at a time, and then fails if requested.
    struct Threes {
        postings: Vec<Posting>,
        fails: bool,
    }

    impl PostingChunks for Threes {
        fn read(&mut self, postings: &mut Vec<Posting>) -> Result<()> {
            if self.postings.is_empty() && self.fails {
                return Err(Error::corrupt("here", "broken"));
            }
            postings.extend(self.postings.drain(..self.postings.len().min(3)));
            Ok(())
        }
    }

    fn stream(codes: &[u64]) -> Threes {
        Threes {
            postings: codes.iter().copied().map(posting).collect(),
            fails: false,
        }
    }

    #[test]
    fn k_way_merge_sorts_streams_of_all_lengths() {
        for streams in 0..9u64 {
            let inputs: Vec<Vec<u64>> = (0..streams)
                .map(|s| (0..s * 5).map(|i| i * (s + 3) % 101).collect())
                .map(|mut codes: Vec<u64>| {
                    codes.sort_unstable();
                    codes
                })
                .collect();
            let mut expected: Vec<Posting> = inputs.concat().into_iter().map(posting).collect();
            expected.sort_unstable();
            let merged = KWayMerge::new(inputs.iter().map(|codes| stream(codes)));
            assert_eq!(
                ChunkIter::new(merged).collect::<Result<Vec<_>>>().unwrap(),
                expected
            );
            let inputs: Vec<Vec<Posting>> = inputs
                .into_iter()
                .map(|codes| codes.into_iter().map(posting).collect())
                .collect();
            let slices: Vec<&[Posting]> = inputs.iter().map(Vec::as_slice).collect();
            let mut merged = Vec::new();
            SliceMerger::default().append(&slices, &mut merged).unwrap();
            assert_eq!(merged, expected);
        }
    }

    #[test]
    fn k_way_merge_returns_an_error_once_and_ends() {
        for good in [0, 3, 9] {
            let codes: Vec<u64> = (0..good).collect();
            let failing = Threes {
                fails: true,
                ..stream(&codes)
            };
            let other = stream(&(0..20).collect::<Vec<_>>());
            let mut merged = ChunkIter::new(KWayMerge::new([failing, other]));
            let found = merged.by_ref().take_while(Result::is_ok).count() as u64;
            // All up to the last good one, from both streams.
            assert_eq!(found, 2 * good);
            assert!(merged.next().is_none());
        }
    }

    /// A slot that no posting was written to would be a wrong posting, and the count would not show it.
    #[test]
    fn k_way_merge_reports_unfilled_slots_as_a_bug() {
        let [a, b]: [Vec<Posting>; 2] =
            [0, 1].map(|odd| (0..9).map(|i| posting(2 * i + odd)).collect());
        let slots = || vec![Posting::lowest_of(0); 20];
        let is_bug = |error: Error| matches!(error, Error::Bug { .. });
        for (low, high) in [(4, 3), (3, 4), (0, 0), (5, 5)] {
            let (mut low_slots, mut high_slots) = (slots(), slots());
            let merged = merge_ends(&a, &b, &mut low_slots[..low], &mut high_slots[..high]);
            assert!(is_bug(merged.unwrap_err()), "{low} {high}");
        }
        for (of_a, of_b, count) in [(1, 9, 9), (1, 9, 11), (0, 0, 1), (2, 2, 4)] {
            let merged = merge_rest(&a[..of_a], &b[..of_b], &mut slots()[..count]);
            assert!(is_bug(merged.unwrap_err()), "{of_a} {of_b} {count}");
        }
    }

    #[test]
    fn k_way_merge_splits_slices_in_half() {
        let all = [posting(0); 64];
        let middle = |lengths: &[usize]| {
            let slices: Vec<&[Posting]> = lengths.iter().map(|length| &all[..*length]).collect();
            middle_of(&slices)
        };
        assert_eq!(middle(&[16, 8, 4, 2, 1]), 1);
        assert_eq!(middle(&[1, 2, 4, 8, 16]), 4);
        assert_eq!(middle(&[5, 5, 5, 5]), 2);
        assert_eq!(middle(&[0, 0, 0]), 1);
        assert_eq!(middle(&[0, 0, 9]), 2);
    }
}
