//! Finds the codes of a table's bucket that have another code within the distance.

use crate::format::Posting;

/// Number of codes compared before the result is read: enough for vector registers to pay.
const STRIDE: usize = 64;

/// The different codes of one bucket. Kept from bucket to bucket for its memory.
#[derive(Default)]
pub(super) struct Partners {
    codes: Vec<u64>,
    /// A flag for each code: true if it has a partner.
    near: Vec<bool>,
}

/// The postings of each code of a bucket.
fn runs(bucket: &[Posting]) -> impl Iterator<Item = &[Posting]> {
    bucket.chunk_by(|a, b| a.code == b.code)
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
        let first = |run: &[Posting]| run.first().map(|posting| posting.code);
        self.codes.extend(runs(bucket).filter_map(first));
        self.near.clear();
        self.near.resize(self.codes.len(), false);
        let is_searched = self.codes.len() <= max;
        if let Some(distance) = distance
            && is_searched
        {
            self.mark_near(bucket, distance, is_first);
        }
        is_searched
    }

    fn mark_near(
        &mut self,
        bucket: &[Posting],
        distance: u32,
        is_first: impl Fn(u64, u64) -> bool,
    ) {
        for (later, (run, code)) in runs(bucket).zip(&self.codes).enumerate() {
            let (earlier, _) = self.codes.split_at(later);
            let (near_earlier, own) = self.near.split_at_mut(later);
            // Documents with the same code are partners of each other.
            let mut is_near = run.len() > 1 && is_first(*code, *code);
            for_each_within(earlier, *code, distance, |index, other| {
                if is_first(*code, other) {
                    is_near = true;
                    if let Some(near) = near_earlier.get_mut(index) {
                        *near = true;
                    }
                }
            });
            if let Some(near) = own.first_mut() {
                *near |= is_near;
            }
        }
    }

    /// Returns the postings of each code of the bucket, with true if the code has a partner.
    pub(super) fn runs<'b>(
        &self,
        bucket: &'b [Posting],
    ) -> impl Iterator<Item = (&'b [Posting], bool)> {
        runs(bucket).zip(self.near.iter().copied())
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
        // Nearly all strides have none. A loop that only counts is compiled to vector instructions; one that visits is not.
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
