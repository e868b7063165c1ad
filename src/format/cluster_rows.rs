//! Rows of the tables `forest`, `members` and `clusters`: the clusters that a store keeps.

use crate::error::Result;
use crate::format::bits::take;
use crate::format::checksum::{self, unknown_layout};

pub(crate) const FOREST: &str = "forest";
pub(crate) const MEMBERS: &str = "members";
pub(crate) const CLUSTERS: &str = "clusters";

const ENDED: u8 = 0;
const KEPT: u8 = 1;
const KEPT_FROM_ANY: u8 = 2;
const FORWARD: u8 = 3;
/// The bits of a kind. The bits above are the number of bytes of the first number after it.
const KIND_BITS: u32 = 2;

/// How near the two documents of an edge are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Link {
    /// 0 without MinHash.
    pub(crate) similarity: f64,
    /// 0 without SimHash.
    pub(crate) distance: u16,
}

/// A cluster that has members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptCluster {
    /// The number of its members.
    pub(crate) documents: u64,
    /// One of its members.
    pub(crate) first: u64,
    /// True if that member is known to be the oldest one.
    pub(crate) is_oldest: bool,
}

/// The state of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterRow {
    /// Its last member was removed.
    Ended,
    Kept(KeptCluster),
    /// It was united with the cluster of this id.
    Forward(u64),
}

/// Returns the key of an edge in the direction from `a` to `b`.
pub(crate) fn edge_key(a: u64, b: u64) -> [u8; 16] {
    ((u128::from(a) << u64::BITS) | u128::from(b)).to_be_bytes()
}

/// Returns the documents of an edge.
pub(crate) fn split_edge_key(key: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_be_bytes(*key);
    ((both >> u64::BITS) as u64, both as u64)
}

impl Link {
    pub(crate) fn encode(&self, key: &[u8; 16]) -> Vec<u8> {
        let mut bytes = self.similarity.to_bits().to_le_bytes().to_vec();
        bytes.extend(self.distance.to_le_bytes());
        checksum::seal(FOREST, key, &mut bytes);
        bytes
    }

    pub(crate) fn decode(key: &[u8; 16], row: &[u8]) -> Result<Self> {
        let mut bytes = checksum::open(FOREST, key, row)?;
        let fields = |bytes: &mut &[u8]| {
            Some(Self {
                similarity: f64::from_bits(u64::from_le_bytes(take(bytes)?)),
                distance: u16::from_le_bytes(take(bytes)?),
            })
        };
        let link = fields(&mut bytes).filter(|_| bytes.is_empty());
        link.ok_or_else(|| unknown_layout(checksum::place(FOREST, key), row))
    }
}

/// Appends the bytes of a number, lowest first, without zeros at the end.
fn put_short(bytes: &mut Vec<u8>, number: u64) -> usize {
    let used = 8 - number.leading_zeros() as usize / 8;
    bytes.extend(number.to_le_bytes().iter().take(used));
    used
}

/// Returns the number of such bytes.
fn short(bytes: &[u8]) -> Option<u64> {
    let mut padded = [0; 8];
    padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
    (bytes.last() != Some(&0)).then(|| u64::from_le_bytes(padded))
}

/// Encodes the id that a member's cluster had when the member joined it.
pub(crate) fn encode_member(document: u64, cluster: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_short(&mut bytes, cluster);
    checksum::seal(MEMBERS, &document.to_be_bytes(), &mut bytes);
    bytes
}

pub(crate) fn decode_member(document: u64, row: &[u8]) -> Result<u64> {
    let key = document.to_be_bytes();
    let cluster = short(checksum::open(MEMBERS, &key, row)?);
    cluster.ok_or_else(|| unknown_layout(checksum::place(MEMBERS, &key), row))
}

impl ClusterRow {
    pub(crate) fn encode(&self, id: u64) -> Vec<u8> {
        let (kind, first, last) = match *self {
            Self::Ended => (ENDED, 0, 0),
            Self::Kept(kept) if kept.is_oldest => (KEPT, kept.documents, kept.first),
            Self::Kept(kept) => (KEPT_FROM_ANY, kept.documents, kept.first),
            Self::Forward(to) => (FORWARD, 0, to),
        };
        let mut numbers = Vec::new();
        let length = put_short(&mut numbers, first) as u8;
        put_short(&mut numbers, last);
        let mut bytes = vec![kind | length << KIND_BITS];
        bytes.append(&mut numbers);
        checksum::seal(CLUSTERS, &id.to_be_bytes(), &mut bytes);
        bytes
    }

    pub(crate) fn decode(id: u64, row: &[u8]) -> Result<Self> {
        let key = id.to_be_bytes();
        let bytes = checksum::open(CLUSTERS, &key, row)?;
        let fields = || {
            let (kind, numbers) = bytes.split_first()?;
            let (first, last) = numbers.split_at_checked((kind >> KIND_BITS).into())?;
            let (first, last) = (short(first)?, short(last)?);
            Some(match (kind & ((1 << KIND_BITS) - 1), first, last) {
                (ENDED, 0, 0) => Self::Ended,
                (kind @ (KEPT | KEPT_FROM_ANY), documents, first) => Self::Kept(KeptCluster {
                    documents,
                    first,
                    is_oldest: kind == KEPT,
                }),
                (FORWARD, 0, to) => Self::Forward(to),
                _ => return None,
            })
        };
        fields().ok_or_else(|| unknown_layout(checksum::place(CLUSTERS, &key), row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_rows_round_trip_and_report_damage() {
        let key = edge_key(7, u64::MAX);
        assert_eq!(split_edge_key(&key), (7, u64::MAX));
        let link = Link {
            similarity: 0.875,
            distance: 3,
        };
        let row = link.encode(&key);
        assert_eq!(Link::decode(&key, &row).unwrap(), link);
        checksum::assert_damage_is_named(&row, |row| Link::decode(&key, row));
        for id in [0, 9, 256, u64::MAX] {
            let row = encode_member(5, id);
            assert_eq!(decode_member(5, &row).unwrap(), id);
            checksum::assert_damage_is_named(&row, |row| decode_member(5, row));
        }
        let kept = |is_oldest, documents, first| {
            ClusterRow::Kept(KeptCluster {
                documents,
                first,
                is_oldest,
            })
        };
        for cluster in [
            ClusterRow::Ended,
            kept(true, 2, 0),
            kept(false, 256, u64::MAX),
            kept(true, u64::MAX, 65_536),
            ClusterRow::Forward(0),
            ClusterRow::Forward(u64::MAX),
        ] {
            let row = cluster.encode(4);
            assert_eq!(ClusterRow::decode(4, &row).unwrap(), cluster);
            checksum::assert_damage_is_named(&row, |row| ClusterRow::decode(4, row));
        }
    }
}
