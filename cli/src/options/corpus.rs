//! The options for how documents are found in a corpus, and which of their values are stored.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use glob::Pattern;
use resemblance_corpus::{CorpusSettings, FieldPath, IdRule, SourceKind, patterns};

use super::common::parse_positive_size;
use crate::failure::{Failure, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormOption {
    /// JSON Lines
    Lines,
    /// Each file is one text
    Files,
    /// Comma-separated values; the first row has the column names
    Csv,
    /// Tab-separated values; the first row has the column names
    Tsv,
    /// Parquet
    Parquet,
    /// Arrow IPC, files and streams
    Arrow,
    /// A table of a SQLite database
    Sqlite,
    /// Pages in WARC and WET files of web crawlers
    Warc,
    /// Rows of an array of NumPy, each of which is a vector
    Npy,
}

/// How documents are found in a corpus.
#[derive(Debug, Args)]
#[command(next_help_heading = "Corpus")]
pub(crate) struct CorpusOptions {
    /// Source of the keys: a field or column such as id or meta.id, line (the line number), or path (path:line)
    /// [default: the field id; path:line for documents without it]. The path is used as you give it, so use the same
    /// path each time. The text of a number is its key: 1.0 and 1 are different keys (pandas writes integers as 1.0 if
    /// the column has a null)
    #[arg(long, value_name = "FIELD|line|path")]
    id: Option<String>,
    /// Field or column that holds the key; unlike with --id, line and path are names of fields
    #[arg(long, value_name = "FIELD", conflicts_with = "id")]
    id_field: Option<FieldPath>,
    /// Fields or columns that hold the text, such as text, meta.text or title,body. Several are joined; a document may
    /// lack some of them
    #[arg(
        long,
        value_name = "FIELDS",
        value_delimiter = ',',
        default_value = "text"
    )]
    text_field: Vec<FieldPath>,
    /// Field or column that holds the vector, where documents have vectors: an array or a list of numbers, or a text such
    /// as "[0.5, 2]"
    #[arg(long, value_name = "FIELD", default_value = "vector")]
    vector_field: FieldPath,
    /// Read all files in this form [default: detect Parquet, Arrow, SQLite, WARC and NumPy by their content, and CSV, TSV
    /// and WARC by their names; other files are JSON Lines, and in folders JSON Lines or one text each, depending on their content]
    #[arg(long = "as", value_name = "FORM")]
    form: Option<FormOption>,
    /// The table or view to read from SQLite databases [default: the only table]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// In folders, read only files whose relative path matches, such as '*.txt' (* also matches /); may be given
    /// several times
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// In folders, skip files whose relative path matches; may be given several times
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Separator of CSV values, such as ';', '|' or '\t' [default: ,]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_separator)]
    separator: Option<u8>,
    /// Column names for CSV and TSV files, such as id,text,url; the first row is then a document
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// In folders, also read files and folders whose names begin with a dot
    #[arg(long)]
    hidden: bool,
    /// Maximum length of a line or text; a longer one is a bad document. Processing a document takes about three times
    /// its length in memory
    #[arg(long, value_name = "SIZE", value_parser = parse_positive_size, default_value = "256M")]
    max_line: u64,
    /// Skip unreadable files and folders, and the rest of a damaged file, instead of stopping at the first. They are
    /// listed at the end, and the exit code is 2
    #[arg(long)]
    pub(crate) skip_unreadable: bool,
    /// Skip and count bad documents and dangling links instead of stopping at the first. The verb still fails if more
    /// than half of the documents are bad, or if a file cannot be read or decompressed (unless --skip-unreadable is
    /// given)
    #[arg(long)]
    pub(crate) skip_bad: bool,
}

impl CorpusOptions {
    /// Returns the settings for reading a corpus, as far as these options have them.
    pub(crate) fn settings(&self) -> Result<CorpusSettings> {
        let id = self.id_rule()?;
        if id.field().is_some_and(|id| self.text_field.contains(id)) {
            return Err(Failure::usage(
                "--id and --text-field must be different fields",
            ));
        }
        if id.field() == Some(&self.vector_field) {
            return Err(Failure::usage(
                "--id and --vector-field must be different fields",
            ));
        }
        let kind = self.form.map(|form| match form {
            FormOption::Lines => SourceKind::Lines,
            FormOption::Files => SourceKind::Text,
            FormOption::Csv => SourceKind::Csv,
            FormOption::Tsv => SourceKind::Tsv,
            FormOption::Parquet => SourceKind::Parquet,
            FormOption::Arrow => SourceKind::Arrow,
            FormOption::Sqlite => SourceKind::Sqlite,
            FormOption::Warc => SourceKind::Warc,
            FormOption::Npy => SourceKind::Npy,
        });
        let mut settings = CorpusSettings::default();
        settings.id = id;
        settings.text_fields = self.text_field.clone();
        settings.vector_field = self.vector_field.clone();
        settings.table = self.table.clone();
        settings.kind = kind;
        settings.separator = self.separator;
        settings.columns = self.columns.clone();
        settings.include = globs("--include", &self.include)?;
        settings.exclude = globs("--exclude", &self.exclude)?;
        settings.hidden = self.hidden;
        settings.max_line_bytes = self.max_line;
        Ok(settings)
    }

