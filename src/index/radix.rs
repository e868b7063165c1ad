//! A stable sort by a number. It is faster for long lists than a sort that compares.

/// Sorts by a number, and keeps the order of items with equal numbers: a radix sort from the lowest byte
/// up, which skips bytes that all numbers share. `scratch` grows to the length of `items`.
pub(crate) fn sort_by_number<T: Copy>(
    items: &mut Vec<T>,
    scratch: &mut Vec<T>,
    number: impl Fn(&T) -> u64,
) {
    /// Below this length the passes over the counters cost more than comparisons.
    const SHORTEST: usize = 512;
    if items.len() < SHORTEST {
        items.sort_by_key(number);
        return;
    }
    let mut counts = [[0usize; 256]; 8];
    for item in items.iter() {
        for (counts, byte) in counts.iter_mut().zip(number(item).to_le_bytes()) {
            if let Some(count) = counts.get_mut(usize::from(byte)) {
                *count += 1;
            }
        }
    }
    scratch.clear();
    // Every slot is overwritten; some value has to be there before.
    scratch.extend_from_slice(items);
    for (digit, counts) in counts.iter_mut().enumerate() {
        if counts.contains(&items.len()) {
            // All numbers share this byte, and a pass would move nothing.
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for item in items.iter() {
            let byte = (number(item) >> (digit * 8)) & 0xff;
            // The counts add up to the length, so there is a slot for each item.
            if let Some(index) = counts.get_mut(byte as usize)
                && let Some(slot) = scratch.get_mut(*index)
            {
                *slot = *item;
                *index += 1;
            } else {
                debug_assert!(false, "no slot for an item of byte {byte}");
            }
        }
        std::mem::swap(items, scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::testing::Random;

    #[test]
    fn radix_sort_is_stable_for_any_length() {
        let mut random = Random(5);
        let mut scratch = Vec::new();
        for (length, codes) in [(0, 1), (1, 1), (511, 90), (512, 90), (3_000, 1 << 40)] {
            let mut items: Vec<(u64, u64)> = (0..length)
                .map(|place| (random.below(codes) << 9, place))
                .collect();
            let mut expected = items.clone();
            expected.sort_unstable();
            sort_by_number(&mut items, &mut scratch, |item| item.0);
            assert_eq!(items, expected);
        }
    }
}
