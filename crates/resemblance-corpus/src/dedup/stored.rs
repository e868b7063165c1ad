//! Finds the documents of a store that hold new documents.

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::sync::Arc;

use resemblance::exact::shared_from;
use resemblance::invariant::{at, at_mut};
use resemblance::schema::EmptyDocuments;
use resemblance::{DocumentId, Error, Matches, Query, Result, Signature, Snapshot};

use crate::dedup::contained::{check_lost, least_held};
use crate::dedup::evidence::{ComparedCandidate, exact_hashes, has_features};
use crate::verification::{FeatureSets, SetOverlap, SketchedText};

/// The sets of features of the documents of a store, by which new documents are compared with them
/// exactly: those of an exact store, or features that were computed from its texts.
///
/// ```
/// use resemblance::{MinHash, Schema, Store, Text};
/// use resemblance_corpus::dedup::StoredSets;
/// use resemblance_corpus::verification::SketchedText;
///
/// let minhash = MinHash::new(64).threshold(0.5);
/// let schema = Schema::builder().text(Text::words(1)).minhash(minhash).exact().build()?;
/// let store = Store::in_memory(schema)?;
/// store.insert("long", &store.sketch_text("the quick brown fox jumps over a lazy dog")?)?;
///
/// let texts = ["the quick brown fox jumps over a dog", "the quick brown fox jumps over a cat"];
/// let new = texts.map(|text| SketchedText::new(&store.sketcher(), false, text));
/// let [short, other] = new.map(|sketched| sketched.expect("words"));
/// let answer = StoredSets::new(&store.snapshot()?, None)?.holders(&[&short, &other], 0.0)?;
/// let found = answer.found[0].expect("nothing of the first one would be lost");
/// assert_eq!((found.shares.held, found.shares.covered), (1.0, 8.0 / 9.0));
/// assert_eq!(answer.found[1], None);
/// assert_eq!(answer.rejected[0].shares.held, 7.0 / 8.0);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone)]
pub struct StoredSets {
    snapshot: Snapshot,
    features: Option<Arc<FeatureSets>>,
}

/// The documents of a store that hold those of a batch.
#[derive(Debug)]
#[non_exhaustive]
pub struct StoredHolders {
    /// For each document of the batch, the stored one that holds the most of its features, then the
    /// most similar one, then the earliest one.
    pub found: Vec<Option<ComparedCandidate>>,
    /// The stored documents that were compared and hold too little, in the order of the batch.
    pub rejected: Vec<ComparedCandidate>,
}

/// A stored document to compare with the one at an index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StoredCandidate {
    id: DocumentId,
    index: usize,
}

impl StoredSets {
    /// Uses `features` of stored documents, or the sets of an exact store. Stored documents without
    /// either are not compared.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] with the parameter `features` if there are none, and the store
    /// keeps signatures only: an estimate cannot show what is lost.
    pub fn new(snapshot: &Snapshot, features: impl Into<Option<Arc<FeatureSets>>>) -> Result<Self> {
        let features = features.into();
        if features.is_none() && !has_features(snapshot.schema()) {
            let expected = "features of the stored documents, or an exact store, which has them";
            return Err(Error::invalid("features", "none", expected));
        }
        Ok(Self {
            snapshot: snapshot.clone(),
            features,
        })
    }

    /// Compares the document at an index of a batch with a stored one. Returns `None` if the features
    /// of the latter are not known.
    ///
    /// # Errors
    ///
    /// The errors of [`Snapshot::get_id`], and [`Error::Io`] if features cannot be read.
    pub fn compare(
        &self,
        index: usize,
        document: &SketchedText,
        candidate: DocumentId,
    ) -> Result<Option<ComparedCandidate>> {
        let set = self.set(candidate)?;
        Ok(set
            .map(|set| SetOverlap::of(self.own(document), &set).compared(index as u64, candidate)))
    }

    /// Runs a query for the signatures of a batch that compares documents exactly where the features of
    /// the stored ones are known. Returns its answers, and the stored documents that were compared so
    /// and are less similar than `min_similarity`, in the order of the batch.
    ///
    /// # Errors
    ///
    /// The errors of [`Query::run`](resemblance::Query::run) and [`compare`](Self::compare).
    pub fn verify(
        &self,
        query: Query<'_, Vec<Matches>>,
        documents: &[&SketchedText],
        min_similarity: f64,
    ) -> Result<(Vec<Matches>, Vec<ComparedCandidate>)> {
        let rejected = RefCell::default();
        let similarity = |index, id| {
            let compared = self.compare(index, at(documents, index)?, id)?;
            let rejected: &RefCell<Vec<_>> = &rejected;
            let below = compared.filter(|it| it.similarity < min_similarity);
            rejected.borrow_mut().extend(below);
            Ok(compared.map(|compared| compared.similarity))
        };
        let answers = query.verify(similarity).run()?;
        Ok((answers, in_order(rejected.into_inner())))
    }

