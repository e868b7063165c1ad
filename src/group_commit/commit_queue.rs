//! Calls of many threads, gathered to be made together.
//!
//! There is no thread for it. A call that finds nobody at work leads: it takes what the others have
//! queued meanwhile, makes all of it in one transaction, and answers. What comes during the sync
//! waits for the next leader, which is the first thread that waits; where only tickets wait, whose
//! owners may not be blocked, a thread is made, which ends when the line is empty.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::group_commit::reply::ReplySlot;
use crate::sync::{Condvar, Mutex, MutexGuard, thread};

/// How much is gathered, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLimits {
    /// Calls made together.
    pub(crate) calls: usize,
    /// Bytes of calls made together, but for the last one.
    pub(crate) size_bytes: usize,
    /// The longest that a leader waits for threads that called lately.
    pub(crate) wait: Duration,
}

/// A call in the line. Dropped without an answer, it tells its owner so.
pub(crate) struct Follower<C, A> {
    pub(crate) call: C,
    size_bytes: usize,
    /// Whether a thread waits for the answer, and so can lead.
    pub(crate) is_thread: bool,
    slot: Arc<ReplySlot<A>>,
}

impl<C, A> Follower<C, A> {
    pub(crate) fn answer(self, answer: A) {
        self.slot.answer(answer);
    }
}

impl<C, A> Drop for Follower<C, A> {
    fn drop(&mut self) {
        self.slot.abandon();
    }
}

/// What is to be done by who joined the line.
pub(crate) enum Joined<C, A> {
    /// Nobody led: this thread does now, and has its call back.
    Leads(C),
    /// Wait here.
    Waits(Arc<ReplySlot<A>>),
}

/// What is to be done by who leads no longer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HandedOver {
    /// Another thread leads, or nothing is left to do.
    Done,
    /// Only tickets wait: a thread must be made to lead.
    NeedsThread,
}

struct QueueState<C, A> {
    waiting: VecDeque<Follower<C, A>>,
    is_led: bool,
    size_bytes: usize,
    /// How many threads called at about the same time lately.
    expected: usize,
    /// From how many waiting calls on the leader is to be woken.
    wanted: usize,
    /// The last thread that was made to lead.
    made: Option<thread::JoinHandle<()>>,
}

/// The line of calls before a store.
pub(crate) struct CommitQueue<C, A> {
    line: Mutex<QueueState<C, A>>,
    /// The line is as long as the leader wants it, or nobody leads any more.
    changed: Condvar,
    /// How long the last commit took.
    commit_nanos: AtomicU64,
    /// Calls that were submitted, and are not answered yet.
    tickets: AtomicUsize,
}

impl<C, A> Default for CommitQueue<C, A> {
    fn default() -> Self {
        let line = QueueState {
            waiting: VecDeque::new(),
            is_led: false,
            size_bytes: 0,
            expected: 0,
            wanted: usize::MAX,
            made: None,
        };
        Self {
            line: Mutex::new(line),
            changed: Condvar::new(),
            commit_nanos: AtomicU64::new(0),
            tickets: AtomicUsize::new(0),
        }
    }
}

