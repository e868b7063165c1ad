//! Postings of a transaction's own documents.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::Result;
use crate::format::Posting;
use crate::index::TOMBSTONE_LANE;
use crate::index::{CodeRange, Memtable, Next, SegmentBuilder, VisitAsked, Wanted};
use crate::read::Visit;
use crate::sketch::Signature;
use crate::state::SharedContext;
use crate::state::document_codes;

/// Unsorted documents that a probe looks through before it has them sorted.
const TAIL_DOCUMENTS: u64 = 64;

/// The lane of keys has its own table, and so comes alone in a probe.
const KEY_LANE: u16 = 0;

/// Postings that no other transaction sees yet. They are sorted at the end, or when a probe asks
/// for them: a transaction that only inserts sorts once.
pub(crate) struct TransactionBuffer {
    segments: Memtable,
    tail: SegmentBuilder,
    /// The key lane again, always in order: every insert under a key looks into it.
    keys: BTreeSet<(u64, u64)>,
    /// The codes of one document, kept to be filled again.
    codes: Vec<u64>,
    row: Vec<Option<u64>>,
}

impl TransactionBuffer {
    /// For a store with this many lanes.
    pub(crate) fn new(lanes: u16) -> Self {
        let lanes: Arc<[u16]> = (0..lanes).chain([TOMBSTONE_LANE]).collect();
        Self {
            segments: Memtable::default(),
            tail: SegmentBuilder::new(lanes),
            keys: BTreeSet::new(),
            codes: Vec::new(),
            row: Vec::new(),
        }
    }

    /// Files a document under its codes.
    pub(crate) fn push(
        &mut self,
        context: &SharedContext,
        id: u64,
        key_code: Option<u64>,
        signature: &Signature,
    ) -> Result<()> {
        document_codes(context, key_code, signature, &mut self.codes, &mut self.row)?;
        if let Some(code) = key_code {
            self.keys.insert((code, id));
        }
        self.row.push(None);
        self.tail.push(id, &self.row);
        Ok(())
    }

    /// Forgets the key of a document that is gone: one that is replaced over and over must not leave
    /// a trail that every look-up follows.
    pub(crate) fn forget_key(&mut self, key_code: Option<u64>, id: u64) {
        if let Some(code) = key_code {
            self.keys.remove(&(code, id));
        }
    }

    /// Notes that a document that is in no run is gone: the seal will leave it out.
    pub(crate) fn bury(&mut self, lanes: u16, id: u64) {
        self.row.clear();
        self.row.resize(lanes.into(), None);
        self.row.push(Some(id));
        self.tail.push(id, &self.row);
    }

    /// Visits the postings within `ranges`, with the range's index.
    pub(crate) fn probe(&mut self, ranges: &[CodeRange], visit: &mut Visit<'_>) -> Result<()> {
        let of_keys = |range: &&CodeRange| range.lane == KEY_LANE;
        if let Some(range) = ranges.first().filter(of_keys) {
            let codes = (range.low_code, 0)..=(range.high_code, u64::MAX);
            return self
                .keys
                .range(codes)
                .try_for_each(|&(code, id)| visit(0, Posting { code, id }).map(drop));
        }
        if self.tail.documents() > TAIL_DOCUMENTS {
            self.segments = self.segments.push(self.tail.build());
        }
        let mut result = Ok(());
        for (index, range) in ranges.iter().enumerate() {
            let (low, high) = (range.low_code, range.high_code);
            // In no order: any one may be wanted.
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

    /// Visits what `wanted`, sorted by low code, asks for in a lane; whether all was visited.
    pub(crate) fn sweep(
        &mut self,
        lane: u16,
        wanted: &[Wanted],
        visit: &mut VisitAsked<'_>,
    ) -> Result<bool> {
        if lane != KEY_LANE {
            if self.tail.documents() > 0 {
                self.segments = self.segments.push(self.tail.build());
            }
            return self.segments.sweep(lane, wanted, visit);
        }
        for wanted in wanted {
            let codes = (wanted.low_code, 0)..=(wanted.high_code, u64::MAX);
            for &(code, id) in self.keys.range(codes) {
                match visit(wanted.asker, Posting { code, id })? {
                    Next::GoOn => {}
                    Next::PassOver => break,
                    Next::End => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// The memtable with these postings, which are gone from here.
    pub(crate) fn drain_into(&mut self, memtable: &Memtable) -> Memtable {
        self.keys.clear();
        let mut segments = std::mem::take(&mut self.segments);
        if self.tail.documents() > 0 {
            segments = segments.push(self.tail.build());
        }
        memtable.append(&segments)
    }
}
