//! A filter at work: it decides which candidates of a search pass.

use std::sync::Mutex;

use crate::error::Result;
use crate::format::RowHead;
use crate::query::verify::Outside;
use crate::read::ReadView;
use crate::state::Tombstones;
use crate::sync::IgnorePoison;
use crate::types::{Filter, StoredDocument};

/// Asks a question that is about the documents that pass a filter. A panic of the filter's closure
/// continues afterwards, outside of the engine.
pub(crate) fn gated<T>(
    filter: Option<&Filter<'_>>,
    ask: impl FnOnce(Option<&Gate<'_>>) -> Result<T>,
) -> Result<T> {
    let gate = filter.map(Gate::new);
    let answer = ask(gate.as_ref());
    match gate {
        Some(gate) => gate.outside.leave(answer),
        None => answer,
    }
}

/// Returns true for a document that a search leaves out although it has postings: one that was
/// removed, or one that does not pass.
pub(super) fn leaves_out(view: &dyn ReadView, gate: Option<&Gate<'_>>, id: u64) -> Result<bool> {
    if view.is_deleted(id) {
        return Ok(true);
    }
    let Some(gate) = gate else {
        return Ok(false);
    };
    if let Some(passes) = gate.known(id) {
        return Ok(!passes);
    }
    let passes = view.with_head(id, |head| gate.passes(view, id, head))?;
    // A document in memory that was removed has postings and no row.
    Ok(passes == Some(false))
}

/// A filter, what it has decided, and a panic of its closure.
pub(crate) struct Gate<'f> {
    filter: &'f Filter<'f>,
    decided: Mutex<Decided>,
    outside: Outside,
}

/// Documents about which a filter has decided. Many postings lead to one document.
#[derive(Default)]
struct Decided {
    passing: Tombstones,
    hidden: Tombstones,
}

impl<'f> Gate<'f> {
    fn new(filter: &'f Filter<'_>) -> Self {
        Self {
            filter,
            decided: Mutex::default(),
            outside: Outside::default(),
        }
    }

    /// Returns the earlier decision about a document.
    fn known(&self, id: u64) -> Option<bool> {
        let decided = self.decided.lock().ignore_poison();
        let passes = decided.passing.contains(id);
        (passes || decided.hidden.contains(id)).then_some(passes)
    }

    /// Returns true if the document of a row passes. It is asked while the table of rows is open,
    /// so it reads no other row of this table.
    pub(super) fn passes(&self, view: &dyn ReadView, id: u64, head: &RowHead<'_>) -> Result<bool> {
        if let Some(passes) = self.known(id) {
            return Ok(passes);
        }
        let passes = self.decide(id, head, || view.payload(id, head))?;
        let mut decided = self.decided.lock().ignore_poison();
        let ids = match passes {
            true => &mut decided.passing,
            false => &mut decided.hidden,
        };
        // Another thread may have decided about the same document.
        if !ids.contains(id) {
            ids.insert(id);
        }
        Ok(passes)
    }

    /// Decides about the document of a row. `payload` reads its payload.
    pub(crate) fn decide(
        &self,
        id: u64,
        head: &RowHead<'_>,
        payload: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<bool> {
        let admitted = self.filter.admits(head.key, head.stamp);
        if !admitted || !self.filter.has_closure() {
            return Ok(admitted);
        }
        let payload = payload()?;
        let document = head.to_document(&payload);
        let stored = StoredDocument::new(id, &document);
        self.outside.call(|| Ok(self.filter.accepts(&stored)))
    }
}
