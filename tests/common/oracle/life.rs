//! The oracle for documents that are inserted again or touched.

use std::sync::Arc;

use resemblance::{Revision, Signature, Upserted};

use super::{Entry, Found, Model, kept};
use crate::common::question::Question;
use crate::common::verify::same_match;

/// How the content of a document relates to its last version.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Again {
    First,
    Unchanged(Found),
    Near(Found),
    Different(Found),
}

/// An `upsert` and what it must answer.
pub(crate) struct ExpectedUpsert {
    /// The documents before it.
    before: Model,
    again: Again,
    id: u64,
    replaced: Option<u64>,
}

impl ExpectedUpsert {
    pub(crate) fn same(&self, upserted: &Upserted) {
        assert_eq!(upserted.id.get(), self.id, "{:?}", self.again);
        let replaced = upserted.replaced.map(|id| id.get());
        assert_eq!(replaced, self.replaced, "{:?}", self.again);
        match (&upserted.revision, self.again) {
            (Revision::First, Again::First) => {}
            (Revision::Unchanged(found), Again::Unchanged(expected))
            | (Revision::Near(found), Again::Near(expected))
            | (Revision::Different(found), Again::Different(expected)) => {
                same_match(&self.before, found, expected);
            }
            (found, expected) => panic!("{found:?}, expected {expected:?}"),
        }
    }
}

impl Model {
    /// Stores a document in the place of the one with its key.
    pub(crate) fn upsert(&mut self, entry: Entry) -> ExpectedUpsert {
        let before = self.clone();
        let last = entry.key.as_deref().and_then(|key| self.id_of(key));
        let again = last.map_or(Again::First, |last| self.again(last, &entry.signature));
        let (id, replaced) = match (again, last) {
            (Again::Unchanged(_), Some(last)) => {
                let signature = self.documents[&last].signature.clone();
                let entry = Entry { signature, ..entry };
                self.documents.insert(last, Arc::new(entry));
                (last, None)
            }
            _ => {
                last.map(|last| self.remove(last));
                (self.insert(entry), last)
            }
        };
        ExpectedUpsert {
            before,
            again,
            id,
            replaced,
        }
    }

    fn again(&self, last: u64, signature: &Signature) -> Again {
        let stored = &self.documents[&last].signature;
        let mut found = self.compare(last, signature, stored);
        if stored.is_empty() != signature.is_empty() {
            found.estimate = 0.0;
        }
        if self.is_stored_alike(signature, stored) {
            Again::Unchanged(found)
        } else if self.is_near(&Question::default(), signature, stored, &found) {
            Again::Near(found)
        } else {
            Again::Different(found)
        }
    }

    pub(super) fn is_near(
        &self,
        question: &Question,
        a: &Signature,
        b: &Signature,
        pair: &Found,
    ) -> bool {
        let families = self.families(question).unwrap();
        let (similarity, distance) = self.bounds(question, families).unwrap();
        let similar = families.minhash && pair.unrounded >= similarity;
        let close = families.simhash && pair.distance <= distance;
        let near = if families.both {
            similar && close
        } else {
            similar || close
        };
        near && a.is_empty() == b.is_empty() && self.is_filed(a)
    }

    /// Whether a store keeps the same of two signatures.
    fn is_stored_alike(&self, a: &Signature, b: &Signature) -> bool {
        let parts = |s: &Signature| (s.is_empty(), s.simhash(), s.bottom_k().map(<[u64]>::to_vec));
        if parts(a) != parts(b) || a.exact_set() != b.exact_set() {
            return false;
        }
        let (Some(schema), Some(_)) = (self.schema.minhash(), a.minhash()) else {
            return true;
        };
        let values = |s: &Signature| -> Vec<u32> {
            let values = s.minhash().unwrap().iter();
            values.map(|value| kept(&schema, s, *value)).collect()
        };
        values(a) == values(b)
    }

    /// Gives a document another stamp; whether there is one.
    pub(crate) fn touch(&mut self, id: u64, stamp: u64) -> bool {
        let Some(document) = self.documents.get(&id) else {
            return false;
        };
        let touched = Entry {
            stamp,
            ..Entry::clone(document)
        };
        self.documents.insert(id, Arc::new(touched));
        true
    }
}
