//! The state of a write transaction: the engine's transaction, and the changes that are not in its
//! tables yet.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;
use std::thread::scope;
use std::time::{Duration, Instant};

use crate::clusters::{
    ClusterLog, Reconnection, Relinking, WrittenClusters, check_kept, cluster_bounds, enter,
    near_components, note_entered,
};
use crate::engine::{
    DEAD, DOCUMENTS, EQUAL, EngineResult, META, PAYLOADS, PageFinder, PanicSafe, ReadableTable,
    SETS, WriteTransaction, catch_engine_panic,
};
use crate::error::{Error, Result};
use crate::format::{Posting, RowHead, State, TombstoneChanges, header};
use crate::id::ClusterId;
use crate::index::{
    CodeRange, FilterPieces, Memtable, ProbeControl, ProbeRange, RunBlocks, RunTables, VisitProbe,
};
use crate::invariant::{OrBug, at, at_mut};
use crate::observe::{COMMIT, TransactionCounters, log as events};
use crate::query::{Bounds, ResolvedBounds, Scored};
use crate::read::{
    PostingTable, ReadView, RunReader, Visit, VisitRow, VisitRows, position_in, visit_rows,
    visit_set,
};
use crate::state::{FullBuckets, OpenStore, RunSet, SharedContext, TombstoneDelta, Version};
use crate::threads::named;
use crate::types::{Document, DocumentId, Phase, Watch};
use crate::write::buffer::TransactionBuffer;
use crate::write::pending_rows::{DocumentRows, DocumentTables, PendingRows};
use crate::write::run_tables::run_tables;
use resemblance_sketch::lanes::hash_key;
use resemblance_sketch::sketch::Signature;

/// The only writer of a store, until it is committed or dropped.
pub(crate) struct Writer {
    pub(crate) store: Arc<OpenStore>,
    /// The engine's transaction; `None` once committed.
    write: Option<WriteTransaction>,
    /// The state that the transaction began with, which a commit compares its changes with.
    pub(super) base: State,
    pub(super) state: State,
    pub(crate) runs: RunSet,
    /// Committed postings that are in no run.
    pub(super) memtable: Memtable,
    /// Postings of this transaction that are in no run. A probe may sort them.
    pub(super) buffer: RefCell<TransactionBuffer>,
    pub(super) pending: PendingRows,
    pub(super) deleted: TombstoneDelta,
    /// The bounds of the clusters that the store keeps, if it keeps any.
    cluster_bounds: Option<ResolvedBounds>,
    full_buckets: RefCell<FullBuckets>,
    /// The changes of clusters, which the commit writes.
    cluster_log: RefCell<ClusterLog>,
    has_changes: bool,
    /// Number of documents whose rows were taken out of pages or moved to others.
    removed_rows: u64,
    /// Kept hashes of documents that are in no run, those removed since included.
    pub(super) unflushed_kept: u64,
    /// The value of `state.postings_moved` up to which merges have been paced.
    pub(super) paced_up_to: u64,
    /// True once the memtable was flushed.
    pub(super) has_flushed: bool,
    /// True once blocks or filters of runs were written.
    pub(super) has_written_runs: bool,
    /// True once a merge has ended, so that the runs that it merged no longer exist.
    pub(super) has_dropped_runs: bool,
    /// The reason why the transaction can only be rolled back; `None` if it can continue.
    failure: Option<String>,
    pub(crate) counters: TransactionCounters,
}

/// A commit that takes longer than this, and longer than any before, is logged.
const LONG_COMMIT: Duration = Duration::from_secs(1);

/// Number of ids that are read while the table of documents is open.
const IDS_AT_ONCE: usize = 4_096;

/// A transaction that removes the rows of this many documents copies more pages than one of inserts.
const MANY_REMOVED: u64 = 1_000;

impl Writer {
    pub(crate) fn begin(store: Arc<OpenStore>) -> Result<Self> {
        store.context.health.check_writes()?;
        let write = store.context.run_checked(|| {
            let write = store.begin_write()?;
            store.begin_turn()?;
            Ok(write)
        })?;
        let latest = store.versions.latest()?;
        store.context.counters.count.transactions_begun.add(1);
        Self::adopt(store, write, &latest)
    }

