//! A corpus: which files it has, in which order, and the documents in their records.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::error::CorpusError;
use super::folder::{self, path_bytes};
use super::line;
use super::record::{CorpusDocument, CorpusRecord};
use super::source::{CorpusSettings, CorpusSource, SourceKind, SourceOrigin};

/// An ordered list of sources and the way to read them.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// The files, in the order in which they are read.
    pub sources: Vec<CorpusSource>,
    /// How documents are found in them.
    pub settings: CorpusSettings,
}

impl Corpus {
    /// Looks at every argument; folders are listed, files are not opened yet.
    pub fn resolve(arguments: &[PathBuf], settings: CorpusSettings) -> Result<Self, CorpusError> {
        let mut sources = Vec::new();
        let mut standard_input = false;
        for argument in arguments {
            if argument.as_os_str() == "-" {
                if standard_input {
                    return Err(CorpusError::bad("standard input (-) is given twice"));
                }
                standard_input = true;
                sources.push(CorpusSource {
                    kind: SourceKind::Lines,
                    origin: SourceOrigin::StandardInput,
                    relative: "standard-input.jsonl".into(),
                });
                continue;
            }
            let metadata =
                std::fs::metadata(argument).map_err(|e| CorpusError::open(argument, e))?;
            if metadata.is_dir() {
                folder::list(argument, &settings, &mut sources)?;
            } else {
                sources.push(CorpusSource {
                    kind: SourceKind::Lines,
                    origin: SourceOrigin::Path(argument.clone()),
                    relative: file_name(argument)?.into(),
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
                SourceOrigin::Spool(file, _) => file.metadata().ok()?,
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
    pub fn position(&self, source: usize, line: u64) -> String {
        match self.sources.get(source) {
            Some(source) if source.kind == SourceKind::Lines => {
                format!("{}:{line}", source.name().display())
            }
            Some(source) => source.name().display().to_string(),
            None => "corpus".into(),
        }
    }

    /// The document in a record, or a sentence about what is wrong with it.
    pub fn parse<'a>(&'a self, record: &'a CorpusRecord) -> Result<CorpusDocument<'a>, String> {
        let Some(source) = self.sources.get(record.source) else {
            return Err("the record belongs to no source".into());
        };
        match source.kind {
            SourceKind::Lines => line::parse(&record.bytes, &self.settings),
            SourceKind::Text => Ok(CorpusDocument {
                key: path_bytes(&source.relative),
                text: line::utf8(line::without_mark(&record.bytes))?.into(),
            }),
        }
    }
}

fn file_name(path: &Path) -> Result<&OsStr, CorpusError> {
    let name = path.file_name();
    name.ok_or_else(|| CorpusError::bad(format!("{} has no file name", path.display())))
}
