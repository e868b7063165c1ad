//! A random sample of documents, as features and signatures in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::corpus::verification::FEATURE_BYTES;
use crate::error::{Error, Result};
use crate::id::DocumentId;
use crate::invariant::bug;
use crate::schema::{Schema, SimHash};
use crate::sketch::{Signature, Sketcher, is_present};
use crate::text::Text;

/// Seeds the hash that decides who is in a sample, so that it has nothing to do with any other:
/// the bytes "sample" as a big-endian number.
const SAMPLE_SEED: u64 = 0x7361_6d70_6c65;

/// Memory that a document takes beside its features, key and signature, about, in bytes.
const DOCUMENT_BYTES: u64 = 300;

/// A sample of documents in the order of their numbers, made by a [`Sampler`].
///
/// ```
/// use resemblance::eval::Sampler;
/// # use resemblance::Text;
///
/// let mut sampler = Sampler::new(Text::words(1), None)?;
/// let sketch = sampler.sketcher().sketch(b"a", "to be or not to be")?;
/// sampler.add(0, b"a".into(), sketch.expect("all keys may be in the sample"))?;
/// let sample = sampler.finish(1);
/// assert_eq!((sample.len(), sample.is_empty(), sample.read), (1, false, 1));
/// assert_eq!(sample.features[0].len(), 4); // be, not, or, to
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct DocumentSample {
    /// The key of each document.
    pub keys: Vec<Vec<u8>>,
    /// Distinct hashes of each document's features, ascending.
    pub features: Vec<Vec<u64>>,
    /// The signature of each document; empty without a sketcher.
    pub signatures: Vec<Signature>,
    /// Number of documents that were read, those outside the sample included.
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

/// Takes documents one by one. Of more than [`max_documents`](Self::max_documents) those are kept whose
/// keys hash lowest: a random sample, the same each time and whatever the order of the documents.
///
/// ```
/// use resemblance::Text;
/// use resemblance::eval::Sampler;
///
/// let mut sampler = Sampler::new(Text::words(2), None)?.max_documents(10).memory_bytes(1 << 30);
/// assert!(sampler.is_empty());
/// let sketcher = sampler.sketcher(); // for use in any thread
/// for number in 0..1_000 {
///     let key = format!("page/{number}").into_bytes();
///     if let Some(sketch) = sketcher.sketch(&key, "the text of the page")? {
///         sampler.add(number, key, sketch)?;
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
    sketcher: SampleSketcher,
    /// The held documents, by the hash of the key, then by the number of the document.
    held: BTreeMap<(u64, u64), HeldDocument>,
    held_bytes: u64,
}

/// Sketches those documents whose keys may be in the sample of a [`Sampler`], in any thread.
///
/// ```
/// use resemblance::eval::Sampler;
/// # use resemblance::Text;
///
/// let mut sampler = Sampler::new(Text::words(1), None)?;
/// let sketcher = sampler.sketcher();
/// let thread = std::thread::spawn(move || sketcher.sketch(b"a", "some text or other"));
/// if let Some(sketch) = thread.join().unwrap()? {
///     sampler.add(0, b"a".into(), sketch)?;
/// }
/// assert_eq!(sampler.len(), 1);
///
/// // Documents that are no texts.
/// let sketcher = sampler.sketcher();
/// assert!(sketcher.sketch_hashes(b"b", &[3, 1, 2])?.is_some());
/// assert!(sketcher.sketch_weighted_hashes(b"c", &[(3, 0.5), (1, 2.0)])?.is_some());
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SampleSketcher {
    /// Cuts texts into features, if there is a rule for texts.
    cutter: Option<Sketcher>,
    sketcher: Option<Sketcher>,
    /// Keys that hash higher are not in the sample. It only falls.
    max_hash: Arc<AtomicU64>,
}

