//! A file of a job: the results for the documents of one source.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use resemblance::distributed::Codec;
use resemblance_corpus::verification::SketchedText;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::tally::{ReadDocument, WorkedDocument};
use crate::failure::{Failure, Result};
use crate::output::{parent, scratch_builder, sync_folder};
use resemblance_corpus::{BadDocument, SourceTotals};

const BUFFER_BYTES: usize = 256 * 1024;

/// The checksum of all bytes before it, and where the totals begin, at the end of a file.
const END_BYTES: u64 = 12;

/// The data that a job keeps of a document in addition to its key.
#[derive(Clone, Debug)]
pub(crate) struct JobContent {
    pub(crate) sketched: SketchedText,
    /// A hash of the content; 0 for verbs that do not ask for it.
    pub(crate) digest: u64,
    /// See [`KeepRule::score`](crate::options::KeepRule::score).
    pub(crate) score: Option<[f64; 2]>,
}

impl JobValue for SketchedText {
    fn save(&self) -> JobContent {
        JobContent {
            sketched: self.clone(),
            digest: 0,
            score: None,
        }
    }

    fn restore(content: JobContent) -> Self {
        content.sketched
    }
}

/// A value that is computed from a document and can be kept by a job.
pub(crate) trait JobValue {
    /// Returns the content to keep.
    fn save(&self) -> JobContent;

    /// Restores the value that was saved.
    fn restore(content: JobContent) -> Self;
}

/// The part of a record that a job keeps.
#[derive(Serialize, Deserialize)]
struct SavedRecord {
    line: u64,
    document: Result<SavedDocument, BadDocument>,
}

#[derive(Serialize, Deserialize)]
struct SavedDocument {
    key: Vec<u8>,
    has_own_id: bool,
    stamp: u64,
    payload: Vec<u8>,
    signature: Vec<u8>,
    features: Vec<u64>,
    digest: u64,
    score: Option<[f64; 2]>,
}

fn configuration() -> impl bincode::config::Config {
    bincode::config::legacy()
}

/// A file that is being written, under a temporary name.
pub(super) struct ShardWriter {
    file: BufWriter<NamedTempFile>,
    hasher: Hasher,
    written_bytes: u64,
    path: PathBuf,
    /// A document could not be read, and may be another time.
    is_partial: bool,
}

impl ShardWriter {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let folder = crate::output::parent(&path);
        let file = scratch_builder()
            .tempfile_in(folder)
            .map_err(|e| cannot_write(&path, &e))?;
        Ok(Self {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            hasher: Hasher::new(),
            written_bytes: 0,
            path,
            is_partial: false,
        })
    }

    pub(super) fn write<T>(
        &mut self,
        codec: &Codec,
        read: &ReadDocument<T>,
        content: impl FnOnce(&T) -> JobContent,
    ) -> Result<()> {
        let document = match &read.document {
            Ok(document) => {
                let JobContent {
                    sketched,
                    digest,
                    score,
                } = content(&document.value);
                Ok(SavedDocument {
                    key: document.key.clone(),
                    has_own_id: document.has_own_id,
                    stamp: document.stamp,
                    payload: document.payload.clone(),
                    signature: codec.encode(&sketched.signature)?,
                    features: sketched.features.to_vec(),
                    digest,
                    score,
                })
            }
            Err(bad) => {
                self.is_partial |= bad.is_unreadable;
                Err(bad.clone())
            }
        };
        let line = read.line;
        self.encode(&SavedRecord { line, document })
    }

    fn encode(&mut self, value: &impl Serialize) -> Result<()> {
        let bytes = bincode::serde::encode_to_vec(value, configuration())
            .map_err(|e| Failure::bad_input(e.to_string()))?;
        self.put(&bytes)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.hasher.update(bytes);
        self.written_bytes += bytes.len() as u64;
        let written = self.file.write_all(bytes);
        written.map_err(|e| cannot_write(&self.path, &e))
    }

    /// Completes the file and gives it its name, unless a part of the source could not be read.
    pub(super) fn finish(mut self, totals: &SourceTotals) -> Result<()> {
        if self.is_partial {
            return Ok(());
        }
        let start = self.written_bytes;
        self.encode(totals)?;
        self.put(&start.to_le_bytes())?;
        let checksum = self.hasher.clone().finalize();
        self.put(&checksum.to_le_bytes())?;
        let path = self.path;
        let synced = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error);
        let named = synced.and_then(|file| {
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|e| e.error)?;
            sync_folder(&parent(&path))
        });
        named.map_err(|e| cannot_write(&path, &e))
    }
}

