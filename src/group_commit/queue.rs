//! Changes whose answers are fetched later: for asynchronous programs, and for threads that go on.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::{Error, Result};
use crate::group_commit::commit_queue::HandedOver;
use crate::group_commit::leader::{GroupCommitHandle, abandoned};
use crate::group_commit::reply::{Reply, ReplySlot};
use crate::group_commit::write_request::{
    FromReply, WriteKind, WriteReply, WriteRequest, take_reply,
};
use crate::sketch::Signature;
use crate::state::OpenStore;
use crate::types::{Document, DocumentId, Novelty, Upserted};

/// Bytes of keys, payloads and signatures that may wait for a commit.
const WAITING_BYTES: usize = 64 << 20;

/// Takes changes and does not wait for them: each call gives a [`Ticket`], which is a future, and
/// can be waited for by a thread too. Made by [`Store::queue`].
///
/// Changes are made in the order in which they are queued, those of all threads and of calls that
/// wait among them, many at a time in one transaction, which a thread of the store makes for as long
/// as something waits. A change that is queued is made whether its ticket is kept or dropped; it
/// survives a crash once its ticket is answered.
///
/// ```
/// # use resemblance::{MinHash, Novelty, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// let queue = store.queue();
/// let page = store.sketch_text("some text or other")?;
/// let first = queue.insert_if_new("a", &page)?;
/// let second = queue.insert_if_new("b", &page)?;
/// assert!(matches!(first.wait()?, Novelty::New(_)));
/// assert!(matches!(second.wait()?, Novelty::NearDuplicate(_)));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct Queue {
    // A handle: the last one waits for what is queued.
    handle: GroupCommitHandle,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("path", &self.handle.store().context.path)
            .finish_non_exhaustive()
    }
}

impl Queue {
    pub(crate) fn new(handle: &GroupCommitHandle) -> Self {
        Self {
            handle: handle.clone(),
        }
    }

    /// Queues [`Store::insert`].
    ///
    /// # Errors
    ///
    /// At once: [`Error::InvalidParameter`] and [`Error::SignatureMismatch`] for what cannot be
    /// stored, [`Error::QueueFull`] if 64 MiB of changes wait already, [`Error::ReadOnly`],
    /// [`Error::Closed`]. All others come with the ticket. So with the other forms below.
    pub fn insert(
        &self,
        key: impl AsRef<[u8]>,
        signature: &Signature,
    ) -> Result<Ticket<DocumentId>> {
        self.insert_document(Document::new(key.as_ref()), signature)
    }

    /// Queues [`Store::insert_document`].
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_document(
        &self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<Ticket<DocumentId>> {
        self.submit(WriteRequest::store(WriteKind::Insert, document, signature))
    }

    /// Queues [`Store::upsert`].
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn upsert(&self, key: impl AsRef<[u8]>, signature: &Signature) -> Result<Ticket<Upserted>> {
        self.upsert_document(Document::new(key.as_ref()), signature)
    }

    /// Queues [`Store::upsert_document`].
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn upsert_document(
        &self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<Ticket<Upserted>> {
        self.submit(WriteRequest::store(WriteKind::Upsert, document, signature))
    }

    /// Queues [`Store::insert_if_new`].
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_if_new(
        &self,
        key: impl AsRef<[u8]>,
        signature: &Signature,
    ) -> Result<Ticket<Novelty>> {
        self.insert_document_if_new(Document::new(key.as_ref()), signature)
    }

    /// Queues [`Store::insert_document_if_new`].
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn insert_document_if_new(
        &self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<Ticket<Novelty>> {
        self.submit(WriteRequest::store(
            WriteKind::InsertIfNew,
            document,
            signature,
        ))
    }

    /// Queues [`Store::append`].
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn append(&self, signature: &Signature) -> Result<Ticket<DocumentId>> {
        self.insert_document(Document::without_key(), signature)
    }

    /// Queues [`Store::remove`].
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<Ticket<Option<DocumentId>>> {
        self.submit(WriteRequest::remove(key.as_ref()))
    }

    /// Queues [`Store::touch`].
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn touch(&self, key: impl AsRef<[u8]>, stamp: u64) -> Result<Ticket<Option<DocumentId>>> {
        self.submit(WriteRequest::touch(key.as_ref(), stamp))
    }

    /// A ticket that is answered when all that was queued before is made: [`Store::flush`].
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn flush(&self) -> Result<Ticket<()>> {
        self.submit(WriteRequest::flush())
    }

    fn submit<T>(&self, call: WriteRequest<'_>) -> Result<Ticket<T>> {
        let queue = self.handle.queue();
        queue.check_queued(&call)?;
        let size_bytes = call.size_bytes();
        let call = call.into_owned();
        queue.store.context.counters.call_waits();
        let submitted = queue.group.submit(call, size_bytes, WAITING_BYTES);
        let Some((slot, handed_over)) = submitted else {
            queue.store.context.counters.call_refused();
            return Err(Error::QueueFull {
                waiting_bytes: WAITING_BYTES,
            });
        };
        if handed_over == HandedOver::NeedsThread {
            queue.make_leader();
        }
        Ok(Ticket {
            slot,
            store: Arc::downgrade(&queue.store),
            of: PhantomData,
        })
    }
}

/// The answer to a change that was queued: a future, or [`wait`](Self::wait) for it.
#[must_use = "without its answer it is not known whether the change was made"]
pub struct Ticket<T> {
    slot: Arc<ReplySlot<Result<WriteReply>>>,
    /// To see whether the thread that waits is the one that all others wait for.
    store: std::sync::Weak<OpenStore>,
    of: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

#[expect(private_bounds, reason = "the answers that calls of the queue have")]
impl<T: FromReply> Ticket<T> {
    /// Waits for the answer. The change is durable then.
    ///
    /// # Errors
    ///
    /// Those of the call that was queued; [`Error::Busy`] if this thread holds a write transaction,
    /// for which the change waits.
    pub fn wait(self) -> Result<T> {
        let store = self.store.upgrade();
        if store.is_some_and(|store| store.writer_lock.is_held_here()) {
            return Err(Error::Busy);
        }
        match self.slot.wait() {
            Reply::Answer(answer) => take_reply(answer),
            Reply::Abandoned | Reply::Lead => Err(abandoned()),
        }
    }
}

impl<T: FromReply> Future for Ticket<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        self.slot.poll(context).map(|told| match told {
            Reply::Answer(answer) => take_reply(answer),
            Reply::Abandoned | Reply::Lead => Err(abandoned()),
        })
    }
}
