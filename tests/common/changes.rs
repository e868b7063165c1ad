//! What a store must answer to a change, which is made in the model as well.

use resemblance::{DocumentId, Error, Novelty, Result, Upserted};

use super::oracle::{Entry, Found, Model};
use super::question::Question;
use super::verify::same_match;

pub(crate) fn expect_insert(model: &mut Model, entry: Entry, result: Result<DocumentId>) {
    let present = entry.key.as_deref().and_then(|key| model.id_of(key));
    match (result, present) {
        (Ok(id), None) => assert_eq!(id.get(), model.insert(entry)),
        (Err(Error::KeyExists { key, id }), Some(present)) => {
            assert_eq!(Some(key), entry.key);
            assert_eq!(id.get(), present);
        }
        (result, present) => panic!("{result:?}, expected {present:?}"),
    }
}

pub(crate) fn expect_upsert(model: &mut Model, entry: Entry, upserted: &Upserted) {
    model.upsert(entry).same(upserted);
}

pub(crate) fn expect_touch(model: &mut Model, key: &[u8], stamp: u64, touched: Option<DocumentId>) {
    let id = model.id_of(key);
    assert_eq!(touched.map(DocumentId::get), id);
    id.map(|id| model.touch(id, stamp));
}

/// What an insertion of what is new must say.
pub(crate) enum Expected {
    New(u64),
    NearDuplicate(Found),
    SameKey(Found),
}

/// Inserts into the model what is new to it, as the caller says who is asked by `verify`.
pub(crate) fn if_new(model: &mut Model, entry: Entry, verify: Option<u64>) -> Expected {
    if let Some(present) = entry.key.as_deref().and_then(|key| model.id_of(key)) {
        let stored = &model.documents[&present].signature;
        let mut known = model.compare(present, &entry.signature, stored);
        if entry.signature.is_empty() != stored.is_empty() {
            known.estimate = 0.0;
        }
        return Expected::SameKey(known);
    }
    let question = Question {
        verify,
        ..Question::default()
    };
    let answer = model.query(&entry.signature, &question, None).unwrap();
    match answer.found.first() {
        Some(best) => Expected::NearDuplicate(*best),
        None => Expected::New(model.insert(entry)),
    }
}

pub(crate) fn same_novelty(model: &Model, novelty: &Novelty, expected: &Expected) {
    match (novelty, expected) {
        (Novelty::New { id, .. }, Expected::New(expected)) => assert_eq!(id.get(), *expected),
        (Novelty::NearDuplicate(found), Expected::NearDuplicate(expected))
        | (Novelty::KeyExists(found), Expected::SameKey(expected)) => {
            same_match(model, found, *expected);
        }
        (novelty, Expected::New(id)) => panic!("{novelty:?}, expected the new document {id}"),
        (novelty, Expected::NearDuplicate(found)) => panic!("{novelty:?}, expected near {found:?}"),
        (novelty, Expected::SameKey(found)) => panic!("{novelty:?}, expected the key of {found:?}"),
    }
}

pub(crate) fn expect_novelty(model: &mut Model, entry: Entry, novelty: Novelty) {
    let expected = if_new(model, entry, None);
    same_novelty(model, &novelty, &expected);
}
