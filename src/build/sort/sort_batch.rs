//! The postings of documents with ascending ids in memory, lane by lane, until they are sorted.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Result;
use crate::format::Posting;
use crate::index::sort_by_number;
use crate::invariant::{OrBug, at_mut};
use crate::sync::IgnorePoison;
use crate::threads::named;
use resemblance_sketch::lanes::LaneCode;

/// The minimum number of bits for offsets. With fewer bits batches would get too small; such lanes
/// take the wide layout.
const MIN_OFFSET_BITS: u32 = 20;

/// The part of a lane that a batch must hold, as the message of a bug names it.
const POSITIONS: &str = "the positions of postings in a batch";

/// Maximum number of documents in a batch: their offsets from the first fit 32 bits.
pub(super) const MAX_DOCUMENTS: u64 = 1 << 32;

/// The layout of a lane's postings in memory and in the temporary file. An id is stored as its
/// offset from that of the batch's first document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostingLayout {
    /// Code and offset in one number, with the offset in its low bits.
    Narrow { offset_bits: u32 },
    /// Side by side.
    Wide,
}

impl PostingLayout {
    /// Returns the layout for codes of a width in bits.
    pub(crate) fn for_code_bits(code_bits: u32) -> Self {
        let offset_bits = u64::BITS.saturating_sub(code_bits).min(u32::BITS);
        if offset_bits >= MIN_OFFSET_BITS {
            Self::Narrow { offset_bits }
        } else {
            Self::Wide
        }
    }

    /// Returns the maximum number of documents in a batch of this layout.
    pub(super) fn max_documents(self) -> u64 {
        match self {
            Self::Narrow { offset_bits } => 1 << offset_bits,
            Self::Wide => MAX_DOCUMENTS,
        }
    }

    /// Returns the size of a posting in memory, in bytes.
    pub(crate) fn memory_bytes(self) -> u64 {
        match self {
            Self::Narrow { .. } => size_of::<u64>() as u64,
            Self::Wide => size_of::<Posting>() as u64,
        }
    }

    /// Returns the size of a posting in the temporary file, in bytes.
    pub(crate) fn spilled_bytes(self) -> usize {
        match self {
            Self::Narrow { .. } => 8,
            Self::Wide => 12,
        }
    }

    /// Appends the postings that were encoded to `bytes`; those of a batch that begins with
    /// `first_id`.
    pub(crate) fn decode(self, bytes: &[u8], first_id: u64, postings: &mut Vec<Posting>) {
        match self {
            Self::Narrow { offset_bits } => {
                let (entries, _) = bytes.as_chunks::<8>();
                postings.extend(entries.iter().map(|bytes| {
                    let entry = u64::from_le_bytes(*bytes);
                    Posting {
                        code: entry >> offset_bits,
                        id: first_id + (entry & ((1 << offset_bits) - 1)),
                    }
                }));
            }
            Self::Wide => {
                let (entries, _) = bytes.as_chunks::<12>();
                postings.extend(entries.iter().map(|entry| {
                    let [code @ .., o0, o1, o2, o3] = *entry;
                    Posting {
                        code: u64::from_le_bytes(code),
                        id: first_id + u64::from(u32::from_le_bytes([o0, o1, o2, o3])),
                    }
                }));
            }
        }
    }
}

/// The postings of one lane.
#[derive(Debug)]
pub(super) enum PostingColumn {
    Narrow { offset_bits: u32, entries: Vec<u64> },
    Wide { entries: Vec<Posting> },
}

/// Room for sorting a column, used again and again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    narrow: Vec<u64>,
    wide: Vec<Posting>,
}

impl PostingColumn {
    fn new(layout: PostingLayout) -> Self {
        match layout {
            PostingLayout::Narrow { offset_bits } => Self::Narrow {
                offset_bits,
                entries: Vec::new(),
            },
            PostingLayout::Wide => Self::Wide {
                entries: Vec::new(),
            },
        }
    }

    pub(super) fn layout(&self) -> PostingLayout {
        match self {
            Self::Narrow { offset_bits, .. } => PostingLayout::Narrow {
                offset_bits: *offset_bits,
            },
            Self::Wide { .. } => PostingLayout::Wide,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow { entries, .. } => entries.len(),
            Self::Wide { entries } => entries.len(),
        }
    }

