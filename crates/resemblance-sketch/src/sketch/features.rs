//! The features of a text, for exact comparison.

use std::cell::Cell;

use super::hash::feature_hash;
use super::signature::Signature;
use super::sketcher::Sketcher;
use crate::error::Result;

/// The minimum number of hashes at which repeats are removed before the text ends.
const MIN_HASHES: usize = 1 << 16;

impl Sketcher {
    /// Returns the hashes of a text's distinct features in ascending order, 8 bytes for each.
    /// [`hashes`](Self::hashes) turns them into the same signature that [`text`](Self::text)
    /// returns.
    ///
    /// The Jaccard similarity of two such sets is the exact similarity of the documents, unless
    /// hashes collide. Two features have the same hash with probability 2⁻⁶⁴; among two documents
    /// of ten thousand features each, the probability of a collision is about 10⁻¹¹.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`](crate::SketchError::InvalidParameter) if the schema does
    /// not take texts.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema, Text};
    ///
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?;
    /// let sketcher = schema.sketcher();
    /// let hashes = sketcher.feature_hashes("the cat, the cat, the dog")?;
    /// assert_eq!(hashes.len(), 3); // the cat, cat the, the dog
    /// assert_eq!(sketcher.hashes(hashes)?, sketcher.text("the cat, the cat, the dog")?);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn feature_hashes(&self, text: &str) -> Result<Vec<u64>> {
        let mut features = FeatureHashes::new();
        self.each_shingle(text, |shingle| features.push(feature_hash(shingle)))?;
        Ok(features.sorted().into())
    }

    /// Returns the [signature](Self::text) of a text and its [feature
    /// hashes](Self::feature_hashes). It reads the text once, unless the schema has weights or
    /// containment.
    ///
    /// # Errors
    ///
    /// The same as [`text`](Self::text).
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema, Text};
    ///
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?;
    /// let sketcher = schema.sketcher();
    /// let (signature, hashes) = sketcher.text_and_feature_hashes("the cat sat")?;
    /// assert_eq!(signature, sketcher.text("the cat sat")?);
    /// assert_eq!(hashes, sketcher.feature_hashes("the cat sat")?);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn text_and_feature_hashes(&self, text: &str) -> Result<(Signature, Vec<u64>)> {
        self.text_and_features(text)
    }

    /// Like [`text_and_feature_hashes`](Self::text_and_feature_hashes), with the hashes in any
    /// container.
    pub fn text_and_features<F: for<'a> From<&'a [u64]>>(
        &self,
        text: &str,
    ) -> Result<(Signature, F)> {
        let mut features = FeatureHashes::new();
        if self.functions.weights.is_some() || self.recipe().containment.is_some() {
            let signature = self.text(text)?;
            self.each_shingle(text, |shingle| features.push(feature_hash(shingle)))?;
            return Ok((signature, features.sorted().into()));
        }
        let mut draft = self.text_draft(text)?;
        self.each_shingle(text, |shingle| {
            let hash = feature_hash(shingle);
            features.push(hash);
            draft.hash(hash);
        })?;
        Ok((draft.finish(), features.sorted().into()))
    }
}

thread_local! {
    /// The buffers of this thread's last text. Without it, each text would allocate three times.
    static SPARE: Cell<Buffers> = const { Cell::new(Buffers::new()) };
}

/// The buffers that collect and sort hashes.
struct Buffers {
    hashes: Vec<u64>,
    sorted: Vec<u64>,
    /// The position of the next hash of each bucket.
    ends: Vec<u32>,
}

impl Buffers {
    const fn new() -> Self {
        Self {
            hashes: Vec::new(),
            sorted: Vec::new(),
            ends: Vec::new(),
        }
    }
}

/// The distinct hashes of a text. Removes repeats whenever there are `max_hashes` entries.
struct FeatureHashes {
    buffers: Buffers,
    max_hashes: usize,
}

impl FeatureHashes {
    fn new() -> Self {
        let mut buffers = SPARE.replace(Buffers::new());
        buffers.hashes.clear();
        Self {
            buffers,
            max_hashes: MIN_HASHES,
        }
    }

    #[inline]
    fn push(&mut self, hash: u64) {
        self.buffers.hashes.push(hash);
        if self.buffers.hashes.len() >= self.max_hashes {
            self.buffers.sort_distinct();
            // Twice what remains, so that sorting costs O(log n) for each feature.
            self.max_hashes = MIN_HASHES.max(2 * self.buffers.hashes.len());
        }
    }

    fn sorted(&mut self) -> &[u64] {
        self.buffers.sort_distinct();
        &self.buffers.hashes
    }
}

impl Drop for FeatureHashes {
    fn drop(&mut self) {
        // The buffers of a longer text are not kept.
        if self.buffers.hashes.capacity() <= 2 * MIN_HASHES {
            let buffers = std::mem::replace(&mut self.buffers, Buffers::new());
            // A thread that ends has no next text.
            let _ = SPARE.try_with(|spare| spare.set(buffers));
        }
    }
}

/// Fewer hashes than this are sorted directly.
const MIN_DISTRIBUTED: usize = 64;

/// The maximum number of leading bits that select a bucket. The counts then fit into a near cache.
const MAX_BUCKET_BITS: u32 = 12;

/// The maximum bucket size for which insertion sort is faster than a general sort.
const MAX_MOVED: u32 = 16;

impl Buffers {
    /// Sorts the hashes and removes repeats.
    fn sort_distinct(&mut self) {
        if self.hashes.len() < MIN_DISTRIBUTED {
            self.hashes.sort_unstable();
        } else {
            self.distribute();
        }
        self.hashes.dedup();
    }

