//! `check`: compares the postings that rows require with those that runs hold.
//!
//! The two are compared by sums of hashes of (lane, code, id), so that memory does not grow with
//! the postings: it holds one bit for each document, and one sum for each run and lane.

use std::collections::BTreeMap;
use std::path::Path;

use std::sync::Arc;
use std::time::Duration;

use crate::engine::{
    DEAD, EQUAL, EngineError, EngineResult, META, ReadableTable, ReadableTableMetadata, overlay,
};
use crate::error::{Error, Result};
use crate::format::header::{TOMBSTONE_CHANGES, decode_meta};
use crate::format::{
    ChunkSets, DocumentRow, EqualChunk, LaneSummary, Posting, RunDescriptor, TombstoneChanges,
    decode_payload, decode_set,
};
use crate::index::{ChunkIter, read_lane};
use crate::maintain::check::filters::{FilterCheck, check_pieces};
use crate::maintain::check::kept_clusters::check_clusters;
use crate::maintain::check::pages::{check_bookkeeping, check_pages};
use crate::options::StoreOptions;
use crate::read::PostingTable;
use crate::read::{SnapshotView, visit_rows};
use crate::state;
use crate::state::document_codes;
use crate::state::{Tombstones, may_write};
use crate::types::{CheckReport, Operation, Phase, Watch};
use resemblance_sketch::lanes::{LaneCode, LaneRole};

/// The name of the operation in errors.
const WORK: &str = "the check";

/// Checks all invariants of the store in a file, and every page of it. Writes nothing: where the
/// engine would repair its bookkeeping or recover a file that was not closed, it does so in memory.
pub(crate) fn check_file<'a>(path: &Path, options: &StoreOptions) -> Operation<'a, CheckReport> {
    let (path, options) = (path.to_path_buf(), options.clone());
    Operation::new(WORK, (), move |(), watch| {
        check_pages_and_tables(&path, &options, watch)
    })
}

/// Checks the invariants of the store in a snapshot.
pub(crate) fn check_snapshot(snapshot: &SnapshotView) -> Operation<'_, CheckReport> {
    Operation::new(WORK, (), |(), watch| {
        check_rows_and_postings(snapshot, watch)
    })
}

fn check_pages_and_tables(
    path: &Path,
    options: &StoreOptions,
    watch: &mut Watch<'_>,
) -> Result<CheckReport> {
    options.validate()?;
    let at_once = options.clone().wait(Duration::ZERO);
    let files = match overlay(path, &at_once.file_options(), true) {
        Err(EngineError::Locked { .. }) => return check_beside_writer(path, options, watch),
        files => files?,
    };
    let options = &options.clone().files(files);
    let mut report = CheckReport::default();
    if !check_pages(path, options, &mut report, watch)? {
        return Ok(report);
    }
    let checked = check_tables(path, options, &mut report, watch);
    // Damaged rows, which keep the rest from being read, are in the report by now.
    match checked {
        Err(Error::Corrupt { place, detail }) if !report.is_clean() => {
            let mut last = report.clone();
            last.problems.clear();
            last.add(2, place, detail);
            report.append(last);
        }
        Err(Error::NeedsRecovery { .. }) if !report.is_clean() => {}
        checked => checked?,
    }
    Ok(report)
}

/// Checks the last commit of a store that another process has open for writing.
fn check_beside_writer(
    path: &Path,
    options: &StoreOptions,
    watch: &mut Watch<'_>,
) -> Result<CheckReport> {
    let store = Arc::new(state::open_read_only(path, options)?);
    let checked = check_rows_and_postings(&SnapshotView::open(&store)?, watch)?;
    Ok(CheckReport {
        while_written: true,
        ..checked
    })
}

/// Checks everything of ours. Only a file without damage is opened for writing, in memory.
fn check_tables(
    path: &Path,
    options: &StoreOptions,
    report: &mut CheckReport,
    watch: &mut Watch<'_>,
) -> Result<()> {
    let store = if report.is_clean() {
        // The engine may be unable to repair a file that this release must not write.
        if may_write(path, options)? {
            check_bookkeeping(path, options, report, watch)?;
        }
        state::open(path, options)?
    } else {
        state::open_read_only(path, options)?
    };
    let snapshot = SnapshotView::open(&Arc::new(store))?;
    report.append(check_rows_and_postings(&snapshot, watch)?);
    Ok(())
}

