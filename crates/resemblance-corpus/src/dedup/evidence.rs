//! Evidence for decisions: the rule that decided, and what two documents have in common.

use resemblance::exact::shared_from;
use resemblance::{Bounds, DocumentId, Family, Result, Schema, Signature};

/// The rule by which a document is dropped for its survivor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropRule {
    /// Their similarity reaches the bound.
    Similarity,
    /// Their distance is within the bound.
    Distance,
    /// Their similarity and their distance are within the bounds, and both must be.
    Both,
    /// Other documents of their cluster link them.
    Cluster,
    /// The survivor has the features of the document.
    Contained,
    /// They have the same key.
    Key,
}

impl DropRule {
    /// Returns the rule by which a pair is near, or [`Cluster`](Self::Cluster) if it is not near
    /// itself.
    ///
    /// # Errors
    ///
    /// The errors of [`Bounds::met_by`].
    ///
    /// ```
    /// use resemblance_corpus::dedup::DropRule;
    /// use resemblance::{Bounds, MinHash, Schema};
    ///
    /// let schema = Schema::builder().minhash(MinHash::new(64).threshold(0.8)).build()?;
    /// let rule = DropRule::of(Bounds::new(), &schema, Some(0.9), true, None)?;
    /// assert_eq!(rule.name(), "similarity");
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn of(
        bounds: Bounds,
        schema: &Schema,
        similarity: Option<f64>,
        is_exact: bool,
        distance: Option<u32>,
    ) -> Result<Self> {
        let family = bounds.met_by(schema, similarity, is_exact, distance)?;
        Ok(match family {
            None => Self::Cluster,
            Some(Family::MinHash) => Self::Similarity,
            Some(Family::SimHash) => Self::Distance,
            Some(_) => Self::Both,
        })
    }

    /// Returns its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Similarity => "similarity",
            Self::Distance => "distance",
            Self::Both => "both",
            Self::Cluster => "cluster",
            Self::Contained => "contained",
            Self::Key => "key",
        }
    }
}

/// The shares of the distinct features of a dropped document and its survivor that both have. An
/// empty document has all its features in common with any other.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FeatureShares {
    /// The share of the dropped document's features that the survivor has, 0 to 1. What is missing
    /// is lost.
    pub held: f64,
    /// The share of the survivor's features that the dropped document has, 0 to 1.
    pub covered: f64,
}

impl FeatureShares {
    /// Takes the two shares of a report.
    #[must_use]
    pub fn reported(held: f64, covered: f64) -> Self {
        Self { held, covered }
    }

    /// Returns the shares of a dropped document and its survivor with these numbers of features, of
    /// which they have this number in common.
    pub(crate) fn new(dropped: usize, survivor: usize, shared: usize) -> Self {
        let share_of = |size: usize| match size {
            0 => 1.0,
            size => shared as f64 / size as f64,
        };
        Self {
            held: share_of(dropped),
            covered: share_of(survivor),
        }
    }

    /// Returns the shares of two sets whose exact Jaccard similarity is known.
    pub(crate) fn of_sizes(dropped: usize, survivor: usize, similarity: f64) -> Self {
        // A similarity s of sets with n features in all is that of s n / (1 + s) shared ones, a
        // whole number.
        let shared = similarity * (dropped + survivor) as f64 / (1.0 + similarity);
        Self::new(dropped, survivor, shared.round() as usize)
    }

    /// Returns the shares of two documents of an exact schema, by their sets; `None` of others.
    #[must_use]
    pub fn of_signatures(
        schema: &Schema,
        dropped: &Signature,
        survivor: &Signature,
    ) -> Option<Self> {
        let (dropped, survivor) = (
            exact_hashes(schema, dropped)?,
            exact_hashes(schema, survivor)?,
        );
        let shared = shared_from(0, dropped, survivor);
        Some(Self::new(dropped.len(), survivor.len(), shared))
    }
}

/// Returns true if a store of the schema has the features of its documents. Vectors have none.
pub(crate) fn has_features(schema: &Schema) -> bool {
    schema.is_exact() && schema.vector().is_none()
}

