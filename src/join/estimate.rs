//! Estimates the cost of a join before it runs.

use std::sync::Arc;

use crate::error::Result;
use crate::format::Posting;
use crate::invariant::OrBug;
use crate::join::batch::BUCKET_DOCUMENT_BYTES;
use crate::join::join_lanes::BucketStream;
use crate::join::partners::for_each_within;
use crate::join::settings::{BATCH_BYTES, Settings};
use crate::join::source::{JoinSource, LiveDocuments};
use crate::query::SearchOptions;
use crate::state::Tombstones;

/// Maximum number of postings of a lane in the sample.
const SAMPLE_POSTINGS: u64 = 1 << 18;

/// Minimum number of documents of a band's bucket whose signatures are read: many may be equal.
const LARGE_BUCKET: usize = 32;

/// Signatures of such a bucket that are compared with each other, and in all buckets together.
const BUCKET_SIGNATURES: usize = 1 << 8;
const SAMPLE_SIGNATURES: usize = 1 << 13;

// Times of one core of a laptop, with the file in the system's cache.
const POSTING_SECONDS: f64 = 60e-9;
const SIGNATURE_SECONDS: f64 = 1.5e-6;
const VALUE_SECONDS: f64 = 0.2e-9;
const FINGERPRINT_SECONDS: f64 = 2e-9;

/// The expected cost of a join, estimated from a sample of the buckets. A few very large
/// buckets that the sample does not see can make it several times too low. Made by [`Join::estimate`](crate::Join::estimate).
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text};
/// # let store = Store::in_memory(Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// let expected = store.snapshot()?.clusters().estimate()?;
/// println!("about {} comparisons, {} s", expected.comparisons, expected.seconds);
/// assert!(expected.memory_bytes < 1 << 30);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct JoinEstimate {
    /// The number of documents.
    pub documents: u64,
    /// The number of postings to read in all lanes. This number is exact.
    pub postings: u64,
    /// The approximate number of signatures to read. A signature in several large buckets counts in
    /// each.
    pub signatures: u64,
    /// The approximate number of comparisons of two signatures.
    pub comparisons: u64,
    /// The approximate number of pairs. It counts the pairs in the first band (only a part of each
    /// large bucket is verified) and the near pairs in the first table. It compares estimates, in
    /// an [exact](crate::SchemaBuilder::exact) store as well.
    pub pairs: u64,
    /// The approximate memory in bytes, without the store's cache.
    pub memory_bytes: u64,
    /// The approximate time in seconds, on one core of a laptop, with the file in the system's
    /// cache.
    pub seconds: f64,
}

/// Counts of the postings and pairs in the buckets of a part of a lane.
#[derive(Default)]
struct Sample {
    postings: u64,
    /// Number of documents in buckets of at least two.
    documents: f64,
    candidates: f64,
    near: f64,
    largest: u64,
}

/// Estimates the work and the result of a join from samples of its lanes.
pub(super) fn estimate(
    source: &Arc<dyn JoinSource>,
    options: SearchOptions,
    hidden: Tombstones,
) -> Result<JoinEstimate> {
    // It estimates the join without a limit on buckets.
    let unlimited = SearchOptions {
        max_bucket: None,
        ..options
    };
    let settings = Settings {
        hidden,
        ..Settings::new(&**source, unlimited, false)?
    };
    source
        .context()
        .run_checked(|| estimate_with(source, &settings))
}

fn estimate_with(source: &Arc<dyn JoinSource>, settings: &Settings) -> Result<JoinEstimate> {
    let live = settings.live(&**source)?;
    let documents = source.len().checked_sub(settings.hidden.len());
    let mut expected = JoinEstimate {
        documents: documents.or_bug("more documents are hidden than there are")?,
        ..JoinEstimate::default()
    };
    let (mut signatures, mut pairs, mut largest) = (0.0, 0.0, 0);
    let bands_end = 1 + settings.join_lanes.set().band_count();
    let lanes = &settings.lanes;
    for lanes in [
        lanes.start..lanes.end.min(bands_end),
        lanes.start.max(bands_end)..lanes.end,
    ] {
        if lanes.is_empty() {
            continue;
        }
        let postings = lanes
            .clone()
            .map(|lane| settings.join_lanes.postings(&**source, lane))
            .fold(0, u64::saturating_add);
        let sample = sample(source, settings, &live, lanes.start)?;
        let scale = postings as f64 / sample.postings.max(1) as f64;
        expected.postings = expected.postings.saturating_add(postings);
        let comparisons = (sample.candidates * scale) as u64;
        expected.comparisons = expected.comparisons.saturating_add(comparisons);
        pairs += sample.near * scale / lanes.len() as f64;
        largest = largest.max(sample.largest);
        let is_table = lanes.start >= bands_end;
        // Only those fingerprints of a table are read that are near another one.
        let read = if is_table {
            2.0 * sample.near
        } else {
            sample.documents
        };
        if settings.reads_signatures {
            signatures += read * scale;
        }
        let comparison_seconds = if is_table {
            FINGERPRINT_SECONDS
        } else {
            VALUE_SECONDS * settings.layout.map_or(0, |layout| layout.count()) as f64
        };
        expected.seconds += sample.candidates * scale * comparison_seconds;
    }
    expected.signatures = signatures as u64;
    expected.pairs = pairs as u64;
    expected.seconds += expected.postings as f64 * POSTING_SECONDS + signatures * SIGNATURE_SECONDS;
    let batch_bytes = (expected.documents * settings.document_bytes).min(2 * BATCH_BYTES as u64);
    let bucket_bytes = BUCKET_DOCUMENT_BYTES * largest;
    expected.memory_bytes = batch_bytes + bucket_bytes + live.size_bytes() + expected.documents / 8;
    Ok(expected)
}

