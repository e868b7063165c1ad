//! The documents that have been kept so far, in a temporary store.

use std::num::NonZeroU64;

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
    /// How many documents one is compared with at most.
    budget: Option<NonZeroU64>,
}

/// What became of a document.
pub(crate) struct Decision {
    /// What it resembles; `None` if it was kept.
    pub(crate) found: Option<Match>,
    /// Whether it was compared with a part of its candidates only.
    pub(crate) is_beyond_budget: bool,
}

impl<'s> Kept<'s> {
    /// The budget is the one that the store was made with.
    pub(crate) fn begin(
        scratch: &'s ScratchStore,
        features: Option<Features>,
        budget: Option<NonZeroU64>,
    ) -> Result<Self> {
        let begun = scratch.store().begin_write();
        Ok(Self {
            scratch,
            transaction: begun.map_err(|e| scratch.failure(e))?,
            features,
            budget,
        })
    }

    /// Inserts documents unless they are near one before: the best match of each. `None` if one of
    /// them cannot be inserted: then none was.
    pub(crate) fn insert_together(
        &mut self,
        documents: &[(Document<'_>, &Sketched)],
    ) -> Result<Option<Vec<Decision>>> {
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
            Ok(novelties) => Ok(Some(novelties.into_iter().map(decision).collect())),
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
    ) -> Result<Decision> {
        let inserted = self.insert_one(document, sketched, bounds);
        inserted.map_err(|e| self.scratch.document_failure(place(), e))
    }

    fn insert_one(
        &mut self,
        document: Document<'_>,
        sketched: &Sketched,
        bounds: Bounds,
    ) -> Result<Decision, Error> {
        let query = self.transaction.query(&sketched.signature);
        let mut query = query.bounds(bounds).limit(1);
        if let Some(features) = &self.features {
            query = query.verify(|id| features.similarity_to(&sketched.features, id));
        }
        if let Some(budget) = self.budget {
            query = query.probe_budget(budget.get());
        }
        let matches = query.run()?;
        let decision = Decision {
            is_beyond_budget: matches.beyond_budget().is_some(),
            found: matches.into_iter().next(),
        };
        if decision.found.is_some() {
            return Ok(decision);
        }
        let id = self
            .transaction
            .insert_document(document, &sketched.signature)?;
        if let Some(features) = &mut self.features {
            features.put(id, &sketched.features)?;
            features.flush()?;
        }
        Ok(decision)
    }

    /// The key of a kept document as it is printed.
    pub(crate) fn label(&self, id: DocumentId) -> Result<String> {
        let record = self.transaction.get_id(id)?;
        Ok(record.map_or_else(String::new, |record| {
            escape::key(record.payload()).into_owned()
        }))
    }
}

fn decision(novelty: Novelty) -> Decision {
    Decision {
        is_beyond_budget: novelty.beyond_budget().is_some(),
        found: match novelty {
            Novelty::NearDuplicate(found) | Novelty::SameKey(found) => Some(found),
            _ => None,
        },
    }
}
