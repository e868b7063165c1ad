//! The commit queue: write requests of many threads that one transaction will commit together.
//!
//! There is no background thread. If the queue has no leader when a request arrives, the thread of
//! that request leads: it takes the requests that others have queued meanwhile, commits all of them
//! in one transaction, and replies. Requests that arrive during the sync wait for the next leader,
//! which is the first waiting thread. If only tickets are waiting, whose owners must not be
//! blocked, a thread is started to lead. It ends when the queue is empty.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::group_commit::reply::ReplySlot;
use crate::sync::{Condvar, HomeProcess, IgnorePoison, Mutex, MutexGuard, thread};

/// Limits of one group.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupLimits {
    /// Greatest number of requests in a group, the leader's own included.
    pub(super) max_requests: usize,
    /// A group takes no further request once its requests have this many bytes.
    pub(super) max_bytes: usize,
    /// Longest time that a leader waits for threads that called lately.
    pub(super) max_wait: Duration,
}

/// A request in the queue. Dropping it without a reply informs its owner that there will be none.
pub(super) struct Follower<C, A> {
    pub(super) request: C,
    queued: Instant,
    size_bytes: usize,
    /// True if a thread waits for the reply, which can lead then.
    pub(super) has_thread: bool,
    slot: Arc<ReplySlot<A>>,
}

impl<C, A> Follower<C, A> {
    /// Returns the time since the request was queued.
    pub(super) fn age(&self) -> Duration {
        self.queued.elapsed()
    }

    /// Returns true if the reply is to arrive in this slot.
    pub(super) fn is_answered_in(&self, slot: &ReplySlot<A>) -> bool {
        std::ptr::eq(&raw const *self.slot, slot)
    }

    pub(super) fn answer(self, answer: A) {
        self.slot.answer(answer);
    }
}

impl<C, A> Drop for Follower<C, A> {
    fn drop(&mut self) {
        self.slot.abandon();
    }
}

/// The part that falls to a thread which queues a request.
pub(super) enum Joined<C, A> {
    /// The queue had no leader: this thread leads now, and gets its request back.
    Leads(C),
    /// Another thread leads: the reply arrives here.
    Waits(Arc<ReplySlot<A>>),
}

/// The part that falls to a thread which has stopped leading, or has queued a ticket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HandedOver {
    /// Another thread leads, or nothing is left to do.
    Done,
    /// Only tickets wait: a thread must be started to lead.
    NeedsThread,
}

struct QueueState<C, A> {
    waiting: VecDeque<Follower<C, A>>,
    is_led: bool,
    /// Bytes of the waiting requests.
    size_bytes: usize,
    /// Bytes of the largest request that did not fit since a leader last took requests.
    refused_bytes: usize,
    /// Number of threads that called at about the same time lately.
    expected_threads: usize,
    /// Number of waiting requests at which the leader is woken.
    wake_at: usize,
    /// The last thread that was started to lead.
    started: Option<thread::JoinHandle<()>>,
    /// Tasks that wait until more requests may be submitted.
    wakers: Vec<Waker>,
}

/// The commit queue of a store.
pub(super) struct CommitQueue<C, A> {
    home: HomeProcess,
    state: Mutex<QueueState<C, A>>,
    /// Signalled when the number of requests reaches the leader's target, and when no thread leads
    /// any more.
    changed: Condvar,
    /// Duration of the last commit.
    commit_nanos: AtomicU64,
    /// Number of submitted requests that have no reply yet.
    tickets: AtomicUsize,
}

impl<C, A> Default for QueueState<C, A> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            is_led: false,
            size_bytes: 0,
            refused_bytes: 0,
            expected_threads: 0,
            wake_at: usize::MAX,
            started: None,
            wakers: Vec::new(),
        }
    }
}

/// In another process the requests and the thread remain with the queue that created them.
impl<C, A> Drop for CommitQueue<C, A> {
    fn drop(&mut self) {
        if !self.home.is_current() {
            std::mem::forget(std::mem::take(self.state.get_mut().ignore_poison()));
        }
    }
}

