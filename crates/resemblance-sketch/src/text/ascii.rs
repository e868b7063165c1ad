//! Normalises runs of ASCII. Most texts are mostly ASCII, and whole runs are faster to normalise
//! than single characters.

/// The byte between units. No unit that an [`AsciiForm`] leaves contains it.
pub(super) const SEPARATOR: u8 = b' ';

/// The number of ASCII bytes that are normalised at once: one for each bit of a word.
pub(super) const BLOCK_BYTES: usize = 64;

/// The number of bytes that a unit is copied in. Most words are shorter.
pub(super) const COPY_BYTES: usize = 16;

/// The normalisation of ASCII.
#[derive(Clone, Copy)]
pub(super) struct AsciiForm {
    /// True if only letters and digits belong to units; otherwise everything except White_Space
    /// does.
    pub(super) are_words: bool,
    /// True if letters keep their case.
    pub(super) keeps_case: bool,
}

/// Up to [`BLOCK_BYTES`] of ASCII, normalised.
pub(super) struct AsciiBlock {
    /// The bytes of units, with a separator for every other byte, then room for bytes that copies
    /// may read beyond them.
    bytes: [u8; BLOCK_BYTES + COPY_BYTES],
    /// Bit i is set if byte i belongs to a unit.
    pub(super) inside: u64,
}

impl AsciiBlock {
    pub(super) fn new(form: AsciiForm, ascii: &[u8; BLOCK_BYTES]) -> Self {
        let is_of_word =
            |byte: u8, lower: u8| lower.wrapping_sub(b'a') < 26 || byte.wrapping_sub(b'0') < 10;
        let is_no_space = |byte: u8, _: u8| byte != b' ' && byte.wrapping_sub(0x09) >= 5;
        match (form.are_words, form.keeps_case) {
            (true, false) => Self::with::<false>(ascii, is_of_word),
            (false, false) => Self::with::<false>(ascii, is_no_space),
            (true, true) => Self::with::<true>(ascii, is_of_word),
            (false, true) => Self::with::<true>(ascii, is_no_space),
        }
    }

    /// The code has no branch that depends on the text, and each loop has a fixed length, so that
    /// the compiler generates vector instructions. `is_inside` takes a byte and its lower case.
    #[inline(always)]
    fn with<const KEEPS_CASE: bool>(
        ascii: &[u8; BLOCK_BYTES],
        is_inside: impl Fn(u8, u8) -> bool,
    ) -> Self {
        let mut bytes = [SEPARATOR; BLOCK_BYTES + COPY_BYTES];
        let mut inside = [0_u8; BLOCK_BYTES];
        for ((normal, inside), &byte) in bytes.iter_mut().zip(&mut inside).zip(ascii) {
            let is_upper = byte.wrapping_sub(b'A') < 26;
            let lower = byte | u8::from(is_upper) << 5;
            let is_inside = is_inside(byte, lower);
            *inside = u8::from(is_inside);
            let kept = if KEEPS_CASE { byte } else { lower };
            *normal = if is_inside { kept } else { SEPARATOR };
        }
        Self {
            bytes,
            inside: gather_bits(&inside),
        }
    }

    /// Returns the bytes from a position, which must be below [`BLOCK_BYTES`].
    #[inline]
    pub(super) fn copy_at(&self, position: usize) -> [u8; COPY_BYTES] {
        let (_, after) = self.bytes.split_at(position % BLOCK_BYTES);
        after
            .first_chunk()
            .copied()
            .unwrap_or([SEPARATOR; COPY_BYTES])
    }
}

/// Gathers the lowest bits of the bytes, each 0 or 1, into one word.
#[inline(always)]
fn gather_bits(flags: &[u8; BLOCK_BYTES]) -> u64 {
    // Moves bit 8 i of a number to 56 + i, for each i below 8.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (groups, _) = flags.as_chunks::<8>();
    groups.iter().enumerate().fold(0, |bits, (number, group)| {
        let gathered = u64::from_le_bytes(*group).wrapping_mul(GATHER) >> 56;
        bits | gathered << (8 * number)
    })
}

/// Splits `text` into the ASCII at its beginning, the characters up to the next ASCII character,
/// and the rest. The rest is shorter than `text` unless `text` is empty.
pub(super) fn split_runs(text: &str) -> (&str, &str, &str) {
    // Both cuts are next to an ASCII byte, so they never divide a character.
    let (ascii, after) = text.split_at(ascii_prefix_bytes(text.as_bytes()));
    let other_bytes = after.bytes().position(|byte| byte.is_ascii());
    let (other, rest) = after.split_at(other_bytes.unwrap_or(after.len()));
    (ascii, other, rest)
}

/// Returns the number of bytes before the first non-ASCII byte.
fn ascii_prefix_bytes(bytes: &[u8]) -> usize {
    const HIGH: u128 = u128::from_le_bytes([0x80; 16]);
    let (chunks, rest) = bytes.as_chunks::<16>();
    for (number, chunk) in chunks.iter().enumerate() {
        // In little-endian order, the lowest set bit is the high bit of the first non-ASCII byte.
        let high = u128::from_le_bytes(*chunk) & HIGH;
        if high != 0 {
            return number * 16 + high.trailing_zeros() as usize / 8;
        }
    }
    let after = rest.iter().position(|byte| !byte.is_ascii());
    bytes.len() - rest.len() + after.unwrap_or(rest.len())
}
