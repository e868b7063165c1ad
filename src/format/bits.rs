//! Fields of any width packed into bytes, least significant bit first.

/// Takes a field of whole bytes off the front; `None` if there are fewer.
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (field, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*field)
}

/// Returns ones in the lowest `width` bits, 0 to 64, and zeros above.
pub(super) const fn mask(width: u32) -> u64 {
    match u64::MAX.checked_shr(64 - width) {
        Some(mask) => mask,
        None => 0,
    }
}

/// Returns the number of bits that hold `value`.
pub(super) const fn width_of(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Appends `count` fields of `width` bits (at most 64), which they fit, and fills the last byte with
/// zeros.
pub(super) fn pack(
    bytes: &mut Vec<u8>,
    width: u32,
    count: usize,
    fields: impl Iterator<Item = u64>,
) {
    debug_assert!(width <= 64);
    if width == 0 {
        return;
    }
    let start = bytes.len();
    let end = start + (count * width as usize).div_ceil(8);
    // Whole words are written, so the last one may reach beyond the end for now.
    bytes.resize(end.next_multiple_of(8) + 8, 0);
    let (_, packed) = bytes.split_at_mut(start);
    let mut words = packed.as_chunks_mut::<8>().0.iter_mut();
    let (mut word, mut used) = (0, 0);
    for field in fields.take(count) {
        debug_assert!(field <= mask(width));
        word |= field << used;
        used += width;
        if used >= 64 {
            if let Some(slot) = words.next() {
                *slot = word.to_le_bytes();
            }
            used -= 64;
            // The remainder of a field is its upper `used` bits: none if it filled the word.
            word = field.checked_shr(width - used).unwrap_or(0);
        }
    }
    if let Some(slot) = words.next() {
        *slot = word.to_le_bytes();
    }
    bytes.truncate(end);
}

/// Returns the field of `width` bits (at most 64) that begins at bit `position`; bits beyond the
/// end are zeros.
#[inline]
pub(super) fn read_bits(bytes: &[u8], position: usize, width: u32) -> u64 {
    let (byte, shift) = (position / 8, position % 8);
    if width <= 57
        && let Some(chunk) = bytes.get(byte..).and_then(<[u8]>::first_chunk::<8>)
    {
        return (u64::from_le_bytes(*chunk) >> shift) & mask(width);
    }
    read_bits_slowly(bytes, byte, shift, width)
}

fn read_bits_slowly(bytes: &[u8], byte: usize, shift: usize, width: u32) -> u64 {
    let mut window = [0; 16];
    for (to, from) in window.iter_mut().zip(bytes.iter().skip(byte)) {
        *to = *from;
    }
    // The mask is of 64 bits, so nothing is lost.
    let field = (u128::from_le_bytes(window) >> shift) as u64;
    field & mask(width)
}

/// Iterates over the fields of `width` bits (at most 64), without end; bits beyond the end of
/// `bytes` are zeros.
#[inline]
pub(super) fn fields(bytes: &[u8], width: u32) -> impl Iterator<Item = u64> + '_ {
    let (mask, fits_a_word) = (mask(width), width <= 57);
    let mut position = 0;
    std::iter::repeat_with(move || {
        let (byte, shift) = (position / 8, position % 8);
        position += width as usize;
        if fits_a_word && let Some(Ok(word)) = bytes.get(byte..byte + 8).map(<[u8; 8]>::try_from) {
            return (u64::from_le_bytes(word) >> shift) & mask;
        }
        read_bits_slowly(bytes, byte, shift, width)
    })
}

/// Returns the 64 bits from bit `64 * index` on; bits beyond the end are zeros.
#[inline]
pub(super) fn read_word(bytes: &[u8], index: usize) -> u64 {
    match bytes.get(index * 8..).and_then(<[u8]>::first_chunk::<8>) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => read_bits_slowly(bytes, index * 8, 0, 64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_fields_of_all_widths_round_trip() {
        for width in 0..=64 {
            let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask(width);
            let mut bytes = Vec::new();
            bytes.push(0xaa);
            pack(&mut bytes, width, 100, (0..100).map(value));
            assert_eq!(bytes.remove(0), 0xaa);
            assert_eq!(bytes.len(), (100 * width as usize).div_ceil(8));
            for i in 0..100 {
                assert_eq!(
                    read_bits(&bytes, i * width as usize, width),
                    value(i as u64)
                );
            }
            assert!(fields(&bytes, width).take(100).eq((0..100).map(value)));
        }
    }

    #[test]
    fn bit_reader_returns_zeros_past_the_end() {
        assert_eq!(read_bits(&[0xff], 4, 64), 0x0f);
        assert_eq!(read_bits(&[], 1 << 30, 64), 0);
        assert_eq!(read_word(&[1, 2], 0), 0x0201);
        assert_eq!(read_word(&[1, 2], 1), 0);
    }
}
