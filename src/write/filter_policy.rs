//! The policy that decides which lanes of runs get filters, and how large they are.

use crate::error::Result;
use crate::format::FilterShape;
use crate::invariant::OrBug;
use crate::state::SharedContext;
use resemblance_sketch::lanes::{LaneRole, LaneSet};

/// Bits of a filter for each posting, where memory suffices, of the largest run.
const FILTER_BITS: u64 = 10;
/// Bits per posting of the filters of the smallest runs.
const MAX_FILTER_BITS: u64 = 16;
/// Bits per posting of the filters of the lane of keys, where most look-ups find nothing.
const KEY_FILTER_BITS: u64 = 12;
/// A filter of fewer bits lets most codes pass.
const MIN_FILTER_BITS: u64 = 3;

/// The average number of halvings that the runs of a growing store may have, in quarters of a bit. The
/// largest run leaves its share to the others.
const MEAN_HALVINGS_QUARTERS: u64 = 12;

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
    let lanes = &context.lanes;
    let found = lanes.roles().nth(lane.into());
    let role = found.or_bug_with(|| format!("the role of lane {lane}"))?;
    let options = &context.options;
    let max_bytes = options.filter_cache_bytes() as u64;
    let planned = match options.is_written_at_once() {
        true => documents,
        false => planned_documents(documents, all_documents),
    };
    let bits = filter_bits(lanes, max_bytes, role, lane, documents, planned);
    let shape = |bits| FilterShape::new(postings, bits);
    Ok(bits.filter(|_| postings > 0).map(shape))
}

/// Returns the number of documents to leave room for when a run of `documents` is written that
/// others follow: it is merged again only when there are several times that number.
fn planned_documents(documents: u64, all_documents: u64) -> u64 {
    all_documents.max(documents.saturating_add(documents / 2))
}

/// Returns the bits that the filter of a lane has for each posting, of a run of `documents`, in a store that is to have
/// `planned` ones, where filters may take `max_bytes` of memory; `None` if it gets no filter.
///
/// Applies the rule: the largest run gets the bits that fit, less those of smaller runs, at most
/// [`FILTER_BITS`]. Each halving of a run's size adds one and a half bits. The fewest blocks are
/// read without effect if the rate of false positives is proportional to the number of postings,
/// which takes 1.44 bits (Dayan, Athanassoulis and Idreos, *Monkey*, SIGMOD 2017). A run of all
/// documents has no smaller ones.
fn filter_bits(
    lanes: &LaneSet,
    max_bytes: u64,
    role: LaneRole,
    lane: u16,
    documents: u64,
    planned: u64,
) -> Option<u64> {
    if role == LaneRole::Key {
        return Some(KEY_FILTER_BITS);
    }
    if !has_filter(lanes, role, lane, documents) {
        return None;
    }
    let all = lanes.roles().zip(0u16..);
    let filtered = all.filter(|(role, lane)| has_filter(lanes, *role, *lane, planned));
    // All numbers may be claims of the file.
    let postings = planned.saturating_mul(filtered.count() as u64);
    let keys = planned.saturating_mul(KEY_FILTER_BITS);
    let max_bits = max_bytes.saturating_mul(8).saturating_sub(keys);
    let fitting_quarters = max_bits.saturating_mul(4) / postings.max(1);
    let smaller_runs = if documents < planned {
        MEAN_HALVINGS_QUARTERS
    } else {
        0
    };
    // Whole numbers, so that files are the same on every platform.
    let square = |number: u64| u128::from(number.max(1)).pow(2);
    let half_halvings = (square(planned) / square(documents)).max(1).ilog2();
    let quarters =
        fitting_quarters.min(4 * FILTER_BITS + smaller_runs) + 3 * u64::from(half_halvings);
    let bits = quarters.saturating_sub(smaller_runs) / 4;
    (bits >= MIN_FILTER_BITS).then_some(bits.min(MAX_FILTER_BITS))
}

/// Returns the bits of filters for each document in a single run of this number of documents.
pub(crate) fn filter_bits_per_document(lanes: &LaneSet, max_bytes: u64, documents: u64) -> u64 {
    let all = lanes.roles().zip(0u16..);
    let bits = all
        .filter_map(|(role, lane)| filter_bits(lanes, max_bytes, role, lane, documents, documents));
    bits.sum()
}

