//! Verdicts on rows that were to be added to a store.

/// The verdict on a row that was to be added to a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The number of the row.
    pub row: i64,
    /// The key of the document.
    pub key: Vec<u8>,
    /// The store has this document.
    pub is_kept: bool,
    /// The id in the store of the document, or of the one for which it was left out.
    pub document: u64,
    /// The key of that other one, as it is printed.
    pub survivor: Option<String>,
    /// The similarity of the two.
    pub similarity: Option<f64>,
    /// Their distance.
    pub distance: Option<u32>,
    /// The evidence for it.
    pub evidence: Option<&'static str>,
}

/// A document that a store must have for a verdict that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingDocument {
    /// Its id.
    pub id: u64,
    /// Its key.
    pub key: Vec<u8>,
}
