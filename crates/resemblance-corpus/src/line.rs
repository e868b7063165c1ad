//! Parses one line of JSON as a document.

use std::borrow::Cow;

use itertools::Itertools;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use serde_json::value::RawValue;

use super::bad_document::BadDocument;
use super::columns;
use super::content::{self, CONTENT_FIELDS, Content};
use super::fields::{self, FieldPath};
use super::form;
use super::record::CorpusDocument;
use super::score;
use super::settings::{CorpusSettings, IdRule};

/// Returns the document of a line, with or without its line end. `make_key` provides a key if the
/// document has no id.
pub(crate) fn parse<'a, 'k: 'a>(
    line: &'a [u8],
    settings: &CorpusSettings,
    make_key: impl FnOnce() -> Cow<'k, [u8]>,
) -> Result<CorpusDocument<'a>, BadDocument> {
    let json = columns::utf8(line)?;
    if !json.trim_ascii_start().starts_with('{') {
        return Err(form::not_an_object(json));
    }
    let paths = columns::paths(settings);
    let found = fields::find(json, &paths).map_err(|error| describe(json, &error))?;
    let named = |name: &str| *found.get(paths.iter().position(|known| *known == name)?)?;
    let given = |path: Option<&'_ FieldPath>| path.and_then(|path| named(path.name()));
    let content = content_of(settings, json, named)?;
    let id = settings.id.field();
    let own_key = match (id, given(id)) {
        (Some(path), Some(value)) => parse_key(path, value, &settings.id)?,
        (Some(path), None) if settings.id.is_required() => {
            return Err(missing(path, json, "--id"));
        }
        _ => None,
    };
    let stamp_field = settings.stamp_field.as_ref();
    let stamp = match (stamp_field, given(stamp_field)) {
        (Some(path), Some(value)) if settings.needs_stamp || value.get() != "null" => {
            stamp_in(path, value)?
        }
        (Some(path), None) if settings.needs_stamp => {
            return Err(missing(path, json, "--stamp-field"));
        }
        _ => settings.stamp,
    };
    let payload = match given(settings.payload_field.as_ref()) {
        Some(value) => parse_payload(value)?,
        None => Cow::default(),
    };
    let position_field = settings.position_field.as_ref();
    let position = match (position_field, given(position_field)) {
        (Some(path), Some(value)) => key_of(path.name(), value)?
            .ok_or_else(|| BadDocument::field(path.name(), "null", KEY_EXPECTED))?,
        (Some(path), None) => return Err(missing(path, json, "--position")),
        _ => Cow::default(),
    };
    let score_field = settings.score_field.as_ref();
    Ok(CorpusDocument {
        record: Cow::default(),
        number: 0,
        has_own_id: own_key.is_some(),
        key: match own_key {
            Some(key) => key,
            None => make_key(),
        },
        content,
        stamp,
        payload,
        position,
        score: match (score_field, given(score_field)) {
            (Some(path), Some(value)) => score::number_in(path, value)?,
            _ => None,
        },
        is_emptied: false,
    })
}

/// Returns the content of a line: a text, a vector, both, or what replaces a text.
fn content_of<'a>(
    settings: &CorpusSettings,
    json: &str,
    named: impl Fn(&str) -> Option<&'a RawValue>,
) -> Result<Content<'a>, BadDocument> {
    let text = join_texts(settings, |path| named(path.name()))?;
    Ok(match (text, settings.vectors()) {
        (None, Some(_)) if settings.content.takes_texts => {
            return Err(without_content(settings, json));
        }
        (text, Some((path, schema))) => {
            let value = named(path.name()).ok_or_else(|| missing(path, json, "--vector-field"))?;
            let numbers = content::parse_vector(path.name(), &schema, value)?;
            Content::Vector { text, numbers }
        }
        (Some(text), None) => Content::Text(text),
        (None, None) => content::parse(&settings.content, CONTENT_FIELDS.map(&named))?
            .ok_or_else(|| without_content(settings, json))?,
    })
}