/// Returns the hashes of all features of a document, if the schema has them.
pub(crate) fn exact_hashes<'s>(schema: &Schema, signature: &'s Signature) -> Option<&'s [u64]> {
    if !has_features(schema) {
        return None;
    }
    match signature.exact_set() {
        Some(set) => Some(set.hashes()),
        // Hashes that containment keeps of all features are not kept twice.
        None => signature.kept_hashes(),
    }
}

/// A kept document or one of a store that was compared with another document, exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ComparedCandidate {
    /// The index of the document in its batch. If all documents are decided together, its id.
    pub document: u64,
    /// The kept or stored document.
    pub candidate: DocumentId,
    /// Their exact Jaccard similarity.
    pub similarity: f64,
    /// The shares of their features that both have. `held` is that of the document.
    pub shares: FeatureShares,
}

/// The candidates of a batch that were compared and rejected.
pub(crate) struct RejectedCandidates {
    /// Similarities below this one are rejected.
    pub(crate) bound: f64,
    pub(crate) found: Vec<ComparedCandidate>,
}

impl RejectedCandidates {
    /// Restores the order, which depends on threads.
    pub(crate) fn sort(&mut self) {
        self.found
            .sort_unstable_by_key(|it| (it.document, it.candidate));
        self.found.dedup();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::dedup::{DedupPolicy, Deduplicator, Preference, duplicates};
    use crate::sample::Random;
    use crate::verification::{FeatureSets, SketchedText};
    use resemblance::{Document, MinHash, Store, StoreOptions, Text};

    /// Returns the exact similarity and the shares of two sets.
    fn by_brute_force(a: &BTreeSet<u64>, b: &BTreeSet<u64>) -> (f64, FeatureShares) {
        let shared = a.intersection(b).count();
        let similarity = shared as f64 / a.union(b).count() as f64;
        (similarity, FeatureShares::new(a.len(), b.len(), shared))
    }

    /// Returns chains of sets, each of which has most of the one before.
    fn chains() -> Vec<BTreeSet<u64>> {
        let mut random = Random(5);
        let mut sets = Vec::new();
        for _ in 0..20 {
            let mut set: BTreeSet<u64> =
                (0..30 + random.below(40)).map(|_| random.next()).collect();
            for _ in 0..4 {
                sets.push(set.clone());
                set.retain(|_| random.below(100) < 92);
                set.extend((0..random.below(6)).map(|_| random.next()));
            }
        }
        sets
    }

    fn sketch(sets: &[BTreeSet<u64>], schema: &Schema) -> Vec<SketchedText> {
        let sketcher = schema.sketcher();
        let hashes = |set: &BTreeSet<u64>| Vec::from_iter(set.iter().copied());
        let sketch = |set| SketchedText::from_hashes(&sketcher, true, &hashes(set)).unwrap();
        sets.iter().map(sketch).collect()
    }

    #[test]
    fn evidence_of_every_policy_agrees_with_the_sets() {
        let schema = Schema::builder()
            .text(Text::words(1))
            .minhash(MinHash::new(128).threshold(0.8).recall(0.999))
            .build()
            .unwrap();
        let (sets, folder) = (chains(), std::env::temp_dir());
        let sketched = sketch(&sets, &schema);
        let deduplicator = || {
            let made = Deduplicator::create(&folder, schema.clone(), &StoreOptions::new());
            // Without memory, features are in a file.
            let features = FeatureSets::new(&folder).memory_bytes(0);
            Box::new(made.unwrap().verify_exact(features))
        };
        let policies = [
            DedupPolicy::Cluster,
            DedupPolicy::First(deduplicator()),
            DedupPolicy::Representative(deduplicator()),
        ];
        let (mut linked, mut near) = (0, 0);
        for policy in policies {
            let name = format!("{policy:?}");
            let store = Store::in_memory(schema.clone()).unwrap();
            let mut features = FeatureSets::new(&folder);
            for text in &sketched {
                let id = store
                    .insert(Document::without_key(), &text.signature)
                    .unwrap();
                features.put(id, Arc::clone(&text.features)).unwrap();
            }
            let join = store.snapshot().unwrap().clusters();
            let features = Some(Arc::new(features));
            for found in duplicates(join, policy, &Preference::Earliest, features).unwrap() {
                let found = found.unwrap();
                let set = |id: u64| &sets[usize::try_from(id).unwrap()];
                let (a, b) = (found.document.id().get(), found.survivor.id().get());
                let (similarity, shares) = by_brute_force(set(a), set(b));
                assert_eq!(
                    (found.similarity, found.shares),
                    (Some(similarity), Some(shares))
                );
                let rule = match similarity >= 0.8 {
                    true => DropRule::Similarity,
                    false => DropRule::Cluster,
                };
                assert_eq!(found.rule, rule, "{name}");
                linked += usize::from(rule == DropRule::Cluster);
                near += usize::from(rule == DropRule::Similarity);
                assert!(name == "Cluster" || rule == DropRule::Similarity);
            }
        }
        assert!(linked > 5 && near > 50, "{linked} linked, {near} near");

        let mut stream = deduplicator();
        let documents: Vec<_> = (0..)
            .zip(&sketched)
            .map(|(number, text)| (Document::without_key().stamp(number), text))
            .collect();
        let decisions = stream.decide_many(&documents).unwrap();
        for (index, decision) in decisions.iter().enumerate() {
            if let Some(found) = decision.found() {
                let kept = stream.get_id(found.id()).unwrap().unwrap().stamp();
                let survivor = &sets[usize::try_from(kept).unwrap()];
                let (_, shares) = by_brute_force(&sets[index], survivor);
                assert_eq!(
                    stream.shares(&sketched[index], found).unwrap(),
                    Some(shares)
                );
            }
        }
    }

    #[test]
    fn rejected_candidates_are_kept_and_below_the_bound() {
        let minhash = MinHash::new(128).threshold(0.9).recall(0.9999);
        let schema = Schema::builder().text(Text::words(1)).minhash(minhash);
        let schema = schema.build().unwrap();
        let (sets, folder) = (chains(), std::env::temp_dir());
        let sketched = sketch(&sets, &schema);
        let mut answers = Vec::new();
        for (together, memory_bytes, threads) in
            [(1, 0, 1), (7, 0, 1), (50, 1 << 20, 2), (80, 0, 3)]
        {
            let made = Deduplicator::create(&folder, schema.clone(), &StoreOptions::new());
            let mut stream = made
                .unwrap()
                .memory_bytes(memory_bytes)
                .threads(threads.try_into().unwrap())
                .verify_exact(FeatureSets::new(&folder))
                .collect_rejected()
                .unwrap();
            let mut rejected = Vec::new();
            for first in (0..sets.len()).step_by(together) {
                let batch: Vec<_> = (first..sets.len().min(first + together))
                    .map(|number| {
                        (
                            Document::without_key().stamp(number as u64),
                            &sketched[number],
                        )
                    })
                    .collect();
                match &batch[..] {
                    [(document, text)] => {
                        stream
                            .decide(document.clone(), text, Bounds::new())
                            .unwrap();
                    }
                    batch => drop(stream.decide_many(batch).unwrap()),
                }
                for found in stream.take_rejected() {
                    let stored = stream.get_id(found.candidate).unwrap().unwrap();
                    let (a, b) = (first + found.document as usize, stored.stamp() as usize);
                    let (similarity, shares) = by_brute_force(&sets[a], &sets[b]);
                    assert!(b < a && similarity < 0.9);
                    assert_eq!((found.similarity, found.shares), (similarity, shares));
                    rejected.push((a, b));
                }
            }
            answers.push(rejected);
        }
        assert!(answers[0].len() > 20, "{} rejected", answers[0].len());
        assert!(answers.iter().all(|answer| *answer == answers[0]));
    }

    #[test]
    fn shares_follow_from_sizes_and_similarity() {
        for (dropped, survivor) in [(0, 0), (1, 1), (3, 70_000), (700, 701), (1_000_003, 999)] {
            for shared in [0, 1, dropped / 3, dropped.min(survivor)] {
                if shared > dropped.min(survivor) {
                    continue;
                }
                let similarity = match dropped + survivor - shared {
                    0 => 1.0,
                    union => shared as f64 / union as f64,
                };
                let found = FeatureShares::of_sizes(dropped, survivor, similarity);
                let expected = FeatureShares::new(dropped, survivor, shared);
                assert_eq!(found, expected, "{dropped} {survivor} {shared}");
            }
        }
    }
}