    /// Finds, for each document of a batch, a stored one that holds it: at most the share `max_lost`
    /// of its distinct features is missing from that one. Stored documents are compared if they
    /// share a bucket with the document, and if the schema has
    /// [containment](resemblance::Containment), also if they share a kept hash with it, and so all
    /// that share a passage with it that is long enough. See [`recall`](Self::recall). They are not
    /// compared if they have too few features to hold it.
    ///
    /// Only new documents can be dropped: a stored document that a new one holds is not found.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a share that is not below 1, and the errors of
    /// [`Query::candidates`](resemblance::Query::candidates),
    /// [`ContainmentQuery::run`](resemblance::ContainmentQuery::run) and [`compare`](Self::compare).
    pub fn holders(&self, documents: &[&SketchedText], max_lost: f64) -> Result<StoredHolders> {
        check_lost(max_lost)?;
        let are_empty_alike = self.snapshot.schema().empty_documents() == EmptyDocuments::Alike;
        let mut best: Vec<Option<SetOverlap>> = vec![None; documents.len()];
        let mut answer = StoredHolders {
            found: vec![None; documents.len()],
            rejected: Vec::new(),
        };
        for with_id in self.candidates(documents)?.chunk_by(|a, b| a.id == b.id) {
            let id = at(with_id, 0)?.id;
            let Some(set) = self.set(id)? else {
                continue;
            };
            for &StoredCandidate { index, .. } in with_id {
                let own = self.own(at(documents, index)?);
                let best = at_mut(&mut best, index)?;
                let needed = least_held(max_lost, own.len());
                let is_equal = best.is_some_and(|it| it.shared == it.b && it.shared == it.a);
                let cannot_hold = own.is_empty() && !(set.is_empty() && are_empty_alike);
                if is_equal || cannot_hold || set.len() < needed {
                    continue;
                }
                let overlap = SetOverlap {
                    a: own.len(),
                    b: set.len(),
                    shared: shared_from(0, own, &set),
                };
                let rank = |it: SetOverlap| (it.shared, Reverse(it.b));
                let compared = overlap.compared(index as u64, id);
                if overlap.shared < needed {
                    answer.rejected.push(compared);
                } else if best.is_none_or(|best| rank(overlap) > rank(best)) {
                    *best = Some(overlap);
                    *at_mut(&mut answer.found, index)? = Some(compared);
                }
            }
        }
        answer.rejected = in_order(answer.rejected);
        Ok(answer)
    }

    /// Returns the probability that the bands find a stored document that holds a new one and has
    /// `times` the number of its features; `None` without MinHash. Containment finds more.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # use resemblance_corpus::dedup::StoredSets;
    /// let minhash = MinHash::new(128).threshold(0.8).recall(0.99);
    /// let schema = Schema::builder().text(Text::words(5)).minhash(minhash).exact().build()?;
    /// let sets = StoredSets::new(&Store::in_memory(schema)?.snapshot()?, None)?;
    /// assert!(sets.recall(0.0, 1.25) >= Some(0.99)); // their similarity is 0.8
    /// assert!(sets.recall(0.0, 10.0) < Some(0.01)); // and 0.1
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn recall(&self, max_lost: f64, times: f64) -> Option<f64> {
        let similarity = (1.0 - max_lost) / (times + max_lost);
        let minhash = self.snapshot.schema().minhash()?;
        Some(minhash.probability(similarity))
    }

    /// The stored documents to compare with each one, by id.
    fn candidates(&self, documents: &[&SketchedText]) -> Result<Vec<StoredCandidate>> {
        let signatures = documents.iter().map(|document| document.signature.clone());
        let signatures: Vec<Signature> = signatures.collect();
        let schema = self.snapshot.schema();
        let mut found = Vec::new();
        if schema.has_families() {
            let near = self.snapshot.query(&signatures).candidates()?;
            for (index, ids) in near.into_iter().enumerate() {
                found.extend(ids.into_iter().map(|id| StoredCandidate { id, index }));
            }
        }
        if schema.containment().is_some() {
            let sharing = self.snapshot.overlaps(&signatures).run()?;
            for (index, overlaps) in sharing.iter().enumerate() {
                let ids = overlaps.iter().map(|overlap| overlap.id());
                found.extend(ids.map(|id| StoredCandidate { id, index }));
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// The features of a new document, hashed as those of stored ones are.
    fn own<'d>(&self, document: &'d SketchedText) -> &'d [u64] {
        let set = exact_hashes(self.snapshot.schema(), &document.signature);
        set.filter(|_| self.features.is_none())
            .unwrap_or(&document.features)
    }

    /// The features of a stored document, if they are known.
    fn set(&self, id: DocumentId) -> Result<Option<Cow<'_, [u64]>>> {
        if let Some(features) = &self.features {
            return features.get(id);
        }
        let record = self.snapshot.get_id(id)?;
        let schema = self.snapshot.schema();
        let set = record.and_then(|it| exact_hashes(schema, it.signature()).map(<[u64]>::to_vec));
        Ok(set.map(Cow::Owned))
    }
}

