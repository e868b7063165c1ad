//! Checks that hold in every store after every commit, even during merges: invariants 1, 3, 4, 5, 7
//! and 9, and how this writer cuts blocks and filters.

use std::collections::{BTreeMap, BTreeSet};

use crate::spec::blocks::{self, Block, Posting};
use crate::spec::filters;
use crate::spec::reader::{self, Run, Store};

/// The expected contents of a store, by id.
pub(crate) type Model = BTreeMap<u64, reader::Document>;

/// A block and its value.
type BlockRow = (Block, Vec<u8>);

/// Counts of what a check has found, so that a test can verify that it has tested something.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) outputs: usize,
    /// Outputs with a complete lane that holds postings.
    pub(crate) begun: usize,
    /// Inputs' lanes that have moved in part.
    pub(crate) cut_lanes: usize,
    /// Postings in blocks that have moved already.
    pub(crate) passed_over: usize,
    pub(crate) unflushed: usize,
    pub(crate) dead_postings: usize,
    /// Documents that died while their run was being merged.
    pub(crate) since: usize,
    /// Dead documents with rows, and without.
    pub(crate) buried: usize,
    pub(crate) without_rows: usize,
    /// Outputs in the middle of dropping rows.
    pub(crate) dropping: usize,
    pub(crate) followed_blocks: usize,
    pub(crate) pieces: usize,
    /// The number of pieces of inputs that are deleted before the rest of their filter.
    pub(crate) gone_pieces: u32,
    /// Pieces in which a bucket has four bits.
    pub(crate) of_four_bits: usize,
    /// The number of pieces that distinguish buckets of bands, and of tables.
    pub(crate) of_bands: usize,
    pub(crate) of_tables: usize,
    /// Documents that are noted to be equal.
    pub(crate) equal: usize,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Self) {
        self.outputs += other.outputs;
        self.begun += other.begun;
        self.cut_lanes += other.cut_lanes;
        self.passed_over += other.passed_over;
        self.unflushed += other.unflushed;
        self.dead_postings += other.dead_postings;
        self.since += other.since;
        self.buried += other.buried;
        self.without_rows += other.without_rows;
        self.dropping += other.dropping;
        self.followed_blocks += other.followed_blocks;
        self.pieces += other.pieces;
        self.gone_pieces += other.gone_pieces;
        self.of_four_bits += other.of_four_bits;
        self.of_bands += other.of_bands;
        self.of_tables += other.of_tables;
        self.equal += other.equal;
    }
}

/// Checks everything.
pub(crate) fn check(store: &Store, model: &Model) -> Seen {
    let mut seen = Seen::default();
    let unflushed = store.documents.range(store.state.flushed_below..).count();
    assert_eq!(store.state.unflushed_documents, unflushed as u64);
    seen.unflushed = unflushed;
    seen.since = store.dead.since.len();
    assert_eq!(store.state.documents, model.len() as u64);
    assert!(store.documents == *model, "rows are as they were written");
    check_dead(store, &mut seen);
    for (id, (noted, found)) in &store.equal {
        assert!(*id < store.state.flushed_below);
        assert!(found.map_or_else(|| store.dead.contains(*id), |found| found == *noted));
    }
    seen.equal = store.equal.len();
    check_postings(store, model, &mut seen);
    check_runs(store, model, &mut seen);
    let mut lanes: BTreeMap<(u32, u16), Vec<&BlockRow>> = BTreeMap::new();
    for block in store.blocks.values().flatten() {
        let lane = lanes.entry((block.0.run, block.0.lane)).or_default();
        lane.push(block);
    }
    for (number, run) in &store.runs {
        for lane in run.lanes.keys() {
            let blocks = lanes.remove(&(*number, *lane)).unwrap_or_default();
            check_lane(store, (*number, *lane), &blocks, &mut seen);
            check_filter(store, (*number, *lane), &blocks, &mut seen);
        }
    }
    assert!(lanes.is_empty(), "blocks of no run");
    for (run, lane, _) in store.filters.keys() {
        assert!(store.runs[run].lanes[lane].filter.is_some());
    }
    seen
}

