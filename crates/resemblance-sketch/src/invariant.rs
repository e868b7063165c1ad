//! What cannot happen is [`SketchError::Bug`], never a value.

use std::panic::Location;

use crate::error::{Result, SketchError};

/// Returns [`SketchError::Bug`] from the function unless the condition holds.
macro_rules! invariant {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::invariant::bug(format!($($what)+)));
        }
    };
}
pub(crate) use invariant;

/// Returns the error of a broken invariant, at the line of the caller.
#[track_caller]
pub(crate) fn bug(what: impl Into<String>) -> SketchError {
    let place = Location::caller();
    SketchError::Bug {
        what: what.into(),
        file: place.file(),
        line: place.line(),
    }
}

/// Turns a value that must be there into a result.
pub(crate) trait OrBug<T> {
    /// Returns the value, or [`SketchError::Bug`] with what should have been there.
    #[track_caller]
    fn or_bug(self, what: &str) -> Result<T>;
}

impl<T> OrBug<T> for Option<T> {
    #[track_caller]
    fn or_bug(self, what: &str) -> Result<T> {
        match self {
            Some(value) => Ok(value),
            None => Err(bug(what)),
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
        let broken = checked(3).unwrap_err();
        let text = broken.to_string();
        assert!(text.contains("found 3, expected less than 3"), "{text}");
        assert!(matches!(broken, SketchError::Bug { file, .. } if file.ends_with("invariant.rs")));
        assert!(None::<u8>.or_bug("a value").is_err());
    }
}
