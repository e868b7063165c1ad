//! CRC-32 of every value on disk.
//!
//! The storage engine does not verify its pages when it reads them. The checksum covers the table's
//! name and the key as well as the value, so that an intact value in the wrong place is detected
//! too.

use resemblance_sketch::metadata;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Bytes that [`seal`] appends.
pub(crate) const CHECKSUM_BYTES: usize = 4;

fn checksum(table: &str, key: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(table.as_bytes());
    hasher.update(&[0]);
    hasher.update(key);
    hasher.update(body);
    hasher.finalize()
}

/// Appends the little-endian checksum of table, key and value to the value.
pub(crate) fn seal(table: &str, key: &[u8], value: &mut Vec<u8>) {
    let crc = checksum(table, key, value);
    value.extend_from_slice(&crc.to_le_bytes());
}

/// Returns the value without its checksum.
///
/// # Errors
/// [`Error::Corrupt`] when the value is too short or its checksum is another.
pub(crate) fn open<'v>(table: &str, key: &[u8], value: &'v [u8]) -> Result<&'v [u8]> {
    let Some((body, found)) = value.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(Error::corrupt(
            place(table, key),
            format!("found {} bytes, expected a checksum", value.len()),
        ));
    };
    let found = u32::from_le_bytes(*found);
    let expected = checksum(table, key, body);
    if found == expected {
        return Ok(body);
    }
    Err(Error::corrupt(
        place(table, key),
        format!("found checksum {found:08x}, expected {expected:08x}"),
    ))
}

/// Returns the error of a row whose checksum is right and whose bytes make no sense.
pub(super) fn unknown_layout(place: String, row: &[u8]) -> Error {
    let detail = format!("a row of {} bytes that follows no known layout", row.len());
    Error::corrupt(place, detail)
}

/// The kind byte of rows of metadata.
const KIND: u8 = 1;

/// Encodes a structure of metadata, which errors call `name`, as a row with a checksum.
pub(super) fn encode(
    table: &str,
    key: &[u8],
    name: &str,
    value: &impl Serialize,
) -> Result<Vec<u8>> {
    let mut bytes = vec![KIND];
    bytes.extend(metadata::encode(name, value)?);
    seal(table, key, &mut bytes);
    Ok(bytes)
}

/// Decodes what [`encode`] has encoded.
pub(super) fn decode<T: DeserializeOwned>(
    table: &str,
    key: &[u8],
    name: &str,
    bytes: &[u8],
) -> Result<T> {
    Ok(metadata::decode(name, encoded(table, key, bytes)?)?)
}

/// Returns the bytes of the structure in a row that [`encode`] has encoded.
pub(super) fn encoded<'r>(table: &str, key: &[u8], bytes: &'r [u8]) -> Result<&'r [u8]> {
    match open(table, key, bytes)? {
        [KIND, body @ ..] => Ok(body),
        found => {
            let detail = format!("found kind {:?}, expected {KIND}", found.first());
            Err(Error::corrupt(place(table, key), detail))
        }
    }
}

/// Returns the name of a row in errors: the table and the key in hexadecimal.
pub(crate) fn place(table: &str, key: &[u8]) -> String {
    use std::fmt::Write;
    let mut place = format!("table {table}, key ");
    for byte in key {
        // Writing to a string cannot fail.
        let _ = write!(place, "{byte:02x}");
    }
    place
}

/// Asserts that a row with any bit flipped, or cut short, is refused by an error that names it.
#[cfg(test)]
pub(super) fn assert_damage_is_named<T>(value: &[u8], decode: impl Fn(&[u8]) -> Result<T>) {
    let refused = |bytes: &[u8], what: &dyn std::fmt::Debug| match decode(bytes).err() {
        Some(Error::Corrupt { place, .. }) => assert!(place.starts_with("table "), "{place}"),
        other => panic!("{what:?}: {other:?}"),
    };
    assert!(decode(value).is_ok());
    for bit in 0..value.len() * 8 {
        let mut damaged = value.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        refused(&damaged, &("bit", bit));
    }
    for length in 0..value.len() {
        refused(&value[..length], &("length", length));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_detects_flipped_bits_and_wrong_places() {
        let mut value = b"some value".to_vec();
        seal("table", b"key", &mut value);
        for bit in 0..value.len() * 8 {
            let mut damaged = value.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(
                open("table", b"key", &damaged),
                Err(Error::Corrupt { .. })
            ));
        }
        assert!(open("tables", b"key", &value).is_err());
        assert!(open("table", b"kez", &value).is_err());
        for length in 0..value.len() {
            assert!(open("table", b"key", &value[..length]).is_err());
        }
        let error = open("table", &[0xab, 0x01], b"abc").unwrap_err();
        assert_eq!(
            error.to_string(),
            "damaged: table table, key ab01: found 3 bytes, expected a checksum"
        );
    }
}
