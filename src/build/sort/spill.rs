//! Sorted postings in a temporary file.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::build::sort::sort_batch::{PostingColumn, PostingLayout};
use crate::engine::TemporaryFile;
use crate::error::{Error, Result};
use crate::format::Posting;
use crate::sync::IgnorePoison;

const CHECKSUM_BYTES: usize = size_of::<u32>();

/// A sorted lane of a batch in the file: chunks of postings, a CRC-32 after each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    layout: PostingLayout,
    first_id: u64,
    offset: u64,
    postings: usize,
}

/// The one file of a build, into which any thread writes and from which any thread reads.
#[derive(Debug)]
pub(super) struct Spill {
    folder: PathBuf,
    /// Postings that are read at a time.
    chunk_postings: usize,
    /// Made when it is needed.
    file: Mutex<Option<SpillFile>>,
}

#[derive(Debug)]
struct SpillFile {
    // Fields drop in this order: the file is closed before its name is removed.
    file: File,
    _path: TemporaryFile,
    size_bytes: u64,
}

impl Extent {
    pub(crate) fn postings(&self) -> usize {
        self.postings
    }
}

impl Spill {
    pub(crate) fn new(folder: &Path, chunk_postings: usize) -> Self {
        Self {
            folder: folder.into(),
            chunk_postings: chunk_postings.max(1),
            file: Mutex::new(None),
        }
    }

    pub(super) fn chunk_postings(&self) -> usize {
        self.chunk_postings
    }

    fn lock(&self) -> MutexGuard<'_, Option<SpillFile>> {
        self.file.lock().ignore_poison()
    }

    /// Returns the number of bytes written so far.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.lock().as_ref().map_or(0, |file| file.size_bytes)
    }

    fn failure(&self, source: std::io::Error) -> Error {
        let folder = self.folder.display();
        Error::Io {
            action: format!("sorting postings in a temporary file in {folder}"),
            source,
        }
    }

    /// Appends a sorted column of a batch that begins with `first_id`.
    pub(super) fn write(&self, column: &PostingColumn, first_id: u64) -> Result<Extent> {
        let mut guard = self.lock();
        let spill = match &mut *guard {
            Some(spill) => spill,
            None => {
                let (path, file) = TemporaryFile::create_file(&self.folder)?;
                guard.insert(SpillFile {
                    file,
                    _path: path,
                    size_bytes: 0,
                })
            }
        };
        let extent = Extent {
            layout: column.layout(),
            first_id,
            offset: spill.size_bytes,
            postings: column.len(),
        };
        let mut bytes = Vec::new();
        for start in (0..column.len()).step_by(self.chunk_postings) {
            let end = column.len().min(start + self.chunk_postings);
            bytes.clear();
            column.encode(start..end, &mut bytes)?;
            let checksum = crc32fast::hash(&bytes);
            bytes.extend_from_slice(&checksum.to_le_bytes());
            spill.append(&bytes).map_err(|error| self.failure(error))?;
        }
        Ok(extent)
    }

    /// Appends the postings of one chunk, from 0; none after the last.
    pub(crate) fn read(
        &self,
        extent: &Extent,
        chunk: usize,
        postings: &mut Vec<Posting>,
    ) -> Result<()> {
        let before = chunk.saturating_mul(self.chunk_postings);
        let count = extent
            .postings
            .saturating_sub(before)
            .min(self.chunk_postings);
        if count == 0 {
            return Ok(());
        }
        let width = extent.layout.spilled_bytes();
        let chunk_start = (before * width + chunk * CHECKSUM_BYTES) as u64;
        let mut bytes = vec![0; count * width + CHECKSUM_BYTES];
        // The lock covers seek and read together, since all threads share one position in the file.
        match &mut *self.lock() {
            Some(spill) => spill.read(extent.offset + chunk_start, &mut bytes),
            None => Err(std::io::ErrorKind::NotFound.into()),
        }
        .map_err(|error| self.failure(error))?;
        let (body, checksum) = bytes.split_at(count * width);
        if crc32fast::hash(body).to_le_bytes() != *checksum {
            let place = format!("a temporary file in {}", self.folder.display());
            let detail = "the bytes read differ from those written; build again, on another disk";
            return Err(Error::corrupt(place, detail));
        }
        extent.layout.decode(body, extent.first_id, postings);
        Ok(())
    }
}

impl SpillFile {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(self.size_bytes))?;
        self.file.write_all(bytes)?;
        self.size_bytes += bytes.len() as u64;
        Ok(())
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::sort::sort_batch::{SortBatch, SortLimits};
    use resemblance_sketch::lanes::LaneCode;

    fn sorted_batch(documents: u64) -> SortBatch {
        let limits = SortLimits {
            documents,
            kept_postings: None,
        };
        let mut batch = SortBatch::new(&[64, 40].map(PostingLayout::for_code_bits), 9, limits);
        for document in 0..documents {
            let code = document.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let first = LaneCode { lane: 0, code };
            let second = LaneCode {
                lane: 1,
                code: code >> 24,
            };
            let count = if document.is_multiple_of(3) { 1 } else { 2 };
            let codes = &[first, second][..count];
            batch.push(9 + document, codes).unwrap();
        }
        batch.sort(1, |_, _| {});
        batch
    }

    fn all(spill: &Spill, extent: &Extent) -> Result<Vec<Posting>> {
        let mut postings = Vec::new();
        for chunk in 0.. {
            let before = postings.len();
            spill.read(extent, chunk, &mut postings)?;
            if postings.len() == before {
                break;
            }
        }
        Ok(postings)
    }

    #[test]
    fn spilled_documents_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        for (documents, chunk) in [(0, 5), (1, 5), (100, 7), (100, 100), (100, 1000)] {
            let spill = Spill::new(folder.path(), chunk);
            let batch = sorted_batch(documents);
            let write = |column| spill.write(column, batch.first_id()).unwrap();
            let extents: Vec<Extent> = batch.columns().iter().map(write).collect();
            for (column, extent) in batch.columns().iter().zip(&extents) {
                let mut expected = Vec::new();
                column
                    .postings(0..column.len(), batch.first_id(), &mut expected)
                    .unwrap();
                assert_eq!(all(&spill, extent).unwrap(), expected);
            }
        }
    }

    #[test]
    fn spill_detects_a_changed_byte() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::new(folder.path(), 8);
        let batch = sorted_batch(20);
        let extent = spill.write(&batch.columns()[1], 9).unwrap();
        all(&spill, &extent).unwrap();
        for offset in 0..spill.size_bytes() {
            let change = |spill: &Spill| {
                let mut guard = spill.lock();
                let file = guard.as_mut().unwrap();
                let mut byte = [0];
                file.read(offset, &mut byte).unwrap();
                file.file.seek(SeekFrom::Start(offset)).unwrap();
                file.file.write_all(&[byte[0] ^ 4]).unwrap();
            };
            change(&spill);
            assert!(matches!(all(&spill, &extent), Err(Error::Corrupt { .. })));
            change(&spill);
        }
    }
}
