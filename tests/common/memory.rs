//! Files of stores in memory: quick, and to be damaged at will.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use redb::StorageBackend;
use resemblance::{Access, Files, StoreOptions};

type Bytes = Arc<RwLock<Vec<u8>>>;

/// A file system in memory. Clones share it. Nothing is locked.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryFiles(Arc<Mutex<BTreeMap<PathBuf, Bytes>>>);

impl MemoryFiles {
    /// With one file.
    pub(crate) fn with(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        let files = Self::default();
        files.write(path, bytes);
        files
    }

    pub(crate) fn write(&self, path: impl Into<PathBuf>, bytes: Vec<u8>) {
        let bytes = Arc::new(RwLock::new(bytes));
        self.0.lock().unwrap().insert(path.into(), bytes);
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        self.bytes(path.as_ref()).unwrap().read().unwrap().clone()
    }

    pub(crate) fn names(&self) -> Vec<PathBuf> {
        self.0.lock().unwrap().keys().cloned().collect()
    }

    /// The options, with the files here.
    pub(crate) fn options(&self, options: &StoreOptions) -> StoreOptions {
        options.clone().files(Arc::new(self.clone()))
    }

    fn bytes(&self, path: &Path) -> Result<Bytes> {
        let files = self.0.lock().unwrap();
        files.get(path).cloned().ok_or(ErrorKind::NotFound.into())
    }
}

impl Files for MemoryFiles {
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>> {
        if access == Access::Create {
            if self.exists(path)? {
                return Err(ErrorKind::AlreadyExists.into());
            }
            self.write(path, Vec::new());
        }
        Ok(Box::new(MemoryFile(self.bytes(path)?)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let removed = self.0.lock().unwrap().remove(path);
        removed.map(drop).ok_or(ErrorKind::NotFound.into())
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        let mut files = self.0.lock().unwrap();
        if files.contains_key(to) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let bytes = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.into(), bytes);
        Ok(())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.0.lock().unwrap().contains_key(path))
    }

    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)> {
        let length = self.bytes(path)?.read().unwrap().len() as u64;
        Ok((length, length))
    }
}

#[derive(Debug)]
struct MemoryFile(Bytes);

impl StorageBackend for MemoryFile {
    fn len(&self) -> Result<u64> {
        Ok(self.0.read().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let bytes = self.0.read().unwrap();
        let from = bytes.get(offset as usize..).unwrap_or_default();
        let from = from.get(..out.len()).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(from);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.0.write().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut bytes = self.0.write().unwrap();
        let to = bytes.get_mut(offset as usize..).unwrap_or_default();
        let to = to.get_mut(..data.len());
        let to = to.ok_or_else(|| Error::other("written behind the end"))?;
        to.copy_from_slice(data);
        Ok(())
    }
}
