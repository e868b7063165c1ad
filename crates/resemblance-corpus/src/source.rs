//! The files of a corpus.

use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::io::{Read, Seek};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::argument::is_remote;
use super::bad_document::BadDocument;
use super::error::CorpusError;
#[cfg(feature = "remote")]
use super::remote::RemoteObject;
use super::settings::SourceKind;

/// The origin of the bytes of a source.
#[derive(Clone, Debug)]
pub enum SourceOrigin {
    /// A file argument, opened at its turn.
    Path(PathBuf),
    /// A file below this folder: a corpus may have millions, so that paths are joined when needed.
    Folder(Arc<Path>),
    /// Standard input, which can be read once.
    StandardInput,
    /// An object of S3 or a file of a web server.
    #[cfg(feature = "remote")]
    Remote(Arc<RemoteObject>),
    /// A temporary copy of something that can be read only once, and the name of that.
    Spool(Arc<File>, PathBuf),
}

/// One file of a corpus.
#[derive(Clone, Debug)]
pub struct CorpusSource {
    /// Lines or one text.
    pub kind: SourceKind,
    /// The origin that it is read from.
    pub origin: SourceOrigin,
    /// Its path below the folder argument, or its file name.
    pub relative: PathBuf,
    /// Why it is not read: then it is one bad document.
    pub problem: Option<Arc<BadDocument>>,
}

impl CorpusSource {
    pub(crate) fn new(
        kind: SourceKind,
        origin: SourceOrigin,
        relative: impl Into<PathBuf>,
    ) -> Self {
        Self {
            kind,
            origin,
            relative: relative.into(),
            problem: None,
        }
    }

    /// Returns a source that was looked into: a text, if that failed.
    pub(crate) fn found(
        found: Result<SourceKind, BadDocument>,
        origin: SourceOrigin,
        relative: impl Into<PathBuf>,
    ) -> Self {
        let source = Self::new(SourceKind::Text, origin, relative);
        match found {
            Ok(kind) => Self { kind, ..source },
            Err(problem) => Self {
                problem: Some(Arc::new(problem)),
                ..source
            },
        }
    }

    /// The path to open, if it is read from one.
    pub fn path(&self) -> Option<Cow<'_, Path>> {
        match &self.origin {
            SourceOrigin::Path(path) => Some(Cow::Borrowed(path)),
            SourceOrigin::Folder(root) => Some(Cow::Owned(root.join(&self.relative))),
            _ => None,
        }
    }

    /// Its name in messages.
    pub fn name(&self) -> Cow<'_, Path> {
        match &self.origin {
            SourceOrigin::StandardInput => Cow::Borrowed(Path::new("standard input")),
            SourceOrigin::Spool(_, name) => Cow::Borrowed(name),
            SourceOrigin::Path(path) => Cow::Borrowed(path),
            #[cfg(feature = "remote")]
            SourceOrigin::Remote(object) => Cow::Borrowed(object.name()),
            SourceOrigin::Folder(root) => Cow::Owned(root.join(&self.relative)),
        }
    }

    /// The path of its output below a folder.
    pub fn output_path(&self) -> Cow<'_, Path> {
        if self.kind.written_as() == self.kind {
            return Cow::Borrowed(&self.relative);
        }
        // A database is written as lines.
        let mut name = self.relative.clone().into_os_string();
        name.push(".jsonl");
        Cow::Owned(name.into())
    }

    /// Its path in keys: as it was given, whatever else was given with it, so that files of different folders have
    /// different keys.
    pub(crate) fn key_path(&self) -> Cow<'_, Path> {
        let name = self.name();
        if matches!(self.origin, SourceOrigin::StandardInput) || self.relative == Path::new("-") {
            return Cow::Borrowed(&self.relative);
        }
        let bytes = name.as_os_str().as_encoded_bytes();
        let has = |part: &[u8]| memchr::memmem::find(bytes, part).is_some();
        if is_remote(&name) || !has(b"./") && !has(b"//") {
            return name;
        }
        let parts = name.components().filter(|part| *part != Component::CurDir);
        Cow::Owned(parts.collect())
    }

    /// True if it can be read a second time, and a change meanwhile is noticed.
    pub fn is_rereadable(&self) -> bool {
        if self.problem.is_some() {
            return true;
        }
        match &self.origin {
            SourceOrigin::StandardInput => false,
            SourceOrigin::Spool(..) => true,
            #[cfg(feature = "remote")]
            SourceOrigin::Remote(object) => object.version().is_some(),
            // A file that cannot be looked at fails each time.
            SourceOrigin::Path(_) | SourceOrigin::Folder(_) => {
                self.metadata().is_none_or(|metadata| metadata.is_file())
            }
        }
    }

    /// Returns its size on disk, unless it is not a regular file.
    pub fn size_bytes(&self) -> Option<u64> {
        match &self.origin {
            #[cfg(feature = "remote")]
            SourceOrigin::Remote(object) => Some(object.bytes()),
            _ => {
                let metadata = self.metadata().filter(Metadata::is_file);
                metadata.map(|metadata| metadata.len())
            }
        }
    }

    fn metadata(&self) -> Option<Metadata> {
        match &self.origin {
            SourceOrigin::Spool(file, _) => file.metadata().ok(),
            _ => std::fs::metadata(self.path()?).ok(),
        }
    }

    /// Its bytes, from the beginning.
    ///
    /// # Errors
    ///
    /// It is not there any more, or the system or the server refuses to read it.
    pub fn open(&self) -> Result<Box<dyn Read + Send>, CorpusError> {
        Ok(match &self.origin {
            SourceOrigin::StandardInput => Box::new(std::io::stdin()),
            SourceOrigin::Path(_) | SourceOrigin::Folder(_) => {
                let path = self.name();
                Box::new(File::open(&path).map_err(|e| CorpusError::open(&path, e))?)
            }
            #[cfg(feature = "remote")]
            SourceOrigin::Remote(object) => object.open()?,
            SourceOrigin::Spool(file, name) => {
                let rewound = file.try_clone().and_then(|mut file| {
                    file.rewind()?;
                    Ok(file)
                });
                Box::new(rewound.map_err(|e| CorpusError::open(name, e))?)
            }
        })
    }
}
