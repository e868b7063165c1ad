//! Which lanes of runs get filters, and how large they are.

use crate::error::Result;
use crate::format::FilterShape;
use crate::invariant::OrBug;
use crate::lanes::{LaneRole, LaneSet};
use crate::state::SharedContext;

/// Bits of a filter for each posting.
const FILTER_BITS: u64 = 10;
/// The same in the lane of keys, where most look-ups find nothing.
const KEY_FILTER_BITS: u64 = 12;
/// A filter of fewer bits lets most codes pass.
const MIN_FILTER_BITS: u64 = 3;

/// Where filters of all documents would not stay in memory, a run with less than one part in this many of all
/// documents has one: most probes of the largest runs hit.
const FILTERED_SHARE: u64 = 4;

/// Returns the shape of the filter for a lane that is about to get this number of postings, of a run of
/// `documents`, in a store of `all_documents`; `None` if it gets no filter.
///
/// # Errors
/// [`Error::Bug`](crate::Error::Bug) if the schema has no such lane.
pub(crate) fn filter_shape(
    context: &SharedContext,
    lane: u16,
    postings: u64,
    documents: u64,
    all_documents: u64,
) -> Result<Option<FilterShape>> {
    let role = context.lanes.roles().nth(lane.into());
    let role = role.or_bug_with(|| format!("the role of lane {lane}"))?;
    let max_bytes = context.options.filter_cache_bytes() as u64;
    let bits = filter_bits(
        &context.lanes,
        max_bytes,
        (role, lane),
        documents,
        all_documents,
    );
    let bits = bits.filter(|_| postings > 0);
    Ok(bits.map(|bits| FilterShape::new(postings, bits)))
}

/// Returns the bits that the filter of a lane has for each posting, of a run of `documents`, in a store of
/// `all_documents`, where filters may take `max_bytes` of memory; `None` if it gets no filter.
fn filter_bits(
    lanes: &LaneSet,
    max_bytes: u64,
    (role, lane): (LaneRole, u16),
    documents: u64,
    all_documents: u64,
) -> Option<u64> {
    match role {
        LaneRole::Key => return Some(KEY_FILTER_BITS),
        // Only sweeps read it, and these do not ask filters.
        LaneRole::Kept => return None,
        LaneRole::Table(_) if !is_sparse(lanes, lane, documents) => return None,
        LaneRole::Band(_) | LaneRole::Table(_) => {}
    }
    let filtered = lanes.roles().zip(0u16..).filter(|(role, lane)| match role {
        LaneRole::Key | LaneRole::Kept => false,
        LaneRole::Band(_) => true,
        LaneRole::Table(_) => is_sparse(lanes, *lane, all_documents),
    });
    // All numbers may be claims of the file.
    let postings = all_documents.saturating_mul(filtered.count() as u64);
    let keys = all_documents.saturating_mul(KEY_FILTER_BITS);
    let bits = max_bytes.saturating_mul(8).saturating_sub(keys) / postings.max(1);
    if bits >= MIN_FILTER_BITS {
        return Some(bits.min(FILTER_BITS));
    }
    let is_small = documents.saturating_mul(FILTERED_SHARE) < all_documents;
    is_small.then_some(FILTER_BITS)
}

/// Returns the bits of filters for each of so many documents in a single run.
pub(crate) fn filter_bits_per_document(lanes: &LaneSet, max_bytes: u64, documents: u64) -> u64 {
    let all = lanes.roles().zip(0u16..);
    let bits = all.filter_map(|lane| filter_bits(lanes, max_bytes, lane, documents, documents));
    bits.sum()
}

/// Returns true unless most buckets of a table have a document, so that a filter would let most probes pass.
fn is_sparse(lanes: &LaneSet, lane: u16, documents: u64) -> bool {
    let length = u32::from(lanes.bucket_bits(lane).length);
    // Codes of 64 bits have 2^64 buckets.
    let buckets = 1u64.checked_shl(length).unwrap_or(u64::MAX);
    buckets / 4 >= documents
}
