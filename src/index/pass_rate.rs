//! What filters that are not in memory are worth.

use std::sync::atomic::{AtomicU32, Ordering};

/// A rate of 1.
const ALL: u32 = 1 << 16;

/// An answer counts this part of the rate, and the answers before it the rest.
const WEIGHT: u32 = 32;

/// The share of the latest questions to filters that these let pass. A question about a lane that has the code in
/// question counts as one, whether its filter was asked or not.
///
/// Threads may overwrite what others note: the rate is a guess in any case, on which no answer depends.
#[derive(Debug, Default)]
pub(crate) struct PassRate(AtomicU32);

impl PassRate {
    pub(crate) fn note(&self, has_passed: bool) {
        let rate = self.0.load(Ordering::Relaxed);
        let rate = match has_passed {
            true => rate + (ALL - rate) / WEIGHT,
            false => rate - rate / WEIGHT,
        };
        self.0.store(rate, Ordering::Relaxed);
    }

    /// Returns true if more than three in four pass.
    pub(crate) fn is_high(&self) -> bool {
        self.0.load(Ordering::Relaxed) > ALL / 4 * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of answers until the rate is high, or low.
    fn until(is_high: bool, rate: &PassRate) -> u32 {
        let mut notes = 0;
        while rate.is_high() != is_high {
            rate.note(is_high);
            notes += 1;
        }
        notes
    }

    #[test]
    fn the_rate_follows_the_latest_answers() {
        let rate = PassRate::default();
        // After n answers that pass it is 1 - (31 / 32)ⁿ: beyond 3 / 4 after 44. Each answer is rounded down.
        assert!((44..=46).contains(&until(true, &rate)));
        (0..1_000).for_each(|_| rate.note(true));
        // (31 / 32)ⁿ is below 3 / 4 after 10.
        assert!((8..=10).contains(&until(false, &rate)));
        (0..1_000).for_each(|number| rate.note(number % 2 == 0));
        assert!(!rate.is_high());
    }
}
