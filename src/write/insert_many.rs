//! Inserts many documents at once.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::query::{Earlier, ExactSimilarity, Outside, find_keys, in_batch};
use crate::types::{Document, DocumentId, Novelty};
use crate::write::batch::{Arbiter, BatchTarget, insert_batch};
use crate::write::transaction::WriteTransaction;
use crate::write::writer::Writer;
use resemblance_sketch::sketch::Signature;

/// An insertion of many documents, which `run` performs. [`WriteTransaction::insert_many`] creates
/// it.
///
/// Without [`if_new`](Self::if_new) it inserts all of them or none, and `run` returns their ids in the same order.
/// With it, `run` returns a [`Novelty`] for each.
///
/// ```
/// # use resemblance::{Document, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # let mut transaction = store.begin_write()?;
/// let batch = [(Document::new("a"), &page), (Document::new("b"), &page)];
/// let found = transaction.insert_many(&batch).if_new().run()?;
/// assert!(found[0].is_new() && !found[1].is_new());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "nothing is inserted before it is run"]
pub struct InsertMany<'a, A> {
    transaction: &'a mut WriteTransaction,
    documents: &'a [(Document<'a>, &'a Signature)],
    verify: Option<Box<VerifyEarlier<'a>>>,
    answer: PhantomData<fn() -> A>,
}

/// Returns how similar a document of the batch is to an earlier one; a similarity below the floor may be any
/// number below it.
type VerifyEarlier<'a> = dyn Fn(usize, Earlier, f64) -> ExactSimilarity + 'a;

impl<A> fmt::Debug for InsertMany<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InsertMany")
            .field("documents", &self.documents.len())
            .field("verifies", &self.verify.is_some())
            .finish_non_exhaustive()
    }
}

impl<'a> InsertMany<'a, DocumentId> {
    /// Inserts only documents that are new, one after another. The stored documents are searched
    /// for the whole batch together. Each document is also compared with those before it in the
    /// batch.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Novelty, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("some text or other")?;
    /// let other = store.sketch_text("something quite different")?;
    /// let batch = [
    ///     (Document::new("a"), &page),
    ///     (Document::new("b"), &page),
    ///     (Document::new("c"), &other),
    ///     (Document::new("c"), &page),
    /// ];
    /// let mut transaction = store.begin_write()?;
    /// let found = transaction.insert_many(&batch).if_new().run()?;
    /// assert!(matches!(
    ///     found[..],
    ///     [Novelty::New { .. }, Novelty::NearDuplicate(_), Novelty::New { .. }, Novelty::KeyExists(_)]
    /// ));
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn if_new(self) -> InsertMany<'a, Novelty> {
        InsertMany {
            transaction: self.transaction,
            documents: self.documents,
            verify: self.verify,
            answer: PhantomData,
        }
    }

    /// Inserts all documents or, if a key is taken, none, and returns their ids in the same order.
    ///
    /// # Errors
    ///
    /// The errors of [`WriteTransaction::insert`], with the index of the bad document in the batch;
    /// nothing of the batch is inserted. [`Error::KeyExists`] for the first key that the store or
    /// an earlier document of the batch has; in the latter case, the error contains the id that the
    /// earlier document would have had.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # let mut transaction = store.begin_write()?;
    /// let batch = [(Document::new("a"), &page), (Document::new("b"), &page)];
    /// let ids = transaction.insert_many(&batch).run()?;
    /// assert_eq!(ids.len(), 2);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn run(self) -> Result<Vec<DocumentId>> {
        self.transaction.insert_all(self.documents)
    }
}

