//! Exact Jaccard similarities: finds every pair of a sample that reaches a floor, one document at a
//! time.
//!
//! An inverted index contains the features of the documents so far. The join looks up a document's
//! features, the rarest first, and counts how many it shares with each earlier document. It does
//! not look up the most frequent ones, up to the number that a pair can lack and still reach the
//! floor. It searches for these only in the documents that the others have found. (This is a prefix
//! filter, as in Chaudhuri, Ganti and Kaushik, ICDE 2006, and Bayardo, Ma and Srikant, WWW 2007.)
//! The result is the same as comparing all pairs. Features are identified by 64-bit hashes: the
//! probability that two of n features are confused is at most n² / 2^65, which is 10^-6 for ten
//! million.

use resemblance::invariant::{OrBug, at, at_mut, bug};
use resemblance::{Error, Result};

/// The memory that the join takes for each feature of each document, in bytes: the features, a
/// sorted copy, their ranks, the index, and a hash, frequency and rank for each feature that two
/// documents share.
#[doc(hidden)]
pub const FEATURE_BYTES: u64 = 40;

/// The maximum amount by which rounding lowers a bound on a number of features.
const ROUNDING: f64 = 1e-6;

/// A document to which another one is similar.
///
/// ```
/// use resemblance_corpus::verification::{Partner, exact_partners};
///
/// let partners: Vec<Vec<Partner>> =
///     exact_partners(&[vec![1, 2], vec![1, 2, 3]], 0.5)?.collect::<resemblance::Result<_>>()?;
/// assert!(partners[0].is_empty()); // there is none before the first
/// assert_eq!((partners[1][0].document, partners[1][0].similarity), (0, 2.0 / 3.0));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partner {
    /// The index of the document.
    pub document: usize,
    /// The exact Jaccard similarity.
    pub similarity: f64,
}

/// Finds all similar pairs of documents exactly. The iterator returns, for each document in turn,
/// its partners among the earlier documents in ascending order. Each document is given by the
/// distinct hashes of its features in ascending order. Pairs with a similarity below `floor`, 0 to
/// 1, are left out, and so are pairs that share nothing. The join takes about 40 bytes of memory
/// for each feature of each document.
///
/// # Errors
///
/// [`Error::InvalidParameter`](resemblance::Error::InvalidParameter) for 2^32 documents or more.
/// The iterator returns only [`Error::Bug`](resemblance::Error::Bug).
///
/// ```
/// use resemblance_corpus::verification::exact_partners;
///
/// // Distinct feature hashes, ascending, as `Sketcher::feature_hashes` gives them.
/// let documents = [vec![1, 2, 3, 4], vec![7, 9], vec![1, 2, 3, 4, 5]];
/// let mut pairs = Vec::new();
/// for (document, partners) in exact_partners(&documents, 0.7)?.enumerate() {
///     pairs.extend(partners?.iter().map(|partner| (partner.document, document, partner.similarity)));
/// }
/// assert_eq!(pairs, [(0, 2, 0.8)]);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn exact_partners(
    features: &[Vec<u64>],
    floor: f64,
) -> Result<impl Iterator<Item = Result<Vec<Partner>>> + use<>> {
    let mut join = ExactJoin::new(features, floor)?;
    Ok(std::iter::from_fn(move || join.advance().transpose()))
}

struct ExactJoin {
    floor: f64,
    /// The number of features of each document.
    sizes: Vec<usize>,
    /// The ranks of those of its features that another document also has, the rarest first.
    ranks: Vec<Vec<u32>>,
    index: FeatureIndex,
    /// The number of features that each earlier document shares with the current one.
    counts: Vec<u32>,
    touched: Vec<usize>,
    next: usize,
}