    /// Bytes of the longest line or text.
    pub(crate) fn max_line_bytes(&self) -> u64 {
        self.max_line
    }

    fn id_rule(&self) -> Result<IdRule> {
        if let Some(field) = &self.id_field {
            return Ok(IdRule::Field(field.clone()));
        }
        match self.id.as_deref() {
            None => Ok(CorpusSettings::default().id),
            Some("line") => Ok(IdRule::Line),
            Some("path") => Ok(IdRule::Path),
            Some(field) => FieldPath::from_str(field)
                .map(IdRule::Field)
                .map_err(|reason| Failure::usage(format!("--id: {reason}"))),
        }
    }
}

/// The patterns of an option.
fn globs(option: &str, given: &[String]) -> Result<Vec<Pattern>> {
    let mut globs = Vec::new();
    for text in given {
        globs.extend(patterns(text).map_err(|error| {
            Failure::usage(format!(
                "{option}: found {text:?}, which is not a pattern: {}",
                error.msg
            ))
        })?);
    }
    Ok(globs)
}

/// One character of ASCII that can separate values.
fn parse_separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err("expected one ASCII character, such as ; or |, or \\t".into()),
    }
}

/// The stamp and payload that are stored with each document of a corpus.
#[derive(Debug, Args)]
#[command(next_help_heading = "Corpus")]
pub(crate) struct StoredOptions {
    /// Stamp of the documents: now (seconds since 1970), a number, or a time such as 2026-01-31T08:00:00Z, 2026-01-31
    /// 10:00, 2026-01-31 or a date of HTTP; UTC unless the time has an offset [default: 0]
    #[arg(long, value_name = "now|N|TIME", value_parser = parse_stamp, conflicts_with = "stamp_field")]
    stamp: Option<u64>,
    /// JSON field that holds the stamp: a number of at least 0, or a time such as "2026-01-31T08:00:00Z" or
    /// "2026-01-31" [default: stamp, for documents that have it]
    #[arg(long, value_name = "FIELD")]
    stamp_field: Option<FieldPath>,
    /// JSON field to store as the payload: a string as its bytes, any other value as JSON
    #[arg(long, value_name = "FIELD", default_value = "payload")]
    payload_field: FieldPath,
}

impl StoredOptions {
    /// Asks the corpus for the values to store.
    pub(crate) fn extend(&self, mut settings: CorpusSettings) -> CorpusSettings {
        // A stamp that is given is that of all documents.
        let own = self.stamp.is_none().then(|| FieldPath::from_name("stamp"));
        settings.stamp = self.stamp.unwrap_or(settings.stamp);
        settings.stamp_field = self.stamp_field.clone().or(own);
        settings.needs_stamp = self.stamp_field.is_some();
        settings.payload_field = Some(self.payload_field.clone());
        settings
    }
}

/// A stamp: `now`, a number, or a time.
pub(crate) fn parse_stamp(text: &str) -> Result<u64, String> {
    if text == "now" {
        return Ok(now());
    }
    resemblance_corpus::parse_stamp(text).ok_or_else(|| {
        "expected now, a number, or a time such as 2026-01-31T08:00:00Z or 2026-01-31".into()
    })
}

/// The stamp before which documents are old: a stamp, or as long ago as `14d`. A month has 30 days
/// here, and a year 365.
pub(crate) fn parse_age(text: &str) -> Result<u64, String> {
    let units = [
        ("s", 1),
        ("m", 60),
        ("h", 3_600),
        ("d", 86_400),
        ("w", 604_800),
        ("mo", 30 * 86_400),
        ("y", 365 * 86_400),
    ];
    let age = units.iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(*seconds)
    });
    match age {
        // A time before 1970 counts as 0.
        Some(age) => Ok(now().saturating_sub(age)),
        None => parse_stamp(text).map_err(|_| {
            "expected an age such as 14d (s, m, h, d, w, mo, y), a stamp, or a time such \
             as 2026-01-31T08:00:00Z"
                .into()
        }),
    }
}

pub(crate) fn now() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_ages_parse_from_text() {
        assert_eq!(parse_stamp("17"), Ok(17));
        assert_eq!(parse_stamp("1970-01-02T00:00:00Z"), Ok(86_400));
        assert_eq!(parse_age("Fri, 02 Jan 1970 00:00:00 GMT"), Ok(86_400));
        assert!(parse_stamp("now").is_ok_and(|now| now > 1_700_000_000));
        assert_eq!(parse_age("17"), Ok(17));
        assert_eq!(parse_age("99999999999w"), Ok(0));
        let week = parse_age("1w").unwrap();
        assert!(now() - 604_800 - week <= 1);
        let months = parse_age("1y").unwrap() + 335 * 86_400 - parse_age("1mo").unwrap();
        assert!(months <= 1, "{months}");
        for wrong in ["", "-1", "d", "14 d", "14years", "yesterday"] {
            assert!(parse_stamp(wrong).is_err(), "{wrong}");
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }
}
