//! The block: sorted postings of one lane of a run, packed to fit one page.
//!
//! | bytes | field |
//! |---|---|
//! | 1 | kind, 1 |
//! | 1 | flags: bit 0 is set if a posting stands before the first one in this lane of the run |
//! | 1 | `low_bits`: width of the lower part of a code |
//! | 1 | `id_bits`: width of an id |
//! | 1 | `tail_bits`: 0; for what codes of 128 bits have beyond 64 |
//! | 2 | count of postings, 1 to 8,192 |
//! | 16 | code and id of the posting before the first one, or zeros |
//! | 8 | the first posting's code |
//! | 8 | the smallest id |
//! | | upper parts: for posting *i* bit *i + (code − first code) >> `low_bits`* is set |
//! | | lower parts: the `low_bits` lowest bits of (code − first code) |
//! | | ids − smallest id, `id_bits` each |
//! | 4 | checksum |
//!
//! Numbers are little-endian, bits are numbered from the least significant, and each of the three
//! parts begins with a new byte. The upper and the lower part are the representation of Elias (J.
//! ACM 21, 1974) and Fano, which takes two bits and the logarithm of the mean gap for each code.
//! The upper part ends with the bit of the last posting. The key contains the code of that posting,
//! so the length of every part is known.

use crate::error::{Error, Result};
use crate::format::bits::{fields, mask, read_bits, read_word};
use crate::format::checksum;
use crate::format::posting::{BlockKey, NearCodes, Posting, split_block_key};
use crate::invariant::{OrBug, invariant};

#[cfg(test)]
pub(crate) use crate::format::block_encoder::encode;

/// The length of the longest value, including its checksum, that redb stores with its key in a leaf
/// of one 4,096-byte page. One byte more takes two pages.
pub(crate) const BLOCK_VALUE_BYTES: usize = 4066;

/// Maximum number of postings in one block. It bounds the memory that decoding allocates.
pub(crate) const BLOCK_POSTINGS: usize = 8192;

pub(super) const KIND: u8 = 1;
pub(super) const HAS_PREVIOUS: u8 = 1;
pub(super) const HEADER_BYTES: usize = 39;

/// A block whose checksum and header are good. Its postings are read where they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'v> {
    count: usize,
    low_bits: u32,
    id_bits: u32,
    upper_bits: usize,
    previous: Option<Posting>,
    last: Posting,
    first_code: u64,
    min_id: u64,
    upper: &'v [u8],
    lower: &'v [u8],
    ids: &'v [u8],
}

impl<'v> Block<'v> {
    /// Reads a row of a block table.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if checksum, header, length, or the first or last posting are not what
    /// they must be. The order of the postings between is checked only by [`Self::decode`].
    pub(crate) fn parse(table: &str, key: &BlockKey, value: &'v [u8]) -> Result<Self> {
        let body = checksum::open(table, key, value)?;
        let (_, _, last) = split_block_key(key);
        Self::parse_body(body, last)
            .map_err(|detail| Error::corrupt(checksum::place(table, key), detail))
    }

    fn parse_body(body: &'v [u8], last: Posting) -> Result<Self, String> {
        let (header, parts) = body
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or_else(|| format!("found {} bytes, expected a header", body.len()))?;
        let block = Self::parse_header(header, parts, last)?;
        block.verify()?;
        Ok(block)
    }

    fn parse_header(
        header: &[u8; HEADER_BYTES],
        parts: &'v [u8],
        last: Posting,
    ) -> Result<Self, String> {
        let [
            kind,
            flags,
            low_bits,
            id_bits,
            tail_bits,
            c0,
            c1,
            numbers @ ..,
        ] = header;
        if (*kind, *tail_bits) != (KIND, 0) || *flags > HAS_PREVIOUS {
            return Err(format!(
                "found kind {kind}, flags {flags}, {tail_bits} tail bits, expected kind {KIND}, flags 0 or 1, 0 tail bits"
            ));
        }
        let (low_bits, id_bits) = (u32::from(*low_bits), u32::from(*id_bits));
        let count = usize::from(u16::from_le_bytes([*c0, *c1]));
        if low_bits > 63 || id_bits > 64 || count == 0 || count > BLOCK_POSTINGS {
            return Err(format!(
                "found {count} postings of {low_bits} low bits and {id_bits} id bits, expected 1 to {BLOCK_POSTINGS}, up to 63, up to 64"
            ));
        }
        let [code, id, first_code, min_id] = std::array::from_fn(|index| read_word(numbers, index));
        let before = Posting { code, id };
        let previous = (*flags == HAS_PREVIOUS).then_some(before);
        if previous.is_none() && before != Posting::lowest_of(0) {
            return Err("found a posting before the first, expected none".into());
        }
        let span = last.code.checked_sub(first_code).ok_or_else(|| {
            format!("found first code {first_code:#x}, expected at most the key's")
        })?;
        let lengths = part_lengths(count, span, low_bits, id_bits, parts.len());
        let (upper_bits, upper_bytes, lower_bytes) =
            lengths.ok_or_else(|| format!("found {} bytes of {count} postings", parts.len()))?;
        let (upper, rest) = parts.split_at(upper_bytes);
        let (lower, ids) = rest.split_at(lower_bytes);
        Ok(Self {
            count,
            low_bits,
            id_bits,
            upper_bits,
            previous,
            last,
            first_code,
            min_id,
            upper,
            lower,
            ids,
        })
    }

