//! The report of `check`.

use crate::error::{Error, Result};
use crate::types::operation::ReportSettings;

/// Greatest number of problems that a report lists.
const MAX_PROBLEMS: usize = 100;

/// Counts and problems that `check` found. Invariants are numbered as in the format specification.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # Store::create(&path, schema)?;
/// let report = Store::check(&path).run()?;
/// for problem in &report.problems {
///     eprintln!("invariant {}: {}: {}", problem.invariant, problem.place, problem.detail);
/// }
/// assert!(report.is_clean());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// The number of documents that were read, without deleted ones.
    pub documents: u64,
    /// The number of postings that were read.
    pub postings: u64,
    /// The number of blocks that were read.
    pub blocks: u64,
    /// The problems, at most 100 of them.
    pub problems: Vec<Problem>,
    /// True if there were more problems than are listed.
    pub truncated: bool,
    /// True if another process had the store open for writing. The check then covered the last
    /// commit and every page with its documents and postings, but not the pages to which no table
    /// refers.
    pub while_written: bool,
}

impl ReportSettings for CheckReport {
    type Settings = ();
}

impl CheckReport {
    /// Returns true if there are no problems.
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
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.truncated = true;
        }
    }

    /// Adds damage as a problem; any other error ends the check.
    pub(crate) fn note(&mut self, invariant: u8, result: Result<()>) -> Result<()> {
        match result {
            Err(Error::Corrupt { place, detail }) => {
                self.add(invariant, place, detail);
                Ok(())
            }
            result => result,
        }
    }

    /// Takes over the counts of a later part of the check, and its problems that are not listed yet.
    pub(crate) fn append(&mut self, later: Self) {
        self.while_written |= later.while_written;
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
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text, report::Problem};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # Store::create(&path, schema)?;
/// let report = Store::check(&path).run()?;
/// let on_pages = |problem: &&Problem| problem.place.contains("page");
/// assert_eq!(report.problems.iter().filter(on_pages).count(), 0);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The number of the invariant in the format specification.
    pub invariant: u8,
    /// The table and row, or the page of the file.
    pub place: String,
    /// The value that was found, and the one that was expected.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_report_marks_truncation() {
        let mut report = CheckReport::default();
        let mut later = CheckReport::default();
        for place in 0..MAX_PROBLEMS {
            report.add(8, place.to_string(), "found");
            later.add(2, place.to_string(), "found");
        }
        assert!(!report.truncated);
        report.append(later.clone());
        assert!(!report.truncated, "all of them were known");
        later.problems[0].detail = "another".into();
        report.append(later);
        assert_eq!(report.problems.len(), MAX_PROBLEMS);
        assert!(report.truncated);
    }
}