impl<C, A> Default for CommitQueue<C, A> {
    fn default() -> Self {
        Self {
            home: HomeProcess::current(),
            state: Mutex::new(QueueState::default()),
            changed: Condvar::new(),
            commit_nanos: AtomicU64::new(0),
            tickets: AtomicUsize::new(0),
        }
    }
}

impl<C, A> CommitQueue<C, A> {
    fn lock(&self) -> MutexGuard<'_, QueueState<C, A>> {
        self.state.lock().ignore_poison()
    }

    /// Takes the lead and returns true if no thread has it.
    pub(super) fn try_lead(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_led, true)
    }

    /// Queues the request of a thread that will wait for its reply.
    pub(super) fn join(&self, request: C, size_bytes: usize) -> Joined<C, A> {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.is_led, true) {
            return Joined::Leads(request);
        }
        Joined::Waits(self.push(state, request, size_bytes, true))
    }

    /// Queues a request whose reply is fetched later. Returns `None` if other requests wait and all
    /// together would have more than `max_bytes`.
    pub(super) fn submit(
        &self,
        request: C,
        size_bytes: usize,
        max_bytes: usize,
    ) -> Option<(Arc<ReplySlot<A>>, HandedOver)> {
        let mut state = self.lock();
        let is_full = state.size_bytes + size_bytes > max_bytes;
        // A request that exceeds the limit by itself may enter when nothing waits; otherwise it
        // never could.
        if is_full && !state.waiting.is_empty() {
            state.refused_bytes = state.refused_bytes.max(size_bytes);
            return None;
        }
        let handed_over = match std::mem::replace(&mut state.is_led, true) {
            true => HandedOver::Done,
            false => HandedOver::NeedsThread,
        };
        self.tickets.fetch_add(1, Ordering::Relaxed);
        Some((self.push(state, request, size_bytes, false), handed_over))
    }

    /// Waits, as a future does, until waiting requests have fewer than `max_bytes` and leave room for one
    /// that was refused.
    pub(super) fn poll_room(&self, context: &Context<'_>, max_bytes: usize) -> Poll<()> {
        let mut state = self.lock();
        let wanted_bytes = state.refused_bytes.max(1);
        if state.waiting.is_empty() || state.size_bytes + wanted_bytes <= max_bytes {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|w| w.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    fn push(
        &self,
        mut state: MutexGuard<'_, QueueState<C, A>>,
        request: C,
        size_bytes: usize,
        has_thread: bool,
    ) -> Arc<ReplySlot<A>> {
        let slot = Arc::new(ReplySlot::default());
        state.size_bytes += size_bytes;
        state.waiting.push_back(Follower {
            request,
            queued: Instant::now(),
            size_bytes,
            has_thread,
            slot: Arc::clone(&slot),
        });
        if state.waiting.len() >= state.wake_at {
            // The leader shares this variable with threads that wait until no thread leads. Waking
            // only one thread might wake one of those.
            self.changed.notify_all();
        }
        slot
    }

    /// Takes waiting requests, the oldest first, for a leader that has `own` requests itself.
    ///
    /// If fewer requests wait than threads called recently, the leader waits for them: at most for
    /// the limit, and at most for a quarter of the time that the last commit took. Waiting can save
    /// one sync, and must cost less.
    pub(super) fn gather(&self, own: usize, limits: GroupLimits) -> Vec<Follower<C, A>> {
        debug_assert!(own <= limits.max_requests);
        let max_followers = limits.max_requests - own;
        let mut state = self.lock();
        // A lone leader expects none, not even itself.
        let expected = state.expected_threads.saturating_sub(own);
        let wake_at = expected.min(max_followers);
        if state.waiting.len() < wake_at {
            let commit = Duration::from_nanos(self.commit_nanos.load(Ordering::Relaxed));
            state = self.wait_until(state, wake_at, limits.max_wait.min(commit / 4));
        }
        let mut size_bytes = 0_usize;
        let mut followers = Vec::with_capacity(state.waiting.len().min(max_followers));
        while followers.len() < max_followers && size_bytes < limits.max_bytes {
            let Some(next) = state.waiting.pop_front() else {
                break;
            };
            size_bytes += next.size_bytes;
            followers.push(next);
        }
        debug_assert!(size_bytes <= state.size_bytes);
        state.size_bytes -= size_bytes;
        state.refused_bytes = 0;
        let threads = followers.iter().filter(|follower| follower.has_thread);
        state.expected_threads = own + threads.count();
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        // A woken task may take the lock at once.
        wakers.into_iter().for_each(Waker::wake);
        followers
    }

    fn wait_until<'l>(
        &self,
        mut state: MutexGuard<'l, QueueState<C, A>>,
        wake_at: usize,
        max_wait: Duration,
    ) -> MutexGuard<'l, QueueState<C, A>> {
        let start = Instant::now();
        state.wake_at = wake_at;
        while state.waiting.len() < wake_at {
            let left = max_wait.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            (state, _) = self.changed.wait_timeout(state, left).ignore_poison();
        }
        state.wake_at = usize::MAX;
        state
    }

    /// Returns true if a submitted request may not be committed yet. The requests that a thread has
    /// submitted itself count until they have their replies.
    pub(super) fn has_tickets(&self) -> bool {
        self.tickets.load(Ordering::Relaxed) > 0
    }

    /// Counts replies to submitted requests. Called by the leader.
    pub(super) fn note_answered(&self, tickets: usize) {
        self.tickets.fetch_sub(tickets, Ordering::Relaxed);
    }

    /// Records the duration of a commit. Called by the leader.
    pub(super) fn note_commit(&self, time: Duration) {
        // A commit of 584 years counts the same as any longer one.
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.commit_nanos.store(nanos, Ordering::Relaxed);
    }

    /// Hands the lead over to the first waiting thread. Called by the leader.
    pub(super) fn hand_over(&self) -> HandedOver {
        let mut state = self.lock();
        let threads = || state.waiting.iter().filter(|waiting| waiting.has_thread);
        let next = threads().next().map(|next| Arc::clone(&next.slot));
        // They arrived during the commit that has ended, at about the same time as its threads.
        let waiting_threads = threads().count();
        state.expected_threads += waiting_threads;
        // `is_led` remains set while the lead is handed over: no other thread can take it in
        // between, and a request that is queued now finds a leader that has not gathered yet.
        if let Some(slot) = next {
            drop(state);
            slot.lead();
            return HandedOver::Done;
        }
        if !state.waiting.is_empty() {
            // `is_led` remains set for the thread that the caller starts.
            return HandedOver::NeedsThread;
        }
        state.is_led = false;
        drop(state);
        self.changed.notify_all();
        HandedOver::Done
    }

    /// Starts a thread that leads. `start` receives the handle of the thread that was started
    /// before, which has handed over but may not have ended. The new thread waits for it, so
    /// waiting for the last thread means waiting for all of them.
    ///
    /// # Errors
    /// Returns the errors of `start`.
    pub(super) fn start_thread<E>(
        &self,
        start: impl FnOnce(Option<thread::JoinHandle<()>>) -> Result<thread::JoinHandle<()>, E>,
    ) -> Result<(), E> {
        // The new thread cannot hand over before its handle is stored: that takes this lock, too.
        let mut state = self.lock();
        let before = state.started.take();
        state.started = Some(start(before)?);
        Ok(())
    }

    /// Waits until no thread leads, no request waits, and the started threads have ended.
    pub(super) fn wait_idle(&self) {
        let mut state = self.lock();
        while state.is_led {
            state = self.changed.wait(state).ignore_poison();
        }
        let started = state.started.take();
        drop(state);
        // The last handle of a store may be dropped by that very thread.
        let is_other = |it: &thread::JoinHandle<()>| it.thread().id() != thread::current().id();
        if let Some(started) = started.filter(is_other) {
            // If it panicked, the owners of the requests that it left have been informed.
            let _ = started.join();
        }
    }
}

