//! What `check` found.

use crate::error::{Error, Result};

/// Beyond this many problems no more are listed: the file is beyond them.
const MOST_PROBLEMS: usize = 100;

/// What `check` found. The invariants are numbered as in the format specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Live documents that were read.
    pub documents: u64,
    /// Postings that were read.
    pub postings: u64,
    /// Blocks that were read.
    pub blocks: u64,
    /// What is wrong, at most 100 of them.
    pub problems: Vec<Problem>,
    /// Whether there were more problems than are listed.
    pub truncated: bool,
}

impl CheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    pub(crate) fn add(
        &mut self,
        invariant: u8,
        place: impl Into<String>,
        detail: impl Into<String>,
    ) {
        let (place, detail) = (place.into(), detail.into());
        self.push(Problem {
            invariant,
            place,
            detail,
        });
    }

    pub(crate) fn push(&mut self, problem: Problem) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.truncated = true;
        }
    }

    /// Turns damage into a problem; other errors end the check.
    pub(crate) fn note(&mut self, invariant: u8, result: Result<()>) -> Result<()> {
        match result {
            Err(Error::Corrupt { place, detail }) => {
                self.add(invariant, place, detail);
                Ok(())
            }
            result => result,
        }
    }

    /// Takes over what a later part of the check found, but for what is listed already.
    pub(crate) fn append(&mut self, later: Self) {
        self.documents = later.documents;
        self.postings = later.postings;
        self.blocks = later.blocks;
        self.truncated |= later.truncated;
        for problem in later.problems {
            let is_known = |known: &Problem| {
                (&known.place, &known.detail) == (&problem.place, &problem.detail)
            };
            if !self.problems.iter().any(is_known) {
                self.push(problem);
            }
        }
    }
}

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Its number in the format specification.
    pub invariant: u8,
    /// The table and row, or the page of the file.
    pub place: String,
    /// What was found and what was expected.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_is_told() {
        let mut report = CheckReport::default();
        let mut later = CheckReport::default();
        for place in 0..MOST_PROBLEMS {
            report.add(8, place.to_string(), "found");
            later.add(2, place.to_string(), "found");
        }
        assert!(!report.truncated);
        report.append(later.clone());
        assert!(!report.truncated, "all of them were known");
        later.problems[0].detail = "another".into();
        report.append(later);
        assert_eq!(report.problems.len(), MOST_PROBLEMS);
        assert!(report.truncated);
    }
}
