//! One line of JSON: a key, a text or what stands in its place, and what is kept beside them.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::bad_document::BadDocument;
use super::content::{self, CONTENT_FIELDS, Content};
use super::fields::{self, Few, FieldPath};
use super::form;
use super::settings::{CorpusSettings, IdRule};

/// What stands in a line.
#[derive(Debug, PartialEq)]
pub(crate) struct LineFields<'a> {
    /// `None` where the line has no id, and one is to be made.
    pub(crate) key: Option<Cow<'a, [u8]>>,
    pub(crate) content: Content<'a>,
    /// `None` where no field is asked for it.
    pub(crate) stamp: Option<u64>,
    pub(crate) payload: Cow<'a, [u8]>,
    /// `None` where no field is asked for it, or it is null or missing.
    pub(crate) score: Option<f64>,
}

impl LineFields<'_> {
    /// The same with memory of its own.
    pub(crate) fn into_owned(self) -> LineFields<'static> {
        LineFields {
            key: self.key.map(|key| key.into_owned().into()),
            content: self.content.into_owned(),
            stamp: self.stamp,
            payload: self.payload.into_owned().into(),
            score: self.score,
        }
    }
}

/// The bytes as UTF-8.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, BadDocument> {
    std::str::from_utf8(bytes).map_err(|error| {
        let position = error.valid_up_to() + 1;
        BadDocument::new(format!("invalid UTF-8 at byte {position}"))
    })
}

/// The fields that the settings ask for.
pub(crate) fn paths(settings: &CorpusSettings) -> Few<&str> {
    let others = [
        settings.id.field(),
        settings.stamp_field.as_ref(),
        settings.payload_field.as_ref(),
        settings.score_field.as_ref(),
    ];
    let texts = settings
        .text_fields
        .iter()
        .filter(|_| settings.content.takes_texts);
    let mut paths: Few<&str> = texts
        .chain(others.into_iter().flatten())
        .map(FieldPath::name)
        .collect();
    paths.extend(CONTENT_FIELDS);
    paths
}

/// The fields of a line, with or without its line end.
pub(crate) fn parse<'a>(
    line: &'a [u8],
    settings: &CorpusSettings,
) -> Result<LineFields<'a>, BadDocument> {
    let json = utf8(line)?;
    if !json.trim_ascii_start().starts_with('{') {
        return Err(form::not_an_object(json));
    }
    let id = settings.id.field();
    let paths = paths(settings);
    let found = fields::find(json, &paths).map_err(|error| describe(&error))?;
    let named = |name: &str| {
        let index = paths.iter().position(|known| *known == name);
        index.and_then(|index| found.get(index).copied().flatten())
    };
    let value = |path: &FieldPath| named(path.name());
    let content = match join_texts(settings, value)? {
        Some(text) => Content::Text(text),
        None => {
            let content = content::parse(&settings.content, CONTENT_FIELDS.map(named))?;
            content.ok_or_else(|| without_content(settings, json))?
        }
    };
    let key = match id.map(|path| (path, value(path))) {
        None => None,
        Some((path, Some(value))) => parse_key(path, value, &settings.id)?,
        Some((path, None)) if settings.id.is_required() => {
            return Err(missing(path, json, "--id"));
        }
        Some((_, None)) => None,
    };
    let stamp = match &settings.stamp_field {
        Some(path) => match value(path) {
            Some(value) if settings.needs_stamp || value.get() != "null" => {
                Some(parse_stamp(path, value)?)
            }
            None if settings.needs_stamp => return Err(missing(path, json, "--stamp-field")),
            _ => None,
        },
        None => None,
    };
    let payload = settings.payload_field.as_ref().and_then(value);
    let score = settings
        .score_field
        .as_ref()
        .and_then(|path| parse_score(path, value(path)?).transpose());
    Ok(LineFields {
        key,
        content,
        stamp,
        // A document without the field has an empty payload.
        payload: payload.map(parse_payload).transpose()?.unwrap_or_default(),
        score: score.transpose()?,
    })
}

/// A number; `None` for null.
fn parse_score(path: &FieldPath, value: &RawValue) -> Result<Option<f64>, BadDocument> {
    match (value.get(), value.get().parse()) {
        ("null", _) => Ok(None),
        (_, Ok(score)) if fields::kind(value) == "a number" => Ok(Some(score)),
        _ => {
            let (name, found) = (path.name(), fields::kind(value));
            Err(BadDocument::new(format!(
                "field {name:?} is {found}, expected a number"
            )))
        }
    }
}