    /// Checks the fields, at little cost, so that no later read can go out of bounds.
    fn verify(&self) -> Result<(), String> {
        let words = self.upper_bits.div_ceil(64);
        let ones: u32 = (0..words)
            .map(|i| read_word(self.upper, i).count_ones())
            .sum();
        if ones as usize != self.count {
            return Err(format!("found {ones} codes, expected {}", self.count));
        }
        // The rest of the last byte: a bit there would represent a code after the key's.
        let beyond = read_word(self.upper, self.upper_bits / 64) >> (self.upper_bits % 64);
        if beyond != 0 {
            return Err("found a code after the last, expected none".into());
        }
        if !self.bit(0) || self.low(0) != 0 || !self.bit(self.upper_bits - 1) {
            return Err("found other codes first or last than the header's and the key's".into());
        }
        let first = Posting {
            code: self.first_code,
            id: self.id(0),
        };
        if self.previous.is_some_and(|previous| previous >= first) {
            return Err(format!("found {first:?} after {:?}", self.previous));
        }
        let high = (self.upper_bits - self.count) as u64;
        let last = Posting {
            code: self.code(high, self.count - 1),
            id: self.id(self.count - 1),
        };
        if last != self.last {
            return Err(format!(
                "found {last:?} at the end, expected {:?}",
                self.last
            ));
        }
        let all_ids_fit = self.min_id.checked_add(mask(self.id_bits)).is_some();
        let fits = |index| self.min_id.checked_add(self.id_offset(index)).is_some();
        if !all_ids_fit && !(0..self.count).all(fits) {
            return Err("found an id beyond 64 bits".into());
        }
        Ok(())
    }

    /// Number of postings, at least one.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns what need not be found out again of these bytes.
    pub(crate) fn verified_header(&self) -> VerifiedHeader {
        VerifiedHeader(Block {
            upper: &[],
            lower: &[],
            ids: &[],
            ..*self
        })
    }

    /// Returns the posting before the first one in this lane of the run; `None` for the first
    /// block.
    pub(crate) fn previous(&self) -> Option<Posting> {
        self.previous
    }

    /// Returns the last posting, which is also in the key.
    pub(crate) fn last(&self) -> Posting {
        self.last
    }