impl ExactJoin {
    fn new(features: &[Vec<u64>], floor: f64) -> Result<Self> {
        if u32::try_from(features.len()).is_err() {
            let found = features.len();
            return Err(Error::invalid("documents", found, "less than 2^32"));
        }
        let shared = shared(features)?;
        let rank = |hash: &u64| {
            let index = shared.binary_search_by_key(hash, |shared| shared.hash);
            let shared = index.ok().and_then(|index| shared.get(index))?;
            Some(shared.rank)
        };
        let ascending_ranks = |hashes: &Vec<u64>| {
            let mut ranks: Vec<u32> = hashes.iter().filter_map(rank).collect();
            ranks.sort_unstable();
            ranks
        };
        let ranks = features.iter().map(ascending_ranks).collect();
        let mut frequencies = vec![0; shared.len()];
        for feature in &shared {
            *at_mut(&mut frequencies, feature.rank as usize)? = feature.frequency;
        }
        Ok(Self {
            floor: floor.clamp(0.0, 1.0),
            sizes: features.iter().map(Vec::len).collect(),
            ranks,
            index: FeatureIndex::new(&frequencies),
            counts: vec![0; features.len()],
            touched: Vec::new(),
            next: 0,
        })
    }

    /// Returns the partners of the next document, or `None` after the last.
    fn advance(&mut self) -> Result<Option<Vec<Partner>>> {
        let Some(ranks) = self.ranks.get(self.next) else {
            return Ok(None);
        };
        let size = *at(&self.sizes, self.next)?;
        // A pair at the floor shares at least `needed` features, and so at least one that is not
        // among the last `needed - 1`.
        let needed = min_count(self.floor, size);
        let (looked_up, rest) = ranks.split_at(ranks.len().saturating_sub(needed - 1));
        for rank in looked_up {
            for &document in self.index.documents(*rank)? {
                let document = document as usize;
                let count = at_mut(&mut self.counts, document)?;
                if *count == 0 {
                    self.touched.push(document);
                }
                *count += 1;
            }
        }
        self.touched.sort_unstable();
        let mut partners = Vec::new();
        for document in self.touched.drain(..) {
            let count = std::mem::take(at_mut(&mut self.counts, document)?) as usize;
            let both = size + *at(&self.sizes, document)?;
            // Even if it has all frequent features too, it cannot reach the floor.
            if count + rest.len() < min_count(self.floor / (1.0 + self.floor), both) {
                continue;
            }
            let theirs = at(&self.ranks, document)?;
            let found = rest
                .iter()
                .filter(|rank| theirs.binary_search(rank).is_ok());
            let overlap = count + found.count();
            let similarity = overlap as f64 / (both - overlap).max(1) as f64;
            if similarity >= self.floor {
                partners.push(Partner {
                    document,
                    similarity,
                });
            }
        }
        self.index.insert(self.next, ranks)?;
        self.next += 1;
        Ok(Some(partners))
    }
}

/// Returns the smallest number of features that is at least `share` of `size`, and at least 1.
fn min_count(share: f64, size: usize) -> usize {
    ((share * size as f64 - ROUNDING).ceil() as usize).max(1)
}

/// A feature that at least two documents have.
struct SharedFeature {
    hash: u64,
    frequency: u32,
    /// Its rank among all such features, the rarest first.
    rank: u32,
}

/// Returns the features that at least two documents have, ascending by hash.
fn shared(features: &[Vec<u64>]) -> Result<Vec<SharedFeature>> {
    let mut all: Vec<u64> = features.iter().flatten().copied().collect();
    all.sort_unstable();
    let runs = all.chunk_by(|a, b| a == b).filter(|run| run.len() > 1);
    let mut shared = Vec::new();
    for run in runs {
        shared.push(SharedFeature {
            hash: *at(run, 0)?,
            frequency: u32::try_from(run.len())
                .map_err(|_| bug("2^32 documents share a feature"))?,
            rank: 0,
        });
    }
    drop(all);
    shared.sort_unstable_by_key(|feature| (feature.frequency, feature.hash));
    for (rank, feature) in (0..).zip(&mut shared) {
        feature.rank = rank;
    }
    shared.sort_unstable_by_key(|feature| feature.hash);
    Ok(shared)
}

