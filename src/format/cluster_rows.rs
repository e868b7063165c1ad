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

/// Encodes the id that a member's cluster had when the member joined it.
pub(crate) fn encode_member(document: u64, cluster: u64) -> Vec<u8> {
    let mut bytes = cluster.to_le_bytes().to_vec();
    checksum::seal(MEMBERS, &document.to_be_bytes(), &mut bytes);
    bytes
}

pub(crate) fn decode_member(document: u64, row: &[u8]) -> Result<u64> {
    let key = document.to_be_bytes();
    let mut bytes = checksum::open(MEMBERS, &key, row)?;
    let cluster = take(&mut bytes).map(u64::from_le_bytes);
    let cluster = cluster.filter(|_| bytes.is_empty());
    cluster.ok_or_else(|| unknown_layout(checksum::place(MEMBERS, &key), row))
}

impl ClusterRow {
    pub(crate) fn encode(&self, id: u64) -> Vec<u8> {
        let (kind, numbers) = match *self {
            Self::Ended => (ENDED, Vec::new()),
            Self::Kept(kept) => (
                if kept.is_oldest { KEPT } else { KEPT_FROM_ANY },
                vec![kept.documents, kept.first],
            ),
            Self::Forward(to) => (FORWARD, vec![to]),
        };
        let mut bytes = vec![kind];
        bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        checksum::seal(CLUSTERS, &id.to_be_bytes(), &mut bytes);
        bytes
    }

    pub(crate) fn decode(id: u64, row: &[u8]) -> Result<Self> {
        let key = id.to_be_bytes();
        let mut bytes = checksum::open(CLUSTERS, &key, row)?;
        let fields = |bytes: &mut &[u8]| {
            let [kind] = take(bytes)?;
            Some(match kind {
                ENDED => Self::Ended,
                KEPT | KEPT_FROM_ANY => Self::Kept(KeptCluster {
                    documents: u64::from_le_bytes(take(bytes)?),
                    first: u64::from_le_bytes(take(bytes)?),
                    is_oldest: kind == KEPT,
                }),
                FORWARD => Self::Forward(u64::from_le_bytes(take(bytes)?)),
                _ => return None,
            })
        };
        let found = fields(&mut bytes).filter(|_| bytes.is_empty());
        found.ok_or_else(|| unknown_layout(checksum::place(CLUSTERS, &key), row))
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
        let row = encode_member(5, 9);
        assert_eq!(decode_member(5, &row).unwrap(), 9);
        checksum::assert_damage_is_named(&row, |row| decode_member(5, row));
        let kept = |is_oldest| {
            ClusterRow::Kept(KeptCluster {
                documents: 2,
                first: 11,
                is_oldest,
            })
        };
        for cluster in [
            ClusterRow::Ended,
            kept(true),
            kept(false),
            ClusterRow::Forward(3),
        ] {
            let row = cluster.encode(4);
            assert_eq!(ClusterRow::decode(4, &row).unwrap(), cluster);
            checksum::assert_damage_is_named(&row, |row| ClusterRow::decode(4, row));
        }
    }
}
