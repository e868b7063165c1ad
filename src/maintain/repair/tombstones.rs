//! Reads which documents were removed, as far as the rows are intact.

use std::collections::BTreeMap;

use crate::engine::{Commit, Tree};
use crate::format::{CHUNK_DOCUMENTS, DeletedChunk, State};
use crate::maintain::repair::damaged_rows::each_row;
use crate::maintain::repair::loss_report::LossReport;
use crate::maintain::stored_keys::{ids_of, ids_of_chunks};

#[derive(Debug, Default)]
pub(super) struct RemainingTombstones {
    chunks: BTreeMap<u64, DeletedChunk>,
    /// The ids among which removed documents may count as live.
    pub(super) may_be_back: Vec<(u64, u64)>,
}

impl RemainingTombstones {
    pub(crate) fn read(
        commit: &Commit,
        table: Option<&Tree>,
        state: Option<&State>,
        losses: &mut LossReport,
    ) -> Self {
        let mut deleted = Self::default();
        let mut lost = Vec::new();
        let mut errors = Vec::new();
        match table {
            Some(table) => {
                let take = |key: &[u8], row: crate::error::Result<&[u8]>| {
                    let Ok(key) = key.try_into() else {
                        return;
                    };
                    let chunk = u64::from_le_bytes(key);
                    match row.and_then(|row| DeletedChunk::decode(chunk, row)) {
                        Ok(bitmap) => {
                            deleted.chunks.insert(chunk, bitmap);
                        }
                        Err(error) => errors.push((chunk, error)),
                    }
                };
                each_row(commit, table, losses, take, |keys| {
                    lost.extend(ids_of("dead", keys));
                });
            }
            None => lost.push((0, u64::MAX)),
        }
        for (chunk, error) in errors {
            lost.push(ids_of_chunks(chunk, chunk));
            losses.error(error);
        }
        let found = deleted
            .chunks
            .values()
            .map(DeletedChunk::count)
            .sum::<u64>();
        // Nothing is lost if all are there.
        if state.is_none_or(|state| state.deleted_documents != found) {
            lost.sort_unstable();
            deleted.may_be_back = lost;
        }
        deleted
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        let chunk = self.chunks.get(&(id / CHUNK_DOCUMENTS));
        chunk.is_some_and(|chunk| chunk.contains(id))
    }
}
