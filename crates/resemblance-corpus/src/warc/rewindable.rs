//! A reader that can go back.

use std::io::{self, BufRead, Read};

/// The number of bytes that are read or searched at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A reader that keeps the bytes since a mark, up to a limit, so that a damaged record can be
/// searched for the next one.
pub(super) struct Rewindable<R> {
    pub(super) inner: R,
    kept: Vec<u8>,
    /// The index in `kept` of the next byte.
    next: usize,
    /// The index in `kept` of the mark.
    marked: usize,
    /// The offset of the first kept byte.
    start: u64,
    max_kept: usize,
    /// The first error of the inner reader, which is returned again by each later read.
    failure: Option<io::Error>,
}

impl<R> Rewindable<R> {
    pub(super) fn new(inner: R, max_kept: usize) -> Self {
        Self {
            inner,
            kept: Vec::new(),
            next: 0,
            marked: 0,
            start: 0,
            max_kept,
            failure: None,
        }
    }

    /// Returns the offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.start + self.next as u64
    }

    /// Allows the bytes before the next one to be forgotten.
    pub(super) fn mark(&mut self) {
        self.marked = self.next;
        // Each byte is moved a few times at most.
        if self.next > self.kept.len() / 2 {
            self.forget(self.next);
        }
    }

    fn forget(&mut self, bytes: usize) {
        self.kept.drain(..bytes);
        self.start += bytes as u64;
        self.next -= bytes;
        self.marked = self.marked.saturating_sub(bytes);
    }

    /// Goes to an offset, or as near to it as the kept bytes are.
    pub(super) fn seek(&mut self, offset: u64) {
        let index = offset.saturating_sub(self.start);
        self.next =
            usize::try_from(index).map_or(self.kept.len(), |index| index.min(self.kept.len()));
    }

    /// Returns the bytes from an offset to the next one, if they are still kept.
    pub(super) fn since(&self, offset: u64) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.kept.get(from..self.next)
    }

    /// Returns the next bytes that have been read.
    pub(super) fn rest(&self) -> &[u8] {
        self.kept.get(self.next..).unwrap_or(&[])
    }

    /// Returns the error of the inner reader, if there was one.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}

impl<R: Read> Rewindable<R> {
    /// Returns at least this number of the next bytes, and fewer only at the end.
    pub(super) fn peek(&mut self, bytes: usize) -> io::Result<&[u8]> {
        while self.kept.len() - self.next < bytes && self.read_more()? > 0 {}
        Ok(self.rest())
    }

    /// Skips bytes without keeping them, up to the end.
    pub(super) fn skip(&mut self, mut bytes: u64) -> io::Result<()> {
        while let piece @ 1.. = bytes.min(self.peek(1)?.len() as u64) {
            self.consume(piece as usize);
            self.mark();
            bytes -= piece;
        }
        Ok(())
    }

    /// Goes to what `find` finds in the next bytes, or to the end and returns false. `find` sees the
    /// last `overlap` bytes again, which may be a beginning.
    pub(super) fn search(
        &mut self,
        overlap: usize,
        find: impl Fn(&[u8]) -> Option<usize>,
    ) -> io::Result<bool> {
        loop {
            let available = self.peek(CHUNK_BYTES)?;
            let (length, found) = (available.len(), find(available));
            let is_end = length < CHUNK_BYTES;
            let before = if is_end { length } else { length - overlap };
            self.consume(found.unwrap_or(before));
            if found.is_some() || is_end {
                return Ok(found.is_some());
            }
            self.mark();
        }
    }

    fn read_more(&mut self) -> io::Result<usize> {
        if let Some(failure) = &self.failure {
            return Err(io::Error::new(failure.kind(), failure.to_string()));
        }
        if self.kept.len() > self.max_kept {
            let before_mark = Some(self.marked.min(self.next)).filter(|bytes| *bytes > 0);
            self.forget(before_mark.unwrap_or(self.next));
        }
        let length = self.kept.len();
        let mut chunk = self.inner.by_ref().take(CHUNK_BYTES as u64);
        if let Err(error) = chunk.read_to_end(&mut self.kept) {
            let shown = io::Error::new(error.kind(), error.to_string());
            self.failure = Some(error);
            if self.kept.len() == length {
                return Err(shown);
            }
        }
        Ok(self.kept.len() - length)
    }
}

impl<R: Read> Read for Rewindable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(buffer)?;
        self.consume(length);
        Ok(length)
    }
}

impl<R: Read> BufRead for Rewindable<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.peek(1)
    }

    fn consume(&mut self, bytes: usize) {
        self.next = self.kept.len().min(self.next + bytes);
    }
}
