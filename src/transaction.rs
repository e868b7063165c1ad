//! The façade of a write transaction: every method is a call of the room that does the work.

use std::borrow::Cow;
use std::fmt;

use crate::corpus::verification::{self, FeatureSets, SketchedText};
use crate::error::Result;
use crate::query::{ContainmentQuery, Earlier, Nearest, OneOrMany, Query, ShareOf};
use crate::sketch::Signature;
use crate::types::{Document, DocumentId, Novelty, Record, Upserted};
use crate::write::Transaction;

#[cfg(doc)]
use crate::error::Error;

/// Changes that become visible and durable together, at [`commit`](Self::commit). A transaction reads its
/// own writes, and dropping it rolls them back. A store has one at a time. It may be moved to another
/// thread. It belongs to the thread that changed it last: there, waiting for another write transaction would
/// never end and is [`Error::Busy`].
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// let page = store.sketch_text("some text or other")?;
/// let mut transaction = store.begin_write()?;
/// transaction.insert("a", &page)?;
/// assert!(!transaction.insert_if_new("b", &page)?.is_new()); // it sees what it has written
/// assert_eq!(transaction.len(), 1);
/// transaction.commit()?;
/// assert!(store.snapshot()?.contains("a")?);
///
/// let mut transaction = store.begin_write()?;
/// transaction.remove("a")?;
/// drop(transaction); // rolls it back
/// assert!(store.snapshot()?.contains("a")?);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "dropping a transaction rolls it back"]
pub struct WriteTransaction {
    transaction: Transaction,
}

impl fmt::Debug for WriteTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.transaction.fmt(f)
    }
}

impl WriteTransaction {
    pub(crate) fn new(transaction: Transaction) -> Self {
        Self { transaction }
    }

