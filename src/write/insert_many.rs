//! BatchInsert of many documents at once.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::query::{Bounds, Budget, Earlier, Outside, Pieces, ResolvedBounds, Scored, Told, batch};
use crate::sketch::Signature;
use crate::types::{Document, DocumentId, Novelty};
use crate::write::duplicate_check::BatchCheck;
use crate::write::transaction::Transaction;
use crate::write::writer::Writer;

/// A document with its signature.
pub(crate) type Pair<'d> = (Document<'d>, &'d Signature);

impl Transaction {
    pub(crate) fn insert_many(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<Vec<DocumentId>> {
        self.check_many(documents)?;
        self.change(|writer| {
            let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.key).collect();
            if let Some((key, id)) = first_taken(writer, &keys)? {
                let (key, id) = (key.to_vec(), DocumentId::new(id));
                return Err(Error::KeyExists { key, id });
            }
            let stored = documents.iter().map(|(d, s)| writer.store_document(d, s));
            stored.collect()
        })
    }

    pub(crate) fn insert_many_if_new(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<Vec<Novelty>> {
        self.insert_new(documents, None)
    }

    pub(crate) fn insert_many_if_new_verified(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
        similarity: impl Fn(usize, Earlier) -> Result<Option<f64>>,
    ) -> Result<Vec<Novelty>> {
        let outside = Outside::default();
        let ask = |index, earlier| outside.ask(|| similarity(index, earlier));
        let novelties = self.insert_new(documents, Some(&ask));
        outside.leave();
        novelties
    }

    fn insert_new(
        &mut self,
        documents: &[Pair<'_>],
        ask: Option<&AskOfBatch<'_>>,
    ) -> Result<Vec<Novelty>> {
        self.check_many(documents)?;
        self.change(|writer| {
            let mut insertion = BatchInsert {
                bounds: Bounds::new().resolve(&writer.store.context.schema, false)?,
                budget: Budget::from_options(&writer.store.context.options)?,
                first_id: writer.state.next_id,
                ask,
                novelties: Vec::with_capacity(documents.len()),
                inserted: Vec::new(),
            };
            let mut pieces = Pieces::of(documents.len());
            while let Some(range) = pieces.next() {
                let piece = documents.get(range.clone()).unwrap_or_default();
                match BatchCheck::of(writer, piece, &insertion)? {
                    Some(lookup) => lookup.insert_new(writer, &mut insertion)?,
                    None => pieces.halve(range),
                }
            }
            Ok(insertion.novelties)
        })
        .inspect(|all| {
            all.iter().for_each(|novelty| self.note_answer(novelty));
        })
    }

    pub(crate) fn check_many(&self, documents: &[Pair<'_>]) -> Result<()> {
        let mut checks = documents.iter().enumerate();
        checks.try_for_each(|(index, (document, signature))| {
            let checked = self.check(document, signature);
            checked.map_err(|error| batch::in_batch(error, index))
        })
    }
}

/// The first key that the store or an earlier document of the batch has, and whose it is.
fn first_taken<'k>(writer: &Writer, keys: &[Option<&'k [u8]>]) -> Result<Option<(&'k [u8], u64)>> {
    let known = batch::find_keys(writer.view(), keys)?;
    let mut earlier = HashMap::new();
    for ((key, known), id) in keys.iter().zip(known).zip(writer.state.next_id..) {
        let Some(key) = *key else {
            continue;
        };
        if let Some(holder) = known.or_else(|| earlier.insert(key, id)) {
            return Ok(Some((key, holder)));
        }
    }
    Ok(None)
}

/// Asks the caller about a document of the batch and an earlier one.
pub(crate) type AskOfBatch<'v> = dyn Fn(usize, Earlier) -> Told + 'v;

/// A batch on its way into the store.
pub(crate) struct BatchInsert<'v> {
    pub(crate) bounds: ResolvedBounds,
    pub(crate) budget: Option<Budget>,
    /// Documents from here on are of the batch.
    first_id: u64,
    pub(crate) ask: Option<&'v AskOfBatch<'v>>,
    /// Of the documents that were dealt with.
    pub(crate) novelties: Vec<Novelty>,
    /// Which documents of the batch were inserted, in the order of their ids, which have no gaps.
    pub(crate) inserted: Vec<usize>,
}

impl BatchInsert<'_> {
    /// Whether every document is asked about by itself: one that meets more than the budget allows for
    /// would make the caller verify some others twice.
    pub(crate) fn asks_alone(&self) -> bool {
        self.ask.is_some() && self.budget.is_some()
    }

    /// Keeps the better one of those that are within the bounds.
    pub(crate) fn keep_nearer(&self, nearest: &mut Option<Scored>, scored: Scored) {
        if scored.is_within(&self.bounds)
            && nearest.is_none_or(|nearest| scored.rank() < nearest.rank())
        {
            *nearest = Some(scored);
        }
    }

    /// Verifies a candidate of the document at an index, if that is wanted.
    pub(crate) fn settle(&self, index: usize, scored: &mut Scored) -> Result<()> {
        if let Some(ask) = self.ask {
            scored.settle(ask(index, self.earlier(scored.id))?);
        }
        Ok(())
    }

    /// How a document that is there is known to the caller.
    pub(crate) fn earlier(&self, id: u64) -> Earlier {
        let place = id.checked_sub(self.first_id);
        let of_batch = place.and_then(|place| self.inserted.get(usize::try_from(place).ok()?));
        match of_batch {
            Some(other) => Earlier::OfBatch(*other),
            None => Earlier::Stored(DocumentId::new(id)),
        }
    }
}
