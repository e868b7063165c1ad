//! The file of an offline build: rows as documents arrive, one run at the end, one commit.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::clusters::begin_feed_after;
use crate::engine::{
    DOCUMENTS, EngineResult, META, PAYLOADS, RUNS, ReadableTable, ReadableTableMetadata, RowTable,
    SyncAhead, TableHandle, WriteTransaction, catch_engine_panic, commit_without_sync,
};
use crate::error::{Error, Result};
use crate::format::{
    LaneSummary, Posting, RowHead, RunDescriptor, State, encode_run, header, no_row,
};
use crate::index::{FilterPlan, whole_level, write_lane};
use crate::invariant::{OrBug, invariant};
use crate::options::StoreOptions;
use crate::read::PostingTable;
use crate::state::OpenStore;
use crate::state::SharedContext;
use crate::state::document_codes;
use crate::threads::spawn;
use crate::types::{Document, DocumentId};
use crate::write::{
    DocumentRows, DocumentTables, EqualCollector, append_rows, append_sets, filter_shape,
    run_tables,
};
use resemblance_sketch::lanes::{LaneCode, hash_key};
use resemblance_sketch::schema::Schema;
use resemblance_sketch::sketch::Signature;

/// The size of the rows gathered before they are written: many at a time fill whole pages.
const FLUSH_BYTES: usize = 4 << 20;

/// Bytes of rows after which a commit lets the engine compute the checksums of their pages while it has them.
const COMMIT_BYTES: usize = 4 * FLUSH_BYTES;

/// The run of an offline build, the first that the store has.
const RUN: u32 = 0;

/// Rows of documents with ascending ids.
type RowBatch = Vec<(u64, DocumentRows)>;

/// A store that no other handle has open. Only its last commit is durable, because the file has a
/// temporary name until then.
pub(super) struct BulkStore {
    /// `None` once committed.
    write: Option<Arc<WriteTransaction>>,
    sync_ahead: Option<SyncAhead>,
    // after the transaction, which must end before its file is closed
    store: Arc<OpenStore>,
    /// Rows that are not in the tables yet, of the documents up to `next_id`.
    rows: RowBatch,
    rows_bytes: usize,
    /// Bytes of rows in the tables that no commit has.
    uncommitted_bytes: usize,
    /// The rows before, which are being written to the tables while more documents arrive.
    flushing: Option<JoinHandle<Result<RowBatch>>>,
    next_id: u64,
    /// The number of lower ids that were skipped.
    unused: u64,
    removed: u64,
    /// Documents with a key, those removed since included.
    keys: u64,
    /// Documents with a payload, without those removed since.
    payloads: u64,
}

impl BulkStore {
    /// Creates the file; an existing one is an error and is not changed.
    pub(crate) fn create(path: &Path, schema: Schema, options: &StoreOptions) -> Result<Self> {
        let store = crate::state::create_in(path, path, schema, &options.written_at_once())?;
        let write = store.context.run_checked(|| store.begin_write())?;
        Ok(Self {
            write: Some(Arc::new(write)),
            sync_ahead: SyncAhead::start(path, &options.file_options())?,
            store: Arc::new(store),
            rows: Vec::new(),
            rows_bytes: 0,
            uncommitted_bytes: 0,
            flushing: None,
            next_id: 0,
            unused: 0,
            removed: 0,
            keys: 0,
            payloads: 0,
        })
    }

    /// Returns the id of the next document.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Returns the number of documents that were appended, those removed since included.
    pub(crate) fn inserted(&self) -> u64 {
        self.next_id - self.unused
    }

    /// Leaves ids unused, so that the next document gets this one, if it has not been passed.
    pub(crate) fn skip_to(&mut self, id: u64) {
        self.unused += id.saturating_sub(self.next_id);
        self.next_id = self.next_id.max(id);
    }

    /// Begins the feed of clusters beyond a position, if the store keeps clusters.
    pub(crate) fn begin_feed_after(&mut self, position: u64) -> Result<()> {
        match self.store.context.schema.clusters() {
            Some(_) => begin_feed_after(self.write()?, position),
            None => Ok(()),
        }
    }

