//! The documents that near-duplicates leave, found by comparing all with all, as the policies are
//! described. The unit tests of the corpus crate and the tests of the tool include this file.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "each test crate uses its own part, and its sets are those of the test"
)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::sample::Random;

/// The features of documents, at the index of their document.
pub(crate) type Sets = Vec<BTreeSet<u64>>;

/// The documents that are dropped, each with those that may be its survivor.
pub(crate) type Dropped = BTreeMap<usize, BTreeSet<usize>>;

/// The rule by which one document can stand for another.
#[derive(Clone, Copy)]
pub(crate) struct Likeness<'s> {
    pub(crate) sets: &'s Sets,
    /// True if documents without features resemble each other.
    pub(crate) are_empty_alike: bool,
}

impl Likeness<'_> {
    /// The Jaccard similarity, or `None` for documents that resemble nothing.
    pub(crate) fn similarity(&self, a: usize, b: usize) -> Option<f64> {
        let (a, b) = (&self.sets[a], &self.sets[b]);
        match (a.is_empty(), b.is_empty()) {
            (true, true) => self.are_empty_alike.then_some(1.0),
            (true, false) | (false, true) => None,
            (false, false) => Some(a.intersection(b).count() as f64 / a.union(b).count() as f64),
        }
    }

    /// True if `b` holds `a`: at most the share `max_lost` of `a` is missing from it.
    pub(crate) fn holds(&self, a: usize, b: usize, max_lost: f64) -> bool {
        let (a, b) = (&self.sets[a], &self.sets[b]);
        if a.is_empty() {
            return b.is_empty() && self.are_empty_alike;
        }
        a.difference(b).count() as f64 <= max_lost * a.len() as f64 + 1e-9
    }

    /// The share of `a` that `b` holds, and that of `b` that `a` covers: 1 for empty sets.
    pub(crate) fn shares(&self, a: usize, b: usize) -> [f64; 2] {
        let shared = self.sets[a].intersection(&self.sets[b]).count() as f64;
        let share_of = |size: usize| if size == 0 { 1.0 } else { shared / size as f64 };
        [a, b].map(|document| share_of(self.sets[document].len()))
    }

    /// Returns the documents among some that hold the most of this one, then the smallest of them, if
    /// any holds it.
    pub(crate) fn holders(
        &self,
        a: usize,
        among: impl Iterator<Item = usize>,
        max_lost: f64,
    ) -> BTreeSet<usize> {
        let rank = |b: usize| {
            let shared = self.sets[a].intersection(&self.sets[b]).count();
            (shared, Reverse(self.sets[b].len()))
        };
        let all: Vec<usize> = among.filter(|b| self.holds(a, *b, max_lost)).collect();
        let best = all.iter().map(|b| rank(*b)).max();
        all.into_iter().filter(|b| Some(rank(*b)) == best).collect()
    }

    /// The documents that are near each other.
    pub(crate) fn graph(&self, threshold: f64) -> NearGraph {
        let count = self.sets.len();
        let mut near = vec![Vec::new(); count];
        for a in 0..count {
            for b in 0..a {
                if let Some(similarity) = self.similarity(a, b).filter(|s| *s >= threshold) {
                    near[a].push((b, similarity));
                    near[b].push((a, similarity));
                }
            }
        }
        NearGraph { near }
    }

    /// Documents are dropped for kept ones that hold them. One is decided after all that hold it
    /// and that it does not hold, apart from that in this order.
    pub(crate) fn contained(&self, order: &[usize], max_lost: f64, most_first: bool) -> Dropped {
        let count = self.sets.len();
        let is_edge = |a: usize, b: usize| a != b && self.holds(a, b, max_lost);
        let edges: Vec<Vec<bool>> = (0..count)
            .map(|a| (0..count).map(|b| is_edge(a, b)).collect())
            .collect();
        let rank = |a: usize| {
            let held = edges.iter().filter(|edges| most_first && edges[a]).count();
            (Reverse(held), order.iter().position(|b| *b == a).unwrap())
        };
        let ranks: Vec<_> = (0..count).map(rank).collect();
        let mut fates: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        while fates.len() < count {
            let open: Vec<usize> = (0..count).filter(|a| !fates.contains_key(a)).collect();
            let waits = |a: usize| open.iter().any(|&b| edges[a][b] && !edges[b][a]);
            let ready = open.iter().filter(|a| !waits(**a));
            let next = *ready.min_by_key(|a| ranks[**a]).unwrap();
            let kept = fates.iter().filter(|(_, survivors)| survivors.is_empty());
            let holders = kept.map(|(b, _)| *b).filter(|b| edges[next][*b]);
            fates.insert(next, holders.collect());
        }
        fates.retain(|_, survivors| !survivors.is_empty());
        fates
    }
}

