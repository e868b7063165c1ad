//! A file whose changes stay in memory, for readers of files that the engine would repair first.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Result};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

use crate::engine_error::{self, EngineError};
use crate::files::{Access, FileOptions, FileSource, Files, Locked, OpenFile};
use crate::layout_check::check_engine;
use crate::page_layout::{PAGE_BYTES, SEALED_HEAD_BYTES};
use crate::process::IgnorePoison;

/// Opens a file for reading, and returns files in which it has the same name but keeps all changes
/// in memory. It can be opened there for writing any number of times. The changes of a recovery are
/// a few pages.
///
/// With `keeps_writers_away`, no process can open the file for writing until the returned files are
/// dropped. Otherwise a writer can open it, and every later read returns [`EngineError::Closed`].
///
/// # Errors
/// [`EngineError::NotFound`], [`EngineError::Locked`], [`EngineError::LocksUnsupported`], [`EngineError::Io`].
pub fn overlay(
    path: &Path,
    options: &FileOptions,
    keeps_writers_away: bool,
) -> engine_error::Result<Arc<dyn Files>> {
    check_engine()?;
    let base = match keeps_writers_away {
        true => options.wait_for(|| OpenFile::open_shared(path, options))?,
        false => OpenFile::open_watched(path, options)?,
    };
    let reading = |error| EngineError::io("reading", path, error);
    let base_bytes = base.len().map_err(reading)?;
    let mut head = [0; SEALED_HEAD_BYTES];
    let head_bytes = base_bytes.min(SEALED_HEAD_BYTES as u64);
    let (start, _) = head.split_at_mut(usize::try_from(head_bytes).unwrap_or(SEALED_HEAD_BYTES));
    base.read(0, start).map_err(reading)?;
    let pages = OverlayPages {
        base,
        head: (!keeps_writers_away).then_some(head),
        changes: Mutex::new(Changes {
            length_bytes: base_bytes,
            base_bytes,
            pages: BTreeMap::new(),
        }),
    };
    Ok(Arc::new(Overlay {
        path: options.files.lasting(path)?,
        pages: Arc::new(pages),
        source: options.files.clone(),
    }))
}

/// The reason of [`EngineError::Closed`] where a writer has opened the file of an overlay.
pub const OPENED_SINCE: &str = "another process has opened the file for writing since";

/// One file and its name.
#[derive(Debug)]
struct Overlay {
    path: PathBuf,
    pages: Arc<OverlayPages>,
    source: FileSource,
}

impl Files for Overlay {
    fn open(&self, path: &Path, access: Access) -> Result<Box<dyn StorageBackend>> {
        match access {
            Access::Create => Err(ErrorKind::Unsupported.into()),
            _ if self.source.0.lasting(path)? != self.path => Err(ErrorKind::NotFound.into()),
            _ => Ok(Box::new(OverlayFile(Arc::clone(&self.pages)))),
        }
    }

    fn remove(&self, _: &Path) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn publish(&self, _: &Path, _: &Path) -> Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.source.0.exists(path)
    }

    fn size_bytes(&self, path: &Path) -> Result<(u64, u64)> {
        self.source.0.size_bytes(path)
    }

    fn lasting(&self, path: &Path) -> Result<PathBuf> {
        self.source.0.lasting(path)
    }

    fn are_current(&self) -> Result<bool> {
        self.pages.is_current()
    }
}

/// The underlying file, and the changes since.
#[derive(Debug)]
struct OverlayPages {
    base: OpenFile,
    /// The head of the underlying file, if a writer may open it. Every writer changes the head
    /// first.
    head: Option<[u8; SEALED_HEAD_BYTES]>,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    length_bytes: u64,
    /// The number of bytes of the underlying file that are still valid. Zeros follow them.
    base_bytes: u64,
    /// The pages that were written, by offset.
    pages: BTreeMap<u64, Vec<u8>>,
}

impl OverlayPages {
    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().ignore_poison()
    }

    /// Reads bytes of the underlying file, and zeros after its end.
    fn read_base(&self, base_bytes: u64, offset: u64, out: &mut [u8]) -> Result<()> {
        let there = base_bytes.saturating_sub(offset).min(out.len() as u64);
        let there = usize::try_from(there).unwrap_or(out.len());
        let (from_base, behind) = out.split_at_mut(there);
        behind.fill(0);
        if from_base.is_empty() {
            return Ok(());
        }
        self.base.read(offset, from_base)?;
        // Checked after the read: a writer that appears later cannot have changed these bytes.
        match self.is_current()? {
            true => Ok(()),
            false => Err(EngineError::Closed {
                reason: OPENED_SINCE.to_owned(),
            }
            .for_redb()),
        }
    }

    /// Returns false if a writer has the underlying file open, or has had it open.
    fn is_current(&self) -> Result<bool> {
        let Some(expected) = &self.head else {
            return Ok(true);
        };
        let mut head = [0; SEALED_HEAD_BYTES];
        let head_bytes =
            usize::try_from(self.base.len()?).map_or(head.len(), |n| n.min(head.len()));
        let (start, _) = head.split_at_mut(head_bytes);
        self.base.read(0, start)?;
        Ok(head == *expected && !self.base.has_writer()?)
    }
}

