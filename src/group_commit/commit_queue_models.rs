//! Models of the commit queue that try every order of the threads' steps.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;

use super::*;
use crate::group_commit::reply::Reply;

/// State that only a leader may change. loom reports two leaders at a time as a race.
struct Store {
    group: CommitQueue<u32, u32>,
    lead: UnsafeCell<()>,
    made: Mutex<Vec<u32>>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

const LIMITS: GroupLimits = GroupLimits {
    max_requests: 2,
    max_bytes: usize::MAX,
    max_wait: Duration::ZERO,
};

impl Store {
    /// A call is made by noting it; its answer is twice its number.
    fn make(&self, own: Option<u32>) -> bool {
        let others = self.group.gather(usize::from(own.is_some()), LIMITS);
        self.lead.with_mut(|_| ());
        let mut made = self.made.lock().unwrap();
        made.extend(own);
        made.extend(others.iter().map(|other| other.request));
        drop(made);
        let is_any = !others.is_empty();
        for other in others {
            let answer = 2 * other.request;
            other.answer(answer);
        }
        is_any
    }

    fn hand_over(self: &Arc<Self>) {
        if self.group.hand_over() == HandedOver::NeedsThread {
            self.start_thread();
        }
    }

    fn start_thread(self: &Arc<Self>) {
        let store = Arc::clone(self);
        let made = thread::spawn(move || {
            while store.make(None) {}
            store.hand_over();
        });
        self.threads.lock().unwrap().push(made);
    }

    fn call(self: &Arc<Self>, number: u32) {
        match self.group.join(number, 1) {
            Joined::Leads(number) => {
                self.make(Some(number));
                self.hand_over();
            }
            Joined::Waits(slot) => match slot.wait() {
                Reply::Answer(answer) => assert_eq!(answer, 2 * number),
                Reply::Abandoned => panic!("abandoned"),
                Reply::Lead => {
                    let answer = loop {
                        self.make(None);
                        if let Some(Reply::Answer(answer)) = slot.try_fetch() {
                            break answer;
                        }
                    };
                    assert_eq!(answer, 2 * number);
                    self.hand_over();
                }
            },
        }
    }

    fn submit(self: &Arc<Self>, number: u32) {
        let (slot, handed_over) = self.group.submit(number, 1, usize::MAX).unwrap();
        if handed_over == HandedOver::NeedsThread {
            self.start_thread();
        }
        match slot.wait() {
            Reply::Answer(answer) => assert_eq!(answer, 2 * number),
            reply => panic!("{reply:?}"),
        }
    }
}

fn at_once(calls: &'static [fn(&Arc<Store>, u32)], preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let store = Arc::new(Store {
            group: CommitQueue::default(),
            lead: UnsafeCell::new(()),
            made: Mutex::new(Vec::new()),
            threads: Mutex::new(Vec::new()),
        });
        let spawned = (1..).zip(&calls[1..]).map(|(number, call)| {
            let store = Arc::clone(&store);
            thread::spawn(move || call(&store, number))
        });
        let spawned: Vec<_> = spawned.collect();
        calls[0](&store, 0);
        for thread in spawned {
            thread.join().unwrap();
        }
        loop {
            let made = store.threads.lock().unwrap().pop();
            let Some(made) = made else { break };
            made.join().unwrap();
        }
        store.group.wait_idle();
        assert!(store.group.try_lead(), "nobody leads");
        let mut made = store.made.lock().unwrap().clone();
        made.sort_unstable();
        let all: Vec<u32> = (0..).take(calls.len()).collect();
        assert_eq!(made, all, "each call is made once");
    });
}

#[test]
fn loom_every_request_is_executed_once_and_answered() {
    at_once(&[Store::call, Store::call], None);
    at_once(&[Store::call, Store::call, Store::call], Some(3));
}

#[test]
fn loom_tickets_are_answered_with_or_without_threads_that_wait() {
    at_once(&[Store::submit, Store::submit], Some(3));
    at_once(&[Store::call, Store::submit], Some(3));
}
