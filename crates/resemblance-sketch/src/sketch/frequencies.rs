//! Weights of features by their rarity: tf-idf.

use std::collections::HashMap;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use super::hash::feature_hash;
use super::weighted::negative_ln;
use crate::error::{Result, SketchError};

/// For each feature of a corpus, the number of documents that contain it. Weights follow from these
/// numbers (tf-idf, Salton and Buckley 1988): a feature that nearly all documents contain
/// identifies none of them.
///
/// A feature that occurs t times in a document weighs t · (ln((1 + N) / (1 + n)) + 1) if n of N
/// documents contain it. A feature that no document contains weighs most, and no weight is 0. This
/// crate implements the logarithm itself, because the result must be the same on every platform.
///
/// The frequencies take about 20 bytes of memory for each different feature of the corpus.
///
/// Signatures made with different frequencies cannot be compared. A program therefore keeps its
/// frequencies in the store, with [`Schema::with_weights`](crate::Schema::with_weights), or in a
/// file, with [`save`](Self::save) and [`load`](Self::load).
///
/// ```
/// use resemblance_sketch::{DocumentFrequencies, Schema, SimHash, Text};
/// let schema = Schema::builder().text(Text::words(1)).simhash(SimHash::bits64()).build()?;
/// let sketcher = schema.sketcher();
/// let corpus = ["the cat", "the dog", "the bird and the bee"];
/// let mut frequencies = DocumentFrequencies::new();
/// for text in corpus {
///     frequencies.add_text(&sketcher, text)?;
/// }
/// assert_eq!(frequencies.documents(), 3);
/// let the = frequencies.weight_of(b"the");
/// assert_eq!(the, 1.0);
/// assert!(frequencies.weight_of(b"cat") > 1.6);
/// let signature = sketcher.weighted_text("the cat and the dog", &frequencies)?;
/// # let _ = signature;
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Default)]
pub struct DocumentFrequencies {
    documents: u64,
    /// Numbers of documents, by the hashes of the features.
    counts: HashMap<u64, u64>,
    /// [`Self::fingerprint`], once it has been computed.
    fingerprint: OnceLock<u64>,
}

impl fmt::Debug for DocumentFrequencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentFrequencies")
            .field("documents", &self.documents)
            .field("features", &self.counts.len())
            .finish_non_exhaustive()
    }
}

impl PartialEq for DocumentFrequencies {
    fn eq(&self, other: &Self) -> bool {
        self.documents == other.documents && self.counts == other.counts
    }
}

impl Eq for DocumentFrequencies {}

/// The first bytes of saved frequencies.
const MAGIC: [u8; 8] = *b"RESEMBW\x1a";

