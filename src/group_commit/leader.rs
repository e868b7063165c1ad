//! Group commit: one thread leads and commits the requests of all threads; the others follow and
//! wait.
//!
//! There is no background thread: the first caller in a group commits for all of them, and a lone
//! writer pays nothing extra.

use std::sync::{Arc, Mutex, Weak};

use crate::error::{Error, Result};
use crate::group_commit::commit_queue::{Follower, GroupLimits, HandedOver, Joined};
use crate::group_commit::reply::{Reply, ReplySlot};
use crate::group_commit::write_request::{
    NewDocument, WriteQueue, WriteReply, WriteRequest, commit_together,
};
use crate::invariant::{OrBug, bug, invariant};
use crate::read::{SnapshotState, SnapshotView};
use crate::state::OpenStore;
use crate::sync::{IgnorePoison, thread};
use crate::threads::processors;
use crate::types::Novelty;
use crate::write::{check_position, find_duplicate};

/// Bytes of keys, payloads and signatures beyond which a group takes no further request.
const GROUP_BYTES: usize = 16 << 20;

/// The smallest number of processors with which threads check for duplicates before they queue, whoever leads. With
/// fewer, the leader has one of them, and finds the duplicates of a whole group for half of the work.
const MIN_PROCESSORS: usize = 3;

/// A request that a leader has taken from the queue.
type TakenRequest = Follower<WriteRequest<'static>, Result<WriteReply>>;

/// An open store, and the requests that wait to be committed together.
pub(super) struct GroupCommit {
    pub(super) store: Arc<OpenStore>,
    pub(super) queue: WriteQueue,
    /// True if threads always check for duplicates before they queue their requests.
    checks_early: bool,
    /// The snapshot that a thread took last for a duplicate check before it queued its request.
    shared_snapshot: Mutex<Weak<SnapshotState>>,
}

/// A handle of a store. Dropping the last one waits for the requests that are queued.
#[derive(Clone)]
pub(crate) struct GroupCommitHandle {
    group: Arc<GroupCommit>,
    last: Arc<LastHandle>,
}

/// The parts of a store that [`Store::close`](crate::Store::close) has closed.
///
/// ```
/// # use resemblance::{Closed, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// let snapshot = store.snapshot()?;
/// assert_eq!(store.close()?, Closed::HandleOnly);
/// drop(snapshot); // closes the file
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "the file may still be open and locked"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Closed {
    /// The file is closed.
    File,
    /// The file remains open, and locked, until the last of its other handles, snapshots and
    /// transactions is dropped.
    HandleOnly,
}

/// Its drop is that of the last handle: snapshots, transactions and tickets do not hold it.
struct LastHandle {
    group: Arc<GroupCommit>,
}

impl Drop for LastHandle {
    fn drop(&mut self) {
        // In another process no thread leads, and none will end.
        if !self.group.store.context.health.is_at_home() {
            return;
        }
        // With a write transaction on this thread, the leader waits for this very thread.
        if !self.group.store.writer_lock.is_held_here() {
            self.group.queue.wait_idle();
        }
    }
}

impl GroupCommitHandle {
    pub(crate) fn new(store: Arc<OpenStore>) -> Self {
        // A duplicate that is known need not wait for other processes.
        let checks_early = store.engine.has_peers || processors() >= MIN_PROCESSORS;
        let group = Arc::new(GroupCommit {
            store,
            checks_early,
            queue: WriteQueue::default(),
            shared_snapshot: Mutex::default(),
        });
        let last = Arc::new(LastHandle {
            group: Arc::clone(&group),
        });
        Self { group, last }
    }

    pub(crate) fn store(&self) -> &Arc<OpenStore> {
        &self.group.store
    }

    pub(super) fn group(&self) -> &Arc<GroupCommit> {
        &self.group
    }

    /// Commits a request, together with those of other threads, and returns its reply.
    pub(crate) fn commit(&self, request: WriteRequest<'_>) -> Result<WriteReply> {
        self.group.commit(request)
    }

    /// Waits for queued requests, and closes the file if nothing else holds it.
    pub(crate) fn close(self) -> Result<Closed> {
        self.store().context.health.check_home()?;
        let flushed = match self.store().writable {
            true => self.commit(WriteRequest::Flush).and_then(WriteReply::done),
            false => Ok(()),
        };
        let Self { group, last } = self;
        // `last` waits for the queue, and holds the group as well: before it is dropped, nothing
        // can be closed.
        drop(last);
        let store = Arc::into_inner(group).and_then(|group| Arc::into_inner(group.store));
        let closed = match store {
            Some(store) => store.close().map(|()| Closed::File),
            None => Ok(Closed::HandleOnly),
        };
        flushed.and(closed)
    }
}

