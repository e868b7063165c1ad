//! Reads an object at any position, for tables.

use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::object::RemoteObject;
use super::transfers::PendingBytes;
use crate::error::RemoteError;

/// The number of bytes in a request.
const BLOCK_BYTES: u64 = 2 << 20;

/// The number of blocks in memory, for all columns that are read in turn.
const HELD_BLOCKS: usize = 16;

/// A position in an object from which bytes are read.
pub(crate) struct RangeReader {
    blocks: Arc<Blocks>,
    position: u64,
}

/// The blocks of an object that were used last.
struct Blocks {
    object: Arc<RemoteObject>,
    held: Mutex<HeldBlocks>,
}

#[derive(Default)]
struct HeldBlocks {
    /// The most recently used block is last.
    blocks: VecDeque<(u64, FetchedBlock)>,
    /// The first error. It is kept because decoders rephrase it.
    failure: Option<RemoteError>,
}

enum FetchedBlock {
    Here(Bytes),
    Coming(PendingBytes),
}

impl RangeReader {
    pub(crate) fn new(object: Arc<RemoteObject>) -> Self {
        let held = Mutex::default();
        Self {
            blocks: Arc::new(Blocks { object, held }),
            position: 0,
        }
    }

    /// Returns another reader at this position of the same object.
    pub(crate) fn at(&self, position: u64) -> Self {
        Self {
            blocks: Arc::clone(&self.blocks),
            position,
        }
    }

    pub(crate) fn object(&self) -> &RemoteObject {
        &self.blocks.object
    }

    /// Returns the first error of a transfer, if any.
    pub(crate) fn failure(&self) -> Option<String> {
        let held = self.blocks.held();
        held.failure.as_ref().map(RemoteError::to_string)
    }
}

impl Read for RangeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.position >= self.blocks.object.bytes() {
            return Ok(0);
        }
        let block = self.blocks.get(self.position / BLOCK_BYTES)?;
        let offset = usize::try_from(self.position % BLOCK_BYTES).map_err(io::Error::other)?;
        // Each range had the requested length.
        let rest = block.get(offset..).filter(|rest| !rest.is_empty());
        let read = rest
            .ok_or_else(|| io::Error::other("internal error: a block ends before its end"))?
            .read(buffer)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for RangeReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.blocks.object.bytes().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

impl Blocks {
    fn held(&self) -> MutexGuard<'_, HeldBlocks> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a block. If it follows one that was read, requests the next blocks as well.
    fn get(&self, number: u64) -> io::Result<Bytes> {
        let mut held = self.held();
        let got = self.block(&mut held, number);
        got.map_err(|error| {
            held.failure.get_or_insert_with(|| error.clone());
            io::Error::other(error)
        })
    }

    fn block(&self, held: &mut HeldBlocks, number: u64) -> Result<Bytes, RemoteError> {
        let is_behind = held.position(number.wrapping_sub(1)).is_some();
        let block = match held.take(number) {
            Some(FetchedBlock::Here(bytes)) => bytes,
            Some(FetchedBlock::Coming(coming)) => self.arrived(number, coming)?,
            None => self.arrived(number, self.object.range(self.range(number))?)?,
        };
        held.put(number, FetchedBlock::Here(block.clone()));
        let next = number + 1;
        let is_last = self.range(next).is_empty();
        if is_behind && !is_last && held.position(next).is_none() {
            let coming = self.object.range(self.range(next))?;
            held.put(next, FetchedBlock::Coming(coming));
        }
        Ok(block)
    }

    fn range(&self, number: u64) -> std::ops::Range<u64> {
        let all = self.object.bytes();
        let start = number.saturating_mul(BLOCK_BYTES).min(all);
        start..start.saturating_add(BLOCK_BYTES).min(all)
    }

    fn arrived(&self, number: u64, coming: PendingBytes) -> Result<Bytes, RemoteError> {
        let range = self.range(number);
        let (start, length) = (range.start, range.end - range.start);
        let bytes = coming.wait().map_err(|refusal| {
            let error = self.object.cause(&refusal);
            RemoteError::new(format!("{error} (bytes from {start} on)"))
        })?;
        if bytes.len() as u64 != length {
            let (name, found) = (self.object.name().display(), bytes.len());
            return Err(RemoteError::new(format!(
                "{name}: received {found} bytes of {length} from {start} on"
            )));
        }
        Ok(bytes)
    }
}

impl HeldBlocks {
    fn position(&self, number: u64) -> Option<usize> {
        self.blocks.iter().position(|(held, _)| *held == number)
    }

    fn take(&mut self, number: u64) -> Option<FetchedBlock> {
        let (_, block) = self.blocks.remove(self.position(number)?)?;
        Some(block)
    }

    fn put(&mut self, number: u64, block: FetchedBlock) {
        if self.blocks.len() == HELD_BLOCKS {
            self.blocks.pop_front();
        }
        self.blocks.push_back((number, block));
    }
}
