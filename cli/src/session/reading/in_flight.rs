//! How much of a corpus may be in memory at a time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a lock guards. Nothing panics while it holds one here: a poisoned one is as good as any.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of documents that have been read and are not worked on yet. Only large documents are counted:
/// one that fills a batch alone. The small ones are bounded by the sizes of batches.
#[derive(Debug)]
pub(super) struct InFlight {
    budget_bytes: u64,
    held_bytes: Mutex<u64>,
    freed: Condvar,
}

impl InFlight {
    pub(super) fn new(budget_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            budget_bytes,
            held_bytes: Mutex::new(0),
            freed: Condvar::new(),
        })
    }

    /// Waits until there is room for so many bytes, or nothing else is held: one document goes
    /// through, however large it is.
    pub(super) fn hold(self: &Arc<Self>, bytes: u64) -> HeldBytes {
        let mut held = locked(&self.held_bytes);
        while *held > 0 && held.saturating_add(bytes) > self.budget_bytes {
            let waited = self.freed.wait(held);
            held = waited.unwrap_or_else(PoisonError::into_inner);
        }
        *held = held.saturating_add(bytes);
        HeldBytes {
            bytes,
            of: Arc::clone(self),
        }
    }
}

/// Gives the bytes back when it is dropped.
#[derive(Debug)]
pub(super) struct HeldBytes {
    bytes: u64,
    of: Arc<InFlight>,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let mut held = locked(&self.of.held_bytes);
        *held = held.saturating_sub(self.bytes);
        self.of.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn the_next_waits_for_room_and_one_alone_never_does() {
        let flight = InFlight::new(100);
        let large = flight.hold(1_000);
        let waiting = Arc::new(AtomicBool::new(true));
        let thread = thread::spawn({
            let (flight, waiting) = (Arc::clone(&flight), Arc::clone(&waiting));
            move || {
                let held = flight.hold(10);
                waiting.store(false, Ordering::SeqCst);
                held
            }
        });
        thread::sleep(Duration::from_millis(50));
        assert!(waiting.load(Ordering::SeqCst));
        drop(large);
        let small = thread.join().unwrap();
        drop(flight.hold(90));
        drop(small);
        assert_eq!(*flight.held_bytes.lock().unwrap(), 0);
    }
}
