//! Groups of equal documents, of which a join has to compare only two.

use std::collections::HashMap;

use resemblance::schema::EmptyDocuments;
use resemblance::{DocumentId, Error, Join, Pair, Pairs, Result};
use xxhash_rust::xxh3::Xxh3;

use crate::verification::FeatureSets;

/// The documents of a join that are equal to others: they have the same signature, and the same
/// features where these are compared.
///
/// Each document that is near one of them is near all, so it suffices to join the first two of each
/// group. A pair of those then counts for a [number](Self::weight) of pairs. Without this, n equal
/// documents would be n² / 2 pairs.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// use resemblance_corpus::dedup::EqualDocuments;
/// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
/// for (key, text) in [("a", "one"), ("b", "one"), ("c", "one"), ("d", "two")] {
///     store.insert(key, &store.sketch_text(text)?)?;
/// }
/// let join = store.snapshot()?.pairs();
/// let equal = EqualDocuments::find(&join, None)?;
/// let mut pairs = 0;
/// for pair in equal.join_two_of_each(join).run()? {
///     pairs += equal.weight(&pair?);
/// }
/// assert_eq!(pairs, 3);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct EqualDocuments {
    /// The groups of at least three documents, each ascending.
    groups: Vec<Vec<DocumentId>>,
    /// The places in the groups of the first two of each.
    joined: HashMap<DocumentId, Place>,
}

/// The group of a document that is joined.
#[derive(Clone, Copy, Debug)]
struct Place {
    group: usize,
    is_first: bool,
    size: u64,
}

impl EqualDocuments {
    /// Finds the groups of at least three equal documents. It reads all documents, and takes 32
    /// bytes of memory for each, and afterwards 8 for each in a group.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] with the parameter `features` if these lack a document; the
    /// errors of reading.
    pub fn find(join: &Join<'_, Pairs>, features: Option<&FeatureSets>) -> Result<Self> {
        let documents = join.documents();
        let is_alike = documents.schema().empty_documents() == EmptyDocuments::Alike;
        let mut digests = Vec::new();
        for id in join.ids()? {
            let Some(record) = documents.get_id(id)? else {
                continue; // removed before it had a row
            };
            let signature = record.signature();
            if signature.is_empty() && !is_alike {
                continue;
            }
            let mut digest = signature.digest();
            if let Some(features) = features {
                let hashes = features.shared(id)?.ok_or_else(|| lacking(id))?;
                digest = digest_of_both(digest, &hashes);
            }
            digests.push((digest, id));
        }
        digests.sort_unstable();
        let mut equal = Self::default();
        for group in digests.chunk_by(|a, b| a.0 == b.0) {
            if group.len() < 3 {
                continue;
            }
            for (position, (_, id)) in group.iter().take(2).enumerate() {
                let place = Place {
                    group: equal.groups.len(),
                    is_first: position == 0,
                    size: group.len() as u64,
                };
                equal.joined.insert(*id, place);
            }
            equal.groups.push(group.iter().map(|(_, id)| *id).collect());
        }
        Ok(equal)
    }

    /// Returns a join without the documents that the first two of their groups represent.
    pub fn join_two_of_each<'a>(&self, join: Join<'a, Pairs>) -> Join<'a, Pairs> {
        let others = self.groups.iter().flat_map(|group| group.iter().skip(2));
        join.without(others.copied())
    }

    /// Returns the number of pairs that a pair of [this join](Self::join_two_of_each) represents; 0
    /// for a pair that another one represents.
    #[must_use]
    pub fn weight(&self, pair: &Pair) -> u64 {
        match (self.joined.get(&pair.a), self.joined.get(&pair.b)) {
            (Some(a), Some(b)) if a.group == b.group => a.size * (a.size - 1) / 2,
            (a, b) if [a, b].into_iter().flatten().all(|place| place.is_first) => {
                a.map_or(1, |place| place.size) * b.map_or(1, |place| place.size)
            }
            _ => 0,
        }
    }

    /// Calls `add` for each document of a pair's groups, with the number of documents that this
    /// pair, and those that it represents, make its neighbours.
    pub(super) fn for_each_neighbour(
        &self,
        pair: &Pair,
        mut add: impl FnMut(DocumentId, u64) -> Result<()>,
    ) -> Result<()> {
        if self.weight(pair) == 0 {
            return Ok(());
        }
        let places = [self.joined.get(&pair.a), self.joined.get(&pair.b)];
        let is_one_group = match places {
            [Some(a), Some(b)] => a.group == b.group,
            _ => false,
        };
        let sizes = places.map(|place| place.map_or(1, |place| place.size));
        let (ids, added) = ([pair.a, pair.b], [sizes[1], sizes[0]]);
        for ((id, place), count) in ids.iter().zip(places).zip(added) {
            let group = place.and_then(|place| self.groups.get(place.group));
            let members = group.map_or(std::slice::from_ref(id), Vec::as_slice);
            for member in members {
                add(*member, if is_one_group { count - 1 } else { count })?;
            }
            if is_one_group {
                break;
            }
        }
        Ok(())
    }
}

