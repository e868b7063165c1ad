//! The write transaction: changes that are committed together, and the rule when it may go on.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::invariant::invariant;
use crate::read::ReadView;
use crate::sketch::Signature;
use crate::state::{OpenStore, WriterGuard, WriterLock};
use crate::types::{Document, DocumentId, Novelty, Upserted};
use crate::write::duplicate_check::{TailView, find_duplicate};
use crate::write::writer::Writer;

/// An open write transaction. It holds the writer lock until it is committed or dropped.
pub(crate) struct Transaction {
    // Declared, and so dropped, before the guard: the engine's transaction must end before the next
    // writer may begin.
    pub(super) writer: Writer,
    guard: WriterGuard,
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("path", &self.writer.store.context.path)
            .field("state", &self.writer.state)
            .finish_non_exhaustive()
    }
}

impl Transaction {
    /// Begins a transaction, after the one that another thread has open, if any.
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

    pub(crate) fn insert(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        self.check(document, signature)?;
        self.change(|writer| {
            if let Some(key) = document.key()
                && let Some(id) = writer.view().find_key(key)?
            {
                return Err(Error::KeyExists {
                    key: key.to_vec(),
                    id: DocumentId::new(id),
                });
            }
            writer.store_document(document, signature)
        })
    }

    pub(crate) fn upsert(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<Upserted> {
        self.check(document, signature)?;
        self.change(|writer| writer.upsert(document, signature))
    }

    /// Inserts a document if it is new. If `first_id` is given, the caller has searched the documents
    /// below that id and found neither its key nor a near-duplicate.
    pub(crate) fn insert_if_new(
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
                    let id = writer.store_document(document, signature)?;
                    Ok(Novelty::inserted(id, found.beyond))
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

    pub(crate) fn touch(&mut self, key: &[u8], stamp: u64) -> Result<Option<DocumentId>> {
        self.change_at_key(key, |writer, id| writer.touch(id, stamp))
    }

    pub(crate) fn touch_id(&mut self, id: DocumentId, stamp: u64) -> Result<bool> {
        self.change(|writer| writer.touch(id.get(), stamp))
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<Option<DocumentId>> {
        self.change_at_key(key, Writer::remove_document)
    }

    pub(crate) fn remove_id(&mut self, id: DocumentId) -> Result<bool> {
        self.change(|writer| writer.remove_document(id.get()))
    }

    pub(crate) fn len(&self) -> u64 {
        self.writer.state.documents
    }

    pub(crate) fn commit(mut self) -> Result<()> {
        self.writer.check_usable()?;
        self.guard.hold_here();
        let store = Arc::clone(&self.writer.store);
        let writer = &mut self.writer;
        store.context.run_checked(|| writer.commit())
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
        self.writer.counters.evicted.add(documents);
    }

    /// Returns the document with an id, with its payload if that is asked for.
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
