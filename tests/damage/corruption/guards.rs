//! Checks that damage never causes large allocations, endless loops, or panics that leave the
//! library.

#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum size of an allocation. The stores have about 1 MiB, and no query needs more than
/// their parts.
pub(crate) const MOST_BYTES_AT_ONCE: usize = 64 << 20;

/// On a busy machine an attempt takes a fraction of a second.
const LONGEST: Duration = Duration::from_secs(60);

/// The system's allocator, and the greatest number of bytes that was asked of it.
struct Counting;

static LARGEST: AtomicUsize = AtomicUsize::new(0);
static CURRENT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(size: usize) {
    LARGEST.fetch_max(size, Ordering::Relaxed);
    let current = CURRENT.fetch_add(size, Ordering::Relaxed) + size;
    PEAK.fetch_max(current, Ordering::Relaxed);
}

// SAFETY: everything is left to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the rules, which are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        CURRENT.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CURRENT.fetch_sub(layout.size(), Ordering::Relaxed);
        count(size);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// The largest allocation, and the most that was allocated at a time, in bytes.
pub(crate) fn memory_bytes() -> (usize, usize) {
    (
        LARGEST.load(Ordering::Relaxed),
        PEAK.load(Ordering::Relaxed),
    )
}

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    static PANICS_HERE: Cell<u64> = const { Cell::new(0) };
}

/// Panics while a damaged file was tried, by their messages.
static PANICS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
static UNDER_WAY: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());
static START: Once = Once::new();

pub(crate) fn panics() -> BTreeMap<String, u64> {
    PANICS.lock().unwrap().clone()
}

/// How many there were on this thread since it was asked last.
pub(crate) fn take_panics() -> u64 {
    PANICS_HERE.take()
}

fn start() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if IS_GUARDED.get() {
            PANICS_HERE.set(PANICS_HERE.get() + 1);
            let place = panic.location().map(ToString::to_string);
            let text = panic.payload_as_str().unwrap_or("no message");
            let message = format!("{}: {text}", place.unwrap_or_default());
            *PANICS.lock().unwrap().entry(message).or_default() += 1;
        } else {
            before(panic);
        }
    }));
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_secs(1));
            let under_way = UNDER_WAY.lock().unwrap();
            let slow = under_way
                .iter()
                .find(|(_, since)| since.elapsed() > LONGEST);
            if let Some((name, _)) = slow {
                eprintln!("{name}: no end after {LONGEST:?}");
                std::process::abort();
            }
        }
    });
}

/// Runs an attempt under guard; what it did that it must not do is the error.
pub(crate) fn guarded<T>(name: &str, run: impl FnOnce() -> T) -> Result<T, String> {
    START.call_once(start);
    let name = format!("{:?} {name}", thread::current().id());
    UNDER_WAY
        .lock()
        .unwrap()
        .insert(name.clone(), Instant::now());
    IS_GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    IS_GUARDED.set(false);
    UNDER_WAY.lock().unwrap().remove(&name);
    let largest = LARGEST.load(Ordering::Relaxed);
    if largest > MOST_BYTES_AT_ONCE {
        // The next attempt is not to blame.
        LARGEST.store(0, Ordering::Relaxed);
        return Err(format!("{largest} bytes were allocated at once"));
    }
    result.map_err(|_| "it panicked".to_owned())
}
