//! The settings of one join, resolved once from its bounds and options.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::join::join_lanes::JoinLanes;
use crate::join::signature_batch::SignatureBatch;
use crate::join::source::{JoinSource, LiveDocuments};
use crate::query::{ResolvedBounds, SearchOptions, Wanted};
use crate::state::Tombstones;
use resemblance_sketch::lanes::TableDesign;
use resemblance_sketch::sketch::ValueLayout;

/// Default memory for signatures.
pub(super) const DEFAULT_MEMORY_BYTES: u64 = 64 << 20;

/// Signatures in memory at a time take at most twice as much.
pub(super) const BATCH_BYTES: usize = 32 << 20;

/// Minimum number of signatures in a batch, however large they are.
const MIN_BATCH_DOCUMENTS: usize = 1 << 10;

pub(super) struct Settings {
    pub(super) bounds: ResolvedBounds,
    pub(super) options: SearchOptions,
    pub(super) threads: usize,
    /// True if the join needs only enough pairs to connect all that are near, not all pairs.
    pub(super) links_only: bool,
    /// The candidates that are returned.
    pub(super) wanted: Wanted,
    /// The lanes that are read.
    pub(super) lanes: Range<u16>,
    pub(super) join_lanes: Arc<JoinLanes>,
    /// True if the codes alone do not determine the similarity or distance, so that signatures are
    /// read.
    pub(super) reads_signatures: bool,
    pub(super) has_fingerprints: bool,
    /// True if bands are read: their codes show which documents shared an earlier bucket.
    pub(super) with_codes: bool,
    /// True if documents that equal an earlier one are left out of the lanes after the first.
    pub(super) hides_equal: bool,
    /// About half of the number of documents whose signatures are in memory at a time.
    pub(super) batch_documents: usize,
    /// Bytes that a signature takes in memory, codes included.
    pub(super) document_bytes: u64,
    /// The layout by which MinHash values are compared; `None` without MinHash in the schema.
    pub(super) layout: Option<ValueLayout>,
    /// Documents that take no part, because a filter does not let them pass.
    pub(super) hidden: Tombstones,
}

impl Settings {
    pub(super) fn new(
        source: &dyn JoinSource,
        options: SearchOptions,
        links_only: bool,
    ) -> Result<Self> {
        options.check_threads()?;
        if options.max_bucket == Some(0) {
            return Err(Error::invalid("max_bucket", 0, "at least 1"));
        }
        let schema = &source.context().schema;
        let bounds = options.bounds.resolve(schema, false)?;
        let shape = source.context().shape();
        let join_lanes = JoinLanes::new(source, &bounds)?;
        let reads_signatures = !source.context().codes_are_signatures();
        let with_codes = bounds.probes_bands();
        let document_bytes = SignatureBatch::document_bytes(source.context());
        Ok(Self {
            lanes: bounds.lanes(join_lanes.set()),
            join_lanes: Arc::new(join_lanes),
            bounds,
            options,
            threads: options.threads.unwrap_or(1),
            links_only,
            wanted: Wanted::Accepted,
            reads_signatures,
            has_fingerprints: shape.fingerprint_bits > 0,
            with_codes,
            // Documents left out of a bucket that is cut short are counted one by one.
            hides_equal: links_only && options.max_bucket.is_none(),
            batch_documents: (BATCH_BYTES / document_bytes).max(MIN_BATCH_DOCUMENTS),
            document_bytes: document_bytes as u64,
            layout: shape.values,
            hidden: Tombstones::default(),
        })
    }

    /// Returns the documents that take part.
    pub(super) fn live(&self, source: &dyn JoinSource) -> Result<LiveDocuments> {
        let mut live = source.live()?;
        self.hidden.ids().for_each(|id| live.hide(id));
        Ok(live)
    }

    /// Returns how many of the groups of a bucket are compared with all of it.
    pub(super) fn representatives(&self, groups: usize) -> usize {
        let max = self.options.max_bucket;
        max.map_or(groups, |max| max.min(groups))
    }

    /// Returns the table of a lane, `None` for a band.
    pub(super) fn table(&self, lane: u16) -> Option<TableLane<'_>> {
        let lanes = self.join_lanes.set();
        let number = usize::from(lane.checked_sub(1 + lanes.band_count())?);
        Some(TableLane {
            design: lanes.design()?,
            number,
        })
    }
}

/// A permuted table.
#[derive(Clone, Copy)]
pub(super) struct TableLane<'s> {
    design: &'s TableDesign,
    number: usize,
}

impl TableLane<'_> {
    /// Returns the fingerprint of 64 bits that is indexed under a code.
    pub(crate) fn fingerprint(&self, code: u64) -> u64 {
        let table = self.design.tables().get(self.number);
        table.map_or(code, |table| table.restore(code))
    }

    /// Returns false if two fingerprints, given by their codes here, share a bucket of an earlier
    /// table. The codes of longer fingerprints do not suffice to decide, and the result is true.
    pub(super) fn may_meet_first(&self, a: u64, b: u64) -> bool {
        if !self.design.codes_are_exact() {
            return true;
        }
        // Only the differing bits matter, and bits move in the same way in both.
        let differing = self.fingerprint(a ^ b).into();
        let none = 0_u64.into();
        self.design.first_shared_table(&differing, &none) == Some(self.number)
    }
}

/// The documents and pairs that a join did not compare because of [`Join::max_bucket`](crate::Join::max_bucket). If
/// all counts are zero, nothing is missing for that reason.
///
/// ```
/// # use resemblance::{Document, MinHash, Schema, Signature, Store};
/// let schema = Schema::builder().minhash(MinHash::new(16).banding(2, 8)).build()?;
/// let store = Store::in_memory(schema)?;
/// for number in 0..4 {
///     // All share the first half, and so a bucket.
///     let values = [vec![7; 8], vec![number; 8]].concat();
///     store.insert(Document::without_key(), &Signature::from_minhash(values))?;
/// }
/// let clusters = store.snapshot()?.clusters().max_bucket(1).run()?;
/// let left_out = clusters.left_out();
/// assert!(!left_out.is_empty());
/// assert_eq!((left_out.buckets, left_out.documents, left_out.pairs), (1, 3, 3));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The number of buckets that were cut short.
    pub buckets: u64,
    /// The number of documents in these buckets that were compared only with the first ones. A
    /// document counts in each of its buckets.
    pub documents: u64,
    /// The number of pairs of such documents that were not compared in their bucket. A pair counts
    /// in each bucket that it shares. Some of these pairs may have been found in a smaller bucket.
    pub pairs: u64,
}

impl LeftOut {
    /// Returns true if nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a bucket, given the sizes of the groups of equal documents that were not compared
    /// among each other.
    pub(crate) fn add(&mut self, sizes: impl Iterator<Item = u64>) {
        let (mut documents, mut squares) = (0u128, 0u128);
        for size in sizes.map(u128::from) {
            documents += size;
            squares += size * size;
        }
        // Documents of one group are equal, and were returned as such: only pairs of different groups are missing.
        let pairs = (documents * documents).saturating_sub(squares) / 2;
        // Beyond 2^64 the exact number does not matter.
        let narrow = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        self.buckets = self.buckets.saturating_add(1);
        self.documents = self.documents.saturating_add(narrow(documents));
        self.pairs = self.pairs.saturating_add(narrow(pairs));
    }
}
