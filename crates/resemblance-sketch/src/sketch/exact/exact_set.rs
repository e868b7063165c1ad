//! The set of features that an exact store keeps of a document.

use super::sets::{WeightedSet, jaccard_from, probability_jaccard, weighted_jaccard};
use crate::error::Result;
use crate::invariant::bug;
use crate::sketch::containment::kept_hash;
use crate::sketch::hash::mix64;
use crate::sketch::recipe::MinHashKind;
use crate::sketch::simhash::{WeightedHash, add_up};
use crate::sketch::vector::DenseVector;

/// The content by which a schema that is [exact](crate::SchemaBuilder::exact) compares a document. It
/// is the features, as distinct hashes of 44 bits unless the schema sets another width, in ascending
/// order, with their weights if the kind of MinHash has weights; or the vector.
///
/// ```
/// use resemblance_sketch::{MinHash, Schema, Text};
/// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).exact().build()?;
/// let sketcher = schema.sketcher();
/// let (a, b) = (sketcher.text("a b c d")?, sketcher.text("b c d e")?);
/// let (a, b) = (a.exact_set().unwrap(), b.exact_set().unwrap());
/// assert_eq!((a.hashes().len(), a.weights()), (4, &[][..]));
/// assert_eq!(a.similarity_from(0.0, b, schema.minhash().unwrap().kind())?, 3.0 / 5.0);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExactSet {
    hashes: Vec<u64>,
    /// One weight for each hash, or empty.
    weights: Vec<u64>,
    /// The vector of a document that has one in place of features.
    vector: Option<DenseVector>,
}

/// The hash function of exact sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetHash {
    pub(crate) key: u64,
    /// 32 to 64.
    pub(crate) bits: u8,
}

impl SetHash {
    fn hash(self, feature: u64) -> u64 {
        kept_hash(mix64(feature ^ self.key), self.bits)
    }
}

impl ExactSet {
    /// Makes the set of features with these hashes, in any order. Keeps the same hashes as
    /// containment if they have the same width. Frozen.
    pub(crate) fn of_hashes(set: SetHash, features: Vec<u64>) -> Self {
        let mut hashes = features;
        hashes.iter_mut().for_each(|hash| *hash = set.hash(*hash));
        sort_uniform(&mut hashes, set.bits);
        hashes.dedup();
        Self::from_sorted(hashes, Vec::new())
    }

    /// Makes the set of weighted features. Adds up the weights of hashes that collide. Frozen.
    pub(crate) fn of_weights(set: SetHash, features: &[WeightedHash]) -> Self {
        let kept = features
            .iter()
            .map(|(hash, weight)| (set.hash(*hash), *weight));
        let mut entries: Vec<WeightedHash> = kept.collect();
        add_up(&mut entries);
        let (hashes, weights) = entries.into_iter().unzip();
        Self::from_sorted(hashes, weights)
    }

    /// Makes the set from hashes as a store keeps them: distinct and ascending, with a weight for
    /// each or without weights.
    #[doc(hidden)]
    #[must_use]
    pub fn from_sorted(hashes: Vec<u64>, weights: Vec<u64>) -> Self {
        Self {
            hashes,
            weights,
            vector: None,
        }
    }

    /// Makes the content of a document with a vector.
    #[doc(hidden)]
    #[must_use]
    pub fn of_vector(vector: DenseVector) -> Self {
        Self {
            vector: Some(vector),
            ..Self::default()
        }
    }

    /// Returns the vector, if the document has one in place of features.
    #[must_use]
    pub fn vector(&self) -> Option<&DenseVector> {
        self.vector.as_ref()
    }

