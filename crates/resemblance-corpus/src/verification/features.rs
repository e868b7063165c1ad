//! Stores the features of texts, for exact similarities.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use resemblance::exact::{jaccard_from, jaccard_of_sorted, shared_from};
use resemblance::invariant::OrBug;
use resemblance::{DocumentId, Error, Match, Result};

use crate::dedup::{ComparedCandidate, FeatureShares};

/// The default memory for features.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 20;

/// The number of bytes that are buffered before they are written.
const BUFFER_BYTES: usize = 1 << 18;

const NUMBER_BYTES: usize = size_of::<u64>();

/// The maximum number of missing ids between two successive documents.
const MAX_GAP: u64 = 1 << 10;

/// The memory of a document besides its features: their position, the counts, and the allocation
/// that is shared.
const DOCUMENT_BYTES: u64 = 48;

/// Stores the distinct feature hashes of documents, 8 bytes each: in memory up to a limit, and then
/// in a temporary file. A document takes 48 more bytes of memory, or 24 if its features are in the
/// file. On systems that allow it, the file has no name. It is removed when this value is dropped.
///
/// ```
/// use resemblance_corpus::verification::FeatureSets;
/// use resemblance::{Document, MinHash, Schema, Store, Text};
///
/// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
/// let store = Store::in_memory(schema)?;
/// let mut features = FeatureSets::new(std::env::temp_dir()).memory_bytes(1 << 30);
/// for text in ["a b c d e f g h i j", "b c d e f g h i j k"] {
///     let id = store.insert(Document::without_key(), &store.sketch_text(text)?)?;
///     features.put(id, store.sketcher().feature_hashes(text)?)?;
/// }
/// features.flush()?;
///
/// let similarity = move |a, b| features.similarity(a, b);
/// let pairs = store.snapshot()?.pairs().verify(similarity).run()?;
/// for pair in pairs {
///     assert_eq!(pair?.similarity, Some(9.0 / 11.0));
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
pub struct FeatureSets {
    temp_dir: PathBuf,
    /// The maximum number of bytes in memory, and the current number.
    memory_bytes: u64,
    held_bytes: u64,
    /// The file. It receives the hashes of documents that did not fit into memory.
    file: Option<NumberFile>,
    /// The places of the hashes of documents whose ids were greater than all before, from the first
    /// such id. `None` for ids in between.
    places: Vec<Option<FeaturePlace>>,
    first: u64,
    /// The places of the hashes of all other documents.
    scattered: HashMap<u64, FeaturePlace>,
}

/// The numbers of features of two documents, and of those that they share.
#[derive(Clone, Copy)]
pub(crate) struct SetOverlap {
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) shared: usize,
}

impl From<SetOverlap> for FeatureShares {
    fn from(overlap: SetOverlap) -> Self {
        Self::new(overlap.a, overlap.b, overlap.shared)
    }
}

impl SetOverlap {
    /// Returns the evidence of the comparison of a document with a candidate.
    pub(crate) fn compared(self, document: u64, candidate: DocumentId) -> ComparedCandidate {
        ComparedCandidate {
            document,
            candidate,
            similarity: self.similarity(),
            shares: self.into(),
        }
    }

    /// Compares two sets of hashes.
    pub(crate) fn of(a: &[u64], b: &[u64]) -> Self {
        Self {
            a: a.len(),
            b: b.len(),
            shared: shared_from(0, a, b),
        }
    }

    /// Returns the Jaccard similarity, 1 for empty sets.
    pub(crate) fn similarity(self) -> f64 {
        match self.a + self.b - self.shared {
            0 => 1.0,
            union => self.shared as f64 / union as f64,
        }
    }
}

/// The place of a document's hashes.
enum FeaturePlace {
    Memory(Arc<[u64]>),
    /// Indices into the numbers of the file.
    File(Range<u64>),
}

