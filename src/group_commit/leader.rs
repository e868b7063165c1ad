//! Many threads' changes made together: one leads, the others wait for it.
//!
//! There is no background thread: the first caller in a group commits for all of them, and a lone
//! writer pays nothing extra.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::error::{Error, Result};
use crate::group_commit::commit_queue::{CommitQueue, Follower, GroupLimits, HandedOver, Joined};
use crate::group_commit::reply::{Reply, ReplySlot};
use crate::group_commit::write_request::{
    FromReply, WriteKind, WriteReply, WriteRequest, commit_together, take_reply,
};
use crate::read::{SnapshotState, SnapshotView};
use crate::sketch::Signature;
use crate::state::OpenStore;
use crate::sync::thread;
use crate::types::{Document, DocumentId, Novelty, Upserted};
use crate::write::find_duplicate;

/// Bytes of keys, payloads and signatures that one group takes together, but for its last call.
const GROUP_BYTES: usize = 16 << 20;

/// An open store and the changes that wait to be committed together.
pub(crate) struct GroupCommit {
    pub(crate) store: Arc<OpenStore>,
    pub(crate) group: CommitQueue<WriteRequest<'static>, Result<WriteReply>>,
    /// The snapshot that was taken last by a thread that looked for duplicates before it queued up.
    shared_snapshot: Mutex<Weak<SnapshotState>>,
}

/// A handle of a store. When the last one is let go of, it waits for what has been queued.
#[derive(Clone)]
pub(crate) struct GroupCommitHandle {
    queue: Arc<GroupCommit>,
    last: Arc<LastHandle>,
}

/// Snapshots, transactions and tickets do not hold it: only handles do.
struct LastHandle {
    queue: Arc<GroupCommit>,
}

impl Drop for LastHandle {
    fn drop(&mut self) {
        // Those who wait in the line would wait for this very thread.
        if !self.queue.store.writer_lock.is_held_here() {
            self.queue.group.wait_idle();
        }
    }
}

impl GroupCommitHandle {
    pub(crate) fn new(store: Arc<OpenStore>) -> Self {
        let queue = Arc::new(GroupCommit {
            store,
            group: CommitQueue::default(),
            shared_snapshot: Mutex::default(),
        });
        let last = Arc::new(LastHandle {
            queue: Arc::clone(&queue),
        });
        Self { queue, last }
    }

    pub(crate) fn store(&self) -> &Arc<OpenStore> {
        &self.queue.store
    }

    pub(crate) fn queue(&self) -> &Arc<GroupCommit> {
        &self.queue
    }

    pub(crate) fn insert(
        &self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        self.queue
            .call(WriteRequest::store(WriteKind::Insert, document, signature))
    }

    pub(crate) fn upsert(&self, document: Document<'_>, signature: &Signature) -> Result<Upserted> {
        self.queue
            .call(WriteRequest::store(WriteKind::Upsert, document, signature))
    }

    pub(crate) fn insert_if_new(
        &self,
        document: Document<'_>,
        signature: &Signature,
    ) -> Result<Novelty> {
        self.queue.call(WriteRequest::store(
            WriteKind::InsertIfNew,
            document,
            signature,
        ))
    }

    pub(crate) fn remove(&self, key: &[u8]) -> Result<Option<DocumentId>> {
        self.queue.call(WriteRequest::remove(key))
    }

    pub(crate) fn touch(&self, key: &[u8], stamp: u64) -> Result<Option<DocumentId>> {
        self.queue.call(WriteRequest::touch(key, stamp))
    }

    pub(crate) fn flush(&self) -> Result<()> {
        self.queue.call(WriteRequest::flush())
    }

    /// Waits for what has been queued, and closes the file if nothing else holds it; returns whether
    /// it is closed now.
    pub(crate) fn close(self) -> Result<bool> {
        let flushed = match self.store().writable {
            true => self.flush(),
            false => Ok(()),
        };
        let Self { queue, last } = self;
        drop(last);
        let store = Arc::into_inner(queue).and_then(|queue| Arc::into_inner(queue.store));
        let closed = match store {
            Some(store) => store.engine.close().map(|()| true),
            None => Ok(false),
        };
        flushed.and(closed)
    }
}

/// What a look at the committed documents has found.
enum EarlyCheck<'a> {
    Known(Novelty),
    Queues(WriteRequest<'a>),
}

/// Lets the next one lead, whatever happens.
struct Leader<'s> {
    queue: &'s Arc<GroupCommit>,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if self.queue.group.hand_over() == HandedOver::NeedsThread {
            self.queue.make_leader();
        }
    }
}

impl GroupCommit {
    fn call<T: FromReply>(self: &Arc<Self>, call: WriteRequest<'_>) -> Result<T> {
        let _counted = self.store.context.counters.begin_call();
        self.check_call(&call)?;
        if self.group.try_lead() {
            return take_reply(self.lead(&call));
        }
        let call = match self.look_ahead(call)? {
            EarlyCheck::Known(known) => return take_reply(Ok(WriteReply::Novelty(known))),
            EarlyCheck::Queues(call) => call,
        };
        let size_bytes = call.size_bytes();
        match self.group.join(call.into_owned(), size_bytes) {
            Joined::Leads(call) => take_reply(self.lead(&call)),
            Joined::Waits(slot) => take_reply(self.wait(&slot)),
        }
    }

    /// What can be wrong with a call alone is its caller's error, and never others'.
    pub(crate) fn check_queued(&self, call: &WriteRequest<'_>) -> Result<()> {
        self.store.check_writable()?;
        self.store.context.health.check_writes()?;
        if let Some((document, signature)) = call.stored() {
            document.validate()?;
            self.store.context.check_signature(signature)?;
        }
        Ok(())
    }