    /// Sorts the hashes. They are evenly distributed, so their highest bits alone place most of
    /// them, and few need to move further.
    fn distribute(&mut self) {
        let Self {
            hashes,
            sorted,
            ends,
        } = self;
        // Twice as many buckets as hashes: the processor can then predict that a hash need not
        // move.
        let bits = (hashes.len().ilog2() + 1).min(MAX_BUCKET_BITS);
        let bucket = |hash: u64| (hash >> (u64::BITS - bits)) as usize;
        ends.clear();
        ends.resize(1 << bits, 0);
        for &hash in &*hashes {
            if let Some(count) = ends.get_mut(bucket(hash)) {
                *count += 1;
            }
        }
        let (mut total, mut largest) = (0, 0);
        for end in &mut *ends {
            largest = largest.max(*end);
            total += std::mem::replace(end, total);
        }
        // Each place is written exactly once.
        sorted.resize(hashes.len(), 0);
        for &hash in &*hashes {
            if let Some(end) = ends.get_mut(bucket(hash)) {
                if let Some(slot) = sorted.get_mut(*end as usize) {
                    *slot = hash;
                }
                *end += 1;
            }
        }
        if largest > MAX_MOVED {
            sorted.sort_unstable();
        } else {
            insertion_sort(sorted);
        }
        std::mem::swap(hashes, sorted);
    }
}

fn insertion_sort(hashes: &mut [u64]) {
    for end in 1..hashes.len() {
        let mut position = end;
        while let Some(before) = position.checked_sub(1)
            && let Some([earlier, hash]) = hashes.get_mut(before..=position)
            && *earlier > *hash
        {
            std::mem::swap(earlier, hash);
            position = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use crate::sample::one_in;
    use crate::sketch::containment::Containment;
    use crate::sketch::hash::{GOLDEN_GAMMA, feature_hash};
    use crate::sketch::recipe::{EmptyDocuments, Recipe};
    use crate::sketch::sketcher::Sketcher;
    use crate::text::Text;

    fn sketcher(text: Option<Text>) -> Sketcher {
        sketcher_keeping(text, None)
    }

    fn sketcher_keeping(text: Option<Text>, containment: Option<Containment>) -> Sketcher {
        let recipe = Recipe {
            text,
            seed: 1,
            empty: EmptyDocuments::Distinct,
            minhash: None,
            simhash_bits: Some(64),
            simhash_counts: false,
            containment,
            exact_bits: None,
        };
        Sketcher::new(recipe).unwrap()
    }

    fn oracle(text: Text, of: &str) -> Vec<u64> {
        let mut shingles = HashSet::new();
        text.for_each_shingle(of, |shingle| {
            if !shingles.contains(shingle) {
                shingles.insert(shingle.to_owned());
            }
        });
        let hashes: BTreeSet<u64> = shingles
            .iter()
            .map(|s| feature_hash(s.as_bytes()))
            .collect();
        hashes.into_iter().collect()
    }

    /// Tests each kind of shingles with one of the long texts in turn, or with both if
    /// `RESEMBLANCE_TESTS=all`.
    #[test]
    fn feature_hashes_are_those_of_distinct_shingles() {
        // Repeats occur within the buffer and across its end several times.
        let repeated = "a b c d e ".repeat(60_000);
        let many: String = (0..90_000).map(|n| format!("w{} ", n % 70_001)).collect();
        let long = [&*many, &*repeated];
        for (number, text) in [Text::words(3), Text::characters(9)]
            .into_iter()
            .enumerate()
        {
            let sketcher = sketcher(Some(text));
            let long = long.iter().skip(number % one_in(2)).step_by(one_in(2));
            for of in ["", "one", "The cat. The CAT?"].iter().chain(long) {
                let hashes = sketcher.feature_hashes(of).unwrap();
                assert_eq!(hashes, oracle(text, of));
                let signature = sketcher.text(of).unwrap();
                let both = sketcher.text_and_feature_hashes(of).unwrap();
                assert_eq!(both, (signature.clone(), hashes.clone()));
                assert_eq!(sketcher.hashes(hashes).unwrap(), signature);
            }
        }
    }

    /// Signatures made from features once lacked kept hashes, and the store refused documents that
    /// it should have compared exactly.
    #[test]
    fn signature_of_features_has_kept_hashes() {
        for length in [2, 5] {
            let containment = Containment::new(length).window(2);
            let sketcher = sketcher_keeping(Some(Text::words(2)), Some(containment));
            let of = "the cat sat on the mat, and the dog sat on the cat";
            let (signature, hashes) = sketcher.text_and_feature_hashes(of).unwrap();
            assert!(signature.kept_hashes().is_some_and(|kept| !kept.is_empty()));
            assert_eq!(signature, sketcher.text(of).unwrap());
            assert_eq!(hashes, oracle(Text::words(2), of));
        }
    }

    #[test]
    fn feature_hashes_are_sorted_for_any_distribution() {
        for count in [0, 1, 63, 64, 65, 1_000, 5_000] {
            for shift in [0, 20, 40, 63] {
                let hashes = (0..count).map(|i: u64| i.wrapping_mul(GOLDEN_GAMMA) >> shift);
                let hashes: Vec<u64> = hashes.collect();
                let mut buffers = super::Buffers::new();
                for found in [&hashes, &hashes[..hashes.len() / 2], &hashes] {
                    buffers.hashes.clear();
                    buffers.hashes.extend_from_slice(found);
                    buffers.sort_distinct();
                    let expected: BTreeSet<u64> = found.iter().copied().collect();
                    assert!(expected.into_iter().eq(buffers.hashes.iter().copied()));
                }
            }
        }
    }

    #[test]
    fn schema_without_text_has_no_feature_hashes() {
        assert!(sketcher(None).feature_hashes("a text").is_err());
    }
}