impl<C, A> CommitQueue<C, A> {
    fn lock(&self) -> MutexGuard<'_, QueueState<C, A>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lead if nobody has it.
    pub(crate) fn try_lead(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_led, true)
    }

    /// Queues the call of a thread that will wait.
    pub(crate) fn join(&self, call: C, size_bytes: usize) -> Joined<C, A> {
        let mut line = self.lock();
        if !std::mem::replace(&mut line.is_led, true) {
            return Joined::Leads(call);
        }
        Joined::Waits(self.push(line, call, size_bytes, true))
    }

    /// Queues a call whose answer is fetched later; whether a thread must be made to lead. `None` if
    /// more than `most_bytes` would wait then.
    pub(crate) fn submit(
        &self,
        call: C,
        size_bytes: usize,
        most_bytes: usize,
    ) -> Option<(Arc<ReplySlot<A>>, HandedOver)> {
        let mut line = self.lock();
        let is_full = line.size_bytes.saturating_add(size_bytes) > most_bytes;
        if is_full && !line.waiting.is_empty() {
            return None;
        }
        let handed_over = match std::mem::replace(&mut line.is_led, true) {
            true => HandedOver::Done,
            false => HandedOver::NeedsThread,
        };
        self.tickets.fetch_add(1, Ordering::Relaxed);
        Some((self.push(line, call, size_bytes, false), handed_over))
    }

    fn push(
        &self,
        mut line: MutexGuard<'_, QueueState<C, A>>,
        call: C,
        size_bytes: usize,
        is_thread: bool,
    ) -> Arc<ReplySlot<A>> {
        let slot = Arc::new(ReplySlot::default());
        line.size_bytes = line.size_bytes.saturating_add(size_bytes);
        line.waiting.push_back(Follower {
            call,
            size_bytes,
            is_thread,
            slot: Arc::clone(&slot),
        });
        if line.waiting.len() >= line.wanted {
            self.changed.notify_all();
        }
        slot
    }

    /// For the leader, who has so many calls of its own: what waits, the oldest first. If fewer wait
    /// than called lately it waits for them, at most as long as the limit says and as a quarter of the
    /// last commit took: what can be gained by waiting is less than what a sync costs.
    pub(crate) fn gather(&self, own: usize, limits: GroupLimits) -> Vec<Follower<C, A>> {
        let most = limits.calls.saturating_sub(own);
        let mut line = self.lock();
        let wanted = line.expected.saturating_sub(own).min(most);
        if line.waiting.len() < wanted {
            let commit = Duration::from_nanos(self.commit_nanos.load(Ordering::Relaxed));
            line = self.wait_until(line, wanted, limits.wait.min(commit / 4));
        }
        let mut size_bytes = 0_usize;
        let mut gathered = Vec::with_capacity(line.waiting.len().min(most));
        while gathered.len() < most && size_bytes < limits.size_bytes {
            let Some(next) = line.waiting.pop_front() else {
                break;
            };
            size_bytes = size_bytes.saturating_add(next.size_bytes);
            gathered.push(next);
        }
        line.size_bytes = line.size_bytes.saturating_sub(size_bytes);
        line.expected = own + gathered.iter().filter(|waiting| waiting.is_thread).count();
        gathered
    }

    fn wait_until<'l>(
        &self,
        mut line: MutexGuard<'l, QueueState<C, A>>,
        wanted: usize,
        wait: Duration,
    ) -> MutexGuard<'l, QueueState<C, A>> {
        let start = Instant::now();
        line.wanted = wanted;
        while line.waiting.len() < wanted {
            let left = wait.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            let woken = self.changed.wait_timeout(line, left);
            (line, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
        line.wanted = usize::MAX;
        line
    }

    /// Whether a call that was submitted may not have been made yet. What a thread has submitted itself
    /// counts until it is answered.
    pub(crate) fn has_tickets(&self) -> bool {
        self.tickets.load(Ordering::Relaxed) > 0
    }

    /// For the leader: so many submitted calls have been made.
    pub(crate) fn note_answered(&self, tickets: usize) {
        self.tickets.fetch_sub(tickets, Ordering::Relaxed);
    }

    /// For the leader: how long a commit took.
    pub(crate) fn note_commit(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.commit_nanos.store(nanos, Ordering::Relaxed);
    }

    /// For the leader: leads no longer.
    pub(crate) fn hand_over(&self) -> HandedOver {
        let mut line = self.lock();
        let threads = || line.waiting.iter().filter(|waiting| waiting.is_thread);
        let next = threads().next().map(|next| Arc::clone(&next.slot));
        let waiting = threads().count();
        line.expected += waiting;
        if let Some(slot) = next {
            drop(line);
            slot.lead();
            return HandedOver::Done;
        }
        if !line.waiting.is_empty() {
            return HandedOver::NeedsThread;
        }
        line.is_led = false;
        drop(line);
        self.changed.notify_all();
        HandedOver::Done
    }

    /// Makes a thread that leads. It is given the one that was made before it, which has handed over and
    /// may not have ended, to wait for: so who waits for the last one has waited for all.
    ///
    /// # Errors
    /// Those of `make`.
    pub(crate) fn make_thread<E>(
        &self,
        make: impl FnOnce(Option<thread::JoinHandle<()>>) -> Result<thread::JoinHandle<()>, E>,
    ) -> Result<(), E> {
        // The new one cannot hand over before it is kept.
        let mut line = self.lock();
        let before = line.made.take();
        line.made = Some(make(before)?);
        Ok(())
    }

    /// Waits until nobody leads and nothing waits, and the thread that was made has ended.
    pub(crate) fn wait_idle(&self) {
        let mut line = self.lock();
        while line.is_led {
            let woken = self.changed.wait(line);
            line = woken.unwrap_or_else(PoisonError::into_inner);
        }
        let made = line.made.take();
        drop(line);
        if let Some(made) = made.filter(|made| made.thread().id() != thread::current().id()) {
            // What a thread that panicked left is told to those who wait for it.
            let _ = made.join();
        }
    }
}

#[cfg(all(not(loom), test))]
mod tests {
    use super::*;

    const LIMITS: GroupLimits = GroupLimits {
        calls: 8,
        size_bytes: usize::MAX,
        wait: Duration::from_secs(3_600),
    };

    /// One who leads alone, after commits that took as long as may be.
    fn lead(group: &CommitQueue<u32, u32>) -> usize {
        group.note_commit(LIMITS.wait * 4);
        let gathered = group.gather(1, LIMITS);
        let calls = gathered.len();
        gathered.into_iter().for_each(|call| call.answer(0));
        calls
    }

    #[test]
    fn one_thread_alone_never_waits() {
        let group = CommitQueue::default();
        for _ in 0..3 {
            assert!(group.try_lead());
            assert_eq!(lead(&group), 0);
            assert_eq!(group.hand_over(), HandedOver::Done);
        }
    }

    #[test]
    fn who_called_lately_is_waited_for() {
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
}