fn lacking(id: DocumentId) -> Error {
    let found = format!("none of document {id}");
    Error::invalid("features", found, "those of all documents")
}

fn digest_of_both(signature: u128, features: &[u64]) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.update(&signature.to_le_bytes());
    for hash in features {
        hasher.update(&hash.to_le_bytes());
    }
    hasher.digest128()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use resemblance::schema::EmptyDocuments;
    use resemblance::{Document, MinHash, Schema, SimHash, Store, Text};

    use super::*;
    use crate::sample::{Random, trials};
    use crate::verification::verify_exact;

    /// Words of which many texts have the same three.
    const WORDS: &str = "one|two|three|four|five";

    /// Creates a store with many equal texts, some of them empty, and their features.
    fn store(random: &mut Random) -> (Store, FeatureSets) {
        let empty = random.pick(&[EmptyDocuments::Alike, EmptyDocuments::Distinct]);
        let minhash = MinHash::new(16)
            .value_bits(random.pick(&[1, 16]))
            .banding(8, 2);
        let schema = Schema::builder()
            .text(Text::words(1))
            .empty_documents(empty);
        let schema = match random.below(2) {
            0 => schema.minhash(minhash.threshold(0.4)).build(),
            _ => schema.simhash(SimHash::bits64().max_distance(10)).build(),
        };
        let store = Store::in_memory(schema.unwrap()).unwrap();
        let mut features = FeatureSets::new(std::env::temp_dir());
        for _ in 0..random.below(60) {
            let words: Vec<&str> = (0..random.below(4)).map(|_| random.word(WORDS)).collect();
            let text = words.join(" ");
            let signature = store.sketch_text(&text).unwrap();
            let id = store.insert(Document::without_key(), &signature).unwrap();
            features
                .put(id, store.sketcher().feature_hashes(&text).unwrap())
                .unwrap();
        }
        (store, features)
    }

    #[test]
    fn two_of_each_group_give_the_neighbours_that_all_pairs_give() {
        let mut random = Random(7);
        for _ in 0..trials(60, 600) {
            let (store, features) = store(&mut random);
            let snapshot = store.snapshot().unwrap();
            let is_exact = snapshot.schema().minhash().is_some() && random.below(2) == 0;
            let features = is_exact.then(|| features.into());
            let mut expected: BTreeMap<DocumentId, u64> = BTreeMap::new();
            let mut expected_pairs = 0;
            for pair in verify_exact(snapshot.pairs(), features.clone())
                .run()
                .unwrap()
            {
                let pair = pair.unwrap();
                expected_pairs += 1;
                *expected.entry(pair.a).or_default() += 1;
                *expected.entry(pair.b).or_default() += 1;
            }
            let equal = EqualDocuments::find(&snapshot.pairs(), features.as_deref()).unwrap();
            let join = verify_exact(equal.join_two_of_each(snapshot.pairs()), features);
            let (mut found, mut found_pairs) = (BTreeMap::new(), 0);
            for pair in join.run().unwrap() {
                let pair = pair.unwrap();
                found_pairs += equal.weight(&pair);
                equal
                    .for_each_neighbour(&pair, |id, count| {
                        *found.entry(id).or_default() += count;
                        Ok(())
                    })
                    .unwrap();
            }
            assert_eq!((found, found_pairs), (expected, expected_pairs));
        }
    }

    #[test]
    fn two_of_each_group_are_compared_however_large_it_is() {
        for size in [3, 300] {
            let minhash = MinHash::new(64).banding(32, 2).threshold(0.2);
            let schema = Schema::builder().text(Text::words(1)).minhash(minhash);
            let store = Store::in_memory(schema.build().unwrap()).unwrap();
            for text in ["a b c d", "a b c e", "x"].iter().cycle().take(3 * size) {
                let signature = store.sketch_text(text).unwrap();
                store.insert(Document::without_key(), &signature).unwrap();
            }
            let snapshot = store.snapshot().unwrap();
            let equal = EqualDocuments::find(&snapshot.pairs(), None).unwrap();
            let compared = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&compared);
            let join = equal
                .join_two_of_each(snapshot.pairs())
                .verify(move |_, _| {
                    counted.fetch_add(1, Ordering::Relaxed);
                    Ok(None)
                });
            let pairs = join.run().unwrap();
            let weights = pairs.map(|pair| equal.weight(&pair.unwrap()));
            let (size, weights) = (size as u64, weights.sum::<u64>());
            assert_eq!(weights, 3 * size * (size - 1) / 2 + size * size);
            // Three pairs of equal documents, and four of the two that are alike.
            assert_eq!(compared.load(Ordering::Relaxed), 7);
        }
    }

    #[test]
    fn features_of_all_documents_are_required() {
        let (store, _) = store(&mut Random(1));
        let none = FeatureSets::new(std::env::temp_dir());
        let found = EqualDocuments::find(&store.snapshot().unwrap().pairs(), Some(&none));
        assert!(found.unwrap_err().to_string().contains("features"));
    }
}
