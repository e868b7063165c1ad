//! Estimates the memory and disk space of a build before it begins.

use std::sync::Arc;

use crate::build::bulk_options::BulkOptions;
use crate::build::sort::{MemoryPlan, PostingLayout, code_bits};
use crate::clusters::cluster_bounds;
use crate::engine::file_size;
use crate::error::{Error, Result};
use crate::read::SnapshotView;
use crate::state::OpenStore;
use crate::state::shape_of;
use crate::write::filter_bits_per_document;
use resemblance_sketch::schema::{Rebanding, Schema};
use resemblance_sketch::sketch::KEPT_HASH_BITS;

/// The approximate bytes of a store without documents, and of buffers besides its caches.
const CONSTANT_BYTES: u64 = 2 << 20;
/// Pages around the bytes that are stored, in proportion.
const PAGES: f64 = 1.02;
/// The buffers and bookkeeping of a build, in addition to what its options bound.
const BUFFERS_BYTES: u64 = 32 << 20;

/// The bytes of a document's row besides its key and signature, including its place in the tree,
/// and the bytes of a payload's row.
const DOCUMENT_ROW_BYTES: u64 = 20;
const PAYLOAD_ROW_BYTES: u64 = 17;

/// Bytes of a document in the tables of clusters, if each is near another: two edges of 34 bytes, a member of 20, half a
/// cluster of 22, in pages that are filled to two thirds. And the memory in which clusters are found.
const CLUSTERS_BYTES: f64 = (2.0 * 34.0 + 20.0 + 11.0) * 1.5;
const LINKING_BYTES: u64 = 32;

/// Bytes of a kept hash in the row of a document that has some hundred.
const KEPT_HASH_BYTES: f64 = 4.8;

/// Bytes of its position, where these are kept, among some thousand shingles.
const POSITION_BYTES: f64 = 1.7;

/// The expected needs of a build or of a rebanding.
///
/// ```
/// use resemblance::{BulkOptions, MinHash, Schema, report::BuildEstimate};
/// let schema = Schema::builder().minhash(MinHash::new(128)).build()?;
/// let options = BulkOptions::new().memory_bytes(1 << 30);
/// let estimate: BuildEstimate = options.estimate(&schema, 1_000_000_000, 30, 0)?;
/// println!("{} GB of disk", (estimate.disk_bytes + estimate.temporary_bytes) / 1_000_000_000);
/// assert!(estimate.temporary_bytes > 0);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildEstimate {
    /// The documents whose postings are written.
    pub documents: u64,
    /// Peak memory for sorting, the cache and buffers.
    pub memory_bytes: u64,
    /// The size of the file of a build. For a rebanding, the maximum growth of the file beyond its
    /// free space, because the old postings are kept until the commit. It is 0 if neither lanes nor
    /// the bounds of kept clusters change, and nothing is rewritten.
    pub disk_bytes: u64,
    /// The final size of the temporary file; 0 if everything is sorted in memory.
    pub temporary_bytes: u64,
}

/// The bytes that the postings of all lanes need.
struct Sorting {
    /// Bytes in the store, with their filters: ids take as much as codes save, and each block takes a page.
    stored_bytes: f64,
    memory_bytes: u64,
    temporary_bytes: u64,
}

impl Sorting {
    /// `kept` is the mean number of kept hashes of a document.
    fn new(options: &BulkOptions, schema: &Schema, documents: u64, kept: f64) -> Result<Self> {
        let code_bits = code_bits(schema)?;
        let max_bytes = options.store.filter_cache_bytes() as u64;
        let filters = filter_bits_per_document(&schema.lane_set()?, max_bytes, documents);
        let bits = code_bits.iter().copied();
        let layouts: Vec<PostingLayout> = bits.map(PostingLayout::for_code_bits).collect();
        let has_kept_lane = schema.containment().is_some();
        let (memory_bytes, threads) = (options.memory_bytes, options.sorting_threads());
        let limits = MemoryPlan::new(&layouts, has_kept_lane, memory_bytes, threads).limits;
        // The bytes of a document's postings.
        let (mut held, mut spilled, mut postings) = (0.0, 0.0, 0.0);
        for (lane, (layout, bits)) in (1..).zip(layouts.iter().zip(&code_bits)) {
            let is_kept_lane = has_kept_lane && lane == layouts.len();
            let count = if is_kept_lane { kept } else { 1.0 };
            held += count * layout.memory_bytes() as f64;
            spilled += count * layout.spilled_bytes() as f64;
            postings += count * f64::from(bits + 3) / 8.0;
        }
        let is_full = |max: u64| kept * documents as f64 > max as f64;
        let spills = documents > limits.documents || limits.kept_postings.is_some_and(is_full);
        let largest = if has_kept_lane { kept } else { 1.0 };
        let scratch = (held / layouts.len().max(1) as f64).max(8.0 * largest);
        Ok(Self {
            stored_bytes: (postings + filters as f64 / 8.0) * documents as f64,
            memory_bytes: if spills {
                options.memory_bytes
            } else {
                // One batch, and room for one lane.
                (documents as f64 * (held + scratch)) as u64
            },
            temporary_bytes: if spills {
                (documents as f64 * spilled) as u64
            } else {
                0
            },
        })
    }
}

