//! Rows of the tables `documents`, `payloads` and `sets`.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::error::{Error, Result};
use crate::format::bits::take;
use crate::format::checksum;
use crate::format::kept_hashes::{self, PackedHashes, PackedPositions, SetForm, VectorForm};
use crate::invariant::OrBug;
use crate::types::{Document, KEY_LIMIT_BYTES};
use resemblance_sketch::exact::ExactSet;
use resemblance_sketch::fingerprint::Fingerprint;
use resemblance_sketch::lanes::hash_key;
use resemblance_sketch::sketch::{KeptHashes, KeptShingle, RecipeMark, Signature, ValueLayout};

pub(crate) const DOCUMENTS: &str = "documents";
pub(crate) const PAYLOADS: &str = "payloads";
pub(crate) const SETS: &str = "sets";

/// The kind is the lower half of the first byte, the flags are the upper one.
const KIND: u8 = 1;
const KIND_BITS: u8 = 0x0f;
const IS_EMPTY: u8 = 1 << 4;
const HAS_KEY: u8 = 1 << 5;
const HAS_STAMP: u8 = 1 << 6;
const HAS_PAYLOAD: u8 = 1 << 7;

/// The head of a document's row: everything before the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowHead<'a> {
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) stamp: u64,
    /// True if there is a row in `payloads`.
    pub(crate) has_payload: bool,
    /// True if the signature was made from a document without features.
    pub(crate) is_empty: bool,
}

impl<'a> RowHead<'a> {
    pub(crate) fn new(document: &'a Document<'_>, is_empty: bool) -> Self {
        Self {
            key: document.key(),
            stamp: document.stamp,
            has_payload: !document.payload.is_empty(),
            is_empty,
        }
    }

    /// # Errors
    /// [`Error::Bug`] for a key that is longer than keys may be.
    pub(crate) fn append_to(&self, bytes: &mut Vec<u8>) -> Result<()> {
        let flags = [
            (self.is_empty, IS_EMPTY),
            (self.key.is_some(), HAS_KEY),
            (self.stamp > 0, HAS_STAMP),
            (self.has_payload, HAS_PAYLOAD),
        ];
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        bytes.push(set.fold(KIND, |all, (_, flag)| all | flag));
        if self.stamp > 0 {
            bytes.extend_from_slice(&self.stamp.to_le_bytes());
        }
        if let Some(key) = self.key {
            let fitting = u16::try_from(key.len()).ok();
            let length = fitting.or_bug("a key longer than keys may be")?;
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(key);
        }
        Ok(())
    }

    /// Decodes the head of a row of `documents`, and verifies the checksum of the whole row.
    pub(crate) fn decode(id: u64, row: &'a [u8]) -> Result<Self> {
        let body = checksum::open(DOCUMENTS, &id.to_be_bytes(), row)?;
        let head = Self::split(body).map(|(head, _)| head);
        head.ok_or_else(|| row_error(DOCUMENTS, id, body))
    }

    /// Splits the head off the front of a row's body.
    pub(crate) fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&first, mut rest) = bytes.split_first()?;
        let (mut stamp, mut key) = (0, None);
        let has_stamp = first & HAS_STAMP != 0;
        if has_stamp {
            stamp = u64::from_le_bytes(take(&mut rest)?);
        }
        if first & HAS_KEY != 0 {
            let length = u16::from_le_bytes(take(&mut rest)?);
            let (field, behind) = rest.split_at_checked(length.into())?;
            (key, rest) = (Some(field), behind);
        }
        let head = Self {
            key,
            stamp,
            has_payload: first & HAS_PAYLOAD != 0,
            is_empty: first & IS_EMPTY != 0,
        };
        let is_valid = first & KIND_BITS == KIND && has_stamp == (stamp > 0);
        is_valid.then_some((head, rest))
    }

    /// Returns the row's contents, with a payload, as a document.
    pub(crate) fn to_document(self, payload: &'a [u8]) -> Document<'a> {
        Document {
            key: self.key.map(Cow::Borrowed),
            stamp: self.stamp,
            payload: Cow::Borrowed(payload),
        }
    }

    /// Returns true if it contains anything besides the number of features.
    pub(crate) fn has_fields(&self) -> bool {
        self.key.is_some() || self.stamp > 0 || self.has_payload
    }

    /// Returns the key's code, `None` without a key.
    pub(crate) fn key_code(&self) -> Option<u64> {
        self.key.map(hash_key)
    }
}

