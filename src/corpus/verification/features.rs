//! The features of texts in temporary files, for exact similarities.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::engine::TemporaryFile;
use crate::error::{Error, Result};
use crate::invariant::bug;
use crate::sketch::exact::jaccard_of_sorted;
use crate::types::DocumentId;

/// Bytes that are buffered before they are written.
const BUFFER_BYTES: usize = 1 << 18;

const NUMBER_BYTES: usize = size_of::<u64>();

/// The distinct feature hashes of documents: 8 bytes a feature in one file, and in another, for each
/// document, 8 bytes that say where its features begin. Memory holds a buffer of each file. The files
/// have no names where the system can do without, and go when this is dropped.
///
/// ```
/// use resemblance::verification::FeatureFiles;
/// use resemblance::{Document, MinHash, Schema, Store, Text};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.rsm");
///
/// let schema = Schema::builder().text(Text::words(1)).minhash(MinHash::new(64)).build()?;
/// let store = Store::create(&path, schema)?;
/// let mut features = FeatureFiles::create(std::env::temp_dir())?;
/// for text in ["a b c d e f g h i j", "b c d e f g h i j k"] {
///     let id = store.insert(Document::without_key(), &store.sketch_text(text)?)?;
///     features.put(id, &store.sketcher().feature_hashes(text)?)?;
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
pub struct FeatureFiles {
    temp_dir: PathBuf,
    hashes: NumberFile,
    /// The position of the first hash of each document, and the end of the last.
    starts: NumberFile,
    /// The id of the first document.
    first: u64,
    documents: u64,
}

impl FeatureFiles {
    /// Makes the files, empty, in a folder.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the folder takes no files.
    pub fn create(temp_dir: impl Into<PathBuf>) -> Result<Self> {
        let temp_dir = temp_dir.into();
        let hashes = NumberFile::create(&temp_dir)?;
        let mut starts = NumberFile::create(&temp_dir)?;
        starts.push(&[0]).map_err(|e| failure(&temp_dir, e))?;
        Ok(Self {
            temp_dir,
            hashes,
            starts,
            first: 0,
            documents: 0,
        })
    }

    /// Keeps the feature hashes of a document, sorted and distinct. Ids must ascend; ids in between
    /// have no features here later.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] with the parameter `id` for an id that is not greater than the last
    /// one, [`Error::Io`] if the files cannot grow.
    pub fn put(&mut self, id: DocumentId, hashes: &[u64]) -> Result<()> {
        if self.documents == 0 {
            self.first = id.get();
        }
        let Some(left_out) = id.get().checked_sub(self.first + self.documents) else {
            let min_id = self.first + self.documents;
            return Err(Error::invalid("id", id, format!("{min_id} or more")));
        };
        let written = self.write(left_out, hashes);
        written.map_err(|e| failure(&self.temp_dir, e))
    }

    fn write(&mut self, left_out: u64, hashes: &[u64]) -> io::Result<()> {
        for _ in 0..left_out {
            self.starts.push(&[self.hashes.count])?;
        }
        self.hashes.push(hashes)?;
        self.starts.push(&[self.hashes.count])?;
        self.documents += left_out + 1;
        Ok(())
    }

    /// Makes the features that were put here so far readable.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the files cannot grow.
    pub fn flush(&mut self) -> Result<()> {
        let flushed = self.hashes.flush().and_then(|()| self.starts.flush());
        flushed.map_err(|e| failure(&self.temp_dir, e))
    }