/// Returns the parser's message without its line number, which is always 1.
fn describe(json: &str, error: &serde_json::Error) -> BadDocument {
    let text = error.to_string();
    let sentence = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(sentence, _)| sentence);
    let reason = match sentence {
        _ if error.is_eof() => "the line ends inside a JSON object".to_owned(),
        "trailing characters" => "more text follows the JSON object on its line".to_owned(),
        sentence => format!("not JSON: {sentence}"),
    };
    // The parser counts columns from 1, and returns 0 if it has read nothing.
    let bad = BadDocument::new(format!("{reason} (column {})", error.column().max(1)));
    // An object that is laid out on several lines ends each of them so.
    let continues = error.is_eof() && json.trim_ascii_end().ends_with(['{', '[', ',']);
    match continues {
        true => bad
            .with_advice("an object must be on one line: jq -c . FILE > FILE.jsonl converts them")
            .with_advice(form::AS_FILES),
        false => bad,
    }
}

fn missing(path: &FieldPath, json: &str, option: &str) -> BadDocument {
    let bad = BadDocument::new(format!("field {:?} is missing", path.name()));
    match fields::names(json).as_slice() {
        [] => bad,
        names => bad.with_advice(format!(
            "its fields are {:?}: name one with {option}",
            names.iter().format(", ")
        )),
    }
}

/// Returns the text, if there is one. If several fields are requested, joins those that exist with
/// an empty line between them.
fn join_texts<'a>(
    settings: &CorpusSettings,
    value: impl Fn(&FieldPath) -> Option<&'a RawValue>,
) -> Result<Option<Cow<'a, str>>, BadDocument> {
    let is_one = settings.text_fields.len() == 1;
    let mut joined: Option<Cow<'_, str>> = None;
    for path in settings.taken_texts() {
        if let Some(found) = value(path).filter(|value| is_one || value.get() != "null") {
            let text = fields::string(found).map_err(|found| BadDocument {
                lacks_text: found == "null",
                ..BadDocument::field(path.name(), found, "a string")
            })?;
            joined = Some(match joined {
                None => text,
                Some(before) => format!("{before}\n{text}").into(),
            });
        }
    }
    Ok(joined)
}

/// Creates the error for a line without content for a signature.
fn without_content(settings: &CorpusSettings, json: &str) -> BadDocument {
    match settings.taken_texts().first() {
        Some(first) => BadDocument {
            lacks_text: true,
            ..missing(first, json, "--text-field")
        },
        None => BadDocument::new(format!(
            "found the fields {:?}, expected {}: the schema has no rule for texts",
            fields::names(json).iter().format(", "),
            settings.content.expected()
        )),
    }
}

fn bytes_of(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => text.as_bytes().into(),
        Cow::Owned(text) => text.into_bytes().into(),
    }
}

/// Returns the bytes of a string, or the decimal text of a number as written. Null counts as a
/// missing id, if ids may be missing.
fn parse_key<'a>(
    path: &FieldPath,
    value: &'a RawValue,
    rule: &IdRule,
) -> Result<Option<Cow<'a, [u8]>>, BadDocument> {
    match key_of(path.name(), value)? {
        None if rule.is_required() => Err(BadDocument::field(path.name(), "null", KEY_EXPECTED)),
        key => Ok(key),
    }
}

const KEY_EXPECTED: &str = "a string or a number";

/// Returns the key that a value represents, or nothing for null.
pub(crate) fn key_of<'a>(
    name: &str,
    value: &'a RawValue,
) -> Result<Option<Cow<'a, [u8]>>, BadDocument> {
    match fields::string(value) {
        Ok(text) => Ok(Some(bytes_of(text))),
        Err("a number") => Ok(Some(value.get().as_bytes().into())),
        Err("null") => Ok(None),
        Err(found) => Err(BadDocument::field(name, found, KEY_EXPECTED)),
    }
}

/// A string becomes its bytes, null becomes empty, and any other value its JSON as written.
fn parse_payload(value: &RawValue) -> Result<Cow<'_, [u8]>, BadDocument> {
    match fields::string(value) {
        Ok(text) => Ok(bytes_of(text)),
        Err("null") => Ok(Cow::default()),
        Err(fields::NOT_UNICODE) => {
            let found = fields::NOT_UNICODE;
            Err(BadDocument::new(format!(
                "the field for the payload is {found}"
            )))
        }
        Err(_) => Ok(value.get().as_bytes().into()),
    }
}