/// Deleted documents have rows until the merge of their run has dropped them. No other missing
/// documents have rows.
fn check_dead(store: &Store, seen: &mut Seen) {
    let (before, since) = (&store.dead.before, &store.dead.since);
    let count = before.len() + since.len();
    assert_eq!(store.state.deleted_documents, count as u64);
    let mut expected: BTreeSet<u64> = before.union(since).copied().collect();
    for output in store.runs.values().filter(|run| !run.inputs.is_empty()) {
        let dropped = |id: &u64| {
            let is_before = output.rows_from.is_none_or(|from| *id < from);
            is_before && output.ids.contains(id) && before.contains(id)
        };
        expected.retain(|id| !dropped(id));
    }
    assert!(store.buried.keys().eq(&expected), "rows of the dead");
    seen.buried = expected.len();
    seen.without_rows = count - expected.len();
}

/// Every document has exactly its postings, over inputs and outputs, and nothing has them twice.
fn check_postings(store: &Store, model: &Model, seen: &mut Seen) {
    let postings = store.postings();
    assert!(postings.is_sorted_by(|a, b| a < b), "each posting once");
    let mut found = Vec::new();
    for (lane, (code, id)) in postings {
        if store.dead.contains(id) {
            seen.dead_postings += 1;
        } else {
            found.push((id, lane, code));
        }
    }
    found.sort_unstable();
    let mut expected = Vec::new();
    for (id, document) in model {
        let key = document.key.as_deref();
        let codes = store.schema.codes(key, &document.signature);
        for (lane, code) in (0..).zip(codes) {
            expected.extend(code.into_iter().map(|code| (*id, lane, code)));
        }
    }
    assert!(found == expected, "documents have other postings");
}

/// Returns the runs that are not outputs of a merge, ascending by range.
fn current(store: &Store) -> Vec<(u32, &Run)> {
    let runs = store.runs.iter().map(|(number, run)| (*number, run));
    let mut current: Vec<(u32, &Run)> = runs.filter(|(_, run)| run.inputs.is_empty()).collect();
    current.sort_by_key(|(_, run)| *run.ids.start());
    current
}

fn check_runs(store: &Store, model: &Model, seen: &mut Seen) {
    let current = current(store);
    assert!(current.is_sorted_by(|(_, a), (_, b)| a.ids.end() < b.ids.start()));
    let all_lanes: Vec<u16> = (0..store.lanes.len() as u16).collect();
    for (_, run) in &current {
        assert_eq!(run.rows_from, None);
        assert!(*run.ids.end() < store.state.flushed_below);
        assert!(run.lanes.keys().eq(&all_lanes));
        let live = model.range(run.ids.clone()).count();
        let dead = [&store.dead.before, &store.dead.since];
        let dead = dead.map(|ids| ids.range(run.ids.clone()).count());
        assert!(run.documents as usize >= live + dead[0] + dead[1]);
    }
    assert!(store.runs.keys().all(|run| *run < store.state.next_run));

    let mut merging = BTreeSet::new();
    for output in store.runs.values().filter(|run| !run.inputs.is_empty()) {
        seen.outputs += 1;
        let first = current.iter().position(|run| run.0 == output.inputs[0]);
        let inputs = &current[first.unwrap()..][..output.inputs.len()];
        assert!(inputs.iter().map(|run| &run.0).eq(&output.inputs));
        assert!(output.inputs.iter().all(|run| merging.insert(*run)));
        let (oldest, newest) = (inputs[0].1, inputs[inputs.len() - 1].1);
        assert_eq!(output.ids.start(), oldest.ids.start());
        assert_eq!(output.ids.end(), newest.ids.end());
        assert_eq!(output.documents, 0);
        assert!(output.kept_up_to <= store.state.postings_moved);
        if let Some(from) = output.rows_from {
            assert!(output.ids.contains(&from));
            assert!(output.lanes.len() == 1 && output.lanes[&0].postings == 0);
            let gone = store.dead.before.range(output.ids.clone()).next();
            seen.dropping += usize::from(gone.is_some_and(|first| *first < from));
        }
        check_output(output, inputs, seen);
        let blocks = store.blocks.values().flatten();
        let written = blocks.filter(|block| std::ptr::eq(&store.runs[&block.0.run], output));
        let mut ids = written.flat_map(|block| &block.0.postings);
        assert!(ids.all(|(_, id)| !store.dead.before.contains(id)));
    }
    for run in current.iter().filter(|run| !merging.contains(&run.0)) {
        assert!(run.1.lanes.values().all(|lane| lane.after.is_none()));
        assert_eq!(store.dead.since.range(run.1.ids.clone()).count(), 0);
    }
    for id in store.dead.before.iter().chain(&store.dead.since) {
        assert!(!model.contains_key(id));
        assert!(current.iter().any(|(_, run)| run.ids.contains(id)));
    }
}