    /// Continues a transaction of the engine that has left the store in this version.
    pub(crate) fn adopt(
        store: Arc<OpenStore>,
        write: WriteTransaction,
        latest: &Version,
    ) -> Result<Self> {
        let lanes = store.context.lanes.count();
        let kept_lane = store.context.lanes.kept_lane();
        let full_buckets = store.take_full_buckets(latest.state.commit);
        Ok(Self {
            write: Some(write),
            base: latest.state,
            state: latest.state,
            runs: latest.runs.clone(),
            memtable: latest.memtable.clone(),
            buffer: RefCell::new(TransactionBuffer::new(lanes)),
            pending: PendingRows::default(),
            deleted: TombstoneDelta::new(latest.deleted.clone()),
            cluster_bounds: cluster_bounds(&store.context.schema)?,
            full_buckets: RefCell::new(full_buckets.unwrap_or_default()),
            cluster_log: RefCell::new(ClusterLog::new(store.context.options.kept_changes)),
            has_changes: false,
            removed_rows: 0,
            unflushed_kept: kept_lane.map_or(0, |lane| latest.memtable.lane_postings(lane)),
            paced_up_to: latest.state.postings_moved,
            has_flushed: false,
            has_written_runs: false,
            has_dropped_runs: false,
            failure: None,
            counters: TransactionCounters::default(),
            store,
        })
    }

    /// Returns the transaction of the engine, for another to commit.
    pub(crate) fn release(mut self) -> Result<WriteTransaction> {
        self.write_feed()?;
        let write = self.write.take();
        write.or_bug("an engine transaction that has not ended")
    }

    /// Writes how this transaction has changed clusters.
    fn write_feed(&mut self) -> Result<()> {
        let write = open_write(self.write.as_ref())?;
        self.cluster_log.get_mut().write(write, self.state.commit)
    }

    pub(crate) fn view(&self) -> &dyn ReadView {
        self
    }

    /// Returns the engine's transaction.
    ///
    /// # Errors
    /// [`Error::Bug`] if it has ended: a commit consumes the transaction that owns this.
    #[track_caller]
    pub(super) fn write(&self) -> Result<&WriteTransaction> {
        open_write(self.write.as_ref())
    }

    /// Returns true once the engine's transaction was handed to a commit.
    pub(super) fn has_ended(&self) -> bool {
        self.write.is_none()
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        let Some(failure) = &self.failure else {
            return Ok(());
        };
        self.store.context.health.check_home()?;
        Err(Error::Closed {
            reason: format!("the transaction failed and can only be rolled back: {failure}"),
        })
    }

    /// Decides whether the transaction can continue after a change has failed. An existing key is
    /// found before anything changes. After any other error, including a broken invariant, a change
    /// may be half made, and the transaction can only be rolled back.
    pub(super) fn note_failure(&mut self, error: &Error) {
        if !matches!(error, Error::KeyExists { .. }) {
            self.failure = Some(error.to_string());
        }
    }

    /// Stores a document, whose key the caller has found to be free, under the next id.
    pub(crate) fn store_document(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        let near = match &self.cluster_bounds {
            Some(bounds) => {
                let full = &mut self.full_buckets.borrow_mut();
                near_components(self, bounds, || self.clusters(), full, signature)?
            }
            None => Vec::new(),
        };
        self.store_beside(document, signature, &near)
    }

    /// Stores a document that a complete search within the schema's bounds has found to be near no
    /// other, as [`store_document`](Self::store_document) does. If clusters have these bounds, nothing
    /// is searched again.
    pub(super) fn store_alone(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        let schema = &self.store.context.schema;
        let is_linked = match &self.cluster_bounds {
            Some(bounds) => *bounds != Bounds::new().resolve(schema, false)?,
            None => false,
        };
        match is_linked {
            true => self.store_document(document, signature),
            false => self.store_beside(document, signature, &[]),
        }
    }

