//! An open table, with the data that show whether it has changed.

use std::fs::File;
use std::io::Read;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use parquet::file::reader::Length;

use super::table_input::{ParquetInput, TableInput};
use crate::error::CorpusError;
use crate::input::Compression;
#[cfg(feature = "remote")]
use crate::remote::RangeReader;
use crate::settings::SourceKind;
use crate::source::{CorpusSource, SourceOrigin};

/// An open file of a table.
pub(crate) struct TableFile {
    pub(super) file: TableInput,
    /// The name of the file in messages.
    pub(super) name: PathBuf,
    pub(super) kind: SourceKind,
    pub(super) length: u64,
    /// The maximum number of bytes to decode at once. What is read within this limit may be copied
    /// without it.
    pub(super) memory_bytes: u64,
    /// Distinguishes versions with the same length.
    version: Vec<u8>,
}

impl TableFile {
    /// Opens a source. A pipe cannot be read, because reading a table begins at its end.
    pub(crate) fn open(source: &CorpusSource, memory_bytes: u64) -> Result<Self, CorpusError> {
        let name = source.name().into_owned();
        let kind = source.kind;
        let failed = |error| CorpusError::open(&name, error);
        let input = match &source.origin {
            #[cfg(feature = "remote")]
            SourceOrigin::Remote(object) => TableInput::Remote(RangeReader::new(object.clone())),
            SourceOrigin::Spool(file, _) => TableInput::File(file.try_clone().map_err(failed)?),
            SourceOrigin::Path(_) | SourceOrigin::Folder(_) => {
                TableInput::File(File::open(&name).map_err(failed)?)
            }
            SourceOrigin::StandardInput => {
                return Err(CorpusError::not_from_the_end(&name, kind.name()));
            }
        };
        let version = match &input {
            TableInput::File(file) => {
                let metadata = file.metadata().map_err(failed)?;
                if !metadata.is_file() {
                    return Err(CorpusError::not_from_the_end(&name, kind.name()));
                }
                let modified = metadata.modified().ok();
                let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                since.map_or(0, |time| time.as_nanos()).to_le_bytes().into()
            }
            // A table without a version is copied before it is read again.
            #[cfg(feature = "remote")]
            TableInput::Remote(reader) => reader
                .object()
                .version()
                .map_or_else(Vec::new, String::into_bytes),
        };
        let length = Length::len(&input);
        let file = Self {
            file: input,
            name,
            kind,
            length,
            memory_bytes,
            version,
        };
        if Compression::from_content(&file.start(6)?) != Compression::None {
            return Err(CorpusError::not_from_the_end(&file.name, kind.name()));
        }
        if length == 0 {
            let message = format!(
                "{} is empty, and {} files never are",
                file.name.display(),
                kind.name()
            );
            return Err(CorpusError::bad(message));
        }
        Ok(file)
    }

    /// Returns bytes that change when the file is written: its length, and the time of its last
    /// change or the version that its server reports.
    pub(crate) fn identity(&self) -> Vec<u8> {
        [&self.length.to_le_bytes(), &*self.version].concat()
    }

    /// Returns another handle, at the beginning.
    pub(super) fn rewound(&self) -> Result<TableInput, CorpusError> {
        let rewound = self.file.rewound();
        rewound.map_err(|e| CorpusError::open(&self.name, e))
    }

    /// Returns the input for a decoder of Parquet.
    pub(super) fn pages(&self) -> Result<ParquetInput, CorpusError> {
        Ok(ParquetInput::new(self.rewound()?, self.memory_bytes))
    }

    /// Returns true if the file begins with `magic`.
    pub(super) fn begins_with(&self, magic: &[u8]) -> Result<bool, CorpusError> {
        Ok(self.start(magic.len())? == magic)
    }

    /// Returns this number of bytes from the beginning, or fewer if the file is shorter.
    fn start(&self, length: usize) -> Result<Vec<u8>, CorpusError> {
        let mut start = Vec::new();
        let read = self.rewound()?.take(length as u64).read_to_end(&mut start);
        read.map_err(|e| CorpusError::read(&self.name, false, &e))?;
        Ok(start)
    }

    /// Runs a decoder, which may panic on a damaged file, and returns its result.
    pub(super) fn decode<T, E: std::fmt::Display>(
        &self,
        decode: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, CorpusError> {
        match std::panic::catch_unwind(AssertUnwindSafe(decode)) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.damaged(&error)),
            Err(_) => Err(self.damaged(&"its decoder gave up")),
        }
    }

    /// Creates the error for a part that exceeds the memory limit.
    pub(super) fn too_large(&self, part: &str, bytes: u64) -> CorpusError {
        let (name, limit) = (self.name.display(), self.memory_bytes);
        CorpusError::bad(format!(
            "{name}: {part} takes {bytes} bytes of memory, expected up to {limit}, half of --memory"
        ))
        .with_advice("raise --memory")
    }

    /// Converts the error of a decoder.
    pub(super) fn damaged(&self, error: &dyn std::fmt::Display) -> CorpusError {
        if let Some(failure) = self.file.failure() {
            return CorpusError::io(failure);
        }
        let (name, kind) = (self.name.display(), self.kind.name());
        CorpusError::bad(format!(
            "{name} is damaged, truncated, or not {kind}: {error}"
        ))
    }
}