/// Encodes the row of a payload, `None` if it has no bytes.
pub(crate) fn encode_payload(id: u64, payload: &[u8]) -> Option<Vec<u8>> {
    if payload.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(payload.len() + checksum::CHECKSUM_BYTES);
    bytes.extend_from_slice(payload);
    checksum::seal(PAYLOADS, &id.to_be_bytes(), &mut bytes);
    Some(bytes)
}

/// # Errors
/// [`Error::Corrupt`] for a wrong checksum, and for a payload without bytes.
pub(crate) fn decode_payload(id: u64, bytes: &[u8]) -> Result<&[u8]> {
    let payload = checksum::open(PAYLOADS, &id.to_be_bytes(), bytes)?;
    match payload.is_empty() {
        true => Err(row_error(PAYLOADS, id, payload)),
        false => Ok(payload),
    }
}

/// Encodes the row of an exact set.
pub(crate) fn encode_set(id: u64, set: &ExactSet, shape: &Shape) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    kept_hashes::encode_set(set, shape.set_form(), &mut bytes)?;
    checksum::seal(SETS, &id.to_be_bytes(), &mut bytes);
    Ok(bytes)
}

/// # Errors
/// [`Error::Corrupt`] for a wrong checksum, and for anything that is not a set.
pub(crate) fn decode_set(id: u64, bytes: &[u8], shape: &Shape) -> Result<ExactSet> {
    decode_set_body(id, open_set(id, bytes)?, shape)
}

/// The most bytes that the kept hashes of a document may take with their positions, and that its
/// exact set may take: some ten million features. Small under test, so that a test can exceed it.
pub(crate) const PACKED_LIMIT_BYTES: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };

/// No feature takes more bytes than this: a hash of 64 bits, the unary parts, and a weight.
const FEATURE_LIMIT_BYTES: usize = 24;

/// Refuses a signature whose features take more bytes than a stream of documents may have.
///
/// # Errors
/// [`Error::SignatureMismatch`].
pub(crate) fn check_packed(signature: &Signature, shape: &Shape) -> Result<()> {
    let (kept, set) = (signature.kept_hashes(), signature.exact_set());
    let features = kept.map_or(0, <[u64]>::len)
        + signature.kept_shingles().len()
        + set.map_or(0, |set| set.hashes().len());
    if features <= PACKED_LIMIT_BYTES / FEATURE_LIMIT_BYTES {
        return Ok(());
    }
    let fits = |part, bytes: &[u8]| match bytes.len() > PACKED_LIMIT_BYTES {
        true => {
            let expected = "at most 64 MiB: split the document";
            let found = format!("{} bytes when packed", bytes.len());
            Err(Error::signature(part, found, expected))
        }
        false => Ok(()),
    };
    let mut packed = Vec::new();
    kept_hashes::encode(kept.unwrap_or(&[]), &mut packed)?;
    kept_hashes::encode_positions(signature.kept_shingles(), &mut packed)?;
    fits("kept hashes", &packed)?;
    packed.clear();
    if let Some(set) = set {
        kept_hashes::encode_set(set, shape.set_form(), &mut packed)?;
    }
    fits("exact set", &packed)
}

/// Returns the body of the row of an exact set, which is not decoded yet.
///
/// # Errors
/// [`Error::Corrupt`] for a wrong checksum.
pub(crate) fn open_set(id: u64, bytes: &[u8]) -> Result<&[u8]> {
    checksum::open(SETS, &id.to_be_bytes(), bytes)
}

/// Decodes the body of the row of an exact set.
///
/// # Errors
/// [`Error::Corrupt`] for anything that is not a set.
pub(crate) fn decode_set_body(id: u64, body: &[u8], shape: &Shape) -> Result<ExactSet> {
    let set = kept_hashes::split_set(body, shape.set_form());
    let whole = set.and_then(|(set, rest)| rest.is_empty().then_some(set));
    whole.ok_or_else(|| row_error(SETS, id, body))
}

