//! The schemas to choose from, with their recall and cost.

use super::background::Background;
use crate::build::BulkOptions;
use crate::error::Result;
use crate::invariant::{OrBug, bug};
use crate::lanes::{Banding, TableDesign};
use crate::schema::{MinHash, Schema, SimHash};

/// Bytes that a posting with a code of 40 bits takes on disk, about, its share of the filters included.
///
/// ```
/// use resemblance::tune::BAND_POSTING_BYTES;
/// let megabytes = 13.0 * BAND_POSTING_BYTES; // of 13 bands, a million documents
/// assert!(megabytes < 100.0);
/// ```
pub const BAND_POSTING_BYTES: f64 = 5.4;

/// Bytes that a posting with a code of 64 bits takes on disk, about, its share of the filters included.
///
/// ```
/// use resemblance::tune::TABLE_POSTING_BYTES;
/// let megabytes = 4.0 * TABLE_POSTING_BYTES; // of 4 tables, a million documents
/// assert!(megabytes < 100.0);
/// ```
pub const TABLE_POSTING_BYTES: f64 = 8.4;

/// Number of families of pairs for which the spread of the recall is computed.
const FAMILIES: u64 = 100;

/// Number of documents over which the bytes of one are averaged.
const MANY_DOCUMENTS: u64 = 1_000_000;

/// The bands for a number of MinHash values, with their accuracy and cost.
///
/// ```
/// use resemblance::tune::{Background, BandingChoice, banding_choice};
///
/// let background = Background::assumed(0.05);
/// let choice: BandingChoice = banding_choice(128, 0.8, 0.95, 1_000_000, &background)?;
/// assert_eq!(choice.banding.to_string(), "13 x 7");
/// assert!(choice.deviation < 0.04 && choice.posting_bytes < choice.document_bytes);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BandingChoice {
    /// The number of MinHash values.
    pub values: u16,
    /// The bands.
    pub banding: Banding,
    /// The area below the threshold and under the S-curve.
    pub false_positive_area: f64,
    /// The area above the threshold and over the S-curve.
    pub false_negative_area: f64,
    /// The standard deviation of the estimate at the threshold.
    pub deviation: f64,
    /// The standard deviation, over seeds, of the recall of 100 families of pairs at the threshold; see
    /// [`MinHashSchema::recall_deviation`](crate::MinHashSchema::recall_deviation).
    pub recall_deviation: f64,
    /// The number of candidates that a query is expected to have.
    pub candidates: f64,
    /// Bytes on disk of a document's postings, about.
    pub posting_bytes: f64,
    /// Bytes on disk of a document without its key, about.
    pub document_bytes: f64,
}

/// The tables for a number of SimHash fingerprints, with their cost.
///
/// ```
/// use resemblance::tune::{TableChoice, table_choice};
/// # use resemblance::SimHash;
///
/// let choice: TableChoice = table_choice(SimHash::bits64(), 1_000_000)?;
/// println!("{}: {} bytes a document", choice.design, choice.document_bytes);
/// assert!(choice.posting_bytes < choice.document_bytes);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableChoice {
    /// The number of documents.
    pub documents: u64,
    /// The tables.
    pub design: TableDesign,
    /// Bytes on disk of a document's postings, about.
    pub posting_bytes: f64,
    /// Bytes on disk of a document without its key, about.
    pub document_bytes: f64,
}

/// Returns the bands that reach a recall at a threshold, with the fewest candidates among
/// `documents`.
///
/// # Errors
///
/// [`Error::InvalidParameter`](crate::Error::InvalidParameter) with the parameter `recall` if so few
/// values cannot reach it, or if it is not between 0 and 1.
///
/// ```
/// use resemblance::tune::{Background, banding_choice};
///
/// let background = Background::assumed(0.05);
/// for values in [128, 256] {
///     let choice = banding_choice(values, 0.8, 0.95, 1_000_000, &background)?;
///     assert!(choice.banding.probability(0.8) >= 0.95);
///     println!("{} candidates, {} bytes", choice.candidates, choice.document_bytes);
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn banding_choice(
    values: u16,
    threshold: f64,
    recall: f64,
    documents: u64,
    background: &Background,
) -> Result<BandingChoice> {
    let minhash = MinHash::new(values).threshold(threshold).recall(recall);
    choice_of(minhash, documents, background)
}

