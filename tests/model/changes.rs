//! One change and what it must answer.

use resemblance::{
    Document, DocumentId, Error, Novelty, Result, Signature, Store, Upserted, WriteTransaction,
};

use crate::batches;
use crate::common::oracle::{Entry, Found, Model};
use crate::common::question::Question;
use crate::common::verify::same_match;
use crate::drawn::{Drawn, signature};
use crate::steps::{Change, Stored, key_bytes, payload};

pub(crate) fn entry(key: Option<Vec<u8>>, signature: Signature, stored: Option<Stored>) -> Entry {
    Entry {
        key,
        signature,
        stamp: stored.map_or(0, |stored| stored.stamp),
        payload: stored.map_or_else(Vec::new, payload),
    }
}

/// One change and what it must answer: the forms with and without stamp and payload alike.
pub(crate) fn in_transaction(
    transaction: &mut WriteTransaction,
    model: &mut Model,
    change: &Change,
) {
    let new_entry = |key: &Option<Vec<u8>>, drawn: &Drawn, stored| {
        entry(key.clone(), signature(&model.schema, *drawn), stored)
    };
    match change {
        Change::Insert(key, drawn) => {
            let key = key_bytes(*key);
            let entry = new_entry(&Some(key.clone()), drawn, None);
            let result = transaction.insert(&key, &entry.signature);
            expect_insert(model, entry, result);
        }
        Change::InsertDocument(key, drawn, stored) => {
            let entry = new_entry(&key.map(key_bytes), drawn, Some(*stored));
            let result = transaction.insert(document(&entry), &entry.signature);
            expect_insert(model, entry, result);
        }
        Change::Append(drawn) => {
            let entry = new_entry(&None, drawn, None);
            let result = transaction.append(&entry.signature);
            expect_insert(model, entry, result);
        }
        Change::Upsert(key, drawn) => {
            let key = key_bytes(*key);
            let entry = new_entry(&Some(key.clone()), drawn, None);
            let upserted = transaction.upsert(&key, &entry.signature).unwrap();
            expect_upsert(model, entry, &upserted);
        }
        Change::UpsertDocument(key, drawn, stored) => {
            let entry = new_entry(&key.map(key_bytes), drawn, Some(*stored));
            let upserted = transaction.upsert(document(&entry), &entry.signature);
            expect_upsert(model, entry, &upserted.unwrap());
        }
        Change::UpsertAgain(key, stored) => {
            if let Some(entry) = again(model, &key_bytes(*key), *stored) {
                let upserted = transaction.upsert(document(&entry), &entry.signature);
                expect_upsert(model, entry, &upserted.unwrap());
            }
        }
        Change::Touch(key, stamp) => {
            let key = key_bytes(*key);
            let touched = transaction.touch(&key, *stamp).unwrap();
            expect_touch(model, &key, *stamp, touched);
        }
        Change::TouchId(which, stamp) => {
            let id = u64::from(*which) % (model.next_id + 2);
            let touched = transaction.touch_id(DocumentId::new(id), *stamp);
            assert_eq!(touched.unwrap(), model.touch(id, *stamp));
        }
        Change::InsertIfNew(key, drawn) => {
            let key = key_bytes(*key);
            let entry = new_entry(&Some(key.clone()), drawn, None);
            let novelty = transaction.insert_if_new(&key, &entry.signature).unwrap();
            expect_novelty(model, entry, novelty);
        }
        Change::InsertDocumentIfNew(key, drawn, stored) => {
            let entry = new_entry(&key.map(key_bytes), drawn, Some(*stored));
            let novelty = transaction.insert_if_new(document(&entry), &entry.signature);
            expect_novelty(model, entry, novelty.unwrap());
        }
        Change::Remove(key) => {
            let key = key_bytes(*key);
            let removed = transaction.remove(&key).unwrap();
            assert_eq!(removed.map(DocumentId::get), model.remove_key(&key));
        }
        Change::RemoveId(which) => {
            let id = u64::from(*which) % (model.next_id + 2);
            let removed = transaction.remove_id(DocumentId::new(id)).unwrap();
            assert_eq!(removed, model.documents.remove(&id).is_some());
        }
        Change::InsertMany(documents) => batches::insert_many(transaction, model, documents),
        Change::InsertManyIfNew {
            documents,
            verified,
        } => batches::insert_many_if_new(transaction, model, documents, *verified),
        Change::Refused(which) => batches::refused(transaction, model, *which),
        Change::Read => {}
    }
}

/// The one-call form, or a transaction of its own where there is none.
pub(crate) fn one_call(store: &Store, model: &mut Model, change: &Change) {
    let make = |key: u8, drawn: &Drawn| {
        let key = key_bytes(key);
        (
            key.clone(),
            entry(Some(key), signature(&model.schema, *drawn), None),
        )
    };
    match change {
        Change::Insert(key, drawn) => {
            let (key, entry) = make(*key, drawn);
            let result = store.insert(&key, &entry.signature);
            expect_insert(model, entry, result);
        }
        Change::Upsert(key, drawn) => {
            let (key, entry) = make(*key, drawn);
            let upserted = store.upsert(&key, &entry.signature).unwrap();
            expect_upsert(model, entry, &upserted);
        }
        Change::Touch(key, stamp) => {
            let key = key_bytes(*key);
            let touched = store.touch(&key, *stamp).unwrap();
            expect_touch(model, &key, *stamp, touched);
        }
        Change::InsertIfNew(key, drawn) => {
            let (key, entry) = make(*key, drawn);
            let novelty = store.insert_if_new(&key, &entry.signature).unwrap();
            expect_novelty(model, entry, novelty);
        }
        Change::Append(drawn) => {
            let entry = entry(None, signature(&model.schema, *drawn), None);
            let result = store.append(&entry.signature);
            expect_insert(model, entry, result);
        }
        Change::Remove(key) => {
            let key = key_bytes(*key);
            let removed = store.remove(&key).unwrap();
            assert_eq!(removed.map(DocumentId::get), model.remove_key(&key));
        }
        other => {
            let mut transaction = store.begin_write().unwrap();
            in_transaction(&mut transaction, model, other);
            transaction.commit().unwrap();
        }
    }
}

pub(crate) fn document(entry: &Entry) -> Document<'_> {
    let document = match &entry.key {
        Some(key) => Document::new(key),
        None => Document::without_key(),
    };
    document.stamp(entry.stamp).payload(&entry.payload)
}

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

fn expect_touch(model: &mut Model, key: &[u8], stamp: u64, touched: Option<DocumentId>) {
    let id = model.id_of(key);
    assert_eq!(touched.map(DocumentId::get), id);
    id.map(|id| model.touch(id, stamp));
}

/// The document under a key once more: with what is stored beside it now, or something else.
fn again(model: &Model, key: &[u8], stored: Option<Stored>) -> Option<Entry> {
    let there = &model.documents[&model.id_of(key)?];
    let as_it_is = Entry {
        key: there.key.clone(),
        signature: there.signature.clone(),
        stamp: there.stamp,
        payload: there.payload.clone(),
    };
    Some(match stored {
        Some(_) => entry(as_it_is.key, as_it_is.signature, stored),
        None => as_it_is,
    })
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
        (Novelty::New(id), Expected::New(expected)) => assert_eq!(id.get(), *expected),
        (Novelty::NearDuplicate(found), Expected::NearDuplicate(expected))
        | (Novelty::SameKey(found), Expected::SameKey(expected)) => {
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
