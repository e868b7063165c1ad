//! Whether the sources of a corpus can be written to one file.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::documents::Corpus;
use super::error::CorpusError;
use super::reader::CorpusRecords;
use super::settings::SourceKind;
use super::source::CorpusSource;
use super::tables::{TableColumns, TableFile};

/// Why the sources cannot go into one file: they do if all are of one kind, and tables among them have the
/// same columns. It names two that do not go together. What cannot be read twice is not looked at.
///
/// # Errors
///
/// A source cannot be read.
pub fn not_for_one_file(corpus: &Corpus) -> Result<Option<String>, CorpusError> {
    let mut sources = corpus
        .sources
        .iter()
        .filter(|source| source.problem.is_none());
    let Some(first) = sources.next() else {
        return Ok(None);
    };
    for other in sources {
        if other.kind != first.kind {
            let kinds = format!("{} and {}", first.kind.name(), other.kind.name());
            return Ok(Some(apart(first, other, &format!("are {kinds}"))));
        }
    }
    if first.kind.is_columnar() {
        same_tables(corpus)
    } else if matches!(first.kind, SourceKind::Csv | SourceKind::Tsv) {
        same_headers(corpus)
    } else {
        Ok(None)
    }
}

fn apart(first: &CorpusSource, other: &CorpusSource, what: &str) -> String {
    let (first, other) = (first.name(), other.name());
    let names = format!("{} and {}", first.display(), other.display());
    format!("{names} {what}, and cannot go into one file; a folder after -o gets a file for each")
}

/// Sources that can be read now and again.
fn at_hand(corpus: &Corpus) -> impl Iterator<Item = &CorpusSource> {
    let sources = corpus.sources.iter();
    sources.filter(|source| source.problem.is_none() && source.is_rereadable())
}

fn same_tables(corpus: &Corpus) -> Result<Option<String>, CorpusError> {
    let mut first: Option<(&CorpusSource, TableColumns)> = None;
    for source in at_hand(corpus) {
        let columns = TableColumns::of(&TableFile::open(source)?)?;
        match &first {
            None => first = Some((source, columns)),
            Some((known, expected)) if *expected != columns => {
                return Ok(Some(apart(known, source, "have different columns")));
            }
            Some(_) => {}
        }
    }
    Ok(None)
}

fn same_headers(corpus: &Corpus) -> Result<Option<String>, CorpusError> {
    let mut first = None;
    for source in at_hand(corpus) {
        let alone = Corpus {
            sources: vec![source.clone()],
            settings: corpus.settings.clone(),
            notes: Vec::new(),
            trims: None,
        };
        let mut records = CorpusRecords::new(Arc::new(alone), Arc::new(AtomicU64::new(0)));
        // The first record is behind the header, if there is one.
        records.next().transpose()?;
        let Some(names) = records.header(0).and_then(|header| header.names.clone()) else {
            continue;
        };
        match &first {
            None => first = Some((source, names)),
            Some((known, expected)) if !names.agree_with(expected) => {
                return Ok(Some(apart(known, source, "have different columns")));
            }
            Some(_) => {}
        }
    }
    Ok(None)
}
