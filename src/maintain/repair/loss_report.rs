//! The losses of a damaged file, as ranges of ids, up to a limit.

use crate::error::Error;
use crate::format::DOCUMENTS;
use crate::types::{DocumentId, Problem};

/// Maximum number of listed ranges, and of listed damaged places.
const MAX_LISTED: usize = 1_000;

/// A range of document ids, both ends included.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// # Store::create(&path, schema)?;
/// # let new = folder.path().join("new.rsm");
/// let report = Store::repair(&path, &new).run()?;
/// for range in &report.lost {
///     println!("documents {} to {}: {}", range.first, range.last, range.reason);
/// }
/// assert_eq!(report.lost, []);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdRange {
    /// The first id.
    pub first: DocumentId,
    /// The last id.
    pub last: DocumentId,
    /// Why the documents are lost, in words.
    pub reason: String,
}

/// The losses and the damage that a repair has found.
#[derive(Debug, Default)]
pub(super) struct LossReport {
    pub(super) damage: Vec<Problem>,
    pub(super) lost: Vec<IdRange>,
    /// Documents that are lost for certain.
    pub(super) documents: u64,
    pub(super) may_be_back: Vec<IdRange>,
    pub(super) is_truncated: bool,
    /// Ids whose rows in `documents` can be out of reach.
    unreachable: Vec<(u64, u64)>,
}

impl LossReport {
    /// Records a damaged place.
    pub(super) fn problem(&mut self, problem: Problem) {
        if self.damage.len() < MAX_LISTED {
            self.damage.push(problem);
        } else {
            self.is_truncated = true;
        }
    }

    /// Records the damaged place of an `Error::Corrupt`.
    pub(crate) fn error(&mut self, error: Error) {
        if let Error::Corrupt { place, detail } = error {
            self.problem(Problem {
                invariant: 2,
                place,
                detail,
            });
        }
    }

    /// Records a lost document. Ids must be ascending.
    pub(super) fn lost(&mut self, id: u64, reason: String) {
        self.documents += 1;
        let last = self.lost.last_mut();
        if let Some(range) = last.filter(|range| range.reason == reason)
            && range.last.get().checked_add(1) == Some(id)
        {
            range.last = DocumentId::new(id);
            return;
        }
        self.push_lost(range(id, id, reason));
    }

    fn push_lost(&mut self, range: IdRange) {
        if self.lost.len() < MAX_LISTED {
            self.lost.push(range);
        } else {
            self.is_truncated = true;
        }
    }

    /// Records that the rows of some documents in a table cannot be reached. Ranges must be
    /// ascending.
    pub(super) fn unreachable(&mut self, table: &str, ids: (u64, u64)) {
        // A document's row shows that its payload is missing.
        if table != DOCUMENTS {
            return;
        }
        let ranges = &mut self.unreachable;
        if let Some(last) = ranges.last_mut()
            && (last.1 == u64::MAX || ids.0 <= last.1 + 1)
        {
            last.1 = last.1.max(ids.1);
        } else if ranges.len() < MAX_LISTED {
            ranges.push(ids);
        } else if let Some(last) = ranges.last_mut() {
            // It is better to report too much than too little.
            last.1 = last.1.max(ids.1);
            self.is_truncated = true;
        }
    }

    /// Documents of which no row is left are in what cannot be reached.
    pub(crate) fn finish(&mut self, next_id: Option<u64>, may_be_back: Vec<(u64, u64)>) {
        // If the file does not record the next id, any may have been given.
        let end = next_id.unwrap_or(u64::MAX);
        let within = |(first, last): (u64, u64)| {
            (first < end).then(|| (first, last.min(end.saturating_sub(1))))
        };
        let unreachable = std::mem::take(&mut self.unreachable);
        for (first, last) in unreachable.into_iter().filter_map(within) {
            self.push_lost(range(
                first,
                last,
                "their rows cannot be reached: those that existed are lost, unless they are in the new \
                 store",
            ));
        }
        let back = may_be_back.into_iter().filter_map(within);
        let reason = "the record of which of them were removed is lost or was not read";
        self.may_be_back = back
            .map(|(first, last)| range(first, last, reason))
            .collect();
        if self.may_be_back.len() > MAX_LISTED {
            self.may_be_back.truncate(MAX_LISTED);
            self.is_truncated = true;
        }
    }
}

fn range(first: u64, last: u64, reason: impl Into<String>) -> IdRange {
    IdRange {
        first: DocumentId::new(first),
        last: DocumentId::new(last),
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::PAYLOADS;

    #[test]
    fn loss_report_joins_adjacent_ids_and_truncates() {
        let mut losses = LossReport::default();
        for id in [4, 5, 6, 8] {
            losses.lost(id, "gone".into());
        }
        losses.lost(9, "other".into());
        let ranges: Vec<(u64, u64)> = losses
            .lost
            .iter()
            .map(|range| (range.first.get(), range.last.get()))
            .collect();
        assert_eq!(ranges, [(4, 6), (8, 8), (9, 9)]);
        assert_eq!((losses.documents, losses.is_truncated), (5, false));
        for id in 0..2 * MAX_LISTED as u64 {
            losses.lost(100 + 2 * id, "gone".into());
            losses.unreachable(DOCUMENTS, (3 * id, 3 * id + 1));
        }
        losses.unreachable(PAYLOADS, (0, u64::MAX));
        assert_eq!(losses.lost.len(), MAX_LISTED);
        assert!(losses.is_truncated);
        losses.lost.clear();
        losses.finish(Some(5_000), vec![(4_000, u64::MAX), (6_000, 7_000)]);
        // Those beyond the limit are in the last range.
        assert_eq!(losses.lost.last().unwrap().last.get(), 4_999);
        assert_eq!(losses.may_be_back.len(), 1);
        assert_eq!(losses.may_be_back[0].last.get(), 4_999);
    }
}