impl DocumentFrequencies {
    /// Creates the frequencies of an empty corpus.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates frequencies that another program counted: the number of documents, and for each
    /// feature its hash and the number of documents that contain it. The hash is XXH3-64 of the
    /// feature's bytes, as for [`Sketcher::hashes`](crate::Sketcher::hashes).
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] if a feature is in more documents than there are.
    ///
    /// ```
    /// use resemblance_sketch::DocumentFrequencies;
    /// assert!(DocumentFrequencies::from_counts(10, [(7, 10), (8, 1)]).is_ok());
    /// assert!(DocumentFrequencies::from_counts(10, [(7, 11)]).is_err());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn from_counts(
        documents: u64,
        counts: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Self> {
        let counts: HashMap<u64, u64> = counts.into_iter().collect();
        let most = counts.values().copied().max().unwrap_or(documents);
        let expected = format_args!("at most {documents}, the number of documents");
        SketchError::require(most <= documents, "document frequency", most, expected)?;
        Ok(Self {
            documents,
            counts,
            fingerprint: OnceLock::new(),
        })
    }

    /// Writes the frequencies, 16 bytes for each feature. Equal frequencies give equal bytes.
    ///
    /// # Errors
    ///
    /// [`SketchError::Io`] if the writer fails.
    ///
    /// ```
    /// use resemblance_sketch::DocumentFrequencies;
    /// let frequencies = DocumentFrequencies::from_counts(10, [(7, 10), (8, 1)])?;
    /// let mut file = Vec::new();
    /// frequencies.save(&mut file)?;
    /// assert_eq!(DocumentFrequencies::load(file.as_slice())?, frequencies);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn save(&self, mut writer: impl Write) -> Result<()> {
        let mut bytes = self.bytes();
        bytes.extend(self.fingerprint().to_le_bytes());
        let written = writer.write_all(&bytes).and_then(|()| writer.flush());
        written.map_err(|source| SketchError::io("writing document frequencies", source))
    }

    /// Reads saved frequencies and nothing after them. Memory grows with the bytes that are read, not
    /// with the counts that they claim.
    ///
    /// # Errors
    ///
    /// [`SketchError::Io`] if the reader fails; [`SketchError::Corrupt`] if the bytes are truncated
    /// or changed.
    ///
    /// ```
    /// # use resemblance_sketch::DocumentFrequencies;
    /// let frequencies = DocumentFrequencies::from_counts(10, [(7, 10), (8, 1)])?;
    /// let mut saved = Vec::new();
    /// frequencies.save(&mut saved)?;
    /// saved.pop();
    /// assert!(DocumentFrequencies::load(saved.as_slice()).is_err());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn load(mut reader: impl Read) -> Result<Self> {
        let from = &mut reader;
        if read_bytes(from)? != MAGIC {
            return Err(damaged("its first bytes are not the expected ones"));
        }
        let (documents, features) = (read_number(from)?, read_number(from)?);
        let mut pairs = Vec::new();
        for _ in 0..features {
            pairs.push((read_number(from)?, read_number(from)?));
        }
        let found = Self::from_pairs(documents, pairs)?;
        match read_number(from)? == found.fingerprint() {
            true => Ok(found),
            false => Err(damaged("its checksum is not the expected one")),
        }
    }

    /// Creates frequencies from pairs that were written in ascending order.
    ///
    /// # Errors
    /// [`SketchError::Corrupt`] if they are in another order, or a count is above the number of documents.
    pub fn from_pairs(documents: u64, pairs: Vec<(u64, u64)>) -> Result<Self> {
        if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(damaged("its features are not in ascending order"));
        }
        let frequencies = Self::from_counts(documents, pairs);
        frequencies.map_err(|error| damaged(&error.to_string()))
    }

    /// Returns the hash of each feature and the number of documents that contain it, ascending by
    /// hash.
    ///
    /// ```
    /// use resemblance_sketch::DocumentFrequencies;
    /// let frequencies = DocumentFrequencies::from_counts(10, [(8, 1), (7, 10)])?;
    /// assert_eq!(frequencies.iter().collect::<Vec<_>>(), [(7, 10), (8, 1)]);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + use<> {
        let counts = self.counts.iter();
        let mut pairs: Vec<(u64, u64)> = counts.map(|(hash, count)| (*hash, *count)).collect();
        pairs.sort_unstable();
        pairs.into_iter()
    }

    /// Returns a hash of all frequencies. Frozen.
    pub(crate) fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| xxh3_64(&self.bytes()))
    }

    /// Returns the saved bytes without the checksum, which is the fingerprint.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.documents.to_le_bytes());
        bytes.extend((self.counts.len() as u64).to_le_bytes());
        for (hash, count) in self.iter() {
            bytes.extend(hash.to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
        bytes
    }

    /// Counts a document, given by the hashes of its features. Repeated features count once.
    ///
    /// ```
    /// # use resemblance_sketch::DocumentFrequencies;
    /// let mut frequencies = DocumentFrequencies::new();
    /// frequencies.add([1, 2, 2]);
    /// frequencies.add([2, 3]);
    /// assert_eq!((frequencies.documents(), frequencies.count(2)), (2, 2));
    /// ```
    pub fn add(&mut self, hashes: impl IntoIterator<Item = u64>) {
        let mut distinct: Vec<u64> = hashes.into_iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        for hash in distinct {
            *self.counts.entry(hash).or_default() += 1;
        }
        self.documents += 1;
        self.fingerprint = OnceLock::new();
    }

    /// The number of documents counted so far.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// The number of documents that have the feature with this hash.
    ///
    /// ```
    /// # use resemblance_sketch::DocumentFrequencies;
    /// let frequencies = DocumentFrequencies::from_counts(10, [(7, 10), (8, 1)])?;
    /// assert_eq!([7, 8, 9].map(|hash| frequencies.count(hash)), [10, 1, 0]);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn count(&self, hash: u64) -> u64 {
        self.counts.get(&hash).map_or(0, |count| *count)
    }

    /// Returns the weight of one occurrence of the feature with this hash, at least 1.
    ///
    /// ```
    /// # use resemblance_sketch::DocumentFrequencies;
    /// let frequencies = DocumentFrequencies::from_counts(10, [(7, 10), (8, 1)])?;
    /// assert_eq!(frequencies.weight(7), 1.0); // all documents have it
    /// assert!(frequencies.weight(8) < frequencies.weight(9)); // none has this one
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    #[must_use]
    pub fn weight(&self, hash: u64) -> f64 {
        // At most 1, because no feature is in more documents than there are.
        let share = (1.0 + self.count(hash) as f64) / (1.0 + self.documents as f64);
        negative_ln(share) + 1.0
    }

    /// Returns the [`weight`](Self::weight) of a feature, given by its bytes.
    #[must_use]
    pub fn weight_of(&self, feature: &[u8]) -> f64 {
        self.weight(feature_hash(feature))
    }
}

fn read_bytes(reader: &mut impl Read) -> Result<[u8; 8]> {
    let mut bytes = [0; 8];
    match reader.read_exact(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(damaged("it is truncated")),
        Err(source) => Err(SketchError::io("reading document frequencies", source)),
    }
}

fn read_number(reader: &mut impl Read) -> Result<u64> {
    read_bytes(reader).map(u64::from_le_bytes)
}

fn damaged(detail: &str) -> SketchError {
    SketchError::corrupt("document frequencies", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_frequencies_are_read_back_and_damage_is_found() {
        let counts =
            (0..50).map(|number: u64| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15), number));
        let frequencies = DocumentFrequencies::from_counts(60, counts).unwrap();
        let mut file = Vec::new();
        frequencies.save(&mut file).unwrap();
        assert_eq!(file.len(), 8 + 16 + 50 * 16 + 8);
        assert_eq!(
            DocumentFrequencies::load(file.as_slice()).unwrap(),
            frequencies
        );
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(
                DocumentFrequencies::load(damaged.as_slice()).is_err(),
                "byte {at}"
            );
            assert!(
                DocumentFrequencies::load(&file[..at]).is_err(),
                "cut at {at}"
            );
        }
    }

    #[test]
    fn counting_changes_the_fingerprint() {
        let mut frequencies = DocumentFrequencies::new();
        frequencies.add([1, 2]);
        let before = frequencies.fingerprint();
        frequencies.add([2, 3]);
        assert_ne!(frequencies.fingerprint(), before);
        let same = DocumentFrequencies::from_counts(2, [(3, 1), (2, 2), (1, 1)]).unwrap();
        assert_eq!(frequencies.fingerprint(), same.fingerprint());
        assert_eq!(frequencies, same);
    }
}
