//! The counters of a store, read and written past the library.

use std::path::Path;

use redb::{ReadableTable, TableDefinition};

/// The row `state` of the table `meta`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) commit: u64,
    pub(crate) next_id: u64,
    pub(crate) documents: u64,
    pub(crate) flushed_below: u64,
    pub(crate) next_run: u32,
    pub(crate) unflushed_documents: u64,
    pub(crate) postings_moved: u64,
    pub(crate) deleted_documents: u64,
}

impl State {
    /// The body: what is before the checksum.
    fn decode(body: &[u8]) -> Self {
        assert_eq!((body.len(), body[0]), (61, 1));
        let number = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap());
        Self {
            commit: number(1),
            next_id: number(9),
            documents: number(17),
            flushed_below: number(25),
            next_run: u32::from_le_bytes(body[33..37].try_into().unwrap()),
            unflushed_documents: number(37),
            postings_moved: number(45),
            deleted_documents: number(53),
        }
    }

    fn encode(self) -> Vec<u8> {
        let before = [
            self.commit,
            self.next_id,
            self.documents,
            self.flushed_below,
        ];
        let after = [
            self.unflushed_documents,
            self.postings_moved,
            self.deleted_documents,
        ];
        let mut row = vec![1];
        row.extend(before.map(u64::to_le_bytes).concat());
        row.extend(self.next_run.to_le_bytes());
        row.extend(after.map(u64::to_le_bytes).concat());
        let covered = [b"meta\0state".as_slice(), &row].concat();
        row.extend(crc32fast::hash(&covered).to_le_bytes());
        row
    }
}

/// Changes the counters of a store that is not open.
pub(crate) fn change(path: &Path, change: impl FnOnce(&mut State)) {
    const META: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("meta");
    let database = crate::common::engine::database(path);
    let write = database.begin_write().unwrap();
    {
        let mut meta = write.open_table(META).unwrap();
        let row = meta.get("state").unwrap().unwrap().value().to_vec();
        let mut state = State::decode(&row[..row.len() - 4]);
        assert_eq!(state.encode(), row);
        change(&mut state);
        meta.insert("state", state.encode().as_slice()).unwrap();
    }
    write.commit().unwrap();
}
