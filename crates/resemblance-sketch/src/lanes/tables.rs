//! SimHash tables, based on the grouped pigeonhole principle.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::error::{Result, SketchError};
use crate::fingerprint::{Fingerprint, check_width};

/// Bits of a code: the number of permuted bits that are stored.
const CODE_BITS: u8 = 64;

/// The greatest number of tables in a design. It bounds the memory that a damaged file can ask for.
const MAX_TABLES: u64 = 256;

/// The greatest number of blocks into which fingerprints are cut.
const MAX_BLOCKS: u64 = 64;

/// Permuted tables that find every fingerprint within a Hamming distance.
///
/// The bits of a fingerprint are cut into blocks, and the blocks form groups. Group `(s, r)` has
/// `s` blocks, and one table for every choice of `r` of them. A table permutes the bits of a
/// fingerprint so that the chosen blocks come first, and a probe reads the fingerprints that share
/// this prefix. (If fingerprints have more than 64 bits, a table stores the first 64 permuted bits.
/// They contain the prefix and rule out most other fingerprints; the stored fingerprint decides.) A
/// fingerprint escapes every table of a group only if it differs in at least `s - r + 1` of its
/// blocks. Whole buckets therefore find **every** fingerprint within distance `k` if the sum of
/// `s - r + 1` over the groups exceeds `k`. A single group gives the tables of Manku, Jain and Das
/// Sarma, *Detecting Near-Duplicates for Web Crawling* (WWW 2007). For greater distances, a probe
/// also reads the buckets with nearby prefixes, and still finds every fingerprint.
///
/// Blocks are numbered from the most significant bit down, group after group. If there are `n`
/// blocks, block `i` begins at bit `ceil(i * bits / n)`. Block sizes therefore differ by at most
/// one bit, and the larger blocks are spread over the groups. The tables of a group are sorted
/// lexicographically by their chosen blocks. In a table the chosen blocks come first, then the
/// others, both in ascending order. The format freezes all of this.
///
/// ```
/// use resemblance_sketch::TableDesign;
/// let design = TableDesign::new(64, 3, &[(4, 3), (4, 3)])?;
/// assert_eq!(design.to_string(), "(4,3) (4,3): 8 tables, prefix 24 bits");
/// assert_eq!((design.bits(), design.max_distance(), design.table_count()), (64, 3, 8));
/// assert_eq!((design.groups(), design.prefix_bits()), (&[(4, 3), (4, 3)][..], 24..=24));
/// // Three differing blocks spoil all tables of this one group: for distance 3 prefixes that differ in one
/// // bit of 32 are read as well.
/// assert_eq!(TableDesign::new(64, 3, &[(4, 2)])?.buckets(1_000_000), 6 * 33);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredDesign", into = "StoredDesign")]
pub struct TableDesign {
    bits: u16,
    max_distance: u8,
    groups: Vec<(u8, u8)>,
    tables: Vec<PermutedTable>,
}

/// The stored form of a design; the tables follow from it. Frozen by the format.
#[derive(Serialize, Deserialize)]
struct StoredDesign {
    /// The number of bits; 0 means 256.
    bits: u8,
    max_distance: u8,
    groups: Vec<(u8, u8)>,
}

impl TryFrom<StoredDesign> for TableDesign {
    type Error = SketchError;

    fn try_from(stored: StoredDesign) -> Result<Self> {
        let bits = match stored.bits {
            0 => 256,
            bits => bits.into(),
        };
        Self::new(bits, stored.max_distance, &stored.groups)
    }
}

impl From<TableDesign> for StoredDesign {
    fn from(design: TableDesign) -> Self {
        Self {
            // All other widths fit into a byte.
            bits: (design.bits % 256) as u8,
            max_distance: design.max_distance,
            groups: design.groups,
        }
    }
}

