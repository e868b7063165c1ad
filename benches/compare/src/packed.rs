//! A row as the key of an ordered key-value store: band, code and document, big-endian.

use crate::Result;
use crate::batch::Row;

pub type Key = [u8; 18];

pub fn pack((band, code, id): Row) -> Key {
    let mut key = [0; 18];
    let (front, back) = key.split_at_mut(10);
    front.copy_from_slice(&prefix(band, code));
    back.copy_from_slice(&id.to_be_bytes());
    key
}

/// Returns the prefix of the keys of all documents with a code.
pub fn prefix(band: u16, code: u64) -> [u8; 10] {
    let mut prefix = [0; 10];
    let (front, back) = prefix.split_at_mut(2);
    front.copy_from_slice(&band.to_be_bytes());
    back.copy_from_slice(&code.to_be_bytes());
    prefix
}

pub fn document(key: &[u8]) -> Result<u64> {
    let id = key.last_chunk().ok_or("a key is too short")?;
    Ok(u64::from_be_bytes(*id))
}
