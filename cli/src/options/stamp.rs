//! Stamps on the command line, and what is stored beside the signatures of documents.

use std::time::{Duration, SystemTime};

use clap::Args;

use resemblance_corpus::{CorpusSettings, FieldPath, parse_time};

/// What is stored with each document of a corpus beside its key and signature.
#[derive(Debug, Args)]
#[command(next_help_heading = "Corpus")]
pub(crate) struct StoredOptions {
    /// Stamp of the documents: now (seconds since 1970), a number, or a time such as
    /// 2026-01-31T08:00:00Z [default: 0]
    #[arg(long, value_name = "now|N|TIME", value_parser = parse_stamp, conflicts_with = "stamp_field")]
    stamp: Option<u64>,
    /// JSON field that holds the stamp: an integer from 0 on, or a time such as
    /// "2026-01-31T08:00:00Z" [default: stamp, for documents that have it]
    #[arg(long, value_name = "FIELD")]
    stamp_field: Option<FieldPath>,
    /// JSON field that is stored as the payload: the bytes of a string, or the JSON of another value
    #[arg(long, value_name = "FIELD", default_value = "payload")]
    payload_field: FieldPath,
}

impl StoredOptions {
    /// Asks the corpus for what is to be stored.
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
    let stamp = text.parse().ok().or_else(|| parse_time(text));
    stamp.ok_or_else(|| "expected now, a number, or a time such as 2026-01-31T08:00:00Z".into())
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
        // What is older than all time is nothing.
        Some(age) => Ok(now().saturating_sub(age)),
        None => parse_stamp(text).map_err(|_| {
            "expected an age such as 14d (s, m, h, d, w), a stamp, or a time such as \
             2026-01-31T08:00:00Z"
                .into()
        }),
    }
}

fn now() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_and_ages() {
        assert_eq!(parse_stamp("17"), Ok(17));
        assert_eq!(parse_stamp("1970-01-02T00:00:00Z"), Ok(86_400));
        assert!(parse_stamp("now").is_ok_and(|now| now > 1_700_000_000));
        assert_eq!(parse_age("17"), Ok(17));
        assert_eq!(parse_age("99999999999w"), Ok(0));
        let week = parse_age("1w").unwrap();
        assert!(now() - 604_800 - week <= 1);
        for wrong in ["", "-1", "1.5", "d", "14 d", "14y", "yesterday"] {
            assert!(parse_stamp(wrong).is_err(), "{wrong}");
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }
}