    /// The same of a call whose thread will wait, which must not wait for itself.
    fn check_call(&self, call: &WriteRequest<'_>) -> Result<()> {
        self.check_queued(call)?;
        match self.store.writer_lock.is_held_here() {
            true => Err(Error::Busy),
            false => Ok(()),
        }
    }

    fn limits(&self) -> GroupLimits {
        GroupLimits {
            calls: self.store.context.options.group_calls,
            size_bytes: GROUP_BYTES,
            wait: self.store.context.options.group_wait,
        }
    }

    /// Makes a call of this thread, which leads, together with those that wait.
    fn lead(self: &Arc<Self>, call: &WriteRequest<'_>) -> Result<WriteReply> {
        let leading = Leader { queue: self };
        let others = self.group.gather(1, self.limits());
        let calls: Vec<&WriteRequest<'_>> = [call]
            .into_iter()
            .chain(others.iter().map(|other| &other.call))
            .collect();
        let mut answers = commit_together(&self.store, &self.group, &calls).into_iter();
        let own = answers.next();
        // The next one may begin while those who waited are told.
        drop(leading);
        self.answer(others, answers);
        own.unwrap_or_else(|| Err(abandoned()))
    }

    /// Makes calls that wait; whether there were any.
    fn lead_once(self: &Arc<Self>) -> bool {
        let others = self.group.gather(0, self.limits());
        let calls: Vec<&WriteRequest<'_>> = others.iter().map(|other| &other.call).collect();
        let answers = commit_together(&self.store, &self.group, &calls);
        let is_any = !others.is_empty();
        self.answer(others, answers.into_iter());
        is_any
    }

    fn answer(
        &self,
        waiting: Vec<Follower<WriteRequest<'static>, Result<WriteReply>>>,
        answers: impl Iterator<Item = Result<WriteReply>>,
    ) {
        let tickets = waiting.iter().filter(|waiting| !waiting.is_thread);
        self.group.note_answered(tickets.count());
        for (waiting, answer) in waiting.into_iter().zip(answers) {
            if !waiting.is_thread {
                self.store
                    .context
                    .counters
                    .call_answered(waiting.call.age());
            }
            waiting.answer(answer);
        }
    }

    /// Waits for the answer to a call of this thread, and leads if it is told to.
    fn wait(self: &Arc<Self>, slot: &ReplySlot<Result<WriteReply>>) -> Result<WriteReply> {
        match slot.wait() {
            Reply::Answer(answer) => answer,
            Reply::Abandoned => Err(abandoned()),
            Reply::Lead => {
                let _leading = Leader { queue: self };
                loop {
                    self.lead_once();
                    match slot.try_fetch() {
                        Some(Reply::Answer(answer)) => return answer,
                        Some(Reply::Abandoned) => return Err(abandoned()),
                        Some(Reply::Lead) | None => {}
                    }
                }
            }
        }
    }

    /// Makes a thread that leads as long as something waits. If there can be none, those who wait are
    /// told.
    pub(crate) fn make_leader(self: &Arc<Self>) {
        let made = self.group.make_thread(|before| {
            let queue = Arc::clone(self);
            let made = thread::Builder::new().name("resemblance-commit".into());
            made.spawn(move || {
                if let Some(before) = before {
                    let _ = before.join();
                }
                let _leading = Leader { queue: &queue };
                while queue.lead_once() {}
            })
        });
        if let Err(error) = made {
            let error = Error::Io {
                action: "making a thread that commits what was queued".into(),
                source: error,
            };
            let all = GroupLimits {
                calls: usize::MAX,
                size_bytes: usize::MAX,
                wait: std::time::Duration::ZERO,
            };
            let waiting = self.group.gather(0, all);
            let answers = std::iter::repeat_with(|| Err(error.repeated()));
            self.answer(waiting, answers);
            drop(Leader { queue: self });
        }
    }

    /// Looks for what a document may resemble among those that are committed, while others write.
    fn look_ahead<'a>(self: &Arc<Self>, call: WriteRequest<'a>) -> Result<EarlyCheck<'a>> {
        if call.kind != WriteKind::InsertIfNew {
            return Ok(EarlyCheck::Queues(call));
        }
        let Some((document, signature)) = call.stored() else {
            return Ok(EarlyCheck::Queues(call));
        };
        // What this thread has queued comes before: only if it is made does a snapshot have it.
        let may_answer = !self.group.has_tickets();
        let snapshot = self.shared_snapshot()?;
        let run_checked = || find_duplicate(snapshot.view(), &document, signature);
        let known = self.store.context.run_checked(run_checked)?;
        if let Some(novelty) = known.novelty {
            if !may_answer {
                return Ok(EarlyCheck::Queues(call));
            }
            self.store.context.counters.note_known(&novelty);
            return Ok(EarlyCheck::Known(novelty));
        }
        if known.beyond.is_some() {
            // What the budget allows is chosen from all candidates together.
            return Ok(EarlyCheck::Queues(call));
        }
        let next_id = snapshot.inner.version.state.next_id;
        Ok(EarlyCheck::Queues(call.known_since(next_id)))
    }

    /// A snapshot of the last commit: that of another thread, if one has it.
    fn shared_snapshot(self: &Arc<Self>) -> Result<SnapshotView> {
        let mut shared = self
            .shared_snapshot
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(inner) = shared.upgrade()
            && self.store.versions.is_current(inner.version.state.commit)
        {
            return Ok(SnapshotView { inner });
        }
        let snapshot = SnapshotView::open(&self.store)?;
        *shared = Arc::downgrade(&snapshot.inner);
        Ok(snapshot)
    }
}

pub(crate) fn abandoned() -> Error {
    Error::Closed {
        reason: "who was to make this change together with others stopped".into(),
    }
}
