//! The documents to remove from a collection or a store to leave no near-duplicates.

use std::sync::Arc;
use std::vec;

use resemblance::invariant::OrBug;
use resemblance::search::{JoinedDocuments, LeftOut, SuspiciousCluster};
use resemblance::{Bounds, Clusters, DocumentId, Error, Join, Record, Result};

use crate::dedup::contained::HolderRule;
use crate::dedup::evidence::{ComparedCandidate, DropRule, FeatureShares};
use crate::dedup::in_order::{Decided, DroppedDocument, InOrder, count_neighbours};
use crate::dedup::policy::{DedupPolicy, Preference};
use crate::verification::{FeatureSets, verify_exact};

/// A document to remove, the one that is kept instead, and their similarity.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// use resemblance_corpus::dedup::{DedupPolicy, Preference, duplicates};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b"] {
///     store.insert(key, &store.sketch_text("the same text under two keys")?)?;
/// }
/// let join = store.snapshot()?.clusters();
/// let mut found = duplicates(join, DedupPolicy::Cluster, &Preference::Earliest, None)?;
/// let duplicate = found.next().expect("one of two is a duplicate")?;
/// assert_eq!(duplicate.document.key(), Some(&b"b"[..]));
/// assert_eq!(duplicate.survivor.key(), Some(&b"a"[..]));
/// assert_eq!((duplicate.similarity, duplicate.is_exact), (Some(1.0), false));
/// assert_eq!(duplicate.rule.name(), "similarity");
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Duplicate {
    /// The document to remove.
    pub document: Record,
    /// The document that is kept instead.
    pub survivor: Record,
    /// Their Jaccard similarity, 0 to 1, if the schema has MinHash. With [`DedupPolicy::Cluster`]
    /// it may be below the bound, because other documents may link the two.
    pub similarity: Option<f64>,
    /// True if the similarity is exact rather than an estimate.
    pub is_exact: bool,
    /// Their Hamming distance in bits, if the schema has SimHash.
    pub distance: Option<u32>,
    /// The shares of their features that both have, if the features of both are known.
    pub shares: Option<FeatureShares>,
    /// The rule that decided.
    pub rule: DropRule,
}

/// The documents to remove, in order of insertion: see [`duplicates`].
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// use resemblance_corpus::dedup::{DedupPolicy, Preference, duplicates};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b", "c"] {
///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
/// }
/// let join = store.snapshot()?.clusters().max_bucket(1_000);
/// let found = duplicates(join, DedupPolicy::Cluster, &Preference::Earliest, None)?;
/// assert!(found.left_out().is_empty() && found.suspicious().is_empty());
/// assert_eq!(found.count(), 2);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub struct Duplicates {
    source: JoinedDocuments,
    features: Option<Arc<FeatureSets>>,
    /// The bounds by which documents are near, or `None` if their features decide.
    bounds: Option<Bounds>,
    dropped: vec::IntoIter<DroppedDocument>,
    rejected: Vec<ComparedCandidate>,
    left_out: LeftOut,
    suspicious: Vec<SuspiciousCluster>,
    budget_exceeded: u64,
}

