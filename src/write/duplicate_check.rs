//! Checks one document for duplicates before it is inserted: in a view, or, if a snapshot has been
//! searched already, only among the documents inserted since.

use crate::error::Result;
use crate::index::{CodeRange, ProbeRange, SweepControl, VisitProbe};
use crate::query::{Bounds, Budget, Collector, Scorer, SearchSpec};
use crate::read::{PostingTable, ReadView, Visit, VisitRow, VisitRows};
use crate::state::SharedContext;
use crate::types::{BudgetExceeded, Document, Novelty};
use crate::write::writer::Writer;
use resemblance_sketch::sketch::Signature;

/// The result of looking for a document's key and for near-duplicates of it.
pub(crate) struct DuplicateCheck {
    /// Why the document is not new; `None` if neither its key nor a near-duplicate was found.
    pub(crate) novelty: Option<Novelty>,
    /// Candidates that the store's budget left out of a check that found nothing.
    pub(crate) beyond: Option<BudgetExceeded>,
}

/// Looks for the document's key first, and then for the best match within the schema's bounds.
///
/// # Errors
/// Returns the errors of reading.
pub(crate) fn find_duplicate(
    source: &dyn ReadView,
    document: &Document<'_>,
    signature: &Signature,
) -> Result<DuplicateCheck> {
    if let Some(key) = document.key()
        && let Some(id) = source.find_key(key)?
    {
        let same = Scorer::new(signature).compare(source, id)?;
        return Ok(DuplicateCheck {
            novelty: Some(Novelty::KeyExists(same)),
            beyond: None,
        });
    }
    let context = source.context();
    let bounds = Bounds::new().resolve(&context.schema, false)?;
    let search = SearchSpec {
        bounds: Some(&bounds),
        budget: Budget::from_options(&context.options)?,
        ..SearchSpec::new(source, Collector::BestOne)
    };
    let matches = search.probe(0, signature)?;
    Ok(DuplicateCheck {
        beyond: matches.budget_exceeded(),
        novelty: matches.into_iter().next().map(Novelty::NearDuplicate),
    })
}

/// A view of a transaction that finds only the documents from an id on.
///
/// The documents before it have been searched in a snapshot without result, while others wrote. Some
/// may have been deleted since, but a deletion adds no near-duplicate, so that result still holds.
pub(super) struct TailView<'w> {
    writer: &'w Writer,
    first_id: u64,
}

impl<'w> TailView<'w> {
    /// Returns `None` if some of these documents have been flushed to runs: a search must then
    /// examine the whole transaction again.
    pub(super) fn new(writer: &'w Writer, first_id: u64) -> Option<Self> {
        (first_id >= writer.state.flushed_below).then_some(Self { writer, first_id })
    }
}

impl ReadView for TailView<'_> {
    fn context(&self) -> &SharedContext {
        self.writer.context()
    }

    fn documents(&self) -> u64 {
        self.writer.documents()
    }

    fn flushed_below(&self) -> u64 {
        self.writer.flushed_below()
    }

    fn probe_until(
        &self,
        _: PostingTable,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        self.writer.probe_since(self.first_id, ranges, visit)?;
        is_enough().map(|_| ())
    }

    fn sweep(
        &self,
        table: PostingTable,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<()> {
        let first_id = self.first_id;
        self.writer.sweep(
            table,
            lane,
            wanted,
            &mut |query_index, posting| match posting.id >= first_id {
                true => visit(query_index, posting),
                false => Ok(SweepControl::GoOn),
            },
        )
    }

    fn document_rows(&self, ids: &[u64], visit: &mut VisitRows<'_>) -> Result<()> {
        self.writer.document_rows(ids, visit)
    }

    fn payload_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.writer.payload_row(id, visit)
    }

    fn set_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.writer.set_row(id, visit)
    }

    fn all_document_rows(&self, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        self.writer
            .all_document_rows(&mut |id, row| match id >= self.first_id {
                true => visit(id, row),
                false => Ok(()),
            })
    }

    fn equal_row(&self, _: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        // None of these documents is in a run.
        visit(None)
    }

    fn is_deleted(&self, id: u64) -> bool {
        self.writer.is_deleted(id)
    }
}
