//! The functions in rows of lanes, as kernels evaluate them.

/// Functions that are evaluated together: one vector register of 512 bits, or several smaller ones.
/// Frozen: in the default family functions share a multiplier if their numbers differ by a multiple of it.
pub(super) const LANES: usize = 16;

/// Builds `rows` rows: lane i of row j is `function(16 j + i)`.
pub(super) fn build_rows<T>(rows: usize, function: impl Fn(u64) -> T) -> Vec<[T; LANES]> {
    let row = |row: usize| std::array::from_fn(|lane| function((row * LANES + lane) as u64));
    (0..rows).map(row).collect()
}

/// The high 32 bits of a number.
pub(super) fn high(number: u64) -> u32 {
    (number >> 32) as u32
}