/// The documents that are near each one, with their similarity.
pub(crate) struct NearGraph {
    near: Vec<Vec<(usize, f64)>>,
}

impl NearGraph {
    /// The documents in the order of the policy representative: those with the most neighbours first.
    pub(crate) fn by_degree(&self, order: &[usize]) -> Vec<usize> {
        let mut by_degree = order.to_vec();
        by_degree.sort_by_cached_key(|of| Reverse(self.near[*of].len()));
        by_degree
    }

    /// Documents are kept in this order unless they are near a kept one, of which the most similar
    /// ones may survive.
    pub(crate) fn greedy(&self, order: &[usize]) -> Dropped {
        let (mut kept, mut dropped) = (BTreeSet::new(), Dropped::new());
        for &document in order {
            let near = self.near[document].iter().copied();
            let before: Vec<_> = near.filter(|(other, _)| kept.contains(other)).collect();
            let best = before.iter().map(|(_, s)| *s).fold(0.0, f64::max);
            let survivors = before.iter().filter(|(_, s)| *s == best).map(|(n, _)| *n);
            match before.is_empty() {
                true => drop(kept.insert(document)),
                false => drop(dropped.insert(document, survivors.collect())),
            }
        }
        dropped
    }

    /// All but the first in this order of each cluster, with that one.
    pub(crate) fn clusters(&self, order: &[usize]) -> Dropped {
        let (mut seen, mut dropped) = (BTreeSet::new(), Dropped::new());
        for &first in order {
            let mut open = vec![first];
            while let Some(document) = open.pop() {
                if seen.insert(document) {
                    open.extend(self.near[document].iter().map(|(n, _)| *n));
                    if document != first {
                        dropped.insert(document, BTreeSet::from([first]));
                    }
                }
            }
        }
        dropped
    }
}

/// Returns a large set, and sets that hold a part of it, from all of it to a hundredth, each with
/// none to some features of its own.
pub(crate) fn excerpts(random: &mut Random) -> Sets {
    let size = 300 + random.below(100);
    let whole: Vec<u64> = (0..size).map(|_| 2_000 + random.next() % 100_000).collect();
    let mut sets = vec![whole.iter().copied().collect()];
    for times in [1, 1, 2, 3, 5, 10, 20, 50, 100] {
        for own in [0, 0, 1, 4] {
            let length = whole.len() / times;
            let first = random.below((whole.len() - length + 1) as u64) as usize;
            let mut part: BTreeSet<u64> = whole[first..first + length].iter().copied().collect();
            part.extend((0..own).map(|_| 200_000 + random.next() % 100_000));
            sets.push(part);
        }
    }
    sets
}

/// Returns families of sets: random ones, parts of them, copies, supersets, chains, and empty ones.
pub(crate) fn families(random: &mut Random, most: u64) -> Sets {
    let mut sets = Sets::new();
    for _ in 0..10 + random.below(most - 9) {
        let boilerplate = random.below(12);
        let mut set: BTreeSet<u64> = (0..boilerplate).collect();
        match (random.below(6), sets.len() as u64) {
            (0 | 1, _) | (_, 0) => {
                let size = random.below(40);
                set.extend((0..size).map(|_| random.next() % 2_000));
            }
            (kind, count) => {
                let base = sets[random.below(count) as usize].clone();
                let keep = [100, 100, 95, 50][kind as usize - 2];
                let kept = base.into_iter().filter(|_| random.below(100) < keep);
                set = kept.collect();
                let more = if kind == 2 { 0 } else { random.below(6) };
                set.extend((0..more).map(|_| random.next() % 2_000));
            }
        }
        sets.push(set);
    }
    sets
}