/// The documents in a file.
pub(super) struct ShardReader {
    file: BufReader<File>,
    left: u64,
    source: usize,
    path: PathBuf,
}

impl ShardReader {
    /// Opens a file that [`totals`] has found to be sound.
    pub(super) fn open(path: PathBuf, source: usize, totals: &SourceTotals) -> Result<Self> {
        let file = File::open(&path).map_err(|e| cannot_read(&path, &e))?;
        Ok(Self {
            file: BufReader::with_capacity(BUFFER_BYTES, file),
            left: totals.totals.records,
            source,
            path,
        })
    }

    /// The next document, which has this number in the corpus.
    pub(super) fn next<T>(
        &mut self,
        codec: &Codec,
        number: u64,
        value: impl FnOnce(JobContent) -> T,
    ) -> Result<Option<ReadDocument<T>>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let record: SavedRecord =
            bincode::serde::decode_from_std_read(&mut self.file, configuration()).map_err(
                |error| {
                    let path = self.path.display();
                    Failure::bad_input(format!("{path} is damaged: {error}"))
                        .with_note("remove it, and run again")
                },
            )?;
        let document = match record.document {
            Ok(saved) => Ok(WorkedDocument {
                key: saved.key,
                has_own_id: saved.has_own_id,
                stamp: saved.stamp,
                payload: saved.payload,
                value: value(JobContent {
                    sketched: SketchedText {
                        signature: codec.decode(&saved.signature)?,
                        features: saved.features.into(),
                    },
                    digest: saved.digest,
                    score: saved.score,
                }),
            }),
            Err(bad) => Err(bad),
        };
        Ok(Some(ReadDocument {
            number,
            source: self.source,
            line: record.line,
            document,
        }))
    }
}

/// The totals of the source that was saved in a file; `None` if it is damaged. Reads all of it.
pub(super) fn totals(path: &Path) -> Result<Option<SourceTotals>> {
    let read = || -> io::Result<Option<SourceTotals>> {
        let mut file = File::open(path)?;
        let Some(checked_bytes) = file.metadata()?.len().checked_sub(4) else {
            return Ok(None);
        };
        let mut hasher = Hasher::new();
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut left = checked_bytes;
        while left > 0 {
            let length = usize::try_from(left).map_or(BUFFER_BYTES, |n| n.min(BUFFER_BYTES));
            let (part, _) = buffer.split_at_mut(length);
            file.read_exact(part)?;
            hasher.update(part);
            left -= length as u64;
        }
        let mut checksum = [0; 4];
        file.read_exact(&mut checksum)?;
        if u32::from_le_bytes(checksum) != hasher.finalize() || checked_bytes < 8 {
            return Ok(None);
        }
        let mut start = [0; 8];
        file.seek(SeekFrom::Start(checked_bytes + 4 - END_BYTES))?;
        file.read_exact(&mut start)?;
        file.seek(SeekFrom::Start(u64::from_le_bytes(start)))?;
        let totals = bincode::serde::decode_from_std_read(&mut file, configuration());
        Ok(totals.ok())
    };
    read().map_err(|e| cannot_read(path, &e))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("cannot write {}", path.display()), error)
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("cannot read {}", path.display()), error)
}
