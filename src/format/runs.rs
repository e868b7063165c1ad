//! Rows of the tables `runs` and `lanes`.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::format::checksum;
use crate::format::run_descriptor::{LaneSummary, RunDescriptor};
use resemblance_sketch::lanes::LaneRole;

pub(crate) const RUNS: &str = "runs";
pub(crate) const LANES: &str = "lanes";

pub(crate) fn encode_run(run: &RunDescriptor) -> Result<Vec<u8>> {
    checksum::encode(RUNS, &run.run.to_be_bytes(), RUNS, run)
}

/// Decodes the descriptor of run number `run`, whose fields must not contradict each other. In `kept_lane`
/// documents have any number of postings.
pub(crate) fn decode_run(run: u32, kept_lane: Option<u16>, bytes: &[u8]) -> Result<RunDescriptor> {
    let descriptor: RunDescriptor = checksum::decode(RUNS, &run.to_be_bytes(), RUNS, bytes)?;
    let ordered = descriptor.lanes.is_sorted_by(|a, b| a.lane < b.lane);
    // A document has at most one posting in any other lane, a block at least one posting.
    let range = descriptor.last_id.checked_sub(descriptor.first_id);
    let counted = descriptor.lanes.iter().all(|lane| {
        let counts = [lane.postings, lane.blocks, lane.bytes];
        let is_kept = kept_lane == Some(lane.lane);
        let fits = is_kept || range.is_some_and(|range| lane.postings.saturating_sub(1) <= range);
        let shaped = lane.filter.is_none_or(|filter| filter.is_valid());
        fits && shaped
            && lane.blocks <= lane.postings
            && lane.after.is_none_or(|after| Some(after) < lane.last)
            && counts.map(|count| count == 0) == [lane.last.is_none(); 3]
    });
    let fits = range.is_some_and(|range| descriptor.documents.saturating_sub(1) <= range);
    let itself = descriptor.inputs.contains(&run);
    let valid = descriptor.run == run && fits && !itself && has_valid_rows(&descriptor);
    let counted = counted && has_sums(&descriptor.lanes);
    if valid && ordered && counted {
        Ok(descriptor)
    } else {
        let detail = "its fields contradict each other (invariant 3)";
        Err(Error::corrupt(format!("table {RUNS}, run {run}"), detail))
    }
}

/// Returns true if the counts of all lanes can be added without overflow: each alone may be as
/// large as the range of ids.
fn has_sums(lanes: &[LaneSummary]) -> bool {
    let counts = [
        |lane: &LaneSummary| lane.postings,
        |lane: &LaneSummary| lane.blocks,
        |lane: &LaneSummary| lane.bytes,
    ];
    counts.into_iter().all(|count| {
        let mut counts = lanes.iter().map(count);
        counts.try_fold(0, u64::checked_add).is_some()
    })
}

/// Rows are dropped before postings move, so an output with rows to drop has its first lane alone,
/// empty.
fn has_valid_rows(run: &RunDescriptor) -> bool {
    let range = run.first_id..=run.last_id;
    run.rows_from.is_none_or(|from| {
        let is_new = run.lanes.len() == 1 && run.postings() == 0;
        !run.inputs.is_empty() && is_new && range.contains(&from)
    })
}

/// The purpose of a lane. Lane numbers are never reused, so that a change of banding can add new
/// lanes to the old ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneRow {
    /// 0 key, 1 band, 2 permuted table, 3 kept hashes.
    kind: u8,
    /// The number of the band or table.
    ordinal: u16,
    /// 0 for the lanes that a store was created with.
    generation: u32,
}

impl LaneRow {
    pub(crate) fn from_role(role: LaneRole) -> Self {
        let (kind, ordinal) = match role {
            LaneRole::Key => (0, 0),
            LaneRole::Band(ordinal) => (1, ordinal),
            LaneRole::Table(ordinal) => (2, ordinal),
            LaneRole::Kept => (3, 0),
        };
        Self {
            kind,
            ordinal,
            generation: 0,
        }
    }

    pub(crate) fn encode(&self, lane: u16) -> Result<Vec<u8>> {
        checksum::encode(LANES, &lane.to_be_bytes(), LANES, self)
    }

