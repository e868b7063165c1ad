//! The state of a write transaction: the engine's transaction and what is not in its tables yet.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use redb::ReadableTable;

use crate::engine::{DEAD, DOCUMENTS, META, PanicSafe, SIGNATURES, catch_engine_panic};
use crate::error::{Error, Result};
use crate::format::DocumentRow;
use crate::format::{Posting, SignatureRow, State, header};
use crate::index::{CodeRange, Memtable, VisitAsked, Wanted};
use crate::lanes::hash_key;
use crate::observe::TransactionCounters;
use crate::read::{Plan, PostingTable, ProbeTables, ReadView, Visit, VisitRow, VisitRows};
use crate::sketch::Signature;
use crate::state::OpenStore;
use crate::state::{RunSet, SharedContext, TombstoneDelta, Version};
use crate::types::{Document, DocumentId};
use crate::write::buffer::TransactionBuffer;
use crate::write::pending_rows::PendingRows;
use crate::write::run_tables::run_tables;

pub(crate) struct Writer {
    pub(crate) store: Arc<OpenStore>,
    /// `None` once committed.
    write: Option<redb::WriteTransaction>,
    pub(crate) state: State,
    pub(crate) runs: RunSet,
    /// Committed postings that are not sealed.
    pub(crate) memtable: Memtable,
    /// Postings of this transaction that are not sealed. Sorted when a probe asks for it.
    pub(crate) recent: RefCell<TransactionBuffer>,
    pub(crate) pending: PendingRows,
    pub(crate) dead: TombstoneDelta,
    changed: bool,
    /// Documents whose rows were taken out of pages, or written to others.
    removed_rows: u64,
    /// The `postings_moved` that merges have been told of.
    pub(crate) merged_up_to: u64,
    /// Whether it has written lanes of runs.
    pub(crate) has_written_runs: bool,
    failure: Option<String>,
    pub(crate) counters: TransactionCounters,
}

/// So many removals copy more pages than a transaction of inserts does.
const MANY_REMOVED: u64 = 1_000;

impl Writer {
    pub(crate) fn begin(store: Arc<OpenStore>) -> Result<Self> {
        store.context.health.check_writes()?;
        let write = store.context.run_checked(|| {
            let mut write = store.engine.begin_write()?;
            write.set_quick_repair(store.context.options.quick_repair);
            Ok(write)
        })?;
        let latest = store.versions.latest()?;
        let lanes = store.context.lanes.count();
        store.context.counters.count.transactions_begun.add(1);
        Ok(Self {
            write: Some(write),
            state: latest.state,
            runs: latest.runs.clone(),
            memtable: latest.memtable.clone(),
            recent: RefCell::new(TransactionBuffer::new(lanes)),
            pending: PendingRows::default(),
            dead: TombstoneDelta::new(latest.dead.clone()),
            changed: false,
            removed_rows: 0,
            merged_up_to: latest.state.postings_moved,
            has_written_runs: false,
            failure: None,
            counters: TransactionCounters::default(),
            store,
        })
    }

    pub(crate) fn view(&self) -> &dyn ReadView {
        self
    }

    pub(crate) fn write(&self) -> Result<&redb::WriteTransaction> {
        let reason = || Error::Closed {
            reason: "the transaction has ended".into(),
        };
        self.write.as_ref().ok_or_else(reason)
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        match &self.failure {
            Some(failure) => Err(Error::Closed {
                reason: format!("the transaction failed and can only be rolled back: {failure}"),
            }),
            None => Ok(()),
        }
    }

    /// A key that is there leaves everything as it was; after other errors, numbers that have run
    /// out among them, a change may be half made. What the caller gives is checked before.
    pub(crate) fn note_failure(&mut self, error: &Error) {
        if !matches!(error, Error::KeyExists { .. }) {
            self.failure = Some(error.to_string());
        }
    }

    /// Stores a document whose key is known to be free.
    pub(crate) fn store_document(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        let id = self.state.next_id;
        // The greatest number stays unused, so that the next id always exists.
        let next_id = id.checked_add(1).filter(|next| *next < u64::MAX);
        let next_id =
            next_id.ok_or_else(|| Error::invalid("documents", id, "fewer than 2^64 - 1"))?;
        let key_code = document.key.map(hash_key);
        let recent = self.recent.get_mut();
        recent.push(&self.store.context, id, key_code, signature)?;
        let signature_row = self.store.context.signature_row(id, key_code, signature)?;
        self.pending
            .push(id, DocumentRow::from(document).encode(id), signature_row);
        self.state.next_id = next_id;
        self.state.documents += 1;
        self.state.unsealed_documents += 1;
        self.note_moved()?;
        self.changed = true;
        self.counters.inserted.add(1);
        if self.pending.is_full() {
            self.flush_pending()?;
        }
        if next_id - self.state.sealed_below >= self.store.context.options.flush_after_documents {
            self.seal()?;
        }
        Ok(DocumentId::new(id))
    }

