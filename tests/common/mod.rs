//! What the integration tests share: fixed random numbers, folders, and the oracle.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "each test crate uses its own part, and a broken test should stop"
)]

pub(crate) mod changes;
pub(crate) mod engine;
pub(crate) mod joins;
pub(crate) mod killing;
pub(crate) mod memory;
pub(crate) mod oracle;
pub(crate) mod question;
pub(crate) mod sample;
pub(crate) mod small;
pub(crate) mod verify;

use std::path::PathBuf;

use resemblance::{Store, StoreOptions};

/// SplitMix64: the same numbers on every platform and release.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`; the bias of the remainder does not matter here.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A word with exactly `ones` bits set.
    pub(crate) fn bits(&mut self, ones: u32) -> u64 {
        let mut word = 0u64;
        while word.count_ones() < ones {
            word |= 1 << self.below(64);
        }
        word
    }
}

/// A folder that is removed at the end, and the name of a store in it.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.file("store.rsm")
    }
}

/// Options with which a few documents make a run.
pub(crate) fn sealing_after(documents: u64) -> StoreOptions {
    StoreOptions::new()
        .flush_after(documents)
        .cache_bytes(4 << 20)
        // Merges are seen under way, in the middle of lanes where runs are large enough.
        .merge_slice(50)
}

/// That the invariants of the file hold. Nobody may have it open.
pub(crate) fn check_clean(path: &std::path::Path) {
    let report = Store::check(path).run().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
}

/// Tells other threads to end, after a failure too: they are waited for.
pub(crate) struct Ending<'a>(pub(crate) &'a std::sync::atomic::AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Release);
    }
}
