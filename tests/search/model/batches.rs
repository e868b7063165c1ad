//! Many documents in one call, and calls that are refused.

use std::collections::BTreeMap;

use resemblance::search::Earlier;
use resemblance::{Document, Error, Signature, WriteTransaction};

use crate::common::changes::{Expected, if_new, same_novelty};
use crate::common::oracle::{Entry, Model};
use crate::common::question::reported;
use crate::model::changes::entry;
use crate::model::drawn::signature;
use crate::model::steps::{Member, key_bytes};

pub(crate) fn entries(model: &Model, members: &[Member]) -> Vec<Entry> {
    let entries = members.iter().map(|(key, drawn)| {
        let signature = signature(&model.schema, *drawn);
        entry(key.map(key_bytes), signature, None)
    });
    entries.collect()
}

fn batch(entries: &[Entry]) -> Vec<(Document<'_>, &Signature)> {
    let pairs = entries.iter().map(|e| (e.document(), &e.signature));
    pairs.collect()
}

/// All of them or, if a key is there or comes twice, none.
pub(crate) fn insert_many(
    transaction: &mut WriteTransaction,
    model: &mut Model,
    members: &[Member],
) {
    let entries = entries(model, members);
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
    members: &[Member],
    verified: bool,
) {
    let entries = entries(model, members);
    let first_id = model.next_id;
    let mut id_of = BTreeMap::new();
    let mut expected = Vec::new();
    for (index, one) in self::entries(model, members).into_iter().enumerate() {
        let novelty = if_new(model, one, verified.then_some(index as u64));
        if let Expected::New(id) = novelty {
            id_of.insert(index, id);
        }
        expected.push(novelty);
    }
    let batch = batch(&entries);
    let found = if verified {
        let reported_of = |index: usize, earlier| {
            let id = match earlier {
                Earlier::Stored(id) => id.get(),
                Earlier::OfBatch(other) => id_of[&other],
            };
            assert_eq!(id >= first_id, matches!(earlier, Earlier::OfBatch(_)));
            Ok(reported(index as u64, id))
        };
        transaction
            .insert_many(&batch)
            .if_new()
            .verify(reported_of)
            .run()
    } else {
        transaction.insert_many(&batch).if_new().run()
    };
    let found = found.unwrap();
    assert_eq!(found.len(), expected.len());
    for (novelty, expected) in found.iter().zip(&expected) {
        same_novelty(model, novelty, expected);
    }
}

/// Input that is refused by name, while the transaction goes on.
pub(crate) fn refused(transaction: &mut WriteTransaction, model: &Model, which: u8) {
    let good = signature(&model.schema, crate::model::drawn::Drawn::Hot(1));
    let bad = Signature::from_minhash(vec![1; 15]);
    let mismatched = |error| matches!(error, Some(Error::SignatureMismatch { .. }));
    match which {
        0 => {
            let refused = transaction.upsert([7; 4_097], &good);
            assert!(matches!(refused, Err(Error::InvalidParameter { .. })));
        }
        1 => assert!(mismatched(transaction.upsert(b"", &bad).err())),
        2 => {
            let batch = [(Document::without_key(), &good), (Document::new(""), &bad)];
            assert!(mismatched(transaction.insert_many(&batch).run().err()));
        }
        _ => {
            let batch = [(Document::without_key(), &good), (Document::new(""), &bad)];
            assert!(mismatched(
                transaction.insert_many(&batch).if_new().run().err()
            ));
        }
    }
}
