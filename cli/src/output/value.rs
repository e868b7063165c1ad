//! Columns of results, and their values.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use itertools::Itertools as _;
use resemblance::exact::SharedPassage;
use resemblance::schema::VectorSchema;
use resemblance::{DocumentId, Fingerprint, Overlap, Schema};

use super::escape;
use crate::failure::Result;
use resemblance::invariant::bug;

/// The kind of a column, for forms that have types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// A document: its number and its key.
    Document,
    /// A string.
    Text,
    /// An integer from 0 on.
    Count,
    /// A number.
    Number,
}

/// A column, whose name is also the field's name in jsonl.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(super) name: &'static str,
    /// False for fields that only jsonl and Parquet show.
    pub(super) is_shown: bool,
    #[cfg_attr(
        not(feature = "tables"),
        expect(
            dead_code,
            reason = "Parquet alone has types, which such a build has not"
        )
    )]
    pub(super) kind: ColumnKind,
}

impl Column {
    /// Columns by their names, which have spaces between them.
    pub(crate) fn list(names: &'static str) -> Vec<Self> {
        names.split_whitespace().map(Self::new).collect()
    }

    pub(crate) fn new(name: &'static str) -> Self {
        Self::of(name, ColumnKind::Text)
    }

    /// One that has a type in Parquet, too.
    pub(crate) fn of(name: &'static str, kind: ColumnKind) -> Self {
        Self {
            name,
            is_shown: true,
            kind,
        }
    }

    /// A field that other forms show only if `is_shown`.
    pub(crate) fn shown_if(self, is_shown: bool) -> Self {
        Self { is_shown, ..self }
    }
}

