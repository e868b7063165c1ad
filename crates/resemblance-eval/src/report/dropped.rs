//! The documents that a deduplication drops.

use super::groups::{Likeness, least_alike_first};

/// Documents that are listed.
const LISTED: usize = 20;

/// A document that is dropped.
#[derive(Clone, Debug)]
pub struct DroppedSample {
    /// The likeness of it and its survivor.
    pub likeness: Likeness,
    /// True if it is an estimate where others are exact.
    pub is_estimate: bool,
    /// Its key, as it is printed.
    pub document: String,
    /// The key of its survivor.
    pub survivor: String,
}

/// The documents that a deduplication drops.
#[derive(Clone, Debug, Default)]
pub struct DroppedDocuments {
    /// Number of documents that are kept.
    pub kept: u64,
    /// Number of documents that are removed.
    pub dropped: u64,
    /// Number of dropped documents whose content equals that of their survivors.
    pub equal: u64,
    /// Number of dropped documents that were compared by estimate where others are compared
    /// exactly.
    pub estimated: u64,
    /// Number of dropped documents that are near-duplicates of documents in another store.
    pub in_store: u64,
    /// Bytes of the texts of the documents that go, as far as they are texts.
    pub bytes: u64,
    /// Documents that were compared with a part of their candidates only.
    pub budget_exceeded: u64,
    samples: Vec<DroppedSample>,
}

impl DroppedDocuments {
    /// Takes note of a document for the list of those that are least like their survivors.
    pub fn add(&mut self, sample: DroppedSample) {
        self.samples.push(sample);
        if self.samples.len() >= 2 * LISTED {
            self.samples = self.least_alike();
        }
    }

    /// Returns the documents that are least like their survivors.
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
