//! Reads documents from files as the command-line tool does.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use resemblance_corpus::{
    BadDocument, Content, CorpusEntry, CorpusError, CorpusReader, CorpusSettings, FieldPath,
    IdRule, SourceKind,
};

use crate::batches::BATCH_DOCUMENTS;
use crate::errors::invalid;
use crate::keys::Key;
use crate::python::class;
use crate::waiting::{Home, Stop, in_background, lock};

/// The number of bytes of text that are read at once.
const BATCH_BYTES: usize = 8 << 20;

/// Returns the stamp of a text as the command-line tool reads it: a number of at least 0, or a time
/// such as `2026-01-31T08:00:00Z`, `2026-01-31` or `Sun, 06 Nov 1994 08:49:37 GMT`, in seconds since
/// 1970.
#[pyfunction]
pub(crate) fn parse_stamp(py: Python<'_>, text: &str) -> PyResult<u64> {
    let stamp = resemblance_corpus::parse_stamp(text);
    let expected = "a number of at least 0, or a time from 1970 on, such as 2026-01-31T08:00:00Z";
    stamp.ok_or_else(|| invalid(py, "text", text, expected))
}

/// The documents of files, some at a time: a list of texts, and one of their keys.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct CorpusFiles {
    reading: Arc<Mutex<Reading>>,
    home: Home,
}

/// The reader, and the error that ended it, if any.
struct Reading {
    reader: CorpusReader,
    skips_nulls: bool,
    /// True if the texts are to be HTML.
    are_html: bool,
    failure: Option<ReadFailure>,
}

enum ReadFailure {
    Reader(CorpusError),
    Document(String, BadDocument),
}

/// Texts, `None` for one that is missing and skipped, and their keys.
type FileBatch = (Vec<Option<String>>, Vec<Option<Key>>);

#[pymethods]
impl CorpusFiles {
    /// Checks every path. Without the name of a field for keys, keys consist of paths and line
    /// numbers.
    #[new]
    #[pyo3(signature = (paths, text, key, *, table=None, skip_nulls=false, html=false))]
    fn create(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        text: &str,
        key: Option<&str>,
        table: Option<String>,
        skip_nulls: bool,
        html: bool,
    ) -> PyResult<Self> {
        if key == Some(text) {
            return Err(invalid(
                py,
                "key",
                format!("{text:?}"),
                "another field than that of the text",
            ));
        }
        let field = FieldPath::from_name;
        let mut settings = CorpusSettings::default();
        settings.id = match key {
            Some("id") => IdRule::FieldOrPath(field("id")),
            Some(key) => IdRule::Field(field(key)),
            None => IdRule::Path,
        };
        settings.text_fields = vec![field(text)];
        settings.table = table;
        let opened = in_background(py, None, move |_| Ok(CorpusReader::open(&paths, settings)))?;
        Ok(Self {
            reading: Arc::new(Mutex::new(Reading {
                reader: opened.map_err(|error| corpus_error(py, &error))?,
                skips_nulls: skip_nulls,
                are_html: html,
                failure: None,
            })),
            home: Home::here(),
        })
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<FileBatch>> {
        self.home.check(py)?;
        let reading = Arc::clone(&self.reading);
        // A pipe may keep the reader waiting.
        let read = in_background(py, None, move |link| Ok(lock(&reading).batch(&link.stop)))?;
        match read {
            Ok(batch) => Ok(batch),
            Err(ReadFailure::Reader(error)) => Err(corpus_error(py, &error)),
            Err(ReadFailure::Document(place, bad)) => Err(bad_document(&place, &bad)),
        }
    }
}

impl Reading {
    /// Returns the next documents, or `None` after the last. A failure is returned after the
    /// documents before it.
    fn batch(&mut self, stop: &Stop) -> Result<Option<FileBatch>, ReadFailure> {
        let (mut texts, mut keys, mut bytes) = (Vec::new(), Vec::new(), 0);
        while self.failure.is_none()
            && texts.len() < BATCH_DOCUMENTS
            && bytes < BATCH_BYTES
            && !stop.is_set()
        {
            match self.reader.next() {
                None => break,
                Some(Err(error)) => self.failure = Some(ReadFailure::Reader(error)),
                Some(Ok(entry)) => match self.document(entry) {
                    Ok((text, key)) => {
                        bytes += text.as_ref().map_or(0, String::len);
                        texts.push(text);
                        keys.push(key);
                    }
                    Err(failure) => self.failure = Some(failure),
                },
            }
        }
        match self.failure.take_if(|_| texts.is_empty()) {
            Some(failure) => Err(failure),
            None => Ok((!texts.is_empty()).then_some((texts, keys))),
        }
    }

    fn document(&self, entry: CorpusEntry) -> Result<(Option<String>, Option<Key>), ReadFailure> {
        let bad = match entry.document {
            Ok(document) => match document.content {
                Content::Text(text) => {
                    let key = Key(document.key.into_owned());
                    let text = match self.are_html && entry.kind == SourceKind::Warc {
                        true => as_html(&text),
                        false => text.into_owned(),
                    };
                    return Ok((Some(text), Some(key)));
                }
                _ => BadDocument::new("features or a signature, expected a text"),
            },
            Err(bad) if bad.lacks_text && self.skips_nulls => return Ok((None, None)),
            Err(bad) => bad,
        };
        Err(ReadFailure::Document(entry.place, bad))
    }
}

/// Returns HTML with this text, which the reader of WARC has taken out of a page.
fn as_html(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    escaped.replace('\n', "<br>")
}

/// Parameters that replace options of the tool.
const PARAMETERS: [(&str, &str); 3] = [
    ("--text-field", "text="),
    ("--id", "key="),
    ("--table", "table= of read_files"),
];

/// Replaces options by parameters in a sentence of the tool.
fn with_parameters(sentence: &str) -> String {
    let named =
        |sentence: String, (option, parameter): &(&str, &str)| sentence.replace(option, parameter);
    PARAMETERS.iter().fold(sentence.to_owned(), named)
}

/// Returns the exception for a bad document, as the tool reports it. Advice about other options is
/// left out.
fn bad_document(place: &str, bad: &BadDocument) -> PyErr {
    let advised = bad.advice.iter().map(|advice| with_parameters(advice));
    let mut message = format!("{place}: {bad}");
    for advice in advised.filter(|advice| !advice.contains("--")) {
        message += &format!("; {advice}");
    }
    PyValueError::new_err(message)
}

fn corpus_error(py: Python<'_>, error: &CorpusError) -> PyErr {
    let sentence = with_parameters(&error.to_string());
    let message = match sentence.split_once(", which is not part of this build") {
        Some((cause, _)) => format!(
            "{cause}, which this package does not have: download it and name the file, or use the command-line tool"
        ),
        None => sentence,
    };
    let name = match error {
        CorpusError::Bad { .. } => return PyValueError::new_err(message),
        CorpusError::Io { .. } if error.is_missing() => "NotFoundError",
        _ => "StoreIOError",
    };
    match class(py, "errors", name).and_then(|class| class.call1((message,))) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}