impl FeatureSets {
    /// Creates an empty value. `temp_dir` is the folder for the temporary file. Features may take
    /// 64 MiB of memory.
    #[must_use]
    pub fn new(temp_dir: impl Into<PathBuf>) -> Self {
        let given = temp_dir.into();
        Self {
            // The program may change its folder before a file is needed. If the current folder is
            // unknown, creating that file fails.
            temp_dir: std::path::absolute(&given).unwrap_or(given),
            memory_bytes: DEFAULT_MEMORY_BYTES,
            held_bytes: 0,
            file: None,
            places: Vec::new(),
            first: 0,
            scattered: HashMap::new(),
        }
    }

    /// Sets the memory that features may take, in bytes, before further ones are written to a file.
    /// Features in memory remain there.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Keeps the feature hashes of a document, sorted and distinct; an [`Arc`] of them is shared,
    /// and not copied. Ids should ascend without large gaps: an id that is smaller than an earlier
    /// one, or much greater, takes 40 more bytes of memory.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] with the parameter `id` if the features of this document are
    /// already stored; [`Error::Io`] if the folder does not accept a file, or the file cannot grow.
    pub fn put(&mut self, id: DocumentId, hashes: impl Into<Arc<[u64]>>) -> Result<()> {
        if self.place(id).is_some() {
            return Err(Error::invalid("id", id, "an id without features here"));
        }
        let place = self.keep(hashes.into())?;
        if self.places.is_empty() {
            self.first = id.get();
        }
        let next_id = self.first + self.places.len() as u64;
        match id.get().checked_sub(next_id) {
            Some(gap @ 0..=MAX_GAP) => {
                self.places.extend((0..gap).map(|_| None));
                self.places.push(Some(place));
            }
            _ => {
                self.scattered.insert(id.get(), place);
            }
        }
        Ok(())
    }

    fn keep(&mut self, hashes: Arc<[u64]>) -> Result<FeaturePlace> {
        let bytes = DOCUMENT_BYTES + size_of_val(&*hashes) as u64;
        if self.held_bytes + bytes <= self.memory_bytes {
            self.held_bytes += bytes;
            return Ok(FeaturePlace::Memory(hashes));
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(NumberFile::create(&self.temp_dir)?),
        };
        let start = file.count;
        let written = file.push(&hashes);
        written.map_err(|e| failure(&self.temp_dir, e))?;
        Ok(FeaturePlace::File(start..file.count))
    }

    /// Forgets the features of a document. Their memory is free again; in the file they stay.
    pub(crate) fn forget(&mut self, id: DocumentId) {
        let index = id.get().checked_sub(self.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let place = match index.and_then(|index| self.places.get_mut(index)) {
            Some(place) => place.take(),
            None => self.scattered.remove(&id.get()),
        };
        if let Some(FeaturePlace::Memory(hashes)) = place {
            self.held_bytes -= DOCUMENT_BYTES + size_of_val(&*hashes) as u64;
        }
    }

    /// Returns true if the features of a document are stored.
    ///
    /// ```
    /// use resemblance_corpus::verification::FeatureSets;
    /// # use resemblance::DocumentId;
    ///
    /// let mut features = FeatureSets::new(std::env::temp_dir());
    /// let id = DocumentId::new(7);
    /// features.put(id, [1, 2, 3])?;
    /// assert!(features.has(id) && !features.has(DocumentId::new(8)));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn has(&self, id: DocumentId) -> bool {
        self.place(id).is_some()
    }

    /// Makes the features that were stored so far readable.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot grow.
    pub fn flush(&mut self) -> Result<()> {
        let flushed = self.file.as_mut().map_or(Ok(()), NumberFile::flush);
        flushed.map_err(|e| failure(&self.temp_dir, e))
    }