/// Sorts candidates by the documents that they were compared with.
fn in_order(mut candidates: Vec<ComparedCandidate>) -> Vec<ComparedCandidate> {
    candidates.sort_unstable_by_key(|it| (it.document, it.candidate));
    candidates
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::sample::{Random, trials};
    use crate::survivors::{Likeness, Sets, excerpts, families};
    use resemblance::{Containment, Document, MinHash, Schema, Store, Text};

    fn schema(is_exact: bool, empty: EmptyDocuments, containment: Option<Containment>) -> Schema {
        let minhash = MinHash::new(64).banding(16, 4).threshold(0.8);
        let schema = Schema::builder().text(Text::words(1)).minhash(minhash);
        let schema = match containment {
            Some(containment) => schema.containment(containment),
            None => schema,
        };
        let schema = schema.empty_documents(empty);
        let schema = if is_exact { schema.exact() } else { schema };
        schema.build().unwrap()
    }

    /// The survivor of each new document is stored and holds the most of it, and what was rejected
    /// does not hold it; no holder is missed if every shared feature nominates.
    #[test]
    fn new_documents_are_found_in_stored_ones_that_hold_them() {
        let (mut random, mut found, mut rejected, mut missed) = (Random(17), 0, 0, 0);
        for round in 0..trials(24, 200_usize) {
            let sets: Sets = match round % 2 {
                0 => excerpts(&mut random),
                _ => families(&mut random, 60),
            };
            let max_lost = [0.0, 0.05, 0.1, 0.3, 0.6][round % 5];
            let (is_exact, empty) = match round % 3 {
                0 => (true, EmptyDocuments::Alike),
                1 => (true, EmptyDocuments::Distinct),
                _ => (false, EmptyDocuments::Alike),
            };
            let containment = match round % 4 {
                0 | 1 => Some(Containment::new(1).window(1)),
                2 => Some(Containment::new(2).window(3)),
                _ => None,
            };
            let store = Store::in_memory(schema(is_exact, empty, containment)).unwrap();
            let sketch = |set: &BTreeSet<u64>| {
                let text: String = set.iter().map(|feature| format!("w{feature} ")).collect();
                SketchedText::new(&store.sketcher(), !is_exact, &text).unwrap()
            };
            let sketched: Vec<SketchedText> = sets.iter().map(sketch).collect();
            let stored: Vec<usize> = (0..sets.len()).filter(|_| random.below(3) > 0).collect();
            let mut features = FeatureSets::new(std::env::temp_dir()).memory_bytes(4_000);
            for &number in &stored {
                let document = Document::without_key().stamp(number as u64);
                let id = store.insert(document, &sketched[number].signature).unwrap();
                if !is_exact {
                    let hashes = Arc::clone(&sketched[number].features);
                    features.put(id, hashes).unwrap();
                }
            }
            features.flush().unwrap();
            let features = (!is_exact).then(|| Arc::new(features));
            let snapshot = store.snapshot().unwrap();
            let known = StoredSets::new(&snapshot, features).unwrap();
            let batch: Vec<&SketchedText> = sketched.iter().collect();
            let answer = known.holders(&batch, max_lost).unwrap();
            let likeness = Likeness {
                sets: &sets,
                are_empty_alike: empty == EmptyDocuments::Alike,
            };
            let number = |it: &ComparedCandidate| {
                let record = snapshot.get_id(it.candidate).unwrap().unwrap();
                usize::try_from(record.stamp()).unwrap()
            };
            for (document, holder) in answer.found.iter().enumerate() {
                let expected = likeness.holders(document, stored.iter().copied(), max_lost);
                let holder = holder.as_ref().map(number);
                if let Some(holder) = holder {
                    assert!(likeness.holds(document, holder, max_lost), "round {round}");
                    found += 1;
                }
                // Every shared feature nominates.
                if round % 4 < 2 {
                    let expected = expected.first().copied();
                    assert_eq!(holder, expected, "round {round}: {document}");
                }
                missed += usize::from(holder.is_none() && !expected.is_empty());
            }
            for it in &answer.rejected {
                let (a, b) = (it.document as usize, number(it));
                assert!(!likeness.holds(a, b, max_lost), "round {round}: {it:?}");
                assert_eq!([it.shares.held, it.shares.covered], likeness.shares(a, b));
                let again = known.compare(a, batch[a], it.candidate).unwrap();
                assert_eq!(again, Some(*it));
            }
            rejected += answer.rejected.len();
            assert!(known.holders(&batch, 1.0).is_err());
        }
        assert!(
            found > 300 && rejected > 300 && missed > 10,
            "{found}, {rejected}, {missed}"
        );
        let store = Store::in_memory(schema(false, EmptyDocuments::Distinct, None)).unwrap();
        assert!(StoredSets::new(&store.snapshot().unwrap(), None).is_err());
    }
}
