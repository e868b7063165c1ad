//! The options for how documents are found in a corpus, and which of their values are stored.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use resemblance_corpus::{CorpusSettings, FieldPath, IdRule, SourceKind};

use super::common::parse_size;
use crate::failure::{Failure, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormOption {
    /// JSON Lines
    Lines,
    /// One text in each file
    Files,
    /// Comma-separated values, whose first row names the columns
    Csv,
    /// The same, separated by tabs
    Tsv,
    /// Parquet
    Parquet,
    /// Arrow IPC, files and streams
    Arrow,
    /// A table of a SQLite database
    Sqlite,
}

/// How documents are found in a corpus.
#[derive(Debug, Args)]
#[command(next_help_heading = "Corpus")]
pub(crate) struct CorpusOptions {
    /// Where keys come from: a field or column such as id or meta.id, line (the number of the line), or path
    /// (path:line) [default: the field id, and path:line for documents without it]. The path is as it is given, so
    /// give a file by the same path each time. A number is its text: 1.0 and 1 are different keys (a null makes pandas
    /// write integers as 1.0)
    #[arg(long, value_name = "FIELD|line|path")]
    id: Option<String>,
    /// Field or column that holds the key, even if it is called line or path
    #[arg(long, value_name = "FIELD", conflicts_with = "id")]
    id_field: Option<FieldPath>,
    /// Fields or columns that hold the text, such as text, meta.text or title,body; of several, those that
    /// a document has
    #[arg(
        long,
        value_name = "FIELDS",
        value_delimiter = ',',
        default_value = "text"
    )]
    text_field: Vec<FieldPath>,
    /// Read all files as JSON Lines, as tables, or each as one text [default: Parquet, Arrow and SQLite by their
    /// content, CSV and TSV by their names, other files of folders by their content, others as JSON Lines]
    #[arg(long = "as", value_name = "FORM")]
    form: Option<FormOption>,
    /// The table or view that is read of SQLite databases [default: the only table]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// In folders, only files whose relative path matches, such as '*.txt' (* also matches /);
    /// may be given several times
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,
    /// In folders, no files whose relative path matches; may be given several times
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// The character between the values of CSV, such as ';', '|' or '\t' [default: ,]
    #[arg(long, value_name = "CHARACTER", value_parser = parse_separator)]
    separator: Option<u8>,
    /// The names of the columns of CSV and TSV files, such as id,text,url, whose first row then is a document
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// In folders, also names that begin with a dot
    #[arg(long)]
    hidden: bool,
    /// A longer line or text is a bad document; while a document is worked on, it takes up to some three
    /// times its length
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "256M")]
    max_line: u64,
    /// Skip files and folders that cannot be read, or the rest of a file that is damaged, instead of stopping at the
    /// first. They are named at the end, and the exit code is 2
    #[arg(long)]
    pub(crate) skip_unreadable: bool,
    /// Skip and count bad documents, and links that lead nowhere, instead of stopping at the first. If
    /// more than half are bad, the verb fails all the same, and so it does where a file cannot be
    /// read or decompressed and --skip-unreadable is not given
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
        let kind = self.form.map(|form| match form {
            FormOption::Lines => SourceKind::Lines,
            FormOption::Files => SourceKind::Text,
            FormOption::Csv => SourceKind::Csv,
            FormOption::Tsv => SourceKind::Tsv,
            FormOption::Parquet => SourceKind::Parquet,
            FormOption::Arrow => SourceKind::Arrow,
            FormOption::Sqlite => SourceKind::Sqlite,
        });
        Ok(CorpusSettings {
            id,
            text_fields: self.text_field.clone(),
            table: self.table.clone(),
            kind,
            separator: self.separator,
            columns: self.columns.clone(),
            include: globs("--include", &self.include)?,
            exclude: globs("--exclude", &self.exclude)?,
            hidden: self.hidden,
            max_line_bytes: self.max_line,
            ..CorpusSettings::default()
        })
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

/// The patterns of an option, unless it is not given.
fn globs(option: &str, patterns: &[String]) -> Result<Option<GlobSet>> {
    let failed = |e| Failure::usage(format!("{option}: {e}"));
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern).literal_separator(false).build();
        set.add(glob.map_err(failed)?);
    }
    let is_given = !patterns.is_empty();
    is_given.then(|| set.build().map_err(failed)).transpose()
}

/// One character of ASCII that can separate values.
fn parse_separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err("expected one character of ASCII, such as ; or |, or \\t".into()),
    }
}

/// The stamp and payload that are stored with each document of a corpus.
#[derive(Debug, Args)]
#[command(next_help_heading = "Corpus")]
pub(crate) struct StoredOptions {
    /// Stamp of the documents: now (seconds since 1970), a number, or a time such as
    /// 2026-01-31T08:00:00Z, 2026-01-31 10:00 or 2026-01-31, in UTC unless it says otherwise [default: 0]
    #[arg(long, value_name = "now|N|TIME", value_parser = parse_stamp, conflicts_with = "stamp_field")]
    stamp: Option<u64>,
    /// JSON field that holds the stamp: a number from 0 on, or a time such as
    /// "2026-01-31T08:00:00Z" or "2026-01-31" [default: stamp, for documents that have it]
    #[arg(long, value_name = "FIELD")]
    stamp_field: Option<FieldPath>,
    /// JSON field that is stored as the payload: the bytes of a string, or the JSON of another value
    #[arg(long, value_name = "FIELD", default_value = "payload")]
    payload_field: FieldPath,
}

impl StoredOptions {
    /// Asks the corpus for the values to store.
    pub(crate) fn extend(&self, settings: CorpusSettings) -> CorpusSettings {
        // A stamp that is given is that of all documents.
        let own = self.stamp.is_none().then(|| FieldPath::from_name("stamp"));
        CorpusSettings {
            stamp: self.stamp.unwrap_or(settings.stamp),
            stamp_field: self.stamp_field.clone().or(own),
            needs_stamp: self.stamp_field.is_some(),
            payload_field: Some(self.payload_field.clone()),
            ..settings
        }
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

/// The stamp before which documents are old: a stamp, or as long ago as `14d`.
pub(crate) fn parse_age(text: &str) -> Result<u64, String> {
    let units = [
        ('s', 1),
        ('m', 60),
        ('h', 3_600),
        ('d', 86_400),
        ('w', 604_800),
    ];
    let age = units.iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        count.checked_mul(*seconds)
    });
    match age {
        // A time before 1970 counts as 0.
        Some(age) => Ok(now().saturating_sub(age)),
        None => parse_stamp(text).map_err(|_| {
            "expected an age such as 14d (s, m, h, d, w), a stamp, or a time such as \
             2026-01-31T08:00:00Z"
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
        assert!(parse_stamp("now").is_ok_and(|now| now > 1_700_000_000));
        assert_eq!(parse_age("17"), Ok(17));
        assert_eq!(parse_age("99999999999w"), Ok(0));
        let week = parse_age("1w").unwrap();
        assert!(now() - 604_800 - week <= 1);
        for wrong in ["", "-1", "d", "14 d", "14y", "yesterday"] {
            assert!(parse_stamp(wrong).is_err(), "{wrong}");
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }
}
