//! One change and what it must answer.

use resemblance::{Document, DocumentId, Signature, Store, WriteTransaction};

use crate::common::changes::{expect_insert, expect_novelty, expect_touch, expect_upsert};
use crate::common::oracle::{Entry, Model};
use crate::model::batches;
use crate::model::drawn::{Drawn, signature};
use crate::model::steps::{Change, Stored, key_bytes, payload};

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
            let result = transaction.insert(entry.document(), &entry.signature);
            expect_insert(model, entry, result);
        }
        Change::Append(drawn) => {
            let entry = new_entry(&None, drawn, None);
            let result = transaction.insert(Document::without_key(), &entry.signature);
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
            let upserted = transaction.upsert(entry.document(), &entry.signature);
            expect_upsert(model, entry, &upserted.unwrap());
        }
        Change::UpsertAgain(key, stored) => {
            if let Some(entry) = again(model, &key_bytes(*key), *stored) {
                let upserted = transaction.upsert(entry.document(), &entry.signature);
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
            let novelty = transaction.insert_if_new(entry.document(), &entry.signature);
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
            let result = store.insert(Document::without_key(), &entry.signature);
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

/// The document under a key once more: with what is stored beside it now, or something else.
fn again(model: &Model, key: &[u8], stored: Option<Stored>) -> Option<Entry> {
    let there = &model.documents[&model.id_of(key)?];
    let as_it_is = Entry::clone(there);
    Some(match stored {
        Some(_) => entry(as_it_is.key, as_it_is.signature, stored),
        None => as_it_is,
    })
}