impl TableDesign {
    /// Creates a design for fingerprints of `bits` bits (32, 64, 128 or 256) and matches within
    /// Hamming distance `max_distance`. Each group is a pair `(blocks, leading blocks)`.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if the width is a different one; if a group has no leading
    /// block, or more leading blocks than blocks; if there are more than 64 blocks, more blocks
    /// than bits, or more than 256 tables; if a prefix is longer than 64 bits; or if a search
    /// within `max_distance` would read more than 65,536 buckets.
    ///
    /// ```
    /// use resemblance_sketch::TableDesign;
    /// let design = TableDesign::new(64, 3, &[(5, 2)])?;
    /// assert_eq!(design.table_count(), 10);
    /// assert_eq!(design.prefix_bits(), 25..=26);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[inline]
    pub fn new(bits: u16, max_distance: u8, groups: &[(u8, u8)]) -> Result<Self> {
        check_groups(bits, max_distance, groups)?;
        let tables = build_tables(bits, groups);
        let expected = format_args!("prefixes of at most {CODE_BITS} bits, those of a code");
        let found = format_args!("{groups:?}");
        let is_valid = tables.iter().all(|table| table.prefix_bits <= CODE_BITS);
        SketchError::require(is_valid, "groups", found, expected)?;
        let design = Self {
            bits,
            max_distance,
            groups: groups.to_vec(),
            tables,
        };
        design.check_buckets()?;
        Ok(design)
    }

    /// Returns the greatest distance at which tables of these groups find every fingerprint of any
    /// width: the sum of `s - r + 1` over the groups, minus one. Returns 0 without groups. A group
    /// with more leading blocks than blocks counts as 1 in the sum.
    ///
    /// ```
    /// use resemblance_sketch::TableDesign;
    /// assert_eq!(TableDesign::complete_distance(&[(5, 2)]), 3);
    /// assert_eq!(TableDesign::complete_distance(&[(3, 2), (2, 2), (2, 2)]), 3);
    /// ```
    #[must_use]
    #[inline]
    pub fn complete_distance(groups: &[(u8, u8)]) -> u8 {
        let spoiling = total(groups, |s, r| u64::from(s.saturating_sub(r)) + 1);
        spoiling.saturating_sub(1).min(u8::MAX.into()) as u8
    }

    /// The width of a fingerprint in bits.
    #[must_use]
    #[inline]
    pub const fn bits(&self) -> u16 {
        self.bits
    }

    /// The Hamming distance that the tables were made for.
    #[must_use]
    #[inline]
    pub const fn max_distance(&self) -> u8 {
        self.max_distance
    }

    /// The groups, each `(blocks, leading blocks)`.
    #[must_use]
    #[inline]
    pub fn groups(&self) -> &[(u8, u8)] {
        &self.groups
    }

    /// The number of tables. Each table contains every fingerprint once.
    #[must_use]
    #[inline]
    pub const fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// Returns the lengths, in bits, of the shortest and the longest prefix that a probe looks up.
    #[must_use]
    #[inline]
    pub fn prefix_bits(&self) -> RangeInclusive<u8> {
        // A design has at least one table; without groups it would find nothing.
        let bits = self.tables.iter().map(|table| table.prefix_bits);
        let (shortest, longest) = bits.fold((u8::MAX, 0), |(shortest, longest), bits| {
            (shortest.min(bits), longest.max(bits))
        });
        shortest..=longest
    }

    /// The tables in the order of their lanes.
    #[inline]
    pub fn tables(&self) -> &[PermutedTable] {
        &self.tables
    }

    /// Returns the probability, in [0, 1], that a fingerprint at this distance shares the prefix of
    /// some table, if all positions of the differing bits are equally probable. It is 1 up to the
    /// [distance](Self::complete_distance) that whole buckets guarantee, and 0 for distances beyond
    /// the width. Prefixes are taken without their last `dropped` blocks.
    pub fn shortened_probability_at(&self, distance: u32, dropped: u8) -> f64 {
        if distance > u32::from(self.bits) {
            return 0.0;
        }
        if distance <= u32::from(self.bucket_distance()) {
            return 1.0;
        }
        let distance = distance as usize;
        // The ways to choose the differing bits so that no table is shared: group by group, as
        // coefficients of a polynomial in the number of bits.
        let mut missed = vec![1.0];
        let count = self.groups.iter().map(|&(s, _)| u32::from(s)).sum();
        let mut blocks = cut(self.bits, count);
        for &(s, r) in &self.groups {
            // A table with fewer leading blocks keeps those that are not among the last ones.
            let last = dropped.min(r - 1);
            let sizes: Vec<u32> = blocks.by_ref().take(s.into()).map(|b| b.bits).collect();
            let (asked, others) = sizes.split_at(usize::from(s - last));
            let spoiled = ways_to_spoil(asked, usize::from(r - last));
            let of_others = choices_of(others.iter().sum());
            missed = product(&missed, &product(&spoiled, &of_others));
        }
        let all = choices_of(self.bits.into());
        let share = missed.get(distance).zip(all.get(distance));
        1.0 - share.map_or(0.0, |(missed, all)| missed / all)
    }