    /// Returns the size of the file in bytes, or 0 while all features are in memory.
    ///
    /// ```
    /// use resemblance_corpus::verification::FeatureSets;
    /// # use resemblance::DocumentId;
    ///
    /// let mut features = FeatureSets::new(std::env::temp_dir()).memory_bytes(0);
    /// features.put(DocumentId::new(0), [1, 2, 3])?;
    /// features.flush()?;
    /// assert_eq!(features.file_bytes(), 3 * 8);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        let count = self.file.as_ref().map_or(0, |file| file.count);
        count * NUMBER_BYTES as u64
    }

    /// Returns the exact Jaccard similarity of two documents, from 0 to 1, or `None` if the
    /// features of one are not stored.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be read.
    pub fn similarity(&self, a: DocumentId, b: DocumentId) -> Result<Option<f64>> {
        self.similarity_from(0.0, a, b)
    }

    /// Returns how much two documents have in common, or `None` if the features of one are not
    /// stored.
    pub(crate) fn overlap(&self, a: DocumentId, b: DocumentId) -> Result<Option<SetOverlap>> {
        let (Some(a), Some(b)) = (self.get(a)?, self.get(b)?) else {
            return Ok(None);
        };
        Ok(Some(SetOverlap::of(&a, &b)))
    }

    /// Returns how much a document given by its hashes and a stored one have in common, or `None` if
    /// the latter is not stored.
    pub(crate) fn overlap_with(
        &self,
        hashes: &[u64],
        id: DocumentId,
    ) -> Result<Option<SetOverlap>> {
        let other = self.get(id)?;
        Ok(other.map(|other| SetOverlap::of(hashes, &other)))
    }

    /// Like [`similarity`](Self::similarity), but stops early when the similarity is certain to be
    /// below `floor`. It then returns some number below `floor`.
    pub(super) fn similarity_from(
        &self,
        floor: f64,
        a: DocumentId,
        b: DocumentId,
    ) -> Result<Option<f64>> {
        // The sizes alone may decide.
        if let (Some(a), Some(b)) = (self.size(a), self.size(b)) {
            let most = a.min(b) as f64 / a.max(b) as f64;
            if most < floor {
                return Ok(Some(most));
            }
        }
        let (Some(a), Some(b)) = (self.get(a)?, self.get(b)?) else {
            return Ok(None);
        };
        Ok(Some(jaccard_from(floor, &a, &b)))
    }

    /// Returns the exact Jaccard similarity, from 0 to 1, of a document given by its hashes and a
    /// stored document. Returns `None` if the latter is not stored.
    ///
    /// # Errors
    ///
    /// The errors of [`similarity`](Self::similarity).
    ///
    /// ```
    /// use resemblance_corpus::verification::FeatureSets;
    /// # use resemblance::DocumentId;
    ///
    /// let mut features = FeatureSets::new(std::env::temp_dir());
    /// features.put(DocumentId::new(0), [1, 2, 3])?;
    /// features.flush()?;
    /// assert_eq!(features.similarity_to(&[1, 2, 4], DocumentId::new(0))?, Some(0.5));
    /// assert_eq!(features.similarity_to(&[1, 2, 4], DocumentId::new(1))?, None);
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    pub fn similarity_to(&self, hashes: &[u64], id: DocumentId) -> Result<Option<f64>> {
        let other = self.get(id)?;
        Ok(other.map(|other| jaccard_of_sorted(hashes, &other)))
    }

    /// Like [`similarity_to`](Self::similarity_to), but stops early when the similarity is certain
    /// to be below `floor`. It then returns some number below `floor`.
    pub(crate) fn similarity_to_from(
        &self,
        floor: f64,
        hashes: &[u64],
        id: DocumentId,
    ) -> Result<Option<f64>> {
        let other = self.get(id)?;
        Ok(other.map(|other| jaccard_from(floor, hashes, &other)))
    }

    /// Returns the shares of their features that a dropped document, given by its hashes, and the
    /// stored document that was found for it have in common; `None` if the latter has no features
    /// here. Nothing is compared if their similarity is exact.
    ///
    /// # Errors
    ///
    /// The errors of [`similarity`](Self::similarity).
    pub fn shares_with(&self, dropped: &[u64], found: &Match) -> Result<Option<FeatureShares>> {
        let (survivor, exact) = (found.id(), found.similarity().filter(|_| found.is_exact()));
        if let (Some(similarity), Some(size)) = (exact, self.size(survivor)) {
            let size = usize::try_from(size).ok().or_bug("a set beyond memory")?;
            return Ok(Some(FeatureShares::of_sizes(
                dropped.len(),
                size,
                similarity,
            )));
        }
        let overlap = self.overlap_with(dropped, survivor)?;
        Ok(overlap.map(FeatureShares::from))
    }

    fn place(&self, id: DocumentId) -> Option<&FeaturePlace> {
        let index = id.get().checked_sub(self.first);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let place = index.and_then(|index| self.places.get(index)?.as_ref());
        place.or_else(|| self.scattered.get(&id.get()))
    }

    /// Returns the number of hashes of a document, or `None` if they are not stored.
    pub(crate) fn size(&self, id: DocumentId) -> Option<u64> {
        Some(match self.place(id)? {
            FeaturePlace::Memory(hashes) => hashes.len() as u64,
            FeaturePlace::File(numbers) => numbers.end - numbers.start,
        })
    }

    /// Returns the hashes of a document, or `None` if they are not stored.
    pub(crate) fn shared(&self, id: DocumentId) -> Result<Option<Arc<[u64]>>> {
        if let Some(FeaturePlace::Memory(hashes)) = self.place(id) {
            return Ok(Some(Arc::clone(hashes)));
        }
        Ok(self.get(id)?.map(|hashes| Arc::from(&*hashes)))
    }

    /// Returns the hashes of a document, or `None` if they are not stored.
    pub(crate) fn get(&self, id: DocumentId) -> Result<Option<Cow<'_, [u64]>>> {
        let numbers = match self.place(id) {
            None => return Ok(None),
            Some(FeaturePlace::Memory(hashes)) => return Ok(Some(Cow::Borrowed(hashes))),
            Some(FeaturePlace::File(numbers)) => numbers,
        };
        let file = self.file.as_ref().or_bug("a file of features")?;
        let read = file.read(numbers.start, numbers.end - numbers.start);
        let hashes = read.map_err(|e| failure(&self.temp_dir, e))?;
        Ok(Some(Cow::Owned(hashes)))
    }
}