#[cfg(all(loom, test))]
#[path = "commit_queue_models.rs"]
mod models;

#[cfg(all(not(loom), test))]
mod tests {
    use super::*;

    const LIMITS: GroupLimits = GroupLimits {
        max_requests: 8,
        max_bytes: usize::MAX,
        max_wait: Duration::from_secs(3_600),
    };

    /// Leads with a single request, after a commit that took as long as the waiting limit allows.
    fn lead(group: &CommitQueue<u32, u32>) -> usize {
        group.note_commit(LIMITS.max_wait * 4);
        let gathered = group.gather(1, LIMITS);
        let calls = gathered.len();
        gathered.into_iter().for_each(|call| call.answer(0));
        calls
    }

    #[test]
    fn commit_queue_never_delays_a_single_thread() {
        let group = CommitQueue::default();
        for _ in 0..3 {
            assert!(group.try_lead());
            assert_eq!(lead(&group), 0);
            assert_eq!(group.hand_over(), HandedOver::Done);
        }
    }

    #[test]
    fn commit_queue_waits_for_recent_callers() {
        let group = Arc::new(CommitQueue::default());
        let call = |group: &Arc<CommitQueue<u32, u32>>| {
            let group = Arc::clone(group);
            thread::spawn(move || match group.join(1, 1) {
                Joined::Waits(slot) => matches!(slot.wait(), super::super::reply::Reply::Answer(0)),
                Joined::Leads(_) => false,
            })
        };
        assert!(group.try_lead());
        let first = call(&group);
        while group.lock().waiting.is_empty() {
            thread::yield_now();
        }
        assert_eq!(lead(&group), 1);
        // Two called at the same time: the leader is there first now, and waits for the other.
        let second = call(&group);
        assert_eq!(lead(&group), 1);
        assert!(first.join().unwrap() && second.join().unwrap());
        assert_eq!(group.hand_over(), HandedOver::Done);
    }

