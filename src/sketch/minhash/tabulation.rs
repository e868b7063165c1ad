//! Simple tabulation: the exclusive or of one random word for each byte of the mixed hash.

use std::sync::OnceLock;

use crate::sketch::hash::{derive, stream};
use crate::sketch::minhash::min_hasher::LANES;
use crate::sketch::minhash::pair_multiply::high;

/// Bytes of a hash, lowest first.
const BYTES: usize = 8;
/// Values of a byte.
const ENTRIES: usize = 256;

/// Tables of all functions, side by side: a feature reads eight rows of k words, each in one piece.
#[derive(Debug)]
pub(crate) struct Tabulation {
    seed: u64,
    rows: usize,
    words: OnceLock<Vec<[u32; LANES]>>,
}

impl Tabulation {
    pub(crate) fn new(seed: u64, rows: usize) -> Self {
        let words = OnceLock::new();
        Self { seed, rows, words }
    }

    fn words(&self) -> &[[u32; LANES]] {
        self.words.get_or_init(|| {
            let words = (0..BYTES * ENTRIES).flat_map(|place| {
                (0..self.rows).map(move |row| {
                    std::array::from_fn(|lane| self.word(row * LANES + lane, place))
                })
            });
            words.collect()
        })
    }

    /// The word of a function for a byte's value: `place` is the byte's number × 256 + its value.
    fn word(&self, function: usize, place: usize) -> u32 {
        let place = (function * BYTES * ENTRIES + place) as u64;
        high(derive(self.seed, stream::MINHASH + place))
    }

    /// Not inlined into the kernels: it waits for memory, and wider registers made it slower.
    #[inline(never)]
    pub(crate) fn update(&self, minima: &mut [[u32; LANES]], mixed: &[u64]) {
        let words = self.words();
        for &mixed in mixed {
            let mut byte = 0;
            let entries = mixed.to_le_bytes().map(|value| {
                let first = (byte * ENTRIES + usize::from(value)) * self.rows;
                byte += 1;
                words.get(first..first + self.rows).unwrap_or_default()
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