/// The obsolete forms of dates that HTTP still accepts, those of RFC 850 and of `asctime`.
const OLD_HTTP_DATES: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"];

/// Parses a stamp: a nonnegative number, whose fraction is dropped, or a time, which becomes
/// seconds since 1970. A time has the form `2026-01-31T08:00:00Z`, or another offset from UTC. A
/// time without an offset and a date alone are in UTC. The dates of HTTP and of mail are times too:
/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, whose years are 1969 to 2068,
/// and `Sun Nov  6 08:49:37 1994`. Returns `None` for any other text, for times before 1970, and
/// for a date with the wrong day of the week.
pub fn parse_stamp(text: &str) -> Option<u64> {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    if let Some(number) = text.parse().ok().filter(|_| is_number) {
        return Some(number);
    }
    let of_fraction = |number: f64| {
        let is_in = (0.0..u64::MAX as f64).contains(&number);
        is_in.then_some(number as u64)
    };
    if let Some(number) = text.parse().ok().filter(|_| is_number) {
        return of_fraction(number);
    }
    let of_mail = || rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    let of_old_http = || {
        let mut forms = OLD_HTTP_DATES.into_iter();
        forms.find_map(|form| DateTime::strptime(form, text).ok())
    };
    let without_offset = || {
        let time = text.parse().ok().or_else(of_old_http)?;
        TimeZone::UTC.to_timestamp(time).ok()
    };
    let time: Option<Timestamp> = text.parse().ok();
    let known = time.or_else(of_mail).or_else(without_offset)?;
    u64::try_from(known.as_second()).ok()
}

/// Formats the time of a stamp in UTC as RFC 3339 specifies. Returns `None` beyond the year 9999.
pub fn time_of_stamp(seconds: u64) -> Option<String> {
    let time = Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    Some(time.to_string())
}

/// Returns the number or the time in this field.
fn stamp_in(path: &FieldPath, value: &RawValue) -> Result<u64, BadDocument> {
    let wrong = |found: &str| {
        let expected =
            "a number of at least 0, or a time such as \"2026-01-31T08:00:00Z\" or \"2026-01-31\"";
        BadDocument::field(path.name(), found, expected)
    };
    let text = match fields::kind(value) {
        "a number" => value.get().into(),
        _ => fields::string(value).map_err(wrong)?,
    };
    parse_stamp(&text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        wrong(&format!("{shown:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_since_1970() {
        assert_eq!(time_of_stamp(14).as_deref(), Some("1970-01-01T00:00:14Z"));
        assert_eq!(time_of_stamp(u64::MAX), None);
        for (text, stamp) in [
            ("17", 17),
            ("1769900000.5", 1_769_900_000),
            ("1.7699e9", 1_769_900_000),
            ("18446744073709551615", u64::MAX),
            ("1970-01-01T00:00:01Z", 1),
            ("1970-01-02", 86_400),
            ("2024-02-29T12:00:00+02:00", 1_709_200_800),
            ("2024-02-29 12:00:00+02:00", 1_709_200_800),
            ("2024-02-29T10:00:00.5Z", 1_709_200_800),
            ("2024-02-29T10:00:00", 1_709_200_800),
            ("2024-02-29 10:00:00", 1_709_200_800),
            ("2024-02-29 10:00", 1_709_200_800),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Sun Nov 16 08:49:37 2003", 1_068_972_577),
            ("Sun, 06 Nov 1994 09:49:37 +0100", 784_111_777),
            ("Monday, 06-Nov-34 08:49:37 GMT", 2_046_415_777),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ] {
            assert_eq!(parse_stamp(text), Some(stamp), "{text}");
        }
        for wrong in [
            "",
            "yesterday",
            "1969-12-31T23:59:59Z",
            "2024-02-30T00:00:00Z",
            "1969-12-31",
            "-1",
            "-0.5",
            "nan",
            "inf",
            "+5",
            "1e300",
            "2024-02-30 10:00",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Monday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 Nov 1994",
            "Sunday, 06-Nov-94 08:49:37 CET",
            "Sun Nov 31 08:49:37 1994",
            "Wed, 31 Dec 1969 23:59:59 GMT",
        ] {
            assert_eq!(parse_stamp(wrong), None, "{wrong}");
        }
    }
}