    /// Returns the hashes in ascending order, each once.
    #[must_use]
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Returns the weight of each hash, in units of 2⁻¹⁶. Empty unless the kind of MinHash has
    /// weights.
    #[must_use]
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Returns the similarity that MinHash of a kind estimates, from 0 to 1. If it is below
    /// `floor`, returns any number below `floor`.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`](crate::SketchError::InvalidParameter) for weights that no
    /// schema makes; [`SketchError::Bug`](crate::SketchError::Bug) without the vectors of the kind.
    pub fn similarity_from(&self, floor: f64, other: &Self, kind: MinHashKind) -> Result<f64> {
        Ok(match kind {
            MinHashKind::Weighted => weighted_jaccard(&self.weighted()?, &other.weighted()?),
            MinHashKind::Probability => probability_jaccard(&self.weighted()?, &other.weighted()?),
            MinHashKind::Vector(kind) => {
                let vectors = self.vector.as_ref().zip(other.vector.as_ref());
                let (a, b) = vectors.ok_or_else(|| bug("both documents have vectors"))?;
                kind.similarity(a, b)
            }
            _ => jaccard_from(floor, &self.hashes, &other.hashes),
        })
    }

    /// Returns the maximum similarity of two sets with these numbers of features. Sets reach it if
    /// one contains the other. With weights, and for vectors, the maximum is 1.
    #[must_use]
    pub fn max_similarity(a: usize, b: usize, kind: MinHashKind) -> f64 {
        match (a.min(b), a.max(b)) {
            _ if kind.is_weighted() || kind.vector().is_some() => 1.0,
            (_, 0) => 1.0,
            (least, most) => least as f64 / most as f64,
        }
    }

    fn weighted(&self) -> Result<WeightedSet<u64>> {
        let weights = self.weights.iter().map(|weight| *weight as f64);
        WeightedSet::new(self.hashes.iter().copied().zip(weights))
    }
}

