//! A cache of verified blocks, which probes read without the engine.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

use crate::error::Result;
use crate::format::{Block, Posting, VerifiedHeader};
use crate::index::clock::{Clock, UsedMark};
use crate::index::lane_index::{LaneIndex, RowSearch};
use crate::index::mixer::Mixer;
use crate::invariant::{OrBug, at, at_mut};
use crate::sync::IgnorePoison;
use resemblance_sketch::sketch::mix64;

/// Number of parts that are locked one by one.
const SHARDS: usize = 16;

/// The approximate number of bytes of a block besides its value.
const ENTRY_BYTES: usize = 320;

/// In a full cache, one in this number of blocks that probes read replaces another. Otherwise a
/// store larger than the cache would copy every block that it reads.
const KEPT_ONE_IN: u64 = 8;

/// Run, lane and last posting of a block.
type BlockPlace = (u32, u16, Posting);

/// A block that was verified when it was read from the file.
#[derive(Debug)]
pub(super) struct CachedBlock {
    header: VerifiedHeader,
    value: Box<[u8]>,
    place: BlockPlace,
    used: UsedMark,
}

impl CachedBlock {
    /// Reads bytes near the place where a code is searched for, and returns something that depends
    /// on them. Calling this for many blocks before searching the first waits for memory once
    /// instead of for each block.
    #[inline]
    pub(super) fn touch(&self, code: u64) -> u8 {
        let places = self.header.likely_places(code);
        let bytes = places.filter_map(|place| self.value.get(place));
        bytes.fold(0, |all, byte| all ^ byte)
    }

    /// Reads what [`covering`](Self::covering) reads and writes.
    #[inline]
    fn touch_header(self: &Arc<Self>) -> usize {
        let previous = self.header.previous().map_or(0, |posting| posting.code);
        Arc::strong_count(self) ^ previous as usize ^ usize::from(self.used.is_set())
    }

    /// Returns this block, which is the first in the cache that ends at or after a posting, if no
    /// other block is between them.
    #[inline]
    fn covering(self: &Arc<Self>, target: Posting) -> Option<Arc<Self>> {
        if self.header.previous() >= Some(target) {
            return None;
        }
        self.used.set();
        Some(Arc::clone(self))
    }

    #[inline]
    pub(super) fn block(&self) -> Result<Block<'_>> {
        self.header.block(&self.value)
    }

    fn size_bytes(&self) -> usize {
        self.value.len() + ENTRY_BYTES
    }
}

/// The kind of reader that asks for blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockAccess {
    /// A probe, whose blocks may replace other blocks in the cache.
    Probe,
    /// A sweep. It reads many blocks that will not be needed again soon; they are kept if there is
    /// room.
    Sweep,
}

/// Blocks that were read and verified, within a limit of bytes. A block is found by any posting that it
/// holds or would hold: it states which posting is before its first. The cache drops those first that no
/// probe has used lately (the clock algorithm).
///
/// Blocks never change, so nothing here is ever stale, except blocks that a transaction read of runs that it
/// then rolled back.
#[derive(Debug)]
pub(crate) struct BlockCache {
    /// Each lane of a run is in one of them.
    shards: Box<[RwLock<Shard>]>,
    /// Bytes held, and those of blocks that are about to be.
    size_bytes: AtomicUsize,
    max_bytes: AtomicUsize,
    /// The index of the shard that the clock examines next when an entry has to be dropped.
    hand: Mutex<usize>,
    /// The number of blocks that were read while there was no room.
    read_in_vain: AtomicU64,
}

#[derive(Debug, Default)]
struct Shard {
    lanes: HashMap<(u32, u16), LaneIndex<Arc<CachedBlock>>, BuildHasherDefault<Mixer>>,
    /// The same blocks, in the order of their replacement.
    clock: Clock<Arc<CachedBlock>>,
}