/// Returns the documents that a policy removes, each with the one that is kept instead, in order of
/// insertion. The function finds all of them before it returns. Similarities are exact if
/// `features` contains both documents, and the search is then [verified](Join::verify) too.
///
/// It takes 16 bytes of memory for each document removed from a cluster. A policy that decides in an
/// order takes 12 bytes for each document, and 32 more while it counts neighbours. Documents that do
/// not pass the [filter](Join::filter) of the search take no part.
///
/// # Errors
///
/// The errors of [`Join::run`](Join::<Clusters>::run).
/// [`Error::InvalidParameter`](resemblance::Error::InvalidParameter) with the parameter
/// `deduplicator` if the policy's deduplicator has documents, or if only one of it and `features`
/// compares exactly. The iterator returns an error if the file cannot be read.
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// use resemblance_corpus::dedup::{DedupPolicy, Preference, duplicates};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b", "c"] {
///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
/// }
/// let join = store.snapshot()?.clusters();
/// let mut keys = Vec::new();
/// for duplicate in duplicates(join, DedupPolicy::Cluster, &Preference::Latest, None)? {
///     let duplicate = duplicate?;
///     assert_eq!(duplicate.survivor.key(), Some(&b"c"[..]));
///     keys.extend(duplicate.document.key().map(<[u8]>::to_vec));
/// }
/// assert_eq!(keys, [b"a", b"b"]);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn duplicates(
    join: Join<'_, Clusters>,
    policy: DedupPolicy,
    preference: &Preference,
    features: Option<Arc<FeatureSets>>,
) -> Result<Duplicates> {
    let source = join.documents();
    let bounds = join.given_bounds();
    Ok(match policy {
        DedupPolicy::Contained {
            max_lost,
            most_first,
            threads,
            memory_bytes,
            with_rejected,
        } => {
            let Some(features) = features else {
                let expected = "the features of all documents, which this policy compares";
                return Err(Error::invalid("features", "none", expected));
            };
            let rule = HolderRule {
                max_lost,
                most_first,
                threads,
                memory_bytes,
                with_rejected,
                preference,
            };
            let ids = join.ids()?;
            let (_, watch) = join.into_pairs();
            let empty = source.schema().empty_documents();
            let decided = watch.run(|watch| rule.decide(ids, empty, &features, watch))?;
            Duplicates::new(source, Some(features), None, decided)
        }
        DedupPolicy::Cluster => all_but_one(join, preference, features)?,
        DedupPolicy::First(deduplicator) => {
            let (pairs, watch) = join.into_pairs();
            let found = InOrder::new(&pairs, *deduplicator, features.as_deref())?;
            let dropped = watch.run(|watch| found.decide(preference, &[], watch))?;
            Duplicates::new(source, features, Some(bounds), dropped)
        }
        DedupPolicy::Representative(deduplicator) => {
            let (pairs, watch) = join.into_pairs();
            let found = InOrder::new(&pairs, *deduplicator, features.as_deref())?;
            let mut left_out = LeftOut::default();
            let dropped = watch.run(|watch| {
                let (neighbours, missed) = count_neighbours(pairs, features.clone(), watch)?;
                left_out = missed;
                found.decide(preference, &neighbours, watch)
            })?;
            Duplicates {
                left_out,
                ..Duplicates::new(source, features, Some(bounds), dropped)
            }
        }
    })
}

/// Returns all documents of clusters except the preferred one of each.
fn all_but_one(
    join: Join<'_, Clusters>,
    preference: &Preference,
    features: Option<Arc<FeatureSets>>,
) -> Result<Duplicates> {
    let (source, bounds) = (join.documents(), join.given_bounds());
    let join = verify_exact(join, features.clone());
    let mut clusters = join.run()?;
    let mut dropped = Vec::new();
    for cluster in clusters.by_ref() {
        let best = cluster.iter().min_by(|a, b| preference.compare(**a, **b));
        let survivor = *best.or_bug("a cluster of no documents")?;
        let others = cluster.iter().filter(|id| **id != survivor);
        dropped.extend(others.map(|&id| DroppedDocument { id, survivor }));
    }
    Ok(Duplicates {
        left_out: clusters.left_out(),
        suspicious: clusters.suspicious().to_vec(),
        ..Duplicates::new(
            source,
            features,
            Some(bounds),
            Decided {
                dropped,
                ..Decided::default()
            },
        )
    })
}

impl Duplicates {
    fn new(
        source: JoinedDocuments,
        features: Option<Arc<FeatureSets>>,
        bounds: Option<Bounds>,
        mut decided: Decided,
    ) -> Self {
        // A report reads the corpus once, in this order.
        decided.dropped.sort_unstable();
        decided
            .rejected
            .sort_unstable_by_key(|it| (it.document, it.candidate));
        Self {
            source,
            features,
            bounds,
            dropped: decided.dropped.into_iter(),
            rejected: decided.rejected,
            left_out: LeftOut::default(),
            suspicious: Vec::new(),
            budget_exceeded: decided.budget_exceeded,
        }
    }

    /// Returns the number of pairs that were not compared because their buckets were too large.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Returns the number of documents that were compared with only some of their candidates: see
    /// [`StoreOptions::probe_budget`](resemblance::StoreOptions::probe_budget).
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// use resemblance_corpus::dedup::{DedupPolicy, Preference, duplicates};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let join = store.snapshot()?.clusters();
    /// let found = duplicates(join, DedupPolicy::Cluster, &Preference::Earliest, None)?;
    /// assert_eq!(found.budget_exceeded(), 0); // clusters know no budget
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn budget_exceeded(&self) -> u64 {
        self.budget_exceeded
    }