/// Sorts hashes of this many bits, which are uniform unless many are equal. Each goes to a bucket by
/// its upper bits, so that few have to move after that.
fn sort_uniform(hashes: &mut Vec<u64>, bits: u8) {
    /// Below this length the buckets cost more than comparisons.
    const SHORTEST: usize = 64;
    /// More buckets would not fit into a processor's cache.
    const MAX_BUCKET_BITS: u32 = 14;
    /// The most hashes of a bucket that are sorted by insertion.
    const MAX_INSERTED: u32 = 16;
    if hashes.len() < SHORTEST {
        return hashes.sort_unstable();
    }
    let bucket_bits = (2 * hashes.len()).ilog2().min(MAX_BUCKET_BITS);
    let shift = u32::from(bits) - bucket_bits;
    let mut starts = vec![0_u32; 1 << bucket_bits];
    for hash in &*hashes {
        if let Some(count) = starts.get_mut((hash >> shift) as usize) {
            *count += 1;
        }
    }
    let (mut start, mut most) = (0, 0);
    for place in &mut starts {
        most = most.max(*place);
        start += std::mem::replace(place, start);
    }
    if most > MAX_INSERTED {
        return hashes.sort_unstable();
    }
    let mut sorted = vec![0; hashes.len()];
    for hash in &*hashes {
        if let Some(place) = starts.get_mut((hash >> shift) as usize)
            && let Some(slot) = sorted.get_mut(*place as usize)
        {
            *slot = *hash;
            *place += 1;
        }
    }
    for end in 1..sorted.len() {
        let mut place = end;
        while place > 0 && sorted.get(place - 1) > sorted.get(place) {
            sorted.swap(place - 1, place);
            place -= 1;
        }
    }
    *hashes = sorted;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::schema::{MinHash, Schema, SimHash};
    use crate::sketch::{Containment, Signature};
    use crate::text::Text;

    const TEXT: &str = "to be or not to be that is the question to be or not";

    fn sketch(
        minhash: MinHash,
        change: impl Fn(crate::SchemaBuilder) -> crate::SchemaBuilder,
    ) -> Signature {
        let builder = Schema::builder()
            .text(Text::words(2))
            .minhash(minhash)
            .exact();
        let schema = change(builder).build().unwrap();
        let sketcher = schema.sketcher();
        let signature = sketcher.text(TEXT).unwrap();
        let mut streamed = sketcher.text_reader(TEXT.as_bytes()).unwrap();
        assert_eq!(signature, streamed);
        streamed = streamed.with_set(None);
        assert_eq!(signature == streamed, signature.exact_set().is_none());
        let read: Schema = serde_json::from_str(&serde_json::to_string(&schema).unwrap()).unwrap();
        assert_eq!((read.is_exact(), &read), (true, &schema));
        signature
    }

    #[test]
    fn exact_sets_are_the_kept_hashes_of_all_features() {
        let all = Containment::new(2).window(1);
        let shared = sketch(MinHash::new(64), |builder| builder.containment(all));
        assert_eq!(shared.exact_set(), None);
        let kept = shared.kept_hashes().unwrap();
        assert_eq!(kept.len(), 9);
        for change in [
            |builder: crate::SchemaBuilder| builder,
            |builder: crate::SchemaBuilder| builder.simhash(SimHash::bits64()),
            |builder: crate::SchemaBuilder| builder.containment(Containment::new(3).window(1)),
        ] {
            for minhash in [
                MinHash::new(64),
                MinHash::one_pass(64),
                MinHash::bottom_k(64),
            ] {
                let set = sketch(minhash, change);
                assert_eq!(set.exact_set().unwrap().hashes(), kept);
            }
        }
    }

    #[test]
    fn uniform_sort_sorts_any_hashes() {
        for bits in [32, 44, 64] {
            for count in [0, 1, 63, 64, 100, 341, 5_000, 20_000] {
                let uniform = |number: u64| super::mix64(number) >> (64 - bits);
                let repeated = |number: u64| uniform(number % 7);
                let low = |number: u64| uniform(number) % 1_000;
                for hash in [&uniform as &dyn Fn(u64) -> u64, &repeated, &low] {
                    let mut sorted: Vec<u64> = (0..count).map(hash).collect();
                    let mut expected = sorted.clone();
                    expected.sort_unstable();
                    super::sort_uniform(&mut sorted, bits);
                    assert_eq!(sorted, expected, "{count} of {bits} bits");
                }
            }
        }
    }

    #[test]
    fn exact_sets_have_the_chosen_width() {
        let of = |bits| {
            let signature = sketch(MinHash::new(64), |builder| builder.exact_bits(bits));
            signature.exact_set().unwrap().hashes().to_vec()
        };
        let cut = |bits| {
            of(64)
                .iter()
                .map(|hash| hash >> (64 - bits))
                .collect::<Vec<_>>()
        };
        for bits in [32, 44, 63] {
            assert_eq!(of(bits), cut(bits));
        }
        let schema = |bits| {
            let builder = Schema::builder().minhash(MinHash::new(64));
            builder.exact_bits(bits).build().unwrap()
        };
        let usual = Schema::builder().minhash(MinHash::new(64)).exact();
        assert_eq!(usual.build().unwrap(), schema(44));
        for bits in [32, 44, 64] {
            let bytes = schema(bits).to_bytes().unwrap();
            assert_eq!(Schema::from_bytes(&bytes).unwrap(), schema(bits));
        }
        assert!(schema(32).recipe_difference(&schema(33)).is_some());
    }

    #[test]
    fn exact_sets_of_weighted_kinds_have_weights() {
        let all = Containment::new(2).window(1);
        for minhash in [MinHash::weighted(64), MinHash::probability(64)] {
            let signature = sketch(minhash, |builder| builder.containment(all));
            let set = signature.exact_set().unwrap();
            assert_eq!(set.hashes(), signature.kept_hashes().unwrap());
            let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
            for weight in set.weights() {
                *counts.entry(weight >> 16).or_default() += 1;
            }
            assert_eq!(
                counts
                    .iter()
                    .map(|(weight, count)| weight * count)
                    .sum::<u64>(),
                13
            );
            assert_eq!(counts.get(&3), Some(&1));
        }
    }
}
