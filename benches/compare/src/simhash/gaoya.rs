//! The in-memory index of the crate gaoya.

use gaoya::simhash::SimHashIndex;

use super::{DISTANCE, Index, Pairs};
use crate::Result;

const BLOCKS: usize = 6;

pub struct Gaoya {
    index: SimHashIndex<u64, u64>,
    fingerprints: Vec<u64>,
}

impl Gaoya {
    pub fn new() -> Self {
        // It finds what is nearer than its distance, hence one more.
        Self {
            index: SimHashIndex::new(BLOCKS, DISTANCE as usize + 1),
            fingerprints: Vec::new(),
        }
    }
}

impl Index for Gaoya {
    fn settings(&self) -> Result<String> {
        Ok(format!(
            "gaoya 0.2, {BLOCKS} blocks, distance below {}, inserted and asked one by one in one \
             thread; in memory, not durable",
            DISTANCE + 1
        ))
    }

    fn insert(&mut self, first: u64, fingerprints: &[u64]) -> Result<()> {
        for (id, fingerprint) in (first..).zip(fingerprints) {
            self.index.insert(id, *fingerprint);
        }
        self.fingerprints.extend(fingerprints);
        Ok(())
    }

    fn near(&self, fingerprint: u64) -> Result<Vec<u64>> {
        let mut ids: Vec<u64> = self
            .index
            .query(&fingerprint)
            .into_iter()
            .copied()
            .collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// A probe for each fingerprint: it has no other way.
    fn pairs(&self) -> Result<Pairs> {
        let mut pairs = Vec::new();
        for (a, fingerprint) in (0..).zip(&self.fingerprints) {
            let found = self.index.query(fingerprint).into_iter().copied();
            pairs.extend(found.filter(|b| *b > a).map(|b| (a, b)));
        }
        Ok(pairs)
    }
}
