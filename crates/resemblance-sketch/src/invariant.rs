//! Cases that cannot happen return [`SketchError::Bug`], never a made-up value.

use std::panic::Location;

use crate::error::SketchError;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;

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
    }
}
