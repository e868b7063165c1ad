//! The URLs to fetch, shared by the threads that fetch them.

use std::collections::{HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A page to fetch.
pub(crate) enum Visit {
    /// It is in the store, and may have changed.
    Again(String),
    /// It has been found by a link.
    First(String),
}

/// Hands out every URL once. Known pages are first, and all of them are finished before any link is
/// followed. Otherwise, a copy of a changed page under another URL would be compared with
/// yesterday's version of the page, and would count as new.
pub(crate) struct Frontier {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    due: VecDeque<String>,
    found: VecDeque<String>,
    /// All that has been handed out, or need not be.
    known: HashSet<String>,
    /// How many of those that were due are being fetched, and how many of the others.
    renewing: usize,
    exploring: usize,
    is_stopped: bool,
}

impl Frontier {
    /// Creates a frontier with pages that are `due`, and with links. Pages in `known` are not
    /// fetched, even if others link to them.
    pub(crate) fn new(due: Vec<String>, links: Vec<String>, known: HashSet<String>) -> Self {
        let mut state = State {
            due: due.into(),
            found: VecDeque::new(),
            known,
            renewing: 0,
            exploring: 0,
            is_stopped: false,
        };
        state.add(links);
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// The next page, once there is one; `None` when all is done. Every page that is handed out must
    /// be [finished](Self::finish).
    pub(crate) fn next(&self) -> Option<Visit> {
        let mut state = self.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(url) = state.due.pop_front() {
                state.renewing += 1;
                return Some(Visit::Again(url));
            }
            if state.renewing == 0
                && let Some(url) = state.found.pop_front()
            {
                state.exploring += 1;
                return Some(Visit::First(url));
            }
            if state.renewing + state.exploring == 0 {
                return None;
            }
            // Pages in progress may add links.
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says that a page is dealt with, and what it links to.
    pub(crate) fn finish(&self, visit: &Visit, links: Vec<String>) {
        let mut state = self.lock();
        state.add(links);
        match visit {
            Visit::Again(_) => state.renewing -= 1,
            Visit::First(_) => state.exploring -= 1,
        }
        self.changed.notify_all();
    }

    /// Hands out nothing more.
    pub(crate) fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, links: Vec<String>) {
        for link in links {
            if self.known.insert(link.clone()) {
                self.found.push_back(link);
            }
        }
    }
}
