//! Rows of the tables `documents` and `signatures`.

use crate::error::{Error, Result};
use crate::format::checksum;
use crate::sketch::Signature;

pub(crate) const DOCUMENTS: &str = "documents";
pub(crate) const SIGNATURES: &str = "signatures";

/// The longest key, in bytes.
pub(crate) const KEY_LIMIT_BYTES: usize = 4096;
/// The longest payload, in bytes.
pub(crate) const PAYLOAD_LIMIT_BYTES: usize = 64 << 20;

const KIND: u8 = 1;
const HAS_KEY: u8 = 1;
const IS_EMPTY: u8 = 1;
const HAS_KEY_CODE: u8 = 2;

/// The fields of one document apart from its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentRow<'a> {
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) stamp: u64,
    pub(crate) payload: &'a [u8],
}

impl<'a> DocumentRow<'a> {
    pub(crate) fn encode(&self, id: u64) -> Vec<u8> {
        let key = self.key.unwrap_or_default();
        let mut bytes = Vec::with_capacity(16 + key.len() + self.payload.len());
        bytes.push(KIND);
        bytes.push(if self.key.is_some() { HAS_KEY } else { 0 });
        bytes.extend_from_slice(&self.stamp.to_le_bytes());
        let key_length = u16::try_from(key.len()).unwrap_or(u16::MAX);
        bytes.extend_from_slice(&key_length.to_le_bytes());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(self.payload);
        checksum::seal(DOCUMENTS, &id.to_be_bytes(), &mut bytes);
        bytes
    }

    pub(crate) fn decode(id: u64, bytes: &'a [u8]) -> Result<Self> {
        let bytes = checksum::open(DOCUMENTS, &id.to_be_bytes(), bytes)?;
        Self::fields(bytes).ok_or_else(|| row_error(DOCUMENTS, id, bytes))
    }

    fn fields(bytes: &'a [u8]) -> Option<Self> {
        let (&[kind, flags], rest) = bytes.split_first_chunk()?;
        let (stamp, rest) = rest.split_first_chunk()?;
        let (key_length, rest) = rest.split_first_chunk()?;
        let (key, payload) = rest.split_at_checked(u16::from_le_bytes(*key_length).into())?;
        let has_key = flags & HAS_KEY != 0;
        let valid = kind == KIND && flags & !HAS_KEY == 0 && (has_key || key.is_empty());
        valid.then_some(Self {
            key: has_key.then_some(key),
            stamp: u64::from_le_bytes(*stamp),
            payload,
        })
    }
}

/// The row of a signature. It holds the code of the key as well, so that these rows alone give all
/// codes of a document, however large its payload is.
pub(crate) fn encode_signature(id: u64, key_code: Option<u64>, signature: &Signature) -> Vec<u8> {
    let values = signature.minhash().unwrap_or_default();
    let mut bytes = Vec::with_capacity(25 + 4 * values.len());
    bytes.push(KIND);
    let empty = if signature.is_empty() { IS_EMPTY } else { 0 };
    bytes.push(empty | key_code.map_or(0, |_| HAS_KEY_CODE));
    let count = u16::try_from(values.len()).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.push(u8::from(signature.simhash().is_some()));
    if let Some(code) = key_code {
        bytes.extend_from_slice(&code.to_le_bytes());
    }
    for value in values {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    if let Some(fingerprint) = signature.simhash() {
        bytes.extend_from_slice(&fingerprint.to_le_bytes());
    }
    checksum::seal(SIGNATURES, &id.to_be_bytes(), &mut bytes);
    bytes
}

/// A row of `signatures`, read in place: a probe compares hundreds and keeps few.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignatureRow<'a> {
    values: &'a [[u8; 4]],
    fingerprint: Option<u64>,
    key_code: Option<u64>,
    empty: bool,
}

impl<'a> SignatureRow<'a> {
    /// `shape` is what the schema asks for: the number of values, and whether there is a fingerprint.
    pub(crate) fn decode(id: u64, bytes: &'a [u8], shape: (usize, bool)) -> Result<Self> {
        let bytes = checksum::open(SIGNATURES, &id.to_be_bytes(), bytes)?;
        let row = Self::fields(bytes).ok_or_else(|| row_error(SIGNATURES, id, bytes))?;
        if (row.values.len(), row.fingerprint.is_some()) == shape {
            Ok(row)
        } else {
            Err(row_error(SIGNATURES, id, bytes))
        }
    }

