//! The store.

use std::path::Path;

use resemblance::stats::{Stats, TableStats};
use resemblance::{BulkOptions, Document, DocumentId, Signature, Snapshot, Store, StoreOptions};

use crate::Result;
use crate::batch::{Batch, Input};
use crate::documents::{Form, Probe};
use crate::engine::{Engine, cache_bytes};

/// The tables that hold postings, and what serves to find them.
const POSTING_TABLES: [&str; 4] = ["keys", "bands", "permuted", "filters"];

pub fn store_options() -> StoreOptions {
    StoreOptions::new().cache_bytes(cache_bytes())
}

pub struct Ours {
    store: Store,
    snapshot: Option<Snapshot>,
}

impl Ours {
    pub fn open(form: Form, path: &Path) -> Result<Self> {
        let store = if path.exists() {
            store_options().open(path)?
        } else {
            store_options().create(path, form.schema()?)?
        };
        Ok(Self {
            store,
            snapshot: None,
        })
    }

    fn snapshot(&self) -> Result<&Snapshot> {
        self.snapshot.as_ref().ok_or("no snapshot".into())
    }
}

/// Makes a store of many documents offline.
pub fn bulk_load(path: &Path, input: &mut Input) -> Result<()> {
    let options = BulkOptions::new().store(store_options());
    let mut build = Store::bulk_build(path, input.form.schema()?, &options)?;
    while let Some(batch) = input.next_batch() {
        for (document, signature) in documents(&batch) {
            build.insert(document, signature)?;
        }
    }
    build.finish()?;
    Ok(())
}

pub fn compact(path: &Path) -> Result<()> {
    store_options().compact(path).run()?;
    Ok(())
}

fn documents(batch: &Batch) -> impl Iterator<Item = (Document<'_>, &Signature)> {
    let documents = batch.keys.iter().zip(&batch.signatures);
    documents.map(|(key, signature)| match key {
        Some(key) => (Document::new(key.as_bytes()), signature),
        None => (Document::without_key(), signature),
    })
}

fn append(transaction: &mut resemblance::WriteTransaction, batch: &Batch) -> Result<()> {
    for (number, (document, signature)) in (batch.first..).zip(documents(batch)) {
        let id = transaction.insert(document, signature)?;
        assert_eq!(id.get(), number, "ids follow each other from 0");
    }
    Ok(())
}

pub fn numbers(ids: Vec<DocumentId>) -> Vec<u64> {
    ids.into_iter().map(DocumentId::get).collect()
}

impl Engine for Ours {
    fn settings(&self) -> Result<String> {
        let schema = self.store.schema().to_string().replace('\n', ";");
        Ok(format!("cache {} MiB; {schema}", cache_bytes() >> 20))
    }

    fn insert(&mut self, batch: &Batch) -> Result<()> {
        let mut transaction = self.store.begin_write()?;
        append(&mut transaction, batch)?;
        Ok(transaction.commit()?)
    }

    fn begin_reading(&mut self) -> Result<()> {
        self.snapshot = Some(self.store.snapshot()?);
        Ok(())
    }

    fn candidates(&self, probe: &Probe) -> Result<Vec<u64>> {
        Ok(numbers(
            self.snapshot()?.query(&probe.signature).candidates()?,
        ))
    }

    fn candidates_many(&self, probes: &[Probe]) -> Option<Result<Vec<Vec<u64>>>> {
        let signatures: Vec<_> = probes.iter().map(|one| one.signature.clone()).collect();
        Some(self.snapshot().and_then(|snapshot| {
            let ids = snapshot.query(&signatures).candidates()?;
            Ok(ids.into_iter().map(numbers).collect())
        }))
    }

    fn inspect(&self) -> Result<(Vec<String>, Option<f64>)> {
        let stats = self.snapshot()?.stats().run()?;
        Ok((describe(&stats), posting_bytes(&stats)))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Returns the bytes of a document's postings in runs, or `None` without runs.
pub fn posting_bytes(stats: &Stats) -> Option<f64> {
    let tables = stats.tables.iter();
    let postings = tables.filter(|table| POSTING_TABLES.contains(&table.name.as_str()));
    let bytes: u64 = postings.map(TableStats::total_bytes).sum();
    let sealed = stats.documents - stats.memtable_documents;
    (sealed > 0).then(|| bytes as f64 / sealed as f64)
}

pub fn describe(stats: &Stats) -> Vec<String> {
    let documents = stats.documents.max(1) as f64;
    let mut lines = vec![format!(
        "{} runs; {} documents in no run yet: their signatures stand for their postings",
        stats.runs.len(),
        stats.memtable_documents
    )];
    let tables = stats.tables.iter().filter(|table| table.rows > 0);
    lines.extend(tables.map(|table| {
        format!(
            "{}: {} rows; bytes a document: {:.1} stored, {:.1} tree, {:.1} unused",
            table.name,
            table.rows,
            table.stored_bytes as f64 / documents,
            table.metadata_bytes as f64 / documents,
            table.fragmented_bytes as f64 / documents
        )
    }));
    lines
}
