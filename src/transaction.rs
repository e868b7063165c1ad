//! The writer.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::query::{BeyondBudget, Bounds, Query, Subject};
use crate::read::Source;
use crate::sketch::Signature;
use crate::state::Permit;
use crate::store::Inner;
use crate::types::{Document, DocumentId, Novelty, Record, Upserted};
use crate::write::{Since, Writer};

/// Changes that become visible and durable together, at [`commit`](Self::commit). It reads its own
/// writes. Dropping it rolls everything back. One at a time; it stays on the thread that began it.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// let signature = store.sketch_text("some text or other")?;
/// let mut transaction = store.begin_write()?;
/// transaction.insert("a", &signature)?;
/// transaction.append(&signature)?;
/// assert_eq!(transaction.len(), 2);
/// transaction.commit()?;
/// assert_eq!(store.snapshot()?.len(), 2);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "dropping a transaction rolls it back"]
pub struct WriteTransaction {
    // Before the permit: the engine's transaction must end before the next writer may begin.
    pub(crate) writer: Writer,
    _permit: Permit,
    _stays_on_its_thread: PhantomData<*const ()>,
}

impl fmt::Debug for WriteTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteTransaction")
            .field("path", &self.writer.store.core.path)
            .field("state", &self.writer.state)
            .finish_non_exhaustive()
    }
}

impl WriteTransaction {
    pub(crate) fn begin(store: Arc<Inner>, permit: Permit) -> Result<Self> {
        Ok(Self {
            writer: Writer::begin(store)?,
            _permit: permit,
            _stays_on_its_thread: PhantomData,
        })
    }

    /// Runs a change. Bad input changes nothing and the transaction goes on; after a failure of
    /// the file it can only be rolled back.
    pub(crate) fn change<T>(&mut self, run: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        self.writer.check_usable()?;
        let store = Arc::clone(&self.writer.store);
        let writer = &mut self.writer;
        let result = store.core.guarded(|| run(writer));
        if let Err(error) = &result {
            self.writer.note_failure(error);
        }
        result
    }

    /// Inserts a document under a key.
    ///
    /// # Errors
    ///
    /// [`Error::KeyExists`] if the key is there, [`Error::InvalidParameter`] for a key of more than
    /// 4,096 bytes, [`Error::SignatureMismatch`] for a signature that does not fit the schema;
    /// the transaction goes on. [`Error::Corrupt`] and [`Error::Io`]: it can only be rolled back.
    pub fn insert(&mut self, key: impl AsRef<[u8]>, signature: &Signature) -> Result<DocumentId> {
        self.insert_document(Document::new(key.as_ref()), signature)
    }

    /// Inserts a document under a key, in place of the one that is there, and tells what its content
    /// is to that one's: [`Upserted::revision`]. A document whose signature is the same keeps its id.
    ///
    /// It has stamp 0 and no payload, whatever was there: [`upsert_document`](Self::upsert_document)
    /// gives it others, and [`touch`](Self::touch) renews a stamp alone.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), without `KeyExists`.
    pub fn upsert(&mut self, key: impl AsRef<[u8]>, signature: &Signature) -> Result<Upserted> {
        self.upsert_document(Document::new(key.as_ref()), signature)
    }

    /// Inserts a document unless its key or a near-duplicate of it is there.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), without `KeyExists`.
    pub fn insert_if_new(
        &mut self,
        key: impl AsRef<[u8]>,
        signature: &Signature,
    ) -> Result<Novelty> {
        self.insert_document_if_new(Document::new(key.as_ref()), signature)
    }

    /// Inserts a document without a key.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert), without `KeyExists`.
    pub fn append(&mut self, signature: &Signature) -> Result<DocumentId> {
        self.insert_document(Document::without_key(), signature)
    }

    /// [`insert`](Self::insert) or [`append`](Self::append) with stamp and payload.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert); the payload may have up to 64 MiB.
    pub fn insert_document(
        &mut self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        self.check(&document, signature)?;
        self.change(|writer| {
            if let Some(key) = document.row.key
                && let Some(id) = writer.source().find_key(key)?
            {
                return Err(Error::KeyExists {
                    key: key.to_vec(),
                    id: DocumentId::new(id),
                });
            }
            writer.store_document(&document, signature)
        })
    }