    fn fields(bytes: &'a [u8]) -> Option<Self> {
        let (&[kind, flags, low, high, fingerprints], rest) = bytes.split_first_chunk()?;
        let count = usize::from(u16::from_le_bytes([low, high]));
        let (key_code, rest) = if flags & HAS_KEY_CODE == 0 {
            (None, rest)
        } else {
            let (code, rest) = rest.split_first_chunk()?;
            (Some(u64::from_le_bytes(*code)), rest)
        };
        let (values, rest) = rest.split_at_checked(count.checked_mul(4)?)?;
        let fingerprint = match (fingerprints, rest) {
            (0, []) => None,
            (1, rest) => Some(u64::from_le_bytes(rest.try_into().ok()?)),
            _ => return None,
        };
        let valid = kind == KIND && flags & !(IS_EMPTY | HAS_KEY_CODE) == 0;
        valid.then_some(Self {
            values: values.as_chunks().0,
            fingerprint,
            key_code,
            empty: flags & IS_EMPTY != 0,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    pub(crate) fn fingerprint(&self) -> Option<u64> {
        self.fingerprint
    }

    /// The code of the document's key, if it has one.
    pub(crate) fn key_code(&self) -> Option<u64> {
        self.key_code
    }

    /// How many values equal those of `other`, position by position.
    pub(crate) fn equal_values(&self, other: &[u32]) -> usize {
        let pairs = self.values.iter().zip(other);
        pairs
            .filter(|(stored, value)| u32::from_le_bytes(**stored) == **value)
            .count()
    }

    pub(crate) fn to_signature(self, recipe: u64) -> Signature {
        let values = self.values.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let minhash = (!self.values.is_empty()).then(|| values.collect());
        Signature::decode_parts(minhash, self.fingerprint, self.empty, Some(recipe))
    }
}

fn row_error(table: &str, id: u64, bytes: &[u8]) -> Error {
    let detail = format!(
        "a row of {} bytes that follows no known layout",
        bytes.len()
    );
    Error::corrupt(format!("table {table}, document {id}"), detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_rows_come_back() {
        for key in [
            None,
            Some(&b""[..]),
            Some(b"key"),
            Some(&[0xff; KEY_LIMIT_BYTES]),
        ] {
            for payload in [&b""[..], b"payload"] {
                let row = DocumentRow {
                    key,
                    stamp: u64::MAX - 5,
                    payload,
                };
                let bytes = row.encode(7);
                assert_eq!(DocumentRow::decode(7, &bytes).unwrap(), row);
                assert!(
                    DocumentRow::decode(8, &bytes).is_err(),
                    "the checksum covers the id"
                );
            }
        }
    }

    #[test]
    fn signature_rows_come_back() {
        let values: Vec<u32> = (0..16).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
        for (minhash, simhash, key_code) in [
            (Some(values.clone()), Some(9), None),
            (Some(values), None, Some(u64::MAX)),
            (None, Some(u64::MAX), Some(0)),
        ] {
            let signature = Signature::from_parts(minhash.clone(), simhash);
            let bytes = encode_signature(3, key_code, &signature);
            let shape = (minhash.as_ref().map_or(0, Vec::len), simhash.is_some());
            let row = SignatureRow::decode(3, &bytes, shape).unwrap();
            assert_eq!(row.to_signature(1).minhash(), minhash.as_deref());
            assert_eq!(row.fingerprint(), simhash);
            assert_eq!(row.key_code(), key_code);
            assert_eq!(
                row.equal_values(minhash.as_deref().unwrap_or_default()),
                shape.0
            );
            assert!(SignatureRow::decode(3, &bytes, (shape.0 + 1, shape.1)).is_err());
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let document = DocumentRow {
            key: Some(b"k"),
            stamp: 1,
            payload: b"p",
        }
        .encode(1);
        let signature = encode_signature(1, Some(77), &Signature::from_simhash(5));
        for bit in 0..document.len() * 8 {
            let mut bytes = document.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(DocumentRow::decode(1, &bytes).is_err(), "bit {bit}");
        }
        for bit in 0..signature.len() * 8 {
            let mut bytes = signature.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(
                SignatureRow::decode(1, &bytes, (0, true)).is_err(),
                "bit {bit}"
            );
        }
    }
}