impl BlockCache {
    /// Makes a cache that holds at most about `max_bytes` bytes.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            size_bytes: AtomicUsize::new(0),
            max_bytes: AtomicUsize::new(max_bytes),
            hand: Mutex::new(0),
            read_in_vain: AtomicU64::new(0),
        }
    }

    fn shard(&self, run: u32, lane: u16) -> Option<&RwLock<Shard>> {
        self.shards.get(shard_of(run, lane))
    }

    /// Returns the block of a lane that holds a posting, or would hold it, if it is here.
    #[inline]
    pub(super) fn get(&self, run: u32, lane: u16, target: Posting) -> Option<Arc<CachedBlock>> {
        let shard = self.shard(run, lane)?.read().ignore_poison();
        let (_, block) = shard.search(run, lane, target)?.first()?;
        block.covering(target)
    }

    /// Like [`get`](Self::get), for places in several lanes: their waits for memory overlap.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if a lane is in none of the shards.
    pub(super) fn get_all(
        &self,
        asked: &[Option<(u32, u16, Posting)>],
    ) -> Result<Vec<Option<Arc<CachedBlock>>>> {
        let mut is_asked = [false; SHARDS];
        for (run, lane, _) in asked.iter().flatten() {
            *at_mut(&mut is_asked, shard_of(*run, *lane))? = true;
        }
        // Each is locked once, and all in their order: a lock waits for writers that wait for locks that others hold.
        let mut shards: [Option<RwLockReadGuard<'_, Shard>>; SHARDS] = [const { None }; SHARDS];
        for ((locked, shard), is_asked) in shards.iter_mut().zip(&self.shards).zip(is_asked) {
            *locked = is_asked.then(|| shard.read().ignore_poison());
        }
        let mut searches = Vec::with_capacity(asked.len());
        for asked in asked {
            let Some((run, lane, target)) = *asked else {
                searches.push(None);
                continue;
            };
            let locked = at(&shards, shard_of(run, lane))?.as_ref();
            let shard = locked.or_bug("a shard that was locked")?;
            searches.push(shard.search(run, lane, target));
        }
        let touched = searches.iter().flatten().map(RowSearch::touch);
        std::hint::black_box(touched.fold(0, |all, part| all ^ part));
        let first = searches
            .iter()
            .map(|search| Some(&search.as_ref()?.first()?.1));
        let found: Vec<Option<&Arc<CachedBlock>>> = first.collect();
        let touched = found.iter().flatten().map(|block| block.touch_header());
        std::hint::black_box(touched.fold(0, |all, part| all ^ part));
        let covering = found.into_iter().zip(asked).map(|(block, asked)| {
            let (_, _, target) = (*asked)?;
            block?.covering(target)
        });
        Ok(covering.collect())
    }

    /// Returns true if the block of a lane that holds a posting, or would hold it, is here.
    pub(crate) fn holds(&self, run: u32, lane: u16, target: Posting) -> bool {
        self.get(run, lane, target).is_some()
    }

    /// Keeps a block whose value has just been read and verified, unless there is no room for it.
    pub(super) fn keep(
        &self,
        run: u32,
        lane: u16,
        header: VerifiedHeader,
        value: &[u8],
        access: BlockAccess,
    ) -> Option<Arc<CachedBlock>> {
        let shard = self.shard(run, lane)?;
        let size = value.len() + ENTRY_BYTES;
        if !self.reserve(size, access) {
            return None;
        }
        // Copied before the lock is taken: probes of other lanes wait for it.
        let block = Arc::new(CachedBlock {
            header,
            value: value.into(),
            place: (run, lane, header.last()),
            used: UsedMark::default(),
        });
        if !shard.write().ignore_poison().push(Arc::clone(&block)) {
            // The lock is not held while the file is read, so another thread may have read the same
            // block.
            self.size_bytes.fetch_sub(size, Ordering::Relaxed);
        }
        Some(block)
    }

    /// Makes room for a block, and returns true if there is.
    fn reserve(&self, size: usize, access: BlockAccess) -> bool {
        let max_bytes = self.max_bytes.load(Ordering::Relaxed);
        if size > max_bytes {
            return false;
        }
        if self.size_bytes.load(Ordering::Relaxed) + size > max_bytes {
            let read = self.read_in_vain.fetch_add(1, Ordering::Relaxed);
            if access == BlockAccess::Sweep || !read.is_multiple_of(KEPT_ONE_IN) {
                return false;
            }
        }
        self.size_bytes.fetch_add(size, Ordering::Relaxed);
        self.drop_beyond(max_bytes);
        true
    }

    /// Drops blocks until at most this number of bytes is held.
    fn drop_beyond(&self, max_bytes: usize) {
        if self.size_bytes.load(Ordering::Relaxed) <= max_bytes {
            return;
        }
        // Only one thread at a time makes room. Others would drop blocks that are still needed.
        let mut hand = self.hand.lock().ignore_poison();
        // In the first round over all shards, every block may be in use; the second finds an unused
        // one.
        for _ in 0..=2 * SHARDS {
            let Some(shard) = self.shards.get(*hand) else {
                return;
            };
            let mut held = shard.write().ignore_poison();
            while let Some(dropped) = held.drop_one() {
                let before = self.size_bytes.fetch_sub(dropped, Ordering::Relaxed);
                if before - dropped <= max_bytes {
                    return;
                }
            }
            *hand = (*hand + 1) % SHARDS;
        }
    }

    /// Sets the limit, and drops blocks beyond it.
    pub(crate) fn set_max_bytes(&self, max_bytes: usize) {
        if self.max_bytes.swap(max_bytes, Ordering::Relaxed) > max_bytes {
            self.drop_beyond(max_bytes);
        }
    }

    /// Drops the blocks of all runs but these.
    pub(crate) fn retain_runs(&self, is_kept: impl Fn(u32) -> bool) {
        for shard in &self.shards {
            let mut held = shard.write().ignore_poison();
            for block in held.clock.extract(|block| !is_kept(block.place.0)) {
                held.forget(block.place);
                let freed = block.size_bytes();
                self.size_bytes.fetch_sub(freed, Ordering::Relaxed);
            }
        }
    }

    /// Bytes held.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Relaxed) as u64
    }
}

