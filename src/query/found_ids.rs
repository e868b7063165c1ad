//! Collects the ids of candidates from lanes.

/// Number of ids held before repeated ones are removed.
const MIN_ROOM: usize = if cfg!(test) { 100 } else { 1 << 18 };

/// Collects ids that come in no order, a near-duplicate's once per lane. Holds at most twice as many as there
/// are different ones, or [`MIN_ROOM`].
#[derive(Debug)]
pub(super) struct FoundIds {
    ids: Vec<u64>,
    room: usize,
}

impl FoundIds {
    pub(crate) fn new() -> Self {
        Self {
            ids: Vec::new(),
            room: MIN_ROOM,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, id: u64) {
        if self.ids.len() >= self.room {
            self.settle();
            self.room = self.ids.len().saturating_mul(2).max(MIN_ROOM);
        }
        self.ids.push(id);
    }

    fn settle(&mut self) {
        self.ids.sort_unstable();
        self.ids.dedup();
    }

    /// Returns each id once, ascending.
    pub(super) fn into_ascending(mut self) -> Vec<u64> {
        self.settle();
        self.ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query in a store of equal documents held every id once for each lane.
    #[test]
    fn what_comes_again_and_again_is_held_once() {
        for different in [1, 40, 99, 100, 5_000] {
            let mut found = FoundIds::new();
            for id in (0..30).flat_map(|_| (0..different).rev()) {
                found.push(id);
                assert!(found.ids.len() as u64 <= (2 * different).max(100));
            }
            assert!(found.into_ascending().into_iter().eq(0..different));
        }
    }
}