    /// Checks that a document fits the schema and the limits of the store.
    pub(crate) fn validate(&self, document: &Document<'_>, signature: &Signature) -> Result<()> {
        document.validate()?;
        self.store.context.check_signature(signature)
    }

    /// Stores the rows of a valid document, and gives its codes.
    pub(crate) fn append(
        &mut self,
        document: &Document<'_>,
        signature: &Signature,
        row: &mut Vec<LaneCode>,
    ) -> Result<DocumentId> {
        let id = self.next_id;
        let key_code = document.key().map(hash_key);
        document_codes(&self.store.context, key_code, signature, row)?;
        let rows = DocumentRows::encode(&self.store.context, id, document, signature)?;
        self.rows_bytes += rows.size_bytes();
        self.payloads += u64::from(rows.payload.is_some());
        self.rows.push((id, rows));
        self.next_id += 1;
        self.keys += u64::from(key_code.is_some());
        if self.rows_bytes >= FLUSH_BYTES {
            self.begin_flush()?;
        }
        Ok(DocumentId::new(id))
    }

    /// Writes the rows that are not in the tables yet.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.begin_flush()?;
        self.wait()?;
        Ok(())
    }

    /// Begins to write the rows that are not in the tables yet, after those before.
    fn begin_flush(&mut self) -> Result<()> {
        let written = self.wait()?;
        if self.rows.is_empty() {
            return Ok(());
        }
        if self.uncommitted_bytes >= COMMIT_BYTES {
            self.commit_written()?;
        }
        let rows = std::mem::replace(&mut self.rows, written);
        self.uncommitted_bytes += std::mem::take(&mut self.rows_bytes);
        let (store, write) = (Arc::clone(&self.store), Arc::clone(self.write()?));
        self.flushing = Some(spawn("rows", move || {
            let result = store.context.run_checked(|| {
                let mut documents = rows.iter().map(|(id, rows)| (*id, &*rows.document));
                append_rows(&write, DOCUMENTS, &mut documents)?;
                let payloads = rows.iter();
                let mut payloads =
                    payloads.filter_map(|(id, rows)| Some((*id, rows.payload.as_deref()?)));
                append_rows(&write, PAYLOADS, &mut payloads)?;
                let sets = rows.iter();
                let mut sets = sets.filter_map(|(id, rows)| Some((*id, rows.set.as_deref()?)));
                let found = append_sets(&write, &mut sets)?;
                let has_sets = store.context.schema.has_sets();
                let expected = if has_sets { rows.len() } else { 0 };
                invariant!(found == expected, "{found} sets, expected {expected}");
                Ok(())
            });
            result.map(|()| rows)
        })?);
        Ok(())
    }

    /// Waits until the rows before are in the tables; room for more.
    fn wait(&mut self) -> Result<RowBatch> {
        if let Err(error) = self.store.context.health.check_home() {
            // The thread continues in the process that started it.
            std::mem::forget(self.flushing.take());
            return Err(error);
        }
        let Some(flushing) = self.flushing.take() else {
            return Ok(Vec::new());
        };
        let mut rows = flushing.join().ok().or_bug("a writing thread panicked")??;
        rows.clear();
        Ok(rows)
    }

    /// Commits the rows in the tables, but not durably, and has the system begin to write them to
    /// the disk.
    pub(crate) fn commit_written(&mut self) -> Result<()> {
        let write = self.take_write()?;
        let store = &self.store;
        let next = store.context.run_checked(|| {
            commit_without_sync(write)?;
            store.begin_write()
        })?;
        self.write = Some(Arc::new(next));
        self.uncommitted_bytes = 0;
        if let Some(sync_ahead) = &self.sync_ahead {
            sync_ahead.ask();
        }
        Ok(())
    }

    fn take_write(&mut self) -> Result<WriteTransaction> {
        let write = self.write.take().and_then(Arc::into_inner);
        write.or_bug("a thread still has the transaction of the build")
    }

    fn write(&self) -> Result<&Arc<WriteTransaction>> {
        self.write.as_ref().or_bug("the transaction of a build")
    }

    fn in_tables<T>(&self, run: impl FnOnce(&WriteTransaction) -> Result<T>) -> Result<T> {
        let write = self.write()?;
        self.store.context.run_checked(|| run(write))
    }

    /// Copies rows of another file into a table.
    pub(super) fn copy_rows(
        &self,
        table: RowTable,
        rows: &mut dyn Iterator<Item = (u64, Vec<u8>)>,
    ) -> Result<()> {
        self.in_tables(|write| {
            let mut table = write.open_table(table).engine()?;
            for (key, row) in rows {
                table.insert(key, row.as_slice()).engine()?;
            }
            Ok(())
        })
    }

    /// Returns the key of a document whose row is in the table, `None` if it has no key.
    pub(crate) fn key(&self, id: u64) -> Result<Option<Vec<u8>>> {
        self.in_tables(|write| {
            let table = write.open_table(DOCUMENTS).engine()?;
            match ReadableTable::get(&table, id).engine()? {
                Some(row) => {
                    let head = RowHead::decode(id, row.value())?;
                    Ok(head.key.map(<[u8]>::to_vec))
                }
                None => Err(no_row(DOCUMENTS.name(), id, 1)),
            }
        })
    }

    /// Takes a document's rows out. None of its postings may be written.
    pub(crate) fn remove(&mut self, id: u64) -> Result<()> {
        let had_payload = self.in_tables(|write| {
            let removed = DocumentTables::open(write, &self.store.context)?.remove(id)?;
            removed.ok_or_else(|| no_row(DOCUMENTS.name(), id, 1))
        })?;
        let payloads = self.payloads.checked_sub(u64::from(had_payload));
        self.payloads = payloads.or_bug("a count of payloads for each of their rows")?;
        self.removed += 1;
        Ok(())
    }

    /// Writes a lane of the one run: postings in ascending order.
    pub(crate) fn write_lane(
        &self,
        lane: u16,
        postings: impl Iterator<Item = Result<Posting>>,
        equal: &mut EqualCollector,
    ) -> Result<LaneSummary> {
        let context = &self.store.context;
        let postings = equal.collect(lane, postings);
        let documents = self.inserted() - self.removed;
        self.in_tables(|write| {
            write_whole_lane(context, write, RUN, lane, documents, self.keys, postings)
        })
    }

    /// Returns what collects equal documents from the lanes.
    pub(crate) fn equal_collector(&self) -> EqualCollector {
        EqualCollector::new(&self.store.context.lanes)
    }

    /// Records which documents have equal signatures. All lanes must have been written, and the
    /// rows of documents that are left out must have been removed.
    pub(crate) fn note_equal(&self, equal: EqualCollector) -> Result<()> {
        self.in_tables(|write| equal.write(&self.store.context, write))
    }

    /// Returns the options with which documents are linked to clusters, if the store keeps any.
    pub(super) fn clusters_options(&self) -> Option<StoreOptions> {
        let context = &self.store.context;
        let keeps = context.schema.clusters().is_some();
        keeps.then(|| context.options.clone())
    }

    /// Commits everything and closes the file; `lanes` describes the postings that were written.
    /// Returns the number of documents in the store, and true if it has a run.
    pub(crate) fn commit(mut self, lanes: Vec<LaneSummary>) -> Result<(u64, bool)> {
        self.flush()?;
        let inserted = self.inserted();
        let (documents, payloads) = (inserted - self.removed, self.payloads);
        if self.next_id == 0 {
            return self.close().map(|()| (0, false));
        }
        let state = State {
            commit: State::INITIAL.commit + 1,
            next_id: self.next_id,
            documents,
            flushed_below: self.next_id,
            next_run: RUN + 1,
            unflushed_documents: 0,
            postings_moved: inserted
                .saturating_mul(self.store.context.lanes.single_count().into())
                .saturating_add(kept_postings(&self.store.context, &lanes)),
            deleted_documents: 0,
        };
        let descriptor = whole_run(&self.store.context, RUN, &state, lanes);
        let has_run = descriptor.is_some();
        self.in_tables(|write| {
            for (rows, expected) in [(DOCUMENTS, documents), (PAYLOADS, payloads)] {
                let table = rows.name();
                let rows = write.open_table(rows).engine()?.len().engine()?;
                invariant!(
                    rows == expected,
                    "{rows} rows in {table}, expected {expected}"
                );
            }
            write_run_and_state(write, descriptor.as_ref(), &state)
        })?;
        let write = self.take_write()?;
        catch_engine_panic(|| write.commit().engine())?;
        self.close().map(|()| (documents, has_run))
    }

    /// Closes the file, so that it can be opened under another name.
    fn close(mut self) -> Result<()> {
        self.sync_ahead = None;
        let store = Arc::clone(&self.store);
        catch_engine_panic(|| {
            drop(self);
            Ok::<_, Error>(())
        })?;
        let store = Arc::into_inner(store).or_bug("a thread still has the store of the build")?;
        store.close()
    }
}

