//! The policy *first*: a document is kept unless it is near one that was kept before.

use std::num::NonZeroU64;

use resemblance::{
    Bounds, Document, DocumentId, Error, Match, Novelty, Result, Store, WriteTransaction,
};

use crate::bug::bug;
use crate::exact::{FeatureFiles, SketchedText, insert_many_if_new};

/// The documents that have been kept so far, in a transaction of a temporary store.
pub(crate) struct KeptDocuments {
    // It is never committed: no one else reads the store, and each commit would cost a sync.
    transaction: WriteTransaction,
    /// Those of the kept documents, if similarities are to be exact.
    features: Option<FeatureFiles>,
    /// The most documents that one is compared with.
    budget: Option<NonZeroU64>,
}

/// What became of a document.
pub(crate) struct Decision {
    /// The kept document that it is most like; `None` if it was kept itself.
    pub(crate) found: Option<Match>,
    /// True if it was compared with a part of its candidates only.
    pub(crate) is_beyond_budget: bool,
}

impl KeptDocuments {
    /// Begins with nothing kept. `budget` is the one with which the store was made.
    pub(crate) fn begin(
        store: &Store,
        features: Option<FeatureFiles>,
        budget: Option<NonZeroU64>,
    ) -> Result<Self> {
        Ok(Self {
            transaction: store.begin_write()?,
            features,
            budget,
        })
    }

    /// Decides documents in their order. `None` if one of them cannot be inserted: then none was, and
    /// [`decide`](Self::decide) tells which.
    pub(crate) fn decide_together(
        &mut self,
        documents: &[(Document<'_>, &SketchedText)],
    ) -> Result<Option<Vec<Decision>>> {
        let inserted = match &mut self.features {
            Some(features) => insert_many_if_new(&mut self.transaction, features, documents),
            None => {
                let documents: Vec<_> = documents
                    .iter()
                    .map(|(document, sketched)| (*document, &sketched.signature))
                    .collect();
                self.transaction.insert_many_if_new(&documents)
            }
        };
        match inserted {
            Ok(novelties) if novelties.len() == documents.len() => {
                Ok(Some(novelties.into_iter().map(decision).collect()))
            }
            Ok(_) => Err(bug("not every document was decided")),
            Err(Error::InvalidParameter { .. } | Error::SignatureMismatch { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Decides one document, within bounds that may differ from the schema's.
    pub(crate) fn decide(
        &mut self,
        document: Document<'_>,
        sketched: &SketchedText,
        bounds: Bounds,
    ) -> Result<Decision> {
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
        let signature = &sketched.signature;
        let id = self.transaction.insert_document(document, signature)?;
        // The next document may be compared with this one, so its features must be readable by then.
        if let Some(features) = &mut self.features {
            features.put(id, &sketched.features)?;
            features.flush()?;
        }
        Ok(decision)
    }

    /// The payload of a kept document.
    pub(crate) fn payload(&self, id: DocumentId) -> Result<Vec<u8>> {
        match self.transaction.get_id(id)? {
            Some(record) => Ok(record.payload().to_vec()),
            None => Err(bug("a document was found that was not kept")),
        }
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
