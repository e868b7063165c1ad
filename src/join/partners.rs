//! Finds the codes of a table's bucket that have another code within the distance.

use std::ops::Range;

use crate::format::Posting;

/// Number of codes compared before the result is read: enough for vector registers to pay.
const STRIDE: usize = 64;

/// The different codes of one bucket. Kept from bucket to bucket for its memory.
#[derive(Default)]
pub(super) struct Partners {
    codes: Vec<u64>,
    /// The end of the postings of each code, as an index into the bucket.
    ends: Vec<usize>,
    near: Vec<bool>,
}

impl Partners {
    /// Finds the codes of a bucket, ascending, that have a partner within `distance`, among those
    /// that meet here first. Returns false, without comparing, if there are more than `max` codes.
    pub(super) fn find_if_few(
        &mut self,
        bucket: &[Posting],
        distance: Option<u32>,
        max: usize,
        is_first: impl Fn(u64, u64) -> bool,
    ) -> bool {
        self.codes.clear();
        self.ends.clear();
        for (index, posting) in bucket.iter().enumerate() {
            if self.codes.last() == Some(&posting.code) {
                self.ends.pop();
            } else {
                self.codes.push(posting.code);
            }
            self.ends.push(index + 1);
        }
        self.near.clear();
        self.near.resize(self.codes.len(), false);
        let is_searched = self.codes.len() <= max;
        if let Some(distance) = distance
            && is_searched
        {
            self.mark_near(distance, is_first);
        }
        is_searched
    }

    /// Does what [`find_if_few`](Self::find_if_few) does, for any number of codes.
    pub(super) fn find(
        &mut self,
        bucket: &[Posting],
        distance: Option<u32>,
        is_first: impl Fn(u64, u64) -> bool,
    ) {
        self.find_if_few(bucket, distance, usize::MAX, is_first);
    }

    fn mark_near(&mut self, distance: u32, is_first: impl Fn(u64, u64) -> bool) {
        let mut start = 0;
        for (later, code) in self.codes.iter().enumerate() {
            let end = self.ends.get(later).copied().unwrap_or(start);
            let has_equal = end > start + 1 && is_first(*code, *code);
            start = end;
            let (earlier, near) = (self.codes.get(..later), self.near.split_at_mut(later));
            let mut is_near = has_equal;
            for_each_within(
                earlier.unwrap_or_default(),
                *code,
                distance,
                |index, other| {
                    if is_first(*code, other) {
                        is_near = true;
                        if let Some(near) = near.0.get_mut(index) {
                            *near = true;
                        }
                    }
                },
            );
            if let Some(near) = near.1.first_mut() {
                *near |= is_near;
            }
        }
    }

    /// Returns the range of postings of each code, with true if the code has a partner.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (Range<usize>, bool)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let runs = starts.zip(&self.ends).map(|(start, end)| start..*end);
        runs.zip(self.near.iter().copied())
    }
}

/// Visits the codes within a distance of one, with their indexes.
#[inline]
pub(super) fn for_each_within(
    codes: &[u64],
    code: u64,
    distance: u32,
    mut visit: impl FnMut(usize, u64),
) {
    let is_within = |other: u64| (other ^ code).count_ones() <= distance;
    let mut start = 0;
    for stride in codes.chunks(STRIDE) {
        let within: u32 = stride
            .iter()
            .map(|other| u32::from(is_within(*other)))
            .sum();
        if within > 0 {
            for (index, other) in (start..).zip(stride) {
                if is_within(*other) {
                    visit(index, *other);
                }
            }
        }
        start += stride.len();
    }
}
