//! One version of the store, held for reading.

use std::ops::Range;
use std::sync::Arc;

use crate::engine::{
    EQUAL, EngineResult, META, PageFinder, PanicSafe, ReadOnlyBlocks, ReadOnlyPieces, ReadTables,
    ReadableTable,
};
use crate::error::Result;
use crate::format::header;
use crate::index::{CodeRange, ProbeRange, VisitProbe};
use crate::invariant::OrBug;
use crate::observe::LiveSnapshot;
use crate::read::probe::RunReader;
use crate::read::view::{
    PostingTable, ReadView, Visit, VisitRow, VisitRows, VisitShare, visit_rows, visit_set,
};
use crate::state::{OpenStore, SharedContext, Version, current};
use crate::threads::in_shares;
use crate::types::DocumentId;
use resemblance_sketch::schema::Schema;

/// One version of the store, with the redb snapshot that belongs to it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SnapshotView {
    pub(crate) inner: Arc<SnapshotState>,
}

/// Returns a named position from the table `meta`.
pub(crate) fn position_in(
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
    name: &str,
) -> Result<Option<Vec<u8>>> {
    let row = meta.get(header::position_row(name).as_str()).engine()?;
    row.map(|row| header::decode_position(name, row.value()))
        .transpose()
}

/// Number of ids from which a separate thread pays off in a scan.
const MIN_SHARE: u64 = if cfg!(test) { 100 } else { 32_768 };

pub(crate) struct SnapshotState {
    // Fields are dropped in this order: the file must not be closed before its last reader is
    // dropped.
    tables: PanicSafe<(ReadTables, LiveSnapshot)>,
    pub(super) store: Arc<OpenStore>,
    pub(crate) version: Arc<Version>,
}

impl SnapshotState {
    pub(crate) fn tables(&self) -> Result<&ReadTables> {
        Ok(&self.tables.get()?.0)
    }

    fn runs(&self, table: PostingTable) -> SnapshotRuns<'_> {
        SnapshotRuns {
            snapshot: self,
            table,
        }
    }

    fn document_rows_within(
        &self,
        ids: Range<u64>,
        visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for entry in ReadableTable::range(&self.tables()?.documents, ids).engine()? {
            let (id, row) = entry.engine()?;
            if !self.is_deleted(id.value()) {
                visit(id.value(), row.value())?;
            }
        }
        Ok(())
    }
}

impl SnapshotView {
    /// The version of the last commit.
    pub(crate) fn open(store: &Arc<OpenStore>) -> Result<Self> {
        let store = current(store)?;
        store.context.run_checked(|| Self::new(Arc::clone(&store)))
    }

    fn new(store: Arc<OpenStore>) -> Result<Self> {
        let (read, version) = store.snapshot()?;
        let context = &store.context;
        let tables = (
            ReadTables::open(read, context.schema.has_sets())?,
            context.counters.snapshot(),
        );
        let inner = SnapshotState {
            tables: PanicSafe::new_in(tables, context.health.home()),
            store,
            version,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    pub(crate) fn view(&self) -> &dyn ReadView {
        &*self.inner
    }

    pub(crate) fn context(&self) -> &SharedContext {
        &self.inner.store.context
    }

    /// Returns a named position.
    pub(crate) fn position(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.context().run_checked(|| {
            let read = &self.inner.tables()?.read;
            position_in(&read.open_table(META).engine()?, name)
        })
    }

    /// The number of documents.
    pub(crate) fn len(&self) -> u64 {
        self.inner.version.state.documents
    }

    /// Returns true if many processes write the store.
    pub(crate) fn is_for_many(&self) -> bool {
        self.inner.store.engine.shares_writers
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.context().schema
    }

    /// Returns the live documents that are in no run, ascending.
    pub(crate) fn unflushed_ids(&self) -> Result<Vec<u64>> {
        let first = self.inner.version.state.flushed_below;
        let mut ids = Vec::new();
        for entry in ReadableTable::range(&self.inner.tables()?.documents, first..).engine()? {
            ids.push(entry.engine()?.0.value());
        }
        Ok(ids)
    }

    /// Returns the key of a document; `None` if there is no such document or it has no key.
    pub(crate) fn key(&self, id: DocumentId) -> Result<Option<Vec<u8>>> {
        self.context()
            .run_checked(|| Ok(self.view().key_of(id.get())?.flatten()))
    }
}

/// The runs of a snapshot, for lanes of one kind.
struct SnapshotRuns<'s> {
    snapshot: &'s SnapshotState,
    table: PostingTable,
}

impl RunReader for SnapshotRuns<'_> {
    type Blocks = ReadOnlyBlocks;
    type Filters = ReadOnlyPieces;

