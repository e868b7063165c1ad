//! The file of a store whose postings are replaced: read by the old schema, written by the new one,
//! in one commit.

use std::path::Path;

use crate::build::bulk_store::{whole_run, write_whole_lane};
use crate::engine::file_size;
use crate::engine::{
    BANDS, Contained, DEAD, DOCUMENTS, FILTERS, KEYS, LANES, META, PERMUTED, RUNS, SIGNATURES,
    contained, verify_pages,
};
use crate::error::{Error, Result};
use crate::format::{LaneRow, LaneSummary, Posting, SignatureRow, State, encode_run, header};
use crate::options::StoreOptions;
use crate::schema::{Rebanding, Schema};
use crate::state::OpenStore;
use crate::state::document_codes;
use crate::state::{Committed, Core, may_write};

/// A store that nobody else has open. Dropped before its commit, it is as it was.
pub(crate) struct RebandStore {
    /// Once it has begun.
    write: Option<Contained<redb::WriteTransaction>>,
    // after the transaction, which must end before its file is closed
    store: OpenStore,
    committed: Committed,
    /// By the new schema.
    core: Core,
    /// Live documents with a key, once all have been read.
    keys: u64,
}

impl RebandStore {
    /// Opens the store, its pages verified: freeing what damaged ones tell of would do more damage.
    pub(crate) fn open(path: &Path, rebanding: &Rebanding, options: &StoreOptions) -> Result<Self> {
        options.validate()?;
        if !may_write(path, options)? {
            return Err(Error::ReadOnly);
        }
        verify_pages(path, options)?;
        let store = crate::state::open(path, options)?;
        // After a crash it is found out here only.
        if !store.writable {
            return Err(Error::ReadOnly);
        }
        let schema = store.core.schema.rebanded(rebanding)?;
        let core = Core::new(path.into(), schema, store.core.options.clone())?;
        let committed = Committed::clone(&*store.publication.latest()?);
        Ok(Self {
            write: None,
            store,
            committed,
            core,
            keys: 0,
        })
    }

    /// The new schema.
    pub(crate) fn schema(&self) -> &Schema {
        &self.core.schema
    }

    /// Live documents.
    pub(crate) fn documents(&self) -> u64 {
        self.committed.state.documents
    }

    /// Whether the new schema files documents as the old one does.
    pub(crate) fn keeps_lanes(&self) -> bool {
        self.core.lanes == self.store.core.lanes
    }

    /// What the file takes on the disk.
    pub(crate) fn size_bytes(&self) -> Result<u64> {
        Ok(file_size(&self.core.path, &self.core.options)?.1)
    }

    /// Calls `take` with each live document, ascending by id: its code, or none, in each new lane.
    pub(crate) fn each_document(
        &mut self,
        mut take: impl FnMut(u64, &[Option<u64>]) -> Result<()>,
    ) -> Result<()> {
        let (state, dead) = (&self.committed.state, &self.committed.dead);
        let (mut codes, mut row) = (Vec::new(), Vec::new());
        let (mut documents, mut keys) = (0_u64, 0);
        self.store.core.guarded(|| {
            let signatures = self.store.engine.begin_read()?.open_table(SIGNATURES)?;
            for entry in signatures.range(..state.next_id)? {
                let (id, signature) = entry?;
                let id = id.value();
                if dead.contains(id) {
                    continue;
                }
                let signature = SignatureRow::decode(id, signature.value(), self.core.shape())?;
                let key_code = signature.key_code();
                let signature = signature.to_signature(self.core.recipe);
                document_codes(&self.core, key_code, &signature, &mut codes, &mut row)?;
                documents += 1;
                keys += u64::from(key_code.is_some());
                take(id, &row)?;
            }
            Ok(())
        })?;
        if documents != state.documents {
            let detail = format!(
                "found rows of {documents} live documents, expected {} (invariant 1)",
                state.documents
            );
            return Err(Error::corrupt("table signatures", detail));
        }
        self.keys = keys;
        Ok(())
    }

