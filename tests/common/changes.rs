//! Applies changes to a store and to the model, and checks that the store answers as the model
//! does.

use std::collections::BTreeMap;

use resemblance::search::Earlier;
use resemblance::{
    Document, DocumentId, Error, Novelty, Result, Signature, Store, Upserted, WriteTransaction,
};

use super::oracle::{Entry, Found, Model};
use super::question::{Question, reported};
use super::verify::same_match;

/// Anything that applies changes: a transaction, or a store with one call for each.
pub(crate) trait Writer {
    fn insert(&mut self, entry: &Entry) -> Result<DocumentId>;
    fn upsert(&mut self, entry: &Entry) -> Result<Upserted>;
    fn insert_if_new(&mut self, entry: &Entry) -> Result<Novelty>;
    fn remove(&mut self, key: &[u8]) -> Result<Option<DocumentId>>;
    fn touch(&mut self, key: &[u8], stamp: u64) -> Result<Option<DocumentId>>;
}

macro_rules! writer {
    ($kind:ty) => {
        impl Writer for $kind {
            fn insert(&mut self, entry: &Entry) -> Result<DocumentId> {
                <$kind>::insert(self, entry.document(), &entry.signature)
            }
            fn upsert(&mut self, entry: &Entry) -> Result<Upserted> {
                <$kind>::upsert(self, entry.document(), &entry.signature)
            }
            fn insert_if_new(&mut self, entry: &Entry) -> Result<Novelty> {
                <$kind>::insert_if_new(self, entry.document(), &entry.signature)
            }
            fn remove(&mut self, key: &[u8]) -> Result<Option<DocumentId>> {
                <$kind>::remove(self, key)
            }
            fn touch(&mut self, key: &[u8], stamp: u64) -> Result<Option<DocumentId>> {
                <$kind>::touch(self, key, stamp)
            }
        }
    };
}

writer!(Store);
writer!(WriteTransaction);

pub(crate) fn insert(writer: &mut impl Writer, model: &mut Model, entry: Entry) {
    let present = entry.key.as_deref().and_then(|key| model.id_of(key));
    match (writer.insert(&entry), present) {
        (Ok(id), None) => assert_eq!(id.get(), model.insert(entry)),
        (Err(Error::KeyExists { key, id }), Some(present)) => {
            assert_eq!(Some(key), entry.key);
            assert_eq!(id.get(), present);
        }
        (result, present) => panic!("{result:?}, expected {present:?}"),
    }
}

pub(crate) fn upsert(writer: &mut impl Writer, model: &mut Model, entry: Entry) {
    let upserted = writer.upsert(&entry).unwrap();
    model.upsert(entry).same(&upserted);
}

pub(crate) fn insert_if_new(writer: &mut impl Writer, model: &mut Model, entry: Entry) {
    let novelty = writer.insert_if_new(&entry).unwrap();
    let expected = if_new(model, entry, None);
    same_novelty(model, &novelty, &expected);
}

pub(crate) fn remove(writer: &mut impl Writer, model: &mut Model, key: &[u8]) {
    let removed = writer.remove(key).unwrap();
    assert_eq!(removed.map(DocumentId::get), model.remove_key(key));
}

pub(crate) fn touch(writer: &mut impl Writer, model: &mut Model, key: &[u8], stamp: u64) {
    let (touched, id) = (writer.touch(key, stamp).unwrap(), model.id_of(key));
    assert_eq!(touched.map(DocumentId::get), id);
    id.map(|id| model.touch(id, stamp));
}

pub(crate) fn remove_id(transaction: &mut WriteTransaction, model: &mut Model, which: u8) {
    let id = u64::from(which) % (model.next_id + 2);
    let removed = transaction.remove_id(DocumentId::new(id)).unwrap();
    assert_eq!(removed, model.remove(id));
}

pub(crate) fn touch_id(
    transaction: &mut WriteTransaction,
    model: &mut Model,
    which: u8,
    stamp: u64,
) {
    let id = u64::from(which) % (model.next_id + 2);
    let touched = transaction.touch_id(DocumentId::new(id), stamp);
    assert_eq!(touched.unwrap(), model.touch(id, stamp));
}

fn batch(entries: &[Entry]) -> Vec<(Document<'_>, &Signature)> {
    let pairs = entries.iter().map(|e| (e.document(), &e.signature));
    pairs.collect()
}

/// Inserts all documents, or none if a key exists or is repeated.
pub(crate) fn insert_many(
    transaction: &mut WriteTransaction,
    model: &mut Model,
    entries: Vec<Entry>,
) {
    let mut keys = BTreeMap::new();
    let taken = entries.iter().zip(model.next_id..).find_map(|(entry, id)| {
        let key = entry.key.as_deref()?;
        let holder = model.id_of(key).or_else(|| keys.insert(key, id))?;
        Some((key.to_vec(), holder))
    });
    match (transaction.insert_many(&batch(&entries)).run(), taken) {
        (Ok(ids), None) => {
            let ids: Vec<u64> = ids.into_iter().map(|id| id.get()).collect();
            let expected: Vec<u64> = entries.into_iter().map(|e| model.insert(e)).collect();
            assert_eq!(ids, expected);
        }
        (Err(Error::KeyExists { key, id }), Some(taken)) => assert_eq!((key, id.get()), taken),
        (result, taken) => panic!("{result:?}, expected that {taken:?} is taken"),
    }
}

/// One after the other; each is compared with those before it.
pub(crate) fn insert_many_if_new(
    transaction: &mut WriteTransaction,
    model: &mut Model,
    entries: &[Entry],
    verified: bool,
) {
    let first_id = model.next_id;
    let mut id_of = BTreeMap::new();
    let mut expected = Vec::new();
    for (index, one) in entries.iter().enumerate() {
        let novelty = if_new(model, one.clone(), verified.then_some(index as u64));
        if let Expected::New(id) = novelty {
            id_of.insert(index, id);
        }
        expected.push(novelty);
    }
    let documents = batch(entries);
    let insertion = transaction.insert_many(&documents).if_new();
    let found = if verified {
        let reported_of = |index: usize, earlier| {
            let id = match earlier {
                Earlier::Stored(id) => id.get(),
                Earlier::OfBatch(other) => id_of[&other],
                _ => panic!("{earlier:?}"),
            };
            assert_eq!(id >= first_id, matches!(earlier, Earlier::OfBatch(_)));
            Ok(reported(index as u64, id))
        };
        insertion.verify(reported_of).run()
    } else {
        insertion.run()
    };
    let found = found.unwrap();
    assert_eq!(found.len(), expected.len());
    for (novelty, expected) in found.iter().zip(&expected) {
        same_novelty(model, novelty, expected);
    }
}

/// The expected result of inserting a document if it is new.
enum Expected {
    New(u64),
    NearDuplicate(Found),
    SameKey(Found),
}

/// Inserts an entry into the model if it is new, by the similarities that the caller `verify`
/// reports.
fn if_new(model: &mut Model, entry: Entry, verify: Option<u64>) -> Expected {
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

fn same_novelty(model: &Model, novelty: &Novelty, expected: &Expected) {
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
