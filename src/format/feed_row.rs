//! Rows of the table `feed`: changes of the clusters that a store keeps.

use crate::error::{Error, Result};
use crate::format::bits::take;
use crate::format::checksum::{self, unknown_layout};
use crate::id::{ClusterId, DocumentId};
use crate::types::{ClusterChange, ClusterEvent};

pub(crate) const FEED: &str = "feed";

/// Positions are below this number.
pub(crate) const MAX_POSITIONS: u64 = 1 << 63;

/// Bytes of changes from which a row is full: with its key it then fits a page.
const FULL_BYTES: usize = 3_900;

const JOINED: u8 = 0;
const LEFT: u8 = 1;
const UNITED: u8 = 2;
const SPLIT_FROM: u8 = 3;
const ENDED: u8 = 4;

/// Changes of one commit, in their order.
#[derive(Debug, Default)]
pub(crate) struct FeedRow {
    pub(crate) changes: u64,
    bytes: Vec<u8>,
}

impl FeedRow {
    pub(crate) fn push(&mut self, cluster: ClusterId, event: ClusterEvent) {
        let (kind, number) = match event {
            ClusterEvent::Joined { document } => (JOINED, Some(document.get())),
            ClusterEvent::Left { document } => (LEFT, Some(document.get())),
            ClusterEvent::United { into } => (UNITED, Some(into.get())),
            ClusterEvent::SplitFrom { from } => (SPLIT_FROM, Some(from.get())),
            ClusterEvent::Ended => (ENDED, None),
        };
        self.changes += 1;
        self.bytes.push(kind);
        for mut number in [Some(cluster.get()), number].into_iter().flatten() {
            while number > 0x7f {
                self.bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            self.bytes.push(number as u8);
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL_BYTES
    }

    /// Encodes the changes of a commit; `first` changes were made before them.
    pub(crate) fn encode(&self, first: u64, commit: u64) -> Vec<u8> {
        let mut bytes = commit.to_le_bytes().to_vec();
        bytes.extend(&self.bytes);
        checksum::seal(FEED, &first.to_be_bytes(), &mut bytes);
        bytes
    }
}

/// Decodes the changes of a row.
pub(crate) fn decode_feed(first: u64, row: &[u8]) -> Result<Vec<ClusterChange>> {
    let key = first.to_be_bytes();
    let mut bytes = checksum::open(FEED, &key, row)?;
    position_after(first, 0)?;
    let changes = |bytes: &mut &[u8]| {
        let commit = u64::from_le_bytes(take(bytes)?);
        let mut changes = Vec::new();
        while !bytes.is_empty() {
            let [kind] = take(bytes)?;
            let cluster = ClusterId::new(varint(bytes)?);
            let number = if kind == ENDED { 0 } else { varint(bytes)? };
            let (document, other) = (DocumentId::new(number), ClusterId::new(number));
            let event = match kind {
                JOINED => ClusterEvent::Joined { document },
                LEFT => ClusterEvent::Left { document },
                UNITED => ClusterEvent::United { into: other },
                SPLIT_FROM => ClusterEvent::SplitFrom { from: other },
                ENDED => ClusterEvent::Ended,
                _ => return None,
            };
            changes.push(ClusterChange {
                position: first.checked_add(changes.len() as u64 + 1)?,
                commit,
                cluster,
                event,
            });
        }
        Some(changes)
    };
    let decoded =
        changes(&mut bytes).ok_or_else(|| unknown_layout(checksum::place(FEED, &key), row))?;
    position_after(first, decoded.len() as u64)?;
    Ok(decoded)
}

/// Returns the position that is a number of changes after another one.
///
/// # Errors
/// [`Error::Corrupt`] if it is not below [`MAX_POSITIONS`].
pub(crate) fn position_after(position: u64, changes: u64) -> Result<u64> {
    let after = position.checked_add(changes);
    after.filter(|it| *it < MAX_POSITIONS).ok_or_else(|| {
        let place = checksum::place(FEED, &position.to_be_bytes());
        let detail = format!(
            "found position {position} with {changes} changes after it, expected less than 2^63"
        );
        Error::corrupt(place, detail)
    })
}

/// Takes a number of 7 bits a byte off the front, the lowest first. Returns `None` if a shorter form
/// exists: each number has one form.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let [byte] = take(bytes)?;
        let bits = u64::from(byte & 0x7f);
        number |= bits.checked_mul(1 << shift)?;
        if byte & 0x80 == 0 {
            return (byte > 0 || shift == 0).then_some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feed_rows_round_trip_and_report_damage() {
        let document = DocumentId::new(u64::MAX);
        let cluster = ClusterId::new(300);
        let events = [
            ClusterEvent::Joined { document },
            ClusterEvent::Left { document },
            ClusterEvent::United { into: cluster },
            ClusterEvent::SplitFrom { from: cluster },
            ClusterEvent::Ended,
        ];
        let mut row = FeedRow::default();
        for event in events {
            row.push(ClusterId::new(127), event);
        }
        let row = row.encode(10, 6);
        let changes = decode_feed(10, &row).unwrap();
        assert!(changes.iter().map(|it| it.event).eq(events));
        assert!(changes.iter().map(|it| it.position).eq(11..16));
        assert!(
            changes
                .iter()
                .all(|it| it.commit == 6 && it.cluster.get() == 127)
        );
        checksum::assert_damage_is_named(&row, |row| decode_feed(10, row));
        let decode = |bytes: &[u8]| {
            let mut row = [&[0; 8], bytes].concat();
            checksum::seal(FEED, &[0; 8], &mut row);
            decode_feed(0, &row)
        };
        for bytes in [[5, 0, 0].as_slice(), &[0, 1], &[4], &[4, 0x80], &[0xff; 11]] {
            assert!(decode(bytes).is_err(), "{bytes:?}");
        }
        // A number has no second form, which ends with zeros.
        assert!(decode(&[4, 0]).is_ok() && decode(&[4, 0x80, 1]).is_ok());
        for bytes in [[4, 0x80, 0].as_slice(), &[4, 0xff, 0], &[4, 0x80, 0x80, 0]] {
            assert!(decode(bytes).is_err(), "{bytes:?}");
        }
        for first in [
            MAX_POSITIONS - 2,
            MAX_POSITIONS - 1,
            MAX_POSITIONS,
            u64::MAX,
        ] {
            let mut row = FeedRow::default();
            row.push(cluster, ClusterEvent::Ended);
            let decoded = decode_feed(first, &row.encode(first, 6));
            assert_eq!(decoded.is_ok(), first < MAX_POSITIONS - 1, "{first}");
        }
    }
}
