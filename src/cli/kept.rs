//! The documents that have been kept so far, in a temporary store.

use resemblance::{Bounds, Document, DocumentId, Error, Match, Novelty, WriteTransaction};

use super::escape;
use super::failure::Result;
use super::features::Features;
use super::scratch::ScratchStore;
use super::verify::{self, Sketched};

/// Keys need not be unique: a document has its number in the corpus as stamp, its key as payload.
pub(crate) struct Kept<'s> {
    scratch: &'s ScratchStore,
    transaction: WriteTransaction,
    /// Those of the kept documents, if similarities are to be exact.
    features: Option<Features>,
}

impl<'s> Kept<'s> {
    pub(crate) fn begin(scratch: &'s ScratchStore, features: Option<Features>) -> Result<Self> {
        let begun = scratch.store().begin_write();
        Ok(Self {
            scratch,
            transaction: begun.map_err(|e| scratch.failure(e))?,
            features,
        })
    }

    /// Inserts documents unless they are near one before: the best match of each. `None` if one of
    /// them cannot be inserted: then none was.
    pub(crate) fn insert_together(
        &mut self,
        documents: &[(Document<'_>, &Sketched)],
    ) -> Result<Option<Vec<Option<Match>>>> {
        let inserted = match &mut self.features {
            Some(features) => {
                verify::insert_many_if_new(&mut self.transaction, features, documents)
            }
            None => {
                let documents = documents.iter().map(|(d, s)| (*d, &s.signature));
                let documents: Vec<_> = documents.collect();
                self.transaction.insert_many_if_new(&documents)
            }
        };
        match inserted {
            Ok(novelties) => Ok(Some(novelties.into_iter().map(near).collect())),
            Err(Error::InvalidParameter { .. } | Error::SignatureMismatch { .. }) => Ok(None),
            Err(error) => Err(self.scratch.failure(error)),
        }
    }

    /// Inserts a document that stands at `place`, or returns the best match among those inserted
    /// before.
    pub(crate) fn insert_unless_near(
        &mut self,
        document: Document<'_>,
        sketched: &Sketched,
        bounds: Bounds,
        place: impl FnOnce() -> String,
    ) -> Result<Option<Match>> {
        let inserted = self.insert_one(document, sketched, bounds);
        inserted.map_err(|e| self.scratch.document_failure(place(), e))
    }

    fn insert_one(
        &mut self,
        document: Document<'_>,
        sketched: &Sketched,
        bounds: Bounds,
    ) -> Result<Option<Match>, Error> {
        let query = self.transaction.query(&sketched.signature);
        let mut query = query.bounds(bounds).limit(1);
        if let Some(features) = &self.features {
            query = query.verify(|id| features.similarity_to(&sketched.features, id));
        }
        if let Some(found) = query.run()?.into_iter().next() {
            return Ok(Some(found));
        }
        let id = self
            .transaction
            .insert_document(document, &sketched.signature)?;
        if let Some(features) = &mut self.features {
            features.put(id, &sketched.features)?;
            features.flush()?;
        }
        Ok(None)
    }

    /// The key of a kept document as it is printed.
    pub(crate) fn label(&self, id: DocumentId) -> Result<String> {
        let record = self.transaction.get_id(id)?;
        Ok(record.map_or_else(String::new, |record| {
            escape::key(record.payload()).into_owned()
        }))
    }
}

/// The match of a document that is not new.
fn near(novelty: Novelty) -> Option<Match> {
    match novelty {
        Novelty::NearDuplicate(found) | Novelty::SameKey(found) => Some(found),
        _ => None,
    }
}
