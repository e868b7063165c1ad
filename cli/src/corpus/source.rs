//! The files of a corpus, and how documents are found in them.

use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How documents are found in the files.
#[derive(Clone, Debug)]
pub struct CorpusSettings {
    /// The JSON field that holds the key.
    pub id_field: String,
    /// The JSON field that holds the text.
    pub text_field: String,
    /// In folders, only files whose relative path matches one of these patterns.
    pub include: Option<globset::GlobSet>,
    /// In folders, files and folders whose name begins with a dot are read too.
    pub hidden: bool,
}

impl Default for CorpusSettings {
    /// The fields `id` and `text`, and all files of folders but the hidden ones.
    fn default() -> Self {
        Self {
            id_field: "id".into(),
            text_field: "text".into(),
            include: None,
            hidden: false,
        }
    }
}

/// What the records of a source are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// One JSON object a line.
    Lines,
    /// The whole file is one text; its key is the relative path.
    Text,
}

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
    /// Its path below the folder argument, or its file name: the name of its output.
    pub relative: PathBuf,
}

impl CorpusSource {
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

    /// True if it can be read a second time.
    pub fn is_rereadable(&self) -> bool {
        match self.path() {
            Some(path) => std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()),
            None => matches!(self.origin, SourceOrigin::Spool(..)),
        }
    }
}
