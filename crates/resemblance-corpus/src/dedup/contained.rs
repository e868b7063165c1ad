//! Drops documents whose features another document has.
//!
//! A document is held by another one, its holder, if at most a share of its distinct features is
//! missing from the holder. All holders are found: a document that may lose m features is looked
//! for by its m + 1 rarest ones, because a holder has at least one of them (prefix filtering:
//! Chaudhuri, Ganti and Kaushik, "A primitive operator for similarity joins in data cleaning", ICDE
//! 2006). Documents are then compared by their sets of features.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroUsize;
use std::ops::Range;

use resemblance::exact::shared_from;
use resemblance::invariant::{OrBug, at, at_mut};
use resemblance::schema::EmptyDocuments;
use resemblance::{DocumentId, Error, Phase, Result, Watch, in_shares};

use crate::dedup::in_order::{Decided, DroppedDocument};
use crate::dedup::policy::Preference;
use crate::verification::{FeatureSets, SetOverlap};

/// The number of holders of a document that are remembered, the preferred ones.
const MAX_HOLDERS: usize = 64;

/// The number of documents that a thread compares at a time.
const COMPARED_TOGETHER: usize = if cfg!(test) { 64 } else { 16_384 };

/// The memory for an indexed feature: its entry, and two places in the table of starts.
const ENTRY_BYTES: usize = size_of::<Entry>() + 2 * size_of::<u32>();

/// The smallest and the greatest number of counters of features, as powers of 2.
const COUNTER_BITS: Range<u32> = 16..30;

/// The greatest number of counters if rejected documents are listed. Counters decide which documents
/// are compared, so their number must not depend on the memory.
const LISTED_COUNTERS: u64 = 1 << 24;

/// The settings of [`DedupPolicy::Contained`](crate::dedup::DedupPolicy::Contained), and the preference.
#[derive(Clone, Copy)]
pub(super) struct HolderRule<'a> {
    pub(super) max_lost: f64,
    pub(super) most_first: bool,
    pub(super) threads: NonZeroUsize,
    pub(super) memory_bytes: u64,
    pub(super) with_rejected: bool,
    pub(super) preference: &'a Preference,
}

impl HolderRule<'_> {
    /// Decides on all documents.
    pub(super) fn decide(
        &self,
        mut ids: Vec<DocumentId>,
        empty: EmptyDocuments,
        features: &FeatureSets,
        watch: &mut Watch<'_>,
    ) -> Result<Decided> {
        check_lost(self.max_lost)?;
        ids.sort_unstable_by(|a, b| self.preference.compare(*a, *b));
        let mut search = HolderSearch {
            rule: *self,
            features,
            nodes: Vec::with_capacity(ids.len()),
            counters: Counters::default(),
        };
        search.read(ids)?;
        search.join_equal(empty)?;
        let mut rejected = Vec::new();
        let edges = search.edges(&mut rejected, watch)?;
        search.choose(&edges, &rejected)
    }
}

/// An error unless this is a share of features that may be lost.
pub(super) fn check_lost(max_lost: f64) -> Result<()> {
    if (0.0..1.0).contains(&max_lost) {
        return Ok(());
    }
    let expected = "a share of features, at least 0 and below 1";
    Err(Error::invalid("max_lost", max_lost, expected))
}

/// Returns the number of features of a document of this size that its survivor must have.
pub(super) fn least_held(max_lost: f64, size: usize) -> usize {
    // A product that rounding lowers still counts as whole: 0.1 of 30 is 3.
    size - (max_lost * size as f64 + 1e-9) as usize
}

/// A document. Its number, the index in the list of all, is its place in the order of preference.
#[derive(Clone, Copy)]
struct Node {
    id: DocumentId,
    /// The number of its features.
    size: u32,
    /// The preferred document with the same features, which may be this one.
    equal: u32,
    /// The number of documents with the same features, if this is the preferred one.
    copies: u32,
}

/// A document, and another one that has its features.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    held: u32,
    holder: u32,
    /// The number of features that both have.
    shared: u32,
}

struct HolderSearch<'a> {
    rule: HolderRule<'a>,
    features: &'a FeatureSets,
    nodes: Vec<Node>,
    counters: Counters,
}