    /// Returns the kept documents that were compared with others and do not meet the rule, in the
    /// order of those and then in theirs, if the policy collects them: with
    /// [`Deduplicator::collect_rejected`](super::Deduplicator::collect_rejected), or with the field
    /// of [`DedupPolicy::Contained`]. They take 48 bytes of memory each.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?)?;
    /// use resemblance_corpus::dedup::{DedupPolicy, Preference, duplicates};
    /// use resemblance_corpus::verification::FeatureSets;
    /// let mut features = FeatureSets::new(std::env::temp_dir());
    /// for text in ["a b c d", "a b c e"] {
    ///     let id = store.insert(text, &store.sketch_text(text)?)?;
    ///     features.put(id, store.sketcher().feature_hashes(text)?)?;
    /// }
    /// let policy = DedupPolicy::Contained {
    ///     max_lost: 0.0,
    ///     most_first: false,
    ///     threads: std::num::NonZeroUsize::MIN,
    ///     memory_bytes: 1 << 20,
    ///     with_rejected: true,
    /// };
    /// let (join, features) = (store.snapshot()?.clusters(), Some(features.into()));
    /// let mut found = duplicates(join, policy, &Preference::Earliest, features)?;
    /// for rejected in found.take_rejected() {
    ///     assert_eq!(rejected.shares.held, 0.75); // and a quarter would be lost
    /// }
    /// assert_eq!(found.count(), 0);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn take_rejected(&mut self) -> Vec<ComparedCandidate> {
        std::mem::take(&mut self.rejected)
    }

    /// Returns the clusters that are implausibly large. There are none unless the policy searches
    /// for clusters.
    #[must_use]
    pub fn suspicious(&self) -> &[SuspiciousCluster] {
        &self.suspicious
    }

    fn duplicate(&self, dropped: DroppedDocument) -> Result<Duplicate> {
        let read = |id: DocumentId| {
            let record = self.source.get_id(id)?;
            record.or_bug("a document was compared that is not stored")
        };
        let (document, survivor) = (read(dropped.id)?, read(dropped.survivor)?);
        let overlap = match &self.features {
            Some(features) => features.overlap(dropped.id, dropped.survivor)?,
            None => None,
        };
        let exact = match overlap {
            Some(overlap) => Some(overlap.similarity()),
            None => self.source.exact_similarity(dropped.id, dropped.survivor)?,
        };
        let (a, b) = (document.signature(), survivor.signature());
        let shares = match overlap {
            Some(overlap) => Some(FeatureShares::from(overlap)),
            None => FeatureShares::of_signatures(self.source.schema(), a, b),
        };
        let schema = self.source.schema();
        // The bound was held against this estimate, which is rounded for bottom-k.
        let estimate = schema.minhash().map(|minhash| {
            let layout = minhash.layout();
            layout.similarity(a.agreement(layout, b))
        });
        let distance = a.fingerprint().map(|_| a.hamming(b)).transpose()?;
        let similarity = exact.or(estimate);
        let is_exact = exact.is_some();
        let rule = match self.bounds {
            None => DropRule::Contained,
            Some(bounds) => DropRule::of(bounds, schema, similarity, is_exact, distance)?,
        };
        Ok(Duplicate {
            similarity,
            is_exact,
            shares,
            rule,
            distance,
            document,
            survivor,
        })
    }
}

impl Iterator for Duplicates {
    type Item = Result<Duplicate>;

