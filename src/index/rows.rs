//! Rows in memory, on their way to a table or from one.

/// Keys, and their values in one buffer, which is used again.
#[derive(Debug)]
pub(super) struct RowBuffer<K> {
    bytes: Vec<u8>,
    /// Each key with the length of its value.
    keys: Vec<(K, usize)>,
}

impl<K> Default for RowBuffer<K> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            keys: Vec::new(),
        }
    }
}

impl<K> RowBuffer<K> {
    pub(crate) fn push(&mut self, key: K, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.keys.push((key, value.len()));
    }

    /// Removes all rows, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The rows, in the order in which they were pushed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.keys.iter().map(move |(key, length)| {
            // The lengths add up to the buffer's.
            debug_assert!(*length <= rest.len());
            let (value, after) = rest.split_at_checked(*length).unwrap_or_default();
            rest = after;
            (key, value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_as_they_went_in() {
        let mut rows = RowBuffer::default();
        for _ in 0..2 {
            let expected = [(3, &b"abc"[..]), (1, b""), (2, b"d")];
            assert!(rows.is_empty());
            for (key, value) in expected {
                rows.push(key, value);
            }
            let found: Vec<(i32, &[u8])> = rows.iter().map(|(key, value)| (*key, value)).collect();
            assert_eq!(found, expected);
            rows.clear();
        }
    }
}