    /// Removes a document. If it is in the range of a run, its dead bit is set, and a merge will drop
    /// its rows and postings; else its rows go.
    pub(crate) fn remove_document(&mut self, id: u64) -> Result<bool> {
        // A sealed document that is in no run has no posting, and no merge would clear its bit.
        let found = match self.runs.place_of(id) {
            Some(place) => self.bury_in_run(id, place)?,
            None => self.remove_rows(id)?,
        };
        if !found {
            return Ok(false);
        }
        if id >= self.state.sealed_below {
            let lanes = self.store.context.lanes.count();
            self.recent.get_mut().bury(lanes, id);
            // Cannot be 0: the row of this document was there.
            self.state.unsealed_documents = self.state.unsealed_documents.saturating_sub(1);
        }
        self.note_moved()?;
        let documents = self.state.documents.checked_sub(1);
        self.state.documents = documents
            .ok_or_else(|| Error::corrupt("table meta, row state", "more rows than documents"))?;
        self.changed = true;
        self.counters.deleted.add(1);
        Ok(true)
    }

    /// Marks a document in the range of a run as dead; whether it was there.
    fn bury_in_run(&mut self, id: u64, place: usize) -> Result<bool> {
        if self.dead.set.contains(id) || self.write()?.open_table(DOCUMENTS)?.get(id)?.is_none() {
            return Ok(false);
        }
        if let Some(run) = self.runs.standing.get_mut(place) {
            let run = Arc::make_mut(run);
            run.dead += 1;
            let number = run.descriptor.run;
            self.dead.insert(id, self.runs.is_merging(number));
        }
        Ok(true)
    }

    /// Takes the rows of a document away that is in no run; whether it was there.
    fn remove_rows(&mut self, id: u64) -> Result<bool> {
        if self.pending.covers(id) {
            let Some(row) = self.pending.remove(id) else {
                return Ok(false);
            };
            let row = SignatureRow::decode(id, &row, self.store.context.shape())?;
            self.recent.get_mut().forget_key(row.key_code(), id);
            return Ok(true);
        }
        let write = self.write()?;
        if write.open_table(DOCUMENTS)?.remove(id)?.is_none() {
            return Ok(false);
        }
        if write.open_table(SIGNATURES)?.remove(id)?.is_none() {
            let place = format!("table signatures, document {id}");
            let detail = "found no row, expected one (invariant 1)";
            return Err(Error::corrupt(place, detail));
        }
        self.note_removed_rows(1);
        Ok(true)
    }

    /// Counts documents whose rows were taken out of pages, or written to others.
    pub(crate) fn note_removed_rows(&mut self, documents: u64) {
        self.removed_rows += documents;
    }

    /// Something other than documents changed and must be committed.
    pub(crate) fn mark_changed(&mut self) {
        self.changed = true;
    }

    pub(crate) fn flush_pending(&mut self) -> Result<()> {
        if let Some(write) = self.write.as_ref() {
            self.pending.flush(write)?;
        }
        Ok(())
    }

