//! Blocks of postings.

use crate::format::{
    BLOCK_POSTINGS, BLOCK_VALUE_BYTES, Block, Posting, block_key, claimed_postings, encode_if,
    split_block_key,
};
use crate::fuzzing::Input;

const TABLE: &str = "bands";
const RUN: u32 = 7;
const LANE: u16 = 3;

/// Somewhat more than one block holds.
const MOST_POSTINGS: usize = BLOCK_POSTINGS + 100;

/// Reads bytes as a block, or as postings that are packed and read back.
pub fn block(data: &[u8]) {
    let mut input = Input::new(data);
    if input.byte().is_multiple_of(2) {
        any_bytes(&mut input);
    } else {
        any_postings(&mut input);
    }
}

fn any_bytes(input: &mut Input<'_>) {
    let last = posting(input);
    let key = block_key(RUN, LANE, last);
    assert_eq!(split_block_key(&key), (RUN, LANE, last));
    for value in input.values(TABLE, &key) {
        let claimed = claimed_postings(&value);
        if let Ok(block) = Block::parse(TABLE, &key, &value) {
            assert!((1..=BLOCK_POSTINGS as u64).contains(&claimed));
            any_block(&block, claimed as usize);
        }
    }
}

/// A block that [`Block::parse`] accepts can be read without harm, and one that [`Block::decode`]
/// accepts is what a block must be.
fn any_block(block: &Block<'_>, claimed: usize) {
    let iterated: Vec<Posting> = block.iter().take(BLOCK_POSTINGS + 1).collect();
    let mut decoded = Vec::new();
    if block.decode(&mut decoded, String::new).is_err() {
        let found = block.find_range(0, u64::MAX).take(BLOCK_POSTINGS + 1);
        assert!(found.count() <= claimed && iterated.len() <= claimed);
        let middle = block.last().code / 2;
        assert!(block.find_range(middle, u64::MAX).count() <= claimed);
        return;
    }
    assert_eq!(iterated, decoded);
    assert_eq!(decoded.len(), claimed);
    assert!(decoded.is_sorted_by(|a, b| a < b));
    assert!(block.previous() < decoded.first().copied());
    assert_eq!(decoded.last(), Some(&block.last()));
    sought(block, &decoded);
    packed(block.previous(), &decoded);
}

/// Seeking finds what iteration passes.
fn sought(block: &Block<'_>, postings: &[Posting]) {
    let places = [
        0,
        postings.len() / 3,
        postings.len() / 2,
        postings.len() - 1,
    ];
    let mut codes = vec![0, u64::MAX];
    for code in places.map(|place| postings[place].code) {
        codes.extend([code.saturating_sub(1), code, code.saturating_add(1)]);
    }
    codes.sort_unstable();
    codes.dedup();
    for (place, low) in codes.iter().enumerate() {
        for high in codes.iter().skip(place.saturating_sub(1)).take(3) {
            let from = postings.partition_point(|posting| posting.code < *low);
            let to = postings.partition_point(|posting| posting.code <= *high);
            let expected = postings.get(from..to).unwrap_or_default();
            let found = block.find_range(*low, *high);
            assert!(found.eq(expected.iter().copied()), "{low:#x} to {high:#x}");
        }
    }
}

fn posting(input: &mut Input<'_>) -> Posting {
    Posting {
        code: input.number(8),
        id: input.number(8),
    }
}

/// Postings of many shapes from few bytes: alone, in even steps, in buckets, far apart.
fn any_postings(input: &mut Input<'_>) {
    let has_previous = input.byte() % 2 == 1;
    let mut postings = Vec::new();
    let mut at = Posting::lowest_of(0);
    while !input.rest.is_empty() && postings.len() < MOST_POSTINGS {
        let (mut count, mut step) = (1, Posting::lowest_of(0));
        match input.byte() % 4 {
            0 => at = posting(input),
            1 => {
                step = Posting {
                    code: input.number(1),
                    id: input.number(2),
                }
            }
            2 => {
                count = input.number(2) % 2_000;
                step = Posting {
                    code: input.number(3),
                    id: input.number(1),
                };
            }
            _ => {
                count = input.number(1);
                step = Posting {
                    code: 1 << (input.byte() % 64),
                    id: input.number(4),
                };
            }
        }
        for _ in 0..count {
            at.code = at.code.wrapping_add(step.code);
            at.id = at.id.wrapping_add(step.id);
            postings.push(at);
        }
    }
    postings.sort_unstable();
    postings.dedup();
    let before = postings.first().and_then(|first| first.previous());
    packed(before.filter(|_| has_previous), &postings);
}

/// Packs all postings into blocks, each as full as it may be, and reads them again.
fn packed(mut previous: Option<Posting>, mut postings: &[Posting]) {
    let mut value = vec![0xaa; 5];
    while !postings.is_empty() {
        let encode = |value: &mut Vec<u8>, is_wanted: bool| {
            encode_if(TABLE, RUN, LANE, previous, postings, value, |_| is_wanted)
        };
        assert_eq!(encode(&mut value, false), None);
        let encoded = encode(&mut value, true).unwrap();
        assert!(value.len() <= BLOCK_VALUE_BYTES);
        assert!((1..=BLOCK_POSTINGS).contains(&encoded.count));
        assert_eq!(claimed_postings(&value), encoded.count as u64);
        let (taken, rest) = postings.split_at(encoded.count);
        assert_eq!(encoded.last, taken[taken.len() - 1]);
        let block = Block::parse(TABLE, &encoded.key, &value).unwrap();
        assert_eq!(block.previous(), previous);
        let mut decoded = Vec::new();
        block.decode(&mut decoded, String::new).unwrap();
        assert_eq!(decoded, taken);
        assert!(block.iter().eq(taken.iter().copied()));
        sought(&block, taken);
        (previous, postings) = (Some(encoded.last), rest);
    }
}
