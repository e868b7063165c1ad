//! Compares the groups of a batch, with a limited number of comparisons at a time.

use std::ops::Range;

use crate::error::Result;
use crate::invariant::invariant;
use crate::join::batch::{CutBuckets, Group, JoinBatch};
use crate::join::partners::for_each_within;
use crate::join::settings::Settings;
use crate::threads::in_shares;
use resemblance_sketch::lanes::LaneSet;

/// The approximate number of comparisons of a round. Their events are in memory until they are
/// returned: 32 bytes each.
const ROUND_COMPARISONS: usize = 1 << 17;

/// Rows of a round: most buckets are small.
const ROUND_ROWS: usize = 1 << 15;

/// Minimum number of comparisons for which a thread pays.
const MIN_PER_THREAD: usize = 1 << 11;

/// Groups that a comparison found to be equal or near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The members of the group have equal signatures.
    Equal { group: usize },
    /// Each member of `a` is near each member of `b`, or may be, if the pair is to be verified.
    Near {
        a: usize,
        b: usize,
        equal: u32,
        distance: u32,
    },
}

impl Event {
    /// Returns the two groups whose members are near each other, or one group twice.
    pub(super) fn groups(self) -> (usize, usize) {
        match self {
            Self::Equal { group } => (group, group),
            Self::Near { a, b, .. } => (a, b),
        }
    }
}

/// A group that is compared with earlier groups of its bucket.
pub(super) struct GroupRow {
    lane: u16,
    b: usize,
    a: Range<usize>,
    /// True if its members are first returned as equal to each other.
    is_start: bool,
}

impl GroupRow {
    pub(super) fn comparisons(&self) -> usize {
        self.a.len()
    }
}

/// Position in the comparisons of a batch.
#[derive(Default)]
pub(super) struct Cursor {
    piece: usize,
    /// Index of the next row in the piece, and the comparisons of that row handed out so far.
    b: usize,
    compared: usize,
    /// Comparisons of the piece that have been handed out.
    handed_out: usize,
}

impl Cursor {
    pub(super) fn is_at_end(&self, batch: &JoinBatch) -> bool {
        self.piece == batch.pieces.len()
    }

    /// Returns the next rows to compare, all of one piece if that is read alone, and none at the
    /// end of the batch; with them, the piece whose signatures must be read before.
    pub(super) fn next_rows(
        &mut self,
        settings: &Settings,
        batch: &JoinBatch,
    ) -> (Vec<GroupRow>, Option<usize>) {
        let (mut rows, mut comparisons, mut read) = (Vec::new(), 0, None);
        while let Some(piece) = batch.pieces.get(self.piece)
            && comparisons < ROUND_COMPARISONS
            && rows.len() < ROUND_ROWS
        {
            let b = piece.b.start + self.b;
            if b >= piece.b.end {
                // Each two groups are compared once: a pair that is skipped here is found nowhere else.
                debug_assert_eq!(self.handed_out, piece.comparisons());
                *self = Self {
                    piece: self.piece + 1,
                    ..Self::default()
                };
                if piece.is_read_alone && !rows.is_empty() {
                    break;
                }
                continue;
            }
            if piece.is_read_alone && self.b == 0 && self.compared == 0 {
                read = Some(self.piece);
            }
            let end = piece.a.end.min(b).min(piece.representatives_end);
            let start = end.min(piece.a.start + self.compared);
            let a = start..end.min(start + (ROUND_COMPARISONS - comparisons));
            // Equal documents share all their buckets, so the first lane has them all.
            let is_start = self.compared == 0
                && (piece.a.start == 0 || !piece.is_read_alone)
                && piece.lane == settings.lanes.start;
            comparisons += a.len();
            self.handed_out += a.len();
            if a.end == end {
                (self.b, self.compared) = (self.b + 1, 0);
            } else {
                self.compared += a.len();
            }
            if is_start || !a.is_empty() {
                rows.push(GroupRow {
                    lane: piece.lane,
                    b,
                    a,
                    is_start,
                });
            }
        }
        (rows, read)
    }
}

/// Compares the groups of a batch.
#[derive(Clone, Copy)]
pub(super) struct Comparer<'a> {
    pub(super) lanes: &'a LaneSet,
    pub(super) settings: &'a Settings,
    pub(super) cut: &'a CutBuckets,
    pub(super) batch: &'a JoinBatch,
}

