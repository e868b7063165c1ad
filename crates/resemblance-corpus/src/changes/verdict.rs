//! Verdicts on rows that were offered to a store.

/// The verdict on a row that was offered to a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The number of the row.
    pub row: i64,
    /// The key of the document.
    pub key: Vec<u8>,
    /// True if the store contains this document.
    pub is_kept: bool,
    /// The store's id of the document, or of the survivor in whose favour it was left out.
    pub document: u64,
    /// The key of the survivor, as it is printed.
    pub survivor: Option<String>,
    /// The similarity of the document and its survivor.
    pub similarity: Option<f64>,
    /// The distance of the document and its survivor.
    pub distance: Option<u32>,
    /// The evidence for the verdict.
    pub evidence: Option<&'static str>,
}

/// A document that a store must contain for a pending verdict to be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingDocument {
    /// Its id.
    pub id: u64,
    /// Its key.
    pub key: Vec<u8>,
}
