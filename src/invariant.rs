//! Cases that cannot happen: a broken invariant is reported as [`Error::Bug`](crate::Error::Bug),
//! and never continues with a made-up value.
//!
//! A function that meets such a case returns the error, the transaction is rolled back, and nothing
//! is committed. On hot paths, `debug_assert!` replaces checks that would cost time.

use std::panic::Location;

use crate::error::{Error, Result};

/// Returns [`Error::Bug`](crate::Error::Bug) from the function unless the condition holds.
macro_rules! invariant {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::invariant::bug(format!($($what)+)));
        }
    };
}
pub(crate) use invariant;

/// Returns the error of a broken invariant, with the line of the caller.
#[track_caller]
pub fn bug(what: impl Into<String>) -> Error {
    let place = Location::caller();
    Error::Bug {
        what: what.into(),
        file: place.file(),
        line: place.line(),
    }
}

/// Returns the element at an index, which must exist.
#[track_caller]
pub fn at<T>(slice: &[T], index: usize) -> Result<&T> {
    let length = slice.len();
    slice
        .get(index)
        .or_bug_with(|| format!("index {index} of {length}"))
}

/// Returns the element at an index, which must exist, for changes.
#[track_caller]
pub fn at_mut<T>(slice: &mut [T], index: usize) -> Result<&mut T> {
    let length = slice.len();
    slice
        .get_mut(index)
        .or_bug_with(|| format!("index {index} of {length}"))
}

/// Turns a value that must exist into a result.
pub trait OrBug<T> {
    /// Returns the value, or [`Error::Bug`](crate::Error::Bug) with what should have been there.
    #[track_caller]
    fn or_bug(self, what: &str) -> Result<T>;

    /// Like `or_bug`, with a message that is built only if it is needed.
    #[track_caller]
    fn or_bug_with(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> OrBug<T> for Option<T> {
    #[track_caller]
    fn or_bug(self, what: &str) -> Result<T> {
        match self {
            Some(value) => Ok(value),
            None => Err(bug(what)),
        }
    }

    #[track_caller]
    fn or_bug_with(self, what: impl FnOnce() -> String) -> Result<T> {
        match self {
            Some(value) => Ok(value),
            None => Err(bug(what())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(value: u32) -> Result<u32> {
        invariant!(value < 3, "found {value}, expected less than 3");
        Ok(value)
    }

    #[test]
    fn a_broken_invariant_names_its_line() {
        assert_eq!(checked(2).unwrap(), 2);
        let text = checked(3).unwrap_err().to_string();
        assert!(text.contains("found 3, expected less than 3"), "{text}");
        let Error::Bug { file, .. } = checked(3).unwrap_err() else {
            panic!("another error");
        };
        assert!(file.ends_with("invariant.rs"));
        let found = at(&[1, 2], 2).unwrap_err();
        assert!(matches!(found, Error::Bug { what, .. } if what == "index 2 of 2"));
        assert!(None::<u8>.or_bug("a value").is_err());
    }
}
