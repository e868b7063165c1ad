//! The size of documents on disk.

use resemblance::invariant::OrBug;
use resemblance::{BulkOptions, Result, Schema};
use resemblance_sketch::lanes::POSTING_BYTES;

/// The approximate number of bytes on disk of a posting with a code of 40 bits, including its share
/// of the filters.
///
/// ```
/// use resemblance_eval::BAND_POSTING_BYTES;
/// let megabytes = 13.0 * BAND_POSTING_BYTES; // of 13 bands, a million documents
/// assert!(megabytes < 100.0);
/// ```
pub const BAND_POSTING_BYTES: f64 = 5.4;

/// The approximate number of bytes on disk of a posting with a code of 64 bits, including its share
/// of the filters.
///
/// ```
/// use resemblance_eval::TABLE_POSTING_BYTES;
/// let megabytes = 4.0 * TABLE_POSTING_BYTES; // of 4 tables, a million documents
/// assert!(megabytes < 100.0);
/// ```
pub const TABLE_POSTING_BYTES: f64 = POSTING_BYTES;

/// The number of documents over which the size of one is averaged.
const MANY_DOCUMENTS: u64 = 1_000_000;

/// Returns the approximate number of bytes on disk of a document, without its key and payload.
///
/// # Errors
///
/// The errors of [`BulkOptions::estimate`].
///
/// ```
/// use resemblance_eval::{BAND_POSTING_BYTES, Background, document_bytes};
/// use resemblance::{MinHash, Schema};
///
/// let background = Background::assumed(0.05);
/// for values in [128, 256] {
///     let minhash = MinHash::new(values).threshold(0.8).recall(0.95);
///     let schema = Schema::builder().minhash(minhash).build()?;
///     let banding = schema.minhash().unwrap().banding();
///     let (candidates, bytes) = (background.candidates(banding, 1_000_000), document_bytes(&schema)?);
///     println!("{banding}: {candidates} candidates of a query, {bytes} bytes a document");
///     assert!(BAND_POSTING_BYTES * f64::from(banding.bands()) < bytes);
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
pub fn document_bytes(schema: &Schema) -> Result<f64> {
    let options = BulkOptions::new();
    let many = options.estimate(schema, MANY_DOCUMENTS, 0, 0)?.disk_bytes;
    let none = options.estimate(schema, 0, 0, 0)?.disk_bytes;
    let bytes = many.checked_sub(none);
    Ok(bytes.or_bug("many documents take less than none")? as f64 / MANY_DOCUMENTS as f64)
}