    /// Returns the number of bytes that the files hold.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        (self.hashes.count + self.starts.count) * NUMBER_BYTES as u64
    }

    /// Returns the exact Jaccard similarity of two documents, from 0 to 1; `None` if the features
    /// of one are not here.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the files cannot be read.
    pub fn similarity(&self, a: DocumentId, b: DocumentId) -> Result<Option<f64>> {
        match self.get(a)? {
            Some(a) => self.similarity_to(&a, b),
            None => Ok(None),
        }
    }

    /// Returns the exact Jaccard similarity, from 0 to 1, of a document, given its hashes, and one
    /// whose hashes were put here; `None` if they were not.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`similarity`](Self::similarity).
    pub fn similarity_to(&self, hashes: &[u64], id: DocumentId) -> Result<Option<f64>> {
        let other = self.get(id)?;
        Ok(other.map(|other| jaccard_of_sorted(hashes, &other)))
    }

    fn get(&self, id: DocumentId) -> Result<Option<Vec<u64>>> {
        let index = id.get().checked_sub(self.first);
        let Some(index) = index.filter(|index| *index < self.documents) else {
            return Ok(None);
        };
        let io_failure = |e| failure(&self.temp_dir, e);
        let bounds = self.starts.read(index, 2).map_err(io_failure)?;
        let [start, end] = *bounds.as_slice() else {
            return Err(bug("two numbers were read as another count"));
        };
        let Some(count) = end.checked_sub(start) else {
            return Err(bug("the features of a document end before they begin"));
        };
        self.hashes.read(start, count).map(Some).map_err(io_failure)
    }
}

fn failure(temp_dir: &Path, source: io::Error) -> Error {
    Error::Io {
        action: format!("temporary file in {}", temp_dir.display()),
        source,
    }
}

/// Numbers in a file, 8 bytes each: one thread appends, many read.
struct NumberFile {
    file: File,
    /// Its name, if it has one, goes after the file.
    _path: TemporaryFile,
    count: u64,
    /// Not in the file yet.
    tail: Vec<u8>,
    /// Reading moves the one cursor of the file.
    #[cfg(not(unix))]
    reads: std::sync::Mutex<()>,
}

impl NumberFile {
    fn create(temp_dir: &Path) -> Result<Self> {
        let made = TemporaryFile::create_file(temp_dir);
        let (path, file) = made.map_err(|error| match error {
            // The folder is what the caller knows.
            Error::Io { source, .. } => failure(temp_dir, source),
            error => error,
        })?;
        Ok(Self {
            file,
            _path: path,
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

    /// Numbers that have been flushed.
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

    /// Ids whose features are `count` numbers from the id on, every third number twice as far.
    fn set(id: u64, count: u64) -> Vec<u64> {
        let numbers = (id..id + count).map(|n| if n % 3 == 0 { 2 * n } else { n });
        let numbers: BTreeSet<u64> = numbers.collect();
        numbers.into_iter().collect()
    }

    fn by_sets(a: &[u64], b: &[u64]) -> f64 {
        let (a, b): (BTreeSet<_>, BTreeSet<_>) = (a.iter().collect(), b.iter().collect());
        a.intersection(&b).count() as f64 / a.union(&b).count() as f64
    }

    #[test]
    fn similarities_are_those_of_the_sets() {
        let mut features = FeatureFiles::create(std::env::temp_dir()).unwrap();
        // Small ones, one beyond the buffer, and some ids that are left out.
        let count = |id: u64| if id == 40 { 100_000 } else { 1 + id * 7 % 30 };
        let ids: Vec<u64> = (17..80).filter(|id| id % 5 != 0 || *id == 40).collect();
        for id in &ids {
            features
                .put(DocumentId::new(*id), &set(*id, count(*id)))
                .unwrap();
            if id % 9 == 0 {
                features.flush().unwrap();
            }
        }
        features.flush().unwrap();
        for a in &ids {
            for b in &ids {
                let expected = by_sets(&set(*a, count(*a)), &set(*b, count(*b)));
                let ids = (DocumentId::new(*a), DocumentId::new(*b));
                assert_eq!(features.similarity(ids.0, ids.1).unwrap(), Some(expected));
            }
        }
        let known = DocumentId::new(ids[0]);
        for unknown in [0, 16, 80, u64::MAX] {
            let unknown = DocumentId::new(unknown);
            assert_eq!(features.similarity(known, unknown).unwrap(), None);
            assert_eq!(features.similarity(unknown, known).unwrap(), None);
        }
        assert!(features.put(known, &[1]).is_err());
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        assert!(FeatureFiles::create("/nowhere/at/all").is_err());
    }
}
