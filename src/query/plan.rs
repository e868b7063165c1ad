//! The codes that a search looks for in the lanes: those of one signature or of many.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::{NearCodes, Posting};
use crate::index::{CodeRange, ProbeRange};
use crate::invariant::{OrBug, at, at_mut, invariant};
use crate::query::bounds::ResolvedBounds;
use crate::query::candidates::Candidate;
use crate::read::PostingTable;
use crate::state::SharedContext;
use resemblance_sketch::lanes::ProbeRadii;
use resemblance_sketch::sketch::Signature;

/// The extent to which tables are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskedTables {
    None,
    /// The buckets of a fingerprint, whatever the distance.
    Buckets,
    /// Every fingerprint within this distance in bits.
    Within(u32),
}

/// The families whose lanes are probed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Families {
    bands: bool,
    tables: AskedTables,
}

impl Families {
    pub(super) const ALL: Self = Self {
        bands: true,
        tables: AskedTables::Buckets,
    };

    pub(super) const BANDS: Self = Self {
        bands: true,
        tables: AskedTables::None,
    };

    pub(super) const TABLES: Self = Self {
        bands: false,
        tables: AskedTables::Buckets,
    };

    pub(crate) fn from_bounds(bounds: &ResolvedBounds) -> Self {
        let within = bounds.max_distance.map(AskedTables::Within);
        Self {
            bands: bounds.probes_bands(),
            tables: within.unwrap_or(AskedTables::None),
        }
    }

    /// Chooses how far the prefixes that are read may be from a fingerprint's own. `None` if no table is asked.
    fn radii(self, context: &SharedContext, documents: u64) -> Result<Option<Arc<ProbeRadii>>> {
        let whole_buckets = || ProbeRadii::zero(context.lanes.table_count().into());
        match self.tables {
            AskedTables::None => Ok(None),
            AskedTables::Buckets => Ok(Some(Arc::new(whole_buckets()))),
            AskedTables::Within(distance) => match context.probe_radii(distance, documents) {
                Some(radii) => Ok(Some(radii)),
                None => {
                    let expected = "less: these tables would read more than a million buckets; more tables \
                                    would read fewer, and a query without a budget or verification \
                                    compares with every document instead";
                    Err(Error::invalid("max_distance", distance, expected))
                }
            },
        }
    }
}

/// A lane that is probed, and its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbedLane {
    pub(super) table: PostingTable,
    pub(super) lane: u16,
    /// The number of bits of the prefix that may differ.
    pub(super) radius: u8,
}

impl ProbedLane {
    /// The codes that share the first rows or blocks of a code.
    pub(super) fn short_range(self, context: &SharedContext, code: u64, dropped: u8) -> CodeRange {
        let (low_code, high_code) = context.lanes.shorter_range(self.lane, code, dropped);
        CodeRange::new(self.lane, low_code, high_code)
    }

    /// Returns the lowest and the greatest code of the bucket of a code.
    pub(crate) fn bucket_range(self, context: &SharedContext, code: u64) -> (u64, u64) {
        context.lanes.bucket_range(self.lane, code)
    }

    /// The codes whose buckets are read for a code: its own first, then one for each other prefix within the
    /// radius.
    pub(crate) fn near_codes(
        self,
        context: &SharedContext,
        code: u64,
    ) -> impl Iterator<Item = u64> + Clone + use<> {
        let others = context.lanes.flips(self.lane, self.radius);
        std::iter::once(code).chain(others.map(move |flip| code ^ flip))
    }
}

/// The lane where all documents that are identical to a signature have its exact code.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdenticalLane {
    /// Its position among the lanes of the plan.
    pub(super) column: usize,
    /// True if documents that share an exact code there are identical.
    pub(super) has_whole_signatures: bool,
}