impl<'a> InsertMany<'a, Novelty> {
    /// Verifies every candidate, including those whose estimate is not within the bounds, as
    /// [`Query::verify`](crate::Query::verify) does. The closure receives the index of a document
    /// and the document that it may resemble, and does not see this transaction. It is called for
    /// documents with an equal signature first. The first of them for which it returns a similarity
    /// of 1, or (with MinHash values) `None`, is the match, and the closure is called for no other
    /// document. The [`Match`](crate::Match) of an existing key remains an estimate.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Novelty, Schema, Store, Text, search::Earlier};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let texts = ["some text or other", "some text or other"];
    /// let page = store.sketch_text(texts[0])?;
    /// let batch = [(Document::new("a"), &page), (Document::new("b"), &page)];
    /// let mut transaction = store.begin_write()?;
    /// let insert = transaction.insert_many(&batch).if_new().verify(|index, earlier| {
    ///     Ok(match earlier {
    ///         Earlier::OfBatch(other) => Some(f64::from(texts[index] == texts[other])),
    ///         _ => None, // its text is not available
    ///     })
    /// });
    /// let found = insert.run()?;
    /// assert!(matches!(&found[1], Novelty::NearDuplicate(found) if found.is_exact()));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn verify(self, similarity: impl Fn(usize, Earlier) -> Result<Option<f64>> + 'a) -> Self {
        self.verify_from(move |index, earlier, _| similarity(index, earlier))
    }

    /// Verifies as [`verify`](Self::verify) does. The closure also receives the minimum similarity
    /// that matters. If the similarity is lower, the closure may return any lower number.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("some text or other")?;
    /// let batch = [(Document::new("a"), &page), (Document::new("b"), &page)];
    /// let mut transaction = store.begin_write()?;
    /// let insert = transaction.insert_many(&batch).if_new();
    /// let found = insert.verify_from(|_, _, floor| Ok(Some(floor / 2.0))).run()?;
    /// assert!(found.iter().all(|novelty| novelty.is_new()));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn verify_from(
        self,
        similarity: impl Fn(usize, Earlier, f64) -> Result<Option<f64>> + 'a,
    ) -> Self {
        Self {
            verify: Some(Box::new(similarity)),
            ..self
        }
    }

    /// Inserts the documents that are new, and returns one answer for each in the same order.
    ///
    /// # Errors
    ///
    /// The errors of [`WriteTransaction::insert_if_new`], with the index of the bad document in the
    /// batch; nothing of the batch is inserted. After an error of a closure that verifies, or a
    /// value outside 0 to 1, the transaction can only be rolled back.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # let mut transaction = store.begin_write()?;
    /// let batch = [(Document::new("a"), &page), (Document::new("b"), &page)];
    /// let found = transaction.insert_many(&batch).if_new().run()?;
    /// assert!(found[0].is_new() && !found[1].is_new());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn run(self) -> Result<Vec<Novelty>> {
        let Some(verify) = &self.verify else {
            return self
                .transaction
                .insert_new(self.documents, Arbiter::Estimate);
        };
        let outside = Outside::default();
        let ask = |index, earlier, floor| outside.ask(|| verify(index, earlier, floor));
        let arbiter = Arbiter::Caller(&ask);
        let novelties = self.transaction.insert_new(self.documents, arbiter);
        outside.leave(novelties)
    }
}

impl WriteTransaction {
    /// Begins to insert many documents; [`run`](InsertMany::run) performs it. It inserts all of
    /// them or none or, with [`if_new`](InsertMany::if_new), each that is new. All keys are looked
    /// up before anything is inserted.
    ///
    /// ```
    /// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let batch = [(Document::new("a"), &page), (Document::new("b"), &page)];
    /// assert_eq!(transaction.insert_many(&batch).run()?.len(), 2);
    ///
    /// let batch = [(Document::new("c"), &page), (Document::new("b"), &page)];
    /// assert!(matches!(transaction.insert_many(&batch).run(), Err(Error::KeyExists { .. })));
    /// assert!(!transaction.contains("c")?);
    /// let found = transaction.insert_many(&batch).if_new().run()?;
    /// assert!(found.iter().all(|novelty| !novelty.is_new()));
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[doc(alias = "insert_many_if_new")]
    pub fn insert_many<'a>(
        &'a mut self,
        documents: &'a [(Document<'a>, &'a Signature)],
    ) -> InsertMany<'a, DocumentId> {
        InsertMany {
            transaction: self,
            documents,
            verify: None,
            answer: PhantomData,
        }
    }

    pub(crate) fn insert_all(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<Vec<DocumentId>> {
        self.check_many(documents)?;
        self.change(|writer| {
            let keys: Vec<Option<&[u8]>> = documents.iter().map(|(d, _)| d.key()).collect();
            if let Some(error) = first_taken(writer, &keys)? {
                return Err(error);
            }
            let stored = documents.iter().map(|(d, s)| writer.store_document(d, s));
            stored.collect()
        })
    }

    pub(crate) fn insert_new(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
        arbiter: Arbiter<'_>,
    ) -> Result<Vec<Novelty>> {
        self.check_many(documents)?;
        let novelties = self.change(|writer| insert_batch(writer, documents, arbiter))?;
        novelties.iter().for_each(|it| self.note_answer(it));
        Ok(novelties)
    }

    pub(crate) fn check_many(&self, documents: &[(Document<'_>, &Signature)]) -> Result<()> {
        check_batch(documents, |document, signature| {
            self.check(document, signature)
        })
    }
}

/// Checks the documents of a batch. An error contains the index of the wrong document.
pub(crate) fn check_batch(
    documents: &[(Document<'_>, &Signature)],
    check: impl Fn(&Document<'_>, &Signature) -> Result<()>,
) -> Result<()> {
    for (index, (document, signature)) in documents.iter().enumerate() {
        check(document, signature).map_err(|error| in_batch(error, index))?;
    }
    Ok(())
}

impl BatchTarget for Writer {
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

    fn store_alone(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        self.store_alone(document, signature)
    }
}

/// Returns the error of the first key that the store or an earlier document of the batch has.
fn first_taken(writer: &Writer, keys: &[Option<&[u8]>]) -> Result<Option<Error>> {
    let stored = find_keys(writer.view(), keys)?;
    let mut in_batch = HashMap::new();
    for ((key, stored), id) in keys.iter().zip(stored).zip(writer.state.next_id..) {
        // A document without a key meets no other by key.
        let Some(key) = *key else {
            continue;
        };
        if let Some(holder) = stored.or_else(|| in_batch.insert(key, id)) {
            return Ok(Some(Error::KeyExists {
                key: key.to_vec(),
                id: DocumentId::new(holder),
            }));
        }
    }
    Ok(None)
}