/// Returns the number of features of the set in a body.
pub(crate) fn set_count(id: u64, body: &[u8]) -> Result<usize> {
    let count = kept_hashes::set_count(body);
    Ok(count.ok_or_else(|| row_error(SETS, id, body))? as usize)
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
    /// True if an exact set follows. It does in streams and behind signatures without a row, but
    /// not in rows of `documents`. The set has weights if the values are samples.
    pub(crate) has_set: bool,
    /// The width of the hashes of exact sets.
    pub(crate) set_bits: u8,
    /// The form of vectors, which exact sets hold in place of hashes if there is one.
    pub(crate) vector: Option<VectorForm>,
}

impl Shape {
    /// Bytes of a row's fields that vary with the schema: values and fingerprint, without kept hashes.
    pub(crate) fn size_bytes(&self) -> usize {
        let values = self.values.map_or(0, ValueLayout::size_bytes);
        values + usize::from(self.fingerprint_bytes())
    }

    fn set_form(&self) -> SetForm {
        match self.vector {
            Some(form) => SetForm::Vector(form),
            None => SetForm::Features {
                hash_bits: self.set_bits,
                is_weighted: self.are_samples,
            },
        }
    }

    /// Bytes of the fingerprint: at most 32.
    fn fingerprint_bytes(&self) -> u8 {
        (self.fingerprint_bits / 8) as u8
    }
}

/// Encodes the row of a document: all of it but its payload.
///
/// # Errors
/// [`Error::Bug`] for a longer key than keys may be, and for more values than a schema can ask for.
pub(crate) fn encode_document(
    id: u64,
    document: &Document<'_>,
    signature: &Signature,
    shape: &Shape,
) -> Result<Vec<u8>> {
    let head = RowHead::new(document, signature.is_empty());
    let mut bytes = encode_body(&head, signature, shape)?;
    checksum::seal(DOCUMENTS, &id.to_be_bytes(), &mut bytes);
    Ok(bytes)
}

/// Encodes a signature as the body of the row of a document that has nothing else.
///
/// # Errors
/// [`Error::Bug`] for more values than a schema can ask for.
pub(crate) fn encode_signature(signature: &Signature, shape: &Shape) -> Result<Vec<u8>> {
    let alone = Document::without_key();
    let head = RowHead::new(&alone, signature.is_empty());
    encode_body(&head, signature, shape)
}

pub(super) fn encode_body(
    head: &RowHead<'_>,
    signature: &Signature,
    shape: &Shape,
) -> Result<Vec<u8>> {
    let key_bytes = head.key.map_or(0, <[u8]>::len);
    let mut bytes = Vec::with_capacity(24 + key_bytes + shape.size_bytes());
    head.append_to(&mut bytes)?;
    if let Some(layout) = shape.values {
        if let ValueLayout::Smallest { .. } = layout {
            let values = u16::try_from(signature.value_count()).ok();
            let count = values.or_bug("more values than a schema can ask for")?;
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        signature.encode_values(layout, &mut bytes);
    }
    if let Some(fingerprint) = signature.fingerprint() {
        fingerprint.append_le_bytes(&mut bytes);
    }
    if let Some(hashes) = signature.kept_hashes() {
        kept_hashes::encode(hashes, &mut bytes)?;
    }
    if shape.has_positions {
        kept_hashes::encode_positions(signature.kept_shingles(), &mut bytes)?;
    }
    if shape.has_set {
        let set = signature
            .exact_set()
            .or_bug("the exact set of a signature")?;
        kept_hashes::encode_set(set, shape.set_form(), &mut bytes)?;
    }
    Ok(bytes)
}

/// Decodes the body of a row that may not originate from a store: it must be encoded exactly as
/// this release encodes it.
pub(crate) fn decode_body<'a>(
    bytes: &'a [u8],
    shape: &Shape,
    recipe: RecipeMark,
) -> Option<(RowHead<'a>, Signature)> {
    let (row, rest) = DocumentRow::split(bytes, shape)?;
    let (set, rest) = match shape.has_set {
        true => {
            kept_hashes::split_set(rest, shape.set_form()).map(|(set, rest)| (Some(set), rest))?
        }
        false => (None, rest),
    };
    let signature = row.to_signature(recipe).with_set(set);
    let is_ours = rest.is_empty() && row.is_encoded_as(&signature, bytes);
    is_ours.then_some((row.head, signature))
}

