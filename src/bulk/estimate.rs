//! What a build will need, before it begins.

use crate::error::Result;
use crate::lanes::LaneRole;
use crate::schema::Schema;

use super::batch::Layout;
use super::options::BulkOptions;
use super::sorting::Plan;

/// What a store without documents takes, and buffers beside caches, about.
const CONSTANT_BYTES: u64 = 2 << 20;
/// Buffers and bookkeeping of a build beside what its options bound.
const BUFFERS_BYTES: u64 = 32 << 20;

/// What a build is expected to need, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BulkEstimate {
    /// Memory at the peak: for sorting, the cache, and buffers.
    pub memory_bytes: u64,
    /// The store on disk.
    pub store_bytes: u64,
    /// The temporary file at the end; 0 if everything is sorted in memory.
    pub temporary_bytes: u64,
}

impl BulkOptions {
    /// What a build with these options is expected to need for so many documents, with keys and
    /// payloads of so many bytes each on average.
    ///
    /// ```
    /// use resemblance::{BulkOptions, MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128)).build()?;
    /// let estimate = BulkOptions::new().estimate(&schema, 10_000_000, 30, 0)?;
    /// assert!(estimate.store_bytes > 128 * 4 * 10_000_000); // the signatures, and more
    /// assert!(estimate.memory_bytes < 400 << 20);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None for a schema that was built here.
    pub fn estimate(
        &self,
        schema: &Schema,
        documents: u64,
        key_bytes: u64,
        payload_bytes: u64,
    ) -> Result<BulkEstimate> {
        let code_bits = code_bits(schema)?;
        let layouts: Vec<Layout> = code_bits.iter().copied().map(Layout::of).collect();
        let plan = Plan::new(&layouts, self.memory_bytes, self.sorting_threads());
        let held: u64 = layouts.iter().map(|layout| layout.memory_bytes()).sum();
        let spilled: usize = layouts.iter().map(|layout| layout.spilled_bytes()).sum();

        // Rows with their places in the tree; then postings, whose ids take what their codes
        // save, and a page for each block.
        let values = schema
            .minhash()
            .map_or(0, |minhash| 4 * u64::from(minhash.values()));
        let fingerprint = schema.simhash().map_or(0, |_| 8);
        let rows = 28 + key_bytes + payload_bytes + 29 + values + fingerprint;
        let postings: f64 = code_bits.iter().map(|bits| f64::from(bits + 3) / 8.0).sum();
        let document = (rows as f64 + postings) * 1.02;
        let store_bytes = CONSTANT_BYTES + (document * documents as f64) as u64;
        let spills = documents > plan.batch_documents;
        let sorting = if spills {
            self.memory_bytes
        } else {
            // One batch, and room for one lane.
            documents * (held + held / layouts.len().max(1) as u64)
        };
        Ok(BulkEstimate {
            memory_bytes: sorting + self.store.cache_bytes.min(store_bytes) + BUFFERS_BYTES,
            store_bytes,
            temporary_bytes: if spills {
                documents * spilled as u64
            } else {
                0
            },
        })
    }
}

/// How many bits the codes of each lane have.
pub(crate) fn code_bits(schema: &Schema) -> Result<Vec<u32>> {
    let band_bits = schema.minhash().map_or(64, |minhash| minhash.code_bits());
    let roles = schema.lane_set()?.roles();
    let bits = roles.map(|role| match role {
        LaneRole::Band(_) => u32::from(band_bits),
        LaneRole::Key | LaneRole::Table(_) => u64::BITS,
    });
    Ok(bits.collect())
}