    /// Stores a document, and links it to those near it.
    fn store_beside(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
        near: &[Scored],
    ) -> Result<DocumentId> {
        let id = self.state.next_id;
        // The greatest number remains unused, so that the next id always exists.
        let next_id = id.checked_add(1).filter(|next| *next < u64::MAX);
        let next_id =
            next_id.ok_or_else(|| Error::invalid("documents", id, "fewer than 2^64 - 1"))?;
        let key_code = document.key().map(hash_key);
        let rows = DocumentRows::encode(&self.store.context, id, document, signature)?;
        let buffer = self.buffer.get_mut();
        buffer.push(&self.store.context, id, key_code, signature)?;
        self.pending.push(id, rows)?;
        self.state.next_id = next_id;
        self.state.documents += 1;
        self.state.unflushed_documents += 1;
        let kept = signature
            .kept_hashes()
            .map_or(0, |hashes| hashes.len() as u64);
        self.note_moved(kept)?;
        self.unflushed_kept += kept;
        self.has_changes = true;
        self.counters.count.inserted.add(1);
        if let Some(bounds) = &self.cluster_bounds {
            let full = &mut self.full_buckets.borrow_mut();
            let cluster = match near {
                [] => None,
                near => {
                    let tables = &mut self.clusters()?;
                    Some(enter(tables, full, &self.store.context.schema, id, near)?)
                }
            };
            note_entered(self, bounds, full, id, signature, cluster)?;
        }
        if self.pending.is_full() {
            self.flush_pending()?;
        }
        let options = &self.store.context.options;
        let unflushed = next_id - self.state.flushed_below;
        let lanes = self.store.context.lanes.single_count();
        if unflushed >= options.flush_after_documents(lanes)
            || self.unflushed_kept >= options.flush_after_kept_hashes()
        {
            self.flush()?;
        }
        Ok(DocumentId::new(id))
    }

    /// Stores a document whose key, if it has one, must be free.
    pub(super) fn insert(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
    ) -> Result<DocumentId> {
        if let Some(key) = document.key()
            && let Some(id) = self.view().find_key(key)?
        {
            return Err(Error::KeyExists {
                key: key.to_vec(),
                id: DocumentId::new(id),
            });
        }
        self.store_document(document, signature)
    }

    /// Removes a document and returns true, or returns false if no document has this id. A document
    /// within the range of a run gets a tombstone, and a merge will drop its rows and postings; any
    /// other loses its rows at once.
    pub(crate) fn remove_document(&mut self, id: u64) -> Result<bool> {
        // A flushed document that is in no run has no posting, and no merge would clear its
        // tombstone: its rows are removed at once, too.
        let position = self.runs.position_of(id);
        let found = match position {
            Some(position) => self.add_tombstone(id, position)?,
            None => self.remove_rows(id)?,
        };
        if !found {
            return Ok(false);
        }
        if id >= self.state.flushed_below {
            self.buffer.get_mut().delete(id)?;
            // Opening has counted the rows of these documents, and one of them was this one's.
            let unflushed = self.state.unflushed_documents.checked_sub(1);
            self.state.unflushed_documents =
                unflushed.or_bug("a count of unflushed documents for each of their rows")?;
        }
        // Merges do not concern documents that are in no run.
        let kept = position.map_or(Ok(0), |position| self.mean_kept(position))?;
        self.note_moved(kept)?;
        // The other rows have not been counted: if this fails, the file contradicts itself.
        let documents = self.state.documents.checked_sub(1);
        self.state.documents = documents
            .ok_or_else(|| Error::corrupt("table meta, row state", "more rows than documents"))?;
        self.has_changes = true;
        self.counters.deleted.add(1);
        if let Some(bounds) = &self.cluster_bounds {
            let mut tables = self.clusters()?;
            let full = &mut self.full_buckets.borrow_mut();
            Reconnection::new(self, bounds).leave(&mut tables, full, id)?;
        }
        Ok(true)
    }