/// The parser's sentence without its own line number, which is always 1.
fn describe(error: &serde_json::Error) -> BadDocument {
    let text = error.to_string();
    let reason = match text.rsplit_once(" at line ") {
        Some((sentence, _)) => format!("{sentence} (column {})", error.column()),
        None => text,
    };
    BadDocument::new(reason)
}

fn missing(path: &FieldPath, json: &str, option: &str) -> BadDocument {
    let bad = BadDocument::new(format!("field {:?} is missing", path.name()));
    match fields::names(json).as_slice() {
        [] => bad,
        names => {
            let names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
            let listed = names.join(", ");
            bad.with_advice(format!("its fields are {listed}: name one with {option}"))
        }
    }
}

/// The text, if there is one: where several fields are asked for, those that are there, with a line between
/// them.
fn join_texts<'a>(
    settings: &CorpusSettings,
    value: impl Fn(&FieldPath) -> Option<&'a RawValue>,
) -> Result<Option<Cow<'a, str>>, BadDocument> {
    if !settings.content.takes_texts {
        return Ok(None);
    }
    let is_one = settings.text_fields.len() == 1;
    let mut joined: Option<Cow<'_, str>> = None;
    for path in &settings.text_fields {
        let found = value(path).filter(|value| is_one || value.get() != "null");
        let Some(found) = found else {
            continue;
        };
        let text = parse_text(path, found)?;
        joined = Some(match joined {
            None => text,
            Some(before) => format!("{before}\n{text}").into(),
        });
    }
    Ok(joined)
}

/// A line that has nothing to make a signature of.
fn without_content(settings: &CorpusSettings, json: &str) -> BadDocument {
    let rule = &settings.content;
    match settings.text_fields.first() {
        Some(first) if rule.takes_texts => missing(first, json, "--text-field"),
        _ => {
            let names: Vec<_> = fields::names(json)
                .iter()
                .map(|name| format!("{name:?}"))
                .collect();
            let (names, expected) = (names.join(", "), rule.expected());
            BadDocument::new(format!(
                "found the fields {names}, expected {expected}: the schema has no rule for texts"
            ))
        }
    }
}

fn parse_text<'a>(path: &FieldPath, value: &'a RawValue) -> Result<Cow<'a, str>, BadDocument> {
    let wrong = |found: &str| {
        let name = path.name();
        BadDocument::new(format!("field {name:?} is {found}, expected a string"))
    };
    match fields::string(value) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(wrong(fields::kind(value))),
        Err(found) => Err(wrong(found)),
    }
}

/// A string gives its bytes, a number its decimal text as written. Null is no id, where one may be
/// missing.
fn parse_key<'a>(
    path: &FieldPath,
    value: &'a RawValue,
    rule: &IdRule,
) -> Result<Option<Cow<'a, [u8]>>, BadDocument> {
    let wrong = |found: &str| {
        let name = path.name();
        BadDocument::new(format!(
            "field {name:?} is {found}, expected a string or a number"
        ))
    };
    let json = value.get();
    match fields::string(value) {
        Ok(Some(Cow::Borrowed(text))) => Ok(Some(text.as_bytes().into())),
        Ok(Some(Cow::Owned(text))) => Ok(Some(text.into_bytes().into())),
        Ok(None) if json.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
            Ok(Some(json.as_bytes().into()))
        }
        Ok(None) if json == "null" && !rule.is_required() => Ok(None),
        Ok(None) => Err(wrong(fields::kind(value))),
        Err(found) => Err(wrong(found)),
    }
}

/// A string gives its bytes, null nothing, any other value its JSON as written.
fn parse_payload(value: &RawValue) -> Result<Cow<'_, [u8]>, BadDocument> {
    let text = fields::string(value)
        .map_err(|found| BadDocument::new(format!("the field for the payload is {found}")))?;
    Ok(match text {
        Some(Cow::Borrowed(text)) => text.as_bytes().into(),
        Some(Cow::Owned(text)) => text.into_bytes().into(),
        None if value.get() == "null" => Cow::default(),
        None => value.get().as_bytes().into(),
    })
}

/// A time as RFC 3339 writes it, such as `2026-01-31T08:00:00Z`, in seconds since 1970; `None` for
/// any other text, and for earlier times.
pub fn parse_time(text: &str) -> Option<u64> {
    let time: Timestamp = text.parse().ok()?;
    u64::try_from(time.as_second()).ok()
}

/// The integer or the time in this field.
fn parse_stamp(path: &FieldPath, value: &RawValue) -> Result<u64, BadDocument> {
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