    #[test]
    fn commit_queue_accepts_tickets_up_to_its_last_byte() {
        let group = CommitQueue::<u32, u32>::default();
        assert!(group.try_lead());
        assert!(group.submit(1, 6, 10).is_some());
        assert!(group.submit(2, 4, 10).is_some());
        assert!(group.submit(3, 1, 10).is_none());
    }

    /// A task that was refused was woken for room in which its request did not fit, at once and again.
    #[test]
    fn commit_queue_waits_for_room_for_what_it_refused() {
        let group = CommitQueue::<u32, u32>::default();
        let context = Context::from_waker(Waker::noop());
        assert!(group.try_lead());
        assert!(group.submit(1, 6, 10).is_some());
        assert!(group.poll_room(&context, 10).is_ready());
        assert!(group.submit(2, 5, 10).is_none());
        assert!(group.poll_room(&context, 10).is_pending());
        assert_eq!(group.gather(0, LIMITS).len(), 1);
        assert!(group.poll_room(&context, 10).is_ready());
    }

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct CountingWaker(AtomicUsize);

    impl std::task::Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn full_commit_queue_wakes_a_task_once() {
        let woken = Arc::new(CountingWaker::default());
        let waker = Waker::from(Arc::clone(&woken));
        let context = Context::from_waker(&waker);
        let group = CommitQueue::<u32, u32>::default();
        assert!(group.try_lead());
        assert!(group.submit(1, 10, 10).is_some());
        assert!(group.poll_room(&context, 11).is_ready());
        for _ in 0..3 {
            assert!(group.poll_room(&context, 10).is_pending());
        }
        assert_eq!(group.gather(0, LIMITS).len(), 1);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(group.poll_room(&context, 10).is_ready());
    }

    #[test]
    fn unawaited_tickets_need_a_thread() {
        let group = CommitQueue::<u32, u32>::default();
        assert!(group.try_lead());
        let (_, handed_over) = group.submit(1, 1, 10).unwrap();
        assert_eq!(handed_over, HandedOver::Done);
        assert_eq!(group.hand_over(), HandedOver::NeedsThread);
        assert_eq!(lead(&group), 1);
        assert_eq!(group.hand_over(), HandedOver::Done);
    }

    #[test]
    fn requests_of_a_dropped_queue_are_abandoned() {
        let group = CommitQueue::<u32, u32>::default();
        assert!(group.try_lead());
        let (slot, _) = group.submit(1, 1, 10).unwrap();
        drop(group);
        let reply = slot.try_fetch();
        assert!(matches!(reply, Some(super::super::reply::Reply::Abandoned)));
    }
}
