//! Reads the version of a commit from the file: all of it, or what has changed since an earlier commit.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::engine::{DEAD, DOCUMENTS, EngineResult, META, RUNS, ReadTransaction, ReadableTable};
use crate::error::{Error, Result};
use crate::format::header::{self, State};
use crate::format::{DeletedChunk, DocumentRow, TombstoneChanges, decode_run};
use crate::index::{Memtable, SegmentBuilder, TOMBSTONE_LANE};
use crate::state::context::{SharedContext, document_codes};
use crate::state::run_set::{Run, RunSet};
use crate::state::tombstones::Tombstones;
use crate::state::version_set::Version;
use resemblance_sketch::lanes::LaneCode;

/// Returns the version of a later commit than that of `before`. Reads what was committed since: documents that are in
/// no run, the descriptions of runs, and the bitmaps of tombstones that have changed.
///
/// # Errors
/// Returns the errors of reading, and [`Error::Corrupt`](crate::Error::Corrupt) if the tables contradict each other.
pub(super) fn follow(
    context: &SharedContext,
    read: &ReadTransaction,
    state: State,
    before: &Version,
) -> Result<Version> {
    let deleted = follow_tombstones(read, &before.deleted, before.state.commit)?;
    check_tombstones(&deleted, &state)?;
    let runs = load_runs(read, &state, context.lanes.kept_lane(), &deleted)?;
    let is_flushed = before.state.flushed_below != state.flushed_below;
    let memtable = match is_flushed {
        true => load_memtable(read, context, &state, None)?,
        false => load_memtable(read, context, &state, Some(before))?,
    };
    context
        .cache
        .retain_runs(|number| runs.descriptors().any(|run| run.run == number));
    context.note_documents(state.documents);
    context
        .counters
        .count
        .commits_followed
        .add(state.commit.saturating_sub(before.state.commit));
    Ok(Version {
        state,
        runs,
        memtable,
        deleted,
    })
}

/// Rereads the bitmaps that have changed since a commit: all of them if the file does not list that many changes.
fn follow_tombstones(
    read: &ReadTransaction,
    before: &Tombstones,
    commit: u64,
) -> Result<Tombstones> {
    let meta = read.open_table(META).engine()?;
    let table = read.open_table(DEAD).engine()?;
    let Some(row) = meta.get(header::TOMBSTONE_CHANGES).engine()? else {
        return Ok(before.clone());
    };
    let changes: TombstoneChanges = header::decode_meta(header::TOMBSTONE_CHANGES, row.value())?;
    let Some(chunks) = changes.since(commit) else {
        return Tombstones::read(&table);
    };
    let mut changed = BTreeMap::new();
    for chunk in chunks {
        let row = table.get(chunk).engine()?;
        let bitmap = row.map(|row| DeletedChunk::decode(chunk, row.value()));
        changed.insert(chunk, bitmap.transpose()?);
    }
    before.with_chunks(changed)
}

/// Checks that the number of tombstones equals that of the state.
pub(super) fn check_tombstones(deleted: &Tombstones, state: &State) -> Result<()> {
    let (found, expected) = (deleted.len(), state.deleted_documents);
    if found == expected {
        return Ok(());
    }
    let detail = format!("found {found} deleted documents, expected {expected} (invariant 4)");
    Err(Error::corrupt("table dead", detail))
}

