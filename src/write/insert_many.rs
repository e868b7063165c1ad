//! Inserting many documents at once.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::invariant::invariant;
use crate::query::{Bounds, Budget, Earlier, Outside, find_keys, for_each_piece, in_batch};
use crate::read::ReadView;
use crate::sketch::Signature;
use crate::types::{Document, DocumentId, Novelty};
use crate::write::batch_check::{AskAnyCaller, AskCaller, BatchCheck, BatchInsert, BatchTarget};
use crate::write::batch_dedup::BatchDocument;
use crate::write::transaction::Transaction;
use crate::write::writer::Writer;

impl Transaction {
    /// Inserts all documents or, if a key is taken, none, and returns their ids in the same order.
    pub(crate) fn insert_many(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<Vec<DocumentId>> {
        self.check_many(documents)?;
        self.change(|writer| {
            let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.key()).collect();
            if let Some((key, id)) = first_taken(writer, &keys)? {
                let (key, id) = (key.to_vec(), DocumentId::new(id));
                return Err(Error::KeyExists { key, id });
            }
            let stored = documents.iter().map(|(d, s)| writer.store_document(d, s));
            stored.collect()
        })
    }

    /// Inserts each document that is new beside the store and those before it in the batch, and
    /// returns one answer a document in the same order.
    pub(crate) fn insert_many_if_new(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<Vec<Novelty>> {
        self.insert_new(documents, None)
    }

    /// [`insert_many_if_new`](Self::insert_many_if_new), where this crate says how similar a document is to
    /// each candidate.
    pub(crate) fn insert_many_if_new_asking(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
        ask: &AskCaller<'_>,
    ) -> Result<Vec<Novelty>> {
        self.insert_new(documents, Some(ask))
    }

    /// [`insert_many_if_new`](Self::insert_many_if_new), where the caller says how similar a document
    /// is to each candidate.
    pub(crate) fn insert_many_if_new_verified(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
        similarity: impl Fn(usize, Earlier) -> Result<Option<f64>>,
    ) -> Result<Vec<Novelty>> {
        let outside = Outside::default();
        let ask = |index, earlier, _: f64| outside.ask(|| similarity(index, earlier));
        let novelties = self.insert_new(documents, Some(&ask));
        outside.leave();
        novelties
    }

    fn insert_new(
        &mut self,
        documents: &[BatchDocument<'_>],
        ask: Option<&AskCaller<'_>>,
    ) -> Result<Vec<Novelty>> {
        self.check_many(documents)?;
        self.change(|writer| insert_batch(writer, documents, ask))
            .inspect(|all| {
                all.iter().for_each(|novelty| self.note_answer(novelty));
            })
    }

    pub(crate) fn check_many(&self, documents: &[BatchDocument<'_>]) -> Result<()> {
        check_batch(documents, |document, signature| {
            self.check(document, signature)
        })
    }
}

/// Checks the documents of a batch; an error names the one that is wrong.
pub(crate) fn check_batch(
    documents: &[BatchDocument<'_>],
    check: impl Fn(&Document<'_>, &Signature) -> Result<()>,
) -> Result<()> {
    for (index, (document, signature)) in documents.iter().enumerate() {
        check(document, signature).map_err(|error| in_batch(error, index))?;
    }
    Ok(())
}

impl<A: AskAnyCaller + ?Sized> BatchTarget<A> for Writer {
    fn view(&self) -> &dyn ReadView {
        self.view()
    }

    fn next_id(&self) -> u64 {
        self.state.next_id
    }

    fn store_document(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        self.store_document(document, signature)
    }
}

/// Inserts each valid document of a batch that is new beside what is there and those before it, and
/// returns one answer a document in the same order. The caller says how similar two are, if `ask` is
/// given.
pub(crate) fn insert_batch<A: AskAnyCaller + ?Sized>(
    target: &mut impl BatchTarget<A>,
    documents: &[BatchDocument<'_>],
    ask: Option<&A>,
) -> Result<Vec<Novelty>> {
    let context = target.view().context();
    let bounds = Bounds::new().resolve(&context.schema, false)?;
    let budget = Budget::from_options(&context.options)?;
    let mut insert = BatchInsert::new(bounds, budget, target.next_id(), ask);
    // The store is asked about a whole piece at a time. A piece with too many candidates for the
    // memory is halved and both halves are asked about again.
    for_each_piece(documents, |piece| {
        let Some(check) = BatchCheck::new(target, piece, &insert)? else {
            return Ok(false);
        };
        check.insert_new(target, &mut insert)?;
        Ok(true)
    })?;
    let (answers, expected) = (insert.novelties.len(), documents.len());
    invariant!(
        answers == expected,
        "{answers} answers for a batch of {expected} documents"
    );
    Ok(insert.novelties)
}

/// Returns the first key that the store or an earlier document of the batch has, with the id of that
/// document.
fn first_taken<'k>(writer: &Writer, keys: &[Option<&'k [u8]>]) -> Result<Option<(&'k [u8], u64)>> {
    let stored = find_keys(writer.view(), keys)?;
    let mut in_batch = HashMap::new();
    for ((key, stored), id) in keys.iter().zip(stored).zip(writer.state.next_id..) {
        // A document without a key meets no other by key.
        let Some(key) = *key else {
            continue;
        };
        if let Some(holder) = stored.or_else(|| in_batch.insert(key, id)) {
            return Ok(Some((key, holder)));
        }
    }
    Ok(None)
}
