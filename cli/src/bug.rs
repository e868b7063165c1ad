//! What cannot happen, said: a slip of ours becomes an error, never a value.

use std::panic::Location;

use resemblance::Error;

/// An error that says what cannot happen, and where it did.
#[track_caller]
pub(crate) fn bug(what: &str) -> Error {
    let caller = Location::caller();
    Error::Io {
        action: format!("internal error at {}:{}", caller.file(), caller.line()),
        source: std::io::Error::other(what.to_owned()),
    }
}

/// The item at `index`, which must be there.
#[track_caller]
pub(crate) fn at<T>(items: &[T], index: usize) -> Result<&T, Error> {
    // A closure would hide the caller's place.
    match items.get(index) {
        Some(item) => Ok(item),
        None => Err(bug("an index lies beyond the end of its list")),
    }
}

/// As [`at`], to change the item.
#[track_caller]
pub(crate) fn at_mut<T>(items: &mut [T], index: usize) -> Result<&mut T, Error> {
    match items.get_mut(index) {
        Some(item) => Ok(item),
        None => Err(bug("an index lies beyond the end of its list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_says_where_it_was_met() {
        assert_eq!(at(&[7, 8], 1).unwrap(), &8);
        let told = at(&[7, 8], 2).unwrap_err().to_string();
        assert!(told.starts_with("internal error at "), "{told}");
        assert!(told.contains("bug.rs:"), "{told}");
        assert!(at_mut(&mut [7], 1).is_err());
    }
}