impl Drop for BulkStore {
    fn drop(&mut self) {
        let _ = self.wait();
        if !self.store.context.health.is_at_home() {
            std::mem::forget(self.write.take());
            if let Some(sync_ahead) = self.sync_ahead.take() {
                sync_ahead.forget();
            }
            return;
        }
        if let Some(write) = self.write.take().and_then(Arc::into_inner) {
            // A full disk can make the engine panic here as well; the file is thrown away.
            let _ = catch_engine_panic(|| write.abort().engine());
        }
    }
}

/// Writes one lane of a run that holds all documents; `keys` is the number that have a key. The
/// postings must be strictly ascending.
pub(super) fn write_whole_lane(
    context: &SharedContext,
    write: &WriteTransaction,
    run: u32,
    lane: u16,
    documents: u64,
    keys: u64,
    postings: impl Iterator<Item = Result<Posting>>,
) -> Result<LaneSummary> {
    let role = context.lanes.roles().nth(lane.into());
    let known = role.map(PostingTable::of);
    let table = known.or_bug_with(|| format!("lane {lane} is not in the schema"))?;
    // Documents without features are few.
    let expected = if lane == 0 { keys } else { documents };
    let shape = filter_shape(context, lane, expected, documents, documents)?;
    let buckets = context.lanes.bucket_bits(lane);
    let filter = shape.map(|shape| FilterPlan { shape, buckets });
    let mut tables = run_tables(write, table)?;
    write_lane(&mut tables, run, lane, filter, postings)
}

