//! The merge of sorted streams and slices.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::format::posting::Posting;
use crate::{Error, Result};

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

/// As one number: compared without a branch, which the order of postings would mislead.
#[inline]
fn rank(posting: &Posting) -> u128 {
    u128::from(posting.code) << 64 | u128::from(posting.id)
}

/// Appends the merge of two sorted slices, from both ends at once: each end waits for its own
/// comparisons, and so the two take little longer than one.
pub(super) fn merge_two(a: &[Posting], b: &[Posting], merged: &mut Vec<Posting>) {
    let start = merged.len();
    merged.resize(start + a.len() + b.len(), Posting::lowest_of(0));
    let mut slots = merged.get_mut(start..).unwrap_or_default();
    let (mut a, mut b) = (a, b);
    // A step takes one posting from each end, so that neither side may have less than two.
    while let ([first_a, .., last_a], [first_b, .., last_b]) = (a, b) {
        let [low, rest @ .., high] = std::mem::take(&mut slots) else {
            return;
        };
        let takes_low_a = rank(first_a) <= rank(first_b);
        let takes_high_a = rank(last_a) > rank(last_b);
        *low = if takes_low_a { *first_a } else { *first_b };
        *high = if takes_high_a { *last_a } else { *last_b };
        let (low_a, high_a) = (usize::from(takes_low_a), usize::from(takes_high_a));
        a = a.get(low_a..a.len() - high_a).unwrap_or_default();
        b = b.get(1 - low_a..b.len() + high_a - 1).unwrap_or_default();
        slots = rest;
    }
    merge_rest(a, b, slots);
}

/// Fills `slots` with the merge of two slices, of which one is as good as empty.
fn merge_rest(mut a: &[Posting], mut b: &[Posting], slots: &mut [Posting]) {
    let mut slots = slots.iter_mut();
    while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b)
        && let Some(slot) = slots.next()
    {
        if rank(first_a) <= rank(first_b) {
            (*slot, a) = (*first_a, rest_a);
        } else {
            (*slot, b) = (*first_b, rest_b);
        }
    }
    let rest = if a.is_empty() { b } else { a };
    slots.zip(rest).for_each(|(slot, posting)| *slot = *posting);
}

/// The merge of sorted slices, two by two: for few of them twice as quick as a heap.
pub(crate) fn merge_slices(slices: &[&[Posting]]) -> Vec<Posting> {
    let merge_pairs = |slices: &[&[Posting]]| -> Vec<Vec<Posting>> {
        let pairs = slices.chunks(2).map(|pair| {
            let mut merged = Vec::new();
            match pair {
                [a, b] => merge_two(a, b, &mut merged),
                _ => merged = pair.concat(),
            }
            merged
        });
        pairs.collect()
    };
    let mut merged = merge_pairs(slices);
    while merged.len() > 1 {
        let slices: Vec<&[Posting]> = merged.iter().map(Vec::as_slice).collect();
        merged = merge_pairs(&slices);
    }
    merged.pop().unwrap_or_default()
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
