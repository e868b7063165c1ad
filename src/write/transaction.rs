//! The write transaction: changes that are committed together, and the rule for continuing after an
//! error.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::clusters::check_kept;
use crate::error::{Error, Result};
use crate::id::ClusterId;
use crate::invariant::invariant;
use crate::query::{ContainmentQuery, Nearest, OneOrMany, Query, ShareOf};
use crate::read::ReadView;
use crate::state::{OpenStore, WriterGuard, WriterLock};
use crate::types::{Document, DocumentId, Matches, Novelty, Overlaps, Record, Upserted};
use crate::write::duplicate_check::{TailView, find_duplicate};
use crate::write::writer::Writer;
use resemblance_sketch::sketch::Signature;

/// Maximum lengths of the name of a position and of the position.
const MAX_NAME_BYTES: usize = 255;
const MAX_POSITION_BYTES: usize = 1 << 16;

/// Checks the lengths of a named position and of its name.
pub(crate) fn check_position(name: &str, position: Option<&[u8]>) -> Result<()> {
    if !(1..=MAX_NAME_BYTES).contains(&name.len()) {
        let (found, expected) = (format!("{} bytes", name.len()), "1 to 255 bytes");
        return Err(Error::invalid("name", found, expected));
    }
    let length = position.map_or(0, <[u8]>::len);
    if length > MAX_POSITION_BYTES {
        let (found, expected) = (format!("{length} bytes"), "at most 65,536 bytes");
        return Err(Error::invalid("position", found, expected));
    }
    Ok(())
}

/// Changes that become visible and durable together, at [`commit`](Self::commit). A transaction
/// reads its own writes, and dropping it rolls them back. A store has one at a time. It may be
/// moved to another thread. It belongs to the thread that changed it last. If that thread begins
/// another write transaction, waiting would never end, so the call returns [`Error::Busy`].
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
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
    // Declared, and so dropped, before the guard: the engine's transaction must end before the next
    // writer may begin.
    pub(super) writer: Writer,
    guard: WriterGuard,
}

impl fmt::Debug for WriteTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteTransaction")
            .field("path", &self.writer.store.context.path)
            .field("state", &self.writer.state)
            .finish_non_exhaustive()
    }
}

