//! SimHash tables: the grouped pigeonhole.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Bits of a code: those of a permuted fingerprint that are stored.
const CODE_BITS: u8 = 64;

/// The most tables that a design may have: a bound for what untrusted bytes can ask for.
const MAX_TABLES: u64 = 256;

/// The most blocks that fingerprints are cut into.
const MAX_BLOCKS: u64 = 64;

/// How fingerprints are filed so that every one within a Hamming distance is found.
///
/// The bits of a fingerprint are cut into blocks, the blocks into groups. Group `(s, r)` has `s`
/// blocks and one table for every choice of `r` of them; in a table the fingerprint's bits are
/// permuted so that the chosen blocks lead, and a probe reads the fingerprints that share this
/// prefix. (Of fingerprints of 128 bits a table keeps the first 64 permuted ones: enough for the
/// prefix and to leave most others out; the stored fingerprint decides.) Spoiling every table of a group takes at least `s - r + 1` differing blocks, so the
/// design finds **every** fingerprint within distance `k` if the sum of `s - r + 1` over the
/// groups exceeds `k`. One group gives the tables of Manku, Jain and Das Sarma, *Detecting
/// Near-Duplicates for Web Crawling* (WWW 2007).
///
/// Blocks are numbered from the most significant bit down, group after group. Of `n` blocks,
/// block `i` begins at bit `ceil(i * bits / n)`, so that their sizes differ by one bit at most and
/// the larger ones are spread over the groups. The tables of a group come in lexicographic order
/// of the chosen blocks; in a table the chosen blocks, ascending, come before all others,
/// ascending. All of this is frozen by the format.
///
/// ```
/// use resemblance::TableDesign;
/// let design = TableDesign::new(64, 3, &[(4, 3), (4, 3)])?;
/// assert_eq!(design.to_string(), "(4,3) (4,3): 8 tables, prefix 24 bits");
/// // Three differing blocks spoil all four tables of the one group: distance 3 is not safe.
/// assert!(TableDesign::new(64, 3, &[(4, 2)]).is_err());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct TableDesign {
    bits: u8,
    max_distance: u8,
    groups: Vec<(u8, u8)>,
    tables: Vec<Table>,
}

/// What a design is stored as; the rest follows from it.
#[derive(Serialize, Deserialize)]
struct Stored {
    bits: u8,
    max_distance: u8,
    groups: Vec<(u8, u8)>,
}

impl TryFrom<Stored> for TableDesign {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        Self::new(stored.bits, stored.max_distance, &stored.groups)
    }
}

impl From<TableDesign> for Stored {
    fn from(design: TableDesign) -> Self {
        Self {
            bits: design.bits,
            max_distance: design.max_distance,
            groups: design.groups,
        }
    }
}

impl TableDesign {
    /// The design with these groups, each `(blocks, leading blocks)`, for fingerprints of `bits`
    /// bits (64 or 128) and matches within Hamming distance `max_distance`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the width is neither 64 nor 128, a group has no leading block
    /// or more of them than blocks, there are more than 64 blocks or 256 tables, a prefix is longer
    /// than 64 bits, or the groups would miss some fingerprint within `max_distance`.
    ///
    /// ```
    /// use resemblance::TableDesign;
    /// let design = TableDesign::new(64, 3, &[(5, 2)])?;
    /// assert_eq!(design.table_count(), 10);
    /// assert_eq!(design.prefix_bits(), 25..=26);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn new(bits: u8, max_distance: u8, groups: &[(u8, u8)]) -> Result<Self> {
        check(bits, max_distance, groups)?;
        let tables = build_tables(bits, groups);
        if tables.iter().any(|table| table.prefix_bits > CODE_BITS) {
            let expected = format!("prefixes of at most {CODE_BITS} bits, those of a code");
            return Err(Error::invalid("groups", format!("{groups:?}"), expected));
        }
        Ok(Self {
            bits,
            max_distance,
            groups: groups.to_vec(),
            tables,
        })
    }

    /// The width of a fingerprint in bits.
    #[must_use]
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// The Hamming distance within which every fingerprint is found.
    #[must_use]
    pub const fn max_distance(&self) -> u8 {
        self.max_distance
    }

    /// The groups, each `(blocks, leading blocks)`.
    #[must_use]
    pub fn groups(&self) -> &[(u8, u8)] {
        &self.groups
    }

    /// The number of tables: every fingerprint is filed once in each.
    #[must_use]
    pub const fn table_count(&self) -> usize {
        self.tables.len()
    }

    /// The shortest and the longest prefix, in bits, that a probe of a table goes by.
    #[must_use]
    pub fn prefix_bits(&self) -> RangeInclusive<u8> {
        let bits = || self.tables.iter().map(|table| table.prefix_bits);
        bits().min().unwrap_or(0)..=bits().max().unwrap_or(0)
    }

    /// The tables in the order of their lanes.
    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The first table in which two fingerprints share the prefix; none if they do in no table,
    /// and then they are further apart than `max_distance`. A join that reads table after table
    /// emits a pair where this is the table at hand, hence once.
    pub(crate) fn first_meeting_table(&self, a: u128, b: u128) -> Option<usize> {
        let differing = a ^ b;
        self.tables
            .iter()
            .position(|table| differing & table.leading == 0)
    }

    /// Whether a code holds all bits of the fingerprint.
    pub(crate) const fn codes_are_whole(&self) -> bool {
        self.bits <= CODE_BITS
    }
}