    /// The number of blocks by which prefixes can be shortened.
    #[inline]
    pub fn max_dropped(&self) -> u8 {
        self.groups.iter().fold(0, |most, &(_, r)| most.max(r - 1))
    }

    /// Returns the number of the first table in which two fingerprints share the prefix. Returns
    /// `None` if they share none, which means that they are further apart than `max_distance`. A
    /// join reads one table after another and reports a pair only from this table, so that it
    /// reports each pair once.
    #[inline]
    pub fn first_shared_table(&self, a: &Fingerprint, b: &Fingerprint) -> Option<usize> {
        let differing = a.xor(b);
        let mut tables = self.tables.iter();
        tables.position(|table| table.is_clean(&differing))
    }

    /// Returns true if a code holds all bits of the fingerprint.
    #[inline]
    pub const fn codes_are_exact(&self) -> bool {
        self.bits <= CODE_BITS as u16
    }
}

/// Prints groups, number of tables and lengths of prefixes: "(3,2) (2,2) (2,2): 5 tables, prefix 18
/// to 19 bits".
impl fmt::Display for TableDesign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (blocks, leading)) in self.groups.iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            write!(f, "{space}({blocks},{leading})")?;
        }
        let tables = self.table_count();
        let plural = if tables == 1 { "" } else { "s" };
        write!(f, ": {tables} table{plural}, prefix ")?;
        let (shortest, longest) = self.prefix_bits().into_inner();
        if shortest < longest {
            write!(f, "{shortest} to ")?;
        }
        write!(f, "{longest} bits")
    }
}

/// One permutation of a fingerprint's bits, and the length of the prefix by which it is probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermutedTable {
    prefix_bits: u8,
    /// The end of each leading block in a code, in bits counted from the first bit.
    block_ends: Box<[u8]>,
    /// The moves for each 64 bits of a fingerprint, the least significant 64 first.
    words: Box<[WordMoves]>,
}

/// The moves of 64 bits of a fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WordMoves {
    /// The bits that move into the prefix.
    leading: u64,
    moves: Vec<BitMove>,
}

/// Bits that a permutation rotates left by the same number of positions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BitMove {
    mask: u64,
    rotation: u32,
}

fn permute(word: u64, moves: &[BitMove]) -> u64 {
    moves.iter().fold(0, |code, bits| {
        code | (word & bits.mask).rotate_left(bits.rotation)
    })
}

impl PermutedTable {
    /// The length of the prefix, 1 to 64 bits.
    #[inline]
    pub(super) const fn prefix_bits(&self) -> u8 {
        self.prefix_bits
    }

    /// Returns the code of a fingerprint: its permuted bits, those of the leading blocks first. If
    /// there are more than 64 bits, the code has the first 64.
    #[inline]
    pub fn permute(&self, fingerprint: &Fingerprint) -> u64 {
        let words = self.words.iter().enumerate();
        words.fold(0, |code, (word, of_word)| {
            code | permute(fingerprint.word(word), &of_word.moves)
        })
    }

    /// Returns true if all bits of the prefix are 0 in `differing`.
    fn is_clean(&self, differing: &Fingerprint) -> bool {
        let mut words = self.words.iter().enumerate();
        words.all(|(word, of_word)| differing.word(word) & of_word.leading == 0)
    }

    /// Returns the fingerprint, of 32 or 64 bits, that has this code.
    #[inline]
    pub fn restore(&self, code: u64) -> u64 {
        let moves = self.words.first().map_or(&[][..], |word| &word.moves);
        moves.iter().fold(0, |fingerprint, bits| {
            fingerprint | (code.rotate_right(bits.rotation) & bits.mask)
        })
    }

    /// Returns the smallest and the greatest code with the prefix of `code`.
    #[inline]
    pub fn prefix_range(&self, code: u64) -> (u64, u64) {
        first_bits_range(code, self.prefix_bits)
    }

    /// Returns the length of the prefix without its last `dropped` blocks; at least the first block
    /// remains.
    #[inline]
    pub(super) fn shorter_prefix_bits(&self, dropped: u8) -> u8 {
        let kept = self.block_ends.len().saturating_sub(dropped.into()).max(1);
        let end = self.block_ends.get(kept - 1);
        end.copied().unwrap_or(self.prefix_bits)
    }

