//! A table that is open, and what tells whether it is still the same.

use std::fs::File;
use std::io::{Read, Seek};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use super::super::compression::Compression;
use super::super::error::CorpusError;
use super::super::settings::SourceKind;
use super::super::source::{CorpusSource, SourceOrigin};

/// An open file of a table.
pub(in crate::corpus) struct TableFile {
    pub(super) file: File,
    /// In messages.
    pub(super) name: PathBuf,
    pub(super) kind: SourceKind,
    pub(super) length: u64,
    modified: u128,
}

impl TableFile {
    /// Opens a source. A pipe cannot be read, because a table is read from its end.
    pub(in crate::corpus) fn open(source: &CorpusSource) -> Result<Self, CorpusError> {
        let name = source.name().into_owned();
        let kind = source.kind;
        let shown = name.display();
        let file = match &source.origin {
            SourceOrigin::Spool(file, _) => file.try_clone(),
            SourceOrigin::Path(_) | SourceOrigin::Folder(_) => File::open(&name),
            SourceOrigin::StandardInput => {
                return Err(CorpusError::not_from_the_end(&name, kind.name()));
            }
        };
        let file = file.map_err(|e| CorpusError::open(&name, e))?;
        let metadata = file.metadata().map_err(|e| CorpusError::open(&name, e))?;
        if !metadata.is_file() {
            return Err(CorpusError::not_from_the_end(&name, kind.name()));
        }
        let mut start = Vec::new();
        let read = (&file).take(6).read_to_end(&mut start);
        read.map_err(|e| CorpusError::read(&name, false, &e))?;
        if Compression::from_content(&start) != Compression::None {
            return Err(CorpusError::not_from_the_end(&name, kind.name()));
        }
        if metadata.len() == 0 {
            let message = format!("{shown} is empty; {} is never", kind.name());
            return Err(CorpusError::bad(message));
        }
        let since_1970 = |time| std::time::SystemTime::duration_since(&time, UNIX_EPOCH).ok();
        let modified = metadata.modified().ok().and_then(since_1970);
        Ok(Self {
            modified: modified.map_or(0, |time| time.as_nanos()),
            length: metadata.len(),
            file,
            name,
            kind,
        })
    }

    /// What changes when the file is written to: its length and when that was done.
    pub(in crate::corpus) fn identity(&self) -> [u8; 24] {
        let mut identity = [0; 24];
        let parts = self.length.to_le_bytes().into_iter();
        let parts = parts.chain(self.modified.to_le_bytes());
        identity
            .iter_mut()
            .zip(parts)
            .for_each(|(to, from)| *to = from);
        identity
    }

    /// Another handle, at the beginning.
    pub(super) fn rewound(&self) -> Result<File, CorpusError> {
        let rewound = self.file.try_clone().and_then(|mut file| {
            file.rewind()?;
            Ok(file)
        });
        rewound.map_err(|e| CorpusError::open(&self.name, e))
    }

    /// True if the file begins so.
    pub(super) fn begins_with(&self, magic: &[u8]) -> Result<bool, CorpusError> {
        let mut start = Vec::new();
        let read = self
            .rewound()?
            .take(magic.len() as u64)
            .read_to_end(&mut start);
        read.map_err(|e| CorpusError::read(&self.name, false, &e))?;
        Ok(start == magic)
    }

    /// What a decoder makes of the file. Decoders may panic on damaged ones.
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

    /// What a decoder says of the file.
    pub(super) fn damaged(&self, error: &dyn std::fmt::Display) -> CorpusError {
        let (name, kind) = (self.name.display(), self.kind.name());
        CorpusError::bad(format!(
            "{name} is no {kind}, or damaged or cut short: {error}"
        ))
    }
}
