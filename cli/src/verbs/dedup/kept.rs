//! The documents that were kept so far.

use resemblance::dedup::{DedupDecision, Deduplicator};
use resemblance::verification::SketchedText;
use resemblance::{Bounds, Document, Error, Match};

use crate::bug::bug;
use crate::failure::{Failure, Result};
use crate::output::escape;
use crate::session::ReadDocument;

/// A document, and the document of the other store that it is most like.
pub(super) struct SketchedDocument {
    pub(super) sketched: SketchedText,
    pub(super) known: Option<Match>,
    /// The higher it is, the rather it stays; `None` where it has none.
    pub(super) score: Option<f64>,
    /// True if nothing is left of its text without the parts that stood before: then it is not decided.
    pub(super) is_emptied: bool,
    /// True if it was compared with a part of its candidates in the other store only.
    pub(super) is_beyond_budget: bool,
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
    ) -> Result<Option<Vec<DedupDecision>>> {
        let mut open = Vec::with_capacity(gathered.len());
        for read in gathered {
            if let Ok(document) = &read.document
                && document.value.known.is_none()
                && !document.value.is_emptied
            {
                let stored = Document::without_key().payload(&document.key);
                open.push((stored.stamp(read.number), &document.value.sketched));
            }
        }
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
    ) -> Result<DedupDecision> {
        let decided = self.documents.decide(document, sketched, bounds);
        decided.map_err(|error| Failure::document(&self.name, place(), error))
    }

    /// The key of a kept document as it is printed.
    pub(super) fn label(&self, found: &Match) -> Result<String> {
        let record = self.documents.get_id(found.id())?;
        let record = record.ok_or_else(|| bug("a document was found that was not kept"))?;
        Ok(escape::key(record.payload()).into_owned())
    }
}