/// For each feature, the documents read so far that have it. One list holds them, with a part for
/// each feature.
struct FeatureIndex {
    /// The start of each rank's part, and the end of the list.
    starts: Vec<usize>,
    filled: Vec<u32>,
    documents: Vec<u32>,
}

impl FeatureIndex {
    fn new(frequencies: &[u32]) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        for &frequency in frequencies {
            end += frequency as usize;
            starts.push(end);
        }
        Self {
            starts,
            filled: vec![0; frequencies.len()],
            documents: vec![0; end],
        }
    }

    fn documents(&self, rank: u32) -> Result<&[u32]> {
        let rank = rank as usize;
        let (start, filled) = (*at(&self.starts, rank)?, *at(&self.filled, rank)? as usize);
        let part = self.documents.get(start..start + filled);
        part.or_bug("a feature has more documents than it was counted in")
    }

    fn insert(&mut self, document: usize, ranks: &[u32]) -> Result<()> {
        let document =
            u32::try_from(document).map_err(|_| bug("a document's number does not fit 32 bits"))?;
        for &rank in ranks {
            let rank = rank as usize;
            let filled = at_mut(&mut self.filled, rank)?;
            let next = *at(&self.starts, rank)? + *filled as usize;
            *at_mut(&mut self.documents, next)? = document;
            *filled += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all pairs that reach the floor, by comparing all pairs.
    fn brute_force(features: &[Vec<u64>], floor: f64) -> Vec<Vec<Partner>> {
        let partners = |(index, a): (usize, &Vec<u64>)| {
            let earlier = features[..index].iter().enumerate();
            let compared = earlier.map(|(document, b)| {
                let overlap = a.iter().filter(|hash| b.contains(hash)).count();
                let union = a.len() + b.len() - overlap;
                let similarity = overlap as f64 / union.max(1) as f64;
                (
                    overlap,
                    Partner {
                        document,
                        similarity,
                    },
                )
            });
            compared
                .filter(|(overlap, partner)| *overlap > 0 && partner.similarity >= floor)
                .map(|(_, partner)| partner)
                .collect()
        };
        features.iter().enumerate().map(partners).collect()
    }

    fn joined(features: &[Vec<u64>], floor: f64) -> Vec<Vec<Partner>> {
        let partners = exact_partners(features, floor).unwrap();
        partners.map(Result::unwrap).collect()
    }

    #[test]
    fn exact_join_agrees_with_brute_force() {
        // Sets of 0 to 39 of 60 numbers, low ones more often, with equal sets among them.
        let mut state = 7_u64;
        let mut next = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 33
        };
        let mut features: Vec<Vec<u64>> = (0..120)
            .map(|_| {
                let size = next() % 40;
                let mut set: Vec<u64> = (0..size)
                    .map(|_| (next() % 60) * (next() % 60) / 60)
                    .collect();
                set.sort_unstable();
                set.dedup();
                set
            })
            .collect();
        features.push(features[5].clone());
        features.push(Vec::new());
        for floor in [0.0, 0.1, 1.0 / 3.0, 0.5, 0.8, 1.0] {
            let expected = brute_force(&features, floor);
            assert_eq!(joined(&features, floor), expected, "floor {floor}");
            assert!(
                expected.iter().any(|partners| !partners.is_empty()),
                "{floor}"
            );
        }
    }

    #[test]
    fn exact_join_includes_the_threshold() {
        let a: Vec<u64> = (0..5).collect();
        let b: Vec<u64> = (0..4).collect();
        let found = joined(&[a, b], 0.8);
        let expected = Partner {
            document: 0,
            similarity: 0.8,
        };
        assert_eq!(found, [vec![], vec![expected]]);
        assert!(joined(&[], 0.5).is_empty());
    }
}
