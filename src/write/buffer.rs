//! The transaction buffer: postings of a transaction's own documents.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::Result;
use crate::format::Posting;
use crate::index::{
    CodeRange, Memtable, ProbeRange, SegmentBuilder, SweepControl, TOMBSTONE_LANE, VisitProbe,
};
use crate::read::Visit;
use crate::state::{SharedContext, document_codes};
use resemblance_sketch::lanes::LaneCode;
use resemblance_sketch::sketch::Signature;

/// Number of unsorted documents that a probe scans; beyond it the probe sorts them first.
const TAIL_DOCUMENTS: u64 = 64;

/// The lane of keys. It has its own table, so a probe asks for it alone.
const KEY_LANE: u16 = 0;

/// Postings that no reader sees yet. They are sorted at the end of the transaction or when a probe
/// needs them, so that a transaction which only inserts sorts once.
pub(super) struct TransactionBuffer {
    segments: Memtable,
    tail: SegmentBuilder,
    /// The key lane again, always in order: every insert under a key looks into it.
    keys: BTreeSet<(u64, u64)>,
    /// The codes of one document, here so that their memory is used again.
    row: Vec<LaneCode>,
}

impl TransactionBuffer {
    pub(super) fn new(lanes: u16) -> Self {
        let lanes: Arc<[u16]> = (0..lanes).chain([TOMBSTONE_LANE]).collect();
        Self {
            segments: Memtable::default(),
            tail: SegmentBuilder::new(lanes),
            keys: BTreeSet::new(),
            row: Vec::new(),
        }
    }

    /// Indexes a document under its codes.
    pub(super) fn push(
        &mut self,
        context: &SharedContext,
        id: u64,
        key_code: Option<u64>,
        signature: &Signature,
    ) -> Result<()> {
        document_codes(context, key_code, signature, &mut self.row)?;
        if let Some(code) = key_code {
            self.keys.insert((code, id));
        }
        self.tail.push(id, &self.row)
    }

    /// Removes the key of a deleted document immediately. If a document is replaced over and over,
    /// a look-up of its key then meets one posting instead of one for each replacement.
    pub(super) fn remove_key(&mut self, key_code: Option<u64>, id: u64) {
        if let Some(code) = key_code {
            self.keys.remove(&(code, id));
        }
    }

    /// Marks a document that is in no run as deleted, so that the next flush leaves it out.
    pub(super) fn delete(&mut self, id: u64) -> Result<()> {
        let code = LaneCode {
            lane: TOMBSTONE_LANE,
            code: id,
        };
        self.tail.push(id, &[code])
    }

    /// Visits the postings within `ranges`, each with the index of its range, in no order.
    pub(super) fn probe(&mut self, ranges: &[CodeRange], visit: &mut Visit<'_>) -> Result<()> {
        debug_assert!(
            ranges.len() == 1 || ranges.iter().all(|range| range.lane != KEY_LANE),
            "a key is probed for alone"
        );
        let is_key = |range: &&CodeRange| range.lane == KEY_LANE;
        if let Some(range) = ranges.first().filter(is_key) {
            let codes = (range.low_code, 0)..=(range.high_code, u64::MAX);
            return self
                .keys
                .range(codes)
                .try_for_each(|&(code, id)| visit(0, Posting { code, id }).map(drop));
        }
        if self.tail.documents() > TAIL_DOCUMENTS {
            self.segments = self.segments.push(self.tail.build())?;
        }
        let mut result = Ok(());
        for (index, range) in ranges.iter().enumerate() {
            let (low, high) = (range.low_code, range.high_code);
            // The tail is in no order, so one posting that ends the visit does not decide about the
            // next.
            self.tail
                .postings_in(range.lane, low, high, &mut |posting| {
                    if result.is_ok() {
                        result = visit(index, posting).map(drop);
                    }
                });
        }
        result?;
        self.segments.probe(ranges, visit)
    }

    /// Visits the postings of a lane within `wanted`, which is sorted by low code. Returns false if
    /// the visitor ended the sweep.
    pub(super) fn sweep(
        &mut self,
        lane: u16,
        wanted: &[ProbeRange],
        visit: &mut VisitProbe<'_>,
    ) -> Result<bool> {
        if lane != KEY_LANE {
            if self.tail.documents() > 0 {
                self.segments = self.segments.push(self.tail.build())?;
            }
            return self.segments.sweep(lane, wanted, visit);
        }
        for wanted in wanted {
            let codes = (wanted.low_code, 0)..=(wanted.high_code, u64::MAX);
            for &(code, id) in self.keys.range(codes) {
                match visit(wanted.query_index, Posting { code, id })? {
                    SweepControl::GoOn => {}
                    SweepControl::SkipRange => break,
                    SweepControl::End => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// Number of documents that are not sorted yet.
    pub(super) fn unsorted(&self) -> u64 {
        self.tail.documents()
    }

    /// Returns the memtable with the postings of this buffer added, and leaves the buffer empty.
    pub(super) fn drain_into(&mut self, memtable: &Memtable) -> Result<Memtable> {
        memtable.append(&self.drain()?)
    }

    /// Like [`drain_into`](Self::drain_into), for a memtable that is read once and in whole lanes.
    pub(super) fn drain_behind(&mut self, memtable: &Memtable) -> Result<Memtable> {
        Ok(memtable.chain(&self.drain()?))
    }

    fn drain(&mut self) -> Result<Memtable> {
        self.keys.clear();
        let mut segments = std::mem::take(&mut self.segments);
        if self.tail.documents() > 0 {
            segments = segments.push(self.tail.build())?;
        }
        Ok(segments)
    }
}