    fn next(&mut self) -> Option<Self::Item> {
        let dropped = self.dropped.next()?;
        Some(self.duplicate(dropped))
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::{BTreeMap, BTreeSet};
    use std::num::NonZeroUsize;

    use super::*;
    use crate::dedup::Deduplicator;
    use crate::sample::{Random, trials};
    use crate::survivors::{Dropped, Likeness, Sets, excerpts, families};
    use crate::verification::SketchedText;
    use resemblance::schema::EmptyDocuments;
    use resemblance::{
        Bounds, BulkOptions, Collection, Containment, Document, MinHash, Schema, Store,
        StoreOptions, Text,
    };

    /// How documents are compared and decided.
    #[derive(Clone, Copy, Debug)]
    struct Case {
        threshold: f64,
        empty: EmptyDocuments,
        is_exact: bool,
        is_in_store: bool,
        memory_bytes: u64,
        threads: NonZeroUsize,
    }

    #[derive(Clone, Copy, Debug)]
    enum Rule {
        First,
        Cluster,
        Representative,
        Contained { max_lost: f64, most_first: bool },
    }

    impl Case {
        fn random(random: &mut Random) -> Self {
            Self {
                threshold: random.pick(&[0.5, 0.6, 0.8, 1.0]),
                empty: random.pick(&[EmptyDocuments::Alike, EmptyDocuments::Distinct]),
                is_exact: random.below(4) > 0,
                is_in_store: random.below(2) == 0,
                memory_bytes: random.pick(&[1 << 30, 9_000, 0]),
                threads: NonZeroUsize::new(1 + random.index(3)).unwrap(),
            }
        }

        /// Every two documents that share a twentieth of their words are compared.
        fn schema(&self) -> Schema {
            let minhash = MinHash::new(64).banding(64, 1).threshold(self.threshold);
            let schema = Schema::builder().text(Text::words(1)).minhash(minhash);
            schema.empty_documents(self.empty).build().unwrap()
        }

        fn features(&self) -> Option<FeatureSets> {
            let features = FeatureSets::new(std::env::temp_dir()).memory_bytes(self.memory_bytes);
            self.is_exact.then_some(features)
        }

        fn deduplicator(&self) -> Deduplicator {
            let folder = std::env::temp_dir();
            let made = Deduplicator::create(&folder, self.schema(), &StoreOptions::new()).unwrap();
            let made = made.verify_exact(self.features()).threads(self.threads);
            let made = made.memory_bytes(self.memory_bytes);
            match self.is_exact {
                true => made.collect_rejected().unwrap(),
                false => made,
            }
        }

        fn policy(&self, rule: Rule) -> DedupPolicy {
            match rule {
                Rule::First => DedupPolicy::First(Box::new(self.deduplicator())),
                Rule::Cluster => DedupPolicy::Cluster,
                Rule::Representative => DedupPolicy::Representative(Box::new(self.deduplicator())),
                Rule::Contained {
                    max_lost,
                    most_first,
                } => DedupPolicy::Contained {
                    max_lost,
                    most_first,
                    threads: self.threads,
                    memory_bytes: self.memory_bytes,
                    with_rejected: true,
                },
            }
        }

        fn sketched(&self, sets: &Sets) -> Vec<SketchedText> {
            let sketcher = self.schema().sketcher();
            let word = |feature: &u64| format!("word{feature} ");
            let texts = sets.iter().map(|set| set.iter().map(word).collect());
            let sketched = texts
                .map(|text: String| SketchedText::new(&sketcher, self.is_exact, &text).unwrap());
            sketched.collect()
        }

        /// Returns the survivor of each document that is dropped.
        fn dropped(
            &self,
            sets: &Sets,
            rule: Rule,
            preference: &Preference,
        ) -> BTreeMap<usize, usize> {
            let sketched = self.sketched(sets);
            let mut features = self.features();
            let mut put = |id, text: &SketchedText| {
                if let Some(features) = &mut features {
                    features.put(id, Arc::clone(&text.features)).unwrap();
                }
            };
            let (store, collected);
            let join = if self.is_in_store {
                store = Store::in_memory(self.schema()).unwrap();
                for text in &sketched {
                    let id = store.insert(Document::without_key(), &text.signature);
                    put(id.unwrap(), text);
                }
                store.snapshot().unwrap().clusters()
            } else {
                let options = BulkOptions::new().memory_bytes(self.memory_bytes.max(1 << 20));
                let folder = std::env::temp_dir();
                let mut collection = Collection::new(&folder, self.schema(), &options).unwrap();
                for text in &sketched {
                    let id = collection.insert(Document::without_key(), &text.signature);
                    put(id.unwrap(), text);
                }
                collected = collection.finish().unwrap();
                collected.clusters()
            };
            let join = join.threads(self.threads.get());
            if let Some(features) = &mut features {
                features.flush().unwrap();
            }
            let features = features.map(Arc::new);
            let mut found = duplicates(join, self.policy(rule), preference, features).unwrap();
            let rejected = found.take_rejected();
            let place = |record: &Record| usize::try_from(record.id().get()).unwrap();
            let pairs = found.map(|duplicate| {
                let duplicate = duplicate.unwrap();
                assert_eq!(duplicate.is_exact, self.is_exact);
                (place(&duplicate.document), place(&duplicate.survivor))
            });
            let dropped = pairs.collect();
            self.check_rejected(sets, rule, &dropped, &rejected);
            dropped
        }

        /// Checks that documents which were kept apart do not meet the rule, and that candidates are kept.
        fn check_rejected(
            &self,
            sets: &Sets,
            rule: Rule,
            dropped: &BTreeMap<usize, usize>,
            rejected: &[ComparedCandidate],
        ) {
            let likeness = self.likeness(sets);
            let mut listed = BTreeSet::new();
            for found in rejected {
                let (a, b) = (found.document as usize, found.candidate.get() as usize);
                assert!(listed.insert((a, b)) && a != b, "{self:?} {rule:?}: twice");
                assert!(!dropped.contains_key(&b) && dropped.get(&a) != Some(&b));
                let united = sets[a].union(&sets[b]).count();
                let shared = sets[a].intersection(&sets[b]).count();
                assert_eq!(found.similarity, shared as f64 / united.max(1) as f64);
                let shares = [found.shares.held, found.shares.covered];
                assert_eq!(shares, likeness.shares(a, b));
                assert!(
                    match rule {
                        Rule::Contained { max_lost, .. } => !likeness.holds(a, b, max_lost),
                        _ => found.similarity < self.threshold,
                    },
                    "{self:?} {rule:?}: {found:?}"
                );
            }
            // Estimates are not evidence, and clusters do not compare all.
            let lists = self.is_exact && !matches!(rule, Rule::Cluster);
            assert!(lists || rejected.is_empty());
        }

        fn likeness<'s>(&self, sets: &'s Sets) -> Likeness<'s> {
            Likeness {
                sets,
                are_empty_alike: self.empty == EmptyDocuments::Alike,
            }
        }