    /// Begins the transaction. If lanes change, everything that belongs to the old ones goes.
    pub(crate) fn begin(&mut self) -> Result<()> {
        let write = self.store.core.guarded(|| {
            let mut write = self.store.engine.begin_write()?;
            write.set_quick_repair(self.core.options.quick_repair);
            Ok(Contained::new(write))
        })?;
        self.write = Some(write);
        // Rather now than when all the work is done.
        let mut state = self.committed.state;
        state.next_commit()?;
        if self.keeps_lanes() {
            return Ok(());
        }
        state.take_run_number()?;
        self.in_tables(|write| {
            self.remove_dead(write)?;
            write.delete_table(DEAD)?;
            write.open_table(DEAD)?;
            for blocks in [KEYS, BANDS, PERMUTED] {
                write.delete_table(blocks)?;
                write.open_table(blocks)?;
            }
            write.delete_table(RUNS)?;
            write.open_table(RUNS)?;
            write.delete_table(FILTERS)?;
            write.open_table(FILTERS)?;
            write.delete_table(LANES)?;
            let mut lanes = write.open_table(LANES)?;
            for (role, lane) in self.core.lanes.roles().zip(0u16..) {
                lanes.insert(lane, LaneRow::of(role).encode(lane)?.as_slice())?;
            }
            Ok(())
        })
    }

    /// Rows of documents that are marked dead, where there are any left.
    fn remove_dead(&self, write: &redb::WriteTransaction) -> Result<()> {
        let mut documents = write.open_table(DOCUMENTS)?;
        let mut signatures = write.open_table(SIGNATURES)?;
        for id in self.committed.dead.ids() {
            documents.remove(id)?;
            signatures.remove(id)?;
        }
        Ok(())
    }

    fn in_tables<T>(&self, run: impl FnOnce(&redb::WriteTransaction) -> Result<T>) -> Result<T> {
        let ended = || Error::Closed {
            reason: "the transaction has not begun, or has ended".into(),
        };
        let write = self.write.as_ref().ok_or_else(ended)?.get()?;
        self.store.core.guarded(|| run(write))
    }

    /// Writes a lane of the one new run: postings in ascending order.
    pub(crate) fn write_lane(
        &self,
        lane: u16,
        postings: impl Iterator<Item = Result<Posting>>,
    ) -> Result<LaneSummary> {
        let run = self.committed.state.next_run;
        self.in_tables(|write| {
            write_whole_lane(&self.core, write, (run, lane), self.keys, postings)
        })
    }

    /// Commits everything and closes the file; `lanes` describes what was written, if lanes change.
    /// What the file takes on the disk.
    pub(crate) fn commit(mut self, lanes: Option<Vec<LaneSummary>>) -> Result<u64> {
        let old = self.committed.state;
        let mut state = State {
            commit: old.next_commit()?,
            ..old
        };
        let mut descriptor = None;
        if let Some(lanes) = lanes {
            state.sealed_below = old.next_id;
            state.unsealed_documents = 0;
            state.dead_documents = 0;
            let moved = old.postings_moved / u64::from(self.store.core.lanes.count());
            state.postings_moved = moved.saturating_mul(self.core.lanes.count().into());
            descriptor = whole_run(&self.core, old.next_run, &state, lanes);
        }
        if descriptor.is_some() {
            state.take_run_number()?;
        }
        self.in_tables(|write| {
            if let Some(descriptor) = &descriptor {
                let row = encode_run(descriptor)?;
                let mut runs = write.open_table(RUNS)?;
                runs.insert(descriptor.run, row.as_slice())?;
            }
            let mut meta = write.open_table(META)?;
            let schema = header::encode_meta(header::SCHEMA, &self.core.schema)?;
            meta.insert(header::SCHEMA, schema.as_slice())?;
            let state = header::encode_meta(header::STATE, &state)?;
            meta.insert(header::STATE, state.as_slice())?;
            Ok(())
        })?;
        let ended = || Error::corrupt("the transaction", "it has ended");
        let write = self.write.take().ok_or_else(ended)?;
        contained(|| Ok(write.into_inner()?.commit()?))?;
        let (path, options) = (self.core.path.clone(), self.core.options.clone());
        self.store.engine.close()?;
        Ok(file_size(&path, &options)?.1)
    }
}