impl WriteTransaction {
    /// Inserts a document, under a key that must be free or without one.
    ///
    /// # Errors
    ///
    /// [`Error::KeyExists`] if the key exists, [`Error::InvalidParameter`] for a key of more than
    /// 4,096 bytes or a payload of more than 64 MiB, [`Error::SignatureMismatch`] for a signature
    /// that does not fit the schema: the transaction can continue. After [`Error::Corrupt`],
    /// [`Error::Io`] and [`Error::Bug`] it can only be rolled back.
    pub fn insert<'d>(
        &mut self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        let new = document.into();
        self.check(&new, signature)?;
        self.change(|writer| writer.insert(&new, signature))
    }

    /// Inserts a document in place of the one with the same key, if there is one, and compares the two:
    /// see [`Upserted::revision`]. A document whose signature is unchanged keeps its id.
    ///
    /// The document gets the stamp and the payload that are passed, whatever the old document had;
    /// [`touch`](Self::touch) changes only a stamp. If the signature is unchanged, only stamp and
    /// payload are written. If these are unchanged as well, nothing is written, and a transaction
    /// without other changes commits without a sync. A document without a key replaces nothing.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert) except `KeyExists`.
    ///
    /// ```
    /// # use resemblance::{MinHash, Revision, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
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
        let new = document.into();
        self.check(&new, signature)?;
        self.change(|writer| writer.upsert(&new, signature))
    }

    /// Inserts a document unless the store has its key or a near-duplicate of it.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert) except `KeyExists`.
    pub fn insert_if_new<'d>(
        &mut self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<Novelty> {
        self.insert_if_new_since(&document.into(), signature, None)
    }

    /// Sets the stamp of the document with a key, to a later or an earlier one, and returns its id
    /// if it exists. Id, payload and signature do not change. Nothing is written if the stamp is
    /// the same.
    ///
    /// ```
    /// use resemblance::Document;
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
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
        self.change_at_key(key.as_ref(), |writer, id| writer.touch(id, stamp))
    }

    /// Sets the stamp of the document with an id, as [`touch`](Self::touch) does, and returns
    /// whether it exists.
    ///
    /// # Errors
    ///
    /// The errors of [`touch`](Self::touch).
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let id = transaction.insert(Document::without_key().stamp(20), &page)?;
    /// assert!(transaction.touch_id(id, 21)?);
    /// assert_eq!(transaction.get_id(id)?.map(|record| record.stamp()), Some(21));
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn touch_id(&mut self, id: DocumentId, stamp: u64) -> Result<bool> {
        self.change(|writer| writer.touch(id.get(), stamp))
    }

    /// Removes the document with a key, and returns its id if there was one.
    ///
    /// The document is not found any more. Its key, payload and signature remain in the file until
    /// a merge or [`Store::compact`](crate::Store::compact) drops them, and afterwards in free
    /// pages until these are reused.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`]: the transaction can only be rolled back.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<Option<DocumentId>> {
        self.change_at_key(key.as_ref(), Writer::remove_document)
    }

    /// Removes the document with an id, as [`remove`](Self::remove) does, and returns whether it
    /// existed.
    ///
    /// # Errors
    ///
    /// The errors of [`remove`](Self::remove).
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
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
        self.change(|writer| writer.remove_document(id.get()))
    }

    /// Sets a named position, or removes it with `None`.
    ///
    /// A program that reads a queue keeps its offset here. The offset becomes durable in the same
    /// commit as the documents before it, so a restart neither loses nor repeats any. A store keeps
    /// any number of positions, such as one for each partition. `backup` copies them. An exported,
    /// merged or repaired store has none: it may lack documents before the offset, which the queue
    /// then has to give again.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the name is not 1 to 255 bytes long, or the position is longer
    /// than 65,536 bytes. [`Error::Corrupt`] and [`Error::Io`]: the transaction can only be rolled
    /// back.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let messages = [(41, "a", "some text"), (42, "b", "or other text")];
    /// let mut transaction = store.begin_write()?;
    /// for (offset, key, text) in messages {
    ///     transaction.insert_if_new(key, &store.sketch_text(text)?)?;
    ///     transaction.set_position("pages-0", Some(&u64::to_be_bytes(offset)))?;
    /// }
    /// transaction.commit()?;
    ///
    /// let offset = store.snapshot()?.position("pages-0")?;
    /// assert_eq!(offset, Some(u64::to_be_bytes(42).to_vec()));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn set_position(&mut self, name: &str, position: Option<&[u8]>) -> Result<()> {
        check_position(name, position)?;
        self.change(|writer| writer.set_position(name, position))
    }

    /// Returns a named position as this transaction has left it, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let mut transaction = store.begin_write()?;
    /// transaction.set_position("pages-0", Some(b"41"))?;
    /// assert_eq!(transaction.position("pages-0")?, Some(b"41".to_vec()));
    /// assert_eq!(transaction.position("pages-1")?, None);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn position(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.check_usable()?;
        let context = &self.writer.store.context;
        context.run_checked(|| self.writer.position(name))
    }

    /// Returns the document with a key, as this transaction has left it.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// transaction.insert(("a", "a payload"), &page)?;
    /// assert_eq!(transaction.get("a")?.map(|record| record.payload().len()), Some(9));
    /// assert_eq!(store.snapshot()?.get("a")?, None); // not committed yet
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Record>> {
        self.view().get(key.as_ref())
    }

    /// Returns the document with an id, as this transaction has left it.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let id = transaction.insert("a", &page)?;
    /// let record = transaction.get_id(id)?.expect("it is there");
    /// assert_eq!(record.key(), Some(&b"a"[..]));
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        self.view().get_id(id)
    }

    /// Returns true if there is a document with this key.
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
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
        self.view().contains(key.as_ref())
    }

    /// Returns the cluster of the document with a key, as this transaction has left it: see
    /// [`Snapshot::cluster_of`](crate::Snapshot::cluster_of). For a document that was not inserted,
    /// because [`insert_if_new`](Self::insert_if_new) has found a near-duplicate, ask for the cluster
    /// of that one.
    ///
    /// ```
    /// # use resemblance::{MinHash, Novelty, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// transaction.insert("a", &page)?;
    /// transaction.insert("b", &page)?;
    /// let story = transaction.cluster_of("a")?;
    /// if let Novelty::NearDuplicate(found) = transaction.insert_if_new("c", &page)? {
    ///     assert_eq!(transaction.cluster_of_id(found.id())?, story);
    /// }
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`get`](Self::get), and [`Error::InvalidParameter`] if the store keeps no
    /// clusters.
    pub fn cluster_of(&self, key: impl AsRef<[u8]>) -> Result<Option<ClusterId>> {
        self.check_usable()?;
        let context = &self.writer.store.context;
        check_kept(&context.schema)?;
        context.run_checked(|| match self.view().find_key(key.as_ref())? {
            Some(id) => self.writer.cluster_of(id),
            None => Ok(None),
        })
    }

    /// Returns the cluster of the document with an id, as [`cluster_of`](Self::cluster_of) does.
    ///
    /// ```
    /// # use resemblance::{ClusterId, MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let ids = [transaction.insert("a", &page)?, transaction.insert("b", &page)?];
    /// assert_eq!(transaction.cluster_of_id(ids[0])?, Some(ClusterId::new(0)));
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`cluster_of`](Self::cluster_of).
    pub fn cluster_of_id(&self, id: DocumentId) -> Result<Option<ClusterId>> {
        self.check_usable()?;
        let context = &self.writer.store.context;
        context.run_checked(|| self.writer.cluster_of(id.get()))
    }

    /// Returns the number of documents, with this transaction's changes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.writer.state.documents
    }

    /// Returns true if there are no documents.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
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

    /// Begins a query for the documents that are near a signature, including documents of this
    /// transaction. Many signatures can be queried together.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// transaction.insert("a", &page)?;
    /// let matches = transaction.query(&page).limit(1).run()?;
    /// assert_eq!(matches[0].key(), Some(&b"a"[..]));
    /// # transaction.commit()?;
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn query<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
    ) -> Query<'a, Q::Each<Matches>> {
        Query::new(self.view(), Cow::Borrowed(signatures.signatures()))
    }

    /// Begins a query for the documents that contain a text: *is this paragraph in that page?* The
    /// text is given by its signature, and many texts can be queried together.
    /// [`min_share`](ContainmentQuery::min_share) sets how much of the text a document must
    /// contain.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// let containment = Containment::new(2).window(3); // finds each passage of 4 words
    /// let schema = Schema::builder().text(Text::words(2)).containment(containment).build()?;
    /// let store = Store::in_memory(schema)?;
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
    ) -> ContainmentQuery<'a, Q::Each<Overlaps>> {
        self.about_passages(signatures, ShareOf::Query)
    }

    /// Begins a query for the documents that a text contains. The text is given by its signature,
    /// and many texts can be queried together. [`min_share`](ContainmentQuery::min_share) sets how
    /// much of a document the text must contain.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// # let containment = Containment::new(2).window(3);
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
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
    ) -> ContainmentQuery<'a, Q::Each<Overlaps>> {
        self.about_passages(signatures, ShareOf::Document)
    }

    /// Begins a query for the documents that share any passage with a text. The text is given by
    /// its signature, and many texts can be queried together.
    ///
    /// ```
    /// # use resemblance::{Containment, Schema, Store, Text};
    /// # let containment = Containment::new(2).window(3);
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).containment(containment).build()?)?;
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
    ) -> ContainmentQuery<'a, Q::Each<Overlaps>> {
        self.about_passages(signatures, ShareOf::Neither)
    }

    fn about_passages<'a, Q: OneOrMany + ?Sized>(
        &'a self,
        signatures: &'a Q,
        share_of: ShareOf,
    ) -> ContainmentQuery<'a, Q::Each<Overlaps>> {
        let signatures = Cow::Borrowed(signatures.signatures());
        ContainmentQuery::new(self.view(), signatures, share_of)
    }

    /// Begins a search for the `n` documents that are nearest to a signature, including documents
    /// of this transaction. It works as [`Snapshot::nearest`](crate::Snapshot::nearest).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
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
    ) -> Nearest<'a, Q::Each<Matches>> {
        let view = self.view();
        Nearest::new(view, signatures.signatures(), n)
    }

    /// Makes the changes durable and visible. When it returns, they survive a crash.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, the outcome is unknown until the store is opened again, and
    /// this handle writes no more ([`Error::Closed`]). After [`Error::Bug`] nothing was committed,
    /// and the store can still be used.
    pub fn commit(mut self) -> Result<()> {
        self.writer.check_usable()?;
        self.guard.hold_here();
        let store = Arc::clone(&self.writer.store);
        let writer = &mut self.writer;
        store.context.run_checked(|| writer.commit())
    }
}