/// The lanes of an output and of its inputs fit each other.
fn check_output(output: &Run, inputs: &[(u32, &Run)], seen: &mut Seen) {
    assert!(
        output
            .lanes
            .keys()
            .eq(&(0..output.lanes.len() as u16).collect::<Vec<_>>())
    );
    let (writing, written) = output.lanes.iter().next_back().unwrap();
    seen.begun += usize::from(
        output
            .lanes
            .range(..writing)
            .any(|(_, lane)| lane.blocks > 0),
    );
    assert!(output.lanes.values().all(|lane| lane.after.is_none()));
    for (_, input) in inputs {
        let moved = input.lanes.range(..writing);
        for (_, lane) in moved {
            let counts = (lane.postings, lane.blocks, lane.bytes);
            assert_eq!(counts, (0, 0, 0));
            assert_eq!((lane.filter, lane.after, lane.last), (None, None, None));
        }
        let mut whole = input.lanes.range(writing + 1..);
        assert!(whole.all(|(_, lane)| lane.after.is_none()));
    }
    let lanes = inputs.iter().map(|(_, input)| &input.lanes[writing]);
    let left: Vec<_> = lanes.filter(|lane| lane.postings > 0).collect();
    assert!(left.iter().all(|lane| lane.after == left[0].after));
    if let Some(after) = left.first().and_then(|lane| lane.after) {
        seen.cut_lanes += left.len();
        assert!(left.iter().all(|lane| Some(after) < lane.last));
        assert!(written.last <= Some(after));
    } else if !left.is_empty() {
        assert_eq!(written.last, None);
    }
}

fn check_lane(store: &Store, (run, lane): (u32, u16), blocks: &[&BlockRow], seen: &mut Seen) {
    let (table, ids) = (store.lanes[usize::from(lane)], &store.runs[&run].ids);
    let expected = &store.runs[&run].lanes[&lane];
    let mut previous: Option<Posting> = None;
    let (mut postings, mut bytes) = (0, 0);
    for (index, (block, value)) in blocks.iter().enumerate() {
        if previous.is_none() && expected.after.is_some() {
            assert!(block.previous <= expected.after);
            let moved = |posting: &&Posting| Some(**posting) <= expected.after;
            seen.passed_over += block.postings.iter().filter(moved).count();
            assert!(block.postings.last().copied() > expected.after);
        } else {
            assert_eq!(block.previous, previous);
        }
        assert!(
            block
                .previous
                .is_none_or(|previous| previous < block.postings[0])
        );
        assert!(block.postings.is_sorted_by(|a, b| a < b));
        assert!(block.postings.iter().all(|(_, id)| ids.contains(id)));
        assert!(value.len() <= 4_066);
        let canonical = blocks::encode(table, block) == *value;
        assert!(canonical, "the encoding is canonical");
        assert_eq!(blocks::size(&block.postings), value.len());
        if let Some((next, _)) = blocks.get(index + 1) {
            let more = [&block.postings[..], &next.postings[..1]].concat();
            assert!(blocks::size(&more) > 4_066, "blocks are full");
            seen.followed_blocks += 1;
        }
        previous = block.postings.last().copied();
        postings += block.postings.len() as u64;
        bytes += value.len() as u64;
    }
    let counts = (expected.postings, expected.blocks, expected.bytes);
    assert_eq!(counts, (postings, blocks.len() as u64, bytes));
    assert_eq!(expected.last, previous);
}

