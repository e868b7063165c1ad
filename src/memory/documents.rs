//! Documents in memory, as a join reads them.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use crate::build::{DuplicateKeys, OneOfEachKey};
use crate::error::Result;
use crate::format::{Posting, RowHead, decode_body, decode_set, encode_signature};
use crate::index::sort_by_number;
use crate::invariant::{OrBug, at};
use crate::join::{
    JoinSource, LanePostings, LiveDocuments, SignatureBatch, VisitFingerprints, VisitNotes,
};
use crate::memory::row_arena::RowArena;
use crate::options::StoreOptions;
use crate::query::Gate;
use crate::read::PostingTable;
use crate::state::{SetPlace, SharedContext, Tombstones, whole_shape_of};
use crate::types::{Document, DocumentId, Record};
use resemblance_sketch::exact::ExactSet;
use resemblance_sketch::lanes::hash_key;
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::{EmptyDocuments, Signature};

/// The bytes that a join needs for a document in addition to its signature and its row: postings of
/// the current lane and of the next one, which may be in preparation, and its place in a bucket.
const WORKING_BYTES: usize = 80;

/// Documents in memory, with ids from 0.
pub(super) struct MemoryDocuments {
    context: SharedContext,
    signatures: Arc<SignatureBatch>,
    /// The head of each document's row, and its payload.
    rows: RowArena,
    /// The exact set of each document, if the schema is exact.
    sets: RowArena,
    /// The whole signature of each document, if the schema has containment. A join needs no kept hashes.
    whole: RowArena,
    /// The codes of the keys.
    keys: Vec<Posting>,
    /// Documents whose key another one has.
    left_out: Tombstones,
}

impl MemoryDocuments {
    pub(super) fn new(name: PathBuf, schema: Schema) -> Result<Self> {
        let context = SharedContext::new(name, schema, StoreOptions::new())?;
        Ok(Self {
            signatures: Arc::new(SignatureBatch::with_codes(&context)),
            context,
            rows: RowArena::default(),
            sets: RowArena::default(),
            whole: RowArena::default(),
            keys: Vec::new(),
            left_out: Tombstones::default(),
        })
    }

    /// Checks that a document fits the schema and the limits of a store.
    pub(super) fn validate(&self, document: &Document<'_>, signature: &Signature) -> Result<()> {
        document.validate()?;
        self.context.check_signature(signature)
    }

    /// Takes a valid document.
    pub(super) fn push(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        let id = self.rows.len();
        let signatures =
            Arc::get_mut(&mut self.signatures).or_bug("signatures that nobody reads yet")?;
        signatures.push_signature(&self.context, id, signature)?;
        let mut row = Vec::new();
        RowHead::new(document, signature.is_empty()).append_to(&mut row)?;
        row.extend_from_slice(&document.payload);
        self.rows.push(&row);
        if let Some(set) = self.context.any_set_row(id, signature)? {
            self.sets.push(&set);
        }
        if self.context.schema.containment().is_some() {
            let shape = whole_shape_of(&self.context.schema);
            self.whole.push(&encode_signature(signature, &shape)?);
        }
        if let Some(key) = document.key() {
            let code = hash_key(key);
            self.keys.push(Posting { code, id });
        }
        Ok(DocumentId::new(id))
    }

    /// Returns the number of documents taken, those that are left out included.
    pub(super) fn taken(&self) -> u64 {
        self.rows.len()
    }

    /// Returns the memory that these documents take once they are joined, in bytes.
    pub(super) fn size_bytes(&self) -> u64 {
        let each =
            SignatureBatch::document_bytes(&self.context) + size_of::<Posting>() + WORKING_BYTES;
        let rows = self.rows.size_bytes() + self.sets.size_bytes() + self.whole.size_bytes();
        rows as u64 + self.taken() * each as u64
    }

    /// Leaves out documents whose key another one has, and returns their ids, ascending.
    pub(super) fn leave_out_repeated(&mut self, rule: DuplicateKeys) -> Result<Vec<u64>> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.sort_unstable();
        let mut left_out = Tombstones::default();
        let key_of = |id| Ok(self.document(id)?.key.map(Cow::into_owned));
        let postings = keys.into_iter().map(Ok);
        let mut kept = OneOfEachKey::new(postings, rule, &key_of, &mut left_out);
        kept.try_for_each(|posting| posting.map(drop))?;
        kept.check()?;
        let ids = left_out.ids().collect();
        self.left_out = left_out;
        Ok(ids)
    }

    /// Returns a document, even one that is left out.
    pub(super) fn document(&self, id: u64) -> Result<Document<'_>> {
        let row = RowHead::split(self.rows.row(id)?);
        let (head, payload) = row.or_bug("the row of a document in memory")?;
        Ok(head.to_document(payload))
    }

    pub(super) fn signature(&self, id: u64) -> Result<Signature> {
        if self.whole.len() > 0 {
            let row = self.whole.row(id)?;
            let shape = whole_shape_of(&self.context.schema);
            let decoded = decode_body(row, &shape, self.context.recipe);
            let (_, signature) = decoded.or_bug("the signature of a document in memory")?;
            return Ok(signature);
        }
        let slot = self.signatures.slot(id)?;
        let signature = self.signatures.to_signature(&self.context, slot)?;
        let set = match self.context.exact {
            Some(SetPlace::Table) => Some(self.set(id)?),
            _ => None,
        };
        Ok(signature.with_set(set))
    }

    /// Returns the exact set of a document.
    fn set(&self, id: u64) -> Result<ExactSet> {
        decode_set(id, self.sets.row(id)?, self.context.shape())
    }

    /// All documents, with their signatures.
    pub(super) fn all(&self) -> impl Iterator<Item = Result<(Document<'_>, Signature)>> {
        (0..self.rows.len()).map(|id| Ok((self.document(id)?, self.signature(id)?)))
    }

    /// Returns true if documents without features have postings.
    fn files_empty(&self) -> bool {
        self.context.schema.empty_documents() == EmptyDocuments::Alike
    }
}