    /// Iterates over all postings, in ascending order.
    pub(crate) fn iter(&self) -> BlockIter<'v> {
        BlockIter {
            block: *self,
            index: 0,
            word_index: 0,
            word: read_word(self.upper, 0),
            high_code: u64::MAX,
            near: None,
        }
    }

    /// Returns the postings whose codes are in `low_code..=high_code`, without decoding those
    /// before.
    pub(crate) fn find_range(&self, low_code: u64, high_code: u64) -> BlockIter<'v> {
        let mut found = self.iter();
        found.high_code = high_code;
        if let Some(offset) = low_code.checked_sub(self.first_code) {
            found.seek(offset);
        }
        found
    }

    /// Appends all postings. `place` names the block in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the postings are not in strictly ascending order, and [`Error::Bug`] if the parts are
    /// not those of a verified block.
    pub(crate) fn decode(
        &self,
        postings: &mut Vec<Posting>,
        place: impl FnOnce() -> String,
    ) -> Result<()> {
        // Fields beyond the end of a part would read as zeros, which are good codes and ids.
        let fits = |part: &[u8], bits: u32| part.len() * 8 >= self.count * bits as usize;
        let is_whole = fits(self.lower, self.low_bits) && fits(self.ids, self.id_bits);
        invariant!(is_whole, "a block has other parts than its header says");
        let start = postings.len();
        postings.resize(start + self.count, Posting::lowest_of(0));
        let (_, unpacked) = postings.split_at_mut(start);
        // One part after the other: each pass is a short loop over data in the nearest cache.
        self.unpack_upper(unpacked)?;
        let lower = fields(self.lower, self.low_bits);
        for (posting, low) in unpacked.iter_mut().zip(lower) {
            // Wraps in a forged block only.
            posting.code = self.first_code.wrapping_add(posting.code | low);
        }
        let ids = fields(self.ids, self.id_bits);
        for (posting, offset) in unpacked.iter_mut().zip(ids) {
            posting.id = self.min_id.wrapping_add(offset);
        }
        let follows = unpacked.first().map(Posting::rank) > self.previous.map(|p| p.rank());
        let pairs = unpacked.iter().zip(unpacked.iter().skip(1));
        let ordered = pairs.fold(follows, |ordered, (a, b)| ordered & (a.rank() < b.rank()));
        if ordered {
            return Ok(());
        }
        let detail = "found postings out of order, expected strictly ascending ones";
        Err(Error::corrupt(place(), detail))
    }

    /// Decodes the upper parts of the codes into their postings, one for each.
    fn unpack_upper(&self, postings: &mut [Posting]) -> Result<()> {
        let mut slots = (0..).zip(postings);
        for word_index in 0..self.upper_bits.div_ceil(64) {
            let mut word = read_word(self.upper, word_index);
            while word != 0 {
                let slot = slots.next();
                let (index, posting) = slot.or_bug("a posting for each code of a block")?;
                let position = word_index * 64 + word.trailing_zeros() as usize;
                posting.code = ((position - index) as u64) << self.low_bits;
                word &= word - 1;
            }
        }
        invariant!(
            slots.next().is_none(),
            "a block has fewer codes than postings"
        );
        Ok(())
    }

    #[inline]
    fn bit(&self, position: usize) -> bool {
        self.upper
            .get(position / 8)
            .is_some_and(|byte| byte >> (position % 8) & 1 == 1)
    }

    #[inline]
    fn low(&self, index: usize) -> u64 {
        read_bits(self.lower, index * self.low_bits as usize, self.low_bits)
    }

    #[inline]
    fn id_offset(&self, index: usize) -> u64 {
        read_bits(self.ids, index * self.id_bits as usize, self.id_bits)
    }

    #[inline]
    fn id(&self, index: usize) -> u64 {
        self.min_id.wrapping_add(self.id_offset(index))
    }

    #[inline]
    fn code(&self, high: u64, index: usize) -> u64 {
        // Wraps in a forged block only.
        self.first_code
            .wrapping_add(high << self.low_bits | self.low(index))
    }
}

/// The header of a verified block. Code that keeps it need not verify the same bytes again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VerifiedHeader(Block<'static>);

impl VerifiedHeader {
    /// Returns the posting before the first one in this lane of the run.
    pub(crate) fn previous(&self) -> Option<Posting> {
        self.0.previous
    }

    /// Returns the last posting.
    pub(crate) fn last(&self) -> Posting {
        self.0.last
    }

    /// Returns places in the value that a search for a code reads, if codes are spread evenly, one for every
    /// 64 bytes.
    #[inline]
    pub(crate) fn likely_places(&self, code: u64) -> impl Iterator<Item = usize> {
        let header = self.0;
        let zeros = header.upper_bits - header.count;
        let high = code.saturating_sub(header.first_code) >> header.low_bits;
        let high = usize::try_from(high).map_or(zeros, |high| high.min(zeros));
        let index = high * header.count / (zeros + 1);
        let lower = HEADER_BYTES + header.upper_bits.div_ceil(8);
        let ids = lower + (header.count * header.low_bits as usize).div_ceil(8);
        // The upper part is read from its beginning.
        let upper = (0..(high + index) / 8 + 1).step_by(64);
        upper.map(|place| HEADER_BYTES + place).chain([
            lower + index * header.low_bits as usize / 8,
            ids + index * header.id_bits as usize / 8,
        ])
    }

    /// Returns the block in `value`, the very bytes that were verified.
    ///
    /// # Errors
    /// [`Error::Bug`] if they are other ones, by their length.
    #[inline]
    pub(crate) fn block<'v>(&self, value: &'v [u8]) -> Result<Block<'v>> {
        let (header, of_lower) = (self.0, self.0.count * self.0.low_bits as usize);
        let parts = || {
            let (body, _) = value.split_last_chunk::<{ checksum::CHECKSUM_BYTES }>()?;
            let (_, parts) = body.split_at_checked(HEADER_BYTES)?;
            let (upper, rest) = parts.split_at_checked(header.upper_bits.div_ceil(8))?;
            let (lower, ids) = rest.split_at_checked(of_lower.div_ceil(8))?;
            Some(Block {
                upper,
                lower,
                ids,
                ..header
            })
        };
        parts().or_bug("the parts of a verified block")
    }
}