/// The filter of the lane that a merge is writing has at most one block for each posting that the lane had.
fn check_written_filter(store: &Store, run: u32, lane: u16) {
    let output = &store.runs[&run];
    let written = &output.lanes[&lane];
    let left = |input| store.runs[input].lanes[&lane].postings;
    let left: u64 = output.inputs.iter().map(left).sum();
    let dead = [&store.dead.before, &store.dead.since];
    let dead = dead.map(|ids| ids.range(output.ids.clone()).count() as u64);
    let (pieces, blocks, _) = written.filter.unwrap();
    let all_blocks = u64::from(pieces) * u64::from(blocks);
    assert!(all_blocks <= written.postings + left + dead[0] + dead[1]);
}

fn check_filter(store: &Store, (run, lane): (u32, u16), blocks: &[&BlockRow], seen: &mut Seen) {
    let expected = &store.runs[&run].lanes[&lane];
    let kind = store.schema.kinds()[usize::from(lane)];
    let is_writing = store.runs[&run].is_writing(lane);
    assert!(lane > 0 || expected.postings == 0 || expected.filter.is_some());
    let Some(shape) = expected.filter else {
        return;
    };
    assert!(shape.0 >= 1 && (1..=126).contains(&shape.1));
    let rows = store.filters.range((run, lane, 0)..=(run, lane, u32::MAX));
    let pieces: BTreeMap<u32, &Vec<u8>> = rows.map(|(key, blocks)| (key.2, blocks)).collect();
    let sized = |blocks: &&&Vec<u8>| blocks.len() == usize::from(shape.1) * 32;
    assert_eq!(pieces.values().filter(sized).count(), pieces.len());
    if is_writing {
        check_written_filter(store, run, lane);
        assert!(pieces.keys().all(|piece| *piece < shape.0));
        return;
    }
    assert!(matches!(shape.2, 4 | 8) && (lane > 0 || shape.2 == 8));
    let bits_per_posting = match (lane, shape.2) {
        (0, _) => 12,
        (_, 4) => 7,
        _ => 10,
    };
    let bits = u64::from(shape.0) * u64::from(shape.1) * 256;
    assert!(expected.postings > 0 && expected.postings * bits_per_posting <= bits);
    let gone = expected
        .after
        .map(|(code, _)| filters::piece(shape, kind.bucket(code)));
    let gone = gone.unwrap_or(0);
    assert!(pieces.keys().copied().eq(gone..shape.0));
    seen.gone_pieces += gone;
    seen.pieces += pieces.len();
    if shape.2 == 4 {
        seen.of_four_bits += pieces.len();
    }
    match kind {
        filters::Kind::Key => {}
        filters::Kind::Band(_) => seen.of_bands += pieces.len(),
        filters::Kind::Table(_) => seen.of_tables += pieces.len(),
    }
    let postings = blocks.iter().flat_map(|block| &block.0.postings);
    let left: Vec<&Posting> = postings.filter(|p| Some(**p) > expected.after).collect();
    for (code, _) in &left {
        let bucket = kind.bucket(*code);
        let piece = pieces[&filters::piece(shape, bucket)];
        assert!(
            filters::passes(shape, piece, bucket),
            "run {run}, lane {lane}"
        );
    }
    // The bits of moved pieces still exist.
    if expected.after.is_none() {
        for (number, piece) in pieces {
            let buckets = left.iter().map(|(code, _)| kind.bucket(*code));
            let exact = filters::build(shape, number, buckets);
            assert!(exact == *piece, "run {run}, lane {lane}, piece {number}");
        }
    }
}