fn failure(temp_dir: &Path, source: io::Error) -> Error {
    Error::Io {
        action: format!("temporary file in {}", temp_dir.display()),
        source,
    }
}

/// Numbers in a file, 8 bytes each. One thread appends, many read.
struct NumberFile {
    /// A file without a name, or one that is deleted when it is closed.
    file: File,
    count: u64,
    /// Bytes that are not in the file yet.
    tail: Vec<u8>,
    /// A lock, because reading moves the file's only cursor.
    #[cfg(not(unix))]
    reads: std::sync::Mutex<()>,
}

impl NumberFile {
    fn create(temp_dir: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(temp_dir);
        Ok(Self {
            file: file.map_err(|source| failure(temp_dir, source))?,
            count: 0,
            tail: Vec::new(),
            #[cfg(not(unix))]
            reads: std::sync::Mutex::new(()),
        })
    }

    fn push(&mut self, numbers: &[u64]) -> io::Result<()> {
        self.count += numbers.len() as u64;
        for numbers in numbers.chunks(BUFFER_BYTES / NUMBER_BYTES) {
            let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
            self.tail.extend(bytes);
            if self.tail.len() >= BUFFER_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::End(0))?;
        self.file.write_all(&self.tail)?;
        self.tail.clear();
        Ok(())
    }

    /// Reads numbers that have been flushed.
    fn read(&self, first: u64, count: u64) -> io::Result<Vec<u64>> {
        let count = usize::try_from(count).map_err(io::Error::other)?;
        let mut bytes = vec![0; count * NUMBER_BYTES];
        self.read_at(&mut bytes, first * NUMBER_BYTES as u64)?;
        let (numbers, _) = bytes.as_chunks::<NUMBER_BYTES>();
        Ok(numbers.iter().map(|n| u64::from_le_bytes(*n)).collect())
    }