    /// Appends a posting; `max` is the capacity beyond which the column never grows.
    #[inline]
    fn push(&mut self, code: u64, offset: u64, max: u64) {
        match self {
            Self::Narrow {
                offset_bits,
                entries,
            } => {
                reserve(entries, max);
                entries.push(code << *offset_bits | offset);
            }
            Self::Wide { entries } => {
                reserve(entries, max);
                entries.push(Posting { code, id: offset });
            }
        }
    }

    /// Sorts by code. Offsets ascend already, and the sort keeps the order of equal codes.
    fn sort(&mut self, scratch: &mut Scratch) {
        match self {
            Self::Narrow {
                offset_bits,
                entries,
            } => {
                let bits = *offset_bits;
                sort_by_number(entries, &mut scratch.narrow, |entry| entry >> bits);
            }
            Self::Wide { entries } => {
                sort_by_number(entries, &mut scratch.wide, |posting| posting.code);
            }
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Narrow { entries, .. } => entries.clear(),
            Self::Wide { entries } => entries.clear(),
        }
    }

    /// Appends the bytes of some postings; [`PostingLayout::decode`] gives them back.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if there are no such positions.
    pub(crate) fn encode(&self, positions: Range<usize>, bytes: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Narrow { entries, .. } => {
                for entry in entries.get(positions).or_bug(POSITIONS)? {
                    bytes.extend_from_slice(&entry.to_le_bytes());
                }
            }
            Self::Wide { entries } => {
                for posting in entries.get(positions).or_bug(POSITIONS)? {
                    bytes.extend_from_slice(&posting.code.to_le_bytes());
                    // A batch has at most `MAX_DOCUMENTS`.
                    bytes.extend_from_slice(&(posting.id as u32).to_le_bytes());
                }
            }
        }
        Ok(())
    }

    /// Appends some postings, of a batch that begins with `first_id`.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) if there are no such positions.
    pub(crate) fn postings(
        &self,
        positions: Range<usize>,
        first_id: u64,
        postings: &mut Vec<Posting>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        self.encode(positions, &mut bytes)?;
        self.layout().decode(&bytes, first_id, postings);
        Ok(())
    }
}

/// Doubles the capacity, up to `max` entries. The last document of a batch may have postings beyond that.
#[inline]
fn reserve<T>(entries: &mut Vec<T>, max: u64) {
    if entries.len() == entries.capacity() {
        // A vector that grows by itself may double beyond `max`, and the plan has no memory for that.
        let length = entries.len();
        let more = match max.saturating_sub(length as u64) {
            0 => length / 64 + 1024,
            left => left.min(length.max(1024) as u64) as usize,
        };
        entries.reserve_exact(more);
    }
}

/// The limits of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortLimits {
    pub(crate) documents: u64,
    /// Number of postings in the last lane from which on no document is added, where documents have any
    /// number of postings there; `None` where they have at most one in each lane.
    pub(crate) kept_postings: Option<u64>,
}

/// Documents with ascending ids.
#[derive(Debug)]
pub(super) struct SortBatch {
    first_id: u64,
    documents: u64,
    limits: SortLimits,
    /// Offsets from the first id are below.
    max_offsets: u64,
    columns: Vec<PostingColumn>,
}

impl SortBatch {
    /// Makes a batch for documents from `first_id` on.
    pub(crate) fn new(layouts: &[PostingLayout], first_id: u64, limits: SortLimits) -> Self {
        let max_offsets = layouts.iter().map(|layout| layout.max_documents());
        Self {
            first_id,
            documents: 0,
            limits,
            max_offsets: max_offsets.min().unwrap_or(MAX_DOCUMENTS),
            columns: layouts.iter().copied().map(PostingColumn::new).collect(),
        }
    }

    /// Adds a document for which there is room, with its codes.
    ///
    /// # Errors
    /// [`Error::Bug`](crate::Error::Bug) for a code in a lane that does not exist.
    pub(crate) fn push(&mut self, id: u64, codes: &[LaneCode]) -> Result<()> {
        debug_assert!(self.has_room_for(id));
        let offset = id - self.first_id;
        let last = self.columns.len().saturating_sub(1);
        for LaneCode { lane, code } in codes {
            let lane = usize::from(*lane);
            let of_kept = self.limits.kept_postings.filter(|_| lane == last);
            let column = at_mut(&mut self.columns, lane)?;
            column.push(*code, offset, of_kept.unwrap_or(self.limits.documents));
        }
        self.documents += 1;
        Ok(())
    }