/// Returns true if a lane other than that of keys has a filter in a run of this number of
/// documents.
fn has_filter(lanes: &LaneSet, role: LaneRole, lane: u16, documents: u64) -> bool {
    match role {
        // Only sweeps read kept hashes, and these do not ask filters.
        LaneRole::Key | LaneRole::Kept => false,
        LaneRole::Band(_) => true,
        LaneRole::Table(_) => {
            // Where most buckets of a table have a document, a filter would let most probes pass. Codes of 64 bits
            // have 2^64 buckets.
            let length = u32::from(lanes.bucket_bits(lane).length);
            1u64.checked_shl(length)
                .is_none_or(|buckets| buckets / 4 >= documents)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{RunShape, plan as plan_merge};
    use resemblance_sketch::schema::{MinHash, Schema};

    const DOCUMENTS: u64 = 1_000_000;

    fn lanes() -> LaneSet {
        let schema = Schema::builder().minhash(MinHash::new(20).banding(20, 1));
        schema.build().unwrap().lane_set().unwrap()
    }

    /// Returns the memory for this number of bits for each posting of [`DOCUMENTS`], and for the
    /// filters of keys.
    fn bytes_of(bits: u64) -> u64 {
        DOCUMENTS * (20 * bits + KEY_FILTER_BITS) / 8
    }

    fn band_bits(max_bytes: u64, documents: u64, planned: u64) -> Option<u64> {
        let role = LaneRole::Band(0);
        filter_bits(&lanes(), max_bytes, role, 1, documents, planned)
    }

    #[test]
    fn filter_policy_prefers_the_largest_run_with_enough_memory() {
        for (bits, expected) in [(10, 7), (12, 9), (13, 10), (40, 10)] {
            let found = band_bits(bytes_of(bits), DOCUMENTS - 1, DOCUMENTS);
            assert_eq!(found, Some(expected));
        }
    }

    #[test]
    fn filter_policy_gives_smaller_runs_more_with_more_memory() {
        let bits_of = |bits: u64, part: u64| {
            let documents = DOCUMENTS / part;
            band_bits(bytes_of(bits), documents, DOCUMENTS).unwrap()
        };
        let bits = [1, 2, 4, 8, 16, 1_000].map(|part| bits_of(50, part));
        assert_eq!(bits, [10, 11, 13, 14, 16, 16]);
        assert_eq!([1, 4, 16].map(|part| bits_of(12, part)), [10, 12, 15]);
    }

    #[test]
    fn filter_policy_gives_a_single_run_all_memory() {
        for (bits, expected) in [
            (11, Some(10)),
            (9, Some(9)),
            (4, Some(4)),
            (3, Some(3)),
            (2, None),
        ] {
            let found = band_bits(bytes_of(bits), DOCUMENTS, DOCUMENTS);
            assert_eq!(found, expected);
        }
    }

    /// A halving is one and a half bits. With 5 bits in the mean a run of a fourth of the documents has them.
    #[test]
    fn filter_policy_gives_smaller_runs_more_bits() {
        let runs = [1, 2, 4, 8, 16, 32, 64, 1_000].map(|part| DOCUMENTS / part - 1);
        let bits = runs.map(|run| band_bits(bytes_of(5), run, DOCUMENTS));
        let expected = [0, 3, 5, 6, 8, 9, 11, 16].map(|bits| (bits > 0).then_some(bits));
        assert_eq!(bits, expected);
    }

    /// A filter is not rebuilt while the store grows several times, until its run is merged: that
    /// is how much filters may take beyond the memory for them.
    #[test]
    fn filter_policy_stays_within_twice_the_memory() {
        const FLUSHED: u64 = 65_536;
        for max_bytes in [6 << 20, 20 << 20, 42 << 20, 80 << 20] {
            let filter_bits = |documents: u64, all_documents: u64| {
                let planned = planned_documents(documents, all_documents);
                let bits = band_bits(max_bytes, documents, planned);
                documents * (bits.map_or(0, |bits| 20 * bits) + KEY_FILTER_BITS)
            };
            // While an equal share is three bits.
            let max_documents = max_bytes * 8 / (20 * MIN_FILTER_BITS + KEY_FILTER_BITS);
            let mut runs: Vec<(RunShape, u64)> = Vec::new();
            let mut next_run = 0..;
            for all_documents in (1..=max_documents / FLUSHED).map(|flush| flush * FLUSHED) {
                let mut add = |runs: &mut Vec<_>, level, first_id, end| {
                    let documents = end - first_id;
                    let shape = RunShape {
                        run: next_run.next().unwrap(),
                        level,
                        first_id,
                        last_id: end - 1,
                        documents,
                        deleted: 0,
                    };
                    runs.push((shape, filter_bits(documents, all_documents)));
                };
                add(&mut runs, 0, all_documents - FLUSHED, all_documents);
                let shapes = |runs: &[(RunShape, u64)]| -> Vec<RunShape> {
                    runs.iter().map(|(shape, _)| *shape).collect()
                };
                while let Some(merge) = plan_merge(&shapes(&runs), &[]) {
                    let is_input = |run: &mut (RunShape, u64)| merge.runs.contains(&run.0.run);
                    let inputs: Vec<_> = runs.extract_if(.., is_input).collect();
                    let first_id = inputs.iter().map(|(shape, _)| shape.first_id).min();
                    let last_id = inputs.iter().map(|(shape, _)| shape.last_id).max();
                    let (first_id, end) = (first_id.unwrap(), last_id.unwrap() + 1);
                    add(&mut runs, merge.level, first_id, end);
                }
                let bits: u64 = runs.iter().map(|(_, bits)| bits).sum();
                let share = bits as f64 / (max_bytes * 8) as f64;
                assert!(share <= 2.0, "{all_documents} documents: {share}");
            }
        }
    }

    #[test]
    fn filter_policy_answers_any_counts_of_a_file() {
        for documents in [0, 1, u64::MAX] {
            for planned in [0, documents, u64::MAX] {
                let bits = band_bits(u64::MAX, documents, planned);
                assert!(
                    bits.is_none_or(|bits| (MIN_FILTER_BITS..=MAX_FILTER_BITS).contains(&bits))
                );
            }
        }
    }
}
