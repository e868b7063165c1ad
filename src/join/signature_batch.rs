//! The signatures that are compared next, side by side in memory.

use crate::error::Result;
use crate::format::DocumentRow;
use crate::invariant::{OrBug, at, invariant};
use crate::read::SnapshotView;
use crate::state::SharedContext;
use crate::threads::in_shares;
use crate::types::Document;
use resemblance_sketch::fingerprint::Fingerprint;
use resemblance_sketch::sketch::{Signature, ValueLayout};

/// Fewer documents are not worth a thread.
const MIN_PER_THREAD: usize = 512;

/// Signatures by slot, in the order of their ids.
#[derive(Default)]
pub(crate) struct SignatureBatch {
    ids: Vec<u64>,
    /// The MinHash values as the schema lays them out, in slots of equal length.
    values: Vec<u8>,
    /// The number of bytes of values that each has, which may be fewer.
    value_lengths: Vec<u32>,
    layout: Option<ValueLayout>,
    /// The codes of the bands, where a join reads them.
    codes: Vec<u64>,
    code_count: usize,
    fingerprints: Vec<Fingerprint>,
    empty: Vec<bool>,
    /// The digests of the signatures.
    digests: Vec<u128>,
}

impl SignatureBatch {
    /// Returns the bytes of memory that a document takes.
    pub(crate) fn document_bytes(context: &SharedContext) -> usize {
        let shape = context.shape();
        let values = shape.values.map_or(0, ValueLayout::size_bytes);
        let fingerprint = match shape.fingerprint_bits {
            0 => 0,
            _ => size_of::<Fingerprint>(),
        };
        let bands = usize::from(context.lanes.band_count());
        let fixed = size_of::<u64>() + size_of::<bool>() + size_of::<u128>();
        fixed + values + 8 * bands + fingerprint
    }

    /// Makes room for signatures with the codes of their bands.
    pub(crate) fn with_codes(context: &SharedContext) -> Self {
        Self {
            layout: context.shape().values,
            code_count: context.lanes.band_count().into(),
            ..Self::default()
        }
    }

    /// Appends a signature, and the codes of its bands. Ids ascend.
    pub(crate) fn push_signature(
        &mut self,
        context: &SharedContext,
        id: u64,
        signature: &Signature,
    ) -> Result<()> {
        let row = context.document_row(id, &Document::without_key(), signature)?;
        self.push(id, &DocumentRow::read(id, &row, context.shape())?);
        if context.is_filed(signature) {
            context.band_codes(signature, &mut self.codes)?;
        }
        self.codes.resize(self.ids.len() * self.code_count, 0);
        Ok(())
    }

    /// Reads the signatures of documents whose ids ascend. The codes of bands are worked out if
    /// `with_codes`.
    pub(super) fn load(
        snapshot: &SnapshotView,
        ids: &[u64],
        with_codes: bool,
        threads: usize,
    ) -> Result<Self> {
        let shares = threads.min(ids.len() / MIN_PER_THREAD).max(1);
        let parts = ids.chunks(ids.len().div_ceil(shares).max(1)).enumerate();
        let load = |(number, part): (usize, &[u64])| {
            // All are read together in the first part.
            let room = if number == 0 { ids.len() } else { part.len() };
            let context = snapshot.context();
            context.run_checked(|| Self::read(snapshot, part, with_codes, room))
        };
        let mut parts = in_shares("read", parts, load)?.into_iter();
        let mut signatures = match parts.next() {
            Some(first) => first,
            None => Self::read(snapshot, ids, with_codes, 0)?,
        };
        parts.for_each(|other| signatures.append(other));
        let (found, expected) = (signatures.ids.len(), ids.len());
        // The ids are those of live documents. A live document without a row is damage, which
        // reading has already reported.
        invariant!(found == expected, "read {found} of {expected} signatures");
        Ok(signatures)
    }

    /// Reads signatures, with room for `room` of them.
    fn read(snapshot: &SnapshotView, ids: &[u64], with_codes: bool, room: usize) -> Result<Self> {
        let context = snapshot.context();
        let bands = usize::from(context.lanes.band_count());
        let mut signatures = Self {
            layout: context.shape().values,
            code_count: if with_codes { bands } else { 0 },
            ..Self::default()
        };
        signatures.ids.reserve_exact(room);
        signatures
            .values
            .reserve_exact(room * signatures.value_bytes());
        signatures.codes.reserve_exact(room * signatures.code_count);
        signatures.digests.reserve_exact(room);
        snapshot.view().live_documents(ids, &mut |id, row| {
            if with_codes {
                context.band_codes(&row.to_signature(context.recipe), &mut signatures.codes)?;
            }
            signatures.push(id, &row);
            Ok(())
        })?;
        Ok(signatures)
    }

