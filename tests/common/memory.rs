//! Files of stores in memory: quick, and to be damaged at will, and calls of them watched.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{Error, ErrorKind, Result};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

use redb::{BackendError, StorageBackend};
use resemblance::{Access, Files, StoreOptions};

/// A file, whatever its name: the place in the order of their making.
pub(crate) type FileNumber = usize;

#[derive(Debug)]
struct Contents {
    number: FileNumber,
    bytes: RwLock<Vec<u8>>,
}

/// A file system in memory. Clones share it. Nothing is locked.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryFiles(Arc<Mutex<Named>>);

#[derive(Debug, Default)]
struct Named {
    files: BTreeMap<PathBuf, Arc<Contents>>,
    is_alone: bool,
    made: FileNumber,
}

impl MemoryFiles {
    /// These files, as if no other process could open them.
    pub(crate) fn alone(self) -> Self {
        self.0.lock().unwrap().is_alone = true;
        self
    }

    /// With one file.
    pub(crate) fn with(path: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        let files = Self::default();
        files.write(path, bytes);
        files
    }

    pub(crate) fn write(&self, path: impl Into<PathBuf>, bytes: Vec<u8>) {
        let mut named = self.0.lock().unwrap();
        let contents = Contents {
            number: named.made,
            bytes: RwLock::new(bytes),
        };
        named.made += 1;
        named.files.insert(path.into(), Arc::new(contents));
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        self.contents(path.as_ref())
            .unwrap()
            .bytes
            .read()
            .unwrap()
            .clone()
    }

    pub(crate) fn names(&self) -> Vec<PathBuf> {
        self.0.lock().unwrap().files.keys().cloned().collect()
    }

    /// The options, with the files here.
    pub(crate) fn options(&self, options: &StoreOptions) -> StoreOptions {
        options.clone().files(Arc::new(self.clone()))
    }

    pub(crate) fn number(&self, path: &Path) -> FileNumber {
        self.contents(path).unwrap().number
    }

    fn contents(&self, path: &Path) -> Result<Arc<Contents>> {
        let named = self.0.lock().unwrap();
        let found = named.files.get(path).cloned();
        found.ok_or(ErrorKind::NotFound.into())
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
        Ok(Box::new(MemoryFile(self.contents(path)?)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let removed = self.0.lock().unwrap().files.remove(path);
        removed.map(drop).ok_or(ErrorKind::NotFound.into())
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        let files = &mut self.0.lock().unwrap().files;
        if files.contains_key(to) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let bytes = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.into(), bytes);
        Ok(())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.0.lock().unwrap().files.contains_key(path))
    }

    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)> {
        let length = self.contents(path)?.bytes.read().unwrap().len() as u64;
        Ok((length, length))
    }

    fn are_shared(&self) -> bool {
        !self.0.lock().unwrap().is_alone
    }
}

/// Cuts bytes off, or adds zeros. `Vec::resize` adds them one by one where it is not optimised.
pub(crate) fn set_len(bytes: &mut Vec<u8>, len: usize) {
    bytes.truncate(len);
    bytes.extend_from_slice(&vec![0; len - bytes.len()]);
}

#[derive(Debug)]
struct MemoryFile(Arc<Contents>);