/// The features and signature of a text, for [`Sampler::add`].
///
/// ```
/// use resemblance::eval::{SampleSketch, Sampler};
/// # use resemblance::Text;
///
/// let mut sampler = Sampler::new(Text::words(1), None)?;
/// let sketch: Option<SampleSketch> = sampler.sketcher().sketch(b"a", "some text or other")?;
/// sampler.add(0, b"a".into(), sketch.expect("all keys may be in the sample"))?;
/// assert_eq!(sampler.len(), 1);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Debug)]
pub struct SampleSketch {
    /// The hash of its key.
    hash: u64,
    features: Vec<u64>,
    signature: Option<Signature>,
}

#[derive(Debug)]
struct HeldDocument {
    key: Vec<u8>,
    features: Vec<u64>,
    signature: Option<Signature>,
}

impl SampleSketcher {
    /// Returns the sketch of a document; `None` if it cannot be in the sample.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Sketcher::text`]; [`Error::InvalidParameter`] if there is no rule for texts.
    pub fn sketch(&self, key: &[u8], text: &str) -> Result<Option<SampleSketch>> {
        let cutter = self.cutter.as_ref().ok_or_else(|| {
            Error::invalid(
                "text",
                "a text",
                "features, as the sample has no rule for texts",
            )
        })?;
        self.sketch_by(
            key,
            || cutter.feature_hashes(text),
            |sketcher| sketcher.text(text),
        )
    }

    /// Returns the sketch of a document that is given by the hashes of its features; `None` if it cannot be
    /// in the sample.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Sketcher::hashes`].
    pub fn sketch_hashes(&self, key: &[u8], hashes: &[u64]) -> Result<Option<SampleSketch>> {
        self.sketch_by(
            key,
            || Ok(sorted_distinct(hashes.to_vec())),
            |sketcher| sketcher.hashes(hashes.iter().copied()),
        )
    }

    /// Does the same for weighted features, of which those are compared exactly that weigh anything.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Sketcher::weighted_hashes`].
    pub fn sketch_weighted_hashes(
        &self,
        key: &[u8],
        weights: &[(u64, f64)],
    ) -> Result<Option<SampleSketch>> {
        let present = weights.iter().filter(|(_, weight)| is_present(*weight));
        self.sketch_by(
            key,
            || Ok(sorted_distinct(present.map(|(hash, _)| *hash).collect())),
            |sketcher| sketcher.weighted_hashes(weights.iter().copied()),
        )
    }

    fn sketch_by(
        &self,
        key: &[u8],
        features: impl FnOnce() -> Result<Vec<u64>>,
        signature: impl FnOnce(&Sketcher) -> Result<Signature>,
    ) -> Result<Option<SampleSketch>> {
        let hash = xxh3_64_with_seed(key, SAMPLE_SEED);
        // This only spares work: the sampler decides who is in the sample.
        if hash > self.max_hash.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut features = features()?;
        features.shrink_to_fit();
        let signature = self.sketcher.as_ref().map(signature);
        Ok(Some(SampleSketch {
            hash,
            features,
            signature: signature.transpose()?,
        }))
    }
}

fn sorted_distinct(mut hashes: Vec<u64>) -> Vec<u64> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

impl Sampler {
    /// Makes a sampler that cuts texts by `text`, if there is such a rule, and makes signatures with
    /// `sketcher`, if there is one.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`SchemaBuilder::build`](crate::SchemaBuilder::build) for `text`.
    pub fn new(text: impl Into<Option<Text>>, sketcher: Option<Sketcher>) -> Result<Self> {
        // A schema needs signatures, although this one makes none.
        let cutter = |text| {
            Schema::builder()
                .text(text)
                .simhash(SimHash::bits64())
                .build()
        };
        let cutter = text.into().map(cutter).transpose()?;
        Ok(Self {
            max_documents: usize::MAX,
            signature_bytes: 0,
            memory_bytes: u64::MAX,
            sketcher: SampleSketcher {
                cutter: cutter.map(|schema| schema.sketcher()),
                sketcher,
                max_hash: Arc::new(AtomicU64::new(u64::MAX)),
            },
            held: BTreeMap::new(),
            held_bytes: 0,
        })
    }

    /// Maximum number of documents; all by default.
    #[must_use]
    pub fn max_documents(mut self, documents: usize) -> Self {
        self.max_documents = documents;
        self
    }

