//! A corpus: its files in their order, and the documents in their records.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::argument::{self, path_bytes};
use super::bad_document::BadDocument;
#[cfg(not(feature = "remote"))]
use super::bad_document::builds_in;
use super::changes::{TextTrims, trimmed_line};
use super::columns;
use super::content::Content;
use super::error::CorpusError;
use super::folder;
use super::form;
use super::line;
use super::record::{CorpusDocument, CorpusRecord};
#[cfg(feature = "remote")]
use super::remote;
use super::settings::{CorpusSettings, IdRule, SourceKind};
use super::source::{CorpusSource, SourceOrigin};

/// An ordered list of sources and the settings for reading them.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// The files, in reading order.
    pub sources: Vec<CorpusSource>,
    /// The settings that decide how documents are found in the files.
    pub settings: CorpusSettings,
    /// Notes for the user about files that are left out.
    pub notes: Vec<String>,
    /// The parts to leave out of texts, if any.
    pub trims: Option<TextTrims>,
    /// The sources whose rest could not be read and was skipped, with the number of records read
    /// before. Every later reading returns the same records.
    pub(crate) left: Arc<Mutex<BTreeMap<usize, u64>>>,
    /// The numbers of records of each source that are passed over, by type.
    pub(crate) passed_over: Arc<Mutex<BTreeMap<usize, BTreeMap<String, u64>>>>,
}

