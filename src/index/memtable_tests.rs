use std::collections::BTreeSet;

use super::*;
use crate::index::segment::SegmentBuilder;
use crate::index::testing::{Random, in_range, lane_codes, posting};

impl Memtable {
    /// Visits the postings of a lane whose codes are in `low_code..=high_code`: oldest segment first,
    /// sorted within each.
    pub(crate) fn postings_in(
        &self,
        lane: u16,
        low_code: u64,
        high_code: u64,
        visit: &mut impl FnMut(Posting),
    ) {
        for segment in self.segments.iter() {
            for posting in segment.range(lane, low_code, high_code) {
                visit(*posting);
            }
        }
    }

    /// The numbers of all lanes of any segment, ascending.
    pub(crate) fn lanes(&self) -> Vec<u16> {
        let segments = self.segments.iter();
        let mut lanes: Vec<u16> = segments.flat_map(|segment| segment.lanes()).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }

    /// How many documents were added.
    pub(crate) fn documents(&self) -> u64 {
        self.documents
    }

    /// How many segments a probe looks into.
    pub(crate) fn segments(&self) -> usize {
        self.segments.len()
    }
}

/// A segment of documents with a code in lane 0 if the id is even, and in lane 7 always.
fn segment(random: &mut Random, ids: std::ops::Range<u64>) -> (Segment, [BTreeSet<Posting>; 2]) {
    let mut builder = SegmentBuilder::new([0, 7].into());
    let mut expected = [BTreeSet::new(), BTreeSet::new()];
    for id in ids {
        let (even, always) = (random.next(), random.below(50));
        let even = id.is_multiple_of(2).then_some(even);
        let codes = lane_codes(&[0, 7], &[even, Some(always)]);
        builder.push(id, &codes).unwrap();
        expected[0].extend(even.map(|code| posting(code, id)));
        expected[1].insert(posting(always, id));
    }
    (builder.build(), expected)
}

fn assert_holds(memtable: &Memtable, expected: &[BTreeSet<Posting>; 2]) {
    for (lane, postings) in [0, 7].into_iter().zip(expected) {
        assert!(memtable.lane(lane).unwrap().iter().eq(postings));
        for (low, high) in [(0, u64::MAX), (3, 3), (10, 20), (1 << 60, 1 << 62)] {
            let mut found = Vec::new();
            memtable.postings_in(lane, low, high, &mut |posting| found.push(posting));
            let mut probed = Vec::new();
            let range = CodeRange::new(lane, low, high);
            let visit = &mut |_, posting| {
                probed.push(posting);
                Ok(ProbeControl::GoOn)
            };
            memtable.probe(&[range], visit).unwrap();
            assert_eq!(probed, found);
            found.sort_unstable();
            assert_eq!(found, in_range(postings, low..=high));
        }
    }
    assert!(memtable.lane(3).unwrap().is_empty());
    assert_eq!(memtable.documents(), expected[1].len() as u64);
}

#[test]
fn memtable_versions_are_immutable() {
    let mut random = Random(1);
    let mut versions = vec![(Memtable::default(), [BTreeSet::new(), BTreeSet::new()])];
    let mut next_id = 0;
    for _ in 0..60 {
        let count = 1 + random.below(40);
        let (segment, added) = segment(&mut random, next_id..next_id + count);
        next_id += count;
        let (before, mut held) = versions.last().cloned().unwrap();
        for (held, added) in held.iter_mut().zip(added) {
            held.extend(added);
        }
        versions.push((before.push(segment).unwrap(), held));
    }
    for (memtable, held) in &versions {
        assert_holds(memtable, held);
    }
    assert!(versions[0].0.lanes().is_empty());
    assert_eq!(versions[9].0.lanes(), [0, 7]);
}

#[test]
fn memtable_keeps_few_segments() {
    let falling = (0..=150).rev();
    let rising = 1..=150;
    let sawtooth = (0..150).map(|i| i * 37 % 100);
    let single = (0..2_000).map(|_| 1);
    let all: [Vec<u64>; 4] = [
        falling.collect(),
        rising.collect(),
        sawtooth.collect(),
        single.collect(),
    ];
    for commits in all {
        let mut memtable = Memtable::default();
        let mut random = Random(2);
        let mut next_id = 0;
        for documents in commits {
            memtable = memtable
                .push(segment(&mut random, next_id..next_id + documents).0)
                .unwrap();
            next_id += documents;
            let sizes: Vec<u64> = memtable.segments.iter().map(|s| s.documents()).collect();
            assert!(
                sizes.is_sorted_by(|a, b| *a >= 2 * b && *b > 0),
                "{sizes:?}"
            );
            assert!(memtable.segments() as u32 <= 1 + next_id.max(1).ilog2());
            assert_eq!(sizes.iter().sum::<u64>(), next_id);
        }
    }
}

/// Merging earlier than necessary would copy postings more often.
#[test]
fn memtable_keeps_a_segment_twice_as_large() {
    let mut random = Random(4);
    let two = Memtable::default();
    let two = two.push(segment(&mut random, 0..2).0).unwrap();
    let mut segments_with = |last_id| {
        let newer = segment(&mut random, 2..last_id).0;
        two.push(newer).unwrap().segments()
    };
    assert_eq!((segments_with(3), segments_with(4)), (2, 1));
}

#[test]
fn memtable_of_a_transaction_is_appended() {
    let mut random = Random(3);
    let (a, held_a) = segment(&mut random, 0..100);
    let (b, held_b) = segment(&mut random, 100..130);
    let (c, held_c) = segment(&mut random, 130..137);
    let store = Memtable::default().push(a).unwrap();
    let own = Memtable::default().push(b).unwrap().push(c).unwrap();
    assert_eq!(own.segments(), 2);
    let both = store.append(&own).unwrap();
    let union = |lane: usize| &(&held_a[lane] | &held_b[lane]) | &held_c[lane];
    assert_holds(&both, &[union(0), union(1)]);
    assert_holds(&store, &held_a);
    assert_holds(&store.append(&Memtable::default()).unwrap(), &held_a);
    assert_holds(&Memtable::default().append(&store).unwrap(), &held_a);
    assert!(both.heap_bytes() >= 16 * (137 + 68));
}