/// Returns the run of all documents of a store with this state, `None` if it has no postings.
pub(super) fn whole_run(
    context: &SharedContext,
    run: u32,
    state: &State,
    lanes: Vec<LaneSummary>,
) -> Option<RunDescriptor> {
    let kept = kept_postings(context, &lanes);
    let descriptor = RunDescriptor {
        run,
        level: whole_level(
            &context.options,
            context.lanes.single_count(),
            state.documents,
            kept,
        ),
        first_id: 0,
        last_id: state.next_id.checked_sub(1)?,
        documents: state.documents,
        inputs: Vec::new(),
        kept_up_to: 0,
        rows_from: None,
        lanes,
    };
    (descriptor.postings() > 0).then_some(descriptor)
}

/// Writes the descriptor of the one run, if there is any, and the counters of the store.
pub(super) fn write_run_and_state(
    write: &WriteTransaction,
    run: Option<&RunDescriptor>,
    state: &State,
) -> Result<()> {
    if let Some(run) = run {
        let mut runs = write.open_table(RUNS).engine()?;
        runs.insert(run.run, encode_run(run)?.as_slice()).engine()?;
    }
    let mut meta = write.open_table(META).engine()?;
    let row = header::encode_meta(header::STATE, state)?;
    meta.insert(header::STATE, row.as_slice()).engine()?;
    Ok(())
}

/// Returns the number of postings in the lane of kept hashes.
fn kept_postings(context: &SharedContext, lanes: &[LaneSummary]) -> u64 {
    let lane = context.lanes.kept_lane().map(usize::from);
    let summary = lane.and_then(|lane| lanes.get(lane));
    summary.map_or(0, |summary| summary.postings)
}