    pub(crate) fn decode(lane: u16, bytes: &[u8]) -> Result<Self> {
        checksum::decode(LANES, &lane.to_be_bytes(), LANES, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_descriptor_round_trips_and_detects_contradictions() {
        let run = RunDescriptor {
            run: 5,
            level: 1,
            first_id: 10,
            last_id: 20,
            documents: 9,
            inputs: Vec::new(),
            kept_up_to: 0,
            rows_from: None,
            lanes: vec![LaneSummary::empty(0), LaneSummary::empty(3)],
        };
        let bytes = encode_run(&run).unwrap();
        assert_eq!(decode_run(5, None, &bytes).unwrap(), run);
        assert!(decode_run(6, None, &bytes).is_err());
        let reversed = RunDescriptor {
            first_id: 21,
            ..run.clone()
        };
        assert!(decode_run(5, None, &encode_run(&reversed).unwrap()).is_err());
        let miscounted = |postings, blocks| {
            let last = Some(crate::format::posting::Posting::MAX);
            let lane = LaneSummary {
                postings,
                blocks,
                bytes: blocks,
                last,
                ..LaneSummary::empty(3)
            };
            let lanes = vec![lane];
            let run = RunDescriptor {
                lanes,
                ..run.clone()
            };
            decode_run(5, None, &encode_run(&run).unwrap()).is_err()
        };
        assert!(!miscounted(11, 11) && miscounted(12, 1));
        assert!(miscounted(3, 4) && miscounted(3, 0) && miscounted(0, 0));
        let dropping = |inputs: &[u32], rows_from, lanes| {
            let run = RunDescriptor {
                inputs: inputs.to_vec(),
                rows_from: Some(rows_from),
                lanes: run.lanes.iter().take(lanes).copied().collect(),
                ..run.clone()
            };
            decode_run(5, None, &encode_run(&run).unwrap()).is_ok()
        };
        assert!(dropping(&[1, 2], 10, 1) && dropping(&[1], 20, 1));
        assert!(!dropping(&[], 10, 1) && !dropping(&[1, 2], 10, 2));
        assert!(!dropping(&[1, 2], 9, 1) && !dropping(&[1, 2], 21, 1));
        let unordered = RunDescriptor {
            lanes: run.lanes.iter().rev().copied().collect(),
            ..run
        };
        assert!(decode_run(5, None, &encode_run(&unordered).unwrap()).is_err());
    }

    /// Two lanes of a run over all ids, each with half of all numbers and more, were accepted, and
    /// adding them up overflowed.
    #[test]
    fn run_descriptor_detects_overflowing_counts() {
        let accepted = |postings, lanes| {
            let lane = |lane| LaneSummary {
                postings,
                blocks: 1,
                bytes: 1,
                last: Some(crate::format::posting::Posting::MAX),
                ..LaneSummary::empty(lane)
            };
            let run = RunDescriptor {
                run: 5,
                level: 1,
                first_id: 0,
                last_id: u64::MAX,
                documents: 9,
                inputs: Vec::new(),
                kept_up_to: 0,
                rows_from: None,
                lanes: (0..lanes).map(lane).collect(),
            };
            let decoded = decode_run(5, None, &encode_run(&run).unwrap());
            decoded.is_ok_and(|run| run.postings() > 0)
        };
        assert!(accepted(u64::MAX, 1) && accepted(u64::MAX / 2, 2));
        assert!(!accepted(u64::MAX / 2 + 1, 2) && !accepted(u64::MAX, 3));
    }

    #[test]
    fn run_descriptor_reports_damage_of_any_row() {
        use crate::format::checksum::assert_damage_is_named;
        let run = RunDescriptor {
            run: 5,
            level: 1,
            first_id: 10,
            last_id: 20,
            documents: 9,
            inputs: vec![1, 2],
            kept_up_to: 0,
            rows_from: Some(12),
            lanes: vec![LaneSummary::empty(0)],
        };
        assert_damage_is_named(&encode_run(&run).unwrap(), |row| decode_run(5, None, row));
        let lane = LaneRow::from_role(LaneRole::Band(258)).encode(259).unwrap();
        assert_damage_is_named(&lane, |row| LaneRow::decode(259, row));
    }
}
