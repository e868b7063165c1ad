//! Connected components of verified pairs.

use std::iter::FusedIterator;
use std::sync::Arc;

use crate::clusters::{DisjointSets, Sets};
use crate::error::Result;
use crate::join::compare::Event;
use crate::join::pairs::{EventPairs, Pairs};
use crate::join::settings::LeftOut;
use crate::join::verify::{Pair, PairSimilarity, ROUND_CANDIDATES, Verifier};
use crate::types::{Certainty, DocumentId, Watch};

/// Clusters of near-duplicates, ordered by their first members; the members of each ascend. Made
/// by [`Snapshot::clusters`](crate::Snapshot::clusters).
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// for key in ["a", "b", "c"] {
///     store.insert(key, &store.sketch_text("the same text under three keys")?)?;
/// }
/// let clusters = store.snapshot()?.clusters().run()?;
/// assert!(clusters.left_out().is_empty() && clusters.suspicious().is_empty());
/// for cluster in clusters {
///     println!("{} documents, of which {} came first", cluster.len(), cluster[0]);
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "the clusters come by iterating"]
pub struct Clusters {
    sets: Sets,
    left_out: LeftOut,
    suspicious: Vec<SuspiciousCluster>,
    certainty: Certainty,
}

/// A cluster that is too large to consist of near-duplicates only. Nearness is not transitive: a
/// chain of verified pairs can connect documents that have little in common. Boilerplate that many
/// documents share causes such chains. Examine some members before you drop all but one.
///
/// ```
/// # use resemblance::{Document, MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # let mut transaction = store.begin_write()?;
/// # (0..1_000).try_for_each(|_| transaction.insert(Document::without_key(), &page).map(drop))?;
/// # transaction.commit()?;
/// let clusters = store.snapshot()?.clusters().run()?;
/// for cluster in clusters.suspicious() {
///     println!("look at document {}: {} are linked to it", cluster.first, cluster.documents);
/// }
/// assert_eq!(clusters.suspicious()[0].share, 1.0);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SuspiciousCluster {
    /// Its first member.
    pub first: DocumentId,
    /// The number of its members.
    pub documents: u64,
    /// Their share of all documents of the store, 0 to 1.
    pub share: f64,
}

impl SuspiciousCluster {
    /// Returns a cluster if it is suspicious among a number of documents.
    pub(super) fn of(first: u64, documents: u64, of_documents: u64) -> Option<Self> {
        let share = documents as f64 / of_documents.max(1) as f64;
        let is_suspicious =
            share > Clusters::SUSPICIOUS_SHARE && documents >= Clusters::SUSPICIOUS_DOCUMENTS;
        is_suspicious.then_some(Self {
            first: DocumentId::new(first),
            documents,
            share,
        })
    }
}

impl Clusters {
    /// A suspicious cluster holds more than this share of the documents, from 0 to 1.
    pub const SUSPICIOUS_SHARE: f64 = 0.05;
    /// A suspicious cluster holds at least this number of documents.
    pub const SUSPICIOUS_DOCUMENTS: u64 = 1_000;

    /// Links the pairs into clusters; `documents` is the number of those in the snapshot.
    pub(super) fn from_pairs(
        mut pairs: Pairs,
        documents: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Self> {
        let mut sets = DisjointSets::default();
        while let Some(events) = pairs.next_events()? {
            pairs.report(watch)?;
            for event in events {
                let mut event_pairs = EventPairs::new(event);
                while let Some((a, b)) = event_pairs.next(pairs.batch(), true) {
                    sets.join(a, b);
                }
            }
        }
        pairs.report(watch)?;
        Ok(Self::from_sets(sets, &pairs, documents))
    }

    /// Returns the clusters whose links the caller has verified.
    pub(super) fn from_verified(
        mut pairs: Pairs,
        verify: Arc<PairSimilarity>,
        documents: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Self> {
        let sets = Linker::link(&mut pairs, verify, watch)?;
        Ok(Self::from_sets(sets, &pairs, documents))
    }

    fn from_sets(linked: DisjointSets, pairs: &Pairs, documents: u64) -> Self {
        let sets = linked.into_sets();
        let sizes = sets.sizes();
        let suspicious =
            sizes.filter_map(|(first, size)| SuspiciousCluster::of(first, size, documents));
        Self {
            suspicious: suspicious.collect(),
            left_out: pairs.left_out(),
            certainty: pairs.certainty(),
            sets,
        }
    }

    /// Returns the counts of buckets, documents and pairs that
    /// [`Join::max_bucket`](crate::Join::max_bucket) left out. The greater the counts, the more
    /// clusters may be split or missing.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Returns how sure it is that a pair within the bounds links its documents: see
    /// [`Pairs::certainty`]. A cluster is missed in part only if all pairs that link the parts are
    /// missed.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(128)).build()?)?;
    /// let clusters = store.snapshot()?.clusters().run()?;
    /// assert_eq!(clusters.certainty().about(), Some("estimate"));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        self.certainty
    }

    /// Returns the clusters that are too large to be plausible, ordered by their first members.
    /// They have more than [`SUSPICIOUS_SHARE`](Self::SUSPICIOUS_SHARE) of all documents of the
    /// store, and at least [`SUSPICIOUS_DOCUMENTS`](Self::SUSPICIOUS_DOCUMENTS) documents.
    /// Iterating returns these clusters as well.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
    /// let page = store.sketch_text("the same text under many keys")?;
    /// let mut transaction = store.begin_write()?;
    /// for _ in 0..1_000 {
    ///     transaction.insert(Document::without_key(), &page)?;
    /// }
    /// transaction.commit()?;
    /// let clusters = store.snapshot()?.clusters().run()?;
    /// assert_eq!(clusters.suspicious()[0].documents, 1_000);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn suspicious(&self) -> &[SuspiciousCluster] {
        &self.suspicious
    }
}