    fn value_bytes(&self) -> usize {
        self.layout.map_or(0, ValueLayout::size_bytes)
    }

    fn push(&mut self, id: u64, row: &DocumentRow<'_>) {
        self.fingerprints.extend(row.fingerprint());
        self.digests.push(row.digest());
        self.ids.push(id);
        self.values.extend_from_slice(row.values());
        // At most 8 bytes for each of 2^16 hashes.
        self.value_lengths.push(row.values().len() as u32);
        // If there are fewer hashes than the slot can hold, fillers follow.
        let end = self.ids.len() * self.value_bytes();
        self.values.resize(end, u8::MAX);
        self.empty.push(row.is_empty());
    }

    fn append(&mut self, other: Self) {
        self.ids.extend(other.ids);
        self.values.extend(other.values);
        self.value_lengths.extend(other.value_lengths);
        self.codes.extend(other.codes);
        self.fingerprints.extend(other.fingerprints);
        self.empty.extend(other.empty);
        self.digests.extend(other.digests);
    }

    /// Returns the slot of a document, which must have been read.
    pub(crate) fn slot(&self, id: u64) -> Result<usize> {
        let slot = self.find_slot(id);
        slot.or_bug_with(|| format!("the signature of document {id}, which was read"))
    }

    fn find_slot(&self, id: u64) -> Option<usize> {
        let (first, last) = (*self.ids.first()?, *self.ids.last()?);
        let offset = usize::try_from(id.checked_sub(first)?).ok()?;
        // Few ids are missing between the first and the last, mostly none: a slot is at most that
        // number before its place among all.
        let missing = usize::try_from(last - first).ok()? + 1 - self.ids.len();
        let start = offset.saturating_sub(missing);
        let near = self.ids.get(start..self.ids.len().min(offset + 1))?;
        Some(start + near.binary_search(&id).ok()?)
    }

    pub(crate) fn documents(&self) -> impl Iterator<Item = (u64, u128)> {
        self.ids.iter().copied().zip(self.digests.iter().copied())
    }

    pub(super) fn digest(&self, slot: usize) -> Result<u128> {
        at(&self.digests, slot).copied()
    }

    fn values(&self, slot: usize) -> &[u8] {
        debug_assert!(slot < self.ids.len());
        let start = slot * self.value_bytes();
        let values = self.values.get(start..start + self.value_bytes());
        // Read for each comparison, so checked in tests alone.
        values.unwrap_or_default()
    }

    /// Returns the signature at a slot.
    pub(crate) fn to_signature(&self, context: &SharedContext, slot: usize) -> Result<Signature> {
        let length = *at(&self.value_lengths, slot)? as usize;
        let padded = self.values(slot);
        let values = padded.get(..length).or_bug("the values of a signature")?;
        let shape = context.shape();
        let values = shape
            .values
            .map(|layout| (layout, values, shape.are_samples));
        let fingerprint = self.fingerprint(slot);
        let (is_empty, recipe) = (self.is_empty(slot), Some(context.recipe));
        Ok(Signature::decode(values, fingerprint, is_empty, recipe))
    }

    /// Returns the number of MinHash values in which two documents agree, or of hashes that they share.
    pub(crate) fn agreement(&self, a: usize, b: usize) -> usize {
        let layout = self.layout;
        layout.map_or(0, |layout| layout.agreement(self.values(a), self.values(b)))
    }

    pub(crate) fn codes(&self, slot: usize) -> &[u64] {
        let start = slot * self.code_count;
        self.codes
            .get(start..start + self.code_count)
            // Read for each comparison; without codes none are compared.
            .unwrap_or_default()
    }

    pub(crate) fn fingerprint(&self, slot: usize) -> Option<Fingerprint> {
        self.fingerprints.get(slot).copied()
    }

    pub(crate) fn is_empty(&self, slot: usize) -> bool {
        self.empty.get(slot).copied().unwrap_or(false)
    }
}