/// One field of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// A document: its key, or its number where it has none; jsonl has both.
    Document {
        id: u64,
        key: Option<&'a [u8]>,
    },
    /// A key that belongs to no stored document.
    Key(&'a [u8]),
    /// A document without a key, by its number.
    NoKey(u64),
    Text(&'a str),
    /// A text, or nothing.
    OptionalText(Option<&'a str>),
    Count(u64),
    /// The stamp of a document, whose digits are never grouped.
    Stamp(u64),
    /// A place in a text, in bytes, or a length; `None` without one.
    Position(Option<usize>),
    Number(f64),
    /// A number that may be very small or large: four significant digits.
    Significant(f64),
    Similarity(Option<f64>),
    Distance(Option<u32>),
    /// MinHash values, separated by commas.
    Values(Option<&'a [u32]>),
    /// Hashes of 64 bits, 16 hexadecimal digits each, separated by commas.
    Hashes(&'a [u64]),
    /// The components of a vector, separated by commas.
    Vector(Option<&'a [f32]>),
    /// A fingerprint in hexadecimal: all digits that its number of bits has.
    Fingerprint(Option<Fingerprint>),
    /// Bytes in hexadecimal.
    Bytes(&'a [u8]),
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Formats a value, or returns an empty string where there is none.
fn shown(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

impl<'a> Value<'a> {
    /// Returns a stored document and its key, if it has one.
    pub(crate) fn document(id: DocumentId, key: Option<&'a [u8]>) -> Self {
        Self::Document { id: id.get(), key }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(
            self,
            Self::Count(_)
                | Self::Stamp(_)
                | Self::Position(_)
                | Self::Number(_)
                | Self::Significant(_)
                | Self::Similarity(_)
                | Self::Distance(_)
        )
    }

    /// Returns the value as JSON: null where it is missing, or where it is a key outside UTF-8.
    pub(super) fn json(&self) -> serde_json::Value {
        match *self {
            Self::Document { key: None, .. } | Self::NoKey(_) => serde_json::Value::Null,
            Self::Document { key: Some(key), .. } | Self::Key(key) => {
                std::str::from_utf8(key).ok().into()
            }
            Self::Text(text) => text.into(),
            Self::OptionalText(text) => text.into(),
            Self::Count(count) | Self::Stamp(count) => count.into(),
            Self::Position(position) => position.into(),
            Self::Number(value) | Self::Significant(value) => value.into(),
            Self::Similarity(value) => value.into(),
            Self::Distance(value) => value.into(),
            Self::Values(values) => values.into(),
            Self::Hashes(hashes) => hashes.iter().map(|hash| format!("{hash:016x}")).collect(),
            Self::Vector(vector) => vector
                .map(|vector| vector.iter().map(|it| shortest(*it)).collect::<Vec<f64>>())
                .into(),
            Self::Fingerprint(value) => value.map(|value| value.to_string()).into(),
            Self::Bytes(bytes) => hexadecimal(bytes).into(),
        }
    }

    /// The fields of a column in JSON: a document, and one without a key, has its number, too, and a key
    /// outside UTF-8 has its bytes.
    pub(crate) fn json_fields(
        &self,
        name: &str,
    ) -> impl Iterator<Item = (String, serde_json::Value)> {
        let id = match self {
            Self::Document { id, .. } | Self::NoKey(id) => Some((id_name(name), (*id).into())),
            _ => None,
        };
        let hex = match self {
            Self::Document { key: Some(key), .. } | Self::Key(key) => std::str::from_utf8(key)
                .is_err()
                .then(|| (format!("{name}_hex"), hexadecimal(key).into())),
            _ => None,
        };
        let value = (name.to_owned(), self.json());
        id.into_iter().chain([value]).chain(hex)
    }

    /// Returns the form in tables and tsv: empty for a missing value.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Document { id, key: None } | Self::NoKey(id) => escape::without_key(*id).into(),
            Self::Document { key: Some(key), .. } | Self::Key(key) => escape::key(key),
            Self::Text(text) => escape::key(text.as_bytes()),
            Self::OptionalText(text) => text.map_or("".into(), |text| escape::key(text.as_bytes())),
            Self::Count(count) | Self::Stamp(count) => count.to_string().into(),
            Self::Position(position) => shown(*position).into(),
            Self::Number(value) => format!("{value:.2}").into(),
            Self::Significant(value) => significant(*value).into(),
            Self::Similarity(value) => shown(value.map(|v| format!("{v:.6}"))).into(),
            Self::Distance(value) => shown(*value).into(),
            Self::Values(values) => shown(values.map(|v| v.iter().join(","))).into(),
            Self::Hashes(hashes) => {
                let texts = hashes.iter().map(|hash| format!("{hash:016x}"));
                texts.collect::<Vec<_>>().join(",").into()
            }
            Self::Vector(vector) => shown(vector.map(|it| it.iter().join(","))).into(),
            Self::Fingerprint(value) => shown(*value).into(),
            Self::Bytes(bytes) => hexadecimal(bytes).into(),
        }
    }
}

impl Value<'_> {
    /// Returns the form for csv and for fields of records, which have their own rules for unusual
    /// characters. A text, and a key in UTF-8, is unchanged.
    pub(crate) fn unescaped(&self) -> Cow<'_, str> {
        match self {
            Self::Document { key: Some(key), .. } | Self::Key(key) => escape::string(key),
            Self::Text(text) | Self::OptionalText(Some(text)) => Cow::Borrowed(*text),
            _ => self.text(),
        }
    }
}

/// Returns the name of the field with the number of a document, beside that of its key.
pub(crate) fn id_name(key_name: &str) -> String {
    match key_name.contains("key") {
        true => key_name.replacen("key", "id", 1),
        false => format!("{key_name}_id"),
    }
}

/// Returns the number of 64 bits with the digits that identify one of 32 bits.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

/// Four significant digits, with an exponent where zeros would be many.
fn significant(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".into(),
        0.001..10_000.0 => {
            let whole_digits = size.log10().floor() as i32;
            let decimals = (3 - whole_digits).max(0) as usize;
            format!("{value:.decimals$}")
        }
        10_000.0..1e9 => format!("{value:.0}"),
        _ => format!("{value:.3e}"),
    }
}

/// Returns the columns with the similarity and distance of two documents; `similarity` names the
/// first.
pub(crate) fn nearness_columns(schema: &Schema, similarity: &'static str) -> [Column; 2] {
    [
        Column::of(similarity, ColumnKind::Number).shown_if(schema.minhash().is_some()),
        Column::of("distance", ColumnKind::Count).shown_if(schema.simhash().is_some()),
    ]
}

/// Returns the column with the Euclidean distance of vectors.
pub(crate) fn euclidean_column() -> Column {
    Column::of("euclidean_distance", ColumnKind::Number)
}

/// Returns the Euclidean distance at which vectors have this similarity.
pub(crate) fn euclidean_distance(vector: VectorSchema, similarity: Option<f64>) -> Value<'static> {
    let distance = similarity.map(|similarity| vector.distance_at(similarity));
    // An estimate may be 0, which vectors at no distance have.
    Value::Similarity(distance.filter(|distance| distance.is_finite()))
}

/// The longest passage that a document shares with a text that was just read, whose order is known.
pub(crate) fn longest_run(overlap: &Overlap) -> Result<u64> {
    let run = overlap.longest_run();
    Ok(run.ok_or_else(|| bug("a text without the order of its shingles"))?)
}

/// The length of a passage in shingles, and where it begins and ends in both texts; nothing where it is not known.
pub(crate) fn passage_positions(passage: Option<&SharedPassage>) -> [Option<usize>; 5] {
    let Some(SharedPassage { a, b, shingles, .. }) = passage else {
        return [None; 5];
    };
    [*shingles, a.start, a.end, b.start, b.end].map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_with_four_digits() {
        let cases = [
            (0.0, "0"),
            (0.999_64, "0.9996"),
            (0.000_36, "3.600e-4"),
            (-0.0475, "-0.04750"),
            (47.5, "47.50"),
            (12_345.6, "12346"),
            (1e12, "1.000e12"),
            (f64::NAN, "NaN"),
        ];
        for (value, text) in cases {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn every_value_prints_as_text_and_as_json() {
        let cases = [
            (Value::Text("a\nb"), "a\\nb", "\"a\\nb\""),
            (
                Value::Text("\u{7f}\u{9b}\u{202e}\u{1b}"),
                "\\x7F\\xC2\\x9B\\xE2\\x80\\xAE\\x1B",
                "\"\\u007f\\u009b\\u202e\\u001b\"",
            ),
            (Value::Count(7), "7", "7"),
            (Value::Position(Some(7)), "7", "7"),
            (Value::Position(None), "", "null"),
            (Value::Number(1.5), "1.50", "1.5"),
            (Value::Similarity(Some(1.0)), "1.000000", "1.0"),
            (Value::Similarity(None), "", "null"),
            (Value::Distance(Some(3)), "3", "3"),
            (Value::Values(Some(&[1, 2])), "1,2", "[1,2]"),
            (
                Value::Hashes(&[1, u64::MAX]),
                "0000000000000001,ffffffffffffffff",
                "[\"0000000000000001\",\"ffffffffffffffff\"]",
            ),
            (Value::Hashes(&[]), "", "[]"),
            (Value::Vector(Some(&[0.1, -2.0])), "0.1,-2", "[0.1,-2.0]"),
            (
                Value::Fingerprint(Some(255_u64.into())),
                "00000000000000ff",
                "\"00000000000000ff\"",
            ),
            (Value::Bytes(b"\x01\xff"), "01ff", "\"01ff\""),
        ];
        for (value, text, json) in cases {
            assert_eq!(value.text(), text);
            assert_eq!(escape::json(&value.json().to_string()), json);
        }
    }
}
