//! All near-duplicate pairs: every lane is read once in order, and what shares a bucket is compared.

use std::collections::HashMap;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

use crate::error::Result;
use crate::id::DocumentId;
use crate::lanes::Lanes;
use crate::postings::Posting;
use crate::sketch::{Signature, estimate_equal};
use crate::store::{Bounds, PostingStream, PostingTable, Resolved, Snapshot};

/// Two documents that are near-duplicates, `a` inserted before `b`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pair {
    /// The earlier document.
    pub a: DocumentId,
    /// The later document.
    pub b: DocumentId,
    /// The estimated Jaccard similarity, 0 to 1; `None` without MinHash in the schema.
    pub similarity: Option<f64>,
    /// The Hamming distance of the fingerprints; `None` without SimHash in the schema.
    pub distance: Option<u32>,
}

/// The pairs of a snapshot. Made by [`Snapshot::pairs`].
#[must_use = "nothing is read before it is iterated over"]
pub struct Pairs {
    snapshot: Snapshot,
    bounds: Resolved,
    /// Whether documents with identical signatures are only paired with the first of them: enough
    /// to connect them all, and linear in their number.
    collapse: bool,
    /// The lanes still to be read.
    lanes: Range<u16>,
    stream: Option<LaneStream>,
    bucket: Bucket,
    failed: bool,
}

/// A lane that is being read.
struct LaneStream {
    lane: u16,
    postings: std::iter::Peekable<PostingStream>,
}

/// A document of the current bucket.
struct Member {
    id: u64,
    signature: Signature,
    /// The band codes: two members met before if an earlier one is equal.
    codes: Vec<u64>,
    /// The place of the first member with the same signature, if those are collapsed; else its own.
    first_alike: usize,
}

/// The documents that share a bucket, and the next two to compare.
#[derive(Default)]
struct Bucket {
    lane: u16,
    members: Vec<Member>,
    /// The later one of the next two.
    b: usize,
    /// How many of the earlier ones have been compared with it.
    compared: usize,
    /// The members before `b` that are compared with it, unless it is like one of them.
    firsts: Vec<usize>,
}

impl Bucket {
    fn new(lane: u16, members: Vec<Member>) -> Self {
        Self {
            lane,
            members,
            ..Self::default()
        }
    }

    /// The next two members to compare, each two once.
    fn next_two(&mut self) -> Option<(&Member, &Member)> {
        loop {
            let first_alike = self.members.get(self.b)?.first_alike;
            let earlier = if first_alike == self.b {
                self.firsts.get(self.compared).copied()
            } else {
                (self.compared == 0).then_some(first_alike)
            };
            if let Some(a) = earlier {
                self.compared += 1;
                return self.members.get(a).zip(self.members.get(self.b));
            }
            if first_alike == self.b {
                self.firsts.push(self.b);
            }
            self.b += 1;
            self.compared = 0;
        }
    }
}

impl Pairs {
    pub(crate) fn new(snapshot: Snapshot, bounds: Bounds, collapse: bool) -> Result<Self> {
        let bounds = bounds.resolve(snapshot.schema(), false)?;
        let lanes = &snapshot.core().lanes;
        let bands_end = 1 + lanes.band_count();
        let start = if bounds.probes_bands() { 1 } else { bands_end };
        let end = if bounds.probes_tables() {
            lanes.count()
        } else {
            bands_end
        };
        Ok(Self {
            lanes: start..end,
            snapshot,
            bounds,
            collapse,
            stream: None,
            bucket: Bucket::default(),
            failed: false,
        })
    }

    fn advance(&mut self) -> Result<Option<Pair>> {
        loop {
            if let Some(pair) = self.next_in_bucket() {
                return Ok(Some(pair));
            }
            if !self.next_bucket()? {
                return Ok(None);
            }
        }
    }

    /// The next pair of the bucket that has not met in an earlier lane and is within bounds.
    fn next_in_bucket(&mut self) -> Option<Pair> {
        let lanes = &self.snapshot.core().lanes;
        let (lane, bounds) = (self.bucket.lane, &self.bounds);
        while let Some((a, b)) = self.bucket.next_two() {
            if is_first_meeting(lanes, bounds, lane, a, b) {
                let pair = compare(bounds, lane > lanes.band_count(), a, b);
                if pair.is_some() {
                    return pair;
                }
            }
        }
        None
    }