/// The needs of finding clusters, after the postings have been sorted, if each document is in one.
struct Linking {
    stored_bytes: f64,
    memory_bytes: u64,
}

impl Linking {
    fn new(schema: &Schema, documents: u64) -> Self {
        let linked = schema.clusters().map_or(0, |_| documents);
        Self {
            stored_bytes: CLUSTERS_BYTES * linked as f64,
            memory_bytes: LINKING_BYTES.saturating_mul(linked),
        }
    }
}

/// Returns the bytes of an exact set of this number of hashes in a schema, or those of a vector.
fn set_bytes(schema: &Schema, hashes: f64) -> f64 {
    if let Some(vector) = schema.vector() {
        let form = vector.kept();
        return form.map_or(0.0, |form| form.size_bytes(vector.dimensions()) as f64);
    }
    let bits = schema.exact_bits().unwrap_or(KEPT_HASH_BITS);
    hashes * (KEPT_HASH_BYTES + (f64::from(bits) - f64::from(KEPT_HASH_BITS)) / 8.0)
}

/// Returns the mean number of kept hashes of a document, those of deleted ones in runs included.
fn kept_per_document(view: &SnapshotView) -> f64 {
    let Some(lane) = view.context().lanes.kept_lane() else {
        return 0.0;
    };
    view.inner.version.lane_postings(lane) as f64 / view.len().max(1) as f64
}

/// Estimates the memory and the disk space that a rebanding of a store takes. If the store gets
/// exact sets, `features` is their mean size.
pub(super) fn estimate_reband(
    store: &Arc<OpenStore>,
    rebanding: &Rebanding,
    options: &BulkOptions,
    features: f64,
) -> Result<BuildEstimate> {
    let schema = store.schema().rebanded(rebanding)?;
    let view = SnapshotView::open(store)?;
    let documents = view.len();
    let (file_bytes, _) = file_size(&store.context.path, &store.context.options.file_options())?;
    let cached = |growth_bytes: u64| {
        let held_bytes = file_bytes.saturating_add(growth_bytes);
        let cache_bytes = options.store.cache_bytes.min(held_bytes);
        cache_bytes.saturating_add(BUFFERS_BYTES)
    };
    let gets_sets = schema.has_sets() && !store.schema().has_sets();
    let linking = Linking::new(&schema, documents);
    if !gets_sets && schema.lane_set()? == store.schema().lane_set()? {
        let is_linked = cluster_bounds(&schema)? == cluster_bounds(store.schema())?;
        let (stored_bytes, linking_bytes) = match is_linked {
            true => (0, 0),
            false => (linking.stored_bytes as u64, linking.memory_bytes),
        };
        return Ok(BuildEstimate {
            documents,
            memory_bytes: cached(stored_bytes).saturating_add(linking_bytes),
            disk_bytes: stored_bytes,
            temporary_bytes: 0,
        });
    }
    let kept = kept_per_document(&view);
    let sorting = Sorting::new(options, &schema, documents, kept)?;
    let sets_bytes = match gets_sets {
        true => set_bytes(&schema, features) * documents as f64,
        false => 0.0,
    };
    let stored_bytes = sorting.stored_bytes + sets_bytes + linking.stored_bytes;
    let disk_bytes = CONSTANT_BYTES.saturating_add((stored_bytes * PAGES) as u64);
    Ok(BuildEstimate {
        documents,
        memory_bytes: sorting
            .memory_bytes
            .max(linking.memory_bytes)
            .saturating_add(cached(disk_bytes)),
        disk_bytes,
        temporary_bytes: sorting.temporary_bytes,
    })
}