impl StorageBackend for MemoryFile {
    fn len(&self) -> Result<u64> {
        Ok(self.0.bytes.read().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let bytes = self.0.bytes.read().unwrap();
        let from = bytes.get(offset as usize..).unwrap_or_default();
        let from = from.get(..out.len()).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(from);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut bytes = self.0.bytes.write().unwrap();
        set_len(&mut bytes, len as usize);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut bytes = self.0.bytes.write().unwrap();
        let to = bytes.get_mut(offset as usize..).unwrap_or_default();
        let to = to.get_mut(..data.len());
        let to = to.ok_or_else(|| Error::other("written behind the end"))?;
        to.copy_from_slice(data);
        Ok(())
    }

    // Files are opened one after another, as if other processes might open them. None ever does.

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Locked {
        Ok(true)
    }

    fn try_lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Locked {
        Ok(true)
    }

    fn unlock_range(&self, _: Bound<u64>, _: Bound<u64>) -> std::result::Result<(), BackendError> {
        Ok(())
    }

    fn query_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Locked {
        Ok(false)
    }
}

/// A call of a file system or of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call<'c> {
    Open(&'c Path, Access),
    Remove(&'c Path),
    Publish(&'c Path, &'c Path),
    /// A query about a name.
    Look,
    Len,
    /// A read at an offset, of this number of bytes.
    Read(u64, usize),
    Write(u64, &'c [u8]),
    SetLen(u64),
    Sync,
    Lock,
    Close,
}

/// Sees all calls.
pub(crate) trait Watch: Debug + Send + Sync + 'static {
    /// Sees a call before it is made. An error is its answer, and it is not made.
    fn before(&self, _: &Call<'_>) -> Result<()> {
        Ok(())
    }

    /// Makes a call, or does not; of a file, if it is one of a file.
    fn call(
        &self,
        call: Call<'_>,
        _: Option<(FileNumber, &dyn StorageBackend)>,
        make: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        self.before(&call)?;
        make()
    }
}

/// Files whose calls a watcher observes.
#[derive(Debug)]
pub(crate) struct WatchedFiles<W> {
    pub(crate) files: MemoryFiles,
    pub(crate) watch: Arc<W>,
}

impl<W> Clone for WatchedFiles<W> {
    fn clone(&self) -> Self {
        Self {
            files: self.files.clone(),
            watch: Arc::clone(&self.watch),
        }
    }
}

impl<W: Watch> WatchedFiles<W> {
    pub(crate) fn new(files: MemoryFiles, watch: W) -> Self {
        let watch = Arc::new(watch);
        Self { files, watch }
    }

    /// The options, with the files here.
    pub(crate) fn options(&self, options: &StoreOptions) -> StoreOptions {
        options.clone().files(Arc::new(self.clone()))
    }

    pub(crate) fn file(&self, path: &Path, access: Access) -> Result<WatchedFile<W>> {
        let file = self.call(Call::Open(path, access), || self.files.open(path, access))?;
        Ok(WatchedFile {
            file,
            number: self.files.number(path),
            watch: Arc::clone(&self.watch),
        })
    }

    fn call<T>(&self, call: Call<'_>, make: impl Fn() -> Result<T>) -> Result<T> {
        made(|make| self.watch.call(call, None, make), make)
    }
}

/// Returns the result of a call that a watcher let through.
fn made<T>(
    watched: impl FnOnce(&mut dyn FnMut() -> Result<()>) -> Result<()>,
    make: impl Fn() -> Result<T>,
) -> Result<T> {
    let mut given = None;
    watched(&mut || make().map(|it| given = Some(it)))?;
    given.ok_or(Error::other("a watch did not make a call"))
}

impl<W: Watch> Files for WatchedFiles<W> {
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>> {
        Ok(Box::new(self.file(path, access)?))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.call(Call::Remove(path), || self.files.remove(path))
    }

    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        self.call(Call::Publish(from, to), || self.files.publish(from, to))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.call(Call::Look, || self.files.exists(path))
    }

    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)> {
        self.call(Call::Look, || self.files.size_bytes(path))
    }

    fn are_shared(&self) -> bool {
        self.files.are_shared()
    }
}

type Locked = std::result::Result<bool, BackendError>;

#[derive(Debug)]
pub(crate) struct WatchedFile<W> {
    file: Box<dyn StorageBackend>,
    number: FileNumber,
    watch: Arc<W>,
}

impl<W: Watch> WatchedFile<W> {
    fn call(&self, call: Call<'_>, make: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let file = (self.number, &*self.file);
        self.watch.call(call, Some(file), make)
    }
}

impl<W: Watch> StorageBackend for WatchedFile<W> {
    fn len(&self) -> Result<u64> {
        made(|make| self.call(Call::Len, make), || self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let call = Call::Read(offset, out.len());
        self.call(call, &mut || self.file.read(offset, out))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.call(Call::SetLen(len), &mut || self.file.set_len(len))
    }

    fn sync_data(&self) -> Result<()> {
        self.call(Call::Sync, &mut || self.file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let call = Call::Write(offset, data);
        self.call(call, &mut || self.file.write(offset, data))
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.call(Call::Lock, &mut || Ok(()))?;
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.call(Call::Lock, &mut || Ok(()))?;
        self.file.try_lock_shared_range(start, end)
    }

    fn unlock_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> std::result::Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Locked {
        self.call(Call::Lock, &mut || Ok(()))?;
        self.file.query_lock_range(start, end)
    }

    fn close(&self) -> Result<()> {
        self.call(Call::Close, &mut || self.file.close())
    }
}
