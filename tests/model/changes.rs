//! One change and what it must answer.

use resemblance::{
    Document, DocumentId, Error, Novelty, Result, Signature, Store, Upserted, WriteTransaction,
};

use crate::common::oracle::{Entry, Model, Question};
use crate::common::verify::same_match;
use crate::steps::{Change, Drawn, Stored, key_bytes, payload, signature};

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
            let result = transaction.insert_document(document(&entry), &entry.signature);
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
            expect_upsert(model, entry, upserted);
        }
        Change::UpsertDocument(key, drawn, stored) => {
            let entry = new_entry(&key.map(key_bytes), drawn, Some(*stored));
            let upserted = transaction.upsert_document(document(&entry), &entry.signature);
            expect_upsert(model, entry, upserted.unwrap());
        }
        Change::InsertIfNew(key, drawn) => {
            let key = key_bytes(*key);
            let entry = new_entry(&Some(key.clone()), drawn, None);
            let novelty = transaction.insert_if_new(&key, &entry.signature).unwrap();
            expect_novelty(model, entry, novelty);
        }
        Change::InsertDocumentIfNew(key, drawn, stored) => {
            let entry = new_entry(&key.map(key_bytes), drawn, Some(*stored));
            let novelty = transaction.insert_document_if_new(document(&entry), &entry.signature);
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
            expect_upsert(model, entry, upserted);
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

pub(crate) fn expect_upsert(model: &mut Model, entry: Entry, upserted: Upserted) {
    let key = entry.key.clone();
    let replaced = key.and_then(|key| model.remove_key(&key));
    assert_eq!(upserted.replaced.map(DocumentId::get), replaced);
    assert_eq!(upserted.id.get(), model.insert(entry));
}

pub(crate) fn expect_novelty(model: &mut Model, entry: Entry, novelty: Novelty) {
    let present = entry.key.as_deref().and_then(|key| model.id_of(key));
    if let Some(present) = present {
        let Novelty::SameKey(found) = &novelty else {
            panic!("{novelty:?}, expected that document {present} has the key");
        };
        let stored = &model.documents[&present].signature;
        let mut expected = model.compare(present, &entry.signature, stored);
        if entry.signature.is_empty() != stored.is_empty() {
            expected.estimate = 0.0;
        }
        return same_match(model, found, expected);
    }
    let answer = model.query(&entry.signature, &Question::default(), None);
    match (answer.unwrap().found.first(), &novelty) {
        (Some(best), Novelty::NearDuplicate(found)) => same_match(model, found, *best),
        (None, Novelty::New(id)) => assert_eq!(id.get(), model.insert(entry)),
        (expected, novelty) => panic!("{novelty:?}, expected {expected:?}"),
    }
}