    #[cfg(unix)]
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, bytes, offset)
    }

    #[cfg(not(unix))]
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        use std::io::Read;
        let _one = self.reads.lock();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns ids whose features are `count` numbers beginning with the id; every third number is
    /// twice as far.
    fn set(id: u64, count: u64) -> BTreeSet<u64> {
        let numbers = (id..id + count).map(|n| if n % 3 == 0 { 2 * n } else { n });
        numbers.collect()
    }

    fn hashes(set: &BTreeSet<u64>) -> Vec<u64> {
        set.iter().copied().collect()
    }

    fn by_sets(a: &BTreeSet<u64>, b: &BTreeSet<u64>) -> f64 {
        let common = a.intersection(b).count();
        common as f64 / (a.len() + b.len() - common) as f64
    }

    #[test]
    fn exact_similarities_equal_those_of_the_sets() {
        // No features, some, or all of them in memory.
        for memory_bytes in [0, 2_000, 1 << 30] {
            similarities_with_memory_are_those_of_the_sets(memory_bytes);
        }
    }

    fn similarities_with_memory_are_those_of_the_sets(memory_bytes: u64) {
        let mut features = FeatureSets::new(std::env::temp_dir()).memory_bytes(memory_bytes);
        // Small sets, one that exceeds the buffer, and some ids that are left out.
        let count = |id: u64| if id == 40 { 100_000 } else { 1 + id * 7 % 30 };
        let ids: Vec<u64> = (17..80).filter(|id| id % 5 != 0 || *id == 40).collect();
        for id in &ids {
            features
                .put(DocumentId::new(*id), hashes(&set(*id, count(*id))))
                .unwrap();
            if id % 9 == 0 {
                features.flush().unwrap();
            }
        }
        features.flush().unwrap();
        assert_eq!(features.file_bytes() == 0, memory_bytes == 1 << 30);
        let sets: Vec<_> = ids.iter().map(|id| (id, set(*id, count(*id)))).collect();
        for (a, of_a) in &sets {
            for (b, of_b) in &sets {
                let expected = by_sets(of_a, of_b);
                let ids = (DocumentId::new(**a), DocumentId::new(**b));
                assert_eq!(features.similarity(ids.0, ids.1).unwrap(), Some(expected));
                let found = features
                    .similarity_from(0.5, ids.0, ids.1)
                    .unwrap()
                    .unwrap();
                assert!(found == expected || found < 0.5 && expected < 0.5);
            }
        }
        let known = DocumentId::new(ids[0]);
        for unknown in [0, 16, 80, u64::MAX] {
            let unknown = DocumentId::new(unknown);
            assert_eq!(features.similarity(known, unknown).unwrap(), None);
            assert_eq!(features.similarity(unknown, known).unwrap(), None);
        }
        assert!(features.put(known, [1]).is_err());
        // Ids in any order: before all, after all, in between, and far away.
        let others = [3, 16, 40_000, 2_000, 82, 81, 20, u64::MAX - 1];
        for id in others {
            features
                .put(DocumentId::new(id), hashes(&set(id % 1_000, 12)))
                .unwrap();
            assert!(features.put(DocumentId::new(id), [1]).is_err());
        }
        features.flush().unwrap();
        for id in others {
            let expected = by_sets(&set(id % 1_000, 12), &set(17, count(17)));
            let found = features.similarity(DocumentId::new(id), DocumentId::new(17));
            assert_eq!(found.unwrap(), Some(expected), "document {id}");
        }
    }

    #[test]
    fn missing_feature_folder_is_an_error() {
        let mut features = FeatureSets::new("/nowhere/at/all").memory_bytes(60);
        features.put(DocumentId::new(0), [1]).unwrap();
        assert!(features.put(DocumentId::new(1), [1]).is_err());
    }
}
