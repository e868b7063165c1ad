//! One line of JSON: a key and a text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::record::CorpusDocument;
use super::source::CorpusSettings;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The bytes without a byte order mark at their start.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// The bytes as UTF-8.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| {
        let position = error.valid_up_to() + 1;
        format!("invalid UTF-8 at byte {position}")
    })
}

/// The document in a line, with or without its line end.
pub(super) fn parse<'a>(
    line: &'a [u8],
    settings: &CorpusSettings,
) -> Result<CorpusDocument<'a>, String> {
    let line = utf8(line)?;
    match line.trim_ascii_start().as_bytes() {
        [b'{', ..] => {}
        [b'[', ..] => return Err("a JSON array, expected one object a line".into()),
        _ => return Err("not a JSON object; texts are read from a folder".into()),
    }
    let mut deserializer = serde_json::Deserializer::from_str(line);
    DocumentSeed(settings)
        .deserialize(&mut deserializer)
        .and_then(|document| deserializer.end().map(|()| document))
        .map_err(|error| describe(&error))
}

/// The parser's sentence without its own line number, which is always 1.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((sentence, _)) => format!("{sentence} (column {})", error.column()),
        None => text,
    }
}

struct DocumentSeed<'s>(&'s CorpusSettings);

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_> {
    type Value = CorpusDocument<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_> {
    type Value = CorpusDocument<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let CorpusSettings {
            id_field,
            text_field,
            ..
        } = self.0;
        let mut key = None;
        let mut text = None;
        while let Some(field) = map.next_key_seed(FieldSeed(self.0))? {
            match field {
                JsonField::Id => {
                    let value: &RawValue = map.next_value()?;
                    let value = parse_key(value.get()).map_err(|found| {
                        A::Error::custom(format!(
                            "field {id_field:?} is {found}, expected a string or an integer"
                        ))
                    })?;
                    if key.replace(value).is_some() {
                        return Err(A::Error::custom(format!(
                            "field {id_field:?} is there twice"
                        )));
                    }
                }
                JsonField::Text => {
                    let value = map.next_value_seed(TextSeed(text_field))?;
                    if text.replace(value).is_some() {
                        return Err(A::Error::custom(format!(
                            "field {text_field:?} is there twice"
                        )));
                    }
                }
                JsonField::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let missing = |name: &str| A::Error::custom(format!("field {name:?} is missing"));
        Ok(CorpusDocument {
            key: key.ok_or_else(|| missing(id_field))?,
            text: text.ok_or_else(|| missing(text_field))?,
        })
    }
}

/// A string gives its bytes, an integer its decimal text as written.
fn parse_key(json: &str) -> Result<Cow<'_, [u8]>, &'static str> {
    match json.as_bytes() {
        [b'"', ..] => match serde_json::from_str::<String>(json) {
            Ok(key) => Ok(Cow::Owned(key.into_bytes())),
            Err(_) => Err("not valid Unicode"),
        },
        [b'-' | b'0'..=b'9', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => {
            Ok(Cow::Borrowed(json.as_bytes()))
        }
        [b'-' | b'0'..=b'9', ..] => Err("a fraction"),
        [b'{', ..] => Err("an object"),
        [b'[', ..] => Err("an array"),
        [b'n', ..] => Err("null"),
        _ => Err("a truth value"),
    }
}

enum JsonField {
    Id,
    Text,
    Other,
}

struct FieldSeed<'s>(&'s CorpusSettings);

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = JsonField;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonField, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldSeed<'_> {
    type Value = JsonField;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<JsonField, E> {
        Ok(if name == self.0.id_field {
            JsonField::Id
        } else if name == self.0.text_field {
            JsonField::Text
        } else {
            JsonField::Other
        })
    }
}

/// A string, borrowed from the line where it has no escapes.
struct TextSeed<'s>(&'s str);

impl<'de> DeserializeSeed<'de> for TextSeed<'_> {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed<'_> {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string in field {:?}", self.0)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