    /// Returns the [`prefix_range`](Self::prefix_range) for a [shorter
    /// prefix](Self::shorter_prefix_bits).
    #[inline]
    pub(super) fn shorter_prefix_range(&self, code: u64, dropped: u8) -> (u64, u64) {
        first_bits_range(code, self.shorter_prefix_bits(dropped))
    }
}

/// Returns the smallest and the greatest number with the first `bits` bits of `code`.
#[inline]
pub(super) fn first_bits_range(code: u64, bits: u8) -> (u64, u64) {
    // A shift by all 64 bits leaves nothing.
    let rest = u64::MAX.checked_shr(bits.into()).unwrap_or(0);
    (code & !rest, code | rest)
}

/// Checks everything but the length of prefixes.
fn check_groups(bits: u16, max_distance: u8, groups: &[(u8, u8)]) -> Result<()> {
    check_width(bits)?;
    let found = format_args!("{groups:?}");
    let are_groups = groups.iter().all(|&(s, r)| (1..=s).contains(&r));
    let expected = "(s, r) with r of at least 1 and at most s in every group";
    SketchError::require(are_groups, "groups", found, expected)?;
    let blocks = total(groups, |s, _| s.into());
    let max_blocks = MAX_BLOCKS.min(bits.into());
    let expected = format_args!("at most {max_blocks} blocks, not {blocks}");
    SketchError::require(blocks <= max_blocks, "groups", found, expected)?;
    let tables = total(groups, binomial);
    let expected = format_args!("at most {MAX_TABLES} tables, not {tables}");
    SketchError::require(tables <= MAX_TABLES, "groups", found, expected)?;
    SketchError::require(!groups.is_empty(), "groups", found, "at least one")?;
    let expected = format_args!("less than the {bits} bits");
    let is_valid = u16::from(max_distance) < bits;
    SketchError::require(is_valid, "max_distance", max_distance, expected)?;
    Ok(())
}

fn total(groups: &[(u8, u8)], count: impl Fn(u8, u8) -> u64) -> u64 {
    groups
        .iter()
        .fold(0, |sum: u64, &(s, r)| sum.saturating_add(count(s, r)))
}

/// Returns the number of ways to choose `r` out of `s`; `s` is at least `r`. A result that does not
/// fit a `u64` is `u64::MAX`.
#[inline]
pub(super) fn binomial(s: u8, r: u8) -> u64 {
    let (s, r) = (u128::from(s), u128::from(r.min(s - r)));
    let mut choices = 1_u128;
    for i in 0..r {
        // Exact: the product so far is the number of choices of i + 1 out of s.
        choices = choices.saturating_mul(s - i) / (i + 1);
    }
    choices.min(u64::MAX.into()) as u64
}

/// Returns the number of choices of 0, 1, 2, … out of this number of bits.
fn choices_of(bits: u32) -> Vec<f64> {
    let mut ways = 1.0;
    let mut choices = vec![ways];
    for chosen in 0..bits {
        ways *= f64::from(bits - chosen) / f64::from(chosen + 1);
        choices.push(ways);
    }
    choices
}

/// Returns the product of two polynomials, given by their coefficients.
pub(super) fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut product = vec![0.0; (a.len() + b.len()).saturating_sub(1)];
    for (i, a) in a.iter().enumerate() {
        for (to, b) in product.iter_mut().skip(i).zip(b) {
            *to += a * b;
        }
    }
    product
}

/// Returns, for 0, 1, 2, … bits in blocks of these sizes, the number of ways to choose the bits
/// such that fewer than `leading` blocks remain without a chosen bit.
fn ways_to_spoil(sizes: &[u32], leading: usize) -> Vec<f64> {
    // For 0, 1, … clean blocks so far.
    let mut by_clean = vec![Vec::new(); leading];
    if let Some(none_clean) = by_clean.first_mut() {
        none_clean.push(1.0);
    }
    for size in sizes {
        let mut dirty = choices_of(*size);
        if let Some(none_chosen) = dirty.first_mut() {
            *none_chosen = 0.0;
        }
        let mut clean_before = Vec::new();
        for ways in &mut by_clean {
            let with_dirty = product(ways, &dirty);
            let with_clean = std::mem::replace(&mut clean_before, std::mem::take(ways));
            *ways = sum(with_dirty, &with_clean);
        }
    }
    by_clean
        .iter()
        .fold(Vec::new(), |ways, more| sum(ways, more))
}