impl BulkOptions {
    /// Returns the expected needs of a build with these options, for a number of documents with
    /// keys and payloads of the given mean sizes in bytes.
    ///
    /// ```
    /// use resemblance::{BulkOptions, MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128)).build()?;
    /// let estimate = BulkOptions::new().estimate(&schema, 10_000_000, 30, 0)?;
    /// assert!(estimate.disk_bytes > 128 * 2 * 10_000_000); // the signatures, and more
    /// assert!(estimate.memory_bytes < 400 << 20);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`](crate::Error::InvalidParameter) for a schema with containment, and for an exact one,
    /// unless [`kept_hashes`](Self::kept_hashes) sets the number of hashes of a document, which
    /// depends on its length.
    pub fn estimate(
        &self,
        schema: &Schema,
        documents: u64,
        key_bytes: u64,
        payload_bytes: u64,
    ) -> Result<BuildEstimate> {
        let has_hashes = schema.has_sets() && schema.vector().is_none();
        let keeps_hashes = schema.containment().is_some() || has_hashes;
        let hashes = match (keeps_hashes, self.kept_hashes) {
            (true, None) => {
                let expected = "the mean number of a document: kept_hashes of the options";
                return Err(Error::invalid("kept_hashes", "none", expected));
            }
            (true, Some(hashes)) => hashes,
            (false, _) => 0,
        };
        let kept = schema.containment().map_or(0, |_| hashes);
        let sorting = Sorting::new(self, schema, documents, kept as f64)?;
        // Rows with their places in the tree; then postings.
        let signature = shape_of(schema).size_bytes() as u64;
        let payload = match payload_bytes {
            0 => 0,
            bytes => bytes.saturating_add(PAYLOAD_ROW_BYTES),
        };
        let content = key_bytes.saturating_add(payload);
        let row = content.saturating_add(DOCUMENT_ROW_BYTES + signature);
        let has_positions = schema.containment().is_some_and(|it| it.has_positions());
        let position = if has_positions { POSITION_BYTES } else { 0.0 };
        // Weights are mostly small numbers.
        let set = match schema.has_sets() {
            true => set_bytes(schema, hashes as f64),
            false => 0.0,
        };
        let row = row as f64 + kept as f64 * (KEPT_HASH_BYTES + position) + set;
        let linking = Linking::new(schema, documents);
        let stored = row * documents as f64 + sorting.stored_bytes + linking.stored_bytes;
        let stored = stored * PAGES;
        let disk_bytes = CONSTANT_BYTES.saturating_add(stored as u64);
        let buffers = BUFFERS_BYTES.saturating_add(self.store.cache_bytes.min(disk_bytes));
        Ok(BuildEstimate {
            documents,
            memory_bytes: sorting
                .memory_bytes
                .max(linking.memory_bytes)
                .saturating_add(buffers),
            disk_bytes,
            temporary_bytes: sorting.temporary_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resemblance_sketch::schema::{MinHash, SimHash};

    /// Estimates for absurd numbers wrapped to small ones.
    #[test]
    fn build_estimate_saturates() {
        use crate::options::StoreOptions;
        let schema = Schema::builder()
            .minhash(MinHash::new(128))
            .build()
            .unwrap();
        let store = StoreOptions::new().cache_bytes(u64::MAX);
        let options = BulkOptions::new().memory_bytes(u64::MAX).store(store);
        for (documents, key, payload) in [(u64::MAX, 0, 0), (1 << 62, 30, 0), (2, u64::MAX, 57)] {
            let estimate = options.estimate(&schema, documents, key, payload).unwrap();
            let greatest = (u64::MAX, u64::MAX);
            assert_eq!((estimate.disk_bytes, estimate.memory_bytes), greatest);
        }
        let few = BulkOptions::new()
            .estimate(&schema, u64::MAX, 0, 0)
            .unwrap();
        assert_eq!(few.temporary_bytes, u64::MAX);
    }

    #[test]
    fn build_estimate_counts_the_bytes_of_vectors() {
        use resemblance_sketch::{KeptVector, Vector};
        let disk_bytes = |vector: Vector| {
            let schema = Schema::builder().vector(vector).build().unwrap();
            let estimate = BulkOptions::new().estimate(&schema, 1_000_000, 0, 0);
            estimate.unwrap().disk_bytes as f64
        };
        let vector = Vector::cosine(384);
        let [kept, rounded] =
            [KeptVector::F32, KeptVector::I8].map(|it| disk_bytes(vector.kept(it)));
        let estimated = disk_bytes(vector.estimated());
        for (found, expected) in [(kept, 384e6 * 4.0), (rounded, 386e6)] {
            let found = (found - estimated) / PAGES;
            assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
        }
    }

    /// Schemas that keep 128 values with the same bands, with two widths of fingerprints.
    #[test]
    fn build_estimate_follows_the_signature_kind() {
        let bytes = |schema: Schema| {
            let estimate = BulkOptions::new().estimate(&schema, 1_000_000, 0, 0);
            estimate.unwrap().disk_bytes as f64 / 1e6 / PAGES
        };
        let minhash = |minhash| bytes(Schema::builder().minhash(minhash).build().unwrap());
        let minhash = |bits| minhash(MinHash::new(128).banding(13, 7).value_bits(bits));
        let whole = minhash(32);
        for (bits, kept) in [(1, 16.0), (4, 64.0), (16, 256.0)] {
            let saved = whole - minhash(bits);
            assert!((saved - (512.0 - kept)).abs() < 0.1, "{bits}: {saved}");
        }
        // Equally many lanes, for the difference to be that of the fingerprints.
        let simhash = |simhash: SimHash| {
            let schema = Schema::builder().simhash(simhash.max_distance(1)).build();
            let schema = schema.unwrap();
            (schema.lanes(), bytes(schema))
        };
        let (narrow, wide) = (simhash(SimHash::bits64()), simhash(SimHash::bits128()));
        assert_eq!(narrow.0, wide.0);
        assert!((wide.1 - narrow.1 - 8.0).abs() < 0.1, "{narrow:?} {wide:?}");
    }
}
