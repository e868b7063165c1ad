//! The options of a join, and the counts of buckets, documents and pairs that it left out.

use crate::error::{Error, Result};

/// More threads than this are a slip.
const MAX_THREADS: usize = 1_024;

/// The options of a search for pairs or clusters: the number of threads, and the limit of large
/// buckets.
///
/// ```
/// use resemblance::JoinOptions;
/// let options = JoinOptions::new().threads(4).max_bucket(10_000);
/// # let _ = options;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinOptions {
    threads: usize,
    max_bucket: Option<usize>,
}

impl Default for JoinOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl JoinOptions {
    /// Makes the default options: one thread, and no bucket is cut short.
    #[must_use]
    pub fn new() -> Self {
        Self {
            threads: 1,
            max_bucket: None,
        }
    }

    /// Threads that read and compare signatures, 1 to 1,024. The result and its order are the same
    /// for any number.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Cuts the work on large buckets short, and so may miss pairs. Off if not said.
    ///
    /// A bucket of m documents has m² / 2 pairs, which for texts that share much boilerplate may
    /// be too many. Documents with the same signature count as one here, and are always found to
    /// be alike. In a bucket of more than `signatures` different ones (at least 1), the
    /// `signatures` that were inserted first are compared with all, the others not among each
    /// other in this bucket. What that leaves out is counted: see [`LeftOut`]. Where pairs are
    /// verified, documents with the same signature are not taken to be alike: each two of them are
    /// verified, and so are the documents of each two signatures that are compared.
    #[must_use]
    pub fn max_bucket(mut self, signatures: usize) -> Self {
        self.max_bucket = Some(signatures);
        self
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if !(1..=MAX_THREADS).contains(&self.threads) {
            return Err(Error::invalid("threads", self.threads, "1 to 1,024"));
        }
        if self.max_bucket == Some(0) {
            return Err(Error::invalid("max_bucket", 0, "at least 1"));
        }
        Ok(())
    }

    pub(super) fn thread_count(&self) -> usize {
        self.threads
    }

    /// Returns the maximum number of signatures of a bucket that are compared with all of it.
    pub(super) fn max_representatives(&self) -> Option<usize> {
        self.max_bucket
    }
}

/// The documents and pairs that a join did not compare because of [`JoinOptions::max_bucket`]. If
/// all counts are zero, nothing is missing for that reason.
///
/// ```
/// # use resemblance::{Document, Bounds, JoinOptions, MinHash, Schema, Signature, Store};
/// # let folder = tempfile::tempdir().unwrap();
/// let schema = Schema::builder().minhash(MinHash::new(16).banding(2, 8)).build()?;
/// let store = Store::create(folder.path().join("pages.rsm"), schema)?;
/// for number in 0..4 {
///     // All share the first half, and so a bucket.
///     let values = [vec![7; 8], vec![number; 8]].concat();
///     store.insert(Document::without_key(), &Signature::from_minhash(values))?;
/// }
/// let options = JoinOptions::new().max_bucket(1);
/// let clusters = store.snapshot()?.clusters_with(Bounds::new(), &options)?;
/// let left_out = clusters.left_out();
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