/// Returns the sum of two polynomials.
fn sum(mut a: Vec<f64>, b: &[f64]) -> Vec<f64> {
    a.resize(a.len().max(b.len()), 0.0);
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
    a
}

/// A run of bits of a fingerprint: its first bit, counted from the most significant, and its length.
#[derive(Clone, Copy)]
pub(super) struct BitBlock {
    first: u32,
    pub(super) bits: u32,
}

/// Cuts `bits` bits into `count` blocks, block `i` from bit `ceil(i * bits / count)`.
#[inline]
pub(super) fn cut(bits: u16, count: u32) -> impl Iterator<Item = BitBlock> + Clone {
    let start = move |i: u32| (i * u32::from(bits)).div_ceil(count);
    (0..count).map(move |i| BitBlock {
        first: start(i),
        bits: start(i + 1) - start(i),
    })
}

/// Returns every choice of `r` of the numbers from `first` to `first + s - 1`, as bit sets in
/// lexicographic order.
#[inline]
pub(super) fn choices(first: u32, s: u8, r: u8) -> Vec<u64> {
    fn extend(chosen: u64, from: u32, end: u32, missing: u32, found: &mut Vec<u64>) {
        if missing == 0 {
            found.push(chosen);
            return;
        }
        for i in from..=end - missing {
            extend(chosen | 1 << i, i + 1, end, missing - 1, found);
        }
    }
    let mut found = Vec::new();
    extend(0, first, first + u32::from(s), r.into(), &mut found);
    found
}

/// Builds the tables of groups that have been checked.
fn build_tables(bits: u16, groups: &[(u8, u8)]) -> Vec<PermutedTable> {
    let count: u32 = groups.iter().map(|&(s, _)| u32::from(s)).sum();
    let blocks: Vec<BitBlock> = cut(bits, count).collect();
    let mut tables = Vec::new();
    let mut first = 0;
    for &(s, r) in groups {
        for chosen in choices(first, s, r) {
            tables.push(build_table(bits, &blocks, chosen));
        }
        first += u32::from(s);
    }
    tables
}

/// Builds the table whose prefix consists of the chosen blocks.
fn build_table(bits: u16, blocks: &[BitBlock], chosen: u64) -> PermutedTable {
    let is_chosen = |i: usize| chosen >> i & 1 == 1;
    let numbered = || blocks.iter().enumerate();
    let leading = numbered().filter(|&(i, _)| is_chosen(i));
    let others = numbered().filter(|&(i, _)| !is_chosen(i));
    let mut words = vec![WordMoves::default(); usize::from(bits.div_ceil(64))];
    // `to` counts from the most significant bit of the code.
    let (mut prefix_bits, mut to) = (0, 0);
    let mut block_ends = Vec::new();
    for (i, block) in leading.chain(others) {
        for bit in block.first..block.first + block.bits {
            // Blocks count bits from the most significant one, masks from the least significant one.
            let from = u32::from(bits) - 1 - bit;
            let Some(word) = words.get_mut((from / 64) as usize) else {
                continue;
            };
            if is_chosen(i) {
                word.leading |= 1 << (from % 64);
                // A prefix that is longer than a code is refused later.
                prefix_bits = u8::saturating_add(prefix_bits, 1);
            }
            if to < u32::from(CODE_BITS) {
                move_bit(&mut word.moves, from % 64, 63 - to);
            }
            to += 1;
        }
        if is_chosen(i) {
            block_ends.push(prefix_bits);
        }
    }
    PermutedTable {
        prefix_bits,
        block_ends: block_ends.into_boxed_slice(),
        words: words.into_boxed_slice(),
    }
}

/// Adds a bit to those that rotate by the same distance. Positions count from the least significant
/// bit.
fn move_bit(moves: &mut Vec<BitMove>, from: u32, to: u32) {
    let (mask, rotation) = (1 << from, (64 + to - from) % 64);
    match moves.iter_mut().find(|bits| bits.rotation == rotation) {
        Some(bits) => bits.mask |= mask,
        None => moves.push(BitMove { mask, rotation }),
    }
}

#[cfg(test)]
mod tests;
