//! How many cases of an enumeration a test takes: an even share of them, or all of them where the environment says
//! `RESEMBLANCE_TESTS=all`. The unit tests of the library and the tests of the tool include this file too.
#![allow(
    dead_code,
    clippy::panic,
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
