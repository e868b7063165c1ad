//! The storage engine alone, to look into stores and to change what the library would not.

use std::fs::OpenOptions;
use std::io::Result;
use std::ops::Bound;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{BackendError, Database, StorageBackend};
use xxhash_rust::xxh3::xxh3_64;

/// Opens the engine's database in a store's file, and keeps the head sealed as the format requires.
pub(crate) fn database(path: impl AsRef<Path>) -> Database {
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = FileBackend::new(file.unwrap()).unwrap();
    Database::builder()
        .create_with_backend(Sealing(file))
        .unwrap()
}

/// Returns the bytes that follow the engine's first 320 bytes.
pub(crate) fn seal(head: &[u8]) -> Vec<u8> {
    assert_eq!(head.len(), 320);
    [b"RESEMBL\x1a".as_slice(), &xxh3_64(head).to_le_bytes()].concat()
}

/// Returns a row of our format: the body and its checksum, with the key in big-endian bytes.
pub(crate) fn sealed_row(table: &str, key: &[u8], mut body: Vec<u8>) -> Vec<u8> {
    let covered = [table.as_bytes(), &[0], key, &body].concat();
    body.extend(crc32fast::hash(&covered).to_le_bytes());
    body
}

#[derive(Debug)]
struct Sealing(FileBackend);

impl StorageBackend for Sealing {
    fn len(&self) -> Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        if offset == 0 {
            self.0.write(320, &seal(data))?;
        }
        self.0.write(offset, data)
    }

    fn close(&self) -> Result<()> {
        self.0.close()
    }

    fn try_lock_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> std::result::Result<bool, BackendError> {
        self.0.try_lock_range(start, end)
    }

    fn unlock_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> std::result::Result<(), BackendError> {
        self.0.unlock_range(start, end)
    }
}
