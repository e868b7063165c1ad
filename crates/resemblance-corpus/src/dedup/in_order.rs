//! The policies that decide on documents one by one, in an order.

use std::sync::Arc;

use resemblance::invariant::{OrBug, at, at_mut};
use resemblance::search::{JoinedDocuments, LeftOut};
use resemblance::{Bounds, Document, DocumentId, Error, Join, Pairs, Phase, Result, Watch};

use crate::dedup::deduplicator::Deduplicator;
use crate::dedup::equal_documents::EqualDocuments;
use crate::dedup::evidence::ComparedCandidate;
use crate::dedup::policy::Preference;
use crate::verification::{FeatureSets, SketchedText, verify_exact};

/// The number of documents that are decided together.
const DECIDED_TOGETHER: usize = 4_096;

/// A document to remove, and the one that is kept instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DroppedDocument {
    pub(super) id: DocumentId,
    pub(super) survivor: DocumentId,
}

/// The documents to remove, in the order of the decisions.
#[derive(Default)]
pub(super) struct Decided {
    pub(super) dropped: Vec<DroppedDocument>,
    /// The candidates that were compared and kept apart, if they are collected.
    pub(super) rejected: Vec<ComparedCandidate>,
    /// The number of documents that were compared with only some of their candidates.
    pub(super) budget_exceeded: u64,
}

/// Decides on documents in an order.
pub(super) struct InOrder<'f> {
    source: JoinedDocuments,
    ids: Vec<DocumentId>,
    bounds: Bounds,
    deduplicator: Deduplicator,
    features: Option<&'f FeatureSets>,
}

impl<'f> InOrder<'f> {
    /// Creates the policy for the documents and the bounds of a join.
    pub(super) fn new(
        join: &Join<'_, Pairs>,
        deduplicator: Deduplicator,
        features: Option<&'f FeatureSets>,
    ) -> Result<Self> {
        if !deduplicator.is_empty() {
            let found = format!("one with {} documents", deduplicator.len());
            return Err(Error::invalid("deduplicator", found, "one without"));
        }
        if deduplicator.is_exact() != features.is_some() {
            let expected =
                "features for the search and `verify_exact` for the deduplicator, or neither";
            return Err(Error::invalid(
                "deduplicator",
                "only one of the two",
                expected,
            ));
        }
        Ok(Self {
            source: join.documents(),
            ids: join.ids()?,
            bounds: join.given_bounds(),
            deduplicator,
            features,
        })
    }

    /// Decides on all documents: those with the most neighbours first, then by preference.
    pub(super) fn decide(
        mut self,
        preference: &Preference,
        neighbours: &[u32],
        watch: &mut Watch<'_>,
    ) -> Result<Decided> {
        let count = |id: &DocumentId| {
            let index = usize::try_from(id.get()).ok();
            index.and_then(|index| neighbours.get(index)).unwrap_or(&0)
        };
        let mut ids = std::mem::take(&mut self.ids);
        ids.sort_unstable_by(|a, b| {
            let by_count = count(b).cmp(count(a));
            by_count.then_with(|| preference.compare(*a, *b))
        });
        let total = ids.len() as u64;
        let mut decided = Decided::default();
        for (number, piece) in (0..).zip(ids.chunks(DECIDED_TOGETHER)) {
            let done = number * DECIDED_TOGETHER as u64;
            watch.report(Phase::DecidingDocuments, done, total)?;
            self.decide_piece(piece, &mut decided)?;
        }
        watch.report(Phase::DecidingDocuments, total, total)?;
        Ok(decided)
    }

    fn decide_piece(&mut self, ids: &[DocumentId], decided: &mut Decided) -> Result<()> {
        let mut sketched = Vec::with_capacity(ids.len());
        for &id in ids {
            // A document that was removed before it had postings has no tombstone.
            if let Some(text) = self.sketched(id)? {
                sketched.push((id, text));
            }
        }
        // The stamp identifies the survivor.
        let documents = sketched.iter();
        let documents = documents.map(|(id, text)| (Document::without_key().stamp(id.get()), text));
        let mut decisions = Vec::with_capacity(sketched.len());
        if self.bounds == Bounds::new() {
            let documents: Vec<_> = documents.collect();
            decisions = self.deduplicator.decide_many(&documents)?;
            self.take_rejected(&sketched, decided)?;
        } else {
            for (index, (document, text)) in documents.enumerate() {
                decisions.push(self.deduplicator.decide(document, text, self.bounds)?);
                self.take_rejected(sketched.get(index..).unwrap_or(&[]), decided)?;
            }
        }
        for ((id, _), decision) in sketched.iter().zip(decisions) {
            decided.budget_exceeded += u64::from(decision.budget_exceeded().is_some());
            if let Some(found) = decision.found() {
                let kept = self.deduplicator.get_id(found.id())?;
                let survivor = kept.or_bug("a document was found that was not kept")?;
                decided.dropped.push(DroppedDocument {
                    id: *id,
                    survivor: DocumentId::new(survivor.stamp()),
                });
            }
        }
        Ok(())
    }

    /// Takes the candidates that were rejected for documents that were just decided.
    fn take_rejected(
        &mut self,
        documents: &[(DocumentId, SketchedText)],
        decided: &mut Decided,
    ) -> Result<()> {
        for found in self.deduplicator.take_rejected() {
            let (id, _) = at(documents, found.document as usize)?;
            let kept = self.deduplicator.get_id(found.candidate)?;
            let kept = kept.or_bug("a document was compared that was not kept")?;
            decided.rejected.push(ComparedCandidate {
                document: id.get(),
                candidate: DocumentId::new(kept.stamp()),
                ..found
            });
        }
        Ok(())
    }

    /// Returns the sketch of a document, or `None` if the document does not exist.
    fn sketched(&self, id: DocumentId) -> Result<Option<SketchedText>> {
        let Some(record) = self.source.get_id(id)? else {
            return Ok(None);
        };
        let features = match self.features {
            None => Arc::default(),
            Some(features) => features.shared(id)?.ok_or_else(|| {
                let found = format!("none of document {}", id.get());
                Error::invalid("features", found, "those of all documents")
            })?,
        };
        Ok(Some(SketchedText {
            signature: record.signature().clone(),
            features,
        }))
    }
}

/// Counts the neighbours of each document, at the index of its id, and the comparisons that were
/// left out.
pub(super) fn count_neighbours(
    join: Join<'_, Pairs>,
    features: Option<Arc<FeatureSets>>,
    watch: &mut Watch<'_>,
) -> Result<(Vec<u32>, LeftOut)> {
    let equal = EqualDocuments::find(&join, features.as_deref())?;
    let mut pairs = verify_exact(equal.join_two_of_each(join), features).run()?;
    let mut counts: Vec<u32> = Vec::new();
    let mut lanes_read = 0;
    while let Some(pair) = pairs.next() {
        equal.for_each_neighbour(&pair?, |id, neighbours| {
            let index = usize::try_from(id.get())
                .ok()
                .or_bug("an id beyond memory")?;
            if counts.len() <= index {
                counts.resize(index + 1, 0);
            }
            let count = at_mut(&mut counts, index)?;
            *count = count.saturating_add(u32::try_from(neighbours).unwrap_or(u32::MAX));
            Ok(())
        })?;
        if pairs.lanes_read().0 != lanes_read {
            lanes_read = pairs.lanes_read().0;
            pairs.report(watch)?;
        }
    }
    pairs.report(watch)?;
    Ok((counts, pairs.left_out()))
}
