use std::collections::BTreeSet;

use redb::{ReadableTableMetadata, TableDefinition, backends::InMemoryBackend};

use super::*;
use crate::format::block_encoder::{BlockShape, Encoded};
use crate::format::checksum::CHECKSUM_BYTES;
use crate::format::posting::{NearCodes, block_key};
use crate::sample::Random;

const TABLE: &str = "bands";

/// Returns `count` random postings in order, with codes of these bits and ids from the first one.
fn drawn(random: &mut Random, count: usize, codes: u64, first_id: u64, ids: u64) -> Vec<Posting> {
    let posting = |_| Posting {
        code: random.next() & codes,
        id: first_id + random.next() % ids,
    };
    let postings: BTreeSet<Posting> = (0..count).map(posting).collect();
    postings.into_iter().collect()
}

fn posting(code: u64, id: u64) -> Posting {
    Posting { code, id }
}

/// Sorted postings of many shapes, all with more than fit a block, and some with fewer.
fn shapes() -> Vec<Vec<Posting>> {
    let mut random = Random(1);
    let top = u64::MAX;
    vec![
        vec![posting(0, 0)],
        vec![posting(top, top)],
        vec![posting(0, 0), posting(top, top)],
        vec![posting(0, top), posting(top, 0)],
        (0..64)
            .map(|bit| posting(1 << bit, 1 << (63 - bit)))
            .collect(),
        drawn(&mut random, 1, top, 0, 1000),
        drawn(&mut random, 63, top, 0, 1000),
        drawn(&mut random, 64, top, top - 1000, 1000),
        drawn(&mut random, 65, 0xff, 0, 1000),
        drawn(&mut random, 9_000, (1 << 40) - 1, 1 << 33, 65_536),
        drawn(&mut random, 9_000, top, 0, 1_000_000),
        drawn(&mut random, 9_000, top, 0, top),
        drawn(&mut random, 9_000, 0xf, 7, 1_000_000),
        drawn(&mut random, 9_000, 0xff << 56, 7, 1_000_000),
        drawn(&mut random, 9_000, top << 63, top - 1_000_000, 1_000_000),
        (0..20_000).map(|id| posting(7, id)).collect(),
        (0..20_000).map(|code| posting(code, 7)).collect(),
        (0..20_000)
            .map(|code| posting(top - 20_000 + code, top))
            .collect(),
        // Nearly all in one bucket of the upper part.
        (0..5_000)
            .map(|i| posting(i * i, i))
            .chain([posting(top, 0)])
            .collect(),
    ]
}

fn encoded(previous: Option<Posting>, postings: &[Posting]) -> (Encoded, Vec<u8>) {
    let mut value = vec![1, 2, 3];
    let encoded = encode(TABLE, 3, 5, previous, postings, &mut value);
    (encoded.unwrap(), value)
}

fn decoded(key: &BlockKey, value: &[u8]) -> Result<Vec<Posting>> {
    let mut postings = Vec::new();
    let block = Block::parse(TABLE, key, value)?;
    block.decode(&mut postings, || "decode".into())?;
    Ok(postings)
}