    fn probe_tables<'t, 'w>(
        &'t self,
        table: PostingTable,
        opened: &'t crate::index::RunTables<'w>,
    ) -> ProbeTables<'t, crate::index::RunBlocks<'w>, crate::index::FilterPieces<'w>> {
        ProbeTables {
            context: &self.store.context,
            table,
            blocks: &opened.blocks,
            filters: &opened.filters,
        }
    }

    /// Visits the postings within `ranges` of documents from an id on, none of which is in a run.
    pub(crate) fn probe_since(
        &self,
        first_id: u64,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let visit = &mut |index, posting: Posting| match posting.id >= first_id {
            true => visit(index, posting),
            false => Ok(true),
        };
        self.recent.borrow_mut().probe(ranges, visit)?;
        self.memtable.probe_since(first_id, ranges, visit)
    }

    fn flush_dead(&mut self) -> Result<()> {
        if let Some(write) = self.write.as_ref().filter(|_| self.dead.is_changed()) {
            self.dead.flush(&mut write.open_table(DEAD)?)?;
        }
        Ok(())
    }

    pub(crate) fn commit(&mut self) -> Result<()> {
        let began = Instant::now();
        let outcome = self.commit_changes();
        self.note_commit(began, &outcome);
        outcome
    }

    fn commit_changes(&mut self) -> Result<()> {
        if !self.changed {
            return Ok(());
        }
        self.merge()?;
        self.flush_pending()?;
        self.flush_dead()?;
        self.state.commit = self.state.next_commit()?;
        self.state.dead_documents = self.dead.set.len();
        {
            let mut meta = self.write()?.open_table(META)?;
            let row = header::encode_meta(header::STATE, &self.state)?;
            meta.insert(header::STATE, row.as_slice())?;
        }
        let memtable = self.recent.get_mut().drain_into(&self.memtable);
        let version = Version {
            state: self.state,
            runs: self.runs.clone(),
            memtable,
            dead: self.dead.set.clone(),
        };
        let Some(write) = self.write.take() else {
            return Ok(());
        };
        // A reader of the state before keeps the engine from a second, volatile commit, in which it
        // would free the pages that this one leaves: the next commit does so anyway, and after a
        // volatile one every page that has to be read is first looked for among unwritten ones.
        // Not where many rows were removed: their pages, all copied, are better used again at once.
        let before = match self.removed_rows {
            0..MANY_REMOVED => Some(PanicSafe::new(self.store.engine.begin_read()?)),
            _ => None,
        };
        let publication = &self.store.versions;
        let outcome = publication.commit(version, || catch_engine_panic(|| Ok(write.commit()?)));
        drop(before);
        outcome.inspect_err(|error| {
            let reason = format!("a commit failed, its outcome is unknown: {error}");
            self.store.context.health.close_writes(reason);
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(write) = self.write.take() {
            if self.has_written_runs {
                // What was read of them will not be, and others will be written under their numbers.
                self.store.context.filters.clear();
            }
            // A damaged file can make the engine panic here as well; the file is as it was.
            let _ = catch_engine_panic(|| Ok(write.abort()?));
            self.note_dropped();
        }
    }
}

impl ReadView for Writer {
    fn context(&self) -> &SharedContext {
        &self.store.context
    }

    fn sealed_below(&self) -> u64 {
        self.state.sealed_below
    }

    fn probe_until(
        &self,
        table: PostingTable,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        self.recent.borrow_mut().probe(ranges, visit)?;
        self.memtable.probe(ranges, visit)?;
        if is_enough()? {
            return Ok(());
        }
        // Opening tables costs more than asking filters, which rule most look-ups of keys out.
        let plan = Plan::of(&self.store.context, &self.runs, ranges);
        if plan.is_empty(&self.store.context) {
            return Ok(());
        }
        let opened = run_tables(self.write()?, table)?;
        self.probe_tables(table, &opened)
            .probe(plan, ranges, visit, is_enough)
    }

    fn sweep(
        &self,
        table: PostingTable,
        lane: u16,
        wanted: &[Wanted],
        visit: &mut VisitAsked<'_>,
    ) -> Result<()> {
        let goes_on = self.recent.borrow_mut().sweep(lane, wanted, visit)?
            && self.memtable.sweep(lane, wanted, visit)?;
        if !goes_on || self.runs.standing.is_empty() {
            return Ok(());
        }
        let opened = run_tables(self.write()?, table)?;
        self.probe_tables(table, &opened)
            .sweep(&self.runs, lane, wanted, visit)
    }

    fn document_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        if self.is_dead(id) {
            return visit(None);
        }
        self.store.context.reads.add_documents(1);
        if self.pending.covers(id) {
            return visit(self.pending.document(id));
        }
        let table = self.write()?.open_table(DOCUMENTS)?;
        let row = table.get(id)?;
        visit(row.as_ref().map(|row| row.value()))
    }

    fn signature_rows(&self, ids: &[u64], visit: &mut VisitRows<'_>) -> Result<()> {
        let mut table = None;
        self.store.context.reads.add_signatures(ids.len());
        for &id in ids {
            if self.is_dead(id) {
                visit(id, None)?;
                continue;
            }
            if self.pending.covers(id) {
                visit(id, self.pending.signature(id))?;
                continue;
            }
            if table.is_none() {
                table = Some(self.write()?.open_table(SIGNATURES)?);
            }
            let row = match &table {
                Some(table) => table.get(id)?,
                None => None,
            };
            visit(id, row.as_ref().map(|row| row.value()))?;
        }
        Ok(())
    }

    fn all_signature_rows(&self, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let table = self.write()?.open_table(SIGNATURES)?;
        for entry in table.iter()? {
            let (id, row) = entry?;
            if !self.is_dead(id.value()) {
                visit(id.value(), row.value())?;
            }
        }
        for (id, row) in self.pending.signatures() {
            visit(id, row)?;
        }
        Ok(())
    }

    fn is_dead(&self, id: u64) -> bool {
        self.dead.set.contains(id)
    }
}