/// Splits a range of bytes into parts that each lie in one page. Returns the page and the part's
/// offset in it.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let page_bytes = PAGE_BYTES as u64;
    let (mut at, mut left) = (offset, length);
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        // The result is smaller than a page.
        let within = (at % page_bytes) as usize;
        let count = left.min(PAGE_BYTES - within);
        let part = (at / page_bytes, within, count);
        at += count as u64;
        left -= count;
        Some(part)
    })
}

/// One handle of the file.
#[derive(Debug)]
struct OverlayFile(Arc<OverlayPages>);

impl StorageBackend for OverlayFile {
    fn len(&self) -> Result<u64> {
        Ok(self.0.changes().length_bytes)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let changes = self.0.changes();
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > changes.length_bytes) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let covers = |(page, ..): (u64, usize, usize)| changes.pages.contains_key(&page);
        if !parts(offset, out.len()).any(covers) {
            return self.0.read_base(changes.base_bytes, offset, out);
        }
        // Changed bytes are not read from the underlying file, because its contents no longer
        // matter.
        let (mut at, mut rest) = (offset, &mut *out);
        for (page, within, count) in parts(offset, rest.len()) {
            let (part, others) = rest.split_at_mut(count);
            match changes.pages.get(&page) {
                None => self.0.read_base(changes.base_bytes, at, part)?,
                Some(changed) => {
                    let (from, _) = changed.split_at(within).1.split_at(count);
                    part.copy_from_slice(from);
                }
            }
            at += count as u64;
            rest = others;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let mut changes = self.0.changes();
        changes.length_bytes = length;
        // A file that is cut and grows again contains zeros, not its former bytes.
        changes.base_bytes = changes.base_bytes.min(length);
        // Only whole pages are ever cut off, so no part of a page needs to be kept.
        changes
            .pages
            .retain(|page, _| page * (PAGE_BYTES as u64) < length);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut changes = self.0.changes();
        let base_bytes = changes.base_bytes;
        let mut rest = data;
        for (page, within, count) in parts(offset, data.len()) {
            let (part, others) = rest.split_at(count);
            if count < PAGE_BYTES && !changes.pages.contains_key(&page) {
                let mut bytes = vec![0; PAGE_BYTES];
                self.0
                    .read_base(base_bytes, page * PAGE_BYTES as u64, &mut bytes)?;
                changes.pages.insert(page, bytes);
            }
            let changed = changes
                .pages
                .entry(page)
                .or_insert_with(|| vec![0; PAGE_BYTES]);
            let (to, _) = changed.split_at_mut(within).1.split_at_mut(count);
            to.copy_from_slice(part);
            rest = others;
        }
        let end = offset + data.len() as u64;
        changes.length_bytes = changes.length_bytes.max(end);
        Ok(())
    }

    // The underlying file remains locked as long as any handle lives.

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Locked<bool> {
        Ok(true)
    }

    fn try_lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Locked<bool> {
        Ok(true)
    }

    fn unlock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Locked<()> {
        Ok(())
    }

    fn query_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Locked<bool> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn overlay_returns_changes_and_leaves_the_file_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let before: Vec<u8> = (0..3 * PAGE_BYTES).map(|at| (at % 251) as u8).collect();
        fs::write(&path, &before).unwrap();
        let files = overlay(&path, &FileOptions::default(), true).unwrap();
        let file = files.open(&path, Access::Write).unwrap();
        let mut model = before.clone();
        file.write(10, &[9; 336]).unwrap();
        model[10..346].fill(9);
        file.set_len(2 * PAGE_BYTES as u64).unwrap();
        file.set_len(4 * PAGE_BYTES as u64).unwrap();
        model.truncate(2 * PAGE_BYTES);
        model.resize(4 * PAGE_BYTES, 0);
        let across = PAGE_BYTES - 5;
        file.write(across as u64, &[7; 10]).unwrap();
        model[across..across + 10].fill(7);
        let again = files.open(&path, Access::Read).unwrap();
        let mut found = vec![1; model.len()];
        again.read(0, &mut found).unwrap();
        assert!(found == model);
        let mut part = vec![1; 20];
        again.read(across as u64 - 5, &mut part).unwrap();
        assert_eq!(part, model[across - 5..across + 15]);
        assert_eq!(again.len().unwrap(), model.len() as u64);
        let behind = again.read(model.len() as u64 - 1, &mut [0; 2]);
        assert_eq!(behind.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert!(
            files
                .open(&folder.path().join("other"), Access::Read)
                .is_err()
        );
        drop((file, again, files));
        assert!(fs::read(&path).unwrap() == before);
    }
}