    fn context(&self) -> &SharedContext {
        &self.snapshot.store.context
    }

    fn table(&self) -> PostingTable {
        self.table
    }

    fn finder(&self) -> Option<&PageFinder> {
        self.snapshot.store.engine.page_finder.as_ref()
    }

    fn blocks(&self) -> Result<&ReadOnlyBlocks> {
        self.snapshot.blocks(self.table)
    }

    fn filters(&self) -> Result<&ReadOnlyPieces> {
        Ok(&self.snapshot.tables()?.filters)
    }
}

impl ReadView for SnapshotState {
    fn context(&self) -> &SharedContext {
        &self.store.context
    }

    fn shared(&self) -> Option<&(dyn ReadView + Sync)> {
        Some(self)
    }

    fn documents(&self) -> u64 {
        self.version.state.documents
    }

    fn flushed_below(&self) -> u64 {
        self.version.state.flushed_below
    }

    fn probe_until(
        &self,
        table: PostingTable,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        self.version.memtable.probe(ranges, visit)?;
        if is_enough()? {
            return Ok(());
        }
        self.runs(table)
            .probe(&self.version.runs, ranges, visit, is_enough)
    }

    fn sweep(
        &self,
        table: PostingTable,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<()> {
        if !self.version.memtable.sweep(lane, wanted, visit)? {
            return Ok(());
        }
        self.runs(table)
            .sweep(&self.version.runs, lane, wanted, visit)
    }

    fn document_rows(&self, ids: &[u64], visit: &mut VisitRows<'_>) -> Result<()> {
        let documents = &self.tables()?.documents;
        visit_rows(documents, ids, &|id| self.is_deleted(id), visit)
    }

    fn payload_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        if self.is_deleted(id) {
            return visit(None);
        }
        self.context().counters.count.payloads_read.add(1);
        let row = self.tables()?.payloads.get(id).engine()?;
        visit(row.as_ref().map(|row| row.value()))
    }

    fn set_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        if self.is_deleted(id) {
            return visit(None);
        }
        let sets = self.tables()?.sets.as_ref();
        visit_set(sets.or_bug("a store with sets")?, id, visit)
    }

    fn all_document_rows(&self, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        self.document_rows_within(0..u64::MAX, visit)
    }

    fn share_document_rows(&self, visitors: Vec<VisitShare<'_>>) -> Result<()> {
        // Ids are divided rather than rows, whose number is unknown. If many were deleted, the
        // shares are uneven.
        let next_id = self.version.state.next_id;
        let shares = (next_id / MIN_SHARE).clamp(1, visitors.len().max(1) as u64);
        let share = next_id.div_ceil(shares).max(1);
        let parts = (0..shares).zip(visitors);
        in_shares("scan", parts, |(index, mut visit)| {
            let ids = index * share..(index + 1) * share;
            self.context()
                .run_checked(|| self.document_rows_within(ids, &mut *visit))
        })
        .map(drop)
    }

    fn equal_row(&self, chunk: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        let table = self.tables()?.read.open_table(EQUAL).engine()?;
        let row = ReadableTable::get(&table, chunk).engine()?;
        visit(row.as_ref().map(|row| row.value()))
    }

    fn is_deleted(&self, id: u64) -> bool {
        self.version.deleted.contains(id)
    }
}