        /// Returns the documents that the policy drops by its description.
        fn expected(&self, sets: &Sets, rule: Rule, order: &[usize]) -> Dropped {
            let likeness = self.likeness(sets);
            let graph = likeness.graph(self.threshold);
            match rule {
                Rule::First => graph.greedy(order),
                Rule::Cluster => graph.clusters(order),
                Rule::Representative => graph.greedy(&graph.by_degree(order)),
                Rule::Contained {
                    max_lost,
                    most_first,
                } => likeness.contained(order, max_lost, most_first),
            }
        }

        /// Checks a policy, and returns the number of documents that it drops.
        fn check(
            &self,
            sets: &Sets,
            rule: Rule,
            (preference, order): (&Preference, &[usize]),
        ) -> usize {
            let found = self.dropped(sets, rule, preference);
            for survivor in found.values() {
                assert!(
                    !found.contains_key(survivor),
                    "{self:?} {rule:?}: a dropped survivor"
                );
            }
            if self.is_exact {
                let expected = self.expected(sets, rule, order);
                let dropped = |dropped: &Dropped| dropped.keys().copied().collect::<Vec<_>>();
                let keys: Vec<usize> = found.keys().copied().collect();
                assert_eq!(keys, dropped(&expected), "{self:?} {rule:?}");
                for (document, survivor) in &found {
                    assert!(expected[document].contains(survivor), "{self:?} {rule:?}");
                }
            }
            let is_kept = |document: &usize| !found.contains_key(document);
            let kept: Vec<usize> = (0..sets.len()).filter(is_kept).collect();
            let left = kept.iter().map(|document| sets[*document].clone());
            let left: Sets = left.collect();
            let preference = match preference {
                Preference::Highest(scores) => {
                    Preference::Highest(kept.iter().map(|document| scores[*document]).collect())
                }
                other => other.clone(),
            };
            let again = self.dropped(&left, rule, &preference);
            assert_eq!(again, BTreeMap::new(), "{self:?} {rule:?}: dropped again");
            found.len()
        }