/// "(3,2) (2,2) (2,2): 5 tables, prefix 18 to 19 bits"
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
pub(crate) struct Table {
    prefix_bits: u8,
    /// The bits of a fingerprint that lead.
    leading: u128,
    moves: Box<[Move]>,
    /// The same for the bits 64 and up of a fingerprint, counted from the least significant.
    high_moves: Box<[Move]>,
}

/// Bits that keep their distances in a permutation: they turn left together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Move {
    mask: u64,
    turn: u32,
}

fn permute(half: u64, moves: &[Move]) -> u64 {
    moves.iter().fold(0, |code, part| {
        code | (half & part.mask).rotate_left(part.turn)
    })
}

impl Table {
    /// The length of the prefix, 1 to 64 bits.
    pub(crate) const fn prefix_bits(&self) -> u8 {
        self.prefix_bits
    }

    /// The code under which a fingerprint is filed: its bits, those of the leading blocks on top;
    /// of more than 64 the first 64.
    pub(crate) fn permute(&self, fingerprint: u128) -> u64 {
        let code = permute(fingerprint as u64, &self.moves);
        if self.high_moves.is_empty() {
            return code;
        }
        code | permute((fingerprint >> 64) as u64, &self.high_moves)
    }

    /// The fingerprint of 64 bits that is filed under the code.
    pub(crate) fn restore(&self, code: u64) -> u64 {
        self.moves.iter().fold(0, |fingerprint, part| {
            fingerprint | (code.rotate_right(part.turn) & part.mask)
        })
    }

    /// The smallest and the largest code that share the code's prefix.
    pub(crate) fn prefix_range(&self, code: u64) -> (u64, u64) {
        let rest = u64::MAX
            .checked_shr(u32::from(self.prefix_bits))
            .unwrap_or(0);
        (code & !rest, code | rest)
    }
}

fn check(bits: u8, max_distance: u8, groups: &[(u8, u8)]) -> Result<()> {
    if !matches!(bits, 64 | 128) {
        return Err(Error::invalid("bits", bits, "64 or 128"));
    }
    let found = || format!("{groups:?}");
    if groups.iter().any(|&(s, r)| r == 0 || r > s) {
        let expected = "(s, r) with r of at least 1 and at most s in every group";
        return Err(Error::invalid("groups", found(), expected));
    }
    let blocks = total(groups, |s, _| s.into());
    if blocks > MAX_BLOCKS {
        let expected = format!("at most {MAX_BLOCKS} blocks, not {blocks}");
        return Err(Error::invalid("groups", found(), expected));
    }
    let tables = total(groups, binomial);
    if tables > MAX_TABLES {
        let expected = format!("at most {MAX_TABLES} tables, not {tables}");
        return Err(Error::invalid("groups", found(), expected));
    }
    let spoiling = total(groups, |s, r| u64::from(s - r) + 1);
    if spoiling <= u64::from(max_distance) {
        let expected = format!(
            "s - r + 1 summed over the groups above max_distance {max_distance}, not {spoiling}"
        );
        return Err(Error::invalid("groups", found(), expected));
    }
    Ok(())
}

