//! The documents that were kept so far.

use resemblance::dedup::Deduplicator;
use resemblance::verification::SketchedText;
use resemblance::{Bounds, Document, Error, Match, Novelty};

use crate::bug::bug;
use crate::failure::{Failure, Result};
use crate::output::{Survivor, SurvivorPlace};
use crate::session::{JobContent, JobValue, ReadDocument};

/// What the temporary store keeps of a document beside its signature: a hash of its content, and its key, because keys
/// need not be unique.
pub(super) struct StoredPayload<'a> {
    pub(super) digest: u64,
    pub(super) key: &'a [u8],
}

impl<'a> StoredPayload<'a> {
    pub(super) fn encode(&self) -> Vec<u8> {
        [&self.digest.to_le_bytes(), self.key].concat()
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self> {
        let parts = bytes.split_first_chunk();
        let (digest, key) = parts.ok_or_else(|| bug("a document without its digest"))?;
        Ok(Self {
            digest: u64::from_le_bytes(*digest),
            key,
        })
    }
}

/// A document, and the document of the other store that it is most like.
pub(super) struct SketchedDocument {
    pub(super) sketched: SketchedText,
    /// A hash of its content.
    pub(super) digest: u64,
    pub(super) known: Option<Match>,
    /// The higher it is, the rather it stays; `None` where it has none.
    pub(super) score: Option<f64>,
    /// True if nothing is left of its text without the parts that stood before: then it is not decided.
    pub(super) is_emptied: bool,
    /// True if it was compared with a part of its candidates in the other store only.
    pub(super) is_beyond_budget: bool,
}

impl JobValue for SketchedDocument {
    fn save(&self) -> JobContent {
        JobContent {
            sketched: self.sketched.clone(),
            digest: self.digest,
            score: self.score,
        }
    }

    fn restore(content: JobContent) -> Self {
        Self {
            sketched: content.sketched,
            digest: content.digest,
            known: None,
            score: content.score,
            is_emptied: false,
            is_beyond_budget: false,
        }
    }
}

impl SketchedDocument {
    /// What is stored of it under this key.
    pub(super) fn payload(&self, key: &[u8]) -> Vec<u8> {
        let digest = self.digest;
        StoredPayload { digest, key }.encode()
    }
}

/// The kept documents, and how failures call their store.
pub(super) struct KeptDocuments {
    documents: Deduplicator,
    name: String,
}

impl KeptDocuments {
    pub(super) fn new(documents: Deduplicator, name: String) -> Self {
        Self { documents, name }
    }

    /// Decides those documents that are good and that the other store does not have. `None` if one of
    /// them is wrong: then none was decided, and [`decide`](Self::decide) tells which.
    pub(super) fn decide_together(
        &mut self,
        gathered: &[ReadDocument<SketchedDocument>],
    ) -> Result<Option<Vec<Novelty>>> {
        let documents = gathered.iter().filter_map(|read| {
            let document = read.document.as_ref().ok()?;
            let is_open = document.value.known.is_none() && !document.value.is_emptied;
            is_open.then(|| {
                let payload = document.value.payload(&document.key);
                (read.number, payload, &document.value.sketched)
            })
        });
        let documents: Vec<_> = documents.collect();
        let open = documents.iter().map(|(number, payload, sketched)| {
            let stored = Document::without_key().payload(payload).stamp(*number);
            (stored, *sketched)
        });
        let open: Vec<_> = open.collect();
        match self.documents.decide_many(&open) {
            Ok(decisions) => Ok(Some(decisions)),
            Err(Error::InvalidParameter { .. } | Error::SignatureMismatch { .. }) => Ok(None),
            Err(error) => Err(Failure::store(&self.name, error)),
        }
    }

    /// Decides a document, which stands at `place`.
    pub(super) fn decide(
        &mut self,
        document: Document<'_>,
        sketched: &SketchedText,
        bounds: Bounds,
        place: impl FnOnce() -> String,
    ) -> Result<Novelty> {
        let decided = self.documents.decide(document, sketched, bounds);
        decided.map_err(|error| Failure::document(&self.name, place(), error))
    }

    /// A kept document that was found for one whose content has this hash.
    pub(super) fn survivor(&self, found: &Match, digest: u64) -> Result<Survivor> {
        let record = self.documents.get_id(found.id())?;
        let record = record.ok_or_else(|| bug("a document was found that was not kept"))?;
        let stored = StoredPayload::decode(record.payload())?;
        let place = SurvivorPlace::Corpus(record.stamp());
        let key = Some(stored.key.to_vec());
        let is_equal = stored.digest == digest;
        Ok(Survivor::from_match(found, place, key, is_equal))
    }
}
