//! Reads and verifies single pages of a file, without the engine and without changes.

use std::borrow::Cow;

use crate::journaled_file::JournaledFile;
use crate::page_layout::{Child, Geometry, Page, Widths};

/// The length of a page that contains a row of maximum length.
const MAX_PAGE_BYTES: usize = 128 << 20;

/// The pages of an open file.
#[derive(Debug)]
pub struct PageFile {
    pub(super) file: JournaledFile,
    pub(super) length_bytes: u64,
    pub(super) geometry: Geometry,
}

impl PageFile {
    /// Returns the offset and the length of a page in bytes, or `None` if it is not within the
    /// file.
    pub(crate) fn place(&self, page: &Child) -> Option<(u64, usize)> {
        let (offset, length) = self.geometry.place(page)?;
        let end = offset.checked_add(length as u64)?;
        (end <= self.length_bytes && length <= MAX_PAGE_BYTES).then_some((offset, length))
    }

    /// Returns the length of the file.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Reads bytes of the file. The error describes why they cannot be read.
    pub fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, Cow<'static, str>> {
        let mut bytes = vec![0; length];
        match self.file.read(offset, &mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) => Err(format!("it cannot be read: {error}").into()),
        }
    }

    /// Returns the bytes of a page if they match its checksum.
    pub(crate) fn verified(&self, page: &Child, widths: Widths) -> Option<Vec<u8>> {
        let (offset, length) = self.place(page)?;
        let bytes = self.read(offset, length).ok()?;
        is_verified(&bytes, widths, page).then_some(bytes)
    }

    /// Returns true if a page has the checksum that the reference to it states.
    pub(crate) fn is_whole(&self, page: &Child, widths: Widths) -> bool {
        self.verified(page, widths).is_some()
    }
}

pub(crate) fn is_verified(bytes: &[u8], widths: Widths, page: &Child) -> bool {
    Page::parse(bytes, widths).is_some_and(|parsed| parsed.checksum() == page.checksum)
}