    /// Returns true if the document with this id, which is above all others here, may be added.
    pub(super) fn has_room_for(&self, id: u64) -> bool {
        let offset = id.checked_sub(self.first_id);
        let fits = offset.is_some_and(|offset| offset < self.max_offsets);
        let kept = self.columns.last().map_or(0, PostingColumn::len);
        let is_full = self
            .limits
            .kept_postings
            .is_some_and(|max| kept as u64 >= max);
        fits && self.documents < self.limits.documents && !is_full
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.documents == 0
    }

    pub(crate) fn first_id(&self) -> u64 {
        self.first_id
    }

    pub(super) fn columns(&self) -> &[PostingColumn] {
        &self.columns
    }

    /// Begins again, with its memory.
    pub(super) fn restart(&mut self, first_id: u64) {
        self.first_id = first_id;
        self.documents = 0;
        self.columns.iter_mut().for_each(PostingColumn::clear);
    }

    /// Sorts all lanes with this number of threads; `use_sorted` is called with each lane's number
    /// and postings as it is done.
    pub(super) fn sort(
        &mut self,
        threads: usize,
        use_sorted: impl Fn(usize, &PostingColumn) + Sync,
    ) {
        let next = AtomicUsize::new(0);
        let columns: Vec<Mutex<&mut PostingColumn>> =
            self.columns.iter_mut().map(Mutex::new).collect();
        let work = || {
            let mut scratch = Scratch::default();
            loop {
                let lane = next.fetch_add(1, Ordering::Relaxed);
                let Some(lock) = columns.get(lane) else {
                    return;
                };
                let mut column = lock.lock().ignore_poison();
                column.sort(&mut scratch);
                use_sorted(lane, &column);
            }
        };
        std::thread::scope(|scope| {
            let others = threads.min(columns.len()).saturating_sub(1);
            for _ in 0..others {
                // Where no thread can be started, the others do its work.
                let _ = named("sort").spawn_scoped(scope, work);
            }
            work();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(number: u64) -> u64 {
        let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    #[test]
    fn sort_batch_sorts_every_lane() {
        let bits = [64, 40, 32, 44, 45];
        let layouts = bits.map(PostingLayout::for_code_bits);
        assert_eq!(layouts[0], PostingLayout::Wide);
        assert_eq!(layouts[1], PostingLayout::Narrow { offset_bits: 24 });
        assert_eq!(layouts[2], PostingLayout::Narrow { offset_bits: 32 });
        assert_eq!(layouts[4], PostingLayout::Wide);
        for threads in [1, 3] {
            let limits = SortLimits {
                documents: 2_000,
                kept_postings: None,
            };
            let mut batch = SortBatch::new(&layouts, 77, limits);
            let mut expected = vec![Vec::new(); bits.len()];
            for offset in 0..2_000u64 {
                assert!(batch.has_room_for(77 + offset));
                let codes = bits.map(|bits| {
                    // Some codes are frequent, including all ones, and some lanes have none.
                    let code = [u64::MAX, mixed(offset), mixed(offset % 7)][offset as usize % 3];
                    (offset % 11 != u64::from(bits) % 11).then_some(code >> (64 - bits))
                });
                let row = (0..)
                    .zip(codes)
                    .filter_map(|(lane, code)| code.map(|code| LaneCode { lane, code }));
                batch.push(77 + offset, &row.collect::<Vec<_>>()).unwrap();
                for (lane, code) in expected.iter_mut().zip(codes) {
                    lane.extend(code.map(|code| Posting {
                        code,
                        id: 77 + offset,
                    }));
                }
            }
            assert!(!batch.has_room_for(2_077));
            let sorted = AtomicUsize::new(0);
            batch.sort(threads, |lane, column| {
                let mut expected = expected[lane].clone();
                expected.sort_unstable();
                let (mut held, mut bytes, mut spilled) = (Vec::new(), Vec::new(), Vec::new());
                column.postings(0..column.len(), 77, &mut held).unwrap();
                assert_eq!(held, expected);
                column.encode(0..column.len(), &mut bytes).unwrap();
                assert_eq!(bytes.len(), held.len() * layouts[lane].spilled_bytes());
                column.layout().decode(&bytes, 77, &mut spilled);
                assert_eq!(spilled, expected);
                sorted.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(sorted.into_inner(), bits.len());
            batch.restart(5);
            assert!(batch.is_empty() && batch.columns().iter().all(|column| column.len() == 0));
        }
    }
}
