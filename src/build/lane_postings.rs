//! Iterates over the merged postings of a lane, and reports progress.

use std::vec;

use crate::build::sort::LaneChunks;
use crate::error::Result;
use crate::format::Posting;
use crate::invariant::invariant;

/// Called with the number of postings merged so far and in all; an error ends the work.
pub(super) type ReportProgress<'a> = dyn FnMut(u64, u64) -> Result<()> + 'a;

/// Progress of the merge of all lanes.
pub(super) struct Progress<'a> {
    report: &'a mut ReportProgress<'a>,
    done: u64,
    total: u64,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(total: u64, report: &'a mut ReportProgress<'a>) -> Self {
        Self {
            report,
            done: 0,
            total,
        }
    }

    /// Checks that the lanes together had as many postings as were pushed.
    pub(crate) fn finish(self) -> Result<()> {
        let (done, total) = (self.done, self.total);
        invariant!(done == total, "merged {done} of {total} postings");
        Ok(())
    }
}

/// The postings of a lane; progress is reported after each chunk.
pub(super) struct Postings<'a, 'p> {
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
        if let Err(error) = (progress.report)(progress.done, progress.total) {
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
