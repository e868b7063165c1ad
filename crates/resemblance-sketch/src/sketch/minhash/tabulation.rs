//! Simple tabulation: the exclusive or of one random word for each byte of the mixed hash.

use std::sync::OnceLock;

use super::super::hash::{derive, stream};
use super::rows::{LANES, high};

/// The bytes of a hash, lowest first.
const BYTES: usize = 8;
/// The number of values of a byte.
const ENTRIES: usize = 256;

/// The tables of all functions, interleaved: the words of all functions for one value of one byte
/// are adjacent. A feature therefore reads eight runs of k words.
#[derive(Debug)]
pub(super) struct Tabulation {
    seed: u64,
    rows: usize,
    words: OnceLock<Vec<[u32; LANES]>>,
}

impl Tabulation {
    pub(super) fn new(seed: u64, rows: usize) -> Self {
        let words = OnceLock::new();
        Self { seed, rows, words }
    }

    fn words(&self) -> &[[u32; LANES]] {
        self.words.get_or_init(|| {
            let words = (0..BYTES * ENTRIES).flat_map(|entry| {
                (0..self.rows).map(move |row| {
                    std::array::from_fn(|lane| self.word(row * LANES + lane, entry))
                })
            });
            words.collect()
        })
    }

    /// Returns the word of a function for an entry. The number of an entry is the byte's number ×
    /// 256 + the byte's value.
    fn word(&self, function: usize, entry: usize) -> u32 {
        let index = (function * BYTES * ENTRIES + entry) as u64;
        high(derive(self.seed, stream::MINHASH + index))
    }

    /// Lowers the minima to the values of the features with these mixed hashes.
    ///
    /// Not inlined into the kernels: it waits for memory, and wider registers made it slower.
    #[inline(never)]
    pub(super) fn update(&self, minima: &mut [[u32; LANES]], mixed: &[u64]) {
        let words = self.words();
        debug_assert_eq!(words.len(), BYTES * ENTRIES * self.rows);
        for &mixed in mixed {
            let mut byte = 0;
            let entries = mixed.to_le_bytes().map(|value| {
                let entry = byte * ENTRIES + usize::from(value);
                byte += 1;
                // There are BYTES * ENTRIES entries, each of `self.rows` rows.
                let (_, from_entry) = words.split_at(entry * self.rows);
                from_entry.split_at(self.rows).0
            });
            let [a, b, c, d, e, f, g, h] = entries.map(|entry| entry.iter());
            let pairs = a.zip(b).zip(c.zip(d)).zip(e.zip(f).zip(g.zip(h)));
            for (minima, (((a, b), (c, d)), ((e, f), (g, h)))) in minima.iter_mut().zip(pairs) {
                let mut sum = *a;
                for word in [b, c, d, e, f, g, h] {
                    sum.iter_mut()
                        .zip(word)
                        .for_each(|(sum, word)| *sum ^= word);
                }
                for (minimum, sum) in minima.iter_mut().zip(sum) {
                    *minimum = (*minimum).min(sum);
                }
            }
        }
    }
}