/// Guard of the lead. Dropping it hands the lead over, also after a panic, so that no thread waits
/// for a leader that no longer exists.
struct Leader<'s> {
    group: &'s Arc<GroupCommit>,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if self.group.queue.hand_over() == HandedOver::NeedsThread {
            self.group.start_leader();
        }
    }
}

impl GroupCommit {
    /// Commits a request, together with those of other threads, and returns its reply.
    fn commit(self: &Arc<Self>, mut request: WriteRequest<'_>) -> Result<WriteReply> {
        let _counted = self.store.context.counters.begin_call();
        self.check_waiting(&request)?;
        // A thread that finds no leader does not check for a duplicate first: the transaction has to check in
        // any case, and a lone writer would pay for both. Other processes could not write during that check.
        if !self.store.engine.has_peers && self.queue.try_lead() {
            return self.lead(&request);
        }
        // Another thread writes, or another process may: use the wait for a duplicate check. If the leader waits
        // itself, a transaction is open, which may take long.
        if (self.checks_early || self.store.writer_lock.is_awaited())
            && let WriteRequest::InsertIfNew {
                new,
                searched_below,
            } = &mut request
            && let Some(novelty) = self.check_early(new, searched_below)?
        {
            return Ok(WriteReply::Novelty(novelty));
        }
        let size_bytes = request.size_bytes();
        match self.queue.join(request.into_owned(), size_bytes) {
            Joined::Leads(request) => self.lead(&request),
            Joined::Waits(slot) => self.wait(&slot),
        }
    }