fn check_rows_and_postings(snapshot: &SnapshotView, watch: &mut Watch<'_>) -> Result<CheckReport> {
    let mut check = Check::new(snapshot, watch);
    // Damage that even the engine cannot pass ends the check and this handle, but not the report.
    let all = snapshot.context().run_checked(|| check.all());
    check.report.note(8, all)?;
    Ok(check.report)
}

/// Number of postings, and the sum of their hashes: equal for equal sets in any order.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    postings: u64,
    hashes: u64,
}

impl Sum {
    /// Codes of postings are already random; the mixing combines code and id.
    fn add(&mut self, posting: Posting) {
        self.postings += 1;
        let mixed = (posting.code ^ posting.id.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_mul(0xff51_afd7_ed55_8ccd);
        self.hashes = self.hashes.wrapping_add(mixed ^ (mixed >> 33));
    }

    fn merge(&mut self, other: Self) {
        self.postings += other.postings;
        self.hashes = self.hashes.wrapping_add(other.hashes);
    }
}

/// The sum that a posting belongs to: the index of its run, or `None` for the memtable, and the
/// lane.
type SumKey = (Option<usize>, u16);

struct Check<'a, 'w> {
    snapshot: &'a SnapshotView,
    watch: &'a mut Watch<'w>,
    report: CheckReport,
    /// The readable documents.
    live: Tombstones,
    /// The removed documents whose rows are still there.
    removed: Tombstones,
    expected: BTreeMap<SumKey, Sum>,
    /// Postings to read, those of the key lane twice; and those that have been read.
    postings: u64,
    postings_read: u64,
}

impl<'a, 'w> Check<'a, 'w> {
    fn new(snapshot: &'a SnapshotView, watch: &'a mut Watch<'w>) -> Self {
        let lanes = (0..snapshot.context().lanes.count()).chain([0]);
        let postings = lanes.map(|lane| snapshot.inner.version.lane_postings(lane));
        Self {
            snapshot,
            watch,
            postings: postings.fold(0, u64::saturating_add),
            postings_read: 0,
            report: CheckReport::default(),
            live: Tombstones::default(),
            removed: Tombstones::default(),
            expected: BTreeMap::new(),
        }
    }

    fn all(&mut self) -> Result<()> {
        self.step(2, Self::rows)?;
        self.step(2, Self::sets)?;
        self.step(2, Self::deleted)?;
        self.step(10, Self::equal)?;
        self.step(11, Self::clusters)?;
        self.runs()?;
        self.memtable()?;
        self.step(6, Self::keys)?;
        self.watch
            .report(Phase::CheckingPostings, self.postings, self.postings)
    }

    /// Runs a part of the check, and continues after it even if damage ends it, which counts as a
    /// violated invariant.
    fn step(&mut self, invariant: u8, part: fn(&mut Self) -> Result<()>) -> Result<()> {
        let checked = part(self);
        self.report.note(invariant, checked)
    }

    fn count_posting(&mut self) -> Result<()> {
        // A damaged lane can have more postings than its run records.
        let read = self.postings_read.min(self.postings);
        self.watch
            .step(Phase::CheckingPostings, read, self.postings)?;
        self.postings_read += 1;
        Ok(())
    }

    fn is_live(&self, id: u64) -> bool {
        self.live.contains(id)
    }

    fn is_deleted(&self, id: u64) -> bool {
        self.snapshot.inner.version.deleted.contains(id)
    }

    /// Invariants 1 and 2: rows can be read, and each document that has a payload has its row; what
    /// documents ask for is summed up.
    fn rows(&mut self) -> Result<()> {
        let tables = self.snapshot.inner.tables()?;
        let state = self.snapshot.inner.version.state;
        let mut payloads = ReadableTable::iter(&tables.payloads).engine()?;
        let mut payload = payloads.next().transpose().engine()?;
        let total = tables.documents.len().engine()?;
        for (done, entry) in (0..).zip(ReadableTable::iter(&tables.documents).engine()?) {
            self.watch.step(Phase::CheckingDocuments, done, total)?;
            let (key, document) = entry.engine()?;
            let id = key.value();
            while let Some((orphan, _)) = payload.as_ref().filter(|(found, _)| found.value() < id) {
                self.orphan(orphan.value());
                payload = payloads.next().transpose().engine()?;
            }
            let own = payload.as_ref().filter(|(found, _)| found.value() == id);
            let read = self.row(id, document.value(), own.map(|(_, row)| row.value()));
            self.report.note(2, read)?;
            if own.is_some() {
                payload = payloads.next().transpose().engine()?;
            }
        }
        while let Some((orphan, _)) = payload {
            self.orphan(orphan.value());
            payload = payloads.next().transpose().engine()?;
        }
        if self.report.documents != state.documents {
            let detail = format!(
                "found {}, expected {}",
                self.report.documents, state.documents
            );
            self.report
                .add(1, "the number of readable documents", detail);
        }
        self.watch.report(Phase::CheckingDocuments, total, total)
    }

