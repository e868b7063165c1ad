//! The file of a store whose postings are replaced in one commit: it is read by the old schema and
//! written by the new one.

use std::fmt;
use std::path::Path;

use crate::build::bulk_store::{whole_run, write_run_and_state, write_whole_lane};
use crate::build::link_clusters::relinked;
use crate::clusters::cluster_bounds;
use crate::engine::{
    BANDS, DEAD, DOCUMENTS, EQUAL, EngineResult, FILTERS, KEYS, Key, LANES, PERMUTED, PanicSafe,
    RUNS, Table, TableDefinition, WriteTransaction, catch_engine_panic, file_size, verify_pages,
};
use crate::error::{Error, Result};
use crate::format::{DocumentRow, LaneRow, LaneSummary, Posting, State};
use crate::invariant::{OrBug, invariant};
use crate::options::StoreOptions;
use crate::read::SnapshotView;
use crate::state::OpenStore;
use crate::state::document_codes;
use crate::state::{SharedContext, Version, may_write, write_schema};
use crate::types::{Phase, Record, Watch};
use crate::write::{DocumentTables, EqualCollector, SetWriter};
use resemblance_sketch::lanes::LaneCode;
use resemblance_sketch::schema::{Rebanding, Schema};

/// The parameter that errors about the source of exact sets name.
const SETS_FROM: &str = "sets_from";

/// Number of documents that the error about a source names.
const NAMED_DOCUMENTS: usize = 10;

/// A store that no other handle has open. If it is dropped before its commit, it does not change.
pub(super) struct RebandStore {
    /// Once it has begun.
    write: Option<PanicSafe<WriteTransaction>>,
    // after the transaction, which must end before its file is closed
    store: OpenStore,
    version: Version,
    /// The shared context of the new schema.
    context: SharedContext,
    /// Live documents with a key, once all have been read.
    keys: u64,
}

impl RebandStore {
    /// Opens the store, its pages verified: freeing the pages that damaged ones refer to would do
    /// more damage.
    pub(crate) fn open(
        path: &Path,
        rebanding: &Rebanding,
        options: &StoreOptions,
        watch: &mut Watch<'_>,
    ) -> Result<Self> {
        options.validate()?;
        let options = &options.alone();
        if !may_write(path, options)? {
            return Err(Error::ReadOnly);
        }
        verify_pages(path, &options.file_options(), |done, total| {
            watch.report(Phase::VerifyingPages, done, total)
        })?;
        let store = crate::state::open(path, &options.written_at_once())?;
        // After a crash it is found out here only.
        if !store.writable {
            return Err(Error::ReadOnly);
        }
        let schema = store.context.schema.rebanded(rebanding)?;
        let (path, options) = (&store.context.path, &store.context.options);
        let context = SharedContext::new(path.clone(), schema, options.clone())?;
        let version = Version::clone(&*store.versions.latest()?);
        Ok(Self {
            write: None,
            store,
            version,
            context,
            keys: 0,
        })
    }

    /// Returns the new schema.
    pub(crate) fn schema(&self) -> &Schema {
        &self.context.schema
    }

    /// Returns the number of live documents.
    pub(crate) fn documents(&self) -> u64 {
        self.version.state.documents
    }

    /// Returns whether the new schema indexes documents as the old one does. A store that gets sets
    /// is indexed again, so that only live documents need one.
    pub(super) fn keeps_lanes(&self) -> bool {
        self.context.lanes == self.store.context.lanes && !self.gets_sets()
    }

    /// Returns whether the store gets the table of exact sets.
    fn gets_sets(&self) -> bool {
        self.context.schema.has_sets() && !self.store.context.schema.has_sets()
    }

    /// Writes the exact set of each live document: that of the document in `source` with the same
    /// key and the same signature. The transaction must have begun.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] names documents for which the source has none.
    pub(super) fn write_sets(
        &self,
        source: Option<&SnapshotView>,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        let Some(source) = self.checked_source(source)? else {
            return Ok(());
        };
        let (mut done, mut unlike, mut named) = (0, 0_u64, Vec::new());
        self.in_tables(|write| {
            let mut sets = SetWriter::open(write)?;
            self.each_row(&mut |id, row| {
                watch.step(Phase::ReadingDocuments, done, self.documents())?;
                done += 1;
                let signature = row.to_signature(self.context.recipe);
                let found = row
                    .head
                    .key
                    .map(|key| source.view().get(key))
                    .transpose()?
                    .flatten();
                let is_same = |found: &Record| found.signature.clone().with_set(None) == signature;
                if let Some(found) = found.filter(is_same) {
                    let set = self.context.set_row(id, &found.signature)?;
                    let set = set.or_bug("the exact set of a document")?;
                    return sets.push(id, &set);
                }
                unlike += 1;
                if named.len() < NAMED_DOCUMENTS {
                    let key = row.head.key.map(String::from_utf8_lossy);
                    named.push(
                        key.map_or_else(|| format!("document {id}, without a key"), Into::into),
                    );
                }
                Ok(())
            })?;
            sets.finish()
        })?;
        if unlike == 0 {
            return Ok(());
        }
        let (documents, named) = (self.documents(), named.join(", "));
        let found = format!("no equal document for {unlike} of {documents}: {named}");
        let expected = "a document with the key and the signature of each document of the store: \
                        add their texts, or remove them from the store first";
        Err(Error::invalid(SETS_FROM, found, expected))
    }

