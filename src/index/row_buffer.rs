//! Rows in memory, before they are written to a table or after they were read from one.

use crate::error::Result;
use crate::invariant::OrBug;

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

    /// Returns the number of bytes of the values.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Iterates over the rows, in the order in which they were pushed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<(&K, &[u8])>> {
        let mut rest = self.bytes.as_slice();
        self.keys.iter().map(move |(key, length)| {
            let (value, after) = rest
                .split_at_checked(*length)
                .or_bug("the value of a row")?;
            rest = after;
            Ok((key, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_buffer_returns_rows_unchanged() {
        let mut rows = RowBuffer::default();
        for _ in 0..2 {
            let expected = [(3, &b"abc"[..]), (1, b""), (2, b"d")];
            assert_eq!(rows.size_bytes(), 0);
            for (key, value) in expected {
                rows.push(key, value);
            }
            let found = rows.iter().map(|row| row.map(|(key, value)| (*key, value)));
            assert_eq!(found.collect::<Result<Vec<_>>>().unwrap(), expected);
            rows.clear();
        }
    }
}