/// The codes of signatures in the lanes that are probed for them.
#[derive(Debug)]
pub(crate) struct ProbePlan {
    /// The lanes of the bands, then those of the tables.
    lanes: Vec<ProbedLane>,
    /// Signature by signature, one code for each lane.
    codes: Vec<u64>,
    /// A flag for each signature: true if the lanes are searched for it.
    is_asked: Vec<bool>,
    /// Maximum distance in bits at which a fingerprint is a candidate.
    max_distance: u32,
    /// See [`SharedContext::codes_are_signatures`].
    codes_are_signatures: bool,
}

impl ProbePlan {
    /// Plans the probes for signatures in a store of this number of documents. Nothing is probed
    /// for a signature that is indexed nowhere.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a distance that takes too many buckets.
    pub(crate) fn new<'s>(
        context: &SharedContext,
        families: Families,
        documents: u64,
        signatures: impl IntoIterator<Item = &'s Signature>,
    ) -> Result<Self> {
        let mut lanes = Vec::new();
        if families.bands {
            let bands = (1..).take(context.lanes.band_count().into());
            lanes.extend(bands.map(|lane| ProbedLane {
                table: PostingTable::Bands,
                lane,
                radius: 0,
            }));
        }
        if let Some(radii) = families.radii(context, documents)? {
            let (radii, tables) = (radii.by_table(), context.lanes.table_count());
            invariant!(
                radii.len() == usize::from(tables),
                "{} radii for {tables} tables",
                radii.len()
            );
            let first = 1 + context.lanes.band_count();
            lanes.extend((first..).zip(radii).map(|(lane, radius)| ProbedLane {
                table: PostingTable::Permuted,
                lane,
                radius: *radius,
            }));
        }
        let mut plan = Self {
            lanes,
            codes_are_signatures: context.codes_are_signatures(),
            codes: Vec::new(),
            is_asked: Vec::new(),
            max_distance: match families.tables {
                AskedTables::Within(distance) => distance,
                AskedTables::Buckets | AskedTables::None => u32::MAX,
            },
        };
        for signature in signatures {
            plan.push(context, families, signature)?;
        }
        Ok(plan)
    }

    fn push(
        &mut self,
        context: &SharedContext,
        families: Families,
        signature: &Signature,
    ) -> Result<()> {
        // A signature that no lane files is near no other, and asks for nothing.
        let is_asked = context.is_filed(signature);
        if is_asked && families.bands {
            context.band_codes(signature, &mut self.codes)?;
        }
        if let Some(fingerprint) = signature.fingerprint()
            && is_asked
            && families.tables != AskedTables::None
        {
            context.lanes.table_codes(&fingerprint, &mut self.codes);
        }
        self.is_asked.push(is_asked);
        let (found, expected) = (self.codes.len(), self.is_asked.len() * self.lanes.len());
        invariant!(
            found == expected || !is_asked,
            "found {found} codes of signatures, expected {expected}"
        );
        // Rows of codes have one width, those included for which nothing is asked.
        self.codes.resize(expected, 0);
        Ok(())
    }

    /// Appends the signatures of a plan for the same lanes.
    pub(crate) fn append(&mut self, other: Self) {
        self.codes.extend(other.codes);
        self.is_asked.extend(other.is_asked);
    }

    /// Asks nothing for a signature.
    pub(crate) fn leave_out(&mut self, query_index: usize) -> Result<()> {
        *at_mut(&mut self.is_asked, query_index)? = false;
        Ok(())
    }

    pub(super) fn is_asked(&self, query_index: u32) -> bool {
        self.is_asked.get(query_index as usize) == Some(&true)
    }

    /// Number of signatures, those included for which nothing is asked.
    pub(super) fn signatures(&self) -> usize {
        self.is_asked.len()
    }

    pub(super) fn lanes(&self) -> &[ProbedLane] {
        &self.lanes
    }

    /// Returns the codes of a signature with their lanes. Returns none if nothing is probed for it.
    pub(crate) fn row(&self, query_index: usize) -> impl Iterator<Item = (ProbedLane, u64)> {
        let is_asked = self.is_asked.get(query_index) == Some(&true);
        // A filter would hide the length, and every list of probes would grow step by step.
        let width = if is_asked { self.lanes.len() } else { 0 };
        let codes = self.codes.iter().skip(query_index * self.lanes.len());
        self.lanes.iter().take(width).copied().zip(codes.copied())
    }

    /// The code of a signature in the lane at `column`.
    #[inline]
    pub(super) fn code(&self, query_index: u32, column: usize) -> Result<u64> {
        let position = (query_index as usize * self.lanes.len()).checked_add(column);
        let code = position.and_then(|position| self.codes.get(position));
        code.copied().or_bug("the code of a signature")
    }

    /// The lane where all documents identical to a signature are found: that of the first table, or of
    /// the first band; `None` if no lane is probed. Equal fingerprints have equal codes in every table,
    /// and equal values in every band.
    pub(super) fn identical_lane(&self) -> Option<IdenticalLane> {
        let is_table = |lane: &ProbedLane| lane.table == PostingTable::Permuted;
        // Without tables all lanes are bands.
        let column = self.lanes.iter().position(is_table).unwrap_or(0);
        self.lanes.get(column)?;
        Some(IdenticalLane {
            column,
            has_whole_signatures: self.codes_are_signatures,
        })
    }

    /// The document of a posting of a lane, for the signature that has the code there.
    #[inline]
    pub(super) fn candidate(&self, query_index: u32, code: u64, posting: Posting) -> Candidate {
        // At most 64.
        let distance = (code ^ posting.code).count_ones() as u8;
        Candidate {
            id: posting.id,
            query_index,
            // Where a code has all bits of a fingerprint, its distance is that of the documents, and no row need be read
            // for it.
            code_distance: self.codes_are_signatures.then_some(distance),
        }
    }

    /// Returns the codes in the bucket of a signature's code that make candidates; `None` if all
    /// do. The code of a fingerprint determines its distance, or with 128 bits a part of it.
    #[inline]
    pub(super) fn accepted(&self, lane: ProbedLane, code: u64) -> Option<NearCodes> {
        let max_distance = self.max_distance;
        // The bits of a code are some of the fingerprint's, so that codes beyond the distance cannot be of documents
        // within it. A bound of 64 bits lets every code pass.
        let is_bounded = lane.table == PostingTable::Permuted && max_distance < u64::BITS;
        is_bounded.then_some(NearCodes { code, max_distance })
    }

    /// Returns true if a posting in the bucket of a signature's code makes a candidate.
    #[inline]
    pub(crate) fn accepts(&self, lane: ProbedLane, code: u64, found: u64) -> bool {
        let accepted = self.accepted(lane, code);
        accepted.is_none_or(|accepted| accepted.have(found))
    }

    /// The buckets that some of the signatures ask for in the lane at `column`, by their order.
    pub(super) fn ranges(
        &self,
        context: &SharedContext,
        column: usize,
        signatures: Range<u32>,
    ) -> Result<Vec<ProbeRange>> {
        let lane = *at(&self.lanes, column)?;
        let width = self.lanes.len();
        let first = signatures.start as usize;
        let codes = self.codes.iter().skip(first * width + column);
        let is_asked = self.is_asked.iter().skip(first);
        let mut ranges = Vec::new();
        for ((query_index, &code), &is_asked) in signatures.zip(codes.step_by(width)).zip(is_asked)
        {
            if !is_asked {
                continue;
            }
            let near = self.accepted(lane, code);
            ranges.extend(lane.near_codes(context, code).map(|near_code| {
                let (low_code, high_code) = lane.bucket_range(context, near_code);
                ProbeRange {
                    near,
                    ..ProbeRange::new(query_index, low_code, high_code)
                }
            }));
        }
        Ok(ranges)
    }
}
