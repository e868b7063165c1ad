//! The codes of lanes, written from `format-spec.md` alone.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(crate) fn key_code(key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, 0x6b65_7920_6c61_6e65)
}

pub(crate) fn band_code(rows: &[u32], code_bits: u8, value_bits: u8) -> u64 {
    let top = |rows: &[u32], bits: u8| {
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
        xxh3_64(&bytes) >> (64 - bits)
    };
    if rows.len() <= 2 || value_bits < 8 {
        return top(rows, code_bits);
    }
    let first_bits = 3 * code_bits / 5;
    let other_bits = code_bits - first_bits;
    (top(&rows[..2], first_bits) << other_bits) + top(&rows[2..], other_bits)
}

/// A table: the bits of a fingerprint in the order of its code, 0 the most significant, and how
/// many of them are the prefix.
pub(crate) type Table = (Vec<u32>, u32);

/// Returns the tables of groups for fingerprints of this number of bits.
pub(crate) fn tables(bits: u32, groups: &[(u8, u8)]) -> Vec<Table> {
    let count: u32 = groups.iter().map(|&(s, _)| u32::from(s)).sum();
    let block = |i: u32| (i * bits).div_ceil(count)..((i + 1) * bits).div_ceil(count);
    let mut tables = Vec::new();
    let mut first = 0;
    for &(s, r) in groups {
        let group = first..first + u32::from(s);
        for chosen in choices(group.clone().collect(), r.into()) {
            let others = (0..count).filter(|i| !chosen.contains(i));
            let prefix_bits = chosen.iter().map(|&i| block(i).len() as u32).sum();
            let order = chosen.iter().copied().chain(others).flat_map(block);
            tables.push((order.collect(), prefix_bits));
        }
        first = group.end;
    }
    tables
}

/// Every choice of `r` of `from`, in lexicographic order.
fn choices(from: Vec<u32>, r: usize) -> Vec<Vec<u32>> {
    if r == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (i, &first) in from.iter().enumerate() {
        for mut rest in choices(from[i + 1..].to_vec(), r - 1) {
            rest.insert(0, first);
            all.push(rest);
        }
    }
    all
}

/// The code of a fingerprint, given as its low and its high 128 bits, in a table.
pub(crate) fn permute(order: &[u32], fingerprint: [u128; 2]) -> u64 {
    let last = order.len() as u32 - 1;
    let bit = |place: u32| fingerprint[(place / 128) as usize] >> (place % 128) & 1;
    let bits = order.iter().map(|place| bit(last - place));
    let code = bits.take(64).fold(0, |code, bit| code << 1 | bit as u64);
    // Short fingerprints occupy the highest bits.
    code << (64 - order.len().min(64))
}
