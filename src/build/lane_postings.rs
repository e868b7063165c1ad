//! Iterates over the merged postings of a lane, and tells the progress.

use std::vec;

use crate::build::sort::LaneChunks;
use crate::error::Result;
use crate::format::Posting;
use crate::invariant::invariant;
use crate::types::{Phase, Watch};

/// The merge of all lanes: postings so far, of those that were pushed.
pub(super) struct MergeCount<'a, 'w> {
    watch: &'a mut Watch<'w>,
    done: u64,
    total: u64,
}

impl<'a, 'w> MergeCount<'a, 'w> {
    pub(super) fn new(total: u64, watch: &'a mut Watch<'w>) -> Result<Self> {
        watch.tell(Phase::WritingPostings, 0, total)?;
        Ok(Self {
            watch,
            done: 0,
            total,
        })
    }

    fn add(&mut self, postings: usize) -> Result<()> {
        self.done += postings as u64;
        self.watch
            .tell(Phase::WritingPostings, self.done, self.total)
    }

    /// Checks that the lanes together had as many postings as were pushed.
    pub(super) fn finish(self) -> Result<()> {
        let (done, total) = (self.done, self.total);
        invariant!(done == total, "merged {done} of {total} postings");
        Ok(())
    }
}

/// The postings of a lane; progress is reported after each chunk.
pub(super) struct Postings<'a, 'c, 'w> {
    chunks: LaneChunks<'a>,
    chunk: vec::IntoIter<Posting>,
    count: &'a mut MergeCount<'c, 'w>,
}

impl<'a, 'c, 'w> Postings<'a, 'c, 'w> {
    pub(crate) fn new(chunks: LaneChunks<'a>, count: &'a mut MergeCount<'c, 'w>) -> Self {
        Self {
            chunks,
            chunk: Vec::new().into_iter(),
            count,
        }
    }

    fn next_chunk(&mut self) -> Option<Result<Posting>> {
        let chunk = match self.chunks.next()? {
            Ok(chunk) => chunk,
            Err(error) => return Some(Err(error)),
        };
        if let Err(error) = self.count.add(chunk.len()) {
            return Some(Err(error));
        }
        self.chunk = chunk.into_iter();
        self.chunk.next().map(Ok)
    }
}

impl Iterator for Postings<'_, '_, '_> {
    type Item = Result<Posting>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.chunk.next() {
            Some(posting) => Some(Ok(posting)),
            None => self.next_chunk(),
        }
    }
}