    /// Refuses a request that is wrong by itself, so that it never fails the group.
    pub(super) fn check_queued(&self, request: &WriteRequest<'_>) -> Result<()> {
        self.store.check_writable()?;
        self.store.context.health.check_writes()?;
        if let Some(new) = request.stored() {
            new.document.validate()?;
            self.store.context.check_signature(&new.signature)?;
        }
        match request {
            WriteRequest::SetPosition { name, position } => {
                check_position(name, position.as_deref())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a request as [`check_queued`](Self::check_queued), and one whose thread would wait for
    /// its own transaction.
    fn check_waiting(&self, request: &WriteRequest<'_>) -> Result<()> {
        self.check_queued(request)?;
        match self.store.writer_lock.is_held_here() {
            true => Err(Error::Busy),
            false => Ok(()),
        }
    }

    fn limits(&self) -> GroupLimits {
        GroupLimits {
            max_requests: self.store.context.options.group_calls,
            max_bytes: GROUP_BYTES,
            max_wait: self.store.context.options.group_wait,
        }
    }

    /// Commits the request of this thread, which leads, together with those that wait.
    fn lead(self: &Arc<Self>, request: &WriteRequest<'_>) -> Result<WriteReply> {
        let leading = Leader { group: self };
        let followers = self.queue.gather(1, self.limits());
        let mut requests = vec![request];
        requests.extend(followers.iter().map(|follower| &follower.request));
        let mut replies = commit_together(&self.store, &self.queue, &requests).into_iter();
        let own = replies.next();
        // The next leader may begin while the followers get their replies.
        drop(leading);
        self.answer(followers, replies);
        own.or_bug("a reply to the leader's own request")?
    }

    /// Commits requests that wait, and returns them with their replies.
    fn commit_waiting(&self) -> (Vec<TakenRequest>, Vec<Result<WriteReply>>) {
        let followers = self.queue.gather(0, self.limits());
        let requests: Vec<&WriteRequest<'_>> = followers.iter().map(|it| &it.request).collect();
        let replies = commit_together(&self.store, &self.queue, &requests);
        (followers, replies)
    }

    fn answer(
        &self,
        followers: Vec<TakenRequest>,
        replies: impl Iterator<Item = Result<WriteReply>>,
    ) {
        let tickets = followers.iter().filter(|follower| !follower.has_thread);
        self.queue.note_answered(tickets.count());
        for (follower, reply) in followers.into_iter().zip(replies) {
            // The thread of any other request counts its reply itself.
            if !follower.has_thread {
                let counters = &self.store.context.counters;
                counters.call_answered(follower.age());
            }
            follower.answer(reply);
        }
    }

    /// Waits for the reply to a request of this thread, and leads if the lead is handed to it.
    fn wait(self: &Arc<Self>, slot: &ReplySlot<Result<WriteReply>>) -> Result<WriteReply> {
        match slot.wait() {
            Reply::Answer(answer) => answer,
            Reply::Abandoned => Err(abandoned()),
            Reply::Lead => {
                let mut leading = Some(Leader { group: self });
                // Its request waits behind older ones, and may be in a later group than the first.
                while leading.is_some() {
                    let (followers, replies) = self.commit_waiting();
                    invariant!(
                        !followers.is_empty(),
                        "a request is neither queued nor answered"
                    );
                    if followers.iter().any(|it| it.is_answered_in(slot)) {
                        // The next leader may begin while the followers get their replies.
                        drop(leading.take());
                    }
                    self.answer(followers, replies.into_iter());
                }
                match slot.try_fetch() {
                    Some(Reply::Answer(answer)) => answer,
                    Some(Reply::Abandoned) => Err(abandoned()),
                    Some(Reply::Lead) => Err(bug("a leader was asked to lead")),
                    None => Err(bug("a request was committed without a reply")),
                }
            }
        }
    }

    /// Starts a thread that leads as long as something waits. If none can be started, the requests that
    /// wait get that error.
    pub(super) fn start_leader(self: &Arc<Self>) {
        let started = self.queue.start_thread(|before| {
            let group = Arc::clone(self);
            let builder = thread::Builder::new().name("rsm-commit".into());
            builder.spawn(move || {
                if let Some(before) = before {
                    let _ = before.join();
                }
                let _leading = Leader { group: &group };
                loop {
                    let (followers, replies) = group.commit_waiting();
                    if followers.is_empty() {
                        return;
                    }
                    group.answer(followers, replies.into_iter());
                }
            })
        });
        if let Err(error) = started {
            let error = Error::Io {
                action: "making a thread that commits what was queued".into(),
                source: error,
            };
            let all = GroupLimits {
                max_requests: usize::MAX,
                max_bytes: usize::MAX,
                max_wait: std::time::Duration::ZERO,
            };
            let followers = self.queue.gather(0, all);
            let replies = std::iter::repeat_with(|| Err(error.repeated()));
            self.answer(followers, replies);
            // `is_led` is still set for the thread that did not start. Without this hand-over every
            // later request would wait for a leader that never arrives.
            drop(Leader { group: self });
        }
    }

    /// Runs the duplicate check of a request in a snapshot, while others write. Returns why the document is not
    /// new; if it may be, the request must be queued, with the id below which neither its key nor a near-duplicate
    /// was found.
    fn check_early(
        self: &Arc<Self>,
        new: &NewDocument<'_>,
        searched_below: &mut Option<u64>,
    ) -> Result<Option<Novelty>> {
        // A request that this thread has submitted precedes this one, and the snapshot may be older
        // than its commit: then only the queue knows the answer. The queue is asked before the
        // snapshot is taken, because in between the request may be committed and get its reply.
        let may_answer = !self.queue.has_tickets();
        let snapshot = self.shared_snapshot()?;
        let find = || find_duplicate(snapshot.view(), &new.document, &new.signature);
        let found = self.store.context.run_checked(find)?;
        // The budget's choice is one from all candidates: those of the snapshot and those that were inserted
        // since cannot be searched apart.
        if found.novelty.is_none() && found.beyond.is_none() {
            *searched_below = Some(snapshot.inner.version.state.next_id);
        }
        let known = found.novelty.filter(|_| may_answer);
        Ok(known.inspect(|novelty| self.store.context.counters.note_known(novelty)))
    }

    /// Returns a snapshot of the last commit: the one of another thread, if that still has it.
    fn shared_snapshot(self: &Arc<Self>) -> Result<SnapshotView> {
        let mut shared = self.shared_snapshot.lock().ignore_poison();
        if let Some(inner) = shared.upgrade()
            // Other processes may have committed since.
            && !self.store.engine.has_peers
            && self.store.versions.is_current(inner.version.state.commit)
        {
            return Ok(SnapshotView { inner });
        }
        let snapshot = SnapshotView::open(&self.store)?;
        // A weak reference: an unused snapshot must not keep the engine from reusing pages.
        *shared = Arc::downgrade(&snapshot.inner);
        Ok(snapshot)
    }
}

pub(super) fn abandoned() -> Error {
    Error::Closed {
        reason: "the thread that was to commit this change with others stopped".into(),
    }
}
