//! One change and what it must answer.

use resemblance::{Document, Error, Signature, Store, WriteTransaction};

use crate::common::changes::{
    Writer, insert, insert_if_new, insert_many, insert_many_if_new, remove, remove_id, touch,
    touch_id, upsert,
};
use crate::common::model::drawn::{Drawn, signature};
use crate::common::model::steps::{Change, Member, Stored, key_bytes, payload};
use crate::common::oracle::{Entry, Model};

fn entry(model: &Model, key: Option<u8>, drawn: &Drawn, stored: Option<Stored>) -> Entry {
    Entry {
        key: key.map(key_bytes),
        signature: signature(&model.schema, *drawn),
        stamp: stored.map_or(0, |stored| stored.stamp),
        payload: stored.map_or_else(Vec::new, payload),
    }
}

pub(crate) fn entries(model: &Model, members: &[Member]) -> Vec<Entry> {
    let entries = members.iter();
    entries
        .map(|(key, drawn)| entry(model, *key, drawn, None))
        .collect()
}

/// Applies a change that is also a single call of a store. Returns false if it is not.
fn by_one_call(writer: &mut impl Writer, model: &mut Model, change: &Change) -> bool {
    match change {
        Change::Insert(key, drawn) => insert(writer, model, entry(model, Some(*key), drawn, None)),
        Change::InsertDocument(key, drawn, stored) => {
            insert(writer, model, entry(model, *key, drawn, Some(*stored)));
        }
        Change::Append(drawn) => insert(writer, model, entry(model, None, drawn, None)),
        Change::Upsert(key, drawn) => upsert(writer, model, entry(model, Some(*key), drawn, None)),
        Change::UpsertDocument(key, drawn, stored) => {
            upsert(writer, model, entry(model, *key, drawn, Some(*stored)));
        }
        Change::UpsertAgain(key, stored) => {
            if let Some(entry) = again(model, &key_bytes(*key), *stored) {
                upsert(writer, model, entry);
            }
        }
        Change::InsertIfNew(key, drawn) => {
            insert_if_new(writer, model, entry(model, Some(*key), drawn, None));
        }
        Change::InsertDocumentIfNew(key, drawn, stored) => {
            insert_if_new(writer, model, entry(model, *key, drawn, Some(*stored)));
        }
        Change::Touch(key, stamp) => touch(writer, model, &key_bytes(*key), *stamp),
        Change::Remove(key) => remove(writer, model, &key_bytes(*key)),
        _ => return false,
    }
    true
}

/// Makes a change in a transaction.
pub(crate) fn in_transaction(
    transaction: &mut WriteTransaction,
    model: &mut Model,
    change: &Change,
) {
    match change {
        Change::TouchId(which, stamp) => touch_id(transaction, model, *which, *stamp),
        Change::RemoveId(which) => remove_id(transaction, model, *which),
        Change::InsertMany(members) => insert_many(transaction, model, entries(model, members)),
        Change::InsertManyIfNew {
            documents,
            verified,
        } => insert_many_if_new(transaction, model, &entries(model, documents), *verified),
        Change::Refused(which) => refused(transaction, model, *which),
        Change::Read => {}
        change => assert!(by_one_call(transaction, model, change)),
    }
}

/// Applies a change by a single call, or in a separate transaction if there is no such call.
pub(crate) fn one_call(store: &Store, model: &mut Model, change: &Change) {
    if !by_one_call(&mut store.clone(), model, change) {
        let mut transaction = store.begin_write().unwrap();
        in_transaction(&mut transaction, model, change);
        transaction.commit().unwrap();
    }
}

/// Returns the document with a key again, with its stored values or with others.
fn again(model: &Model, key: &[u8], stored: Option<Stored>) -> Option<Entry> {
    let mut entry = Entry::clone(&model.documents[&model.id_of(key)?]);
    if let Some(stored) = stored {
        (entry.stamp, entry.payload) = (stored.stamp, payload(stored));
    }
    Some(entry)
}

/// Passes invalid input, which must be refused by name while the transaction continues.
fn refused(transaction: &mut WriteTransaction, model: &Model, which: u8) {
    let good = signature(&model.schema, Drawn::Hot(1));
    let bad = Signature::from_minhash(vec![1; 15]);
    let mismatched = |error| matches!(error, Some(Error::SignatureMismatch { .. }));
    let batch = [(Document::without_key(), &good), (Document::new(""), &bad)];
    match which {
        0 => {
            let refused = transaction.upsert([7; 4_097], &good);
            assert!(matches!(refused, Err(Error::InvalidParameter { .. })));
        }
        1 => assert!(mismatched(transaction.upsert(b"", &bad).err())),
        2 => assert!(mismatched(transaction.insert_many(&batch).run().err())),
        _ => {
            let refused = transaction.insert_many(&batch).if_new().run();
            assert!(mismatched(refused.err()));
        }
    }
}
