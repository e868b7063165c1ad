//! Insertion of many documents at once.

use std::collections::HashMap;

use crate::error::{Error, Result};
use crate::query::{Bounds, Budget, Earlier, Outside, Pieces, Resolved, Scored, Told, batch};
use crate::sketch::Signature;
use crate::transaction::WriteTransaction;
use crate::types::{Document, DocumentId, Novelty};
use crate::write::duplicate_check::Lookup;
use crate::write::writer::Writer;

/// A document with its signature.
pub(crate) type Pair<'d> = (Document<'d>, &'d Signature);

impl WriteTransaction {
    /// [`insert_document`](Self::insert_document) for many, all or none: the keys are looked up
    /// together before anything is inserted. Their ids, in the order of the documents.
    ///
    /// # Errors
    ///
    /// As [`insert_document`](Self::insert_document), and nothing of the batch is inserted: bad
    /// input says its index in the batch. [`Error::KeyExists`] for the first key that is there or
    /// that an earlier document of the batch has; the id is then the one that this would have got.
    ///
    /// ```
    /// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let batch = [(Document::new("a"), &page), (Document::new("b"), &page)];
    /// assert_eq!(transaction.insert_many(&batch)?.len(), 2);
    ///
    /// let batch = [(Document::new("c"), &page), (Document::new("b"), &page)];
    /// assert!(matches!(transaction.insert_many(&batch), Err(Error::KeyExists { .. })));
    /// assert!(!transaction.contains("c")?);
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert_many(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<Vec<DocumentId>> {
        self.check_many(documents)?;
        self.change(|writer| {
            let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.row.key).collect();
            if let Some((key, id)) = first_taken(writer, &keys)? {
                let (key, id) = (key.to_vec(), DocumentId::new(id));
                return Err(Error::KeyExists { key, id });
            }
            let stored = documents.iter().map(|(d, s)| writer.store_document(d, s));
            stored.collect()
        })
    }

    /// [`insert_document_if_new`](Self::insert_document_if_new) for many, one after the other: what
    /// was there before is looked up together, and every document of the batch is also compared with
    /// those before it. What was found, in the order of the documents.
    ///
    /// # Errors
    ///
    /// As [`insert_document_if_new`](Self::insert_document_if_new); for bad input, which says its
    /// index in the batch, nothing of the batch is inserted.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Novelty, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let page = store.sketch_text("some text or other")?;
    /// let other = store.sketch_text("something quite different")?;
    /// let mut transaction = store.begin_write()?;
    /// let found = transaction.insert_many_if_new(&[
    ///     (Document::new("a"), &page),
    ///     (Document::new("b"), &page),
    ///     (Document::new("c"), &other),
    ///     (Document::new("c"), &page),
    /// ])?;
    /// assert!(matches!(
    ///     found[..],
    ///     [Novelty::New(_), Novelty::NearDuplicate(_), Novelty::New(_), Novelty::SameKey(_)]
    /// ));
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert_many_if_new(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<Vec<Novelty>> {
        self.insert_new(documents, None)
    }

    /// [`insert_many_if_new`](Self::insert_many_if_new) with every candidate verified, those too
    /// whose estimate is not within the bounds: as [`Query::verify`](crate::Query::verify). The
    /// closure is given the index of a document and what it may resemble, each two at most once,
    /// and does not see this transaction. The [`Match`](crate::Match) of a key that is there
    /// already remains an estimate.
    ///
    /// # Errors
    ///
    /// As [`insert_many_if_new`](Self::insert_many_if_new). After an error of the closure, or a
    /// value that is not 0 to 1, the transaction can only be rolled back.
    ///
    /// ```
    /// # use resemblance::{Document, Earlier, MinHash, Novelty, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let texts = ["some text or other", "some text or other"];
    /// let page = store.sketch_text(texts[0])?;
    /// let batch = [(Document::new("a"), &page), (Document::new("b"), &page)];
    /// let mut transaction = store.begin_write()?;
    /// let found = transaction.insert_many_if_new_verified(&batch, |index, earlier| {
    ///     Ok(match earlier {
    ///         Earlier::OfBatch(other) => Some(f64::from(texts[index] == texts[other])),
    ///         Earlier::Stored(_) => None, // its text is not at hand
    ///     })
    /// })?;
    /// assert!(matches!(&found[1], Novelty::NearDuplicate(found) if found.is_exact()));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert_many_if_new_verified(
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
            let mut insertion = Insertion {
                bounds: Bounds::new().resolve(&writer.store.core.schema, false)?,
                budget: writer.store.core.options.budget()?,
                first_id: writer.state.next_id,
                ask,
                novelties: Vec::with_capacity(documents.len()),
                inserted: Vec::new(),
            };
            let mut pieces = Pieces::of(documents.len());
            while let Some(range) = pieces.next() {
                let piece = documents.get(range.clone()).unwrap_or_default();
                match Lookup::of(writer, piece, &insertion)? {
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
    let known = batch::find_keys(writer.source(), keys)?;
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
pub(crate) struct Insertion<'v> {
    pub(crate) bounds: Resolved,
    pub(crate) budget: Option<Budget>,
    /// Documents from here on are of the batch.
    first_id: u64,
    pub(crate) ask: Option<&'v AskOfBatch<'v>>,
    /// Of the documents that were dealt with.
    pub(crate) novelties: Vec<Novelty>,
    /// Which documents of the batch were inserted, in the order of their ids, which have no gaps.
    pub(crate) inserted: Vec<usize>,
}

impl Insertion<'_> {
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
