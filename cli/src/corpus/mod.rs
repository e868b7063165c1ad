//! Reading documents: JSON Lines, folders of text files, standard input.
//!
//! A corpus is a list of *sources* in a fixed order: the arguments in the order in which they were
//! given, and the files of a folder in the byte order of their relative paths. A source yields
//! *records*: the non-blank lines of a JSON Lines file, or the one text of a text file. A record
//! becomes a *document* (a key and a text) by [`Corpus::parse`], or is a bad one.

mod compression;
mod error;
mod folder;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod line;
mod reader;

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use compression::{Compression, Encoder};
pub use error::{Error, Result};
pub use folder::path_bytes;
pub use reader::{Record, Records, Totals};

/// The bytes with which the storage engine's files begin.
const STORE_MAGIC: &[u8] = b"redb";

/// How documents are found in the files.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The JSON field that holds the key.
    pub id_field: String,
    /// The JSON field that holds the text.
    pub text_field: String,
    /// In folders, only files whose relative path matches one of these patterns.
    pub include: Option<globset::GlobSet>,
    /// In folders, files and folders whose name begins with a dot are read too.
    pub hidden: bool,
}

/// What the records of a source are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One JSON object a line.
    Lines,
    /// The whole file is one text; its key is the relative path.
    Text,
}

/// Where the bytes of a source come from.
#[derive(Clone, Debug)]
pub enum Origin {
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
pub struct Source {
    /// Lines or one text.
    pub kind: Kind,
    /// Where it is read from.
    pub origin: Origin,
    /// Its path below the folder argument, or its file name: the name of its output.
    pub relative: PathBuf,
}

impl Source {
    /// The path to open, if it is read from one.
    pub fn path(&self) -> Option<Cow<'_, Path>> {
        match &self.origin {
            Origin::Path(path) => Some(Cow::Borrowed(path)),
            Origin::Folder(root) => Some(Cow::Owned(root.join(&self.relative))),
            Origin::StandardInput | Origin::Spool(..) => None,
        }
    }

    /// Its name in messages.
    pub fn name(&self) -> Cow<'_, Path> {
        match &self.origin {
            Origin::StandardInput => Cow::Borrowed(Path::new("standard input")),
            Origin::Spool(_, name) => Cow::Borrowed(name),
            Origin::Path(_) | Origin::Folder(_) => self.path().unwrap_or_default(),
        }
    }

    /// True if it can be read a second time.
    pub fn is_rereadable(&self) -> bool {
        match self.path() {
            Some(path) => std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()),
            None => matches!(self.origin, Origin::Spool(..)),
        }
    }
}

/// A key and a text.
#[derive(Debug, PartialEq)]
pub struct Document<'a> {
    /// The string or the decimal text of the integer in the line; of a text file its relative path.
    pub key: Cow<'a, [u8]>,
    /// The text, decoded.
    pub text: Cow<'a, str>,
}

/// An ordered list of sources and the way to read them.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// The files, in the order in which they are read.
    pub sources: Vec<Source>,
    /// How documents are found in them.
    pub settings: Settings,
}

impl Corpus {
    /// Looks at every argument; folders are listed, files are not opened yet.
    pub fn resolve(arguments: &[PathBuf], settings: Settings) -> Result<Self> {
        let mut sources = Vec::new();
        let mut standard_input = false;
        for argument in arguments {
            if argument.as_os_str() == "-" {
                if standard_input {
                    return Err(Error::bad("standard input (-) is given twice"));
                }
                standard_input = true;
                sources.push(Source {
                    kind: Kind::Lines,
                    origin: Origin::StandardInput,
                    relative: "standard-input.jsonl".into(),
                });
                continue;
            }
            let metadata = std::fs::metadata(argument).map_err(|e| Error::open(argument, e))?;
            if metadata.is_dir() {
                folder::list(argument, &settings, &mut sources)?;
            } else {
                sources.push(Source {
                    kind: Kind::Lines,
                    origin: Origin::Path(argument.clone()),
                    relative: argument.file_name().unwrap_or_default().into(),
                });
            }
        }
        Ok(Self { sources, settings })
    }

    /// The size of all sources as they lie on disk, unless one of them is not a regular file.
    pub fn size_bytes(&self) -> Option<u64> {
        let mut total = 0_u64;
        for source in &self.sources {
            let metadata = match &source.origin {
                Origin::Spool(file, _) => file.metadata().ok()?,
                _ => std::fs::metadata(source.path()?).ok()?,
            };
            if !metadata.is_file() {
                return None;
            }
            total = total.checked_add(metadata.len())?;
        }
        Some(total)
    }

    /// The position of a record, for messages.
    pub fn place(&self, source: usize, line: u64) -> String {
        match self.sources.get(source) {
            Some(source) if source.kind == Kind::Lines => {
                format!("{}:{line}", source.name().display())
            }
            Some(source) => source.name().display().to_string(),
            None => "corpus".into(),
        }
    }

    /// The document in a record, or a sentence about what is wrong with it.
    pub fn parse<'a>(&'a self, record: &'a Record) -> Result<Document<'a>, String> {
        let Some(source) = self.sources.get(record.source) else {
            return Err("the record belongs to no source".into());
        };
        match source.kind {
            Kind::Lines => line::parse(&record.bytes, &self.settings),
            Kind::Text => Ok(Document {
                key: path_bytes(&source.relative),
                text: line::utf8(line::without_mark(&record.bytes))?.into(),
            }),
        }
    }
}

/// The one argument, if it is a store.
pub fn only_store(arguments: &[PathBuf]) -> Option<&Path> {
    match arguments {
        [path] if is_store(path) => Some(path),
        _ => None,
    }
}

/// True if the file begins as a store does: told by content, never by name.
pub fn is_store(path: &Path) -> bool {
    use io::Read;
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut start = Vec::new();
    is_file
        && File::open(path)
            .and_then(|file| {
                file.take(STORE_MAGIC.len() as u64)
                    .read_to_end(&mut start)
                    .map(|_| start == STORE_MAGIC)
            })
            .unwrap_or(false)
}

#[cfg(test)]
mod tests;
