//! Iteration over the documents of a snapshot.

use std::fmt;
use std::iter::FusedIterator;

use crate::engine::{OwnedRange, PanicSafe};
use crate::error::Result;
use crate::format::DocumentRow;
use crate::read::snapshot_view::SnapshotView;
use crate::read::view::ReadView;
use crate::types::Record;

/// The documents of a snapshot in insertion order. Made by [`Snapshot::iter`](crate::Snapshot::iter).
#[must_use = "nothing is read before it is iterated over"]
pub struct Records {
    range: Option<PanicSafe<OwnedRange<u64, &'static [u8]>>>,
    snapshot: SnapshotView,
}

impl Records {
    pub(crate) fn new(snapshot: &SnapshotView) -> Result<Self> {
        let range = snapshot
            .context()
            .run_checked(|| Ok(snapshot.inner.tables()?.documents.range_owned::<u64>(..)?))?;
        Ok(Self {
            range: Some(PanicSafe::new(range)),
            snapshot: snapshot.clone(),
        })
    }

    fn advance(&mut self) -> Result<Option<Record>> {
        let Some(range) = self.range.as_mut() else {
            return Ok(None);
        };
        self.snapshot.context().run_checked(|| {
            for entry in range {
                let (id, row) = entry?;
                let id = id.value();
                if self.snapshot.inner.is_dead(id) {
                    continue;
                }
                let document = DocumentRow::decode(id, row.value())?;
                return self.snapshot.view().complete(id, &document).map(Some);
            }
            Ok(None)
        })
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.range = None;
        }
        next
    }
}

/// After an error or the end nothing follows.
impl FusedIterator for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("path", &self.snapshot.context().path)
            .field("ended", &self.range.is_none())
            .finish_non_exhaustive()
    }
}