/// The parts of a transaction that this crate uses.
impl WriteTransaction {
    /// Begins a transaction. Waits for the transaction of another thread, if there is one.
    pub(crate) fn begin(store: &Arc<OpenStore>) -> Result<Self> {
        Self::begin_with(store, WriterLock::enter)
    }

    /// Begins a transaction, or returns [`Error::Busy`] if any thread has one open.
    pub(crate) fn try_begin(store: &Arc<OpenStore>) -> Result<Self> {
        Self::begin_with(store, WriterLock::try_enter)
    }

    fn begin_with(
        store: &Arc<OpenStore>,
        enter: fn(&Arc<WriterLock>) -> Result<WriterGuard>,
    ) -> Result<Self> {
        store.check_writable()?;
        let guard = enter(&store.writer_lock)?;
        Ok(Self {
            writer: Writer::begin(Arc::clone(store))?,
            guard,
        })
    }

    pub(crate) fn view(&self) -> &dyn ReadView {
        self.writer.view()
    }

    /// Runs a change. After an error other than a taken key the transaction can only be rolled back;
    /// callers check input before.
    pub(crate) fn change<T>(&mut self, run: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        self.writer.check_usable()?;
        self.guard.hold_here();
        let store = Arc::clone(&self.writer.store);
        let writer = &mut self.writer;
        let result = store.context.run_checked(|| run(writer));
        if let Err(error) = &result {
            self.writer.note_failure(error);
        }
        result
    }