    /// Records a payload whose document does not exist or has none.
    fn orphan(&mut self, id: u64) {
        let place = format!("table payloads, document {id}");
        let detail = "found a row, but no document that has a payload";
        self.report.add(1, place, detail);
    }

    /// Checks invariants 1 and 2: in an exact store, each row of a document has a readable exact
    /// set.
    fn sets(&mut self) -> Result<()> {
        let tables = self.snapshot.inner.tables()?;
        let Some(sets) = &tables.sets else {
            return Ok(());
        };
        let (mut count, mut last) = (0, None);
        for entry in ReadableTable::iter(sets).engine()? {
            let (first, chunk) = entry.engine()?;
            for entry in ChunkSets::new(first.value(), chunk.value()) {
                let Ok((id, row)) = entry else {
                    self.report.note(2, entry.map(drop))?;
                    break;
                };
                let set = decode_set(id, row, self.snapshot.context().shape());
                self.report.note(2, set.map(drop))?;
                let place = || format!("table sets, document {id}");
                if last >= Some(id) {
                    let detail = "found it behind a document with a higher id";
                    self.report.add(2, place(), detail);
                } else if self.live.contains(id) || self.removed.contains(id) {
                    count += 1;
                } else {
                    let detail = "found a row, but no such document";
                    self.report.add(1, place(), detail);
                }
                last = last.max(Some(id));
            }
        }
        let documents = self.live.len() + self.removed.len();
        if count != documents {
            let detail = format!("found the sets of {count} documents, expected {documents}");
            self.report.add(1, "table sets", detail);
        }
        Ok(())
    }

    fn row(&mut self, id: u64, bytes: &[u8], payload: Option<&[u8]>) -> Result<()> {
        let context = self.snapshot.context();
        let committed = &self.snapshot.inner.version;
        let document = DocumentRow::decode(id, bytes, context.shape())?;
        let signature = document.to_signature(context.recipe);
        let encoding = document.check_encoding(id, bytes, &signature);
        self.report.note(2, encoding)?;
        match payload {
            Some(_) if !document.head.has_payload => self.orphan(id),
            Some(payload) => self.report.note(2, decode_payload(id, payload).map(drop))?,
            None if document.head.has_payload => {
                let place = format!("table payloads, document {id}");
                self.report.add(1, place, "found no row, expected one");
            }
            None => {}
        }
        let key_code = document.head.key_code();
        if self.is_deleted(id) {
            self.removed.insert(id);
            return Ok(());
        }
        if id >= committed.state.next_id {
            let place = format!("table documents, document {id}");
            let detail = format!("found it, expected ids below {}", committed.state.next_id);
            self.report.add(1, place, detail);
            return Ok(());
        }
        self.live.insert(id);
        self.report.documents += 1;
        let mut row = Vec::new();
        document_codes(context, key_code, &signature, &mut row)?;
        // A flushed document with postings is in the range of a run.
        let runs = &committed.runs;
        let run = (id < committed.state.flushed_below)
            .then(|| runs.position_of(id).unwrap_or(runs.current.len()));
        for LaneCode { lane, code } in row {
            let expected = self.expected.entry((run, lane)).or_default();
            expected.add(Posting { code, id });
        }
        Ok(())
    }

