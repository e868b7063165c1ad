//! Rows of the tables `documents` and `signatures`.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::checksum;
use crate::format::kept::{self, PackedHashes, PackedPositions};
use crate::invariant::OrBug;
use crate::sketch::{KeptHashes, KeptShingle, RecipeMark, Signature, ValueLayout};
use crate::types::Document;

pub(crate) const DOCUMENTS: &str = "documents";
pub(crate) const SIGNATURES: &str = "signatures";

const KIND: u8 = 1;
const HAS_KEY: u8 = 1;
const HAS_STAMP: u8 = 2;
const IS_EMPTY: u8 = 1;
const HAS_KEY_CODE: u8 = 2;

/// Bytes in front of the code of the key, or of the values.
const HEAD_BYTES: usize = 5;

/// The fields of one document apart from its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentRow<'a> {
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) stamp: u64,
    pub(crate) payload: &'a [u8],
}

impl<'a> DocumentRow<'a> {
    /// # Errors
    /// [`Error::Bug`] for a key that is longer than keys may be.
    pub(crate) fn encode(&self, id: u64) -> Result<Vec<u8>> {
        let key_bytes = self.key.map_or(0, <[u8]>::len);
        let mut bytes = Vec::with_capacity(16 + key_bytes + self.payload.len());
        bytes.push(KIND);
        let key_flag = self.key.map_or(0, |_| HAS_KEY);
        bytes.push(key_flag | if self.stamp > 0 { HAS_STAMP } else { 0 });
        if self.stamp > 0 {
            bytes.extend_from_slice(&self.stamp.to_le_bytes());
        }
        if let Some(key) = self.key {
            let key_length = u16::try_from(key_bytes).ok();
            let key_length = key_length.or_bug("a key longer than keys may be")?;
            bytes.extend_from_slice(&key_length.to_le_bytes());
            bytes.extend_from_slice(key);
        }
        bytes.extend_from_slice(self.payload);
        checksum::seal(DOCUMENTS, &id.to_be_bytes(), &mut bytes);
        Ok(bytes)
    }

    pub(crate) fn decode(id: u64, bytes: &'a [u8]) -> Result<Self> {
        let bytes = checksum::open(DOCUMENTS, &id.to_be_bytes(), bytes)?;
        Self::fields(bytes).ok_or_else(|| row_error(DOCUMENTS, id, bytes))
    }

    /// Reads the body of a row.
    pub(super) fn fields(bytes: &'a [u8]) -> Option<Self> {
        let (&[kind, flags], mut rest) = bytes.split_first_chunk()?;
        let (mut stamp, mut key) = (0, None);
        let has_stamp = flags & HAS_STAMP != 0;
        if has_stamp {
            let (field, behind) = rest.split_first_chunk()?;
            (stamp, rest) = (u64::from_le_bytes(*field), behind);
        }
        if flags & HAS_KEY != 0 {
            let (length, behind) = rest.split_first_chunk()?;
            let (field, behind) = behind.split_at_checked(u16::from_le_bytes(*length).into())?;
            (key, rest) = (Some(field), behind);
        }
        let valid = kind == KIND && flags & !(HAS_KEY | HAS_STAMP) == 0;
        (valid && has_stamp == (stamp > 0)).then_some(Self {
            key,
            stamp,
            payload: rest,
        })
    }
}

impl<'a> From<&'a Document<'_>> for DocumentRow<'a> {
    fn from(document: &'a Document<'_>) -> Self {
        Self {
            key: document.key(),
            stamp: document.stamp,
            payload: &document.payload,
        }
    }
}

impl<'a> From<DocumentRow<'a>> for Document<'a> {
    fn from(row: DocumentRow<'a>) -> Self {
        Self {
            key: row.key.map(Cow::Borrowed),
            stamp: row.stamp,
            payload: Cow::Borrowed(row.payload),
        }
    }
}

/// The parts of the signatures of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) values: Option<ValueLayout>,
    /// True if the values are samples of weighted features, and no minima.
    pub(crate) are_samples: bool,
    /// Bits of the fingerprint; 0 without.
    pub(crate) fingerprint_bits: u16,
    /// True if there are kept hashes.
    pub(crate) has_kept_hashes: bool,
    /// True if these have positions.
    pub(crate) has_positions: bool,
}

