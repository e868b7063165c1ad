//! How long it takes to make changes durable. The disk has the greater part in what commits one
//! document.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at an error")]

mod support;

use divan::Bencher;
use divan::counter::ItemsCount;
use resemblance::{Document, Signature};

fn main() {
    support::run();
}

/// Commits one document in each transaction.
#[divan::bench(sample_count = 1_000, max_time = 4)]
fn one_document(bencher: Bencher<'_, '_>) {
    let store = support::empty_store("one_document.rsm").unwrap();
    let mut documents = (0..).map(support::document);
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        let (key, signature) = documents.next().unwrap();
        store.insert(key, &signature).unwrap()
    });
}

/// One document, unless the store has a near-duplicate of it, which is looked up first. For one
/// document in ten there is one, and nothing to commit.
#[divan::bench(sample_count = 1_000, max_time = 4)]
fn one_document_if_new(bencher: Bencher<'_, '_>) {
    let store = support::empty_store("one_document_if_new.rsm").unwrap();
    let mut documents = (0..).map(support::document);
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        let (key, signature) = documents.next().unwrap();
        store.insert_if_new(key, &signature).unwrap()
    });
}

/// Many documents in one transaction.
#[divan::bench(args = [100, 2_000], max_time = 4)]
fn batch(bencher: Bencher<'_, '_>, count: usize) {
    let store = support::empty_store(&format!("batch_{count}.rsm")).unwrap();
    let mut documents = (0..).map(support::document);
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        let mut transaction = store.begin_write().unwrap();
        for (key, signature) in documents.by_ref().take(count) {
            transaction.insert(key, &signature).unwrap();
        }
        transaction.commit().unwrap();
    });
}

/// Many documents in one transaction, those left out of which the store or the batch has a
/// near-duplicate.
#[divan::bench(args = [100, 2_000], max_time = 4)]
fn batch_if_new(bencher: Bencher<'_, '_>, count: usize) {
    let store = support::empty_store(&format!("batch_if_new_{count}.rsm")).unwrap();
    let mut documents = (0..).map(support::document);
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        let taken: Vec<(String, Signature)> = documents.by_ref().take(count).collect();
        let batch: Vec<(Document<'_>, &Signature)> = taken
            .iter()
            .map(|(key, signature)| (Document::new(key), signature))
            .collect();
        let mut transaction = store.begin_write().unwrap();
        let found = transaction.insert_many(&batch).if_new().run().unwrap();
        transaction.commit().unwrap();
        found
    });
}