    /// Inserts a document, under a key that must be free or without one.
    ///
    /// # Errors
    ///
    /// [`Error::KeyExists`] if the key is there, [`Error::InvalidParameter`] for a key of more than
    /// 4,096 bytes or a payload of more than 64 MiB, [`Error::SignatureMismatch`] for a signature that does not fit the schema: the
    /// transaction can go on then. After [`Error::Corrupt`], [`Error::Io`] and [`Error::Bug`] it can only be
    /// rolled back.
    pub fn insert<'d>(
        &mut self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        self.transaction.insert(&document.into(), signature)
    }

    /// Inserts a document in place of the one with the same key, if there is one, and compares the two:
    /// see [`Upserted::revision`]. A document whose signature is unchanged keeps its id.
    ///
    /// Stamp and payload are those given, whatever the old document had; [`touch`](Self::touch) renews a
    /// stamp alone. If the signature is unchanged, only stamp and payload are written. If these are
    /// unchanged as well, nothing is written, and a transaction without other changes commits without a
    /// sync. A document without a key replaces nothing.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), without `KeyExists`.
    ///
    /// ```
    /// # use resemblance::{MinHash, Revision, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let first = transaction.upsert(("page/1", "a title"), &page)?;
    /// let second = transaction.upsert(("page/1", "another title"), &page)?;
    /// assert!(matches!(second.revision, Revision::Unchanged(_)));
    /// assert_eq!(second.id, first.id);
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn upsert<'d>(
        &mut self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<Upserted> {
        self.transaction.upsert(&document.into(), signature)
    }

    /// Inserts a document unless the store has its key or a near-duplicate of it.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), without `KeyExists`.
    pub fn insert_if_new<'d>(
        &mut self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<Novelty> {
        self.transaction.insert_if_new(&document.into(), signature)
    }

    /// Gives the document with a key another stamp, later or earlier, and returns its id if there is one. Id,
    /// payload and signature stay. Nothing is written if the stamp is the same.
    ///
    /// ```
    /// use resemblance::Document;
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let signature = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let id = transaction.insert(Document::new("a").stamp(20), &signature)?;
    /// assert_eq!(transaction.touch("a", 21)?, Some(id));
    /// assert_eq!(transaction.touch("b", 21)?, None);
    /// assert_eq!(transaction.get_id(id)?.map(|record| record.stamp()), Some(21));
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`]: the transaction can only be rolled back.
    pub fn touch(&mut self, key: impl AsRef<[u8]>, stamp: u64) -> Result<Option<DocumentId>> {
        self.transaction.touch(key.as_ref(), stamp)
    }

    /// Gives the document with an id another stamp, as [`touch`](Self::touch) does; whether there is
    /// one.
    ///
    /// # Errors
    ///
    /// As [`touch`](Self::touch).
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let id = transaction.insert(Document::without_key().stamp(20), &page)?;
    /// assert!(transaction.touch_id(id, 21)?);
    /// assert_eq!(transaction.get_id(id)?.map(|record| record.stamp()), Some(21));
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn touch_id(&mut self, id: DocumentId, stamp: u64) -> Result<bool> {
        self.transaction.touch_id(id, stamp)
    }

    /// Removes the document under a key; its id if there was one.
    ///
    /// Nothing finds it any more. Its key, payload and signature stay in the file until a merge drops
    /// them, or [`Store::compact`](crate::Store::compact), and as bytes of free pages until these are
    /// used again.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`]: the transaction can only be rolled back.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<Option<DocumentId>> {
        self.transaction.remove(key.as_ref())
    }

    /// Removes the document with an id, as [`remove`](Self::remove) does; whether there was one.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let id = transaction.insert(Document::without_key(), &page)?;
    /// assert!(transaction.remove_id(id)?);
    /// assert!(!transaction.remove_id(id)?);
    /// assert!(transaction.is_empty());
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn remove_id(&mut self, id: DocumentId) -> Result<bool> {
        self.transaction.remove_id(id)
    }

    /// Returns the document with a key, as this transaction has left it.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// transaction.insert(("a", "a payload"), &page)?;
    /// assert_eq!(transaction.get("a")?.map(|record| record.payload().len()), Some(9));
    /// assert_eq!(store.snapshot()?.get("a")?, None); // not committed yet
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Record>> {
        self.transaction.get(key.as_ref())
    }

    /// Returns the document with an id, as this transaction has left it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let id = transaction.insert("a", &page)?;
    /// let record = transaction.get_id(id)?.expect("it is there");
    /// assert_eq!(record.key(), Some(&b"a"[..]));
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        self.transaction.get_id(id)
    }

    /// Returns true if there is a document with this key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// if !transaction.contains("a")? {
    ///     transaction.insert("a", &page)?;
    /// }
    /// assert!(transaction.contains("a")?);
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.transaction.contains(key.as_ref())
    }

    /// Returns the number of documents, with this transaction's changes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.transaction.len()
    }

    /// Returns true if there are no documents.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// let mut transaction = store.begin_write()?;
    /// transaction.remove("a")?;
    /// assert!(transaction.is_empty());
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins a query for documents that are near a signature, or near each of many, this transaction's own included.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// transaction.insert("a", &page)?;
    /// let matches = transaction.query(&page).limit(1).run()?;
    /// assert_eq!(matches[0].key(), Some(&b"a"[..]));
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn query<'a, Q: OneOrMany + ?Sized>(&'a self, signatures: &'a Q) -> Query<'a, Q::Answer> {
        Query::new(
            self.transaction.view(),
            Cow::Borrowed(signatures.signatures()),
        )
    }

    /// Begins a query for documents that contain a text, given by its signature, or each of many texts: *is
    /// this paragraph in that page?* [`min_share`](ContainmentQuery::min_share) says how much of it.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// let containment = Containment::new(2).window(3); // finds each passage of 4 words
    /// let schema = Schema::builder().text(Text::words(2)).containment(containment).build()?;
    /// let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let mut transaction = store.begin_write()?;
    /// let page = store.sketch_text("the quick brown fox jumps over the lazy dog")?;
    /// transaction.insert("page", &page)?;
    /// let texts = ["brown fox jumps over", "a text about something else"];
    /// let texts = texts.map(|text| store.sketch_text(text)).into_iter();
    /// let texts = texts.collect::<resemblance::Result<Vec<_>>>()?;
    /// let answers = transaction.contained_in(&texts).run()?;
    /// assert_eq!(answers[0][0].key(), Some(&b"page"[..]));
    /// assert!(answers[1].is_empty());
    /// # drop(answers);
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn contained_in<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
    ) -> ContainmentQuery<'a, Q::Overlaps> {
        self.about_passages(signatures, ShareOf::Query)
    }

    /// Begins a query for documents that a text contains, given by its signature, or that each of many texts
    /// contains. [`min_share`](ContainmentQuery::min_share) says how much of them.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let containment = Containment::new(2).window(3);
    /// # let schema = Schema::builder().text(Text::words(2)).containment(containment).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// store.insert("sentence", &store.sketch_text("the quick brown fox jumps")?)?;
    /// let page = store.sketch_text("yes the quick brown fox jumps over the lazy dog")?;
    /// let transaction = store.begin_write()?;
    /// let found = transaction.contents_of(&page).run()?;
    /// assert_eq!((found.len(), found[0].document_share()), (1, 1.0));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn contents_of<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
    ) -> ContainmentQuery<'a, Q::Overlaps> {
        self.about_passages(signatures, ShareOf::Document)
    }

    /// Begins a query for documents that share any passage with a text, given by its signature, or with each
    /// of many texts.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let containment = Containment::new(2).window(3);
    /// # let schema = Schema::builder().text(Text::words(2)).containment(containment).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// store.insert("sentence", &store.sketch_text("the quick brown fox jumps")?)?;
    /// let page = store.sketch_text("yes the quick brown fox jumps over the lazy dog")?;
    /// let transaction = store.begin_write()?;
    /// let found = transaction.overlaps(&page).run()?;
    /// assert_eq!((found.len(), found[0].key()), (1, Some(&b"sentence"[..])));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn overlaps<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
    ) -> ContainmentQuery<'a, Q::Overlaps> {
        self.about_passages(signatures, ShareOf::Neither)
    }

    fn about_passages<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
        share_of: ShareOf,
    ) -> ContainmentQuery<'a, Q::Overlaps> {
        let signatures = Cow::Borrowed(signatures.signatures());
        ContainmentQuery::new(self.transaction.view(), signatures, share_of)
    }

    /// Begins a search for the `n` documents that are nearest to a signature, this transaction's own
    /// included: as [`Snapshot::nearest`](crate::Snapshot::nearest).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let page = store.sketch_text("all that glitters is not gold")?;
    /// let mut transaction = store.begin_write()?;
    /// let id = transaction.insert("proverb", &page)?;
    /// assert_eq!(transaction.nearest(&page, 1).run()?[0].id(), id);
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn nearest<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
        n: usize,
    ) -> Nearest<'a, Q::Answer> {
        let view = self.transaction.view();
        Nearest::new(view, signatures.signatures(), n)
    }

    /// Makes the changes durable and visible. When it returns, they survive a crash.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, the outcome is unknown until the store is opened again, and this handle
    /// writes no more ([`Error::Closed`]). After [`Error::Bug`] nothing was committed, and the store can be
    /// used on.
    pub fn commit(self) -> Result<()> {
        self.transaction.commit()
    }

    /// Inserts many documents, all or none, and returns their ids in the same order. The keys are looked up
    /// together before anything is inserted.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), and nothing of the batch is inserted: bad
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
        self.transaction.insert_many(documents)
    }

    /// Inserts those of many documents that are new, one after the other, and returns one answer for each in
    /// the same order. The stored documents are searched for the whole batch together, and each document is
    /// also compared with those before it in the batch.
    ///
    /// # Errors
    ///
    /// As [`insert_if_new`](Self::insert_if_new); for bad input, which says its
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
    ///     [Novelty::New { .. }, Novelty::NearDuplicate(_), Novelty::New { .. }, Novelty::KeyExists(_)]
    /// ));
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert_many_if_new(
        &mut self,
        documents: &[(Document<'_>, &Signature)],
    ) -> Result<Vec<Novelty>> {
        self.transaction.insert_many_if_new(documents)
    }

    /// [`insert_many_if_new`](Self::insert_many_if_new) with every candidate verified, those too
    /// whose estimate is not within the bounds: as [`Query::verify`](crate::Query::verify). The
    /// closure is given the index of a document and what it may resemble, and does not see this
    /// transaction. It is asked about documents with an equal signature first: the first of them
    /// that it gives a similarity of 1, or (with MinHash values) none, is the match, and it is asked
    /// about no other. The [`Match`](crate::Match) of a key that is there already remains an
    /// estimate.
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
        self.transaction
            .insert_many_if_new_verified(documents, similarity)
    }

    /// [`insert_many_if_new`](Self::insert_many_if_new) by the exact similarity of texts. The features of
    /// what is inserted are put into `features`; a candidate without any there is compared by its
    /// estimate.
    ///
    /// # Errors
    ///
    /// As [`insert_many_if_new`](Self::insert_many_if_new), and [`Error::Io`](crate::Error::Io) if the features cannot be
    /// read or written: then the transaction can only be rolled back.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Novelty, Schema, Store, Text};
    /// use resemblance::verification::{FeatureSets, SketchedText};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(128)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    ///
    /// let mut features = FeatureSets::new(std::env::temp_dir());
    /// let a = SketchedText::new(&store.sketcher(), true, "a b c d e f g h i j k")?;
    /// let b = SketchedText::new(&store.sketcher(), true, "a b c d e f g h i j k l")?;
    /// let batch = [(Document::new("a"), &a), (Document::new("b"), &b)];
    ///
    /// let mut transaction = store.begin_write()?;
    /// let found = transaction.insert_many_if_new_exact(&batch, &mut features)?;
    /// let Novelty::NearDuplicate(found) = &found[1] else { panic!("it is like the first") };
    /// assert_eq!((found.similarity(), found.is_exact()), (Some(11.0 / 12.0), true));
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert_many_if_new_exact(
        &mut self,
        documents: &[(Document<'_>, &SketchedText)],
        features: &mut FeatureSets,
    ) -> Result<Vec<Novelty>> {
        verification::insert_many_if_new(features, documents, |documents, ask| {
            self.transaction.insert_many_if_new_asking(documents, ask)
        })
    }
}
