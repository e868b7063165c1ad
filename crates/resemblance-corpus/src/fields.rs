//! Names of JSON fields, and the search for their values in a line.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use smallvec::{SmallVec, smallvec};

/// Names or values of fields. A line is rarely asked for more, so they need no allocation.
pub(crate) type Few<T> = SmallVec<[T; 12]>;

/// The maximum number of fields of a line that a message names.
const MAX_NAMED: usize = 12;

/// The maximum length of a line whose names are listed. The parser's objects take many times its
/// length.
const MAX_NAMED_BYTES: usize = 1 << 20;

/// The name of a field, or the path to one in nested objects, with dots: `meta.id`. A field whose
/// name itself contains the dots takes precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    /// Creates the path for a field name, which may contain dots.
    pub fn from_name(name: &str) -> Self {
        Self(name.into())
    }

    /// The name as it was given.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl FromStr for FieldPath {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name.is_empty() {
            return Err("expected the name of a field".into());
        }
        Ok(Self::from_name(name))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the values of some fields in a JSON object, in the order of `paths`; `None` for a
/// missing field.
pub(crate) fn find<'a>(
    json: &'a str,
    paths: &[&str],
) -> serde_json::Result<Few<Option<&'a RawValue>>> {
    // At this level, a path is a name or begins with one.
    let mut names: Few<&str> = Few::new();
    for path in paths {
        for name in [Some(*path), path.split_once('.').map(|(first, _)| first)] {
            names.extend(name.filter(|name| !names.contains(name)));
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let values = NamedValues(&names).deserialize(&mut deserializer)?;
    deserializer.end()?;
    let named = |name: &str| *values.get(names.iter().position(|known| *known == name)?)?;
    let value = |path: &&str| {
        if let Some(value) = named(path) {
            return Ok(Some(value));
        }
        let split = path.split_once('.');
        match split.and_then(|(first, rest)| Some((named(first)?.get(), rest))) {
            Some((value, rest)) if value.starts_with('{') => {
                Ok(find(value, &[rest])?.pop().flatten())
            }
            _ => Ok(None),
        }
    };
    paths.iter().map(value).collect()
}

/// Returns the names of the fields of an object and its nested objects, for messages. Fields with
/// strings come first.
pub(crate) fn names(json: &str) -> Vec<String> {
    if json.len() > MAX_NAMED_BYTES {
        return Vec::new();
    }
    let Ok(serde_json::Value::Object(object)) = serde_json::from_str(json) else {
        return Vec::new();
    };
    let mut texts = Vec::new();
    let mut others = Vec::new();
    for (name, value) in &object {
        match value {
            serde_json::Value::String(_) => texts.push(name.clone()),
            serde_json::Value::Object(nested) => {
                others.extend(nested.keys().map(|inner| format!("{name}.{inner}")));
            }
            _ => others.push(name.clone()),
        }
    }
    texts.extend(others);
    texts.truncate(MAX_NAMED);
    texts
}

/// Returns the name of a JSON value's type for a message.
pub(crate) fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes() {
        [b'"', ..] => "a string",
        [b'-' | b'0'..=b'9', ..] => "a number",
        [b'{', ..] => "an object",
        [b'[', ..] => "an array",
        [b'n', ..] => "null",
        _ => "true or false",
    }
}

/// The error of [`string`] for escapes that are not valid Unicode.
pub(crate) const NOT_UNICODE: &str = "not valid Unicode";

/// Returns the text of a JSON string, borrowed if it has no escapes. For another value, the error
/// is the name of its type.
pub(crate) fn string(value: &RawValue) -> Result<Cow<'_, str>, &'static str> {
    let json = value.get();
    let quoted = json
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let inner = quoted.ok_or_else(|| kind(value))?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Ok(inner.into());
    }
    Ok(unescaped(inner).ok_or(NOT_UNICODE)?.into())
}

/// Unescapes a string in which the parser has found no fault. Returns `None` for half of a
/// surrogate pair, which the parser accepts.
fn unescaped(inner: &str) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(position) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at_checked(position)?;
        text.push_str(before);
        let mut characters = escape.chars();
        let character = match characters.by_ref().nth(1)? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (character, after) = utf16_character(characters.as_str())?;
                characters = after.chars();
                character
            }
            itself => itself,
        };
        text.push(character);
        rest = characters.as_str();
    }
    text.push_str(rest);
    Some(text)
}

/// Returns the character whose code units begin after the first `\u`, and the rest of the escape.
fn utf16_character(escape: &str) -> Option<(char, &str)> {
    let unit = |escape: &str| u16::from_str_radix(escape.get(..4)?, 16).ok();
    let (first, rest) = (unit(escape)?, escape.get(4..)?);
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, rest));
    }
    let second = rest.strip_prefix("\\u")?;
    let character = char::decode_utf16([first, unit(second)?]).next()?.ok()?;
    Some((character, second.get(4..)?))
}

struct NamedValues<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for NamedValues<'_> {
    type Value = Few<Option<&'de RawValue>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NamedValues<'_> {
    type Value = Few<Option<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values: Self::Value = smallvec![None; self.0.len()];
        while let Some(index) = map.next_key_seed(NameIndex(self.0))? {
            let Some(slot) = index.and_then(|index| values.get_mut(index)) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value: &RawValue = map.next_value()?;
            if slot.replace(value).is_some() {
                let name = index.and_then(|index| self.0.get(index)).unwrap_or(&"");
                return Err(A::Error::custom(format!("field {name:?} occurs twice")));
            }
        }
        Ok(values)
    }
}

/// Finds the index of a field's name among these names.
struct NameIndex<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for NameIndex<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for NameIndex<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|known| *known == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_fields_are_found_and_dots_in_names_come_first() {
        let json = r#"{"a.b": 1, "a": {"b": 2, "c": {"d": 3}}, "e": [4], "f": "x"}"#;
        let found: Vec<_> = find(json, &["a.b", "a.c.d", "a.c", "e.0", "f", "g.h"])
            .unwrap()
            .iter()
            .map(|value| value.map(RawValue::get))
            .collect();
        assert_eq!(
            found,
            [
                Some("1"),
                Some("3"),
                Some(r#"{"d": 3}"#),
                None,
                Some("\"x\""),
                None
            ]
        );
        assert!(find(r#"{"a": {"b": 1, "b": 2}}"#, &["a.b"]).is_err());
        assert_eq!(names(json), ["f", "a.b", "a.c", "a.b", "e"]);
    }

    #[test]
    fn strings_are_unescaped_as_serde_does() {
        let pieces = [
            "plain",
            "\u{e9}\u{1f600}",
            r"\n",
            r"\t\r",
            r"\b\f",
            r"\/",
            r"\\",
            r#"\""#,
            r"\u00e9",
            r"\u0000",
            r"\uFFFF",
            r"\ud83d\ude00",
            r"\ud83d",
            r"\ude00",
            r"\ud83d\ud83d",
            r"\ud83d\n",
        ];
        for (a, b, c) in itertools::iproduct!(pieces, pieces, pieces) {
            let json = format!(r#"{{"a": "{a}{b}{c}"}}"#);
            let found = find(&json, &["a"]).unwrap().pop().flatten().unwrap();
            let expected = serde_json::from_str::<String>(found.get());
            let text = string(found).map(Cow::into_owned);
            assert_eq!(text.ok(), expected.ok(), "{json}");
        }
    }
}