    /// Checks invariant 4: the deleted documents are those that this handle knows, their rows exist
    /// until a merge drops them, and the list of changed bitmaps can be read, as writers do.
    fn deleted(&mut self) -> Result<()> {
        let committed = &self.snapshot.inner.version;
        let meta = self.snapshot.inner.tables()?.read.open_table(META);
        if let Some(row) = meta.engine()?.get(TOMBSTONE_CHANGES).engine()? {
            let changes = decode_meta::<TombstoneChanges>(TOMBSTONE_CHANGES, row.value());
            self.report.note(4, changes.map(drop))?;
        }
        let table = self
            .snapshot
            .inner
            .tables()?
            .read
            .open_table(DEAD)
            .engine()?;
        let deleted = Tombstones::read(&table)?;
        let expected = &committed.deleted;
        for id in deleted.ids().filter(|id| !expected.contains(*id)) {
            let place = format!("table dead, document {id}");
            self.report.add(4, place, "found its bit, expected none");
        }
        if deleted.len() != expected.len() {
            let detail = format!("found {} bits, expected {}", deleted.len(), expected.len());
            self.report.add(4, "table dead", detail);
        }
        for id in expected.ids() {
            let found = self.removed.contains(id);
            if found == committed.has_lost_rows(id) {
                let place = format!("table documents, document {id}");
                let detail = format!("it is deleted: found rows {found}, expected {}", !found);
                self.report.add(4, place, detail);
            }
        }
        Ok(())
    }

    /// Checks invariant 10: documents that are noted to be equal are in runs, and have signatures of the
    /// digests noted.
    fn equal(&mut self) -> Result<()> {
        let tables = self.snapshot.inner.tables()?;
        let shape = self.snapshot.context().shape();
        for entry in tables.read.open_table(EQUAL).engine()?.iter().engine()? {
            let (key, row) = entry.engine()?;
            let chunk = key.value();
            let read = EqualChunk::decode(chunk, row.value()).and_then(|row| {
                let members: Vec<(u64, u128)> = row.members(chunk).collect();
                let ids: Vec<u64> = members.iter().map(|(id, _)| *id).collect();
                let mut noted = members.into_iter();
                visit_rows(&tables.documents, &ids, &|_| false, &mut |id, row| {
                    let document = row.map(|row| DocumentRow::decode(id, row, shape));
                    let found = document.transpose()?.map(|row| row.digest());
                    let expected = noted.next().map(|(_, digest)| digest);
                    self.noted(id, found, expected);
                    Ok(())
                })
            });
            self.report.note(10, read)?;
        }
        Ok(())
    }

    /// Checks the recorded digest of a document against that of its signature, which is `None` if
    /// the document does not exist.
    fn noted(&mut self, id: u64, found: Option<u128>, expected: Option<u128>) {
        let state = self.snapshot.inner.version.state;
        let is_right = match found {
            Some(_) => found == expected,
            // A merge has dropped its rows already.
            None => self.is_deleted(id),
        };
        if id >= state.flushed_below || !is_right {
            let place = format!("table equal, document {id}");
            let detail = format!("found digest {expected:032x?}, expected {found:032x?}");
            self.report.add(10, place, detail);
        }
    }

    /// Checks invariant 11.
    fn clusters(&mut self) -> Result<()> {
        check_clusters(self.snapshot, &self.live, &mut self.report, self.watch)
    }

    /// Invariants 3, 4, 5, 7 and 9: the blocks and filters of every run and lane.
    fn runs(&mut self) -> Result<()> {
        let inner = &self.snapshot.inner;
        let runs = &inner.version.runs;
        let mut found = BTreeMap::new();
        let mut blocks = BTreeMap::new();
        for run in runs.descriptors() {
            for (role, lane) in self.snapshot.context().lanes.roles().zip(0u16..) {
                let Some(summary) = run.lane(lane).filter(|lane| lane.postings > 0) else {
                    continue;
                };
                let table = PostingTable::of(role);
                *blocks.entry(table.name()).or_insert(0) += summary.blocks;
                self.report.blocks += summary.blocks;
                let read = self.lane(table, run, summary, &mut found);
                self.report.note(7, read)?;
            }
        }
        for (index, run) in runs.current.iter().enumerate() {
            for lane in 0..self.snapshot.context().lanes.count() {
                let key = (Some(index), lane);
                // A lane without live documents has no sum.
                let sum = found.remove(&key).unwrap_or_default();
                let place = format!("documents of run {}, lane {lane}", run.descriptor.run);
                self.compare(key, sum, place);
            }
        }
        self.block_counts(&blocks)
    }

