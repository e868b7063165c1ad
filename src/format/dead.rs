//! Rows of the table `dead`: bitmaps of sealed documents whose postings are still in a run.

use crate::error::{Error, Result};
use crate::format::checksum;

pub(crate) const DEAD: &str = "dead";

/// Documents that one row covers.
pub(crate) const CHUNK_DOCUMENTS: u64 = 16_000;
const BITMAP_BYTES: usize = 2_000;
const KIND: u8 = 1;

/// One row: which of 16,000 consecutive documents are dead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadChunk {
    bits: Vec<u8>,
}

/// Byte and mask of a document's bit within its chunk.
fn place(id: u64) -> (usize, u8) {
    let offset = id % CHUNK_DOCUMENTS;
    // The remainder is below 16,000, so the byte is below 2,000.
    ((offset / 8) as usize, 1 << (offset % 8))
}

impl DeadChunk {
    pub(crate) fn new() -> Self {
        Self {
            bits: vec![0; BITMAP_BYTES],
        }
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        let (byte, mask) = place(id);
        self.bits.get(byte).is_some_and(|bits| bits & mask != 0)
    }

    pub(crate) fn set(&mut self, id: u64) {
        let (byte, mask) = place(id);
        if let Some(bits) = self.bits.get_mut(byte) {
            *bits |= mask;
        }
    }

    pub(crate) fn clear(&mut self, id: u64) {
        let (byte, mask) = place(id);
        if let Some(bits) = self.bits.get_mut(byte) {
            *bits &= !mask;
        }
    }

    pub(crate) fn is_clear(&self) -> bool {
        self.bits.iter().all(|bits| *bits == 0)
    }

    /// The dead documents of chunk number `chunk`, ascending.
    pub(crate) fn ids(&self, chunk: u64) -> impl Iterator<Item = u64> + '_ {
        // The last chunk is cut short by the greatest id.
        let first = chunk.saturating_mul(CHUNK_DOCUMENTS);
        let last = first.saturating_add(CHUNK_DOCUMENTS - 1);
        (first..=last).filter(|id| self.contains(*id))
    }

    pub(crate) fn encode(&self, chunk: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BITMAP_BYTES + 5);
        bytes.push(KIND);
        bytes.extend_from_slice(&self.bits);
        checksum::seal(DEAD, &chunk.to_be_bytes(), &mut bytes);
        bytes
    }

    pub(crate) fn decode(chunk: u64, bytes: &[u8]) -> Result<Self> {
        let bytes = checksum::open(DEAD, &chunk.to_be_bytes(), bytes)?;
        match bytes {
            [KIND, bits @ ..] if bits.len() == BITMAP_BYTES => Ok(Self {
                bits: bits.to_vec(),
            }),
            _ => {
                let detail = format!("found {} bytes, expected a bitmap of 2,000", bytes.len());
                Err(Error::corrupt(
                    format!("table {DEAD}, chunk {chunk}"),
                    detail,
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_set_cleared_and_kept() {
        let mut chunk = DeadChunk::new();
        for id in [32_000, 32_001, 47_999] {
            chunk.set(id);
        }
        chunk.clear(32_001);
        let bytes = chunk.encode(2);
        let read = DeadChunk::decode(2, &bytes).unwrap();
        assert_eq!(read.ids(2).collect::<Vec<_>>(), [32_000, 47_999]);
        assert!(!read.is_clear());
        assert!(DeadChunk::decode(1, &bytes).is_err());
    }

    #[test]
    fn the_greatest_ids_have_bits_too() {
        let mut chunk = DeadChunk::new();
        chunk.set(u64::MAX);
        assert_eq!(
            chunk.ids(u64::MAX / CHUNK_DOCUMENTS).collect::<Vec<_>>(),
            [u64::MAX]
        );
        // The key of a row may be any number.
        assert!(chunk.ids(u64::MAX).count() <= 1);
    }
}
