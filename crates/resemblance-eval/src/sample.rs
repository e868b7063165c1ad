//! A random sample of documents, as features and signatures in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use resemblance::invariant::OrBug;
use resemblance::{DocumentId, Error, Result, Signature};
use resemblance_corpus::verification::FEATURE_BYTES;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seed of the hash that selects the sample, so that it is independent of all other hashes: the
/// bytes "sample" as a big-endian number.
const SAMPLE_SEED: u64 = 0x7361_6d70_6c65;

/// The approximate memory of a document besides its features, key and signature, in bytes.
const DOCUMENT_BYTES: u64 = 300;

/// A sample of documents in the order of their numbers. A [`Sampler`] makes it.
///
/// ```
/// use resemblance_eval::Sampler;
///
/// let mut sampler = Sampler::new();
/// sampler.add(0, b"a".into(), vec![1, 3, 5, 7], None)?;
/// let sample = sampler.finish(1);
/// assert_eq!((sample.len(), sample.is_empty(), sample.read), (1, false, 1));
/// assert_eq!(sample.features[0].len(), 4);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct DocumentSample {
    /// The key of each document.
    pub keys: Vec<Vec<u8>>,
    /// The distinct hashes of each document's features, ascending.
    pub features: Vec<Vec<u64>>,
    /// The signatures of the documents, if they were added with signatures.
    pub signatures: Vec<Signature>,
    /// The number of documents that were read, including those outside the sample.
    pub read: u64,
}

impl DocumentSample {
    /// Returns the number of documents in the sample.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if it has no documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

/// Draws a random sample from documents that are added one by one. If there are more than
/// [`max_documents`](Self::max_documents), the documents whose keys have the lowest hashes are
/// kept. The sample is the same each time, and independent of the order of the documents.
///
/// ```
/// use resemblance_eval::Sampler;
/// use resemblance::{MinHash, Schema, Text};
///
/// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
/// let sketcher = schema.sketcher();
/// let mut sampler = Sampler::new().max_documents(10).memory_bytes(1 << 30);
/// assert!(sampler.is_empty());
/// let may_be_kept = sampler.key_filter(); // for use in any thread
/// for number in 0..1_000 {
///     let (key, text) = (format!("page/{number}").into_bytes(), "the text of the page");
///     if may_be_kept(&key) {
///         let (features, signature) = (sketcher.feature_hashes(text)?, sketcher.text(text)?);
///         sampler.add(number, key, features, signature)?;
///     }
/// }
/// assert_eq!(sampler.finish(1_000).len(), 10);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Debug)]
pub struct Sampler {
    max_documents: usize,
    signature_bytes: u64,
    memory_bytes: u64,
    /// Keys with higher hashes are not in the sample. The value only falls.
    max_hash: Arc<AtomicU64>,
    /// The documents in the sample, by the hash of the key, then by number.
    held: BTreeMap<(u64, u64), HeldDocument>,
    held_bytes: u64,
}

#[derive(Debug)]
struct HeldDocument {
    key: Vec<u8>,
    features: Vec<u64>,
    signature: Option<Signature>,
}

/// Returns the hash that decides whether a key is in a sample.
fn hash_of(key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, SAMPLE_SEED)
}

impl Default for Sampler {
    fn default() -> Self {
        Self::new()
    }
}