    /// Inserts a document if it is new. If `first_id` is given, the caller has searched the documents
    /// below that id and found neither its key nor a near-duplicate.
    pub(crate) fn insert_if_new_since(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
        first_id: Option<u64>,
    ) -> Result<Novelty> {
        self.check(document, signature)?;
        self.change(|writer| {
            let tail = first_id.and_then(|id| TailView::new(writer, id));
            let found = match &tail {
                Some(tail) => find_duplicate(tail, document, signature)?,
                None => find_duplicate(writer, document, signature)?,
            };
            match found.novelty {
                Some(novelty) => Ok(novelty),
                None => {
                    let id = match found.beyond {
                        None => writer.store_alone(document, signature)?,
                        Some(_) => writer.store_document(document, signature)?,
                    };
                    Ok(Novelty::New {
                        id,
                        left_out: found.beyond,
                    })
                }
            }
        })
        .inspect(|novelty| self.note_answer(novelty))
    }

    /// Changes the document with a key, if there is one, and returns its id.
    fn change_at_key(
        &mut self,
        key: &[u8],
        run: impl FnOnce(&mut Writer, u64) -> Result<bool>,
    ) -> Result<Option<DocumentId>> {
        self.change(|writer| {
            let Some(id) = writer.view().find_key(key)? else {
                return Ok(None);
            };
            let is_there = run(writer, id)?;
            invariant!(
                is_there,
                "document {id} was found by its key and is not there"
            );
            Ok(Some(DocumentId::new(id)))
        })
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        self.writer.check_usable()
    }

    pub(crate) fn note_answer(&self, novelty: &Novelty) {
        self.writer.counters.note_answer(novelty);
        if novelty.budget_exceeded().is_some() {
            self.writer.store.context.note_budget_met();
        }
    }

    /// Counts documents that this transaction has removed as evicted.
    pub(crate) fn note_evicted(&self, documents: u64) {
        self.writer.counters.count.evicted.add(documents);
    }

    /// Returns the document with an id, with its payload if requested.
    pub(crate) fn document_of(
        &self,
        id: u64,
        with_payload: bool,
    ) -> Result<Option<Document<'static>>> {
        let source = self.writer.view();
        let context = &self.writer.store.context;
        context.run_checked(|| source.document_of(id, with_payload))
    }

    pub(super) fn check(&self, document: &Document<'_>, signature: &Signature) -> Result<()> {
        document.validate()?;
        self.writer.store.context.check_signature(signature)
    }
}