    /// Adds a tombstone for a document in the range of the run at a position, and returns true if the
    /// document was there.
    fn add_tombstone(&mut self, id: u64, position: usize) -> Result<bool> {
        if self.deleted.set.contains(id)
            || self
                .write()?
                .open_table(DOCUMENTS)
                .engine()?
                .get(id)
                .engine()?
                .is_none()
        {
            return Ok(false);
        }
        let run = Arc::make_mut(at_mut(&mut self.runs.current, position)?);
        run.deleted += 1;
        let number = run.descriptor.run;
        self.deleted.insert(id, self.runs.is_merging(number));
        Ok(true)
    }

    /// Returns the cluster of a document as this transaction has left it.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if the store keeps no clusters.
    pub(super) fn cluster_of(&self, id: u64) -> Result<Option<ClusterId>> {
        check_kept(&self.store.context.schema)?;
        let found = self.clusters()?.cluster_of(id)?;
        Ok(found.map(|(id, _)| ClusterId::new(id)))
    }

    /// Opens the tables of clusters. Their changes are noted for the feed.
    fn clusters(&self) -> Result<WrittenClusters<'_>> {
        WrittenClusters::open(self.write()?, &self.cluster_log)
    }

    /// Returns the next ids from one on of documents that have rows in the table.
    fn ids_from(&self, first: u64) -> Result<Vec<u64>> {
        let table = self.write()?.open_table(DOCUMENTS).engine()?;
        let rows = table.range(first..).engine()?.take(IDS_AT_ONCE);
        rows.map(|row| Ok(row.engine()?.0.value())).collect()
    }

    /// Finds the clusters of all documents again.
    pub(crate) fn relink_clusters(&mut self, watch: &mut Watch<'_>) -> Result<()> {
        let Some(bounds) = &self.cluster_bounds else {
            return Ok(());
        };
        let mut relinking = Relinking::begin(self, bounds, self.write()?, &self.cluster_log)?;
        let (mut done, total) = (0, self.state.documents);
        let mut ids = self.ids_from(0)?;
        while let Some(last) = ids.last().copied() {
            for id in ids {
                watch.step(Phase::LinkingClusters, done, total)?;
                let Some(signature) = self.view().signature_of(id)? else {
                    continue;
                };
                done += 1;
                relinking.link(id, &signature)?;
            }
            ids = self.ids_from(last + 1)?;
        }
        relinking.finish()?;
        self.has_changes = true;
        watch.report(Phase::LinkingClusters, total, total)
    }

    /// Removes the rows of a document that is in no run, and returns true if it was there.
    fn remove_rows(&mut self, id: u64) -> Result<bool> {
        if self.pending.covers(id) {
            let Some(row) = self.pending.remove(id) else {
                return Ok(false);
            };
            let head = RowHead::decode(id, &row)?;
            self.buffer.get_mut().remove_key(head.key_code(), id);
            return Ok(true);
        }
        let mut tables = DocumentTables::open(self.write()?, &self.store.context)?;
        let is_removed = tables.remove(id)?.is_some();
        drop(tables);
        self.note_removed_rows(u64::from(is_removed));
        Ok(is_removed)
    }

    /// Counts documents whose rows were taken out of pages or moved to others.
    pub(super) fn note_removed_rows(&mut self, documents: u64) {
        self.removed_rows += documents;
    }

    /// Sets a named position, or removes it.
    pub(super) fn set_position(&mut self, name: &str, position: Option<&[u8]>) -> Result<()> {
        let key = header::position_row(name);
        let mut meta = self.write()?.open_table(META).engine()?;
        match position {
            Some(position) => {
                let row = header::encode_position(name, position);
                meta.insert(key.as_str(), row.as_slice()).engine()?;
            }
            None => _ = meta.remove(key.as_str()).engine()?,
        }
        drop(meta);
        self.mark_changed();
        Ok(())
    }

    /// Returns a named position as this transaction has left it.
    pub(super) fn position(&self, name: &str) -> Result<Option<Vec<u8>>> {
        position_in(&self.write()?.open_table(META).engine()?, name)
    }

    /// Records a change other than that of the number of documents, so that the commit writes.
    pub(super) fn mark_changed(&mut self) {
        self.has_changes = true;
    }

    /// Writes the rows of new documents to their tables.
    pub(super) fn flush_pending(&mut self) -> Result<()> {
        self.pending.flush(open_write(self.write.as_ref())?)
    }

    /// Visits the postings within `ranges` of the documents from an id on, none of which may be in a
    /// run.
    pub(super) fn probe_since(
        &self,
        first_id: u64,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let visit = &mut |index, posting: Posting| match posting.id >= first_id {
            true => visit(index, posting),
            false => Ok(ProbeControl::GoOn),
        };
        self.buffer.borrow_mut().probe(ranges, visit)?;
        self.memtable.probe_since(first_id, ranges, visit)
    }

    fn flush_tombstones(&mut self) -> Result<()> {
        if self.deleted.is_changed() {
            let write = open_write(self.write.as_ref())?;
            let chunks = self.deleted.flush(&mut write.open_table(DEAD).engine()?)?;
            let mut meta = write.open_table(META).engine()?;
            let mut changes = match meta.get(header::TOMBSTONE_CHANGES).engine()? {
                Some(row) => header::decode_meta(header::TOMBSTONE_CHANGES, row.value())?,
                None => TombstoneChanges::default(),
            };
            changes.add(self.state.next_commit()?, &chunks);
            let row = header::encode_meta(header::TOMBSTONE_CHANGES, &changes)?;
            meta.insert(header::TOMBSTONE_CHANGES, row.as_slice())
                .engine()?;
        }
        Ok(())
    }

    /// Makes the changes durable and visible. After an error none of them is visible, unless the
    /// engine's commit failed. Its outcome is then known only when the file is opened again.
    pub(super) fn commit(&mut self) -> Result<()> {
        let began = Instant::now();
        let outcome = self.commit_changes();
        if outcome.is_ok() {
            let full_buckets = self.full_buckets.take();
            self.store
                .keep_full_buckets(self.state.commit, full_buckets);
        }
        self.note_commit(began, &outcome);
        outcome
    }

    /// Writes the changes that are not in tables yet, and returns the memtable of the new version.
    /// The postings of many documents are sorted on a second thread meanwhile: this touches no
    /// table.
    fn write_changes(&mut self) -> Result<Memtable> {
        let store = Arc::clone(&self.store);
        let context = &store.context;
        let empty = TransactionBuffer::new(context.lanes.count());
        let mut buffer = std::mem::replace(self.buffer.get_mut(), empty);
        let memtable = self.memtable.clone();
        let postings = buffer
            .unsorted()
            .saturating_mul(context.lanes.single_count().into());
        if context.options.is_in_parallel(postings) {
            let sorted = scope(|scope| -> Result<_> {
                let sort = || buffer.drain_into(&memtable);
                let Ok(sorting) = named("sort").spawn_scoped(scope, sort) else {
                    return Ok(None);
                };
                let written = self.write_tables();
                let joined = sorting.join().ok();
                written?;
                let sorted = joined.or_bug("the thread that sorts a commit's postings panicked")?;
                sorted.map(Some)
            })?;
            // Otherwise no second thread could be started.
            if let Some(sorted) = sorted {
                return Ok(sorted);
            }
        }
        self.write_tables()?;
        buffer.drain_into(&memtable)
    }

    fn write_tables(&mut self) -> Result<()> {
        // Merges run first: they clear tombstones, and each bitmap that has changed is then written
        // once.
        self.merge()?;
        self.flush_pending()?;
        self.flush_tombstones()?;
        // Merges have changed runs and tombstones since.
        self.check_conservation()?;
        self.state.commit = self.state.next_commit()?;
        self.state.deleted_documents = self.deleted.set.len();
        self.write_feed()?;
        let mut meta = self.write()?.open_table(META).engine()?;
        let row = header::encode_meta(header::STATE, &self.state)?;
        meta.insert(header::STATE, row.as_slice()).engine()?;
        Ok(())
    }

    fn commit_changes(&mut self) -> Result<()> {
        self.check_conservation()?;
        if !self.has_changes {
            return Ok(());
        }
        let memtable = self.write_changes()?;
        let version = Version {
            state: self.state,
            runs: self.runs.clone(),
            memtable,
            deleted: self.deleted.set.clone(),
        };
        let taken = self.write.take();
        let write = taken.or_bug("an engine transaction that has not ended")?;
        // An open reader of the previous state keeps the engine from making a second, volatile
        // commit, in which it would free the pages that this one leaves. The next commit frees them
        // anyway, and after a volatile commit the engine first looks for every page among the
        // unwritten ones. If many rows were removed, there is no such reader, because that many
        // copied pages should be reused immediately.
        let before = match self.removed_rows {
            0..MANY_REMOVED => Some(PanicSafe::new(self.store.engine.begin_read()?)),
            _ => None,
        };
        let versions = &self.store.versions;
        let outcome = versions.commit(version, || catch_engine_panic(|| write.commit().engine()));
        drop(before);
        if outcome.is_ok() && self.has_dropped_runs {
            let is_kept = |number| self.runs.descriptors().any(|run| run.run == number);
            self.store.context.cache.retain_runs(is_kept);
        }
        // The file may hold this commit or the one before: a crash between the writes of a commit
        // looks the same. Only opening it again shows which.
        outcome.inspect_err(|error| {
            let reason = format!("a commit failed, its outcome is unknown: {error}");
            self.store.context.health.close_writes(reason);
        })
    }

    /// Counts the end of a commit that began at `began`. A commit that failed before the engine wrote is
    /// counted as rolled back when the transaction is dropped.
    fn note_commit(&self, began: Instant, outcome: &Result<()>) {
        let context = &self.store.context;
        let count = &context.counters.count;
        match (outcome, self.has_ended()) {
            (Ok(()), true) => {
                count.transactions_committed.add(1);
                self.counters.add_to(count);
                context.note_documents(self.state.documents);
                let latency = began.elapsed();
                let longest = count.commit_latencies.record(latency);
                if latency > LONG_COMMIT.max(longest) {
                    let message = format_args!("a commit took {latency:.1?}, the longest so far");
                    events::warn(COMMIT, &context.path, message);
                }
            }
            (Ok(()), false) => {
                count.transactions_unchanged.add(1);
                self.counters.add_to(count);
            }
            (Err(error), true) => {
                count.transactions_failed.add(1);
                let message = format_args!("a commit failed: {error}; this handle writes no more");
                events::error(COMMIT, &context.path, message);
            }
            (Err(_), false) => {}
        }
    }

    /// Counts a transaction that is dropped without a commit as rolled back.
    fn note_dropped(&self) {
        if !self.counters.is_counted() {
            self.store
                .context
                .counters
                .count
                .transactions_rolled_back
                .add(1);
        }
    }
}