impl Shape {
    /// Bytes of a row's fields that vary with the schema: values and fingerprint, without kept hashes.
    pub(crate) fn size_bytes(&self) -> usize {
        let values = self.values.map_or(0, ValueLayout::size_bytes);
        values + usize::from(self.fingerprint_bytes())
    }

    /// Bytes of the fingerprint: at most 32.
    fn fingerprint_bytes(&self) -> u8 {
        (self.fingerprint_bits / 8) as u8
    }
}

/// Encodes the row of a signature. It holds the code of the key as well, so that these rows alone give
/// all codes of a document, however large its payload is.
///
/// # Errors
/// [`Error::Bug`] for more values than a schema can ask for.
pub(crate) fn encode_signature(
    id: u64,
    key_code: Option<u64>,
    signature: &Signature,
    shape: &Shape,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(25 + shape.size_bytes());
    bytes.push(KIND);
    let empty = if signature.is_empty() { IS_EMPTY } else { 0 };
    bytes.push(empty | key_code.map_or(0, |_| HAS_KEY_CODE));
    let count = u16::try_from(signature.value_count()).ok();
    let count = count.or_bug("more values than a schema can ask for")?;
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.push(shape.fingerprint_bytes());
    if let Some(code) = key_code {
        bytes.extend_from_slice(&code.to_le_bytes());
    }
    if let Some(layout) = shape.values {
        signature.encode_values(layout, &mut bytes);
    }
    if let Some(fingerprint) = signature.fingerprint() {
        fingerprint.append_le_bytes(&mut bytes);
    }
    if let Some(hashes) = signature.kept_hashes() {
        kept::encode(hashes, &mut bytes);
    }
    if shape.has_positions {
        kept::encode_positions(signature.kept_shingles(), &mut bytes);
    }
    checksum::seal(SIGNATURES, &id.to_be_bytes(), &mut bytes);
    Ok(bytes)
}

/// Appends the body of a signature's row without the code of the document's key.
pub(crate) fn append_plain_signature(row: &SignatureRow<'_>, body: &[u8], to: &mut Vec<u8>) {
    let Some((head, rest)) = body.split_at_checked(HEAD_BYTES) else {
        return;
    };
    let start = to.len();
    to.extend_from_slice(head);
    if let Some(flags) = to.get_mut(start + 1) {
        *flags &= !HAS_KEY_CODE;
    }
    let code_bytes = row.key_code.map_or(0, |_| size_of::<u64>());
    to.extend_from_slice(rest.get(code_bytes..).unwrap_or_default());
}

/// Decodes the signature from the body of a row without the code of a key. It must be encoded
/// exactly as this release encodes it, because the body may not come from a store.
pub(crate) fn decode_plain_signature(
    bytes: &[u8],
    shape: &Shape,
    recipe: RecipeMark,
) -> Option<Signature> {
    let row = SignatureRow::fields(bytes, shape)?;
    let signature = row.to_signature(recipe);
    let mut hashes = signature.bottom_k().unwrap_or_default().windows(2);
    let placed = signature.placed_shingles().into_iter();
    let mut placed = placed.flat_map(|placed| placed.windows(2));
    let is_ours = row.key_code.is_none()
        && hashes.all(|pair| pair.first() < pair.last())
        && placed.all(|pair| pair.first().map(|it| it.0) < pair.last().map(|it| it.0))
        && plain_signature(&signature, shape).is_ok_and(|row| row == bytes);
    is_ours.then_some(signature)
}

/// Returns the body of the row of a signature, without the code of a key.
pub(super) fn plain_signature(signature: &Signature, shape: &Shape) -> Result<Vec<u8>> {
    let mut row = encode_signature(0, None, signature, shape)?;
    row.truncate(row.len().saturating_sub(checksum::CHECKSUM_BYTES));
    Ok(row)
}

/// A row of `signatures`, read in place: a probe compares hundreds and keeps few.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignatureRow<'a> {
    shape: &'a Shape,
    /// Values, fingerprint and kept hashes: all bytes of the signature.
    bytes: &'a [u8],
    values: &'a [u8],
    fingerprint: Option<Fingerprint>,
    kept: PackedHashes<'a>,
    positions: PackedPositions<'a>,
    key_code: Option<u64>,
    empty: bool,
}