impl Corpus {
    /// Checks every argument, lists folders, and examines the files in them.
    pub fn resolve(arguments: &[PathBuf], settings: CorpusSettings) -> Result<Self, CorpusError> {
        let mut sources = Vec::new();
        let (mut notes, mut empty) = (Vec::new(), Vec::new());
        let kind = settings.kind.unwrap_or(SourceKind::Lines);
        for argument in arguments {
            if argument.as_os_str() == "-" {
                if sources.iter().any(CorpusSource::is_standard_input) {
                    return Err(CorpusError::bad("standard input (-) is given twice"));
                }
                sources.push(CorpusSource::new(kind, SourceOrigin::StandardInput, "-"));
                continue;
            }
            match std::fs::metadata(argument) {
                Ok(metadata) if metadata.is_dir() => {
                    let (mut listed, skipped) = folder::list(argument, &settings)?;
                    notes.extend(skipped);
                    notes.extend(pass_over_texts(argument, &mut listed, &settings));
                    if listed.is_empty() {
                        empty.push(argument.display().to_string());
                    }
                    sources.extend(listed);
                }
                Ok(_) => sources.push(named_file(argument, &settings)?),
                #[cfg(not(feature = "remote"))]
                Err(_) if argument::is_remote(argument) => {
                    return Err(CorpusError::io(format!(
                        "{} requires the feature `remote`, which is not part of this build",
                        argument.display()
                    ))
                    .with_advice(builds_in("remote")));
                }
                #[cfg(feature = "remote")]
                Err(_) if argument::is_remote(argument) => {
                    let mut listed = remote::list(argument, &settings)?;
                    notes.extend(pass_over_texts(argument, &mut listed, &settings));
                    if listed.is_empty() {
                        empty.push(argument.display().to_string());
                    }
                    sources.extend(listed);
                }
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    settings.pass_over(CorpusError::open(argument, error))?;
                }
                Err(error) if std::fs::symlink_metadata(argument).is_ok() => {
                    settings.pass_over(CorpusError::open(argument, error))?;
                }
                Err(error) => {
                    let (names, skipped) = argument::matching(argument, error, &settings)?;
                    notes.extend(skipped);
                    let files = names.iter().map(|name| named_file(name, &settings));
                    sources.extend(files.collect::<Result<Vec<_>, _>>()?);
                }
            }
        }
        // If no argument has a file, the caller reports that.
        if !empty.is_empty() && !sources.is_empty() {
            notes.push(format!("no file was found in {}", empty.join(", ")));
        }
        Ok(Self {
            sources,
            settings,
            notes,
            trims: None,
            left: Arc::default(),
            passed_over: Arc::default(),
        })
    }

    /// Records that the rest of a source is skipped after this number of records.
    pub(crate) fn leave(&self, source: usize, records: u64) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.entry(source).or_insert(records);
    }

    /// Returns the number of records of a source before its rest was skipped.
    pub(crate) fn left_records(&self, source: usize) -> Option<u64> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.get(&source).copied()
    }

    /// Notes which records of a source are passed over. A second reading finds the same.
    pub(crate) fn pass_over_records(&self, source: usize, counts: BTreeMap<String, u64>) {
        if !counts.is_empty() {
            let mut known = self
                .passed_over
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            known.insert(source, counts);
        }
    }

    /// Returns the numbers of records that were passed over because of their types: those of WARC
    /// files that are not pages.
    pub fn passed_over(&self) -> BTreeMap<String, u64> {
        let known = self
            .passed_over
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut all = BTreeMap::new();
        for (kind, count) in known.values().flatten() {
            *all.entry(kind.clone()).or_default() += count;
        }
        all
    }

    /// Returns true if nothing of a source could be read, and it was skipped.
    pub fn is_unread(&self, source: usize) -> bool {
        self.left_records(source) == Some(0)
    }

    /// Returns the total size of all sources on disk, or `None` if one is not a regular file.
    pub fn size_bytes(&self) -> Option<u64> {
        let mut sources = self.sources.iter().filter(|s| s.problem.is_none());
        sources.try_fold(0, |total: u64, source| {
            total.checked_add(source.size_bytes()?)
        })
    }

    /// Returns the position of a record, for messages.
    pub fn position(&self, source: usize, line: u64) -> String {
        match self.sources.get(source) {
            Some(source) if line > 0 => {
                let line = line_name(source, line);
                format!("{}:{line}", source.name().display())
            }
            Some(source) => source.name().display().to_string(),
            None => "corpus".into(),
        }
    }

    /// Parses the document of a record, or describes its fault.
    pub fn parse<'a>(
        &'a self,
        record: &'a CorpusRecord,
    ) -> Result<CorpusDocument<'a>, BadDocument> {
        if let Some(problem) = &record.problem {
            return Err(problem.clone());
        }
        let mut document = self.parse_whole(record)?;
        // The reader of WARC has extracted the text.
        let is_html = self
            .sources
            .get(record.source)
            .is_some_and(|s| s.kind != SourceKind::Warc);
        if let Some(html) = self.settings.content.html.filter(|_| is_html) {
            let content = document.content;
            document.content = content.map_text(|markup| html.text(&markup).map(Cow::Owned))?;
        }
        Ok(match &self.trims {
            Some(trims) => CorpusDocument {
                content: trims.trim_content(record, document.content),
                is_emptied: trims.is_emptied(record),
                ..document
            },
            None => document,
        })
    }

    fn parse_whole<'a>(
        &'a self,
        record: &'a CorpusRecord,
    ) -> Result<CorpusDocument<'a>, BadDocument> {
        let Some(source) = self.sources.get(record.source) else {
            return Err(BadDocument::new("the record belongs to no source"));
        };
        if source.kind == SourceKind::Text {
            let rule = &self.settings.content;
            if rule.vector().is_some() {
                let reason = "a text, expected a file of documents with vectors";
                return Err(BadDocument::new(reason));
            }
            if !rule.takes_texts {
                let expected = rule.expected();
                return Err(BadDocument::new(format!(
                    "a text, expected JSON Lines with {expected}: the schema has no rule for texts"
                )));
            }
            return Ok(CorpusDocument {
                key: self.made_key(source, None),
                record: Cow::Borrowed(&record.bytes),
                has_own_id: false,
                number: 0,
                content: Content::Text(columns::utf8(form::without_mark(&record.bytes))?.into()),
                stamp: self.settings.stamp,
                payload: Cow::default(),
                position: Cow::default(),
                score: None,
                is_emptied: false,
            });
        }
        let make_key = || self.made_key(source, Some(record.line));
        if record.archived.is_some() {
            let line = self.as_line(record)?.into_owned().bytes;
            let document = line::parse(&line, &self.settings, make_key)?.into_owned();
            return Ok(CorpusDocument {
                record: Cow::Owned(line.into()),
                ..document
            });
        }
        let parsed = match &record.names {
            None => line::parse(&record.bytes, &self.settings, make_key)?,
            Some(names) => {
                let json = names.json(&record.bytes)?;
                line::parse(&json, &self.settings, make_key)?.into_owned()
            }
        };
        Ok(CorpusDocument {
            record: Cow::Borrowed(&record.bytes),
            ..parsed
        })
    }

    /// Finds the documents whose vectors are of the right form, but cannot be sketched, and returns
    /// their numbers with their faults.
    pub fn unsketched_vectors(
        &self,
        documents: &[CorpusDocument<'_>],
    ) -> BTreeMap<u64, BadDocument> {
        let Some(sketcher) = self.settings.content.sketcher_of_vectors() else {
            return BTreeMap::new();
        };
        let fault = |document: &CorpusDocument<'_>| {
            let error = document.content.sketch(&sketcher, false).err()?;
            Some((document.number, BadDocument::new(error.to_string())))
        };
        documents.iter().filter_map(fault).collect()
    }

    /// Returns a page of a WARC file as a line of JSON, and any other record as it is.
    ///
    /// # Errors
    ///
    /// An error if no text can be extracted.
    pub fn as_line<'a>(
        &self,
        record: &'a CorpusRecord,
    ) -> Result<Cow<'a, CorpusRecord>, BadDocument> {
        #[cfg(feature = "warc")]
        if let Some(archived) = &record.archived {
            let source = self.sources.get(record.source);
            let file = source.map(|source| source.key_path().display().to_string());
            let line = super::warc::line(record, archived, &file.unwrap_or_default())?;
            let lines = CorpusRecord::new(record.source, record.line, line);
            return Ok(Cow::Owned(lines));
        }
        Ok(Cow::Borrowed(record))
    }

    /// Returns the record as it is written: without the parts to leave out of its text. Returns
    /// `None` if nothing remains.
    ///
    /// # Errors
    ///
    /// An error if the text has changed since [`TextTrims::note`] was called.
    pub fn trimmed_record(
        &self,
        record: &CorpusRecord,
    ) -> Result<Option<CorpusRecord>, BadDocument> {
        let Some(trims) = &self.trims else {
            return Ok(None);
        };
        let is_text = |source: &CorpusSource| source.kind == SourceKind::Text;
        let bytes = if self.sources.get(record.source).is_some_and(is_text) {
            let text = form::without_mark(&record.bytes);
            let (mark, _) = record.bytes.split_at(record.bytes.len() - text.len());
            let trimmed = trims.trim(record, columns::utf8(text)?);
            trimmed.map(|text| [mark, text.as_bytes()].concat())
        } else {
            let [field] = self.settings.text_fields.as_slice() else {
                return Err(BadDocument::new("the text is in several fields"));
            };
            trimmed_line(&record.bytes, field, |text| trims.trim(record, text))?
        };
        Ok(bytes.map(|bytes| record.clone().with_bytes(bytes)))
    }

    /// Returns an id prefixed with the path of its source, for ids that other sources have too.
    pub fn key_with_path(&self, source: usize, id: &[u8]) -> Vec<u8> {
        let Some(source) = self.sources.get(source) else {
            return id.to_vec();
        };
        [&*path_bytes(&source.key_path()), b":", id].concat()
    }

    /// Returns a generated key for a document that has none.
    fn made_key<'a>(&self, source: &'a CorpusSource, line: Option<u64>) -> Cow<'a, [u8]> {
        let path = || match source.key_path() {
            Cow::Borrowed(path) => path_bytes(path),
            Cow::Owned(path) => Cow::Owned(path_bytes(&path).into_owned()),
        };
        match line {
            None => path(),
            Some(line) if self.settings.id == IdRule::Line && self.sources.len() == 1 => {
                Cow::Owned(line_name(source, line).into_bytes())
            }
            Some(line) => {
                let line = line_name(source, line);
                Cow::Owned([&*path(), b":", line.as_bytes()].concat())
            }
        }
    }
}

