//! The disk, as if it took longer to make things durable.

use std::fs::{self, File, OpenOptions};
use std::io::{Error, Result};
use std::path::Path;
use std::time::Duration;

use redb::StorageBackend;
use redb::backends::FileBackend;
use resemblance::{Access, Files};

/// Files of the operating system, whose syncs take so much longer.
#[derive(Debug)]
pub struct SlowDisk {
    pub sync_delay: Duration,
}

impl Files for SlowDisk {
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>> {
        let file = OpenOptions::new()
            .read(true)
            .write(access != Access::Read)
            .create_new(access == Access::Create)
            .open(path)?;
        Ok(Box::new(SlowFile {
            file: FileBackend::new(file).map_err(Error::other)?,
            sync_delay: self.sync_delay,
        }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path)
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to)?;
        File::open(to)?.sync_all()?;
        fs::remove_file(from)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        fs::exists(path)
    }

    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)> {
        let length = fs::metadata(path)?.len();
        Ok((length, length))
    }
}

#[derive(Debug)]
struct SlowFile {
    file: FileBackend,
    sync_delay: Duration,
}

impl StorageBackend for SlowFile {
    fn len(&self) -> Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> Result<()> {
        std::thread::sleep(self.sync_delay);
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.file.write(offset, data)
    }

    fn close(&self) -> Result<()> {
        self.file.close()
    }
}