#[test]
fn longest_block_fits_one_page() {
    let pages = |value_bytes: usize| {
        let builder = redb::Database::builder();
        let database = builder.create_with_backend(InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        let definition = TableDefinition::<&BlockKey, &[u8]>::new(TABLE);
        let mut table = transaction.open_table(definition).unwrap();
        let value = vec![7; value_bytes];
        for id in 0..50 {
            let key = block_key(1, 2, posting(3, id));
            table.insert(&key, value.as_slice()).unwrap();
        }
        let stats = table.stats().unwrap();
        let bytes = stats.stored_bytes() + stats.metadata_bytes() + stats.fragmented_bytes();
        assert_eq!(stats.leaf_pages(), 50);
        bytes / 4096 - stats.branch_pages()
    };
    assert_eq!(pages(BLOCK_VALUE_BYTES), 50);
    assert_eq!(pages(BLOCK_VALUE_BYTES + 1), 100);
}

#[test]
fn block_round_trips_to_the_same_bytes() {
    for postings in shapes() {
        let mut rest = postings.as_slice();
        let mut previous = None;
        while !rest.is_empty() {
            let (encoded, value) = encoded(previous, rest);
            assert!(value.len() <= BLOCK_VALUE_BYTES);
            let (taken, after) = rest.split_at(encoded.count);
            assert_eq!(encoded.last, *taken.last().unwrap());
            assert_eq!(split_block_key(&encoded.key), (3, 5, encoded.last));
            let back = decoded(&encoded.key, &value).unwrap();
            assert_eq!(back, taken);
            let block = Block::parse(TABLE, &encoded.key, &value).unwrap();
            assert_eq!(block.len(), taken.len());
            assert_eq!(block.previous(), previous);
            assert_eq!(self::encoded(previous, &back), (encoded, value));
            previous = Some(encoded.last);
            rest = after;
        }
    }
}

#[test]
fn block_is_filled_to_its_limit() {
    for postings in shapes() {
        let (encoded, value) = encoded(None, &postings);
        let Some(one_more) = postings.get(..=encoded.count) else {
            continue;
        };
        let shape = |postings: &[Posting]| {
            let first = BlockShape::from_posting(&postings[0]);
            first.with(postings[0].code, &postings[1..])
        };
        assert_eq!(shape(&postings[..encoded.count]).value_bytes(), value.len());
        let full = shape(one_more).value_bytes() > BLOCK_VALUE_BYTES;
        assert!(full || encoded.count == BLOCK_POSTINGS);
    }
}

#[test]
fn block_without_postings_is_empty() {
    assert_eq!(encode(TABLE, 0, 0, None, &[], &mut Vec::new()), None);
}

#[test]
fn block_range_agrees_with_a_filter() {
    let mut random = Random(2);
    for postings in shapes() {
        let (encoded, value) = encoded(None, &postings);
        let block = Block::parse(TABLE, &encoded.key, &value).unwrap();
        let taken = &postings[..encoded.count];
        let mut codes = vec![0, 1, u64::MAX - 1, u64::MAX];
        for _ in 0..60 {
            let near = taken[random.next() as usize % taken.len()].code;
            codes.extend([near, near.wrapping_add(1), near.wrapping_sub(1)]);
            codes.push(random.next() >> (random.next() % 64));
        }
        for low in &codes {
            let wide = low.saturating_add(random.next() >> (random.next() % 64));
            for high in [*low, low | 0xff, wide, u64::MAX] {
                let found: Vec<_> = block.find_range(*low, high).collect();
                let in_range = |p: &&Posting| (*low..=high).contains(&p.code);
                let expected: Vec<_> = taken.iter().filter(in_range).copied().collect();
                assert_eq!(found, expected, "{low:#x}..={high:#x}");
                let near = NearCodes {
                    code: wide,
                    max_distance: (random.next() % 40) as u32,
                };
                let found = block.find_range(*low, high).near(Some(near));
                let expected = expected.into_iter().filter(|p| near.have(p.code));
                assert!(found.eq(expected), "{low:#x}..={high:#x} {near:?}");
            }
        }
    }
}

#[test]
fn block_size_of_uniform_codes_matches_the_theory() {
    // Elias-Fano takes 2 bits and the logarithm of the mean gap at best, 3 at worst; ids take 16
    // bits of 65,536; header and checksum take 43 bytes of a full block.
    for (code_bits, most) in [(40, 43.0), (64, 67.0)] {
        let mut random = Random(code_bits);
        let codes = mask(code_bits as u32);
        let postings = drawn(&mut random, 65_536, codes, 0, 65_536);
        let (mut rest, mut bytes) = (postings.as_slice(), 0);
        while !rest.is_empty() {
            let (encoded, value) = encoded(None, rest);
            bytes += value.len();
            rest = &rest[encoded.count..];
        }
        let bits = bytes as f64 * 8.0 / postings.len() as f64;
        assert!(bits > most - 1.0 && bits < most * 1.015, "{bits}");
    }
}

/// Reads all that can be read; only panics and endless loops can fail it.
fn exercise(block: &Block<'_>) {
    let count = block.len();
    assert!(block.iter().count() <= count);
    for shift in 0..64 {
        let low = u64::MAX >> shift;
        assert!(block.find_range(low, u64::MAX).count() <= count);
        assert!(block.find_range(block.first_code, low).count() <= count);
    }
    let _ = block.decode(&mut Vec::new(), String::new);
}

/// Zeros would be good codes and ids: parts of another block must not be taken for this one's.
#[test]
fn block_with_foreign_parts_is_a_bug() {
    let postings = drawn(&mut Random(4), 300, u64::MAX, 0, 1000);
    let (encoded, value) = encoded(None, &postings);
    let block = Block::parse(TABLE, &encoded.key, &value).unwrap();
    let cases = [
        Block {
            upper: &[],
            ..block
        },
        Block {
            lower: &[],
            ..block
        },
        Block {
            ids: &block.ids[1..],
            ..block
        },
        Block {
            count: block.count - 1,
            ..block
        },
        Block {
            upper_bits: block.upper_bits - 64,
            ..block
        },
    ];
    for block in cases {
        let decoded = block.decode(&mut Vec::new(), String::new);
        assert!(matches!(decoded, Err(Error::Bug { .. })), "{decoded:?}");
    }
}

#[test]
fn block_detects_every_flipped_bit() {
    let postings = drawn(&mut Random(3), 40, u64::MAX, 0, 1000);
    let (encoded, value) = encoded(Some(posting(0, 0)), &postings);
    for bit in 0..value.len() * 8 {
        let mut damaged = value.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = Block::parse(TABLE, &encoded.key, &damaged).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }));
    }
    for bit in 0..encoded.key.len() * 8 {
        let mut key = encoded.key;
        key[bit / 8] ^= 1 << (bit % 8);
        assert!(Block::parse(TABLE, &key, &value).is_err());
    }
    assert!(Block::parse("keys", &encoded.key, &value).is_err());
}

