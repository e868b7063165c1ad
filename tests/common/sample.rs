//! Random numbers, and the number of cases of an enumeration that a test runs: an even share of
//! them, or all with `RESEMBLANCE_TESTS=all`. The unit tests of the libraries and the tests of the
//! tool also include this file.
#![allow(
    dead_code,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "each test crate uses its own part, and a typing error should stop"
)]

/// Returns true if tests are to take every case.
pub(crate) fn is_all() -> bool {
    match std::env::var("RESEMBLANCE_TESTS").as_deref() {
        Ok("all") => true,
        Err(std::env::VarError::NotPresent) => false,
        other => panic!("RESEMBLANCE_TESTS is `all` or not there, and not {other:?}"),
    }
}

/// The distance from one case to the next: 1 if all are to be taken. Counts of cases are divided by it.
///
/// Cases lie in pages and sectors, and kinds of cases take turns. A distance that is prime to the lengths of
/// both visits every place and every kind.
pub(crate) fn one_in(distance: usize) -> usize {
    if is_all() { 1 } else { distance }
}

/// The number of trials: the first in a usual run, the second if all are to be taken.
pub(crate) fn trials<T>(usual: T, all: T) -> T {
    if is_all() { all } else { usual }
}

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

    /// Below `end`, as the index of a list.
    pub(crate) fn index(&mut self, end: usize) -> usize {
        self.below(end as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// One of the words between the bars of a text.
    pub(crate) fn word<'t>(&mut self, words: &'t str) -> &'t str {
        let words: Vec<&str> = words.split('|').collect();
        self.pick(&words)
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
