//! The queue for callers that do not wait, such as asynchronous programs, and its tickets.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::error::{Error, Result};
use crate::group_commit::commit_queue::HandedOver;
use crate::group_commit::leader::{GroupCommitHandle, abandoned};
use crate::group_commit::reply::{Reply, ReplySlot};
use crate::group_commit::write_request::{WriteReply, WriteRequest};
use crate::invariant::bug;
use crate::state::OpenStore;
use crate::sync::HomeProcess;
use crate::types::{Document, DocumentId, Novelty, Upserted};
use resemblance_sketch::sketch::Signature;

/// Queues changes without waiting for them. Each method returns a [`Ticket`], which is a future; a
/// thread can also wait for it. [`Store::queue`](crate::Store::queue) makes one.
///
/// The store executes the changes of all threads, including calls that wait, in the order in which
/// they are queued, many of them in one transaction. It runs a thread while changes are waiting. A
/// queued change is executed even if its ticket is dropped. It survives a crash once the ticket has
/// its answer.
///
/// ```
/// # use resemblance::{MinHash, Novelty, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// let queue = store.queue();
/// let page = store.sketch_text("some text or other")?;
/// let first = queue.insert_if_new("a", &page)?;
/// let second = queue.insert_if_new("b", &page)?;
/// assert!(first.wait()?.is_new());
/// assert!(matches!(second.wait()?, Novelty::NearDuplicate(_)));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct Queue {
    // A handle: the last one waits for queued requests.
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

    /// Queues [`Store::insert`](crate::Store::insert).
    ///
    /// # Errors
    ///
    /// Immediately: [`Error::InvalidParameter`] and [`Error::SignatureMismatch`] for a document
    /// that cannot be stored, [`Error::QueueFull`] if
    /// [`StoreOptions::queue_bytes`](crate::StoreOptions::queue_bytes) of changes wait,
    /// [`Error::ReadOnly`], [`Error::Closed`]. The ticket returns all other errors. The same is
    /// true of the other methods below.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let ticket = store.queue().insert(("page/1", "a title"), &page)?;
    /// assert_eq!(ticket.wait()?.get(), 0); // its id, once it is durable
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn insert<'d>(
        &self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<Ticket<DocumentId>> {
        let request = WriteRequest::insert(document.into(), signature);
        self.submit(request, WriteReply::inserted)
    }

    /// Queues [`Store::upsert`](crate::Store::upsert).
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let queue = store.queue();
    /// let tickets = [queue.upsert("a", &page)?, queue.upsert("a", &page)?];
    /// let [first, second] = tickets.map(|ticket| ticket.wait());
    /// assert_eq!(first?.id, second?.id);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn upsert<'d>(
        &self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<Ticket<Upserted>> {
        let request = WriteRequest::upsert(document.into(), signature);
        self.submit(request, WriteReply::upserted)
    }

    /// Queues [`Store::insert_if_new`](crate::Store::insert_if_new).
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    pub fn insert_if_new<'d>(
        &self,
        document: impl Into<Document<'d>>,
        signature: &Signature,
    ) -> Result<Ticket<Novelty>> {
        let request = WriteRequest::insert_if_new(document.into(), signature);
        self.submit(request, WriteReply::novelty)
    }

    /// Queues [`Store::remove`](crate::Store::remove).
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// let ticket = store.queue().remove("a")?;
    /// assert!(ticket.wait()?.is_some());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<Ticket<Option<DocumentId>>> {
        let request = WriteRequest::Remove(key.as_ref().into());
        self.submit(request, WriteReply::found)
    }

    /// Queues [`Store::touch`](crate::Store::touch).
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// # store.insert("a", &page)?;
    /// store.queue().touch("a", 21)?.wait()?;
    /// assert_eq!(store.snapshot()?.get("a")?.map(|record| record.stamp()), Some(21));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn touch(&self, key: impl AsRef<[u8]>, stamp: u64) -> Result<Ticket<Option<DocumentId>>> {
        let request = WriteRequest::Touch(key.as_ref().into(), stamp);
        self.submit(request, WriteReply::found)
    }

    /// Queues [`Store::set_position`](crate::Store::set_position). The position is durable no earlier
    /// than the changes queued before it. Like every change, it is also made if one of them fails.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let queue = store.queue();
    /// let message = queue.insert_if_new("a", &page)?;
    /// queue.set_position("pages-0", Some(b"41"))?.wait()?;
    /// assert!(message.wait()?.is_new());
    /// assert_eq!(store.snapshot()?.position("pages-0")?, Some(b"41".to_vec()));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn set_position(&self, name: &str, position: Option<&[u8]>) -> Result<Ticket<()>> {
        let request = WriteRequest::set_position(name, position);
        self.submit(request, WriteReply::done)
    }

    /// Queues [`Store::flush`](crate::Store::flush): the ticket has its answer once everything that was
    /// queued before is durable.
    ///
    /// # Errors
    ///
    /// The errors of [`insert`](Self::insert).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let queue = store.queue();
    /// for key in ["a", "b", "c"] {
    ///     queue.insert(key, &page)?; // the tickets are dropped
    /// }
    /// queue.flush()?.wait()?; // or `.await`
    /// assert_eq!(store.snapshot()?.len(), 3);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn flush(&self) -> Result<Ticket<()>> {
        self.submit(WriteRequest::Flush, WriteReply::done)
    }

    /// Waits until a change may be queued, because fewer bytes are waiting than
    /// [`StoreOptions::queue_bytes`](crate::StoreOptions::queue_bytes) allows. The change may still
    /// be refused if another task queues one first.
    ///
    /// # Errors
    ///
    /// Only [`Error::Forked`].
    ///
    /// ```
    /// # use resemblance::{Error, MinHash, Queue, Result, Schema, Signature, Store, Text, Ticket};
    /// # use resemblance::Novelty;
    /// async fn queue_page(queue: &Queue, key: &str, page: &Signature) -> Result<Ticket<Novelty>> {
    ///     loop {
    ///         queue.ready().await?;
    ///         match queue.insert_if_new(key, page) {
    ///             Err(Error::QueueFull { .. }) => {}
    ///             queued => return queued,
    ///         }
    ///     }
    /// }
    /// # let _ = queue_page;
    /// ```
    pub async fn ready(&self) -> Result<()> {
        let group = self.handle.group();
        let store = &group.store.context;
        std::future::poll_fn(|context| {
            // First: in another process the lock of the queue may never be released.
            store.health.check_home()?;
            let room = group.queue.poll_room(context, store.options.queue_bytes);
            room.map(Ok)
        })
        .await
    }

    fn submit<T>(
        &self,
        request: WriteRequest<'_>,
        answer_of: fn(WriteReply) -> Result<T>,
    ) -> Result<Ticket<T>> {
        let group = self.handle.group();
        group.check_queued(&request)?;
        let size_bytes = request.size_bytes();
        group.store.context.counters.call_waits();
        let waiting_bytes = group.store.context.options.queue_bytes;
        let owned = request.into_owned();
        let submitted = group.queue.submit(owned, size_bytes, waiting_bytes);
        let Some((slot, handed_over)) = submitted else {
            group.store.context.counters.call_refused();
            return Err(Error::QueueFull { waiting_bytes });
        };
        if handed_over == HandedOver::NeedsThread {
            group.start_leader();
        }
        Ok(Ticket {
            slot,
            store: Arc::downgrade(&group.store),
            home: HomeProcess::current(),
            answer_of,
        })
    }
}