fn sample(
    source: &Arc<dyn JoinSource>,
    settings: &Settings,
    live: &LiveDocuments,
    lane: u16,
) -> Result<Sample> {
    let mut stream = BucketStream::open(source, &settings.join_lanes, lane)?;
    let mut bucket = Vec::new();
    let mut sample = Sample::default();
    let is_table = settings.join_lanes.is_table(lane);
    let lanes = settings.join_lanes.set();
    let mut signatures = SAMPLE_SIGNATURES;
    while sample.postings < SAMPLE_POSTINGS && stream.read(lanes, live, &mut bucket)? {
        let documents = bucket.len();
        sample.postings += documents as u64;
        sample.largest = sample.largest.max(documents as u64);
        if documents < 2 {
            continue;
        }
        let pairs = pairs_of(documents as f64);
        let (mut candidates, mut near) = (pairs, pairs);
        if is_table {
            near = near_by_code(settings, &bucket)?;
        } else if documents >= LARGE_BUCKET && signatures > 0 {
            let (different, share) = measure_bucket(&**source, settings, &bucket)?;
            candidates = pairs_of(documents as f64 * different);
            near = pairs * share;
            signatures = signatures.saturating_sub(documents.min(BUCKET_SIGNATURES));
        }
        sample.documents += documents as f64;
        sample.candidates += candidates;
        sample.near += near;
    }
    Ok(sample)
}

fn pairs_of(documents: f64) -> f64 {
    (documents * (documents - 1.0) / 2.0).max(0.0)
}

/// Returns the share of different signatures and the share of near pairs, each from 0 to 1, among
/// some documents of a band's bucket, evenly spread.
fn measure_bucket(
    source: &dyn JoinSource,
    settings: &Settings,
    bucket: &[Posting],
) -> Result<(f64, f64)> {
    let step = bucket.len().div_ceil(BUCKET_SIGNATURES).max(1);
    let mut ids: Vec<u64> = bucket.iter().step_by(step).map(|p| p.id).collect();
    ids.sort_unstable();
    let signatures = source.signatures(&ids, false, 1)?;
    let slots: Vec<usize> = ids
        .iter()
        .map(|id| signatures.slot(*id))
        .collect::<Result<_>>()?;
    let mut digests: Vec<u128> = slots
        .iter()
        .map(|slot| signatures.digest(*slot))
        .collect::<Result<_>>()?;
    digests.sort_unstable();
    digests.dedup();
    let mut near = 0_u32;
    for (count, &b) in slots.iter().enumerate() {
        let is_near = |a: &&usize| {
            let a = **a;
            let fingerprints = signatures.fingerprint(a).zip(signatures.fingerprint(b));
            let distance = fingerprints.map_or(0, |(a, b)| a.distance(&b));
            let equal = signatures.agreement(a, b);
            settings.bounds.accepts(equal, distance)
        };
        near += slots.iter().take(count).filter(is_near).count() as u32;
    }
    let read = ids.len() as f64;
    let share = f64::from(near) / pairs_of(read).max(1.0);
    Ok((digests.len() as f64 / read.max(1.0), share))
}

/// Pairs of a table's bucket within the distance; of a large one from some of its codes.
fn near_by_code(settings: &Settings, bucket: &[Posting]) -> Result<f64> {
    const MOST_CODES: usize = 1 << 10;
    let sampled = bucket.iter().take(MOST_CODES);
    let codes: Vec<u64> = sampled.map(|posting| posting.code).collect();
    let bound = settings.bounds.max_distance;
    let distance = bound.or_bug("a bound on the distance, for which tables are read")?;
    let mut near = 0.0;
    for (later, code) in codes.iter().enumerate() {
        let (earlier, _) = codes.split_at(later);
        for_each_within(earlier, *code, distance, |_, _| near += 1.0);
    }
    // Pairs grow with the square of the documents.
    let share = bucket.len() as f64 / codes.len().max(1) as f64;
    Ok(near * share * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::StoreOptions;
    use crate::types::Document;
    use resemblance_sketch::schema::{MinHash, Schema};
    use resemblance_sketch::sketch::Signature;

    /// Different documents, all of them in the bucket of the first lane.
    fn estimated(flush_after: u64) -> JoinEstimate {
        let folder = tempfile::tempdir().unwrap();
        let schema = Schema::builder().minhash(MinHash::new(16).banding(2, 8));
        let options = StoreOptions::new().flush_after(flush_after);
        let path = folder.path().join("s");
        let store = options.create(path, schema.build().unwrap()).unwrap();
        let mut transaction = store.begin_write().unwrap();
        for number in 0..600 {
            let values = [vec![7; 8], vec![number; 8]].concat();
            let signature = Signature::from_minhash(values);
            transaction
                .insert(Document::without_key(), &signature)
                .unwrap();
        }
        transaction.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        snapshot.pairs().estimate().unwrap()
    }

    #[test]
    fn join_estimate_sums_its_three_costs() {
        let expected = estimated(10_000);
        assert!(expected.comparisons > 100_000, "{expected:?}");
        let compared = expected.comparisons as f64 * 16.0 * VALUE_SECONDS;
        let read = expected.signatures as f64 * SIGNATURE_SECONDS
            + expected.postings as f64 * POSTING_SECONDS;
        let share = expected.seconds / (compared + read);
        assert!((share - 1.0).abs() < 0.01, "{expected:?}");
    }

    #[test]
    fn join_estimate_counts_memory_of_unflushed_documents() {
        let (in_a_run, in_none) = (estimated(600), estimated(10_000));
        assert_eq!(in_none.memory_bytes, in_a_run.memory_bytes + 600 * 8);
    }
}
