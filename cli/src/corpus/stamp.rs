//! Stamps in a line of JSON.

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::bad_document::BadDocument;
use super::fields::{self, FieldPath};

/// A time as RFC 3339 writes it, such as `2026-01-31T08:00:00Z`, in seconds since 1970; `None` for
/// any other text, and for earlier times.
pub fn parse_time(text: &str) -> Option<u64> {
    let time: Timestamp = text.parse().ok()?;
    u64::try_from(time.as_second()).ok()
}

/// The integer or the time in this field.
pub(super) fn parse_json(path: &FieldPath, value: &RawValue) -> Result<u64, BadDocument> {
    let wrong = |found: String| {
        let name = path.name();
        BadDocument::new(format!(
            "field {name:?} is {found}, expected an integer from 0 on or a time such as \
             \"2026-01-31T08:00:00Z\""
        ))
    };
    if let Ok(stamp) = value.get().parse() {
        return Ok(stamp);
    }
    match fields::string(value) {
        Ok(Some(text)) => parse_time(&text).ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            wrong(format!("{shown:?}"))
        }),
        Ok(None) => Err(wrong(fields::kind(value).into())),
        Err(found) => Err(wrong(found.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        assert_eq!(parse_time("1970-01-01T00:00:01Z"), Some(1));
        assert_eq!(parse_time("2024-02-29T12:00:00+02:00"), Some(1_709_200_800));
        assert_eq!(parse_time("2024-02-29T10:00:00.5Z"), Some(1_709_200_800));
        for wrong in [
            "",
            "yesterday",
            "1969-12-31T23:59:59Z",
            "2024-02-30T00:00:00Z",
            "2024",
        ] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }
}
