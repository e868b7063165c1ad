//! The façade of a write transaction: every method is a call of the room that does the work.

use std::borrow::Cow;
use std::fmt;

use crate::corpus::verification::{FeatureSets, SketchedText, signatures_of};
use crate::error::Result;
use crate::query::{ContainmentQuery, Nearest, OneOrMany, Query, ShareOf};
use crate::sketch::Signature;
use crate::types::{Document, DocumentId, Novelty, Record, Upserted};
use crate::write::{InsertMany, Transaction};

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
        self.transaction
            .insert_if_new(&document.into(), signature, None)
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
        self.transaction.view().get(key.as_ref())
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
        self.transaction.view().get_id(id)
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
        self.transaction.view().contains(key.as_ref())
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

    /// Inserts many documents, once it is [`run`](InsertMany::run): all of them or none, or, with
    /// [`if_new`](InsertMany::if_new), each that is new. The keys are looked up together before anything is
    /// inserted.
    ///
    /// ```
    /// # use resemblance::{Document, Error, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
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
        InsertMany::new(&mut self.transaction, documents)
    }
}

impl FeatureSets {
    /// Inserts each document that is new by the exact similarity of its text, as
    /// [`InsertMany::verify`] does, and keeps the features of what is inserted. A candidate without features here
    /// is compared by its estimate.
    ///
    /// # Errors
    ///
    /// As [`InsertMany::run`], and [`Error::Io`] if the features cannot be read or written: then the transaction
    /// can only be rolled back.
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
    /// let found = features.insert_new(&mut transaction, &batch)?;
    /// let Novelty::NearDuplicate(found) = &found[1] else { panic!("it is like the first") };
    /// assert_eq!((found.similarity(), found.is_exact()), (Some(11.0 / 12.0), true));
    /// transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert_new(
        &mut self,
        transaction: &mut WriteTransaction,
        documents: &[(Document<'_>, &SketchedText)],
    ) -> Result<Vec<Novelty>> {
        let signed = signatures_of(documents);
        let insert = transaction.insert_many(&signed).if_new();
        self.keep_new(documents, |ask| insert.verify_from(ask).run())
    }
}