pub(super) fn load_runs(
    read: &ReadTransaction,
    state: &State,
    kept_lane: Option<u16>,
    deleted: &Tombstones,
) -> Result<RunSet> {
    let mut runs = RunSet::default();
    for entry in read.open_table(RUNS).engine()?.iter().engine()? {
        let (run, row) = entry.engine()?;
        let descriptor = decode_run(run.value(), kept_lane, row.value())?;
        if descriptor.inputs.is_empty() {
            let deleted = deleted.count_within(&(descriptor.first_id..=descriptor.last_id));
            runs.insert(Run {
                descriptor,
                deleted,
            });
        } else {
            runs.outputs.push(Arc::new(descriptor));
        }
    }
    let mut contradiction = runs.contradiction(state.flushed_below, state.next_run);
    if state.flushed_below > state.next_id {
        contradiction = Some("counters");
    }
    if let Some(what) = contradiction {
        let detail = format!("found {what} that contradict each other (invariant 3)");
        return Err(Error::corrupt("tables runs and meta", detail));
    }
    let in_runs: u64 = runs.current.iter().map(|run| run.deleted).sum();
    if in_runs != deleted.len() {
        let outside = deleted.ids().find(|id| runs.position_of(*id).is_none());
        // A chunk beyond the greatest id has bits of no document.
        let document = outside.map_or(String::new(), |id| format!(", document {id}"));
        let detail = "found a bit of a document that is in no run (invariant 4)";
        return Err(Error::corrupt(format!("table dead{document}"), detail));
    }
    Ok(runs)
}

/// Indexes the documents that are in no run again, from their rows. Those of an earlier version since whose commit
/// nothing was flushed are indexed already.
pub(super) fn load_memtable(
    read: &ReadTransaction,
    context: &SharedContext,
    state: &State,
    before: Option<&Version>,
) -> Result<Memtable> {
    let first = before.map_or(state.flushed_below, |before| before.state.next_id);
    let documents = read.open_table(DOCUMENTS).engine()?;
    let lanes = (0..context.lanes.count()).chain([TOMBSTONE_LANE]);
    let mut builder = SegmentBuilder::new(lanes.collect());
    let mut row = Vec::new();
    // The memtable itself is never written: these rows serve as its log.
    for entry in documents.range(first..).engine()? {
        let (key, bytes) = entry.engine()?;
        let id = key.value();
        if id >= state.next_id {
            // The next insert would overwrite it.
            let place = format!("table documents, document {id}");
            let detail = format!(
                "found it, expected ids below {} (invariant 1)",
                state.next_id
            );
            return Err(Error::corrupt(place, detail));
        }
        let stored = DocumentRow::decode(id, bytes.value(), context.shape())?;
        let key_code = stored.head.key_code();
        let signature = stored.to_signature(context.recipe);
        document_codes(context, key_code, &signature, &mut row)?;
        builder.push(id, &row)?;
    }
    let added = builder.documents();
    let kept = before.map_or(0, |before| before.state.unflushed_documents);
    // Earlier ones may have been deleted since.
    let deleted = (kept + added).checked_sub(state.unflushed_documents);
    if deleted.is_none_or(|deleted| deleted > kept) {
        let place = format!("table documents, from document {} on", state.flushed_below);
        let expected = state.unflushed_documents;
        let detail =
            format!("found {added} rows besides {kept}, expected {expected} (invariant 1)");
        return Err(Error::corrupt(place, detail));
    }
    if let Some(before) = before
        && deleted != Some(0)
    {
        note_deleted(&documents, before, &mut builder)?;
    }
    let earlier = before.map(|before| before.memtable.clone());
    earlier.unwrap_or_default().push(builder.build())
}

/// Marks the documents of an earlier version that are in no run and have been deleted since. Their postings stay in its
/// segments until the next flush.
fn note_deleted(
    documents: &impl ReadableTable<u64, &'static [u8]>,
    before: &Version,
    builder: &mut SegmentBuilder,
) -> Result<()> {
    let marked = before.memtable.lane(TOMBSTONE_LANE)?;
    let mut known: HashSet<u64> = marked.iter().map(|posting| posting.id).collect();
    let ids = before.state.flushed_below..before.state.next_id;
    for entry in documents.range(ids).engine()? {
        known.insert(entry.engine()?.0.value());
    }
    // A document that has postings has one in the lane of keys or in the next one. Most ids of a range that a file
    // claims may never have been given.
    let mut deleted = HashSet::new();
    for posting in [before.memtable.lane(0)?, before.memtable.lane(1)?].concat() {
        if !known.contains(&posting.id) && deleted.insert(posting.id) {
            let code = LaneCode {
                lane: TOMBSTONE_LANE,
                code: posting.id,
            };
            builder.push(posting.id, &[code])?;
        }
    }
    Ok(())
}
