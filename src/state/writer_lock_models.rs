//! Models of the writer lock that try every order of the threads' steps.

use loom::cell::UnsafeCell;
use loom::thread;

use super::*;

/// The value that the lock guards: loom reports two at a time as a race.
struct Guarded(UnsafeCell<u32>);

impl Guarded {
    fn change(&self, _permit: &WriterGuard) {
        self.0.with_mut(|_| ());
    }
}

fn at_once(writers: Vec<fn(&Arc<WriterLock>, &Guarded)>) {
    loom::model(move || {
        let lock = Arc::new(WriterLock::default());
        let guarded = Arc::new(Guarded(UnsafeCell::new(0)));
        let spawned: Vec<_> = writers
            .iter()
            .map(|writer| {
                let (lock, guarded, writer) = (Arc::clone(&lock), Arc::clone(&guarded), *writer);
                thread::spawn(move || writer(&lock, &guarded))
            })
            .collect();
        // The thread that waits for the others is one more that writes.
        wait(&lock, &guarded);
        for writer in spawned {
            writer.join().unwrap();
        }
        assert!(lock.try_enter().is_ok(), "the last one has left");
    });
}

fn wait(lock: &Arc<WriterLock>, guarded: &Guarded) {
    let guard = lock.enter().unwrap();
    assert!(matches!(lock.enter(), Err(Error::Busy)));
    assert!(matches!(lock.try_enter(), Err(Error::Busy)));
    guarded.change(&guard);
}

fn attempt(lock: &Arc<WriterLock>, guarded: &Guarded) {
    match lock.try_enter() {
        Ok(guard) => guarded.change(&guard),
        Err(error) => assert!(matches!(error, Error::Busy)),
    }
}

fn wait_twice(lock: &Arc<WriterLock>, guarded: &Guarded) {
    wait(lock, guarded);
    wait(lock, guarded);
}

#[test]
fn loom_three_writers_all_get_the_lock() {
    at_once(vec![wait, wait]);
}

#[test]
fn loom_returning_writer_starves_no_other() {
    at_once(vec![wait_twice]);
}

#[test]
fn loom_try_lock_never_waits_and_never_shares() {
    at_once(vec![attempt, wait]);
    at_once(vec![attempt, attempt]);
}