fn shard_of(run: u32, lane: u16) -> usize {
    let hash = mix64(u64::from(run) << 16 | u64::from(lane));
    (hash % SHARDS as u64) as usize
}

impl Shard {
    /// Begins to search for the first block of a lane that ends at or after a posting.
    #[inline]
    fn search(
        &self,
        run: u32,
        lane: u16,
        target: Posting,
    ) -> Option<RowSearch<'_, Arc<CachedBlock>>> {
        self.lanes.get(&(run, lane))?.search(target)
    }

    /// Adds a block. Returns false if it exists already.
    fn push(&mut self, block: Arc<CachedBlock>) -> bool {
        let (run, lane, last) = block.place;
        let blocks = self.lanes.entry((run, lane)).or_default();
        let is_new = blocks.insert(last, Arc::clone(&block));
        if is_new {
            self.clock.push(block);
        }
        is_new
    }

    /// Drops the next block that no probe has used since the hand passed it last, and returns its size; `None` once
    /// the hand has passed the last.
    fn drop_one(&mut self) -> Option<usize> {
        let dropped = self.clock.pop_unused(|block| block.used.take())?;
        self.forget(dropped.place);
        Some(dropped.size_bytes())
    }

    /// Takes a block out of its lane.
    fn forget(&mut self, (run, lane, last): BlockPlace) {
        if let Some(blocks) = self.lanes.get_mut(&(run, lane)) {
            blocks.remove(last);
            if blocks.is_empty() {
                self.lanes.remove(&(run, lane));
            }
        }
    }
}

#[cfg(test)]
#[path = "block_cache_tests.rs"]
mod tests;
