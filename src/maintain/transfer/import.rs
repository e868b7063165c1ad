//! Imports the documents of another store from a stream.

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::{StreamDocument, StreamHeader, StreamReader};
use crate::invariant::{bug, invariant};
use crate::observe::{UPKEEP, log as events};
use crate::query::find_keys;
use crate::state::OpenStore;
use crate::state::{SharedContext, shape_of, whole_shape_of};
use crate::types::{Document, DocumentId, Novelty, Operation, Phase, ReportSettings, Watch};
use crate::write::{Arbiter, WriteTransaction, Writer};
use resemblance_sketch::sketch::Signature;

/// Bytes that are buffered of the reader, which may be a file.
const BUFFER_BYTES: usize = 256 * 1024;

/// Default number of documents of one transaction, which ends earlier at `TRANSACTION_BYTES`.
const TRANSACTION_DOCUMENTS: u64 = 10_000;
const TRANSACTION_BYTES: usize = 16 << 20;

/// The action for a document of the stream whose key the store has.
///
/// ```
/// # use resemblance::{Document, ExistingKeys, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// store.insert(Document::new("a").stamp(20), &page)?;
/// let mut stream = Vec::new();
/// store.snapshot()?.export(&mut stream).run()?;
/// store.touch("a", 21)?; // later than in the stream
/// let import = store.import(&stream[..]).existing_keys(ExistingKeys::ReplaceIfNewer);
/// assert_eq!(import.run()?.skipped, 1);
/// assert!(store.import(&stream[..]).existing_keys(ExistingKeys::Refuse).run().is_err());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExistingKeys {
    /// Stop the import. Nothing of the current transaction is stored; earlier transactions remain
    /// committed.
    #[default]
    Refuse,
    /// Leave the document out and count it.
    Skip,
    /// Replace the existing document. The new one gets a new id.
    Replace,
    /// Replace the existing document if the new one has a greater stamp. Otherwise leave the new
    /// one out and count it.
    ReplaceIfNewer,
}

/// The rules by which an import accepts documents.
#[derive(Clone, Copy, Debug)]
pub struct ImportRules {
    existing_keys: ExistingKeys,
    if_new: bool,
    transaction_documents: u64,
}

/// Describes the import of a stream.
pub(crate) fn import<'a>(
    store: &'a Arc<OpenStore>,
    reader: impl Read + 'a,
) -> Operation<'a, ImportReport> {
    let rules = ImportRules {
        existing_keys: ExistingKeys::Refuse,
        if_new: false,
        transaction_documents: TRANSACTION_DOCUMENTS,
    };
    Operation::new("the import", rules, |rules, watch| {
        import_stream(store, reader, &rules, watch)
    })
}

impl Operation<'_, ImportReport> {
    /// Sets what to do with a document whose key the store has. By default it is refused.
    ///
    /// ```
    /// # use resemblance::{ExistingKeys, MinHash, Schema, Store};
    /// # let store = Store::in_memory(Schema::builder().minhash(MinHash::new(64)).build()?)?;
    /// # let mut stream = Vec::new();
    /// # store.snapshot()?.export(&mut stream).run()?;
    /// let import = store.import(&stream[..]).existing_keys(ExistingKeys::Skip).if_new(true);
    /// assert_eq!(import.run()?.read, 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn existing_keys(mut self, rule: ExistingKeys) -> Self {
        self.settings.existing_keys = rule;
        self
    }

    /// Sets whether to leave out near-duplicates of documents in the store, including those from
    /// earlier in the stream, as
    /// [`WriteTransaction::insert_many`](crate::WriteTransaction::insert_many) with `if_new` does.
    /// Existing keys are then refused or skipped. Off by default.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store};
    /// # let store = Store::in_memory(Schema::builder().minhash(MinHash::new(64)).build()?)?;
    /// # store.insert("a", &store.sketcher().hashes([1])?)?;
    /// let mut stream = Vec::new();
    /// store.snapshot()?.export(&mut stream).run()?;
    /// store.remove("a")?;
    /// store.insert("b", &store.sketcher().hashes([1])?)?;
    /// assert_eq!(store.import(&stream[..]).if_new(true).run()?.near_duplicates, 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn if_new(mut self, on: bool) -> Self {
        self.settings.if_new = on;
        self
    }

    /// Sets the maximum number of documents that one transaction reads, at least 1. Default:
    /// 10,000. A transaction ends earlier if its documents reach 16 MiB.
    ///
    /// ```
    /// # use resemblance::{ExistingKeys, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// let mut stream = Vec::new();
    /// store.snapshot()?.export(&mut stream).run()?;
    /// // Other writers wait for a hundred documents at most.
    /// let import = store.import(&stream[..]).transaction_documents(100);
    /// assert_eq!(import.existing_keys(ExistingKeys::Replace).run()?.replaced, 1);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn transaction_documents(mut self, documents: u64) -> Self {
        self.settings.transaction_documents = documents.max(1);
        self
    }
}

