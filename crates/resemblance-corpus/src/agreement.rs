//! Checks that the sources of a corpus can be written to one file, and that their rows can get
//! additional columns.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::bad_document::BadDocument;
use super::changes::{line_must_not_have, taken};
use super::columns;
use super::documents::Corpus;
use super::error::CorpusError;
use super::reader::CorpusRecords;
use super::record::CorpusRecord;
use super::settings::SourceKind;
use super::source::CorpusSource;
#[cfg(feature = "tables")]
use super::tables::{TableColumns, TableFile};

/// Returns why the sources cannot be written to one file, or `None` if they can: all must be of one
/// kind, and tables must have the same columns and metadata. The reason names two sources that
/// disagree. Sources that can be read only once are not checked.
///
/// # Errors
///
/// An error if a source cannot be read.
pub fn not_for_one_file(corpus: &Corpus) -> Result<Option<String>, CorpusError> {
    let mut sources = corpus
        .sources
        .iter()
        .filter(|source| source.problem.is_none());
    let Some(first) = sources.next() else {
        return Ok(None);
    };
    for other in sources {
        if other.kind.written_as() != first.kind.written_as() {
            let kinds = format!("{} and {}", first.kind.name(), other.kind.name());
            return Ok(Some(apart(first, other, &format!("are {kinds}"))));
        }
    }
    match first.kind {
        #[cfg(feature = "tables")]
        SourceKind::Parquet | SourceKind::Arrow => {
            let columns = |source: &CorpusSource| table_columns(source).map(Some);
            different_columns(corpus, columns, TableColumns::difference)
        }
        SourceKind::Csv | SourceKind::Tsv => {
            let columns = |source: &CorpusSource| {
                let (records, _) = first_record(corpus, source)?;
                Ok(records.header(0).and_then(|header| header.names.clone()))
            };
            different_columns(corpus, columns, |a, b| a.difference(b))
        }
        _ => Ok(None),
    }
}

/// Returns why the rows of the sources cannot get fields or columns with these names, or `None` if
/// they can. They cannot if the first row of a source has one of the names, or if a source is a
/// single text. Sources that can be read only once are not checked.
///
/// # Errors
///
/// An error if a source cannot be read.
pub fn not_for_more_columns(
    corpus: &Corpus,
    names: &[&str],
) -> Result<Option<String>, CorpusError> {
    for source in at_hand(corpus) {
        match reason_against(corpus, source, names) {
            Ok(None) => {}
            Ok(Some(bad)) => {
                return Ok(Some(format!("{}: {}", source.name().display(), bad.reason)));
            }
            Err(error) => corpus.settings.pass_over(error)?,
        }
    }
    Ok(None)
}

/// Returns why the rows of a source cannot get fields or columns with these names.
fn reason_against(
    corpus: &Corpus,
    source: &CorpusSource,
    names: &[&str],
) -> Result<Option<BadDocument>, CorpusError> {
    Ok(match source.kind {
        SourceKind::Text => Some(BadDocument::new(
            "a text without fields: only JSON Lines and tables can get more",
        )),
        #[cfg(feature = "tables")]
        SourceKind::Parquet | SourceKind::Arrow => {
            let columns = table_columns(source)?;
            let found = names.iter().find(|name| columns.has(name));
            found.map(|name| taken(name))
        }
        #[cfg(feature = "sqlite")]
        SourceKind::Sqlite => {
            let columns = super::sqlite::column_names(source, &corpus.settings)?;
            let is_there = |name: &&&str| columns.iter().any(|column| column == **name);
            names.iter().find(is_there).map(|name| taken(name))
        }
        // Opening a source that this build cannot read is an error.
        _ => {
            let (records, first) = first_record(corpus, source)?;
            let header = records.header(0).and_then(|header| header.names.as_ref());
            match (header, &first) {
                (Some(header), _) => {
                    let found = names.iter().find(|name| header.has(name));
                    found.map(|name| taken(name))
                }
                // Any other fault is reported when the source is read.
                (None, Some(record)) => columns::utf8(&record.bytes)
                    .ok()
                    .filter(|json| line_must_not_have(json, &[]).is_ok())
                    .and_then(|json| line_must_not_have(json, names).err()),
                (None, None) => None,
            }
        }
    })
}

fn apart(first: &CorpusSource, other: &CorpusSource, what: &str) -> String {
    let (first, other) = (first.name(), other.name());
    let names = format!("{} and {}", first.display(), other.display());
    format!("{names} {what}, and cannot be written to one file: -o FOLDER writes a file for each")
}

/// Returns the sources that can be read more than once.
fn at_hand(corpus: &Corpus) -> impl Iterator<Item = &CorpusSource> {
    let sources = corpus.sources.iter();
    sources.filter(|source| source.problem.is_none() && source.is_rereadable())
}

#[cfg(feature = "tables")]
fn table_columns(source: &CorpusSource) -> Result<TableColumns, CorpusError> {
    TableColumns::of(&TableFile::open(source, u64::MAX)?)
}

/// Returns the names of two sources with different columns, and the difference.
fn different_columns<T>(
    corpus: &Corpus,
    columns_of: impl Fn(&CorpusSource) -> Result<Option<T>, CorpusError>,
    difference: impl Fn(&T, &T) -> Option<String>,
) -> Result<Option<String>, CorpusError> {
    let mut first = None;
    for source in at_hand(corpus) {
        let columns = match columns_of(source) {
            Ok(Some(columns)) => columns,
            Ok(None) => continue,
            Err(error) => {
                corpus.settings.pass_over(error)?;
                continue;
            }
        };
        match &first {
            None => first = Some((source, columns)),
            Some((known, expected)) => {
                if let Some(difference) = difference(expected, &columns) {
                    return Ok(Some(apart(known, source, &format!("have {difference}"))));
                }
            }
        }
    }
    Ok(None)
}

/// Returns the first record of a source, and its reader, which has passed the header, if there is
/// one.
fn first_record(
    corpus: &Corpus,
    source: &CorpusSource,
) -> Result<(CorpusRecords, Option<CorpusRecord>), CorpusError> {
    let alone = Corpus {
        sources: vec![source.clone()],
        settings: corpus.settings.clone(),
        notes: Vec::new(),
        trims: None,
        left: Arc::default(),
        passed_over: Arc::default(),
    };
    let mut records = CorpusRecords::new(Arc::new(alone), Arc::new(AtomicU64::new(0)));
    let first = records.next().transpose()?;
    Ok((records, first))
}
