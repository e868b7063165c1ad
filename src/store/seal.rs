//! Sealing the memtable into a run, and merging runs.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use redb::ReadableTable;

use crate::error::{Error, Result};
use crate::format::dead::{CHUNK_DOCUMENTS, DeadChunk};
use crate::format::run_descriptor::{LaneSummary, RunDescriptor};
use crate::format::runs::encode_run;
use crate::lanes::LaneRole;
use crate::postings::{Memtable, RunShape, merge_runs, plan, write_lane};
use crate::store::committed::Run;
use crate::store::engine::{DEAD, RUNS};
use crate::store::recent::BURIED;
use crate::store::source::PostingTable;
use crate::store::writer::{Writer, block_table};

/// The lanes of each table, ascending.
fn lanes_by_table(roles: impl Iterator<Item = LaneRole>) -> [(PostingTable, Vec<u16>); 3] {
    let mut tables = [
        PostingTable::Keys,
        PostingTable::Bands,
        PostingTable::Permuted,
    ]
    .map(|table| (table, Vec::new()));
    for (role, lane) in roles.zip(0u16..) {
        let of_role = PostingTable::of(role);
        for (table, lanes) in &mut tables {
            if *table == of_role {
                lanes.push(lane);
            }
        }
    }
    tables
}

impl Writer {
    /// Turns everything that is not in a run into a run of level 0. Postings of documents that
    /// are gone are left out.
    pub(crate) fn seal(&mut self) -> Result<()> {
        let (first, end) = (self.state.sealed_below, self.state.next_id);
        let memtable = self.recent.get_mut().drain_into(&self.memtable);
        self.memtable = Memtable::default();
        self.state.sealed_below = end;
        self.state.unsealed_documents = 0;
        self.write_run(&memtable, first, end - 1)?;
        // A transaction that seals many times must not pile runs up until it commits.
        self.merge()
    }

    fn write_run(&mut self, memtable: &Memtable, first_id: u64, last_id: u64) -> Result<()> {
        let buried: HashSet<u64> = memtable.lane(BURIED).iter().map(|gone| gone.id).collect();
        let run = self.take_run_number()?;
        let mut lanes: Vec<LaneSummary> = Vec::new();
        for (table, numbers) in lanes_by_table(self.store.core.lanes.roles()) {
            let mut blocks = self.write()?.open_table(block_table(table))?;
            for lane in numbers {
                let postings = memtable.lane(lane).into_iter();
                let postings = postings.filter(|posting| !buried.contains(&posting.id));
                let postings = postings.map(Ok);
                lanes.push(write_lane(&mut blocks, table.name(), run, lane, postings)?);
            }
        }
        self.add_run_unless_empty(RunDescriptor {
            run,
            level: 0,
            first_id,
            last_id,
            documents: (last_id - first_id + 1).saturating_sub(buried.len() as u64),
            lanes,
        })
    }

    fn take_run_number(&mut self) -> Result<u32> {
        let run = self.state.next_run;
        let next = run.checked_add(1);
        self.state.next_run =
            next.ok_or_else(|| Error::invalid("runs", run, "fewer than 2^32 in a store's life"))?;
        Ok(run)
    }

    /// Adds a run to the table and to the list, in the place of its ids. Where all documents of its
    /// range are gone, or are filed nowhere, there is nothing to describe.
    fn add_run_unless_empty(&mut self, descriptor: RunDescriptor) -> Result<()> {
        if descriptor.postings() == 0 {
            return Ok(());
        }
        let row = encode_run(&descriptor)?;
        self.write()?
            .open_table(RUNS)?
            .insert(descriptor.run, row.as_slice())?;
        let place = self
            .runs
            .partition_point(|run| run.descriptor.first_id < descriptor.first_id);
        self.runs.insert(
            place,
            Arc::new(Run {
                descriptor,
                dead: 0,
            }),
        );
        Ok(())
    }

    /// Merges runs until none has to be.
    pub(crate) fn merge(&mut self) -> Result<()> {
        loop {
            let shapes: Vec<RunShape> = self.runs.iter().map(|run| run.shape()).collect();
            let Some(plan) = plan(&shapes) else {
                return Ok(());
            };
            let planned = |run: &&Arc<Run>| plan.runs.contains(&run.descriptor.run);
            let inputs: Vec<Arc<Run>> = self.runs.iter().filter(planned).cloned().collect();
            self.merge_into_one(&inputs, plan.level)?;
        }
    }

    /// Replaces neighbouring runs by one, without their dead postings, and forgets the dead bits
    /// of exactly the documents that were dropped.
    pub(crate) fn merge_into_one(&mut self, inputs: &[Arc<Run>], level: u8) -> Result<()> {
        let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else {
            return Ok(());
        };
        let (first_id, last_id) = (first.descriptor.first_id, last.descriptor.last_id);
        self.flush_dead()?;
        let dropped = self.dead_chunks(first_id, last_id)?;
        let is_dropped = |id: u64| {
            let chunk = dropped.get(&(id / CHUNK_DOCUMENTS));
            chunk.is_some_and(|chunk| chunk.contains(id))
        };
        let run = self.take_run_number()?;
        let descriptors: Vec<&RunDescriptor> = inputs.iter().map(|run| &run.descriptor).collect();
        let mut lanes = Vec::new();
        for (table, numbers) in lanes_by_table(self.store.core.lanes.roles()) {
            let mut blocks = self.write()?.open_table(block_table(table))?;
            let name = table.name();
            lanes.extend(merge_runs(
                &mut blocks,
                name,
                &numbers,
                &descriptors,
                run,
                &is_dropped,
            )?);
        }
        {
            let mut runs = self.write()?.open_table(RUNS)?;
            for input in &descriptors {
                runs.remove(input.run)?;
            }
        }
        self.runs.retain(|run| {
            !inputs
                .iter()
                .any(|i| i.descriptor.run == run.descriptor.run)
        });
        self.clear_dead(dropped, first_id, last_id)?;
        let descriptor = RunDescriptor {
            run,
            level,
            first_id,
            last_id,
            documents: inputs.iter().map(|run| run.live_documents()).sum(),
            lanes,
        };
        self.add_run_unless_empty(descriptor)
    }

    fn dead_chunks(&self, first_id: u64, last_id: u64) -> Result<BTreeMap<u64, DeadChunk>> {
        let table = self.write()?.open_table(DEAD)?;
        let chunks = first_id / CHUNK_DOCUMENTS..=last_id / CHUNK_DOCUMENTS;
        let mut dead = BTreeMap::new();
        for entry in table.range(chunks)? {
            let (chunk, row) = entry?;
            dead.insert(
                chunk.value(),
                DeadChunk::decode(chunk.value(), row.value())?,
            );
        }
        Ok(dead)
    }

    /// Clears the bits of a range of ids.
    fn clear_dead(
        &self,
        chunks: BTreeMap<u64, DeadChunk>,
        first_id: u64,
        last_id: u64,
    ) -> Result<()> {
        let mut table = self.write()?.open_table(DEAD)?;
        for (chunk, mut bitmap) in chunks {
            let ids: Vec<u64> = bitmap.ids(chunk).collect();
            for id in ids
                .into_iter()
                .filter(|id| (first_id..=last_id).contains(id))
            {
                bitmap.clear(id);
            }
            if bitmap.is_clear() {
                table.remove(chunk)?;
            } else {
                table.insert(chunk, bitmap.encode(chunk).as_slice())?;
            }
        }
        Ok(())
    }
}