impl ImportRules {
    fn validate(&self) -> Result<()> {
        match self.existing_keys {
            ExistingKeys::Replace | ExistingKeys::ReplaceIfNewer if self.if_new => {
                let expected = "existing keys to be refused or skipped";
                Err(Error::invalid(
                    "if_new",
                    "with keys to be replaced",
                    expected,
                ))
            }
            _ => Ok(()),
        }
    }
}

/// The result of an import. Each document counts in [`read`](Self::read) and in one of the other
/// numbers.
///
/// ```
/// # use resemblance::{ExistingKeys, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let mut stream = Vec::new();
/// store.snapshot()?.export(&mut stream).run()?;
/// let report = store.import(&stream[..]).existing_keys(ExistingKeys::Skip).run()?;
/// assert_eq!((report.read, report.inserted, report.skipped), (1, 0, 1));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// The number of documents in the stream.
    pub read: u64,
    /// The number of documents that were inserted under a new key, or without a key.
    pub inserted: u64,
    /// The number of documents that replaced one with the same key.
    pub replaced: u64,
    /// The number of documents that were left out because the store has their key.
    pub skipped: u64,
    /// The number of documents that were left out as near-duplicates.
    pub near_duplicates: u64,
    /// The number of imported documents that were not compared with every document in their
    /// buckets, because of the store's [budget](crate::StoreOptions::probe_budget).
    pub budget_exceeded: u64,
}

/// Stores the documents of a stream, in transactions of a limited size.
fn import_stream(
    store: &Arc<OpenStore>,
    reader: impl Read,
    rules: &ImportRules,
    watch: &mut Watch<'_>,
) -> Result<ImportReport> {
    rules.validate()?;
    let reader = BufReader::with_capacity(BUFFER_BYTES, reader);
    let (mut stream, header, shape) = StreamReader::begin(reader, whole_shape_of)?;
    let context = &store.context;
    check_recipe(context, &header)?;
    if !store.writable {
        return Err(Error::ReadOnly);
    }
    let mut report = ImportReport::default();
    let mut next = || stream.next_document(&shape, context.recipe);
    let mut is_last = false;
    loop {
        let documents = report.read;
        let stopped = |source| Error::ImportStopped {
            documents,
            source: Box::new(source),
        };
        let reported = watch.report(Phase::StoringDocuments, documents, header.documents);
        reported.map_err(stopped)?;
        if is_last {
            let message = format_args!("imported: {report:?}");
            events::debug(UPKEEP, &context.path, message);
            return Ok(report);
        }
        let batch;
        (batch, is_last) = read_batch(rules, &mut next).map_err(stopped)?;
        take_in(store, &batch, rules, &mut report).map_err(stopped)?;
    }
}

/// Takes documents in, in one transaction.
fn take_in(
    store: &Arc<OpenStore>,
    batch: &[StreamDocument],
    rules: &ImportRules,
    report: &mut ImportReport,
) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    let pairs = batch.iter().map(|document| {
        let open = document.document().ok_or_else(|| {
            let place = format!("document {} of the stream", document.id);
            Error::corrupt(place, "it was changed")
        })?;
        Ok((open, &document.signature))
    });
    let pairs: Vec<StreamPair<'_>> = pairs.collect::<Result<_>>()?;
    let mut counted = *report;
    let mut transaction = WriteTransaction::begin(store)?;
    if rules.if_new {
        let novelties = transaction.insert_new(&pairs, Arbiter::Estimate)?;
        let (found, given) = (novelties.len(), pairs.len());
        invariant!(found == given, "{found} answers for {given} documents");
        for (novelty, (document, _)) in novelties.iter().zip(&pairs) {
            counted.count(novelty, document, rules)?;
        }
    } else {
        insert_by_rule(&mut transaction, &pairs, rules.existing_keys, &mut counted)?;
    }
    counted.read += batch.len() as u64;
    let counted_once =
        counted.inserted + counted.replaced + counted.skipped + counted.near_duplicates;
    let read = counted.read;
    invariant!(
        read == counted_once,
        "read {read} documents, counted {counted_once}"
    );
    transaction.commit()?;
    *report = counted;
    Ok(())
}

/// A document with its signature.
type StreamPair<'d> = (Document<'d>, &'d Signature);

impl ReportSettings for ImportReport {
    type Settings = ImportRules;
}