#[test]
fn forged_blocks_with_good_checksums_never_panic() {
    let mut random = Random(4);
    let (mut accepted, mut refused) = (0, 0);
    for postings in shapes() {
        let (encoded, value) = encoded(None, &postings[..postings.len().min(50)]);
        for round in 0..2_000 {
            let mut forged = value[..value.len() - CHECKSUM_BYTES].to_vec();
            for _ in 0..=round % 4 {
                let place = random.next() as usize % forged.len();
                // Header bytes are few, but matter most.
                let place = if round % 2 == 0 {
                    place % HEADER_BYTES
                } else {
                    place
                };
                forged[place] = random.next() as u8;
            }
            let mut key = encoded.key;
            if round % 5 == 0 {
                key[6 + random.next() as usize % 16] = random.next() as u8;
            }
            checksum::seal(TABLE, &key, &mut forged);
            match Block::parse(TABLE, &key, &forged) {
                Ok(block) => {
                    accepted += 1;
                    exercise(&block);
                }
                Err(error) => {
                    refused += 1;
                    assert!(matches!(error, Error::Corrupt { .. }));
                }
            }
        }
    }
    // Both ways were tried.
    assert!(accepted > 100 && refused > 1_000, "{accepted} {refused}");
}

#[test]
fn block_refuses_random_bytes() {
    let mut random = Random(5);
    for length in 0..300 {
        let mut value: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let key = block_key(0, 0, posting(random.next(), random.next()));
        assert!(Block::parse(TABLE, &key, &value).is_err());
        checksum::seal(TABLE, &key, &mut value);
        assert!(Block::parse(TABLE, &key, &value).is_err());
    }
}

#[test]
fn block_decoding_detects_postings_out_of_order() {
    let postings = [posting(5, 1), posting(5, 2), posting(5, 3)];
    let (encoded, mut value) = encoded(None, &postings);
    // Ids 0, 1, 2 of 2 bits each become 0, 0, 2, so that id 0 occurs twice.
    let ids = value.len() - CHECKSUM_BYTES - 1;
    assert_eq!(value[ids], 0b10_01_00);
    value[ids] = 0b10_00_00;
    value.truncate(ids + 1);
    checksum::seal(TABLE, &encoded.key, &mut value);
    let error = decoded(&encoded.key, &value).unwrap_err();
    assert!(error.to_string().contains("order"), "{error}");
}

/// A bit in the rest of the last byte of the upper part made up for one that was missing: the block
/// was accepted, and its last posting was beyond the one that the key holds.
#[test]
fn block_code_after_the_last_is_damage() {
    let postings = [posting(0, 5), posting(2, 6), posting(4, 7)];
    let (encoded, mut value) = encoded(None, &postings);
    // Bits 0, 1 + 2 and 2 + 4.
    assert_eq!(value[HEADER_BYTES], 0b0100_1001);
    value[HEADER_BYTES] = 0b1100_0001;
    value.truncate(value.len() - CHECKSUM_BYTES);
    checksum::seal(TABLE, &encoded.key, &mut value);
    let error = Block::parse(TABLE, &encoded.key, &value).unwrap_err();
    assert!(error.to_string().contains("after the last"), "{error}");
}
