//! Runs of ASCII: most texts are mostly ASCII, and whole runs are normalised faster than characters.

/// Maps each byte of ASCII to its normalised form, or to [`SEPARATOR`].
pub(super) type AsciiTable = [u8; 256];

/// Stands between units. No unit that an [`AsciiTable`] produces contains it.
pub(super) const SEPARATOR: u8 = b' ';

/// ASCII letters and digits in lower case; everything else separates.
pub(super) static WORDS: AsciiTable = table(false);

/// ASCII in lower case; only White_Space separates.
pub(super) static CHARACTERS: AsciiTable = table(true);

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn table(has_punctuation: bool) -> AsciiTable {
    let mut table = [SEPARATOR; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        let is_white_space = matches!(byte, b' ' | 0x09..=0x0d);
        if byte.is_ascii_alphanumeric() || has_punctuation && !is_white_space {
            table[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    table
}

/// Splits off the ASCII at the beginning of `text`, then the characters up to the next ASCII one:
/// returns (ASCII, other characters, rest). Unless `text` is empty, the rest is shorter than it.
pub(super) fn split_runs(text: &str) -> (&str, &str, &str) {
    // Both cuts stand before or after an ASCII byte, so they never divide a character.
    let (ascii, after) = text.split_at(ascii_prefix_bytes(text.as_bytes()));
    let other_bytes = after.bytes().position(|byte| byte.is_ascii());
    let (other, rest) = after.split_at(other_bytes.unwrap_or(after.len()));
    (ascii, other, rest)
}

/// The number of bytes before the first one that is not ASCII.
fn ascii_prefix_bytes(bytes: &[u8]) -> usize {
    const HIGH: u128 = u128::from_le_bytes([0x80; 16]);
    let (chunks, rest) = bytes.as_chunks::<16>();
    for (number, chunk) in chunks.iter().enumerate() {
        // Read little-endian, the lowest set bit is the high bit of the first byte that is not ASCII.
        let high = u128::from_le_bytes(*chunk) & HIGH;
        if high != 0 {
            return number * 16 + high.trailing_zeros() as usize / 8;
        }
    }
    let after = rest.iter().position(|byte| !byte.is_ascii());
    bytes.len() - rest.len() + after.unwrap_or(rest.len())
}