#[track_caller]
fn open_write(write: Option<&WriteTransaction>) -> Result<&WriteTransaction> {
    write.or_bug("an engine transaction that has not ended")
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.store.context.health.is_at_home() {
            std::mem::forget(self.write.take());
        } else if let Some(write) = self.write.take() {
            if self.has_written_runs {
                self.store.context.cache.clear();
            }
            // A damaged file can make the engine panic here too. The file does not change, and no
            // caller could receive an error.
            let _ = catch_engine_panic(|| write.abort().engine());
            self.note_dropped();
        }
    }
}

/// The runs of a transaction, for lanes of one kind. The engine lets a table be opened once at a time, and so they
/// are closed after each probe.
struct WriterRuns<'w> {
    writer: &'w Writer,
    table: PostingTable,
    opened: OnceCell<RunTables<'w>>,
}

impl<'w> WriterRuns<'w> {
    fn new(writer: &'w Writer, table: PostingTable) -> Self {
        Self {
            writer,
            table,
            opened: OnceCell::new(),
        }
    }

    fn opened(&self) -> Result<&RunTables<'w>> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let tables = run_tables(self.writer.write()?, self.table)?;
        Ok(self.opened.get_or_init(|| tables))
    }
}

impl<'w> RunReader for WriterRuns<'w> {
    type Blocks = RunBlocks<'w>;
    type Filters = FilterPieces<'w>;

