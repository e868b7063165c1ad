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

/// Where the bytes of a source come from.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SourceOrigin {
    /// A file argument, which is opened when it is read.
    Path(PathBuf),
    /// A file below this folder. A corpus may have millions of files, so paths are joined when they
    /// are needed.
    Folder(Arc<Path>),
    /// Standard input, which can be read only once.
    StandardInput,
    /// An object of S3 or a file of a web server.
    #[cfg(feature = "remote")]
    Remote(Arc<RemoteObject>),
    /// A temporary copy of something that can be read only once, and the original name.
    Spool(Arc<File>, PathBuf),
}

/// One file of a corpus.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CorpusSource {
    /// The format of the file.
    pub kind: SourceKind,
    /// Where its bytes come from.
    pub origin: SourceOrigin,
    /// The path below the folder argument, or the file name.
    pub relative: PathBuf,
    /// Why the file is not read. It is then one bad document.
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

    /// Creates a source from the result of examining a file. If that failed, the source is a text.
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

    /// The path to open, if the source is a local file.
    pub fn path(&self) -> Option<Cow<'_, Path>> {
        match &self.origin {
            SourceOrigin::Path(path) => Some(Cow::Borrowed(path)),
            SourceOrigin::Folder(root) => Some(Cow::Owned(root.join(&self.relative))),
            _ => None,
        }
    }

    /// The name for messages.
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

    /// Returns the path of the output file below a folder, in which rows of a database become lines,
    /// and pages too if they are `rows`.
    pub fn output_path(&self, rows: bool) -> Cow<'_, Path> {
        if self.kind.written_as() == self.kind || !rows && self.kind == SourceKind::Warc {
            return Cow::Borrowed(&self.relative);
        }
        let mut name = self.relative.clone().into_os_string();
        name.push(".jsonl");
        Cow::Owned(name.into())
    }

    /// Returns the path for keys: as it was given, so that files of different folders have
    /// different keys, whatever other arguments there are.
    pub(crate) fn key_path(&self) -> Cow<'_, Path> {
        let name = self.name();
        if self.is_standard_input() || self.relative == Path::new("-") {
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

    pub(crate) fn is_standard_input(&self) -> bool {
        matches!(self.origin, SourceOrigin::StandardInput)
    }

    /// Returns true if the source can be read again, and a change in between is detected.
    pub fn is_rereadable(&self) -> bool {
        if self.problem.is_some() {
            return true;
        }
        match &self.origin {
            SourceOrigin::StandardInput => false,
            SourceOrigin::Spool(..) => true,
            #[cfg(feature = "remote")]
            SourceOrigin::Remote(object) => object.version().is_some(),
            // A file that cannot be examined fails each time.
            SourceOrigin::Path(_) | SourceOrigin::Folder(_) => {
                self.metadata().is_none_or(|metadata| metadata.is_file())
            }
        }
    }

    /// Returns the size on disk, or `None` unless the source is a regular file.
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

    /// Opens the source at its beginning.
    ///
    /// # Errors
    ///
    /// An error if the source no longer exists, or if the system or the server fails to read it.
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
