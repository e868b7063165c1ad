//! Bytes as a sequence of operations on a small store, beside the oracle of `tests/common`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken promise should stop the fuzzer"
)]

mod draw;

use std::path::PathBuf;

use resemblance::{
    BulkOptions, Document, DocumentId, Schema, Signature, Snapshot, Store, StoreOptions,
    WriteTransaction,
};

use crate::common::Random;
use crate::common::changes;
use crate::common::joins::joins;
use crate::common::oracle::{Entry, Model};
use crate::common::question::Question;
use crate::common::verify::{all_reads, some_queries};
use draw::{Input, KEYS, key, payload, schema, signature};

/// So many steps at most, and no more documents: what is slow finds little more.
const MOST_STEPS: usize = 24;
const MOST_DOCUMENTS: u64 = 200;

/// Of more documents not all pairs are compared.
const MOST_PAIRED: usize = 60;

/// From a seal with every commit to none.
const SEALS: [u64; 5] = [1, 3, 16, 60, 1_000];

/// Runs the operations that the bytes stand for. Stores are made where temporary files are.
pub(crate) fn operations(data: &[u8]) {
    let mut input = Input::new(data);
    let schema = schema(&mut input);
    let mut episode = Episode::new(schema, &mut input);
    for _ in 0..MOST_STEPS {
        if input.is_at_end() || episode.model.next_id > MOST_DOCUMENTS {
            break;
        }
        episode.step(&mut input);
    }
    episode.finish();
}

struct Episode {
    folder: tempfile::TempDir,
    store: Option<Store>,
    model: Model,
    held: Vec<(Snapshot, Model)>,
}

impl Episode {
    /// An empty store, or one that was built at once.
    fn new(schema: Schema, input: &mut Input<'_>) -> Self {
        let mut episode = Self {
            folder: tempfile::tempdir().unwrap(),
            store: None,
            model: Model::new(schema.clone()),
            held: Vec::new(),
        };
        let options = options(input);
        let start = input.byte();
        if start < 200 {
            let store = options.create(episode.path(), schema);
            episode.store = Some(store.unwrap());
            return episode;
        }
        let bulk = BulkOptions::new().memory_bytes(1 << 20);
        let mut build = Store::bulk_build(episode.path(), schema.clone(), &bulk).unwrap();
        for number in 0..start - 200 {
            let signature = signature(&schema, number, number.wrapping_mul(37));
            let key = format!("bulk {number}").into_bytes();
            build
                .insert(Document::new(&key).stamp(7), &signature)
                .unwrap();
            let mut entry = Entry::new(Some(key), signature);
            entry.stamp = 7;
            episode.model.insert(entry);
        }
        build.finish().unwrap();
        episode.store = Some(options.open(episode.path()).unwrap());
        episode
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("store.rsm")
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 12 {
            0..=4 => self.transaction(input),
            5 => self.many(input),
            6 => {
                self.close();
                self.open(input);
            }
            7 => {
                self.close();
                Store::compact(self.path()).run().unwrap();
                self.open(input);
            }
            8 => {
                let snapshot = self.store().snapshot().unwrap();
                let report = snapshot.check().run().unwrap();
                assert!(report.is_clean(), "{:#?}", report.problems);
                assert_eq!(report.documents, self.model.documents.len() as u64);
            }
            9 => {
                let snapshot = self.store().snapshot().unwrap();
                self.held.push((snapshot, self.model.clone()));
            }
            10 => {
                if let Some((snapshot, model)) = self.held.pop() {
                    verify(&snapshot, &model);
                }
            }
            _ => verify(&self.store().snapshot().unwrap(), &self.model),
        }
    }

    /// Several changes; the last byte says whether they are kept.
    fn transaction(&mut self, input: &mut Input<'_>) {
        let mut model = self.model.clone();
        let mut transaction = self.store().begin_write().unwrap();
        for _ in 0..input.byte() % 24 {
            change(&mut transaction, &mut model, input);
            assert_eq!(transaction.len(), model.documents.len() as u64);
        }
        if !input.byte().is_multiple_of(5) || input.is_at_end() {
            transaction.commit().unwrap();
            self.model = model;
        }
    }

