//! The merged postings of a lane one by one, while someone is told how far they are.

use std::vec;

use crate::build::sort::LaneChunks;
use crate::error::Result;
use crate::format::Posting;

/// Told of postings that are written, and of all there are; it may end the work with an error.
pub(crate) type Tell<'a> = dyn FnMut(u64, u64) -> Result<()> + 'a;

/// How far the merge of all lanes is.
pub(crate) struct Progress<'a> {
    tell: &'a mut Tell<'a>,
    done: u64,
    all: u64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(all: u64, tell: &'a mut Tell<'a>) -> Self {
        Self { tell, done: 0, all }
    }
}

/// The postings of a lane, and someone is told of each chunk.
pub(crate) struct Postings<'a, 'p> {
    chunks: LaneChunks<'a>,
    chunk: vec::IntoIter<Posting>,
    progress: &'a mut Progress<'p>,
}

impl<'a, 'p> Postings<'a, 'p> {
    pub(crate) fn new(chunks: LaneChunks<'a>, progress: &'a mut Progress<'p>) -> Self {
        Self {
            chunks,
            chunk: Vec::new().into_iter(),
            progress,
        }
    }

    fn next_chunk(&mut self) -> Option<Result<Posting>> {
        let chunk = match self.chunks.next()? {
            Ok(chunk) => chunk,
            Err(error) => return Some(Err(error)),
        };
        let progress = &mut *self.progress;
        progress.done += chunk.len() as u64;
        if let Err(error) = (progress.tell)(progress.done, progress.all) {
            return Some(Err(error));
        }
        self.chunk = chunk.into_iter();
        self.chunk.next().map(Ok)
    }
}

impl Iterator for Postings<'_, '_> {
    type Item = Result<Posting>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.chunk.next() {
            Some(posting) => Some(Ok(posting)),
            None => self.next_chunk(),
        }
    }
}
