//! A view that shows a search only the documents that a filter lets pass.

use std::sync::{Mutex, MutexGuard};

use crate::error::Result;
use crate::format::RowHead;
use crate::index::{CodeRange, ProbeRange, VisitProbe};
use crate::invariant::OrBug;
use crate::query::verify::Outside;
use crate::read::{PostingTable, ReadView, Visit, VisitRow, VisitRows, VisitShare};
use crate::state::{SharedContext, Tombstones};
use crate::sync::IgnorePoison;
use crate::types::{Filter, StoredDocument};

/// Asks a question of a view, where a filter hides the documents that do not pass. A panic of the
/// filter's closure continues afterwards, outside of the engine.
pub(super) fn filtered<T>(
    view: &dyn ReadView,
    filter: Option<&Filter<'_>>,
    ask: impl FnOnce(&dyn ReadView) -> Result<T>,
) -> Result<T> {
    let Some(filter) = filter else {
        return ask(view);
    };
    let gate = Gate::new(filter);
    let answer = match view.shared() {
        Some(view) => ask(&FilteredView { view, gate: &gate }),
        None => ask(&FilteredView { view, gate: &gate }),
    };
    gate.outside.leave();
    answer
}

/// A filter at work: what it has decided, and a panic of its closure.
pub(crate) struct Gate<'f> {
    filter: &'f Filter<'f>,
    decided: Mutex<Decided>,
    pub(crate) outside: Outside,
}

/// Documents about which a filter has decided. Many postings lead to one document.
#[derive(Default)]
struct Decided {
    passing: Tombstones,
    hidden: Tombstones,
}

impl<'f> Gate<'f> {
    pub(crate) fn new(filter: &'f Filter<'_>) -> Self {
        Self {
            filter,
            decided: Mutex::default(),
            outside: Outside::default(),
        }
    }

    /// Returns the earlier decision about a document.
    fn known(&self, id: u64) -> Option<bool> {
        let decided = self.decided();
        let passes = decided.passing.contains(id);
        (passes || decided.hidden.contains(id)).then_some(passes)
    }

    fn decided(&self) -> MutexGuard<'_, Decided> {
        self.decided.lock().ignore_poison()
    }

    fn note(&self, id: u64, passes: bool) -> bool {
        let mut decided = self.decided();
        let ids = match passes {
            true => &mut decided.passing,
            false => &mut decided.hidden,
        };
        // Another thread may have decided about the same document.
        if !ids.contains(id) {
            ids.insert(id);
        }
        passes
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

/// A reference to a view, which threads may share or not.
trait ViewReference: Copy {
    fn view(&self) -> &dyn ReadView;

    /// Returns the filtered view if several threads can read it at once.
    fn shared<'s>(filtered: &'s FilteredView<'_, Self>) -> Option<&'s (dyn ReadView + Sync)>;

    /// Shows the row of each passing document to one of the visitors.
    fn share(filtered: &FilteredView<'_, Self>, visitors: Vec<VisitShare<'_>>) -> Result<()>;
}

impl ViewReference for &dyn ReadView {
    fn view(&self) -> &dyn ReadView {
        *self
    }

    fn shared<'s>(_: &'s FilteredView<'_, Self>) -> Option<&'s (dyn ReadView + Sync)> {
        None
    }

    fn share(filtered: &FilteredView<'_, Self>, visitors: Vec<VisitShare<'_>>) -> Result<()> {
        let mut first = visitors.into_iter().next().or_bug("a visitor of rows")?;
        filtered.all_document_rows(&mut *first)
    }
}

impl ViewReference for &(dyn ReadView + Sync) {
    fn view(&self) -> &dyn ReadView {
        *self
    }

    fn shared<'s>(filtered: &'s FilteredView<'_, Self>) -> Option<&'s (dyn ReadView + Sync)> {
        Some(filtered)
    }

    fn share(filtered: &FilteredView<'_, Self>, visitors: Vec<VisitShare<'_>>) -> Result<()> {
        let passing = visitors.into_iter().map(|mut visit| {
            let visit_passing = move |id, row: &[u8]| match filtered.passes_row(id, row)? {
                true => visit(id, row),
                false => Ok(()),
            };
            Box::new(visit_passing) as VisitShare<'_>
        });
        filtered.view.share_document_rows(passing.collect())
    }
}

/// A view without the documents that do not pass. Their postings are visited all the same: whoever
/// needs no row of a document asks [`leaves_out`](ReadView::leaves_out).
struct FilteredView<'v, V> {
    view: V,
    gate: &'v Gate<'v>,
}

impl<V: ViewReference> FilteredView<'_, V> {
    /// Returns true if the document of a row passes. It is asked while the table of rows is open,
    /// so it reads no other row of this table.
    fn passes_row(&self, id: u64, row: &[u8]) -> Result<bool> {
        let view = self.view.view();
        match self.gate.known(id) {
            Some(passes) => Ok(passes),
            None => view.read_head(id, row, |head| self.decide(id, head)),
        }
    }

    fn decide(&self, id: u64, head: &RowHead<'_>) -> Result<bool> {
        let view = self.view.view();
        let passes = self.gate.decide(id, head, || view.payload(id, head))?;
        Ok(self.gate.note(id, passes))
    }
}

impl<V: ViewReference> ReadView for FilteredView<'_, V> {
    fn context(&self) -> &SharedContext {
        self.view.view().context()
    }

    fn shared(&self) -> Option<&(dyn ReadView + Sync)> {
        V::shared(self)
    }

    fn documents(&self) -> u64 {
        self.view.view().documents()
    }

    fn flushed_below(&self) -> u64 {
        self.view.view().flushed_below()
    }

    fn probe_until(
        &self,
        table: PostingTable,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        let view = self.view.view();
        view.probe_until(table, ranges, visit, is_enough)
    }

    fn sweeps_by_code(&self) -> bool {
        self.view.view().sweeps_by_code()
    }

    fn sweep(
        &self,
        table: PostingTable,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<()> {
        self.view.view().sweep(table, lane, wanted, visit)
    }

    fn document_rows(&self, ids: &[u64], visit: &mut VisitRows<'_>) -> Result<()> {
        self.view.view().document_rows(ids, &mut |id, row| {
            let passes = match row {
                Some(bytes) => self.passes_row(id, bytes)?,
                // A lost row is no decision of the filter.
                None => self.gate.note(id, true),
            };
            visit(id, row.filter(|_| passes))
        })
    }

    fn payload_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.view.view().payload_row(id, visit)
    }

    fn set_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.view.view().set_row(id, visit)
    }

    fn holds_rows(&self) -> bool {
        self.view.view().holds_rows()
    }

    fn all_document_rows(&self, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let mut visit_passing = |id, row: &[u8]| match self.passes_row(id, row)? {
            true => visit(id, row),
            false => Ok(()),
        };
        self.view.view().all_document_rows(&mut visit_passing)
    }

    fn share_document_rows(&self, visitors: Vec<VisitShare<'_>>) -> Result<()> {
        V::share(self, visitors)
    }

    fn equal_row(&self, chunk: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.view.view().equal_row(chunk, visit)
    }

    fn is_deleted(&self, id: u64) -> bool {
        self.view.view().is_deleted(id)
    }

    fn leaves_out(&self, id: u64) -> Result<bool> {
        if self.is_deleted(id) {
            return Ok(true);
        }
        if let Some(passes) = self.gate.known(id) {
            return Ok(!passes);
        }
        let passes = self
            .view
            .view()
            .with_head(id, |head| self.decide(id, head))?;
        // A document in memory that was removed has postings and no row.
        Ok(passes == Some(false))
    }
}