impl ImportReport {
    fn count(
        &mut self,
        novelty: &Novelty,
        document: &Document<'_>,
        rules: &ImportRules,
    ) -> Result<()> {
        self.budget_exceeded += u64::from(novelty.budget_exceeded().is_some());
        match novelty {
            Novelty::New { .. } => self.inserted += 1,
            Novelty::NearDuplicate(_) => self.near_duplicates += 1,
            Novelty::KeyExists(known) if rules.existing_keys == ExistingKeys::Refuse => {
                return Err(key_exists(document.key(), known.id()));
            }
            Novelty::KeyExists(_) => self.skipped += 1,
        }
        Ok(())
    }
}

fn key_exists(key: Option<&[u8]>, id: DocumentId) -> Error {
    match key {
        Some(key) => Error::KeyExists {
            key: key.to_vec(),
            id,
        },
        None => bug("a document without a key has the key of another"),
    }
}

/// Reads the documents of one transaction. Returns with them whether they are the last.
fn read_batch(
    rules: &ImportRules,
    next: &mut dyn FnMut() -> Result<Option<StreamDocument>>,
) -> Result<(Vec<StreamDocument>, bool)> {
    let mut batch = Vec::new();
    let mut size_bytes = 0;
    while (batch.len() as u64) < rules.transaction_documents && size_bytes < TRANSACTION_BYTES {
        let Some(document) = next()? else {
            return Ok((batch, true));
        };
        size_bytes += document.size_bytes();
        batch.push(document);
    }
    Ok((batch, false))
}

/// Checks that documents of a stream can be compared with those of the store, and indexed as they are.
fn check_recipe(context: &SharedContext, header: &StreamHeader) -> Result<()> {
    if let Some(difference) = context.schema.recipe_difference(&header.schema) {
        return Err(Error::OtherRecipe {
            part: difference.part,
            found: difference.found,
            expected: difference.expected,
        });
    }
    let expected = (context.recipe.fingerprint, context.sketcher.self_test()?);
    let plain = header.schema.sketcher().recipe_mark().fingerprint;
    let is_weighted = context.schema.weights().is_some() || header.self_test.0 != plain;
    if is_weighted && header.self_test.0 != expected.0 {
        let has = header.self_test.0 != plain;
        return Err(Error::OtherRecipe {
            part: "weights of features",
            found: if has { "others" } else { "none" }.into(),
            expected: context.schema.weights_in_words(),
        });
    }
    if header.self_test != expected {
        let found = header.self_test;
        let detail = format!("found {found:016x?} in the stream, expected {expected:016x?}");
        return Err(Error::SelfTest { detail });
    }
    let (shape, own) = (shape_of(&header.schema), context.shape());
    let bits =
        |layout: Option<resemblance_sketch::sketch::ValueLayout>| layout.map_or(0, |l| l.bits());
    let (found, expected) = (bits(shape.values), bits(own.values));
    // Wider values are cut; bottom-k is another recipe.
    if found < expected {
        return Err(Error::OtherRecipe {
            part: "bits of a value",
            found: found.to_string(),
            expected: expected.to_string(),
        });
    }
    Ok(())
}

/// Inserts documents, and applies the rule for existing keys.
fn insert_by_rule(
    transaction: &mut WriteTransaction,
    documents: &[StreamPair<'_>],
    rule: ExistingKeys,
    report: &mut ImportReport,
) -> Result<()> {
    transaction.check_many(documents)?;
    transaction.change(|writer| {
        let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.key()).collect();
        let known = find_keys(writer.view(), &keys)?;
        let mut batch_keys = HashMap::new();
        for ((document, signature), known) in documents.iter().zip(known) {
            let key = document.key();
            // A stream may have a key twice.
            let holder = key.and_then(|key| batch_keys.get(key).copied().or(known));
            if let Some(holder) = holder {
                if !replaces(writer, document, holder, rule)? {
                    report.skipped += 1;
                    continue;
                }
                writer.remove_document(holder)?;
                writer.counters.count.replaced.add(1);
                report.replaced += 1;
            } else {
                report.inserted += 1;
            }
            let id = writer.store_document(document, signature)?;
            batch_keys.extend(key.map(|key| (key, id.get())));
        }
        Ok(())
    })
}

/// Returns whether a document replaces the one with its key.
fn replaces(
    writer: &Writer,
    document: &Document<'_>,
    holder: u64,
    rule: ExistingKeys,
) -> Result<bool> {
    match rule {
        ExistingKeys::Refuse => Err(key_exists(document.key(), DocumentId::new(holder))),
        ExistingKeys::Skip => Ok(false),
        ExistingKeys::Replace => Ok(true),
        ExistingKeys::ReplaceIfNewer => {
            let held = writer.view().document_of(holder, false)?;
            Ok(held.is_none_or(|held| held.stamp < document.stamp))
        }
    }
}