/// The answer to a queued change. It is a future; a thread can [`wait`](Self::wait) for it.
///
/// ```
/// # use resemblance::{MinHash, Novelty, Schema, Store, Text, Ticket};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// let ticket: Ticket<Novelty> = store.queue().insert_if_new("a", &page)?;
/// assert!(ticket.wait()?.is_new()); // in asynchronous code `ticket.await?`
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "without its answer it is not known whether the change was made"]
pub struct Ticket<T> {
    slot: Arc<ReplySlot<Result<WriteReply>>>,
    /// Knows whether the thread that waits holds the write transaction that all others wait for.
    store: std::sync::Weak<OpenStore>,
    home: HomeProcess,
    /// Makes the answer of the reply to the request.
    answer_of: fn(WriteReply) -> Result<T>,
}

impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

impl<T> Ticket<T> {
    /// Waits for the answer. The change is durable when this returns.
    ///
    /// # Errors
    ///
    /// The errors of the queued call, and [`Error::Busy`] if this thread holds a write transaction,
    /// for which the change would wait.
    pub fn wait(self) -> Result<T> {
        self.home.check()?;
        let store = self.store.upgrade();
        if store.is_some_and(|store| store.writer_lock.is_held_here()) {
            return Err(Error::Busy);
        }
        self.answer(self.slot.wait())
    }

    fn answer(&self, reply: Reply<Result<WriteReply>>) -> Result<T> {
        match reply {
            Reply::Answer(answer) => (self.answer_of)(answer?),
            Reply::Abandoned => Err(abandoned()),
            // The owner of a ticket may not be blocked, so the lead never passes to it.
            Reply::Lead => Err(bug("the owner of a ticket was asked to lead")),
        }
    }
}

impl<T> Future for Ticket<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        match self.home.check() {
            Ok(()) => self.slot.poll(context).map(|reply| self.answer(reply)),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}
