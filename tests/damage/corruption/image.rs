//! A file in memory that is cheap to copy: what is common to all copies, and what was changed.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};

use redb::StorageBackend;
use resemblance::{Access, Files, StoreOptions};

pub(crate) const PAGE_BYTES: usize = 4_096;

/// The length of the first part of the file: the engine's head, our checksum of it, and the note of
/// the journal.
pub(crate) const SEALED_HEAD_BYTES: usize = 368;

/// Where that note begins.
pub(crate) const NOTE: usize = 336;

/// The bytes of a file.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    base: Arc<Vec<u8>>,
    /// The number of bytes of the base that are still there. Zeros follow.
    base_bytes: usize,
    changed: BTreeMap<usize, Box<[u8]>>,
    len: usize,
}

impl Image {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            base_bytes: bytes.len(),
            len: bytes.len(),
            base: Arc::new(bytes),
            changed: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns `None` if some of them are beyond the end.
    pub(crate) fn bytes(&self, range: Range<usize>) -> Option<Vec<u8>> {
        let mut bytes = vec![0; range.len()];
        self.read(range.start, &mut bytes).ok().map(|()| bytes)
    }

    fn read(&self, offset: usize, out: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(out.len());
        if end.is_none_or(|end| end > self.len) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut at = offset;
        let mut rest = out;
        while !rest.is_empty() {
            let (page, within) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let count = rest.len().min(PAGE_BYTES - within);
            let (part, others) = rest.split_at_mut(count);
            match self.changed.get(&page) {
                Some(changed) => part.copy_from_slice(&changed[within..within + count]),
                None => self.read_base(at, part),
            }
            at += count;
            rest = others;
        }
        Ok(())
    }

    fn read_base(&self, offset: usize, out: &mut [u8]) {
        let base = &self.base[..self.base_bytes];
        let base = base.get(offset..).unwrap_or_default();
        let count = base.len().min(out.len());
        out[..count].copy_from_slice(&base[..count]);
        out[count..].fill(0);
    }

    pub(crate) fn write(&mut self, offset: usize, data: &[u8]) {
        assert!(offset + data.len() <= self.len, "written behind the end");
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let (page, within) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let count = rest.len().min(PAGE_BYTES - within);
            if !self.changed.contains_key(&page) {
                let mut bytes = vec![0; PAGE_BYTES];
                self.read_base(page * PAGE_BYTES, &mut bytes);
                self.changed.insert(page, bytes.into());
            }
            let to = self.changed.get_mut(&page).unwrap();
            to[within..within + count].copy_from_slice(&rest[..count]);
            at += count;
            rest = &rest[count..];
        }
    }

    pub(crate) fn flip(&mut self, at: usize, mask: u8) {
        let byte = self.bytes(at..at + 1).unwrap()[0];
        self.write(at, &[byte ^ mask]);
    }

    pub(crate) fn set_len(&mut self, len: usize) {
        self.base_bytes = self.base_bytes.min(len);
        self.changed.retain(|page, _| page * PAGE_BYTES < len);
        if let Some(page) = self.changed.get_mut(&(len / PAGE_BYTES)) {
            page[len % PAGE_BYTES..].fill(0);
        }
        self.len = len;
    }
}

/// Where the one file is, by any name.
pub(crate) const PATH: &str = "store";

/// A file system with one file that is there already. Clones share it. Nothing is locked.
#[derive(Clone, Debug)]
pub(crate) struct OneFile {
    pub(crate) image: Arc<RwLock<Image>>,
    /// Which bytes were read since it was made, if they were not written before.
    pub(crate) reads: Arc<Mutex<Vec<Range<usize>>>>,
    watches: bool,
}

impl OneFile {
    pub(crate) fn new(image: Image) -> Self {
        Self {
            image: Arc::new(RwLock::new(image)),
            reads: Arc::default(),
            watches: false,
        }
    }

    pub(crate) fn watched(image: Image) -> Self {
        let mut file = Self::new(image);
        file.watches = true;
        file
    }

    /// The options, with the file here.
    pub(crate) fn options(&self, options: &StoreOptions) -> StoreOptions {
        options.clone().files(Arc::new(self.clone()))
    }
}

impl Files for OneFile {
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>> {
        if path != Path::new(PATH) || access == Access::Create {
            return Err(ErrorKind::Unsupported.into());
        }
        Ok(Box::new(self.clone()))
    }

    fn remove(&self, _: &Path) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn publish(&self, _: &Path, _: &Path) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(path == Path::new(PATH))
    }

    fn size_bytes(&self, _: &Path) -> Result<(u64, u64)> {
        let len = self.image.read().unwrap().len() as u64;
        Ok((len, len))
    }
}

impl StorageBackend for OneFile {
    fn len(&self) -> Result<u64> {
        Ok(self.image.read().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let offset = usize::try_from(offset).map_err(Error::other)?;
        let image = self.image.read().unwrap();
        if self.watches && !image.changed.contains_key(&(offset / PAGE_BYTES)) {
            let mut reads = self.reads.lock().unwrap();
            reads.push(offset..offset + out.len());
        }
        image.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.image.write().unwrap().set_len(len as usize);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut image = self.image.write().unwrap();
        if offset as usize + data.len() > image.len() {
            return Err(Error::other("written behind the end"));
        }
        image.write(offset as usize, data);
        Ok(())
    }
}