impl JoinSource for MemoryDocuments {
    fn context(&self) -> &SharedContext {
        &self.context
    }

    /// Documents in memory are a forked process's own.
    fn check_home(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        self.rows.len() - self.left_out.len()
    }

    fn live(&self) -> Result<LiveDocuments> {
        let end = self.rows.len();
        Ok(LiveDocuments::new(end, Vec::new(), self.left_out.clone()))
    }

    fn hidden(&self, gate: &Gate<'_>) -> Result<Tombstones> {
        let mut hidden = Tombstones::default();
        for id in self.live()?.ids() {
            let row = RowHead::split(self.rows.row(id)?);
            let (head, payload) = row.or_bug("the row of a document in memory")?;
            if !gate.decide(id, &head, || Ok(payload.to_vec()))? {
                hidden.insert(id);
            }
        }
        Ok(hidden)
    }

    fn lane(&self, _: PostingTable, lane: u16) -> Result<LanePostings> {
        let mut postings = Vec::with_capacity(self.rows.len() as usize);
        let files_empty = self.files_empty();
        let bands = self.context.lanes.band_count();
        let column = usize::from(lane).checked_sub(1).or_bug("a lane of codes")?;
        let mut codes = Vec::new();
        for (slot, id) in (0..).zip(0..self.taken()) {
            if self.signatures.is_empty(slot) && !files_empty {
                continue;
            }
            let code = if lane <= bands {
                *at(self.signatures.codes(slot), column)?
            } else {
                codes.clear();
                let fingerprint = self
                    .signatures
                    .fingerprint(slot)
                    .or_bug("the fingerprint of a document")?;
                self.context.lanes.table_codes(&fingerprint, &mut codes);
                *at(&codes, column - usize::from(bands))?
            };
            postings.push(Posting { code, id });
        }
        // They ascend by id.
        sort_by_number(&mut postings, &mut Vec::new(), |posting| posting.code);
        Ok(Box::new(postings.into_iter().map(Ok)))
    }

    fn fingerprints(&self, visit: &mut VisitFingerprints<'_>) -> Result<()> {
        let files_empty = self.files_empty();
        for (slot, id) in (0..).zip(0..self.taken()) {
            if files_empty || !self.signatures.is_empty(slot) {
                let fingerprint = self.signatures.fingerprint(slot);
                visit(id, &fingerprint.or_bug("the fingerprint of a document")?)?;
            }
        }
        Ok(())
    }

    fn lane_postings(&self, _: u16) -> u64 {
        self.rows.len()
    }

    fn held_signatures(&self) -> Option<Arc<SignatureBatch>> {
        Some(Arc::clone(&self.signatures))
    }

    fn signatures(&self, _: &[u64], _: bool, _: usize) -> Result<Arc<SignatureBatch>> {
        Ok(Arc::clone(&self.signatures))
    }

    fn set_similarity(&self, a: u64, b: u64, floor: f64) -> Result<Option<f64>> {
        if self.context.exact.is_none() {
            return Ok(None);
        }
        let (a, b) = (self.set(a)?, self.set(b)?);
        self.context.compare_sets(&a, &b, floor).map(Some)
    }

    fn notes(&self, _: u64, visit: &mut VisitNotes<'_>) -> Result<()> {
        visit(None)
    }

    fn key(&self, id: u64) -> Result<Option<Vec<u8>>> {
        if id >= self.taken() || self.left_out.contains(id) {
            return Ok(None);
        }
        Ok(self.document(id)?.key.map(Cow::into_owned))
    }

    fn record(&self, id: u64) -> Result<Option<Record>> {
        if id >= self.taken() || self.left_out.contains(id) {
            return Ok(None);
        }
        let document = self.document(id)?;
        Ok(Some(Record {
            id: DocumentId::new(id),
            key: document.key.map(Cow::into_owned),
            signature: self.signature(id)?,
            stamp: document.stamp,
            payload: document.payload.into_owned(),
        }))
    }
}