    /// Many documents without keys, of which some go again.
    fn many(&mut self, input: &mut Input<'_>) {
        let (count, removed_every) = (input.byte() % 64, input.byte());
        let mut transaction = self.store().begin_write().unwrap();
        for number in 0..count {
            let signature = signature(&self.model.schema, number % 5, number);
            let id = transaction
                .insert(Document::without_key(), &signature)
                .unwrap();
            assert_eq!(id.get(), self.model.insert(Entry::new(None, signature)));
            if number % (removed_every % 16 + 1) == 1 {
                let id = u64::from(removed_every) * u64::from(number) % self.model.next_id;
                let removed = transaction.remove_id(DocumentId::new(id)).unwrap();
                assert_eq!(removed, self.model.documents.remove(&id).is_some());
            }
        }
        transaction.commit().unwrap();
    }

    fn close(&mut self) {
        self.store = None;
        for (snapshot, model) in std::mem::take(&mut self.held) {
            all_reads(&snapshot, &model, &keys());
        }
    }

    fn open(&mut self, input: &mut Input<'_>) {
        let store = options(input).open(self.path()).unwrap();
        assert_eq!(store.schema(), &self.model.schema);
        self.store = Some(store);
    }

    fn finish(mut self) {
        verify(&self.store().snapshot().unwrap(), &self.model);
        self.close();
        let report = Store::check(self.path()).run().unwrap();
        assert!(report.is_clean(), "{:#?}", report.problems);
        let store = Store::open(self.path()).unwrap();
        all_reads(&store.snapshot().unwrap(), &self.model, &keys());
    }
}

fn options(input: &mut Input<'_>) -> StoreOptions {
    let flush_after = input.pick(&SEALS);
    StoreOptions::new()
        .flush_after(flush_after)
        .cache_bytes(1 << 20)
        .merge_slice(50)
        .merge_in_parallel(false)
}

fn keys() -> Vec<Vec<u8>> {
    (0..KEYS).map(key).collect()
}

/// Everything in a snapshot.
fn verify(snapshot: &Snapshot, model: &Model) {
    all_reads(snapshot, model, &keys());
    let families = (0..3).map(|family| signature(&model.schema, family, 16 * family));
    let mut strangers: Vec<Signature> = families.collect();
    strangers.push(signature(&model.schema, 0, 255));
    some_queries(snapshot, model, &strangers, &mut Random(model.next_id), 8);
    if model.documents.len() <= MOST_PAIRED {
        joins(snapshot, model, &Question::default());
    }
}

fn any_entry(model: &Model, input: &mut Input<'_>) -> Entry {
    let key = Some(key(input.byte()));
    let signature = signature(&model.schema, input.byte(), input.byte());
    let stored = input.byte();
    Entry {
        key,
        signature,
        stamp: u64::from(stored) << 50,
        payload: payload(stored),
    }
}

fn change(transaction: &mut WriteTransaction, model: &mut Model, input: &mut Input<'_>) {
    let which = input.byte();
    match which % 10 {
        _ if which >= 230 => {
            let (touched, stamp) = (input.byte(), u64::from(input.byte()) << 40);
            match which.is_multiple_of(2) {
                true => changes::touch(transaction, model, &key(touched), stamp),
                false => changes::touch_id(transaction, model, touched, stamp),
            }
        }
        0 | 1 => changes::upsert(transaction, model, any_entry(model, input)),
        2 => changes::insert(transaction, model, any_entry(model, input)),
        3 | 4 => changes::insert_if_new(transaction, model, any_entry(model, input)),
        5 => {
            let entry = Entry {
                key: None,
                ..any_entry(model, input)
            };
            changes::insert(transaction, model, entry);
        }
        6 => changes::remove(transaction, model, &key(input.byte())),
        7 => changes::remove_id(transaction, model, input.byte()),
        8 => {
            let entries = any_entries(model, input, 9);
            changes::insert_many_if_new(transaction, model, &entries, false);
        }
        _ => changes::insert_many(transaction, model, any_entries(model, input, 5)),
    }
}

fn any_entries(model: &Model, input: &mut Input<'_>, end: u8) -> Vec<Entry> {
    let count = input.byte() % end;
    (0..count).map(|_| any_entry(model, input)).collect()
}