/// Returns the accuracy and cost of bands that are given, for pairs at a threshold.
///
/// # Errors
///
/// [`Error::InvalidParameter`](crate::Error::InvalidParameter) if the bands take more values than there are, or
/// there are not 16 to 1,024 of these.
///
/// ```
/// use resemblance::Banding;
/// use resemblance::tune::{Background, explicit_banding_choice};
///
/// let banding = Banding::explicit(20, 5, 100)?;
/// let choice = explicit_banding_choice(100, banding, 0.55, 1_000_000, &Background::assumed(0.05))?;
/// assert!((choice.false_positive_area - 0.1).abs() < 0.1 && choice.posting_bytes > 100.0);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn explicit_banding_choice(
    values: u16,
    banding: Banding,
    threshold: f64,
    documents: u64,
    background: &Background,
) -> Result<BandingChoice> {
    let minhash = MinHash::new(values).threshold(threshold);
    let minhash = minhash.banding(banding.bands(), banding.rows());
    choice_of(minhash, documents, background)
}

fn choice_of(minhash: MinHash, documents: u64, background: &Background) -> Result<BandingChoice> {
    let schema = Schema::builder().minhash(minhash).build()?;
    let minhash = schema.minhash().or_bug("the schema has MinHash")?;
    let (banding, threshold) = (minhash.banding(), minhash.threshold());
    let (false_positive_area, false_negative_area) = banding.areas(threshold);
    Ok(BandingChoice {
        values: minhash.values(),
        banding,
        false_positive_area,
        false_negative_area,
        deviation: minhash.variance(threshold).sqrt(),
        recall_deviation: minhash.recall_deviation(FAMILIES),
        candidates: background.candidates(banding, documents),
        posting_bytes: BAND_POSTING_BYTES * f64::from(banding.bands()),
        document_bytes: document_bytes(&schema)?,
    })
}

/// Returns the tables that a store for this number of documents gets.
///
/// # Errors
///
/// [`Error::InvalidParameter`](crate::Error::InvalidParameter) for a distance or a number of documents
/// out of its range.
///
/// ```
/// use resemblance::SimHash;
/// use resemblance::tune::table_choice;
///
/// let few = table_choice(SimHash::bits64(), 100_000)?;
/// let many = table_choice(SimHash::bits64(), 1_000_000_000)?;
/// assert!(few.document_bytes > 0.0 && many.design.max_distance() == 3);
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn table_choice(simhash: SimHash, documents: u64) -> Result<TableChoice> {
    let schema = Schema::builder()
        .simhash(simhash)
        .expected_documents(documents)
        .build()?;
    let Some(simhash) = schema.simhash() else {
        return Err(bug("a schema with SimHash has none"));
    };
    let design = simhash.clone();
    Ok(TableChoice {
        documents,
        posting_bytes: TABLE_POSTING_BYTES * design.table_count() as f64,
        design,
        document_bytes: document_bytes(&schema)?,
    })
}

/// Bytes on disk of a document without its key, when there are many.
fn document_bytes(schema: &Schema) -> Result<f64> {
    let options = BulkOptions::new();
    let many = options.estimate(schema, MANY_DOCUMENTS, 0, 0)?.store_bytes;
    let none = options.estimate(schema, 0, 0, 0)?.store_bytes;
    match many.checked_sub(none) {
        Some(bytes) => Ok(bytes as f64 / MANY_DOCUMENTS as f64),
        None => Err(bug("many documents take less than none")),
    }
}
