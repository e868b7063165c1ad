//! The options of a join, and the counts of buckets, documents and pairs that it left out.

use crate::error::{Error, Result};

/// Memory for signatures, unless the caller says otherwise.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 20;

/// More threads than this are a slip.
const MAX_THREADS: usize = 1_024;

/// The options of a join beside its bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinOptions {
    pub(super) threads: usize,
    /// Memory for signatures that are read before the join, in bytes.
    pub(super) memory_bytes: u64,
    /// The maximum number of signatures of a bucket that are compared with all of it.
    pub(super) max_bucket: Option<usize>,
}

impl Default for JoinOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            memory_bytes: DEFAULT_MEMORY_BYTES,
            max_bucket: None,
        }
    }
}

impl JoinOptions {
    pub(super) fn validate(&self) -> Result<()> {
        if !(1..=MAX_THREADS).contains(&self.threads) {
            return Err(Error::invalid("threads", self.threads, "1 to 1,024"));
        }
        if self.max_bucket == Some(0) {
            return Err(Error::invalid("max_bucket", 0, "at least 1"));
        }
        Ok(())
    }
}

/// The documents and pairs that a join did not compare because of [`Join::max_bucket`](crate::Join::max_bucket). If
/// all counts are zero, nothing is missing for that reason.
///
/// ```
/// # use resemblance::{Document, MinHash, Schema, Signature, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// let schema = Schema::builder().minhash(MinHash::new(16).banding(2, 8)).build()?;
/// let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// for number in 0..4 {
///     // All share the first half, and so a bucket.
///     let values = [vec![7; 8], vec![number; 8]].concat();
///     store.insert(Document::without_key(), &Signature::from_minhash(values))?;
/// }
/// let clusters = store.snapshot()?.clusters().max_bucket(1).run()?;
/// let left_out = clusters.left_out();
/// assert!(!left_out.is_empty());
/// assert_eq!((left_out.buckets, left_out.documents, left_out.pairs), (1, 3, 3));
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Buckets that were cut short.
    pub buckets: u64,
    /// Documents in them that were compared with the first ones only; a document counts in each of
    /// its buckets.
    pub documents: u64,
    /// Pairs of these that were not compared in their bucket; a pair counts in each bucket that it
    /// shares. Some may have been found in a smaller bucket all the same.
    pub pairs: u64,
}

impl LeftOut {
    /// Returns true if nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a bucket, given the sizes of the groups of equal documents that were not compared
    /// among each other.
    pub(crate) fn add(&mut self, sizes: impl Iterator<Item = u64>) {
        let (mut documents, mut squares) = (0u128, 0u128);
        for size in sizes.map(u128::from) {
            documents += size;
            squares += size * size;
        }
        let pairs = (documents * documents).saturating_sub(squares) / 2;
        let narrow = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        self.buckets = self.buckets.saturating_add(1);
        self.documents = self.documents.saturating_add(narrow(documents));
        self.pairs = self.pairs.saturating_add(narrow(pairs));
    }
}