impl Iterator for Clusters {
    type Item = Vec<DocumentId>;

    fn next(&mut self) -> Option<Self::Item> {
        let ids = self.sets.next()?;
        Some(ids.into_iter().map(DocumentId::new).collect())
    }
}

impl FusedIterator for Clusters {}

/// Finds out which documents are connected: of the candidates those alone are verified that are not
/// known to be connected already.
pub(super) struct Linker {
    verify: Arc<PairSimilarity>,
    sets: DisjointSets,
    round: Vec<Pair>,
}

impl Linker {
    /// Returns the sets of documents that near pairs connect.
    pub(super) fn link(
        pairs: &mut Pairs,
        verify: Arc<PairSimilarity>,
        watch: &mut Watch<'_>,
    ) -> Result<DisjointSets> {
        let mut linker = Self {
            verify,
            sets: DisjointSets::default(),
            round: Vec::new(),
        };
        while let Some(events) = pairs.next_events()? {
            pairs.report(watch)?;
            // Equal signatures are paired with the first of them, and so are the first ones of two
            // groups: this mostly connects them all. The rest follows.
            for event in &events {
                linker.take_links(pairs, *event)?;
            }
            linker.verify_round(pairs)?;
            for event in &events {
                linker.take_others(pairs, *event)?;
            }
            linker.verify_round(pairs)?;
        }
        pairs.report(watch)?;
        Ok(linker.sets)
    }

    fn take_links(&mut self, pairs: &Pairs, event: Event) -> Result<()> {
        let mut event_pairs = EventPairs::new(event);
        while let Some((a, b)) = event_pairs.next(pairs.batch(), true) {
            self.take(pairs, event, (a, b))?;
        }
        Ok(())
    }

    fn take_others(&mut self, pairs: &Pairs, event: Event) -> Result<()> {
        let (a, b) = event.groups();
        let (a_ids, b_ids) = (pairs.batch().members_of(a), pairs.batch().members_of(b));
        let (Some(a_first), Some(b_first)) = (a_ids.first(), b_ids.first()) else {
            return Ok(());
        };
        // Members of one cluster need no verification.
        let mut all = a_ids.iter().chain(b_ids);
        if a_ids.len() + b_ids.len() == 2 || all.all(|id| self.sets.are_joined(*a_first, *id)) {
            return Ok(());
        }
        let mut event_pairs = EventPairs::new(event);
        while let Some((first, second)) = event_pairs.next(pairs.batch(), false) {
            let is_link = first == *a_first && (a == b || second == *b_first);
            if !is_link {
                self.take(pairs, event, (first, second))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, pairs: &Pairs, event: Event, (a, b): (u64, u64)) -> Result<()> {
        if self.sets.are_joined(a, b) {
            return Ok(());
        }
        self.round.push(pairs.pair(event, (a, b)));
        if self.round.len() >= ROUND_CANDIDATES {
            self.verify_round(pairs)?;
        }
        Ok(())
    }

    fn verify_round(&mut self, pairs: &Pairs) -> Result<()> {
        let round = std::mem::take(&mut self.round);
        let verifier = Verifier::new(&*self.verify, pairs.settings());
        let (verified, ()) = verifier.round(&round, || ());
        for pair in verified {
            let pair = pair?;
            self.sets.join(pair.a.get(), pair.b.get());
        }
        Ok(())
    }
}
