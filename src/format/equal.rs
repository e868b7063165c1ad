//! Rows of the table `equal`: which documents have equal signatures.

use crate::error::Result;
use crate::format::bits::{pack, read_bits, width_of};
use crate::format::checksum;
use crate::format::deleted_chunk::{CHUNK_DOCUMENTS, has, put};

pub(crate) const EQUAL: &str = "equal";

const KIND: u8 = 1;
const BITMAP_BYTES: usize = CHUNK_DOCUMENTS as usize / 8;
const DIGEST_BYTES: usize = 16;

/// One row: of 16,000 consecutive documents those that are noted, and the digest of the signature of
/// each. Documents of one digest are a class: their signatures are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EqualChunk {
    /// The digests of the classes, ascending.
    digests: Vec<u128>,
    /// A bit for each document, set if it is noted.
    noted: Box<[u8]>,
    /// The position of the class of each noted document, ascending by document.
    classes: Vec<u16>,
}

impl EqualChunk {
    /// Records documents of chunk number `chunk`, given by their ids, ascending, and their digests.
    /// Returns `None` if there are none.
    pub(crate) fn new(members: &[(u64, u128)]) -> Option<Self> {
        let mut digests: Vec<u128> = members.iter().map(|(_, digest)| *digest).collect();
        digests.sort_unstable();
        digests.dedup();
        let mut noted: Box<[u8]> = [0; BITMAP_BYTES].into();
        for (id, _) in members {
            put(&mut noted, *id);
        }
        let class = |(_, digest): &(u64, u128)| digests.partition_point(|other| other < digest);
        // A chunk has no more classes than documents.
        let classes = members.iter().map(|member| class(member) as u16).collect();
        (!members.is_empty()).then_some(Self {
            digests,
            noted,
            classes,
        })
    }

    #[inline]
    pub(crate) fn contains(&self, id: u64) -> bool {
        has(&self.noted, id)
    }

    /// Returns the digest of a noted document.
    pub(crate) fn digest(&self, id: u64) -> Option<u128> {
        if !self.contains(id) {
            return None;
        }
        let offset = (id % CHUNK_DOCUMENTS) as usize;
        let (before, rest) = self.noted.split_at_checked(offset / 8)?;
        let in_byte = rest.first()? & ((1u8 << (offset % 8)) - 1);
        let bits = before.iter().chain([&in_byte]);
        let position = bits.map(|byte| byte.count_ones() as usize).sum::<usize>();
        self.digests
            .get(usize::from(*self.classes.get(position)?))
            .copied()
    }

    /// Returns the position of a class.
    pub(crate) fn position(&self, digest: u128) -> Option<usize> {
        self.digests.binary_search(&digest).ok()
    }

    /// Returns the documents of each class as their offsets in the chunk, ascending.
    pub(crate) fn offsets(&self) -> Vec<Vec<u16>> {
        let mut offsets = vec![Vec::new(); self.digests.len()];
        let mut classes = self.classes.iter();
        for (first, byte) in (0u16..).step_by(8).zip(&self.noted) {
            let mut left = *byte;
            while left != 0
                && let Some(class) = classes.next()
            {
                if let Some(offsets) = offsets.get_mut(usize::from(*class)) {
                    offsets.push(first + left.trailing_zeros() as u16);
                }
                left &= left - 1;
            }
        }
        offsets
    }