impl<'a> HolderSearch<'a> {
    fn hashes(&self, node: u32) -> Result<std::borrow::Cow<'a, [u64]>> {
        let id = self.node(node)?.id;
        self.features.get(id)?.ok_or_else(|| {
            let found = format!("none of document {}", id.get());
            Error::invalid("features", found, "those of all documents")
        })
    }

    fn node(&self, node: u32) -> Result<&Node> {
        at(&self.nodes, node as usize)
    }

    /// The number of features of a document of this size that a holder has.
    fn needed(&self, size: u32) -> u32 {
        least_held(self.rule.max_lost, size as usize) as u32
    }

    /// Reads the sizes of all documents, given in the order of preference, and counts their features.
    fn read(&mut self, ids: Vec<DocumentId>) -> Result<()> {
        let mut total = 0;
        for (number, id) in ids.into_iter().enumerate() {
            let size = self.features.size(id).unwrap_or(0);
            total += size;
            let number = u32::try_from(number).ok();
            self.nodes.push(Node {
                id,
                size: u32::try_from(size).ok().or_bug("a set beyond memory")?,
                equal: number.or_bug("more documents than numbers")?,
                copies: 1,
            });
        }
        self.counters = Counters::new(total.min(match self.rule.with_rejected {
            true => LISTED_COUNTERS,
            false => self.rule.memory_bytes / 8,
        }));
        for number in 0..self.nodes.len() as u32 {
            for hash in &*self.hashes(number)? {
                self.counters.count(*hash);
            }
        }
        Ok(())
    }

    /// Makes the preferred one of equal documents stand for all of them.
    fn join_equal(&mut self, empty: EmptyDocuments) -> Result<()> {
        let mut digests = Vec::with_capacity(self.nodes.len());
        for number in 0..self.nodes.len() as u32 {
            let hashes = self.hashes(number)?;
            if !hashes.is_empty() || empty == EmptyDocuments::Alike {
                digests.push((digest(&hashes), number));
            }
        }
        digests.sort_unstable();
        for alike in digests.chunk_by(|a, b| a.0 == b.0) {
            // Different sets can have the same digest.
            let mut first_of_each: Vec<u32> = Vec::new();
            for &(_, number) in alike.iter().filter(|_| alike.len() > 1) {
                let hashes = self.hashes(number)?;
                let mut equal = None;
                for &first in &first_of_each {
                    if equal.is_none() && self.hashes(first)? == hashes {
                        equal = Some(first);
                    }
                }
                match equal {
                    None => first_of_each.push(number),
                    Some(first) => {
                        at_mut(&mut self.nodes, number as usize)?.equal = first;
                        at_mut(&mut self.nodes, first as usize)?.copies += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Finds who holds whom, sorted, with at most [`MAX_HOLDERS`] holders for each document. If they
    /// are collected, adds the others that were compared to `rejected`.
    fn edges(&self, rejected: &mut Vec<Edge>, watch: &mut Watch<'_>) -> Result<Vec<Edge>> {
        let total = self.nodes.len() as u64;
        let max_entries = self.rule.memory_bytes as usize / 2 / ENTRY_BYTES;
        let mut edges = Vec::new();
        let mut first = 0;
        while (first as usize) < self.nodes.len() {
            watch.report(Phase::DecidingDocuments, first.into(), total)?;
            let index = PrefixIndex::of(self, first, max_entries)?;
            first = index.nodes.end;
            let mut holder_counts = vec![0; index.nodes.len()];
            let threads = self.rule.threads.get();
            let mut seen_by_thread = vec![vec![u32::MAX; index.nodes.len()]; threads];
            for block in blocks(self.nodes.len(), COMPARED_TOGETHER * threads) {
                let size = block.len().div_ceil(threads);
                let parts = blocks(block.len(), size)
                    .map(|part| block.start + part.start..block.start + part.end);
                let shares = seen_by_thread.iter_mut().zip(parts);
                let counts = &holder_counts;
                let found = in_shares("dedup", shares, |(seen, part)| {
                    self.holders(&index, counts, seen, part)
                })?;
                for edge in found.into_iter().flatten() {
                    let count: &mut u8 =
                        at_mut(&mut holder_counts, (edge.held - index.nodes.start) as usize)?;
                    if usize::from(*count) >= MAX_HOLDERS {
                        // Whether it was compared depends on the threads.
                        continue;
                    }
                    if edge.shared < self.needed(self.node(edge.held)?.size) {
                        rejected.push(edge);
                    } else {
                        *count += 1;
                        edges.push(edge);
                    }
                }
                watch.report(Phase::DecidingDocuments, index.nodes.start.into(), total)?;
            }
        }
        edges.sort_unstable();
        Ok(edges)
    }

    /// Finds the documents of the index that some documents hold, or all that were compared with them
    /// if the rejected ones are collected. `seen` has, for each document of
    /// the index, the last one that it was compared with in this thread.
    fn holders(
        &self,
        index: &PrefixIndex,
        holder_counts: &[u8],
        seen: &mut [u32],
        numbers: Range<usize>,
    ) -> Result<Vec<Edge>> {
        let mut found = Vec::new();
        for holder in numbers.start as u32..numbers.end as u32 {
            let node = self.node(holder)?;
            if node.equal != holder {
                continue;
            }
            let hashes = self.hashes(holder)?;
            for &hash in &*hashes {
                for &Entry { node: held, .. } in index.with(hash)? {
                    let slot = (held - index.nodes.start) as usize;
                    let last = at_mut(seen, slot)?;
                    let is_full = usize::from(*at(holder_counts, slot)?) >= MAX_HOLDERS;
                    if std::mem::replace(last, holder) == holder || is_full || held == holder {
                        continue;
                    }
                    let needed = self.needed(self.node(held)?.size);
                    if node.size < needed {
                        continue;
                    }
                    let with_rejected = self.rule.with_rejected;
                    let floor = if with_rejected { 0 } else { needed };
                    let shared = shared_from(floor as usize, &self.hashes(held)?, &hashes) as u32;
                    if shared >= needed || with_rejected {
                        found.push(Edge {
                            held,
                            holder,
                            shared,
                        });
                    }
                }
            }
        }
        Ok(found)
    }
}

/// Divides a number of items into ranges of a size, the last one shorter.
fn blocks(count: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count)
        .step_by(size.max(1))
        .map(move |start| start..count.min(start + size))
}

/// Returns a hash of a set of features.
fn digest(hashes: &[u64]) -> u64 {
    hashes.iter().fold(hashes.len() as u64, |digest, hash| {
        mixed(digest ^ mixed(*hash)).rotate_left(23)
    })
}

/// Spreads the values of features over all numbers: whoever stores features need not have hashed
/// them (the finaliser of SplitMix64, Steele, Lea and Flood 2014).
fn mixed(hash: u64) -> u64 {
    let mut value = hash;
    for multiplier in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb_u64] {
        value = (value ^ value >> 30).wrapping_mul(multiplier);
    }
    value ^ value >> 31
}

/// Counts in how many documents features are. Features may share a counter: counts only decide
/// which features are looked for, not what is found.
#[derive(Default)]
struct Counters(Vec<u16>);

impl Counters {
    fn new(features: u64) -> Self {
        let bits = features.max(1).ilog2() + 1;
        Self(vec![
            0;
            1 << bits.clamp(COUNTER_BITS.start, COUNTER_BITS.end)
        ])
    }

    fn place(&self, hash: u64) -> usize {
        mixed(hash) as usize & (self.0.len() - 1)
    }

    fn count(&mut self, hash: u64) {
        let place = self.place(hash);
        if let Some(count) = self.0.get_mut(place) {
            *count = count.saturating_add(1);
        }
    }

    /// The rank of a feature, the rarest first.
    fn rank(&self, hash: u64) -> (u16, u64) {
        let count = self.0.get(self.place(hash));
        (count.copied().unwrap_or(u16::MAX), hash)
    }
}

/// A feature by which a document is looked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    mixed: u64,
    node: u32,
}

/// The rarest features of some documents.
struct PrefixIndex {
    nodes: Range<u32>,
    entries: Vec<Entry>,
    /// For each value of the highest bits of a feature, where its entries begin.
    starts: Vec<u32>,
    shift: u32,
}

impl PrefixIndex {
    /// The documents from `first`, as many as the memory allows, at least one.
    fn of(search: &HolderSearch<'_>, first: u32, max_entries: usize) -> Result<Self> {
        let mut entries = Vec::new();
        let mut end = first;
        for (number, node) in (first..).zip(search.nodes.get(first as usize..).unwrap_or(&[])) {
            if entries.len() >= max_entries && number > first {
                break;
            }
            end = number + 1;
            if node.equal != number || node.size == 0 {
                continue;
            }
            let mut hashes = search.hashes(number)?.into_owned();
            let last = (node.size - search.needed(node.size)) as usize;
            hashes.select_nth_unstable_by_key(last, |hash| search.counters.rank(*hash));
            entries.extend(hashes.iter().take(last + 1).map(|hash| Entry {
                mixed: mixed(*hash),
                node: number,
            }));
        }
        entries.sort_unstable();
        let bits = (entries.len().max(2) as u64).ilog2();
        let mut starts = vec![0; (1 << bits) + 1];
        for entry in &entries {
            *at_mut(&mut starts, (entry.mixed >> (64 - bits)) as usize + 1)? += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Ok(Self {
            nodes: first..end,
            entries,
            starts,
            shift: 64 - bits,
        })
    }

    /// Returns the entries of a feature.
    fn with(&self, hash: u64) -> Result<&[Entry]> {
        let mixed = mixed(hash);
        let bucket = (mixed >> self.shift) as usize;
        let (start, end) = (*at(&self.starts, bucket)?, *at(&self.starts, bucket + 1)?);
        let entries = self.entries.get(start as usize..end as usize);
        let entries = entries.or_bug("a bucket of features")?;
        let low = entries.partition_point(|entry| entry.mixed < mixed);
        let high = entries.partition_point(|entry| entry.mixed <= mixed);
        entries.get(low..high).or_bug("entries of a feature")
    }
}

impl HolderSearch<'_> {
    /// Decides on a document once all those are decided that hold it and that it does not hold.
    /// These are larger, so each document has its turn. Apart from that, the order is that of
    /// preference.
    fn choose(&self, edges: &[Edge], rejected: &[Edge]) -> Result<Decided> {
        let mut choice = Choice::new(self, edges)?;
        let mut one_way = self.one_way(edges)?;
        for edge in &one_way {
            *at_mut(&mut choice.waiting, edge.held as usize)? += 1;
        }
        one_way.sort_unstable_by_key(|edge| (edge.holder, edge.held));
        let mut ready: BinaryHeap<_> = BinaryHeap::new();
        for (number, node) in (0..).zip(&self.nodes) {
            if node.equal == number && *at(&choice.waiting, number as usize)? == 0 {
                ready.push(choice.turn(number)?);
            }
        }
        let mut decided = Decided::default();
        while let Some((_, Reverse(number))) = ready.pop() {
            let held_by = held_by(edges, number);
            let survivor = self.survivor(held_by, &choice.fates)?;
            let is_open = survivor.is_none() && held_by.len() >= MAX_HOLDERS;
            decided.budget_exceeded += u64::from(is_open);
            *at_mut(&mut choice.fates, number as usize)? = Some(survivor.unwrap_or(number));
            let first = one_way.partition_point(|edge| edge.holder < number);
            let holds = one_way.iter().skip(first);
            for edge in holds.take_while(|edge| edge.holder == number) {
                let waiting = at_mut(&mut choice.waiting, edge.held as usize)?;
                *waiting -= 1;
                if *waiting == 0 {
                    ready.push(choice.turn(edge.held)?);
                }
            }
        }
        for (number, node) in (0..).zip(&self.nodes) {
            let fate = at(&choice.fates, node.equal as usize)?;
            let survivor = fate.or_bug("a document without a decision")?;
            if survivor != number {
                let survivor = self.node(survivor)?.id;
                decided.dropped.push(DroppedDocument {
                    id: node.id,
                    survivor,
                });
            }
        }
        for edge in rejected {
            if *at(&choice.fates, edge.holder as usize)? == Some(edge.holder) {
                let (held, holder) = (self.node(edge.held)?, self.node(edge.holder)?);
                let overlap = SetOverlap {
                    a: held.size as usize,
                    b: holder.size as usize,
                    shared: edge.shared as usize,
                };
                let compared = overlap.compared(held.id.get(), holder.id);
                decided.rejected.push(compared);
            }
        }
        Ok(decided)
    }

    /// The edges whose holder is not held in turn.
    fn one_way(&self, edges: &[Edge]) -> Result<Vec<Edge>> {
        let mut one_way = Vec::new();
        for edge in edges {
            let size = self.node(edge.holder)?.size;
            if edge.shared < self.needed(size) {
                one_way.push(*edge);
            }
        }
        Ok(one_way)
    }

    /// Returns the kept document that holds the most features of a document, then the most similar
    /// one, then the preferred one; `None` if no kept document holds it. If all known holders were
    /// dropped and there may be others, the survivors of the known ones are compared.
    fn survivor(&self, held_by: &[Edge], fates: &[Option<u32>]) -> Result<Option<u32>> {
        let mut best: Option<(u32, Reverse<u32>, Reverse<u32>)> = None;
        let mut others = Vec::new();
        for edge in held_by {
            match *at(fates, edge.holder as usize)? {
                Some(fate) if fate == edge.holder => {
                    let size = self.node(edge.holder)?.size;
                    best = best.max(Some((edge.shared, Reverse(size), Reverse(edge.holder))));
                }
                Some(fate) => others.push(fate),
                None => {}
            }
        }
        if let (None, Some(edge)) = (best, held_by.first())
            && held_by.len() >= MAX_HOLDERS
        {
            let size = self.node(edge.held)?.size;
            let needed = self.needed(size);
            let hashes = self.hashes(edge.held)?;
            others.sort_unstable();
            others.dedup();
            for other in others {
                let shared = shared_from(needed as usize, &hashes, &self.hashes(other)?) as u32;
                if shared >= needed {
                    return Ok(Some(other));
                }
            }
        }
        Ok(best.map(|(_, _, Reverse(holder))| holder))
    }
}

/// The edges of a held document.
fn held_by(edges: &[Edge], held: u32) -> &[Edge] {
    let first = edges.partition_point(|edge| edge.held < held);
    let after = edges.partition_point(|edge| edge.held <= held);
    edges.get(first..after).unwrap_or(&[])
}

/// The decisions so far.
struct Choice {
    /// The survivor of each document that is decided: itself, if it is kept.
    fates: Vec<Option<u32>>,
    /// The number of holders that each document waits for.
    waiting: Vec<u32>,
    /// The number of documents that each one holds, if the order is by it.
    held_counts: Vec<u32>,
}

impl Choice {
    fn new(search: &HolderSearch<'_>, edges: &[Edge]) -> Result<Self> {
        let count = search.nodes.len();
        let mut held_counts = Vec::new();
        if search.rule.most_first {
            held_counts.extend(search.nodes.iter().map(|node| node.copies - 1));
            for edge in edges {
                let copies = search.node(edge.held)?.copies;
                *at_mut(&mut held_counts, edge.holder as usize)? += copies;
            }
        }
        Ok(Self {
            fates: vec![None; count],
            waiting: vec![0; count],
            held_counts,
        })
    }

    /// The place in the order of decisions: the greatest is first.
    fn turn(&self, number: u32) -> Result<(u32, Reverse<u32>)> {
        let count = match self.held_counts.is_empty() {
            true => 0,
            false => *at(&self.held_counts, number as usize)?,
        };
        Ok((count, Reverse(number)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::dedup::{DedupPolicy, DropRule, duplicates};
    use crate::sample::{Random, trials};
    use crate::survivors::{Likeness, Sets, families};
    use resemblance::{Document, MinHash, Schema, Store, Text};

    fn schema(empty: EmptyDocuments) -> Schema {
        let schema = Schema::builder()
            .text(Text::words(1))
            .minhash(MinHash::new(16));
        schema.empty_documents(empty).build().unwrap()
    }

    /// Returns the survivor of each document that the policy drops, and the number of documents
    /// that were compared with some of their candidates only.
    fn dropped(
        sets: &Sets,
        empty: EmptyDocuments,
        policy: DedupPolicy,
        preference: &Preference,
    ) -> (BTreeMap<usize, usize>, u64) {
        let store = Store::in_memory(schema(empty)).unwrap();
        // Half of them in a file.
        let mut features = FeatureSets::new(std::env::temp_dir()).memory_bytes(4_000);
        let sketched = store.sketch_text("all signatures are equal").unwrap();
        for set in sets {
            let id = store.insert(Document::without_key(), &sketched).unwrap();
            features
                .put(id, Vec::from_iter(set.iter().copied()))
                .unwrap();
        }
        features.flush().unwrap();
        let join = store.snapshot().unwrap().clusters();
        let found = duplicates(join, policy, preference, Some(Arc::new(features))).unwrap();
        let open = found.budget_exceeded();
        let index = |id: DocumentId| usize::try_from(id.get()).unwrap();
        let dropped = found.map(|duplicate| {
            let duplicate = duplicate.unwrap();
            let (a, b) = (
                index(duplicate.document.id()),
                index(duplicate.survivor.id()),
            );
            let shared = sets[a].intersection(&sets[b]).count() as f64;
            let share = |whole: usize| {
                if whole == 0 {
                    1.0
                } else {
                    shared / whole as f64
                }
            };
            let shares = duplicate.shares.unwrap();
            assert_eq!(shares.held, share(sets[a].len()));
            assert_eq!(shares.covered, share(sets[b].len()));
            assert_eq!(duplicate.rule, DropRule::Contained);
            let united = sets[a].union(&sets[b]).count();
            assert_eq!(duplicate.similarity, Some(share(united)));
            (a, b)
        });
        (dropped.collect(), open)
    }

    fn policy(max_lost: f64, most_first: bool, threads: usize, memory_bytes: u64) -> DedupPolicy {
        DedupPolicy::Contained {
            max_lost,
            most_first,
            threads: NonZeroUsize::new(threads).unwrap(),
            memory_bytes,
            with_rejected: false,
        }
    }

    #[test]
    fn documents_are_dropped_only_for_kept_ones_that_hold_them() {
        let mut random = Random(11);
        let mut drops = 0;
        for round in 0..trials(60, 300_usize) {
            let sets = families(&mut random, 59);
            let max_lost = [0.0, 0.05, 0.1, 0.3, 0.6][round % 5];
            let most_first = round % 3 == 0;
            let empty = [EmptyDocuments::Alike, EmptyDocuments::Distinct][round % 2];
            let scores: Vec<f64> = sets.iter().map(|_| random.below(4) as f64).collect();
            let mut order: Vec<usize> = (0..sets.len()).collect();
            let preference = match round % 4 {
                0 => Preference::Earliest,
                1 => {
                    order.reverse();
                    Preference::Latest
                }
                _ => {
                    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
                    Preference::Highest(scores)
                }
            };
            // Without memory, each document has an index of its own.
            let memory_bytes = [1 << 20, 2_000, 0][round % 3];
            let policy = policy(max_lost, most_first, 1 + round % 3, memory_bytes);
            let (found, open) = dropped(&sets, empty, policy, &preference);
            let likeness = Likeness {
                sets: &sets,
                are_empty_alike: empty == EmptyDocuments::Alike,
            };
            let expected = likeness.contained(&order, max_lost, most_first);
            // Equal documents have the survivor of the one that stands for them.
            assert_eq!(
                found.keys().collect::<Vec<_>>(),
                expected.keys().collect::<Vec<_>>(),
                "round {round}"
            );
            for (document, survivor) in &found {
                assert!(
                    !found.contains_key(survivor),
                    "round {round}: a dropped survivor"
                );
                assert!(
                    likeness.holds(*document, *survivor, max_lost),
                    "round {round}"
                );
            }
            assert_eq!(open, 0);
            drops += found.len();
        }
        assert!(drops > 400, "{drops} documents dropped");
    }

    #[test]
    fn more_holders_than_are_remembered_lose_nothing() {
        // A chain in which each set holds all before it.
        let chain: Sets = (1..400).map(|size| (0..size).collect()).collect();
        let ends = dropped(
            &chain,
            EmptyDocuments::Distinct,
            policy(0.0, false, 2, 1 << 20),
            &Preference::Earliest,
        );
        let expected = (0..398).map(|document| (document, 398)).collect();
        assert_eq!(ends, (expected, 0));
        // Near-copies of one another, each without another feature.
        let family: Sets = (0..300)
            .map(|without| (0..300).filter(|feature| *feature != without).collect())
            .collect();
        let (found, open) = dropped(
            &family,
            EmptyDocuments::Distinct,
            policy(0.01, false, 2, 1 << 20),
            &Preference::Latest,
        );
        // The first one decided has more holders than are remembered, none of them kept before it.
        assert_eq!((found.len(), open), (299, 1));
        assert!(found.values().all(|survivor| *survivor == 299));
    }

    #[test]
    fn rejected_documents_depend_on_neither_memory_nor_threads() {
        let mut random = Random(5);
        // Every two of these share a few features, and near-copies have more holders than are remembered.
        let mut sets: Sets = (0..150)
            .map(|_| (0..300).map(|_| random.below(60_000)).collect())
            .collect();
        sets.extend((0..240).map(|number| {
            let (lost, own) = if number % 3 == 0 { (120, 120) } else { (1, 0) };
            let lost = 70_000 + number / 3..70_000 + number / 3 + lost;
            let copied = (70_000..70_300).filter(|feature| !lost.contains(feature));
            copied
                .chain((0..own).map(|feature| 100_000 + 1_000 * number + feature))
                .collect()
        }));
        let store = Store::in_memory(schema(EmptyDocuments::Distinct)).unwrap();
        let mut features = FeatureSets::new(std::env::temp_dir());
        let sketched = store.sketch_text("all signatures are equal").unwrap();
        for set in &sets {
            let id = store.insert(Document::without_key(), &sketched).unwrap();
            let hashes = Vec::from_iter(set.iter().copied());
            features.put(id, hashes).unwrap();
        }
        features.flush().unwrap();
        let features = Arc::new(features);
        let rejected = |threads, memory_bytes| {
            let join = store.snapshot().unwrap().clusters();
            let policy = DedupPolicy::Contained {
                max_lost: 0.3,
                most_first: false,
                threads: NonZeroUsize::new(threads).unwrap(),
                memory_bytes,
                with_rejected: true,
            };
            let features = Some(Arc::clone(&features));
            let mut found = duplicates(join, policy, &Preference::Earliest, features).unwrap();
            found
                .by_ref()
                .for_each(|duplicate| drop(duplicate.unwrap()));
            let mut pairs: Vec<_> = found
                .take_rejected()
                .iter()
                .map(|rejected| (rejected.document, rejected.candidate.get()))
                .collect();
            pairs.sort_unstable();
            pairs
        };
        let expected = rejected(1, 1 << 20);
        assert!(expected.len() > 1_000, "{}", expected.len());
        for (threads, memory_bytes) in [(4, 1 << 20), (1, 40_000), (3, 100_000)] {
            let found = rejected(threads, memory_bytes);
            assert_eq!(found.len(), expected.len(), "{threads} {memory_bytes}");
            assert!(found == expected, "{threads} {memory_bytes}");
        }
    }

    #[test]
    fn impossible_shares_and_missing_features_are_refused() {
        let store = Store::in_memory(schema(EmptyDocuments::Distinct)).unwrap();
        let sketched = store.sketch_text("a text").unwrap();
        store.insert(Document::without_key(), &sketched).unwrap();
        let refused = |max_lost, features: Option<FeatureSets>| {
            let join = store.snapshot().unwrap().clusters();
            let policy = policy(max_lost, false, 1, 1 << 20);
            let features = features.map(Arc::new);
            match duplicates(join, policy, &Preference::Earliest, features) {
                Err(Error::InvalidParameter { parameter, .. }) => parameter,
                _ => panic!("not refused"),
            }
        };
        let features = || FeatureSets::new(std::env::temp_dir());
        assert_eq!(refused(0.0, None), "features");
        assert_eq!(refused(0.0, Some(features())), "features");
        for share in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(refused(share, Some(features())), "max_lost");
        }
    }
}
