//! Blocks of postings, read and written from `format-spec.md` alone.

use crate::spec::bytes::{Bytes, sealed};

/// A code and an id.
pub(crate) type Posting = (u64, u64);

#[derive(Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) run: u32,
    pub(crate) lane: u16,
    pub(crate) previous: Option<Posting>,
    pub(crate) postings: Vec<Posting>,
}

fn bit_field(bytes: &[u8], position: usize, width: usize) -> u64 {
    let bit = |i: usize| u64::from(bytes[i / 8] >> (i % 8) & 1);
    (0..width).fold(0, |field, i| field | bit(position + i) << i)
}

fn pack(fields: impl Iterator<Item = u64>, width: usize) -> Vec<u8> {
    let bits: Vec<bool> = fields
        .flat_map(|field| (0..width).map(move |i| field >> i & 1 == 1))
        .collect();
    pack_bits(&bits)
}

fn pack_bits(bits: &[bool]) -> Vec<u8> {
    let byte = |bits: &[bool]| {
        let ones = bits.iter().enumerate().filter(|(_, bit)| **bit);
        ones.fold(0u8, |byte, (i, _)| byte | 1 << i)
    };
    bits.chunks(8).map(byte).collect()
}

pub(crate) fn key(run: u32, lane: u16, last: Posting) -> Vec<u8> {
    let mut key = run.to_be_bytes().to_vec();
    key.extend(lane.to_be_bytes());
    key.extend(last.0.to_be_bytes());
    key.extend(last.1.to_be_bytes());
    key
}

pub(crate) fn decode(table: &str, key: &[u8], value: &[u8]) -> Block {
    let run = u32::from_be_bytes(key[..4].try_into().unwrap());
    let lane = u16::from_be_bytes(key[4..6].try_into().unwrap());
    let last_code = u64::from_be_bytes(key[6..14].try_into().unwrap());
    let last_id = u64::from_be_bytes(key[14..22].try_into().unwrap());
    let mut bytes = Bytes::open(table, key, value);
    assert_eq!(bytes.u8(), 1, "kind");
    let flags = bytes.u8();
    let (low_bits, id_bits) = (usize::from(bytes.u8()), usize::from(bytes.u8()));
    assert_eq!(bytes.u8(), 0, "tail_bits");
    let count = usize::from(bytes.u16());
    let before = (bytes.u64(), bytes.u64());
    let (first_code, least_id) = (bytes.u64(), bytes.u64());
    let zeros = ((last_code - first_code) >> low_bits) as usize;
    let upper = bytes.take((count + zeros).div_ceil(8));
    let lower = bytes.take((count * low_bits).div_ceil(8));
    let ids = bytes.take((count * id_bits).div_ceil(8));
    assert!(bytes.rest().is_empty());
    let ones = (0..upper.len() * 8).filter(|i| upper[i / 8] >> (i % 8) & 1 == 1);
    let postings: Vec<Posting> = ones
        .enumerate()
        .map(|(i, position)| {
            let high = (position - i) as u64;
            let code = (high << low_bits | bit_field(lower, i * low_bits, low_bits)) + first_code;
            (code, least_id + bit_field(ids, i * id_bits, id_bits))
        })
        .collect();
    assert_eq!(postings.len(), count);
    assert_eq!(postings[0].0, first_code);
    assert_eq!(postings.last(), Some(&(last_code, last_id)));
    assert!(flags == 1 || (flags, before) == (0, (0, 0)));
    Block {
        run,
        lane,
        previous: (flags == 1).then_some(before),
        postings,
    }
}

pub(crate) fn encode(table: &str, block: &Block) -> Vec<u8> {
    let postings = &block.postings;
    let (first, last) = (postings[0], postings[postings.len() - 1]);
    let span = last.0 - first.0;
    let low_bits = (span / postings.len() as u64).checked_ilog2().unwrap_or(0);
    let least_id = postings.iter().map(|posting| posting.1).min().unwrap();
    let greatest_id = postings.iter().map(|posting| posting.1).max().unwrap();
    let id_bits = 64 - (greatest_id - least_id).leading_zeros();
    let before = block.previous.unwrap_or((0, 0));

    let mut value = vec![1, u8::from(block.previous.is_some())];
    value.extend([low_bits as u8, id_bits as u8, 0]);
    value.extend((postings.len() as u16).to_le_bytes());
    for number in [before.0, before.1, first.0, least_id] {
        value.extend(number.to_le_bytes());
    }
    let mut upper = vec![false; postings.len() + (span >> low_bits) as usize];
    for (i, posting) in postings.iter().enumerate() {
        upper[i + ((posting.0 - first.0) >> low_bits) as usize] = true;
    }
    value.extend(pack_bits(&upper));
    let low = |posting: &Posting| (posting.0 - first.0) & ((1 << low_bits) - 1);
    value.extend(pack(postings.iter().map(low), low_bits as usize));
    let id = |posting: &Posting| posting.1 - least_id;
    value.extend(pack(postings.iter().map(id), id_bits as usize));
    sealed(table, &key(block.run, block.lane, last), value)
}

/// Bytes of the value of a block of these postings.
pub(crate) fn size(postings: &[Posting]) -> usize {
    let count = postings.len();
    let span = postings[count - 1].0 - postings[0].0;
    let low_bits = (span / count as u64).checked_ilog2().unwrap_or(0);
    let least_id = postings.iter().map(|posting| posting.1).min().unwrap();
    let greatest_id = postings.iter().map(|posting| posting.1).max().unwrap();
    let id_bits = 64 - (greatest_id - least_id).leading_zeros();
    39 + (count + (span >> low_bits) as usize).div_ceil(8)
        + (count * low_bits as usize).div_ceil(8)
        + (count * id_bits as usize).div_ceil(8)
        + 4
}
