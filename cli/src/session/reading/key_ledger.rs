//! Ids that stand in several files.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What an id takes, about.
const ENTRY_BYTES: u64 = 40;

/// Which file had each id first, by a hash of the id.
#[derive(Debug)]
pub(super) struct KeyLedger {
    first_sources: HashMap<u64, usize>,
    max_ids: u64,
}

impl KeyLedger {
    /// A ledger that takes no further ids once it has so many bytes: those beyond are unique, or are
    /// refused by the store that they go to.
    pub(super) fn new(memory_bytes: u64) -> Self {
        Self {
            first_sources: HashMap::new(),
            max_ids: memory_bytes / ENTRY_BYTES,
        }
    }

    /// Takes note of an id; true if an earlier file has it.
    pub(super) fn is_of_earlier_source(&mut self, source: usize, id: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let is_full = self.first_sources.len() as u64 >= self.max_ids;
        match self.first_sources.entry(hasher.finish()) {
            Entry::Occupied(first) => *first.get() != source,
            Entry::Vacant(_) if is_full => false,
            Entry::Vacant(entry) => {
                entry.insert(source);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_other_sources_collide() {
        let mut ledger = KeyLedger::new(2 * ENTRY_BYTES);
        let cases = [
            (0, "a", false),
            (0, "a", false),
            (1, "a", true),
            (1, "b", false),
            (2, "b", true),
            // There is no room for a third.
            (2, "c", false),
            (3, "c", false),
            (3, "a", true),
        ];
        for (source, id, expected) in cases {
            let found = ledger.is_of_earlier_source(source, id.as_bytes());
            assert_eq!(found, expected, "{id} of {source}");
        }
    }
}