impl Sampler {
    /// Creates a sampler without documents and without limits.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_documents: usize::MAX,
            signature_bytes: 0,
            memory_bytes: u64::MAX,
            max_hash: Arc::new(AtomicU64::new(u64::MAX)),
            held: BTreeMap::new(),
            held_bytes: 0,
        }
    }

    /// Sets the maximum number of documents. There is no limit by default.
    #[must_use]
    pub fn max_documents(mut self, documents: usize) -> Self {
        self.max_documents = documents;
        self
    }

    /// Sets the memory for the sample in bytes, including what an exact join of it takes. There is
    /// no limit by default.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Sets the memory that each document will take for signatures, in bytes. The default is 0.
    ///
    /// ```
    /// use resemblance_eval::Sampler;
    ///
    /// let mut sampler = Sampler::new().memory_bytes(5_000).signature_bytes(4_096);
    /// sampler.add(0, b"a".into(), vec![1, 2, 3], None)?;
    /// assert!(sampler.add(1, b"b".into(), vec![1, 2, 3], None).is_err());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn signature_bytes(mut self, bytes: u64) -> Self {
        self.signature_bytes = bytes;
        self
    }

    /// Returns a rule that decides whether a document may still enter the sample, given its key.
    /// Clone it for each thread. It only saves work: [`add`](Self::add) makes the decision.
    ///
    /// ```
    /// use resemblance_eval::Sampler;
    ///
    /// let mut sampler = Sampler::new().max_documents(1);
    /// let may_be_kept = sampler.key_filter();
    /// let takes_all = || (0..=255).all(|byte| may_be_kept(&[byte]));
    /// assert!(takes_all());
    /// sampler.add(0, b"a".into(), vec![1, 2, 3], None)?;
    /// sampler.add(1, b"b".into(), vec![4, 5, 6], None)?;
    /// assert!(!takes_all());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn key_filter(&self) -> impl Fn(&[u8]) -> bool + Clone + Send + Sync + use<> {
        let max_hash = Arc::clone(&self.max_hash);
        move |key: &[u8]| hash_of(key) <= max_hash.load(Ordering::Relaxed)
    }

    /// Returns the current number of documents in the sample.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns true if no document is in the sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Adds a document. `number` determines its position in the sample. `features` are the hashes
    /// of its features, ascending and distinct, as
    /// [`Sketcher::feature_hashes`](resemblance::Sketcher::feature_hashes) returns them. Pass a
    /// signature if the sample should have signatures.
    ///
    /// # Errors
    ///
    /// [`Error::KeyTwice`] if the sample contains a document with this key; the sample does not
    /// change. [`Error::InvalidParameter`] with the parameter `memory_bytes` if the sample now
    /// exceeds its memory; the document has been added.
    ///
    /// ```
    /// # use resemblance::Error;
    /// # use resemblance_eval::Sampler;
    /// let mut sampler = Sampler::new();
    /// sampler.add(0, b"a".into(), vec![1, 2, 3], None)?;
    /// let again = sampler.add(1, b"a".into(), vec![1, 2, 3], None);
    /// assert!(matches!(again, Err(Error::KeyTwice { .. })));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn add(
        &mut self,
        number: u64,
        key: Vec<u8>,
        mut features: Vec<u64>,
        signature: impl Into<Option<Signature>>,
    ) -> Result<()> {
        let hash = hash_of(&key);
        features.shrink_to_fit();
        let mut same_hash = self.held.range((hash, 0)..=(hash, u64::MAX));
        if let Some(((_, first), _)) = same_hash.find(|(_, other)| other.key == key) {
            let (first, second) = (DocumentId::new(*first), DocumentId::new(number));
            return Err(Error::KeyTwice { key, first, second });
        }
        let document = HeldDocument {
            key,
            features,
            signature: signature.into(),
        };
        self.held_bytes += self.document_bytes(&document);
        self.held.insert((hash, number), document);
        if self.held.len() > self.max_documents {
            let last = self.held.pop_last();
            let ((highest, _), left_out) = last.or_bug("a sample that is too large is empty")?;
            self.held_bytes -= self.document_bytes(&left_out);
            self.max_hash.fetch_min(highest, Ordering::Relaxed);
        }
        if self.held_bytes > self.memory_bytes {
            let expected = format!("{} or more for this sample", self.held_bytes);
            return Err(Error::invalid("memory_bytes", self.memory_bytes, expected));
        }
        Ok(())
    }

    fn document_bytes(&self, document: &HeldDocument) -> u64 {
        let features = FEATURE_BYTES * document.features.len() as u64;
        let key = document.key.len() as u64;
        features + key + DOCUMENT_BYTES + self.signature_bytes
    }

    /// Returns the sample in the order of the documents' numbers. `read` is the number of documents
    /// from which it was drawn.
    #[must_use]
    pub fn finish(self, read: u64) -> DocumentSample {
        let mut held: Vec<(u64, HeldDocument)> = self
            .held
            .into_iter()
            .map(|((_, number), document)| (number, document))
            .collect();
        held.sort_unstable_by_key(|(number, _)| *number);
        let mut sample = DocumentSample {
            keys: Vec::with_capacity(held.len()),
            features: Vec::with_capacity(held.len()),
            signatures: Vec::with_capacity(held.len()),
            read,
        };
        for (_, document) in held {
            sample.keys.push(document.key);
            sample.features.push(document.features);
            sample.signatures.extend(document.signature);
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(numbers: impl Iterator<Item = u64>, max_documents: usize) -> DocumentSample {
        let mut sampler = Sampler::new().max_documents(max_documents);
        let may_be_kept = sampler.key_filter();
        for number in numbers {
            let key = format!("key {number}").into_bytes();
            if may_be_kept(&key) {
                sampler.add(number, key, vec![1, 2, number], None).unwrap();
            }
        }
        sampler.finish(100)
    }

    #[test]
    fn a_sample_does_not_depend_on_the_order() {
        let forward = sampled(0..100, 10);
        let backward = sampled((0..100).rev(), 10);
        assert_eq!((forward.len(), forward.read), (10, 100));
        assert_eq!(forward.keys, backward.keys);
        assert_eq!(forward.features, backward.features);
        assert_eq!(sampled(0..100, usize::MAX).len(), 100);
    }

    #[test]
    fn repeated_keys_and_excess_memory_are_reported() {
        let mut sampler = Sampler::new().memory_bytes(DOCUMENT_BYTES);
        let mut add = |number| sampler.add(number, b"k".to_vec(), vec![1, 2, 3], None);
        match add(0).unwrap_err() {
            Error::InvalidParameter { parameter, .. } => assert_eq!(parameter, "memory_bytes"),
            other => panic!("{other}"),
        }
        match add(1).unwrap_err() {
            Error::KeyTwice { key, first, second } => {
                assert_eq!((&key[..], first.get(), second.get()), (&b"k"[..], 0, 1));
            }
            other => panic!("{other}"),
        }
    }
}
