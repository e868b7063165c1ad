use super::*;
use crate::error::Error;
use crate::index::testing::{Random, lane_codes, posting};

impl Segment {
    /// The postings of a lane whose codes are in `low_code..=high_code`.
    pub(crate) fn range(&self, lane: u16, low_code: u64, high_code: u64) -> &[Posting] {
        let lane = self.lane(lane).unwrap();
        let start = lane.partition_point(|posting| posting.code < low_code);
        let end = lane.partition_point(|posting| posting.code <= high_code);
        lane.get(start..end.max(start)).unwrap()
    }

    /// The numbers of the lanes, ascending.
    pub(crate) fn lanes(&self) -> Vec<u16> {
        self.lanes.iter().map(|found| found.lane).collect()
    }

    /// Postings in all lanes.
    pub(crate) fn postings(&self) -> usize {
        self.postings.len()
    }
}

fn lanes(numbers: &[u16]) -> Arc<[u16]> {
    numbers.into()
}

/// Documents with codes in some lanes only, and the postings of each lane, sorted.
fn build(
    random: &mut Random,
    numbers: &[u16],
    ids: impl Iterator<Item = u64>,
) -> (Segment, Vec<Vec<Posting>>) {
    let mut builder = SegmentBuilder::new(lanes(numbers));
    let mut expected = vec![Vec::new(); numbers.len()];
    let mut documents = 0;
    for id in ids {
        let codes: Vec<Option<u64>> = (0..numbers.len() as u32)
            .map(|lane| (random.below(4) > 0).then(|| random.next() >> (lane * 20)))
            .collect();
        for (lane, code) in expected.iter_mut().zip(&codes) {
            lane.extend(code.map(|code| posting(code, id)));
        }
        builder.push(id, &lane_codes(numbers, &codes)).unwrap();
        documents += 1;
    }
    for (lane, postings) in numbers.iter().zip(&mut expected) {
        let mut found = Vec::new();
        builder.postings_in(*lane, 9, u64::MAX / 2, &mut |posting| found.push(posting));
        let in_range = |p: &&Posting| (9..=u64::MAX / 2).contains(&p.code);
        assert!(postings.iter().filter(in_range).eq(&found));
        postings.sort_unstable();
    }
    assert_eq!(builder.documents(), documents);
    let segment = builder.build();
    assert_eq!((builder.documents(), segment.documents()), (0, documents));
    // Its postings, and what each lane takes.
    assert!(segment.heap_bytes() >= segment.postings() * 16 + numbers.len() * 32);
    assert_eq!(builder.build().postings(), 0);
    (segment, expected)
}

fn assert_holds(segment: &Segment, numbers: &[u16], expected: &[Vec<Posting>]) {
    for (lane, postings) in numbers.iter().zip(expected) {
        assert_eq!(segment.lane(*lane).unwrap(), postings);
    }
    let total: usize = expected.iter().map(Vec::len).sum();
    assert_eq!(segment.postings(), total);
    assert!(segment.heap_bytes() >= total * 16);
}

#[test]
fn segments_of_any_length_are_sorted() {
    let mut random = Random(1);
    let numbers = [0, 3, 4, 900];
    // Lengths around the one from which the radix sort is used.
    for documents in [0, 1, 2, 100, 600, 700, 3_000] {
        let (segment, expected) = build(&mut random, &numbers, 5..5 + documents);
        assert_holds(&segment, &numbers, &expected);
        assert!(segment.lane(1).unwrap().is_empty() && segment.lane(901).unwrap().is_empty());
        let backwards = (0..documents).map(|i| u64::MAX - i);
        let (segment, expected) = build(&mut random, &numbers, backwards);
        assert_holds(&segment, &numbers, &expected);
    }
}

#[test]
fn segment_ranges_agree_with_a_filter() {
    let mut random = Random(2);
    let (segment, expected) = build(&mut random, &[0, 1, 2, 3], 0..2_000);
    for (lane, postings) in expected.iter().enumerate() {
        for _ in 0..300 {
            let low = random.next() >> random.below(64);
            let wide = low.saturating_add(random.next() >> random.below(64));
            for high in [low, wide, u64::MAX, low / 2] {
                let in_range = |p: &&Posting| low <= p.code && p.code <= high;
                let found = segment.range(lane as u16, low, high);
                assert!(postings.iter().filter(in_range).eq(found));
                let range = |lane| CodeRange::new(lane, low, high);
                let mut probed = [const { Vec::new() }; 3];
                let ranges = [range(lane as u16), range(77), range(0)];
                let visit = &mut |index: usize, posting| {
                    probed[index].push(posting);
                    Ok(ProbeControl::GoOn)
                };
                segment.probe(&ranges, visit).unwrap();
                let at_zero = segment.range(0, low, high);
                assert_eq!(probed, [found, &[], at_zero]);
                let near = NearCodes {
                    code: random.next(),
                    max_distance: 28 + random.below(8) as u32,
                };
                let ranges = [CodeRange {
                    near: Some(near),
                    ..range(lane as u16)
                }];
                let mut probed = Vec::new();
                let visit = &mut |_, posting| {
                    probed.push(posting);
                    Ok(ProbeControl::GoOn)
                };
                segment.probe(&ranges, visit).unwrap();
                assert!(found.iter().filter(|p| near.have(p.code)).eq(&probed));
            }
        }
    }
}

#[test]
fn merged_segments_equal_one_built_at_once() {
    let mut random = Random(3);
    for sizes in [vec![5], vec![7, 7], vec![1000, 600, 30, 1, 0, 9]] {
        let mut first = 0;
        let mut all = vec![Vec::new(); 3];
        let mut segments = Vec::new();
        for size in &sizes {
            let (segment, expected) = build(&mut random, &[1, 2, 5], first..first + size);
            first += size;
            segments.push(segment);
            for (all, lane) in all.iter_mut().zip(expected) {
                all.extend(lane);
                all.sort_unstable();
            }
        }
        let merged = Segment::merge(&segments.iter().collect::<Vec<_>>()).unwrap();
        assert_holds(&merged, &[1, 2, 5], &all);
        assert_eq!(merged.documents(), first);
    }
    assert!(matches!(Segment::merge(&[]), Err(Error::Bug { .. })));
}

#[test]
fn segments_of_different_lanes_merge() {
    let mut random = Random(4);
    let (a, in_a) = build(&mut random, &[0, 1, 5], 0..100);
    let (b, in_b) = build(&mut random, &[1, 6], 100..200);
    let merged = Segment::merge(&[&a, &b]).unwrap();
    assert_eq!(merged.lanes(), [0, 1, 5, 6]);
    let mut both = [in_a[1].clone(), in_b[0].clone()].concat();
    both.sort_unstable();
    let expected = [in_a[0].clone(), both, in_a[2].clone(), in_b[1].clone()];
    assert_holds(&merged, &[0, 1, 5, 6], &expected);
}
