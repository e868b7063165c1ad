//! The merge of sorted streams and slices.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::error::{Error, Result};
use crate::format::Posting;

/// Merges sorted streams of postings into one. The first error of any stream comes out next and ends
/// the merge.
pub(crate) struct KWayMerge<I> {
    streams: Vec<I>,
    /// The next posting of each stream that has one, and the stream's index.
    heads: BinaryHeap<Reverse<(Posting, usize)>>,
    failed: Option<Error>,
}

impl<I: Iterator<Item = Result<Posting>>> KWayMerge<I> {
    pub(crate) fn new(streams: impl IntoIterator<Item = I>) -> Self {
        let mut streams: Vec<I> = streams.into_iter().collect();
        let mut heads = BinaryHeap::with_capacity(streams.len());
        let mut failed = None;
        for (index, stream) in streams.iter_mut().enumerate() {
            match stream.next() {
                Some(Ok(posting)) => heads.push(Reverse((posting, index))),
                Some(Err(error)) => failed = failed.or(Some(error)),
                None => {}
            }
        }
        Self {
            streams,
            heads,
            failed,
        }
    }
}

impl<I: Iterator<Item = Result<Posting>>> Iterator for KWayMerge<I> {
    type Item = Result<Posting>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            self.heads.clear();
            return Some(Err(error));
        }
        let mut head = self.heads.peek_mut()?;
        let Reverse((posting, index)) = *head;
        match self.streams.get_mut(index).and_then(Iterator::next) {
            Some(Ok(next)) => *head = Reverse((next, index)),
            Some(Err(error)) => self.failed = Some(error),
            None => {
                PeekMut::pop(head);
            }
        }
        Some(Ok(posting))
    }
}

/// Appends the merge of two sorted slices. It works from both ends at once: neither end waits for the
/// other's comparisons, so that the processor overlaps them.
pub(super) fn merge_two(mut a: &[Posting], mut b: &[Posting], merged: &mut Vec<Posting>) {
    let start = merged.len();
    merged.resize(start + a.len() + b.len(), Posting::lowest_of(0));
    let mut slots = merged.get_mut(start..).unwrap_or_default();
    loop {
        // Neither side can be used up by so many steps.
        let steps = a.len().min(b.len()) / 2;
        if steps == 0 {
            break;
        }
        let (low_a, high_a) = merge_ends(a, b, slots, steps);
        a = a.get(low_a..a.len() - high_a).unwrap_or_default();
        b = b
            .get(steps - low_a..b.len() - (steps - high_a))
            .unwrap_or_default();
        let rest = steps..slots.len() - steps;
        slots = slots.get_mut(rest).unwrap_or_default();
    }
    merge_rest(a, b, slots);
}

/// Takes `steps` postings from each end. Returns how many of these were the first postings of `a`, and how
/// many the last.
#[inline]
fn merge_ends(a: &[Posting], b: &[Posting], slots: &mut [Posting], steps: usize) -> (usize, usize) {
    let (low_slots, rest) = slots.split_at_mut(steps);
    let (_, high_slots) = rest.split_at_mut(rest.len() - steps);
    let pairs = low_slots.iter_mut().zip(high_slots.iter_mut().rev());
    let (last_a, last_b) = (a.len() - 1, b.len() - 1);
    let (mut low_a, mut high_a) = (0, 0);
    for (step, (low, high)) in pairs.enumerate() {
        let ends = (
            a.get(low_a),
            b.get(step - low_a),
            a.get(last_a - high_a),
            b.get(last_b - (step - high_a)),
        );
        let (Some(first_a), Some(first_b), Some(last_a), Some(last_b)) = ends else {
            debug_assert!(false, "{steps} steps of {} and {}", a.len(), b.len());
            break;
        };
        let takes_low_a = first_a.rank() <= first_b.rank();
        let takes_high_a = last_a.rank() > last_b.rank();
        *low = *if takes_low_a { first_a } else { first_b };
        *high = *if takes_high_a { last_a } else { last_b };
        low_a += usize::from(takes_low_a);
        high_a += usize::from(takes_high_a);
    }
    (low_a, high_a)
}

/// Fills `slots` with the merge of two slices, one of which has at most one posting.
fn merge_rest(mut a: &[Posting], mut b: &[Posting], slots: &mut [Posting]) {
    let mut slots = slots.iter_mut();
    while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b)
        && let Some(slot) = slots.next()
    {
        if first_a.rank() <= first_b.rank() {
            (*slot, a) = (*first_a, rest_a);
        } else {
            (*slot, b) = (*first_b, rest_b);
        }
    }
    let rest = if a.is_empty() { b } else { a };
    debug_assert_eq!(slots.len(), rest.len());
    slots.zip(rest).for_each(|(slot, posting)| *slot = *posting);
}

/// Returns the merge of sorted slices. They are merged two by two: for few of them twice as quick as a heap.
pub(crate) fn merge_slices(slices: &[&[Posting]]) -> Vec<Posting> {
    let mut merged = Vec::new();
    SliceMerger::default().append(slices, &mut merged);
    merged
}

/// Merges sorted slices, and keeps the memory of what it merges in between.
#[derive(Default)]
pub(super) struct SliceMerger {
    scratch: Vec<Vec<Posting>>,
}

impl SliceMerger {
    /// Appends the merge of sorted slices.
    pub(crate) fn append(&mut self, slices: &[&[Posting]], merged: &mut Vec<Posting>) {
        match slices {
            [] => {}
            [one] => merged.extend_from_slice(one),
            [a, b] => merge_two(a, b, merged),
            _ => {
                let (front, back) = slices.split_at(slices.len() / 2);
                let [a, b] = [front, back].map(|half| {
                    let mut merged = self.scratch.pop().unwrap_or_default();
                    self.append(half, &mut merged);
                    merged
                });
                merge_two(&a, &b, merged);
                for mut used in [a, b] {
                    used.clear();
                    self.scratch.push(used);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posting(code: u64) -> Posting {
        Posting { code, id: code % 7 }
    }

    fn stream(codes: &[u64]) -> std::vec::IntoIter<Result<Posting>> {
        let postings: Vec<_> = codes.iter().map(|code| Ok(posting(*code))).collect();
        postings.into_iter()
    }

    #[test]
    fn streams_of_all_lengths_come_out_sorted() {
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
            assert_eq!(merged.collect::<Result<Vec<_>>>().unwrap(), expected);
            let inputs: Vec<Vec<Posting>> = inputs
                .into_iter()
                .map(|codes| codes.into_iter().map(posting).collect())
                .collect();
            let slices: Vec<&[Posting]> = inputs.iter().map(Vec::as_slice).collect();
            assert_eq!(merge_slices(&slices), expected);
        }
    }

    #[test]
    fn an_error_comes_out_once_and_ends_the_merge() {
        for place in 0..3 {
            let mut failing: Vec<Result<Posting>> = vec![Ok(posting(1)), Ok(posting(5))];
            failing.insert(place, Err(Error::corrupt("here", "broken")));
            let other: Vec<Result<Posting>> = (0..10).map(|code| Ok(posting(code))).collect();
            let mut merged = KWayMerge::new([failing.into_iter(), other.into_iter()]);
            let mut good = 0;
            let error = loop {
                match merged.next().unwrap() {
                    Ok(_) => good += 1,
                    Err(error) => break error,
                }
            };
            assert_eq!(good, [0, 2, 7][place]);
            assert!(error.to_string().contains("broken"));
            assert!(merged.next().is_none());
        }
    }
}