/// Returns the number of postings that the header of a block claims, before anything is verified.
pub(crate) fn claimed_postings(value: &[u8]) -> u64 {
    match value {
        [_, _, _, _, _, c0, c1, ..] => u16::from_le_bytes([*c0, *c1]).into(),
        _ => 0,
    }
}

/// Bits of the upper part and bytes of the upper and lower parts; `None` if the parts together are
/// not `found` bytes long.
fn part_lengths(
    count: usize,
    span: u64,
    low_bits: u32,
    id_bits: u32,
    found: usize,
) -> Option<(usize, usize, usize)> {
    let zeros = usize::try_from(span >> low_bits).ok()?;
    let upper_bits = count.checked_add(zeros)?;
    let upper_bytes = upper_bits.div_ceil(8);
    let lower_bytes = (count * low_bits as usize).div_ceil(8);
    let id_bytes = (count * id_bits as usize).div_ceil(8);
    let expected = upper_bytes.checked_add(lower_bytes + id_bytes)?;
    (expected == found).then_some((upper_bits, upper_bytes, lower_bytes))
}

/// Postings of a block, in order.
#[derive(Clone, Debug)]
pub(crate) struct BlockIter<'v> {
    block: Block<'v>,
    /// The index of the next posting.
    index: usize,
    word_index: usize,
    /// Unread bits of the word of the upper part at `word_index`.
    word: u64,
    high_code: u64,
    near: Option<NearCodes>,
}

impl BlockIter<'_> {
    /// Skips postings with other codes than these, without examining their ids.
    pub(crate) fn near(self, near: Option<NearCodes>) -> Self {
        Self { near, ..self }
    }

    /// Moves to the first posting whose code is at least the first code plus `offset`.
    fn seek(&mut self, offset: u64) {
        let block = self.block;
        let zeros = block.upper_bits - block.count;
        let Some(high) = usize::try_from(offset >> block.low_bits)
            .ok()
            .filter(|high| *high <= zeros)
        else {
            self.index = block.count;
            return;
        };
        let start = self.position_after_zeros(high);
        let bucket = self.ones_from(start);
        let low = offset & mask(block.low_bits);
        let index = start - high;
        let skipped = partition_point(bucket, |i| block.low(index + i) < low);
        self.index = index + skipped;
        let position = start + skipped;
        self.word_index = position / 64;
        self.word = read_word(block.upper, self.word_index) & (u64::MAX << (position % 64));
    }

    /// Returns the position, in bits, after the `count`th zero of the upper part, which must have
    /// that number of zeros.
    fn position_after_zeros(&self, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        let mut left = count;
        for index in 0..self.block.upper_bits.div_ceil(64) {
            let mut zeros = !read_word(self.block.upper, index);
            let here = zeros.count_ones() as usize;
            if left > here {
                left -= here;
                continue;
            }
            for _ in 1..left {
                zeros &= zeros - 1;
            }
            return index * 64 + zeros.trailing_zeros() as usize + 1;
        }
        self.block.upper_bits
    }

    /// Returns the number of consecutive ones from `position` of the upper part on.
    fn ones_from(&self, position: usize) -> usize {
        let mut end = position;
        while end < self.block.upper_bits {
            let (index, shift) = (end / 64, end % 64);
            let ones = (read_word(self.block.upper, index) >> shift).trailing_ones() as usize;
            end += ones;
            if shift + ones < 64 {
                break;
            }
        }
        end - position
    }
}

/// Returns the first of `0..length` for which `before` is false, or `length`.
fn partition_point(length: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low.midpoint(high);
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl Iterator for BlockIter<'_> {
    type Item = Posting;

    #[inline]
    fn next(&mut self) -> Option<Posting> {
        while self.index < self.block.count {
            while self.word == 0 {
                self.word_index += 1;
                if self.word_index * 64 >= self.block.upper_bits {
                    return None;
                }
                self.word = read_word(self.block.upper, self.word_index);
            }
            let position = self.word_index * 64 + self.word.trailing_zeros() as usize;
            let index = self.index;
            let code = self.block.code((position - index) as u64, index);
            if code > self.high_code {
                self.index = self.block.count;
                return None;
            }
            self.word &= self.word - 1;
            self.index += 1;
            if self.near.is_none_or(|near| near.have(code)) {
                let id = self.block.id(index);
                return Some(Posting { code, id });
            }
        }
        None
    }
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
