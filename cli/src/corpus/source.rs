//! The files of a corpus.

use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bad_document::BadDocument;
use super::settings::SourceKind;

/// Where the bytes of a source come from.
#[derive(Clone, Debug)]
pub enum SourceOrigin {
    /// A file argument, opened when its turn comes.
    Path(PathBuf),
    /// A file below this folder: a corpus may have millions, so that paths are joined when needed.
    Folder(Arc<Path>),
    /// Standard input, which can be read once.
    StandardInput,
    /// A temporary copy of something that can be read only once, and the name of that.
    Spool(Arc<File>, PathBuf),
}

/// One file of a corpus.
#[derive(Clone, Debug)]
pub struct CorpusSource {
    /// Lines or one text.
    pub kind: SourceKind,
    /// Where it is read from.
    pub origin: SourceOrigin,
    /// Its path below the folder argument, or its file name.
    pub relative: PathBuf,
    /// Another source has the same relative path, so that keys have the whole one.
    pub is_named_in_full: bool,
    /// Why it is not read: then it is one bad document.
    pub problem: Option<Arc<BadDocument>>,
}

impl CorpusSource {
    pub(super) fn new(
        kind: SourceKind,
        origin: SourceOrigin,
        relative: impl Into<PathBuf>,
    ) -> Self {
        Self {
            kind,
            origin,
            relative: relative.into(),
            is_named_in_full: false,
            problem: None,
        }
    }

    /// The path to open, if it is read from one.
    pub fn path(&self) -> Option<Cow<'_, Path>> {
        match &self.origin {
            SourceOrigin::Path(path) => Some(Cow::Borrowed(path)),
            SourceOrigin::Folder(root) => Some(Cow::Owned(root.join(&self.relative))),
            SourceOrigin::StandardInput | SourceOrigin::Spool(..) => None,
        }
    }

    /// Its name in messages.
    pub fn name(&self) -> Cow<'_, Path> {
        match &self.origin {
            SourceOrigin::StandardInput => Cow::Borrowed(Path::new("standard input")),
            SourceOrigin::Spool(_, name) => Cow::Borrowed(name),
            SourceOrigin::Path(path) => Cow::Borrowed(path),
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

    /// Its path in keys.
    pub fn key_path(&self) -> Cow<'_, Path> {
        if self.is_named_in_full {
            self.name()
        } else {
            Cow::Borrowed(&self.relative)
        }
    }

    /// True if it can be read a second time.
    pub fn is_rereadable(&self) -> bool {
        match self.path() {
            _ if self.problem.is_some() => true,
            Some(path) => std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()),
            None => matches!(self.origin, SourceOrigin::Spool(..)),
        }
    }
}
