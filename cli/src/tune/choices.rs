//! The schemas to choose from, with what they find and cost.

use resemblance::{Banding, BulkOptions, Error, MinHash, Result, Schema, SimHash, TableDesign};

use super::background::Background;
use crate::bug::bug;

/// What a posting takes on disk with codes of 40 bits, its share of the filters included, about.
pub(crate) const BAND_POSTING_BYTES: f64 = 5.4;

/// The same with codes of 64 bits.
pub(crate) const TABLE_POSTING_BYTES: f64 = 8.4;

/// The number of documents by which the bytes of one are told.
const MANY_DOCUMENTS: u64 = 1_000_000;

/// The bands for a number of MinHash values.
pub(crate) struct BandingChoice {
    pub(crate) values: u16,
    pub(crate) banding: Banding,
    /// The standard deviation of the estimate at the threshold.
    pub(crate) deviation: f64,
    /// Candidates that a query is expected to have.
    pub(crate) candidates: f64,
    /// The postings of a document.
    pub(crate) posting_bytes: f64,
    /// All of a document but its key.
    pub(crate) document_bytes: f64,
}

/// The tables for a number of SimHash fingerprints.
pub(crate) struct TableChoice {
    pub(crate) documents: u64,
    pub(crate) design: TableDesign,
    /// The postings of a document.
    pub(crate) posting_bytes: f64,
    /// All of a document but its key.
    pub(crate) document_bytes: f64,
}

/// The bands that reach a recall at a threshold, with the fewest candidates among `documents`.
///
/// # Errors
///
/// [`Error::InvalidParameter`] with the parameter `recall` if so few values cannot reach it, or if it
/// is not between 0 and 1.
pub(crate) fn banding_choice(
    values: u16,
    threshold: f64,
    recall: f64,
    documents: u64,
    background: &Background,
) -> Result<BandingChoice> {
    let banding = Banding::by_recall(values, threshold, recall)?;
    let minhash = MinHash::new(values)
        .threshold(threshold)
        .banding(banding.bands(), banding.rows());
    let schema = Schema::builder().minhash(minhash).build()?;
    Ok(BandingChoice {
        values,
        banding,
        deviation: (threshold * (1.0 - threshold) / f64::from(values)).sqrt(),
        candidates: background.candidates(banding, documents),
        posting_bytes: BAND_POSTING_BYTES * f64::from(banding.bands()),
        document_bytes: document_bytes(&schema)?,
    })
}

/// The tables that a store for so many documents gets.
pub(crate) fn table_choice(simhash: SimHash, documents: u64) -> Result<TableChoice> {
    let schema = Schema::builder()
        .simhash(simhash)
        .expected_documents(documents)
        .build()?;
    let Some(simhash) = schema.simhash() else {
        return Err(bug("a schema with SimHash has none"));
    };
    let design = simhash.design().clone();
    Ok(TableChoice {
        documents,
        posting_bytes: TABLE_POSTING_BYTES * design.table_count() as f64,
        design,
        document_bytes: document_bytes(&schema)?,
    })
}

/// What a document takes on disk, without its key, when there are many.
fn document_bytes(schema: &Schema) -> Result<f64, Error> {
    let options = BulkOptions::new();
    let many = options.estimate(schema, MANY_DOCUMENTS, 0, 0)?.store_bytes;
    let none = options.estimate(schema, 0, 0, 0)?.store_bytes;
    match many.checked_sub(none) {
        Some(bytes) => Ok(bytes as f64 / MANY_DOCUMENTS as f64),
        None => Err(bug("many documents take less than none")),
    }
}