    fn context(&self) -> &SharedContext {
        self.writer.context()
    }

    fn table(&self) -> PostingTable {
        self.table
    }

    fn finder(&self) -> Option<&PageFinder> {
        self.writer.store.engine.page_finder.as_ref()
    }

    fn blocks(&self) -> Result<&RunBlocks<'w>> {
        Ok(&self.opened()?.blocks)
    }

    fn filters(&self) -> Result<&FilterPieces<'w>> {
        Ok(&self.opened()?.filters)
    }
}

impl ReadView for Writer {
    fn context(&self) -> &SharedContext {
        &self.store.context
    }

    fn documents(&self) -> u64 {
        self.state.documents
    }

    fn flushed_below(&self) -> u64 {
        self.state.flushed_below
    }

    fn probe_until(
        &self,
        table: PostingTable,
        ranges: &[CodeRange],
        visit: &mut Visit<'_>,
        is_enough: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<()> {
        self.buffer.borrow_mut().probe(ranges, visit)?;
        self.memtable.probe(ranges, visit)?;
        if is_enough()? {
            return Ok(());
        }
        WriterRuns::new(self, table).probe(&self.runs, ranges, visit, is_enough)
    }

    fn sweep(
        &self,
        table: PostingTable,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<()> {
        let goes_on = self.buffer.borrow_mut().sweep(lane, wanted, visit)?
            && self.memtable.sweep(lane, wanted, visit)?;
        if !goes_on || self.runs.current.is_empty() {
            return Ok(());
        }
        WriterRuns::new(self, table).sweep(&self.runs, lane, wanted, visit)
    }

    fn payload_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        if self.is_deleted(id) {
            return visit(None);
        }
        self.store.context.counters.count.payloads_read.add(1);
        if self.pending.covers(id) {
            return visit(self.pending.payload(id));
        }
        let table = self.write()?.open_table(PAYLOADS).engine()?;
        let row = table.get(id).engine()?;
        visit(row.as_ref().map(|row| row.value()))
    }

    fn set_row(&self, id: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        if self.is_deleted(id) {
            return visit(None);
        }
        if self.pending.covers(id) {
            return visit(self.pending.set(id));
        }
        let table = self.write()?.open_table(SETS).engine()?;
        visit_set(&table, id, visit)
    }

    fn document_rows(&self, ids: &[u64], visit: &mut VisitRows<'_>) -> Result<()> {
        for ids in ids.chunk_by(|a, b| self.pending.covers(*a) == self.pending.covers(*b)) {
            if self.pending.covers(*at(ids, 0)?) {
                for &id in ids {
                    visit(id, self.pending.document(id))?;
                }
                continue;
            }
            let table = self.write()?.open_table(DOCUMENTS).engine()?;
            visit_rows(&table, ids, &|id| self.is_deleted(id), visit)?;
        }
        Ok(())
    }

    fn all_document_rows(&self, visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
        let table = self.write()?.open_table(DOCUMENTS).engine()?;
        for entry in table.iter().engine()? {
            let (id, row) = entry.engine()?;
            if !self.is_deleted(id.value()) {
                visit(id.value(), row.value())?;
            }
        }
        for (id, row) in self.pending.documents() {
            visit(id, row)?;
        }
        Ok(())
    }

    fn equal_row(&self, chunk: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        let table = self.write()?.open_table(EQUAL).engine()?;
        let row = ReadableTable::get(&table, chunk).engine()?;
        visit(row.as_ref().map(|row| row.value()))
    }

    fn is_deleted(&self, id: u64) -> bool {
        self.deleted.set.contains(id)
    }
}