    /// [`upsert`](Self::upsert) with stamp and payload. Without a key nothing is replaced.
    ///
    /// Where the signature is the same, stamp and payload are written in their place; where these are
    /// the same as well, nothing is written, and a transaction of nothing else commits without a sync.
    ///
    /// # Errors
    ///
    /// As [`insert_document`](Self::insert_document), without `KeyExists`.
    pub fn upsert_document(
        &mut self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<Upserted> {
        self.check(&document, signature)?;
        self.change(|writer| writer.upsert(&document, signature))
    }

    /// [`insert_if_new`](Self::insert_if_new) with stamp and payload, the key optional.
    ///
    /// # Errors
    ///
    /// As [`insert_document`](Self::insert_document), without `KeyExists`.
    pub fn insert_document_if_new(
        &mut self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<Novelty> {
        self.insert_if_new_since(document, signature, None)
    }

    /// [`insert_document_if_new`](Self::insert_document_if_new), where documents before an id have
    /// been looked through: none of them was near this one, and none had its key.
    pub(crate) fn insert_if_new_since(
        &mut self,
        document: Document<'_>,
        signature: &Signature,
        first_id: Option<u64>,
    ) -> Result<Novelty> {
        self.check(&document, signature)?;
        self.change(|writer| {
            let since = first_id.and_then(|id| Since::of(writer, id));
            let known = match &since {
                Some(since) => known(since, &document, signature)?,
                None => known(writer, &document, signature)?,
            };
            match known {
                Known {
                    novelty: Some(novelty),
                    ..
                } => Ok(novelty),
                Known { beyond, .. } => {
                    let id = writer.store_document(&document, signature)?;
                    Ok(Novelty::inserted(id, beyond))
                }
            }
        })
        .inspect(|novelty| self.note_answer(novelty))
    }

    /// Gives the document under a key another stamp, later or earlier; its id if there is one. All
    /// else stays: its id, payload and signature. Nothing is written if the stamp is the same.
    ///
    /// ```
    /// use resemblance::Document;
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let signature = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// let id = transaction.insert_document(Document::new("a").stamp(20), &signature)?;
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
        self.change(|writer| {
            let id = writer.source().find_key(key.as_ref())?;
            if let Some(id) = id {
                writer.touch(id, stamp)?;
            }
            Ok(id.map(DocumentId::new))
        })
    }

    /// Gives the document with an id another stamp, as [`touch`](Self::touch) does; whether there is
    /// one.
    ///
    /// # Errors
    ///
    /// As [`touch`](Self::touch).
    pub fn touch_id(&mut self, id: DocumentId, stamp: u64) -> Result<bool> {
        self.change(|writer| writer.touch(id.get(), stamp))
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
        self.change(|writer| {
            let id = writer.source().find_key(key.as_ref())?;
            if let Some(id) = id {
                writer.remove_document(id)?;
            }
            Ok(id.map(DocumentId::new))
        })
    }

    /// Removes the document with an id, as [`remove`](Self::remove) does; whether there was one.
    ///
    /// # Errors
    ///
    /// As [`remove`](Self::remove).
    pub fn remove_id(&mut self, id: DocumentId) -> Result<bool> {
        self.change(|writer| writer.remove_document(id.get()))
    }

    /// The document under a key, as this transaction has left it.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] and [`Error::Io`] if the file cannot be read.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Record>> {
        self.writer
            .store
            .core
            .guarded(|| match self.writer.source().find_key(key.as_ref())? {
                Some(id) => self.writer.source().record(id),
                None => Ok(None),
            })
    }

    /// The document with an id, as this transaction has left it.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn get_id(&self, id: DocumentId) -> Result<Option<Record>> {
        self.writer
            .store
            .core
            .guarded(|| self.writer.source().record(id.get()))
    }

    /// Whether there is a document under a key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let source = self.writer.source();
        self.writer
            .store
            .core
            .guarded(|| Ok(source.find_key(key.as_ref())?.is_some()))
    }

    /// The number of documents, this transaction's changes included.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.writer.state.documents
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are more documents now, this transaction's changes included, than the schema
    /// expects: queries do more work than they need to, and [`Store::reband`](crate::Store::reband)
    /// mends it.
    #[must_use]
    pub fn is_outgrown(&self) -> bool {
        self.len() > self.writer.store.core.schema.expected_documents()
    }

    /// Asks for documents that are near a signature, this transaction's own included.
    pub fn query<'a>(&'a self, signature: &'a Signature) -> Query<'a> {
        Query::new(self.writer.source(), Cow::Borrowed(signature))
    }

    /// Makes the changes durable and visible. When it returns, they survive a crash.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, the outcome is unknown until the store is opened again, and
    /// this handle writes no more ([`Error::Closed`]).
    pub fn commit(mut self) -> Result<()> {
        self.writer.check_usable()?;
        let store = Arc::clone(&self.writer.store);
        let writer = &mut self.writer;
        store.core.guarded(|| writer.commit())
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        self.writer.check_usable()
    }

    pub(crate) fn note_answer(&self, novelty: &Novelty) {
        self.writer.tally.answered(novelty);
        if novelty.beyond_budget().is_some() {
            self.writer.store.core.note_budget_met();
        }
    }

    /// Counts removed documents as evicted.
    pub(crate) fn note_evicted(&self, documents: u64) {
        self.writer.tally.evicted.add(documents);
    }

    /// The document row with an id, as it is stored.
    pub(crate) fn stored_row(&self, id: u64) -> Result<Option<Vec<u8>>> {
        let source = self.writer.source();
        self.writer.store.core.guarded(|| {
            let mut row = None;
            source.document_row(id, &mut |bytes| {
                row = bytes.map(<[u8]>::to_vec);
                Ok(())
            })?;
            Ok(row)
        })
    }

    pub(crate) fn check(&self, document: &Document<'_>, signature: &Signature) -> Result<()> {
        document.validate()?;
        self.writer.store.core.check_signature(signature)
    }
}

/// What there is to say of a document before it is inserted.
pub(crate) struct Known {
    /// Why it is not new, if it is not: its key, or a near-duplicate of it is there.
    pub(crate) novelty: Option<Novelty>,
    /// With what it was not compared.
    pub(crate) beyond: Option<BeyondBudget>,
}

pub(crate) fn known(
    source: &dyn Source,
    document: &Document<'_>,
    signature: &Signature,
) -> Result<Known> {
    let subject = Subject::new(signature);
    if let Some(key) = document.row.key
        && let Some(id) = source.find_key(key)?
    {
        let same = subject.compare(source, id)?;
        return Ok(Known {
            novelty: Some(Novelty::SameKey(same)),
            beyond: None,
        });
    }
    let core = source.core();
    let bounds = Bounds::new().resolve(&core.schema, false)?;
    let best = subject.best(source, &bounds, core.options.budget()?)?;
    Ok(Known {
        novelty: best.found.map(Novelty::NearDuplicate),
        beyond: best.beyond,
    })
}