fn total(groups: &[(u8, u8)], count: impl Fn(u8, u8) -> u64) -> u64 {
    groups
        .iter()
        .fold(0, |sum: u64, &(s, r)| sum.saturating_add(count(s, r)))
}

/// The number of choices of `r` out of `s`; more than a `u64` holds count as `u64::MAX`.
pub(crate) fn binomial(s: u8, r: u8) -> u64 {
    let (s, r) = (u128::from(s), u128::from(r.min(s.saturating_sub(r))));
    let mut choices = 1_u128;
    for i in 0..r {
        // Exact: the product so far is the number of choices of i + 1 out of s.
        choices = choices.saturating_mul(s - i) / (i + 1);
    }
    u64::try_from(choices).unwrap_or(u64::MAX)
}

/// A run of bits: the first, counted from the most significant, and how many.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    first: u32,
    pub(crate) bits: u32,
}

/// Cuts `bits` bits into `count` blocks, block `i` from bit `ceil(i * bits / count)`.
pub(crate) fn cut(bits: u8, count: u32) -> impl Iterator<Item = Block> + Clone {
    let start = move |i: u32| (i * u32::from(bits)).div_ceil(count);
    (0..count).map(move |i| Block {
        first: start(i),
        bits: start(i + 1) - start(i),
    })
}

/// Every choice of `r` of the numbers from `first` to `first + s - 1`, as sets of bits, in
/// lexicographic order.
pub(crate) fn choices(first: u32, s: u8, r: u8) -> Vec<u64> {
    fn extend(chosen: u64, from: u32, end: u32, missing: u32, found: &mut Vec<u64>) {
        if missing == 0 {
            found.push(chosen);
            return;
        }
        for i in from..=end.saturating_sub(missing) {
            extend(chosen | 1 << i, i + 1, end, missing - 1, found);
        }
    }
    let mut found = Vec::new();
    extend(0, first, first + u32::from(s), r.into(), &mut found);
    found
}

/// The tables of groups that passed `check`.
fn build_tables(bits: u8, groups: &[(u8, u8)]) -> Vec<Table> {
    let count: u32 = groups.iter().map(|&(s, _)| u32::from(s)).sum();
    let blocks: Vec<Block> = cut(bits, count).collect();
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

/// The table in which the chosen blocks lead.
fn build_table(bits: u8, blocks: &[Block], chosen: u64) -> Table {
    let is_chosen = |i: usize| chosen >> i & 1 == 1;
    let numbered = || blocks.iter().enumerate();
    let leading = numbered().filter(|&(i, _)| is_chosen(i));
    let others = numbered().filter(|&(i, _)| !is_chosen(i));
    let mut halves: [Vec<Move>; 2] = [Vec::new(), Vec::new()];
    let (mut prefix_bits, mut leading_mask, mut to) = (0, 0, 0);
    for (i, block) in leading.chain(others) {
        for bit in block.first..block.first + block.bits {
            // From here on bits are counted from the least significant one.
            let from = u32::from(bits) - 1 - bit;
            if is_chosen(i) {
                leading_mask |= 1_u128 << from;
                prefix_bits += 1;
            }
            let [low, high] = &mut halves;
            let half = if from < 64 { low } else { high };
            if to < u32::from(CODE_BITS) {
                move_bit(half, from % 64, 63 - to);
            }
            to += 1;
        }
    }
    let [moves, high_moves] = halves;
    Table {
        prefix_bits,
        leading: leading_mask,
        moves: moves.into_boxed_slice(),
        high_moves: high_moves.into_boxed_slice(),
    }
}

/// Adds a bit to those that turn left as far as it does.
fn move_bit(moves: &mut Vec<Move>, from: u32, to: u32) {
    let (mask, turn) = (1 << from, (64 + to - from) % 64);
    match moves.iter_mut().find(|part| part.turn == turn) {
        Some(part) => part.mask |= mask,
        None => moves.push(Move { mask, turn }),
    }
}

#[cfg(test)]
mod tests;
