//! The documents that a deduplication removes.

use std::cmp::Ordering;

use resemblance_corpus::dedup::FeatureShares;

use super::groups::{Likeness, least_alike_first};

/// A document that is removed.
#[derive(Clone, Debug)]
pub struct DroppedSample {
    /// How similar it is to its survivor.
    pub likeness: Likeness,
    /// True if the similarity is an estimate although others are exact.
    pub is_estimate: bool,
    /// The shares of their features that both have, if these are known.
    pub shares: Option<FeatureShares>,
    /// The name of the rule that decided.
    pub rule: String,
    /// The key of the document.
    pub document: Vec<u8>,
    /// The key of its survivor, or `None` if that is not in the corpus.
    pub survivor: Option<Vec<u8>>,
    /// The key of its survivor, as it is printed.
    pub survivor_label: String,
}

impl DroppedSample {
    /// Returns the share of the document's features that the survivor lacks, if it is known.
    fn lost(&self) -> Option<f64> {
        Some(1.0 - self.shares?.held)
    }
}

/// The order in which removed documents are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropOrder {
    /// The document with the greatest share of lost features is first. Documents whose share is
    /// unknown are last.
    #[default]
    Lost,
    /// The document that is least similar to its survivor is first.
    Similarity,
}

impl DropOrder {
    fn compare(self, a: &DroppedSample, b: &DroppedSample) -> Ordering {
        let by_loss = match self {
            // An unknown share is less than any other.
            Self::Lost => b.lost().partial_cmp(&a.lost()).unwrap_or(Ordering::Equal),
            Self::Similarity => Ordering::Equal,
        };
        by_loss
            .then_with(|| least_alike_first(a.likeness, b.likeness))
            .then_with(|| (&a.document, &a.survivor_label).cmp(&(&b.document, &b.survivor_label)))
    }
}

/// The documents that a deduplication removes.
#[derive(Clone, Debug, Default)]
pub struct DroppedDocuments {
    /// The number of documents that are kept.
    pub kept: u64,
    /// The number of documents that are removed.
    pub dropped: u64,
    /// The number of removed documents whose content equals that of their survivors.
    pub equal: u64,
    /// The number of removed documents that were compared by estimate although others are compared
    /// exactly.
    pub estimated: u64,
    /// The number of removed documents that are near-duplicates of documents in another store.
    pub in_store: u64,
    /// The size of the removed documents' texts in bytes. Documents without a text do not count.
    pub bytes: u64,
    /// The number of documents that were compared with only some of their candidates.
    pub budget_exceeded: u64,
    pub(super) order: DropOrder,
    /// The maximum number of documents in the list.
    listed: usize,
    samples: Vec<DroppedSample>,
}

impl DroppedDocuments {
    /// Begins with no document, and lists at most the first `listed` ones in an order.
    #[must_use]
    pub fn new(order: DropOrder, listed: usize) -> Self {
        Self {
            order,
            listed,
            ..Self::default()
        }
    }

    /// Adds a document to the list if it is among the first in its order.
    pub fn add(&mut self, sample: DroppedSample) {
        self.samples.push(sample);
        if self.samples.len() >= 2 * self.listed {
            self.samples = self.list();
        }
    }

    /// Returns the list.
    pub(super) fn list(&self) -> Vec<DroppedSample> {
        let mut samples = self.samples.clone();
        samples.sort_by(|a, b| self.order.compare(a, b));
        samples.truncate(self.listed);
        samples
    }
}