/// A row of `documents`, read in place: a probe compares hundreds and keeps few.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentRow<'a> {
    pub(crate) head: RowHead<'a>,
    shape: Shape,
    /// All bytes of the signature: values, fingerprint and kept hashes.
    signature: &'a [u8],
    values: &'a [u8],
    fingerprint: Option<Fingerprint>,
    kept: PackedHashes<'a>,
    positions: PackedPositions<'a>,
}

impl<'a> DocumentRow<'a> {
    /// Decodes a row of `documents`; `shape` is that of the schema.
    pub(crate) fn decode(id: u64, bytes: &'a [u8], shape: &Shape) -> Result<Self> {
        let bytes = checksum::open(DOCUMENTS, &id.to_be_bytes(), bytes)?;
        Self::fields(bytes, shape).ok_or_else(|| row_error(DOCUMENTS, id, bytes))
    }

    /// Checks that a row is encoded as a writer encodes its document. Readers accept more, but no
    /// other store would import it. `bytes` and `signature` are those of the row.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a row that is encoded in another way.
    pub(crate) fn check_encoding(
        &self,
        id: u64,
        bytes: &[u8],
        signature: &Signature,
    ) -> Result<()> {
        let parts = bytes.split_last_chunk::<{ checksum::CHECKSUM_BYTES }>();
        let (body, _) = parts.or_bug("the checksum of a row that was verified")?;
        let key_bytes = self.head.key.map_or(0, <[u8]>::len);
        match key_bytes <= KEY_LIMIT_BYTES && self.is_encoded_as(signature, body) {
            true => Ok(()),
            false => Err(row_error(DOCUMENTS, id, body)),
        }
    }

    /// Returns true if this release encodes the row, with its signature, as this body.
    fn is_encoded_as(&self, signature: &Signature, body: &[u8]) -> bool {
        let kept = signature.bottom_k().into_iter();
        let mut hashes = kept.flat_map(|hashes| hashes.windows(2));
        let shingles = signature.placed_shingles().into_iter();
        let mut placed = shingles.flat_map(|placed| placed.windows(2));
        hashes.all(|pair| pair.first() < pair.last())
            && placed.all(|pair| pair.first().map(|it| it.0) < pair.last().map(|it| it.0))
            && encode_body(&self.head, signature, &self.shape).is_ok_and(|written| written == body)
    }

    /// Decodes a row that never left memory, without verifying its checksum.
    pub(crate) fn read(id: u64, bytes: &'a [u8], shape: &Shape) -> Result<Self> {
        let parts = bytes.split_last_chunk::<{ checksum::CHECKSUM_BYTES }>();
        let row = parts.and_then(|(body, _)| Self::fields(body, shape));
        row.or_bug_with(|| format!("the row of document {id} in memory"))
    }

    fn fields(bytes: &'a [u8], shape: &Shape) -> Option<Self> {
        let (row, rest) = Self::split(bytes, shape)?;
        rest.is_empty().then_some(row)
    }

    /// Splits a row off the front of `bytes`. Also returns the bytes that follow.
    fn split(bytes: &'a [u8], shape: &Shape) -> Option<(Self, &'a [u8])> {
        let (head, signature) = RowHead::split(bytes)?;
        let (values, rest) = match shape.values {
            Some(layout) => split_values(layout, signature)?,
            None => (&[][..], signature),
        };
        let (fingerprint, rest) = rest.split_at_checked(shape.fingerprint_bytes().into())?;
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
        let (signature, rest) = signature.split_at_checked(signature.len() - rest.len())?;
        let row = Self {
            head,
            shape: *shape,
            signature,
            values,
            fingerprint,
            kept,
            positions,
        };
        Some((row, rest))
    }

    /// Encodes the row with another head.
    ///
    /// # Errors
    /// [`Error::Bug`] for a key that is longer than keys may be.
    pub(crate) fn with_head(&self, id: u64, head: &RowHead<'_>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        head.append_to(&mut bytes)?;
        bytes.extend_from_slice(self.signature);
        checksum::seal(DOCUMENTS, &id.to_be_bytes(), &mut bytes);
        Ok(bytes)
    }