    /// Returns the source of the sets, if the store gets some.
    fn checked_source<'s>(
        &self,
        source: Option<&'s SnapshotView>,
    ) -> Result<Option<&'s SnapshotView>> {
        let refuse = |found: &dyn fmt::Display, expected: &str| {
            Err(Error::invalid(SETS_FROM, found, expected))
        };
        let source = match (source, self.gets_sets()) {
            (None, false) => return Ok(None),
            (None, true) => {
                return refuse(&"none", "a store that has the sets of all documents");
            }
            (Some(_), false) => return refuse(&"a store", "none: no sets of features are added"),
            (Some(source), true) => source,
        };
        let schema = self.schema();
        if let Some(difference) = schema.recipe_difference(&source.context().schema) {
            let part = difference.part;
            let found = format_args!("a store with {part}: {}", difference.found);
            return refuse(&found, &format!("{part}: {}", difference.expected));
        }
        match source.context().schema.recipe_fingerprint() == schema.recipe_fingerprint() {
            true => Ok(Some(source)),
            false => refuse(&"a store with other weights", "the weights of this store"),
        }
    }

    /// Returns the bytes of the file on disk.
    pub(crate) fn size_bytes(&self) -> Result<u64> {
        Ok(file_size(&self.context.path, &self.context.options.file_options())?.1)
    }

    /// Calls `take` with each live document, ascending by id, and its codes in the new lanes.
    pub(super) fn each_document(
        &mut self,
        mut take: impl FnMut(u64, &[LaneCode]) -> Result<()>,
    ) -> Result<()> {
        let (mut lanes, mut keys) = (Vec::new(), 0);
        self.each_row(&mut |id, row| {
            let key_code = row.head.key_code();
            let signature = row.to_signature(self.context.recipe);
            document_codes(&self.context, key_code, &signature, &mut lanes)?;
            keys += u64::from(key_code.is_some());
            take(id, &lanes)
        })?;
        self.keys = keys;
        Ok(())
    }

    /// Calls `visit` with the row of each live document, ascending by id.
    fn each_row(&self, visit: &mut dyn FnMut(u64, &DocumentRow<'_>) -> Result<()>) -> Result<()> {
        let (state, deleted) = (&self.version.state, &self.version.deleted);
        let mut documents = 0_u64;
        self.store.context.run_checked(|| {
            let documents_table = self
                .store
                .engine
                .begin_read()?
                .open_table(DOCUMENTS)
                .engine()?;
            for entry in documents_table.range(..state.next_id).engine()? {
                let (key, row) = entry.engine()?;
                let id = key.value();
                if deleted.contains(id) {
                    continue;
                }
                documents += 1;
                visit(
                    id,
                    &DocumentRow::decode(id, row.value(), self.context.shape())?,
                )?;
            }
            Ok(())
        })?;
        if documents != state.documents {
            let detail = format!(
                "found rows of {documents} live documents, expected {} (invariant 1)",
                state.documents
            );
            return Err(Error::corrupt("table documents", detail));
        }
        Ok(())
    }

    /// Begins the transaction. If lanes change, removes everything that belongs to the old ones.
    pub(crate) fn begin(&mut self) -> Result<()> {
        let context = &self.store.context;
        let write = context.run_checked(|| self.store.begin_write())?;
        self.write = Some(PanicSafe::new(write));
        // Rather now than when all the work is done.
        let mut state = self.version.state;
        state.next_commit()?;
        if self.keeps_lanes() {
            return Ok(());
        }
        state.take_run_number()?;
        self.in_tables(|write| {
            self.remove_deleted(write)?;
            for rows in [DEAD, EQUAL] {
                emptied(write, rows)?;
            }
            for blocks in [KEYS, BANDS, PERMUTED] {
                emptied(write, blocks)?;
            }
            emptied(write, RUNS)?;
            emptied(write, FILTERS)?;
            let mut lanes = emptied(write, LANES)?;
            for (role, lane) in self.context.lanes.roles().zip(0u16..) {
                lanes
                    .insert(lane, LaneRow::from_role(role).encode(lane)?.as_slice())
                    .engine()?;
            }
            Ok(())
        })
    }

    /// Removes the rows of deleted documents, if any are left.
    fn remove_deleted(&self, write: &WriteTransaction) -> Result<()> {
        // By the old schema: a document that was removed gets no set.
        let mut tables = DocumentTables::open(write, &self.store.context)?;
        for id in self.version.deleted.ids() {
            tables.remove(id)?;
        }
        Ok(())
    }

    fn in_tables<T>(&self, run: impl FnOnce(&WriteTransaction) -> Result<T>) -> Result<T> {
        let begun = self.write.as_ref().or_bug("a transaction that has begun")?;
        let write = begun.get()?;
        self.store.context.run_checked(|| run(write))
    }

    /// Writes a lane of the one new run: postings in ascending order.
    pub(crate) fn write_lane(
        &self,
        lane: u16,
        postings: impl Iterator<Item = Result<Posting>>,
        equal: &mut EqualCollector,
    ) -> Result<LaneSummary> {
        let run = self.version.state.next_run;
        let postings = equal.collect(lane, postings);
        self.in_tables(|write| {
            let (context, documents) = (&self.context, self.documents());
            write_whole_lane(context, write, run, lane, documents, self.keys, postings)
        })
    }

    /// Returns what collects equal documents from the lanes.
    pub(crate) fn equal_collector(&self) -> EqualCollector {
        EqualCollector::new(&self.context.lanes)
    }

    /// Records which documents have equal signatures. All lanes must have been written.
    pub(crate) fn note_equal(&self, equal: EqualCollector) -> Result<()> {
        self.in_tables(|write| equal.write(&self.context, write))
    }

    /// Commits everything and closes the file; `lanes` describes the written lanes, if lanes
    /// change. Returns the bytes of the file on disk.
    pub(crate) fn commit(
        mut self,
        lanes: Option<Vec<LaneSummary>>,
        watch: &mut Watch<'_>,
    ) -> Result<u64> {
        let old = self.version.state;
        let mut state = State {
            commit: old.next_commit()?,
            ..old
        };
        let (mut descriptor, is_rewritten) = (None, lanes.is_some());
        if let Some(lanes) = lanes {
            let (found, count) = (lanes.len(), self.context.lanes.count());
            invariant!(
                found == usize::from(count),
                "wrote {found} of {count} lanes"
            );
            let keys = lanes.first().map_or(0, |lane| lane.postings);
            invariant!(keys == self.keys, "wrote {keys} of {} keys", self.keys);
            state.flushed_below = old.next_id;
            state.unflushed_documents = 0;
            state.deleted_documents = 0;
            let moved = old.postings_moved / u64::from(self.store.context.lanes.count());
            state.postings_moved = moved.saturating_mul(self.context.lanes.count().into());
            descriptor = whole_run(&self.context, old.next_run, &state, lanes);
        }
        if descriptor.is_some() {
            state.take_run_number()?;
        }
        self.in_tables(|write| {
            write_schema(write, &self.context)?;
            write_run_and_state(write, descriptor.as_ref(), &state)
        })?;
        let write = self.write.take().or_bug("the transaction has ended")?;
        let mut write = write.into_inner()?;
        let (path, options) = (self.context.path.clone(), self.context.options.clone());
        let mut store = self.store;
        let (old, new) = (&store.context.schema, &self.context.schema);
        let bounds = cluster_bounds(new)?;
        if bounds.is_some() && (is_rewritten || bounds != cluster_bounds(old)?) {
            let mut version = Version {
                state,
                ..self.version
            };
            if is_rewritten {
                version = Version::of_one_run(state, descriptor);
            }
            store.context = self.context;
            (store, write) = relinked(store, write, &version, watch)?;
        }
        catch_engine_panic(|| write.commit().engine())?;
        store.engine.close()?;
        Ok(file_size(&path, &options.file_options())?.1)
    }
}

/// Drops the rows of a table, and returns it.
fn emptied<'w, K: Key + 'static>(
    write: &'w WriteTransaction,
    table: TableDefinition<'static, K, &'static [u8]>,
) -> Result<Table<'w, K, &'static [u8]>> {
    write.delete_table(table).engine()?;
    write.open_table(table).engine()
}