        /// A stream decides as the policy *first* does.
        fn check_stream(&self, sets: &Sets) {
            let mut stream = self.deduplicator();
            let mut dropped = BTreeMap::new();
            for (document, text) in self.sketched(sets).iter().enumerate() {
                let stored = Document::without_key().stamp(document as u64);
                let decision = stream.decide(stored, text, Bounds::new()).unwrap();
                if let Some(found) = decision.found() {
                    let survivor = stream.get_id(found.id()).unwrap().unwrap().stamp();
                    dropped.insert(document, usize::try_from(survivor).unwrap());
                }
            }
            let found = self.dropped(sets, Rule::First, &Preference::Earliest);
            assert_eq!(found, dropped, "{self:?}");
        }
    }

    /// Every policy drops what its description says, for documents that are kept; nothing is left
    /// to drop, and neither memory nor threads decide.
    #[test]
    fn policies_drop_what_they_describe_and_leave_nothing_to_drop() {
        let (mut random, mut drops) = (Random(29), [0; 5]);
        for round in 0..trials(12, 200) {
            let sets = match round % 4 {
                3 => excerpts(&mut random),
                _ => families(&mut random, 45),
            };
            let case = Case::random(&mut random);
            let scores: Vec<f64> = sets.iter().map(|_| random.below(4) as f64).collect();
            let mut order: Vec<usize> = (0..sets.len()).collect();
            let preference = match round % 3 {
                0 => Preference::Earliest,
                1 => {
                    order.reverse();
                    Preference::Latest
                }
                _ => {
                    // A score that is no number comes last.
                    order.sort_by_key(|a| Reverse(scores[*a] as u64));
                    let unscored = |score: f64| if score == 0.0 { f64::NAN } else { score };
                    Preference::Highest(scores.into_iter().map(unscored).collect())
                }
            };
            let max_lost = random.pick(&[0.05, 0.3]);
            let rules = [
                Rule::First,
                Rule::Cluster,
                Rule::Representative,
                Rule::Contained {
                    max_lost: 0.0,
                    most_first: round % 2 == 0,
                },
                Rule::Contained {
                    max_lost,
                    most_first: round % 2 == 1,
                },
            ];
            for (rule, drops) in rules.into_iter().zip(&mut drops) {
                if case.is_exact || !matches!(rule, Rule::Contained { .. }) {
                    *drops += case.check(&sets, rule, (&preference, &order));
                }
            }
            case.check_stream(&sets);
        }
        assert!(drops.iter().all(|drops| *drops > 30), "{drops:?}");
    }

    /// Estimates of exact schemas were called exact, and the signatures of schemas with containment
    /// came back without their kept hashes.
    #[test]
    fn evidence_of_exact_schemas_is_exact() {
        let whole = Containment::new(1).window(1);
        let others = [None, Some(whole), Some(Containment::new(2).window(2))];
        for (containment, is_exact) in itertools::iproduct!(others, [true, false]) {
            let minhash = MinHash::new(64).threshold(0.5).banding(32, 2);
            let mut schema = Schema::builder().text(Text::words(1)).minhash(minhash);
            if let Some(containment) = containment {
                schema = schema.containment(containment);
            }
            if is_exact {
                schema = schema.exact();
            }
            let schema = schema.build().unwrap();
            let folder = std::env::temp_dir();
            let sketcher = schema.sketcher();
            let deduplicator = || {
                let options = StoreOptions::new();
                let made = Deduplicator::create(&folder, schema.clone(), &options).unwrap();
                DedupPolicy::Representative(Box::new(made))
            };
            for policy in [DedupPolicy::Cluster, deduplicator()] {
                let options = BulkOptions::new();
                let mut collection = Collection::new(&folder, schema.clone(), &options).unwrap();
                for text in ["cen mix lot cex gux", "cen lot cex gux"] {
                    let signature = sketcher.text(text).unwrap();
                    collection
                        .insert(Document::without_key(), &signature)
                        .unwrap();
                }
                let collected = collection.finish().unwrap();
                let join = collected.clusters();
                let mut found = duplicates(join, policy, &Preference::Earliest, None).unwrap();
                let duplicate = found.next().unwrap().unwrap();
                assert_eq!(duplicate.is_exact, is_exact);
                assert_eq!(duplicate.similarity == Some(0.8), is_exact);
                assert_eq!(duplicate.shares.is_some(), is_exact);
            }
        }
    }
}