/// Returns the number of a line or row for printing.
fn line_name(source: &CorpusSource, line: u64) -> String {
    match source.kind {
        SourceKind::Sqlite => line.cast_signed().to_string(),
        // NumPy counts rows from 0.
        SourceKind::Npy => line.saturating_sub(1).to_string(),
        _ => line.to_string(),
    }
}

/// Returns the corpus of a single named file.
fn named_file(path: &Path, settings: &CorpusSettings) -> Result<CorpusSource, CorpusError> {
    let kind = form::of_argument(path, settings);
    let origin = SourceOrigin::Path(path.to_path_buf());
    let is_empty = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == 0);
    Ok(match is_empty && kind.is_columnar() {
        true => CorpusSource::found(Err(form::empty(kind)), origin, file_name(path)?),
        false => CorpusSource::new(kind, origin, file_name(path)?),
    })
}

/// Leaves out the text files of a folder that contains tables of columns or arrays, because they
/// describe the data set and are not part of it. Returns a note about it.
fn pass_over_texts(
    root: &Path,
    sources: &mut Vec<CorpusSource>,
    settings: &CorpusSettings,
) -> Option<String> {
    let is_set = sources
        .iter()
        .any(|source| source.kind.is_columnar() || source.kind == SourceKind::Npy);
    if settings.kind.is_some() || !is_set {
        return None;
    }
    let all = sources.len();
    sources.retain(|source| source.kind != SourceKind::Text || source.problem.is_some());
    let left_out = all - sources.len();
    (left_out > 0).then(|| {
        format!(
            "skipped files beside the tables of {}: {left_out}",
            root.display()
        )
    })
}

fn file_name(path: &Path) -> Result<&OsStr, CorpusError> {
    let name = path.file_name();
    name.ok_or_else(|| CorpusError::bad(format!("{} has no file name", path.display())))
}