impl Comparer<'_> {
    /// Returns the events found in the rows, in their order, whatever the number of threads.
    pub(crate) fn compare(self, rows: &[GroupRow]) -> Result<Vec<Event>> {
        let comparisons: usize = rows.iter().map(|row| row.a.len()).sum();
        let most = self.settings.threads;
        let threads = most.min(comparisons / MIN_PER_THREAD).max(1);
        // Shares are runs of rows, so the order of events is the same for any number of threads.
        let shares = shares(rows, comparisons.div_ceil(threads));
        let shared: usize = shares.iter().map(|share| share.len()).sum();
        invariant!(
            shared == rows.len(),
            "shared {shared} of {} rows",
            rows.len()
        );
        let compare = |share| Ok(self.compare_share(share));
        let events = in_shares("compare", shares, compare)?;
        Ok(events.into_iter().flatten().collect())
    }

    fn compare_share(self, rows: &[GroupRow]) -> Vec<Event> {
        let mut events = Vec::new();
        for row in rows {
            self.compare_row(row, &mut events);
        }
        events
    }

    fn compare_row(self, row: &GroupRow, events: &mut Vec<Event>) {
        if row.is_start && self.batch.members_of(row.b).len() > 1 {
            events.push(Event::Equal { group: row.b });
        }
        let is_table = row.lane > self.lanes.band_count();
        let (Some(distance), true) = (self.settings.bounds.max_distance, is_table) else {
            events.extend(row.a.clone().filter_map(|a| self.near(row.lane, a, row.b)));
            return;
        };
        let fingerprints = &self.batch.fingerprints;
        // Only the lowest 64 bits of wider fingerprints: these differ in no more bits than the
        // whole.
        if let (Some(earlier), Some(own)) =
            (fingerprints.get(row.a.clone()), fingerprints.get(row.b))
        {
            for_each_within(earlier, *own, distance, |offset, _| {
                events.extend(self.near(row.lane, row.a.start + offset, row.b));
            });
        }
    }

    /// Returns two groups of a bucket as near if no earlier bucket has compared them, and the join
    /// wants them. Groups that a table brings together beyond the distance, by chance, are not
    /// returned: no query would find them by it.
    fn near(self, lane: u16, a: usize, b: usize) -> Option<Event> {
        let signatures = &self.batch.signatures;
        debug_assert!(a < b && b < self.batch.groups.len());
        let (first, second) = self.batch.groups.get(a).zip(self.batch.groups.get(b))?;
        if signatures.is_empty(first.slot) != signatures.is_empty(second.slot)
            || self.is_in_earlier_bucket(lane, first, second)
        {
            return None;
        }
        let equal = signatures.agreement(first.slot, second.slot);
        let distance = first.fingerprint.distance(&second.fingerprint);
        let bounds = &self.settings.bounds;
        // With more than 64 bits, codes that are near enough may belong to fingerprints that are
        // not.
        let is_table = lane > self.lanes.band_count();
        if is_table && bounds.max_distance.is_some_and(|max| distance > max) {
            return None;
        }
        let is_wanted = bounds.wants(self.settings.wanted, equal, distance);
        is_wanted.then_some(Event::Near {
            a,
            b,
            // At most 2^30.
            equal: equal as u32,
            distance,
        })
    }

    /// Returns true if two groups, `a` before `b`, were compared in a bucket of an earlier lane.
    fn is_in_earlier_bucket(self, lane: u16, a: &Group, b: &Group) -> bool {
        let signatures = &self.batch.signatures;
        let codes = signatures
            .codes(a.slot)
            .iter()
            .zip(signatures.codes(b.slot));
        // Lane 1 is the first band. Signatures in memory have the codes of all bands, including
        // those that this join does not read.
        let is_read = |lane: &u16| self.settings.lanes.contains(lane);
        let mut earlier = (1..lane).zip(codes).filter(|(lane, _)| is_read(lane));
        if earlier.any(|(lane, (a_code, b_code))| {
            a_code == b_code && self.is_compared_in(lane, *a_code, a)
        }) {
            return true;
        }
        let first = 1 + self.lanes.band_count();
        let Some((table, design)) = lane.checked_sub(first).zip(self.lanes.design()) else {
            return false;
        };
        // The first table that brings two fingerprints together follows from their differing bits, but a bucket that was
        // cut short need not have compared them.
        if self.cut.is_empty() {
            let meeting = design.first_shared_table(&a.fingerprint, &b.fingerprint);
            return meeting != Some(table.into());
        }
        design
            .tables()
            .iter()
            .zip(first..lane)
            .any(|(table, lane)| {
                let (low, high) = table.prefix_range(table.permute(&a.fingerprint));
                let code = table.permute(&b.fingerprint);
                (low..=high).contains(&code) && self.is_compared_in(lane, low, a)
            })
    }

    /// Returns whether a group is compared with all later ones in a bucket.
    fn is_compared_in(self, lane: u16, low_code: u64, group: &Group) -> bool {
        let last = self.cut.get(&(lane, low_code));
        last.is_none_or(|last| group.first <= *last)
    }
}

/// Cuts rows into consecutive shares of about this number of comparisons each.
fn shares(rows: &[GroupRow], comparisons: usize) -> Vec<&[GroupRow]> {
    let mut shares = Vec::new();
    let (mut rest, mut held, mut end) = (rows, 0, 0);
    for row in rows {
        (held, end) = (held + row.a.len(), end + 1);
        if held >= comparisons.max(1)
            && let Some((share, others)) = rest.split_at_checked(end)
        {
            shares.push(share);
            (rest, held, end) = (others, 0, 0);
        }
    }
    shares.push(rest);
    shares
}
