//! The documents that a deduplication removes.

use super::groups::{Likeness, least_alike_first};

/// The maximum number of documents in the list.
const LISTED: usize = 20;

/// A document that is removed.
#[derive(Clone, Debug)]
pub struct DroppedSample {
    /// How similar it is to its survivor.
    pub likeness: Likeness,
    /// True if the similarity is an estimate although others are exact.
    pub is_estimate: bool,
    /// The key of the document, as it is printed.
    pub document: String,
    /// The key of its survivor.
    pub survivor: String,
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
    samples: Vec<DroppedSample>,
}

impl DroppedDocuments {
    /// Adds a document to the list if it is among the least similar to their survivors.
    pub fn add(&mut self, sample: DroppedSample) {
        self.samples.push(sample);
        if self.samples.len() >= 2 * LISTED {
            self.samples = self.least_alike();
        }
    }

    /// Returns the documents that are least similar to their survivors.
    pub(super) fn least_alike(&self) -> Vec<DroppedSample> {
        let mut samples = self.samples.clone();
        samples.sort_by(|a, b| {
            let order = least_alike_first(a.likeness, b.likeness);
            order.then_with(|| (&a.document, &a.survivor).cmp(&(&b.document, &b.survivor)))
        });
        samples.truncate(LISTED);
        samples
    }
}