    /// Memory for the sample, what an exact join of it takes included, in bytes; unlimited by default.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Memory that each document is going to take for its signatures, in bytes; 0 by default.
    ///
    /// ```
    /// use resemblance::Text;
    /// use resemblance::eval::Sampler;
    ///
    /// let sampler = Sampler::new(Text::words(2), None)?;
    /// let mut sampler = sampler.memory_bytes(5_000).signature_bytes(4_096);
    /// let sketcher = sampler.sketcher();
    /// let sketch = |key: &str| sketcher.sketch(key.as_bytes(), "the text of the page");
    /// sampler.add(0, b"a".into(), sketch("a")?.unwrap())?;
    /// assert!(sampler.add(1, b"b".into(), sketch("b")?.unwrap()).is_err());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn signature_bytes(mut self, bytes: u64) -> Self {
        self.signature_bytes = bytes;
        self
    }

    /// Returns a sketcher of documents for this sample, to be cloned for each thread.
    #[must_use]
    pub fn sketcher(&self) -> SampleSketcher {
        self.sketcher.clone()
    }

    /// Returns the number of documents in the sample now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns true if no document is in the sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Takes a document with its number, which orders the sample.
    ///
    /// # Errors
    ///
    /// [`Error::KeyTwice`] if a document of the sample has the key: the sample is as it was. The document
    /// is taken, but the sample has become larger than it may be, if it is
    /// [`Error::InvalidParameter`] with the parameter `memory_bytes`.
    ///
    /// ```
    /// # use resemblance::eval::Sampler;
    /// # use resemblance::{Error, Text};
    /// let mut sampler = Sampler::new(Text::words(1), None)?;
    /// let sketcher = sampler.sketcher();
    /// let sketch = |key: &[u8]| sketcher.sketch(key, "some text or other");
    /// sampler.add(0, b"a".into(), sketch(b"a")?.unwrap())?;
    /// let again = sampler.add(1, b"a".into(), sketch(b"a")?.unwrap());
    /// assert!(matches!(again, Err(Error::KeyTwice { .. })));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn add(&mut self, number: u64, key: Vec<u8>, sketch: SampleSketch) -> Result<()> {
        let hash = sketch.hash;
        let mut same_hash = self.held.range((hash, 0)..=(hash, u64::MAX));
        if let Some(((_, first), _)) = same_hash.find(|(_, other)| other.key == key) {
            let (first, second) = (DocumentId::new(*first), DocumentId::new(number));
            return Err(Error::KeyTwice { key, first, second });
        }
        let document = HeldDocument {
            key,
            features: sketch.features,
            signature: sketch.signature,
        };
        self.held_bytes += self.document_bytes(&document);
        self.held.insert((hash, number), document);
        if self.held.len() > self.max_documents {
            let left_out = self.held.pop_last();
            let Some(((highest, _), left_out)) = left_out else {
                return Err(bug("a sample that is too large is empty"));
            };
            self.held_bytes -= self.document_bytes(&left_out);
            self.sketcher.max_hash.fetch_min(highest, Ordering::Relaxed);
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

    /// Returns the sample, in the order of the documents' numbers, of the `read` documents that
    /// there are.
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
        let sampler = Sampler::new(Text::words(2), None).unwrap();
        let mut sampler = sampler.max_documents(max_documents);
        let sketcher = sampler.sketcher();
        for number in numbers {
            let key = format!("key {number}").into_bytes();
            let text = format!("a few words and {number}");
            if let Some(sketch) = sketcher.sketch(&key, &text).unwrap() {
                sampler.add(number, key, sketch).unwrap();
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
    fn repeated_keys_and_too_much_memory_are_told() {
        let sampler = Sampler::new(Text::words(2), None).unwrap();
        let mut sampler = sampler.memory_bytes(DOCUMENT_BYTES);
        let mut add = |number| sampler.add(number, b"k".to_vec(), sampler_sketch(b"k"));
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

    fn sampler_sketch(key: &[u8]) -> SampleSketch {
        SampleSketch {
            hash: xxh3_64_with_seed(key, SAMPLE_SEED),
            features: vec![1, 2, 3],
            signature: None,
        }
    }
}