    /// Returns true if the signature was made from a document without features.
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty
    }

    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        self.fingerprint
    }

    /// Returns the number of kept hashes; 0 without containment.
    pub(crate) fn kept_count(&self) -> u32 {
        self.kept.count()
    }

    /// Returns the kept hashes if they are the exact set.
    pub(crate) fn kept_set(&self) -> ExactSet {
        ExactSet::from_sorted(self.kept.iter().collect(), Vec::new())
    }

    /// Returns the kept shingles in the order of the document; none without positions.
    pub(crate) fn kept_shingles(&self) -> Vec<KeptShingle> {
        let hashes: Vec<u64> = self.kept.iter().collect();
        self.positions.shingles(&hashes)
    }

    /// Returns true if both signatures have the same bytes.
    pub(crate) fn has_signature_of(&self, other: &DocumentRow<'_>) -> bool {
        (self.is_empty(), self.signature) == (other.is_empty(), other.signature)
    }

    /// Returns a hash of all that the signature consists of. Two of a hundred million different ones agree
    /// with a probability of 10⁻²³.
    pub(crate) fn digest(&self) -> u128 {
        xxh3_128_with_seed(self.signature, u64::from(self.is_empty()))
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
        Signature::decode(values, self.fingerprint, self.is_empty(), Some(recipe)).with_kept(kept)
    }
}

/// Splits the values off the front of a signature.
fn split_values(layout: ValueLayout, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes;
    let count = match layout {
        ValueLayout::Packed { count, .. } => count,
        ValueLayout::Smallest { .. } => u16::from_le_bytes(take(&mut rest)?),
    };
    layout.allows(count).then_some(())?;
    rest.split_at_checked(layout.size_bytes_for(count))
}

/// Returns the error of a row that is missing although an invariant requires it.
pub(crate) fn no_row(table: &str, id: u64, invariant: u8) -> Error {
    let detail = format!("found no row, expected one (invariant {invariant})");
    Error::corrupt(format!("table {table}, document {id}"), detail)
}

fn row_error(table: &str, id: u64, bytes: &[u8]) -> Error {
    checksum::unknown_layout(format!("table {table}, document {id}"), bytes)
}

#[cfg(test)]
mod tests {
    use resemblance_sketch::lanes::AgreementCurve;

    use super::*;

    fn places(count: u16, bits: u8) -> Option<ValueLayout> {
        Some(ValueLayout::Packed {
            count,
            bits,
            is_mixed: true,
            curve: AgreementCurve::Identity,
        })
    }

    #[test]
    fn features_beyond_the_limit_are_refused_by_name() {
        let shape = Shape {
            set_bits: 44,
            ..Shape::default()
        };
        let of = |count: u64| {
            let hashes = (0..count).map(|number| number << 20).collect();
            let set = ExactSet::from_sorted(hashes, Vec::new());
            Signature::from_minhash(vec![7]).with_set(Some(set))
        };
        check_packed(&of(100_000), &shape).unwrap();
        let error = check_packed(&of(400_000), &shape).unwrap_err();
        assert!(error.to_string().contains("exact set"), "{error}");
        assert!(error.to_string().contains("at most 64 MiB"), "{error}");
    }

    #[test]
    fn document_row_head_round_trips() {
        for key in [
            None,
            Some(&b""[..]),
            Some(b"key"),
            Some(&[0xff; crate::types::KEY_LIMIT_BYTES]),
        ] {
            for (stamp, has_payload, is_empty) in [
                (0, false, false),
                (0, true, false),
                (1, false, true),
                (u64::MAX - 5, true, true),
            ] {
                let head = RowHead {
                    key,
                    stamp,
                    has_payload,
                    is_empty,
                };
                let mut bytes = Vec::new();
                head.append_to(&mut bytes).unwrap();
                bytes.extend_from_slice(b"signature");
                let (read, rest) = RowHead::split(&bytes).unwrap();
                assert_eq!((read, rest), (head, &b"signature"[..]));
                assert_eq!(read.key_code(), key.map(hash_key));
            }
        }
    }