impl<'a> SignatureRow<'a> {
    /// Decodes a row of `signatures`; `shape` comes from the schema.
    pub(crate) fn decode(id: u64, bytes: &'a [u8], shape: &'a Shape) -> Result<Self> {
        let bytes = checksum::open(SIGNATURES, &id.to_be_bytes(), bytes)?;
        Self::fields(bytes, shape).ok_or_else(|| row_error(SIGNATURES, id, bytes))
    }

    /// Decodes a row that never left memory, and does not look at its checksum.
    pub(crate) fn read(id: u64, bytes: &'a [u8], shape: &'a Shape) -> Result<Self> {
        let body = bytes.len().checked_sub(checksum::CHECKSUM_BYTES);
        let body = body.and_then(|length| bytes.get(..length));
        let row = body.and_then(|body| Self::fields(body, shape));
        row.or_bug_with(|| format!("the row of document {id} in memory"))
    }

    fn fields(bytes: &'a [u8], shape: &'a Shape) -> Option<Self> {
        let (&[kind, flags, low, high, fingerprint_bytes], rest) = bytes.split_first_chunk()?;
        let count = u16::from_le_bytes([low, high]);
        let (key_code, rest) = if flags & HAS_KEY_CODE == 0 {
            (None, rest)
        } else {
            let (code, rest) = rest.split_first_chunk()?;
            (Some(u64::from_le_bytes(*code)), rest)
        };
        let bytes = rest;
        let fits = shape
            .values
            .map_or(count == 0, |layout| layout.allows(count));
        let values_bytes = shape
            .values
            .map_or(0, |layout| layout.size_bytes_for(count));
        let (values, rest) = rest.split_at_checked(values_bytes)?;
        let (fingerprint, rest) = rest.split_at_checked(fingerprint_bytes.into())?;
        let fingerprint = match fingerprint {
            [] => None,
            bytes => Some(Fingerprint::from_le_bytes(bytes)?),
        };
        let (kept, rest) = match shape.has_kept_hashes {
            true => PackedHashes::split(rest)?,
            false => (PackedHashes::default(), rest),
        };
        let (positions, rest) = match shape.has_positions {
            true => PackedPositions::split(rest, kept.count())?,
            false => (PackedPositions::default(), rest),
        };
        let valid = kind == KIND
            && flags & !(IS_EMPTY | HAS_KEY_CODE) == 0
            && fits
            && fingerprint_bytes == shape.fingerprint_bytes()
            && rest.is_empty();
        valid.then_some(Self {
            shape,
            bytes,
            values,
            fingerprint,
            kept,
            positions,
            key_code,
            empty: flags & IS_EMPTY != 0,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Returns the code of the document's key, `None` without a key.
    pub(crate) fn key_code(&self) -> Option<u64> {
        self.key_code
    }

    /// Returns the number of kept hashes; 0 without containment.
    pub(crate) fn kept_count(&self) -> u32 {
        self.kept.count()
    }

    /// Returns the kept shingles in the order of the document; none without positions.
    pub(crate) fn kept_shingles(&self) -> Vec<KeptShingle> {
        let hashes: Vec<u64> = self.kept.iter().collect();
        self.positions.shingles(&hashes)
    }

    /// Returns a hash of all that the signature consists of. Two of a hundred million different ones agree
    /// with a probability of 10⁻²³.
    pub(crate) fn digest(&self) -> u128 {
        xxh3_128_with_seed(self.bytes, u64::from(self.empty))
    }

    /// Returns the bytes of the MinHash values in the layout of the schema.
    pub(crate) fn values(&self) -> &'a [u8] {
        self.values
    }

    /// Returns the agreement of the MinHash values with those of `other`, as the layout counts it.
    pub(crate) fn agreement(&self, other: &Signature) -> usize {
        let layout = self.shape.values;
        layout.map_or(0, |layout| other.agreement_with(layout, self.values))
    }

    pub(crate) fn to_signature(self, recipe: RecipeMark) -> Signature {
        let layout = self.shape.values;
        let values = layout.map(|layout| (layout, self.values, self.shape.are_samples));
        let kept = self.shape.has_kept_hashes.then(|| {
            let hashes: Vec<u64> = self.kept.iter().collect();
            KeptHashes {
                shingles: self.positions.shingles(&hashes),
                are_placed: self.shape.has_positions,
                hashes,
            }
        });
        Signature::decode(values, self.fingerprint, self.empty, Some(recipe)).with_kept(kept)
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
            Some(&[0xff; crate::types::KEY_LIMIT_BYTES]),
        ] {
            for (payload, stamp) in [
                (&b""[..], 0),
                (b"payload", 0),
                (b"", 1),
                (b"p", u64::MAX - 5),
            ] {
                let row = DocumentRow {
                    key,
                    stamp,
                    payload,
                };
                let bytes = row.encode(7).unwrap();
                assert_eq!(DocumentRow::decode(7, &bytes).unwrap(), row);
                assert!(
                    DocumentRow::decode(8, &bytes).is_err(),
                    "the checksum covers the id"
                );
            }
        }
    }

    /// A field that is there must say something, so that a document has one row only.
    #[test]
    fn a_stamp_of_zero_has_no_field() {
        let stamped = [KIND, HAS_STAMP, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(DocumentRow::fields(&stamped).unwrap().stamp, 1);
        let mut zero = stamped;
        zero[2] = 0;
        assert_eq!(DocumentRow::fields(&zero), None);
    }

    fn places(count: u16, bits: u8) -> Option<ValueLayout> {
        Some(ValueLayout::Packed {
            count,
            bits,
            is_mixed: true,
        })
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
            let shape = Shape {
                values: minhash.as_ref().and_then(|_| places(16, 32)),
                fingerprint_bits: if simhash.is_some() { 64 } else { 0 },
                ..Shape::default()
            };
            let bytes = encode_signature(3, key_code, &signature, &shape).unwrap();
            let row = SignatureRow::decode(3, &bytes, &shape).unwrap();
            assert_eq!(row.to_signature(RecipeMark::default()), signature);
            assert_eq!(row.fingerprint(), simhash.map(Fingerprint::from));
            assert_eq!(row.key_code(), key_code);
            let values = shape.values.map_or(0, |layout| layout.count().into());
            assert_eq!(row.agreement(&signature), values);
            for wrong in [
                Shape {
                    values: places(17, 32),
                    ..shape
                },
                Shape {
                    values: places(16, 16),
                    ..shape
                },
                Shape {
                    fingerprint_bits: 128,
                    ..shape
                },
            ] {
                assert!(SignatureRow::decode(3, &bytes, &wrong).is_err());
            }
        }
    }

    #[test]
    fn rows_of_whole_values_are_those_of_cut_ones() {
        let signature = Signature::from_minhash((0..16).collect());
        let shape = Shape {
            values: places(16, 4),
            ..Shape::default()
        };
        let bytes = encode_signature(3, None, &signature, &shape).unwrap();
        let row = SignatureRow::decode(3, &bytes, &shape).unwrap();
        assert_eq!(row.agreement(&signature), 16);
        let read = row.to_signature(RecipeMark::default());
        assert_eq!(read.value_bits(), Some(4));
        assert_eq!(read.jaccard(&signature).unwrap(), 1.0);
        assert_eq!(read.rows(shape.values), signature.rows(shape.values));
        assert_eq!(encode_signature(3, None, &read, &shape).unwrap(), bytes);
    }

    #[test]
    fn rows_of_the_smallest_hashes_are_as_long_as_there_are_hashes() {
        let shape = Shape {
            values: Some(ValueLayout::Smallest { max_count: 64 }),
            fingerprint_bits: 128,
            ..Shape::default()
        };
        let fingerprint = Signature::from_fingerprint(1_u128 << 90);
        for hashes in [vec![], vec![5, 7], (0..64).collect()] {
            let signature = Signature::from_bottom_k(64, hashes).with_simhash_of(&fingerprint);
            let bytes = encode_signature(3, None, &signature, &shape).unwrap();
            let row = SignatureRow::decode(3, &bytes, &shape).unwrap();
            assert_eq!(row.to_signature(RecipeMark::default()), signature);
            assert_eq!(row.is_empty(), signature.is_empty());
        }
    }

    #[test]
    fn damage_is_named() {
        let document = DocumentRow {
            key: Some(b"k"),
            stamp: 1,
            payload: b"p",
        }
        .encode(1)
        .unwrap();
        let shape = Shape {
            fingerprint_bits: 64,
            ..Shape::default()
        };
        let signature = encode_signature(1, Some(77), &Signature::from_simhash(5), &shape).unwrap();
        checksum::assert_damage_is_named(&document, |row| DocumentRow::decode(1, row).map(drop));
        checksum::assert_damage_is_named(&signature, |row| {
            SignatureRow::decode(1, row, &shape).map(drop)
        });
    }
}