    /// Reads a lane of a run.
    fn lane(
        &mut self,
        table: PostingTable,
        run: &RunDescriptor,
        summary: &LaneSummary,
        found: &mut BTreeMap<SumKey, Sum>,
    ) -> Result<()> {
        let inner = &self.snapshot.inner;
        let runs = &inner.version.runs;
        let (name, lane) = (table.name(), summary.lane);
        let mut filter = FilterCheck::new(self.snapshot, run, summary);
        // Documents are in no order, but mostly from one run, or from few.
        let mut sums = vec![Sum::default(); runs.current.len()];
        let only = runs
            .position_of(run.first_id)
            .filter(|_| run.inputs.is_empty());
        for posting in ChunkIter::new(read_lane(inner.blocks(table)?, name, run.run, summary)?) {
            let posting = posting?;
            self.count_posting()?;
            self.report.postings += 1;
            let within = (run.first_id..=run.last_id).contains(&posting.id);
            if within && self.is_live(posting.id) {
                let index = only.or_else(|| runs.position_of(posting.id));
                if let Some(sum) = index.and_then(|index| sums.get_mut(index)) {
                    sum.add(posting);
                }
            } else if !within || !self.is_deleted(posting.id) {
                let place = format!("table {name}, run {}, lane {lane}", run.run);
                let detail = format!(
                    "found a posting of document {}, which is neither live nor deleted",
                    posting.id
                );
                self.report.add(4, place, detail);
            }
            let held = filter.holds(posting.code);
            self.report.note(9, held)?;
        }
        for (index, sum) in sums.into_iter().enumerate() {
            let key = (Some(index), lane);
            found.entry(key).or_default().merge(sum);
        }
        Ok(())
    }

    fn block_counts(&mut self, blocks: &BTreeMap<&'static str, u64>) -> Result<()> {
        for table in [
            PostingTable::Keys,
            PostingTable::Bands,
            PostingTable::Permuted,
        ] {
            let found = self.snapshot.inner.blocks(table)?.len().engine()?;
            // No run has postings in a table without an entry.
            let expected = blocks.get(table.name()).copied().unwrap_or(0);
            if found != expected {
                let detail = format!("found {found} blocks, expected {expected}");
                self.report
                    .add(3, format!("table {}", table.name()), detail);
            }
        }
        let pieces = check_pieces(self.snapshot, &mut self.report);
        self.report.note(9, pieces)
    }

    /// Checks invariant 5 for the memtable. Postings of documents removed since may remain there.
    fn memtable(&mut self) -> Result<()> {
        for lane in 0..self.snapshot.context().lanes.count() {
            let mut found = Sum::default();
            for posting in self.snapshot.inner.version.memtable.lane(lane)? {
                self.count_posting()?;
                self.report.postings += 1;
                if self.is_live(posting.id) {
                    found.add(posting);
                }
            }
            self.compare((None, lane), found, format!("memtable, lane {lane}"));
        }
        let unindexed = self.expected.keys().copied().collect::<Vec<_>>();
        for (run, lane) in unindexed {
            let detail = "documents have postings to be found, but no run holds them";
            self.report
                .add(5, format!("runs, place {run:?}, lane {lane}"), detail);
        }
        Ok(())
    }

    fn compare(&mut self, key: SumKey, found: Sum, place: String) {
        // No document asks for a posting that is not in the map.
        let expected = self.expected.remove(&key).unwrap_or_default();
        if found != expected {
            let detail = format!(
                "found {} postings of live documents (sum {:016x}), expected {} (sum {:016x})",
                found.postings, found.hashes, expected.postings, expected.hashes
            );
            self.report.add(5, place, detail);
        }
    }

    /// Checks invariant 6: no key twice. Only documents whose key hashes are equal are compared.
    fn keys(&mut self) -> Result<()> {
        let stream = self
            .snapshot
            .inner
            .lane_stream(PostingTable::of(LaneRole::Key), 0)?;
        let (mut code, mut ids) = (0, Vec::new());
        for posting in stream {
            let posting = posting?;
            self.count_posting()?;
            if posting.code != code {
                self.same_code(&ids)?;
                ids.clear();
            }
            code = posting.code;
            if self.is_live(posting.id) {
                ids.push(posting.id);
            }
        }
        self.same_code(&ids)
    }

    fn same_code(&mut self, ids: &[u64]) -> Result<()> {
        if ids.len() < 2 {
            return Ok(());
        }
        let mut id_by_key = BTreeMap::new();
        for &id in ids {
            let key = self.snapshot.view().key_of(id)?.flatten();
            if let Some(other) = id_by_key.insert(key, id) {
                let detail = format!("found the key of document {other} again");
                self.report
                    .add(6, format!("table documents, document {id}"), detail);
            }
        }
        Ok(())
    }
}