    /// A field that is present must have a value, so that a document has one row only.
    #[test]
    fn document_row_omits_a_zero_stamp() {
        let stamped = [KIND | HAS_STAMP, 1, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(RowHead::split(&stamped).unwrap().0.stamp, 1);
        let mut zero = stamped;
        zero[1] = 0;
        assert_eq!(RowHead::split(&zero), None);
    }

    #[test]
    fn document_row_payload_round_trips() {
        let row = encode_payload(7, b"payload").unwrap();
        assert_eq!(decode_payload(7, &row).unwrap(), b"payload");
        assert!(
            decode_payload(8, &row).is_err(),
            "the checksum covers the id"
        );
        checksum::assert_damage_is_named(&row, |row| decode_payload(7, row).map(drop));
        // One without bytes has no row.
        assert_eq!(encode_payload(7, b""), None);
        let mut empty = Vec::new();
        checksum::seal(PAYLOADS, &7_u64.to_be_bytes(), &mut empty);
        assert!(decode_payload(7, &empty).is_err());
    }

    #[test]
    fn document_row_round_trips() {
        let values: Vec<u32> = (0..16).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
        let documents = [
            Document::without_key(),
            Document::new("key").stamp(3),
            Document::new("").payload(b"payload"),
        ];
        let signatures = [
            (Some(values.clone()), Some(9)),
            (Some(values), None),
            (None, Some(u64::MAX)),
        ];
        for (document, (minhash, simhash)) in documents.iter().zip(signatures) {
            let signature = Signature::from_parts(minhash.clone(), simhash);
            let shape = Shape {
                values: minhash.as_ref().and_then(|_| places(16, 32)),
                fingerprint_bits: if simhash.is_some() { 64 } else { 0 },
                ..Shape::default()
            };
            let bytes = encode_document(3, document, &signature, &shape).unwrap();
            assert!(DocumentRow::decode(4, &bytes, &shape).is_err());
            let row = DocumentRow::decode(3, &bytes, &shape).unwrap();
            assert_eq!(row.to_signature(RecipeMark::default()), signature);
            assert_eq!(row.head, RowHead::new(document, false));
            assert_eq!(row.fingerprint(), simhash.map(Fingerprint::from));
            let values = shape.values.map_or(0, |layout| layout.count().into());
            assert_eq!(row.agreement(&signature), values);
            let touched = RowHead {
                stamp: 8,
                ..row.head
            };
            let touched = row.with_head(3, &touched).unwrap();
            let again = DocumentRow::decode(3, &touched, &shape).unwrap();
            assert!(again.has_signature_of(&row) && again.head.stamp == 8);
            assert_eq!(again.with_head(3, &row.head).unwrap(), bytes);
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
                assert!(DocumentRow::decode(3, &bytes, &wrong).is_err());
            }
        }
    }

    #[test]
    fn document_row_cuts_whole_values() {
        let signature = Signature::from_minhash((0..16).collect());
        let shape = Shape {
            values: places(16, 4),
            ..Shape::default()
        };
        let bytes = encode_signature(&signature, &shape).unwrap();
        let row = DocumentRow::fields(&bytes, &shape).unwrap();
        assert_eq!(row.agreement(&signature), 16);
        let read = row.to_signature(RecipeMark::default());
        assert_eq!(read.value_bits(), Some(4));
        // Whole values of no schema are not compared with cut ones outside of a store.
        assert!(read.jaccard(&signature).is_err());
        assert_eq!(read.rows(shape.values), signature.rows(shape.values));
        assert_eq!(encode_signature(&read, &shape).unwrap(), bytes);
    }

    #[test]
    fn document_row_of_bottom_k_has_the_length_of_its_hashes() {
        let shape = Shape {
            values: Some(ValueLayout::Smallest { max_count: 64 }),
            fingerprint_bits: 128,
            ..Shape::default()
        };
        let fingerprint = Signature::from_fingerprint(1_u128 << 90);
        for hashes in [vec![], vec![5, 7], (0..64).collect()] {
            let signature = Signature::from_bottom_k(64, hashes).with_simhash_of(&fingerprint);
            let bytes = encode_signature(&signature, &shape).unwrap();
            let row = DocumentRow::fields(&bytes, &shape).unwrap();
            assert_eq!(row.to_signature(RecipeMark::default()), signature);
            assert_eq!(row.is_empty(), signature.is_empty());
        }
    }

    #[test]
    fn document_row_reports_damage() {
        let shape = Shape {
            fingerprint_bits: 64,
            ..Shape::default()
        };
        let document = Document::new("k").stamp(1).payload(b"p");
        let signature = Signature::from_simhash(5);
        let row = encode_document(1, &document, &signature, &shape).unwrap();
        checksum::assert_damage_is_named(&row, |row| DocumentRow::decode(1, row, &shape).map(drop));
    }
}
