//! Gathers what lanes give, each once.

/// Number of items held before repeated ones are removed.
const MIN_ROOM: usize = if cfg!(test) { 100 } else { 1 << 18 };

/// Gathers items that come in no order, a near-duplicate's once per lane. Holds at most twice as many as there
/// are different ones, or [`MIN_ROOM`].
#[derive(Debug)]
pub(super) struct Gathered<T> {
    items: Vec<T>,
    room: usize,
}

impl<T: Ord> Gathered<T> {
    pub(crate) fn new() -> Self {
        Self {
            items: Vec::new(),
            room: MIN_ROOM,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        if self.items.len() >= self.room {
            self.settle();
            self.room = self.items.len().saturating_mul(2).max(MIN_ROOM);
        }
        self.items.push(item);
    }

    fn settle(&mut self) {
        self.items.sort_unstable();
        self.items.dedup();
    }

    /// Returns each item once, ascending.
    pub(super) fn into_ascending(mut self) -> Vec<T> {
        self.settle();
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query in a store of equal documents held every id once for each lane.
    #[test]
    fn what_comes_again_and_again_is_held_once() {
        for different in [1, 40, 99, 100, 5_000] {
            let mut found = Gathered::new();
            for id in (0..30).flat_map(|_| (0..different).rev()) {
                found.push(id);
                assert!(found.items.len() as u64 <= (2 * different).max(100));
            }
            assert!(found.into_ascending().into_iter().eq(0..different));
        }
    }
}