    /// Loads the next bucket of at least two documents; `false` at the end of the last lane.
    fn next_bucket(&mut self) -> Result<bool> {
        let core = self.snapshot.core();
        loop {
            if self.stream.is_none() {
                let Some(lane) = self.lanes.next() else {
                    return Ok(false);
                };
                let is_table = lane > core.lanes.band_count();
                let table = if is_table {
                    PostingTable::Permuted
                } else {
                    PostingTable::Bands
                };
                let postings = self.snapshot.inner.lane_stream(table, lane)?.peekable();
                self.stream = Some(LaneStream { lane, postings });
            }
            let Some(stream) = self.stream.as_mut() else {
                continue;
            };
            let ids = stream.next_bucket(&core.lanes)?;
            if ids.is_empty() {
                self.stream = None;
                continue;
            }
            if ids.len() > 1 {
                let lane = stream.lane;
                self.bucket = Bucket::new(lane, self.load(&ids)?);
                return Ok(true);
            }
        }
    }

    /// The live documents among `ids`.
    fn load(&self, ids: &[u64]) -> Result<Vec<Member>> {
        let core = self.snapshot.core();
        let mut members = Vec::with_capacity(ids.len());
        self.snapshot
            .source()
            .live_signatures(ids, &mut |id, row| {
                let signature = row.to_signature(core.recipe);
                let mut codes = Vec::new();
                if let Some(values) = signature.minhash()
                    && self.bounds.probes_bands()
                {
                    core.lanes.band_codes(values, &mut codes)?;
                }
                members.push(Member {
                    id,
                    signature,
                    codes,
                    first_alike: members.len(),
                });
                Ok(())
            })?;
        if self.collapse {
            mark_alike(&mut members);
        }
        Ok(members)
    }
}

impl LaneStream {
    /// The documents of the next bucket, ascending by id; none at the end.
    fn next_bucket(&mut self, lanes: &Lanes) -> Result<Vec<u64>> {
        let Some(first) = self.postings.next().transpose()? else {
            return Ok(Vec::new());
        };
        let (_, high) = lanes.bucket_range(self.lane, first.code);
        let within = |posting: &Result<Posting>| posting.as_ref().map_or(true, |p| p.code <= high);
        let mut ids = vec![first.id];
        while let Some(posting) = self.postings.next_if(within) {
            ids.push(posting?.id);
        }
        ids.sort_unstable();
        Ok(ids)
    }
}

/// Notes for each member the first one with the same signature.
fn mark_alike(members: &mut [Member]) {
    let mut first: HashMap<(Vec<u32>, Option<u64>, bool), usize> = HashMap::new();
    for (place, member) in members.iter_mut().enumerate() {
        let signature = &member.signature;
        let values = signature.minhash().unwrap_or_default().to_vec();
        let key = (values, signature.simhash(), signature.is_empty());
        member.first_alike = *first.entry(key).or_insert(place);
    }
}

/// Whether two documents that share a bucket of this lane share none of an earlier lane, so that
/// a pair that meets in several lanes comes once.
fn is_first_meeting(lanes: &Lanes, bounds: &Resolved, lane: u16, a: &Member, b: &Member) -> bool {
    let bands = lanes.band_count();
    let earlier = if bounds.probes_bands() {
        usize::from(lane - 1).min(bands.into())
    } else {
        0
    };
    if a.codes
        .iter()
        .zip(&b.codes)
        .take(earlier)
        .any(|(a, b)| a == b)
    {
        return false;
    }
    let Some(table) = lane.checked_sub(1 + bands).map(usize::from) else {
        return true;
    };
    let fingerprints = a.signature.simhash().zip(b.signature.simhash());
    let first = fingerprints.and_then(|(a, b)| lanes.design()?.first_meeting_table(a, b));
    first == Some(table)
}

fn compare(bounds: &Resolved, in_table: bool, a: &Member, b: &Member) -> Option<Pair> {
    let (first, second) = (&a.signature, &b.signature);
    if first.is_empty() != second.is_empty() {
        return None;
    }
    let values = first.minhash().zip(second.minhash());
    let equal = values.map(|(a, b)| estimate_equal(a, b));
    let fingerprints = first.simhash().zip(second.simhash());
    let distance = fingerprints.map(|(a, b)| (a ^ b).count_ones());
    // What a table brings together by chance, beyond the distance, no query would find by it.
    let close = distance
        .zip(bounds.max_distance)
        .is_some_and(|(d, most)| d <= most);
    let accepted = bounds.accepts(equal.unwrap_or(0), distance.unwrap_or(0));
    (accepted && (close || !in_table)).then(|| Pair {
        a: DocumentId::new(a.id),
        b: DocumentId::new(b.id),
        similarity: equal
            .zip(values)
            .map(|(equal, (a, _))| equal as f64 / a.len() as f64),
        distance,
    })
}

impl Iterator for Pairs {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let snapshot = self.snapshot.clone();
        let next = snapshot.core().guarded(|| self.advance()).transpose();
        self.failed = !matches!(next, Some(Ok(_)));
        next
    }
}

/// After an error or the end nothing follows.
impl FusedIterator for Pairs {}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pairs")
            .field("snapshot", &self.snapshot)
            .field("bounds", &self.bounds)
            .field("lanes", &self.lanes)
            .finish_non_exhaustive()
    }
}