    /// Returns the noted documents of chunk number `chunk`, ascending, with their digests.
    pub(crate) fn members(&self, chunk: u64) -> impl Iterator<Item = (u64, u128)> + '_ {
        let first = chunk.saturating_mul(CHUNK_DOCUMENTS);
        // The last chunk is cut short by the greatest id.
        let ids = first..=first.saturating_add(CHUNK_DOCUMENTS - 1);
        let digest = |class: &u16| self.digests.get(usize::from(*class)).copied();
        let noted = ids.filter(|id| self.contains(*id));
        noted.zip(self.classes.iter().filter_map(digest))
    }

    pub(crate) fn encode(&self, chunk: u64) -> Vec<u8> {
        let mut bytes = vec![KIND];
        // At most the number of documents.
        bytes.extend_from_slice(&(self.digests.len() as u16).to_le_bytes());
        for digest in &self.digests {
            bytes.extend_from_slice(&digest.to_le_bytes());
        }
        bytes.extend_from_slice(&self.noted);
        let classes = self.classes.iter().map(|class| u64::from(*class));
        let width = class_width(self.digests.len());
        pack(&mut bytes, width, self.classes.len(), classes);
        checksum::seal(EQUAL, &chunk.to_be_bytes(), &mut bytes);
        bytes
    }

    pub(crate) fn decode(chunk: u64, bytes: &[u8]) -> Result<Self> {
        let body = checksum::open(EQUAL, &chunk.to_be_bytes(), bytes)?;
        let place = || format!("table {EQUAL}, chunk {chunk}");
        Self::fields(body).ok_or_else(|| checksum::unknown_layout(place(), body))
    }

    fn fields(body: &[u8]) -> Option<Self> {
        let (&[kind, low, high], rest) = body.split_first_chunk()?;
        let count = usize::from(u16::from_le_bytes([low, high]));
        let (digests, rest) = rest.split_at_checked(count * DIGEST_BYTES)?;
        let (noted, rest) = rest.split_at_checked(BITMAP_BYTES)?;
        let (chunks, _) = digests.as_chunks::<DIGEST_BYTES>();
        let digests: Vec<u128> = chunks.iter().copied().map(u128::from_le_bytes).collect();
        let documents = noted.iter().map(|byte| byte.count_ones() as usize).sum();
        let width = class_width(count);
        let class = |index| read_bits(rest, index * width as usize, width) as u16;
        let mut bytes = Vec::new();
        let classes: Vec<u16> = (0..documents).map(class).collect();
        pack(
            &mut bytes,
            width,
            documents,
            classes.iter().map(|class| u64::from(*class)),
        );
        let mut has_document = vec![false; count];
        for class in &classes {
            *has_document.get_mut(usize::from(*class))? = true;
        }
        let valid = kind == KIND
            && count > 0
            && digests.is_sorted_by(|a, b| a < b)
            && bytes == rest
            && has_document.iter().all(|has| *has);
        valid.then(|| Self {
            digests,
            noted: noted.into(),
            classes,
        })
    }
}

/// Returns the number of bits for the position of one of this number of classes.
fn class_width(classes: usize) -> u32 {
    width_of(classes.saturating_sub(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_row_members_round_trip() {
        for classes in [1, 2, 3, 16, 17, 1_000] {
            let ids = (32_000..48_000).filter(|id| id % 3 != 1);
            let members: Vec<(u64, u128)> = ids
                .map(|id| (id, u128::from(id * id % classes) << 90))
                .collect();
            let chunk = EqualChunk::new(&members).unwrap();
            let read = EqualChunk::decode(2, &chunk.encode(2)).unwrap();
            assert_eq!(read, chunk);
            assert!(read.members(2).eq(members.iter().copied()));
            let mut members = members.into_iter().peekable();
            for id in 32_000..48_000 {
                let expected = members.next_if(|(member, _)| *member == id);
                assert_eq!(read.digest(id), expected.map(|(_, digest)| digest));
            }
        }
        assert_eq!(EqualChunk::new(&[]), None);
    }

    #[test]
    fn equal_row_reports_damage() {
        let chunk = EqualChunk::new(&[(32_000, 5), (32_001, 9), (47_999, 5)]).unwrap();
        checksum::assert_damage_is_named(&chunk.encode(2), |row| EqualChunk::decode(2, row));
        assert!(EqualChunk::decode(1, &chunk.encode(2)).is_err());
        let broken = [
            EqualChunk {
                digests: vec![9, 5],
                ..chunk.clone()
            },
            EqualChunk {
                digests: vec![5, 9, 11],
                ..chunk.clone()
            },
            EqualChunk {
                classes: vec![0, 1, 3],
                digests: vec![5, 9, 11],
                ..chunk.clone()
            },
            EqualChunk {
                noted: [0; BITMAP_BYTES].into(),
                ..chunk
            },
        ];
        for chunk in broken {
            assert!(
                EqualChunk::decode(2, &chunk.encode(2)).is_err(),
                "{chunk:?}"
            );
        }
    }
}
