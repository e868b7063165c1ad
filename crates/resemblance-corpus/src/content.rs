//! The content of a document: a text, features, a vector, or a signature from another program.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use crate::verification::SketchedText;
use resemblance::schema::{MinHashKind, SketchError, VectorSchema, feature_hash};
use resemblance::{Fingerprint, Schema, Signature, Sketcher, Text};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::bad_document::BadDocument;
use super::fields;
use super::html::HtmlExtractor;

/// The fields that can replace a text.
pub(crate) const CONTENT_FIELDS: [&str; 4] = ["features", "hashes", "weights", "signature"];

/// The maximum weight of a feature, and the maximum of the weight below 0 that some schemas take.
const MAX_WEIGHT: f64 = 65_536.0;

/// The source of a document's signature, or the signature itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A set of features, given by their hashes.
    Hashes(Vec<u64>),
    /// Weighted features, given by their hashes.
    Weighted(Vec<(u64, f64)>),
    /// A vector, with a text beside it if the schema has a rule for texts.
    Vector {
        /// The text.
        text: Option<Cow<'a, str>>,
        /// The numbers, one for each dimension.
        numbers: Vec<f32>,
    },
    /// A signature.
    Signature(Box<Signature>),
}

impl<'a> Content<'a> {
    /// Returns the content without borrowed data.
    pub(crate) fn into_owned(self) -> Content<'static> {
        match self {
            Self::Text(text) => Content::Text(text.into_owned().into()),
            Self::Hashes(hashes) => Content::Hashes(hashes),
            Self::Weighted(weights) => Content::Weighted(weights),
            Self::Vector { text, numbers } => Content::Vector {
                text: text.map(|text| text.into_owned().into()),
                numbers,
            },
            Self::Signature(signature) => Content::Signature(signature),
        }
    }

    /// Returns the content with another text, if it has one.
    pub(crate) fn map_text<E>(
        self,
        change: impl FnOnce(Cow<'a, str>) -> Result<Cow<'a, str>, E>,
    ) -> Result<Self, E> {
        Ok(match self {
            Self::Text(text) => Self::Text(change(text)?),
            Self::Vector { text, numbers } => Self::Vector {
                text: text.map(change).transpose()?,
                numbers,
            },
            other => other,
        })
    }

    /// Returns the signature and, if `with_features`, the features of the document. A document that
    /// is a signature or has a vector has no features.
    ///
    /// # Errors
    ///
    /// The errors of [`Sketcher::text`], [`Sketcher::weighted_hashes`] and [`Sketcher::vector`].
    pub fn sketch(
        &self,
        sketcher: &Sketcher,
        with_features: bool,
    ) -> resemblance::Result<SketchedText> {
        match self {
            Self::Text(text) => SketchedText::new(sketcher, with_features, text),
            Self::Hashes(hashes) => SketchedText::from_hashes(sketcher, with_features, hashes),
            Self::Weighted(weights) => {
                SketchedText::from_weighted_hashes(sketcher, with_features, weights)
            }
            Self::Vector { text, numbers } => Ok(SketchedText {
                signature: match (text, sketcher.beside_vector()) {
                    (Some(text), Some(beside)) => {
                        sketcher.with_vector(beside.text(text)?, numbers)?
                    }
                    _ => sketcher.vector(numbers)?,
                },
                features: Vec::new().into(),
            }),
            Self::Signature(signature) => Ok(SketchedText {
                signature: (**signature).clone(),
                features: Vec::new().into(),
            }),
        }
    }

    /// Returns the hashes of the features in ascending order, without repeats. A document that is a
    /// signature or has a vector has none.
    ///
    /// # Errors
    ///
    /// The errors of [`Sketcher::feature_hashes`].
    pub fn features(&self, sketcher: &Sketcher) -> resemblance::Result<Vec<u64>> {
        match self {
            Self::Text(text) => Ok(sketcher.feature_hashes(text)?),
            other => Ok(other.sketch(sketcher, true)?.features.to_vec()),
        }
    }

    /// Returns the number of characters of a text, or the number of features or dimensions. Returns
    /// 0 for a signature, which does not contain it.
    pub fn length(&self) -> usize {
        match self {
            Self::Text(text)
            | Self::Vector {
                text: Some(text), ..
            } => text.chars().count(),
            Self::Vector { numbers, .. } => numbers.len(),
            Self::Hashes(hashes) => hashes.len(),
            Self::Weighted(weights) => weights.len(),
            Self::Signature(_) => 0,
        }
    }

    /// Returns a hash of the text, the vector, the features with their weights, or the signature. Two
    /// different contents have the same hash with a probability of 2⁻⁶⁴.
    pub fn digest(&self) -> u64 {
        let of_words = |words: &mut dyn Iterator<Item = u64>| {
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            feature_hash(&bytes)
        };
        match self {
            Self::Text(text) => feature_hash(text.as_bytes()),
            Self::Hashes(hashes) => {
                let distinct: BTreeSet<u64> = hashes.iter().copied().collect();
                of_words(&mut distinct.into_iter())
            }
            Self::Weighted(weights) => {
                let pairs = weights
                    .iter()
                    .map(|(hash, weight)| (*hash, weight.to_bits()));
                let sorted: BTreeSet<(u64, u64)> = pairs.collect();
                of_words(&mut sorted.into_iter().flat_map(|(hash, weight)| [hash, weight]))
            }
            Self::Vector { text, numbers } => {
                let text = text.iter().map(|text| feature_hash(text.as_bytes()));
                let bits = numbers.iter().map(|number| u64::from(number.to_bits()));
                of_words(&mut text.chain(bits))
            }
            Self::Signature(signature) => feature_hash(&signature.digest().to_le_bytes()),
        }
    }

    /// The text, if the content is or has one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Vector { text, .. } => text.as_deref(),
            _ => None,
        }
    }
}

/// The kinds of content that a schema accepts.
#[derive(Clone, Debug)]
pub struct ContentRule {
    /// True if texts are accepted.
    pub takes_texts: bool,
    /// True if the fields of texts may also be columns of numbers in a table, as those of a report are.
    pub takes_numbers: bool,
    /// True if features are accepted.
    pub takes_features: bool,
    /// True if signatures from another program are accepted.
    pub takes_signatures: bool,
    /// Extracts text from HTML, if documents are HTML.
    pub html: Option<HtmlExtractor>,
    schema: Option<Schema>,
}

impl Default for ContentRule {
    /// Accepts texts and features.
    fn default() -> Self {
        Self {
            takes_texts: true,
            takes_numbers: false,
            takes_features: true,
            takes_signatures: false,
            html: None,
            schema: None,
        }
    }
}

impl ContentRule {
    /// Accepts texts and features, and in a table columns of numbers as fields of texts.
    #[must_use]
    pub fn with_numbers() -> Self {
        Self {
            takes_numbers: true,
            ..Self::default()
        }
    }

    /// Creates the rule of a schema. If `is_exact`, or the schema is, signatures alone are not accepted,
    /// because exact similarities need features.
    pub fn new(schema: &Schema, is_exact: bool) -> Self {
        let kind = schema.minhash().map(|minhash| minhash.kind());
        let has_vectors = schema.vector().is_some();
        Self {
            takes_texts: schema.text().is_some(),
            takes_numbers: false,
            takes_features: !has_vectors
                && kind.map_or(!schema.has_external_fingerprints(), |kind| {
                    kind != MinHashKind::External
                }),
            takes_signatures: !has_vectors && !is_exact && !schema.is_exact(),
            html: HtmlExtractor::of(schema),
            schema: Some(schema.clone()),
        }
    }

    /// Returns the rules by which texts become shingles, if texts are accepted.
    pub fn recipe(&self) -> Option<Text> {
        self.schema.as_ref().and_then(Schema::text)
    }

    /// Returns this rule for texts in HTML.
    #[must_use]
    pub fn of_html(self) -> Self {
        Self {
            html: Some(HtmlExtractor::CURRENT),
            ..self
        }
    }

    /// Creates a rule that accepts features, and texts as the schema extracts them from HTML. In a
    /// schema with vectors, documents have these.
    pub fn texts_of(schema: &Schema) -> Self {
        if schema.vector().is_some() {
            return Self::new(schema, false);
        }
        Self {
            html: HtmlExtractor::of(schema),
            ..Self::default()
        }
    }

    /// Returns the sketcher of vectors, if documents have vectors.
    pub(crate) fn sketcher_of_vectors(&self) -> Option<Sketcher> {
        let schema = self.schema.as_ref()?;
        schema.vector().map(|_| schema.sketcher())
    }

    /// Returns the schema of the vectors that every document must have, if there is one.
    pub(crate) fn vector(&self) -> Option<VectorSchema> {
        self.schema.as_ref().and_then(Schema::vector)
    }

    /// Returns the minimum weight of a feature. Fingerprints of SimHash alone take negative ones, too.
    fn least_weight(&self) -> f64 {
        let takes_negative = |schema: &Schema| {
            let has_others = schema.minhash().is_some() || schema.containment().is_some();
            schema.simhash().is_some() && !has_others
        };
        match self.schema.as_ref().is_some_and(takes_negative) {
            true => -MAX_WEIGHT,
            false => 0.0,
        }
    }

    /// Returns the fields that may replace a text.
    pub(crate) fn fields(&self) -> &'static [&'static str] {
        let [features @ .., signature] = &CONTENT_FIELDS;
        match (self.takes_features, self.takes_signatures) {
            (true, true) => &CONTENT_FIELDS,
            (true, false) => features,
            (false, true) => std::slice::from_ref(signature),
            (false, false) => &[],
        }
    }

    /// Returns the names of the accepted fields, for a message.
    pub(crate) fn expected(&self) -> &'static str {
        match (self.takes_features, self.takes_signatures) {
            (true, true) => "\"features\", \"hashes\", \"weights\" or \"signature\"",
            (true, false) => "\"features\", \"hashes\" or \"weights\"",
            (false, true) => "\"signature\"",
            (false, false) => "vectors",
        }
    }
}

/// Parses the content of a line without a text, from the values of [`CONTENT_FIELDS`]. Returns
/// `None` if there is none.
pub(crate) fn parse(
    rule: &ContentRule,
    values: [Option<&RawValue>; CONTENT_FIELDS.len()],
) -> Result<Option<Content<'static>>, BadDocument> {
    let is_given = |value: &&RawValue| value.get() != "null";
    let [features, hashes, weights, signature] = values.map(|value| value.filter(is_given));
    let mut named = CONTENT_FIELDS.iter().zip([features, hashes, weights]);
    let first_given = named.find_map(|(name, value)| value.and(Some(name)));
    if let Some(value) = signature {
        if let Some(name) = first_given {
            return Err(both("signature", name));
        }
        if !rule.takes_signatures {
            let bad = BadDocument::field("signature", "there", rule.expected());
            return Err(bad.with_advice(
                "exact similarities need the features, and --verify estimate does not",
            ));
        }
        return parse_signature(rule, value).map(Some);
    }
    let Some(name) = first_given else {
        return Ok(None);
    };
    if !rule.takes_features {
        return Err(BadDocument::field(name, "there", rule.expected()));
    }
    let (name, hashed) = match (features, hashes) {
        (Some(_), Some(_)) => return Err(both("features", "hashes")),
        (Some(features), None) => ("features", parse_features(features)?),
        (None, Some(hashes)) => ("hashes", parse_integers("hashes", hashes, u64::BITS)?),
        (None, None) => {
            let parsed = weights.map(|it| parse_weight_object(it, rule.least_weight()));
            return Ok(parsed.transpose()?.map(Content::Weighted));
        }
    };
    match weights {
        None => Ok(Some(Content::Hashes(hashed))),
        Some(weights) => {
            let least = rule.least_weight();
            let weights = parse_weight_list(name, weights, hashed.len(), least)?;
            let weighted = hashed.into_iter().zip(weights).collect();
            Ok(Some(Content::Weighted(weighted)))
        }
    }
}

fn both(a: &str, b: &str) -> BadDocument {
    BadDocument::new(format!(
        "found both fields {a:?} and {b:?}, expected one of them"
    ))
}

/// Returns the elements of an array.
fn elements<'a>(
    name: &str,
    value: &'a RawValue,
    expected: &str,
) -> Result<Vec<&'a RawValue>, BadDocument> {
    if !value.get().starts_with('[') {
        return Err(BadDocument::field(name, fields::kind(value), expected));
    }
    let no_json = |e| BadDocument::field(name, format!("no JSON ({e})"), expected);
    serde_json::from_str(value.get()).map_err(no_json)
}

/// Returns the elements of an array. If an element is wrong, `parse` returns a description of it.
fn parse_elements<T>(
    name: &str,
    value: &RawValue,
    expected: &str,
    parse: impl Fn(&RawValue) -> Result<T, String>,
) -> Result<Vec<T>, BadDocument> {
    let elements = elements(name, value, expected)?.into_iter().zip(1..);
    let parsed = elements.map(|(element, place)| {
        parse(element).map_err(|found| {
            BadDocument::field(name, format!("{found} at place {place}"), expected)
        })
    });
    parsed.collect()
}

/// Parses a vector: an array of numbers, or a string with one, as columns of CSV and SQLite have.
pub(crate) fn parse_vector(
    name: &str,
    schema: &VectorSchema,
    value: &RawValue,
) -> Result<Vec<f32>, BadDocument> {
    let dimensions = usize::from(schema.dimensions());
    let wrong =
        |found: &str| BadDocument::field(name, found, format!("an array of {dimensions} numbers"));
    let json = fields::string(value).unwrap_or_else(|_| value.get().into());
    let array = json.trim_ascii().strip_prefix('[');
    let inner = array
        .and_then(|rest| rest.strip_suffix(']'))
        .map(str::trim_ascii);
    let inner = inner.ok_or_else(|| wrong(fields::kind(value)))?;
    let mut numbers = Vec::with_capacity(dimensions);
    for element in inner.split(',').filter(|_| !inner.is_empty()) {
        let element = element.trim_ascii();
        let Some(number) = element
            .parse()
            .ok()
            .filter(|number: &f32| number.is_finite())
        else {
            let shown: String = match element {
                // Tables and arrays of NumPy have numbers that JSON does not have.
                "null" => "null (or NaN, or infinite)".into(),
                other => other.chars().take(40).collect(),
            };
            return Err(wrong(&format!("{shown} at place {}", numbers.len() + 1)));
        };
        numbers.push(number);
    }
    if numbers.len() != dimensions {
        return Err(wrong(&format!("an array of {}", numbers.len())));
    }
    Ok(numbers)
}

/// A string is its bytes, a number its decimal text as written.
fn parse_features(value: &RawValue) -> Result<Vec<u64>, BadDocument> {
    let hash = |element: &RawValue| match fields::string(element) {
        Ok(text) => Ok(feature_hash(text.as_bytes())),
        Err("a number") => Ok(feature_hash(element.get().as_bytes())),
        Err(found) => Err(found.into()),
    };
    parse_elements("features", value, "an array of strings and numbers", hash)
}

/// Parses integers of this number of bits. A negative integer has the bits of a signed one, because
/// most databases store hashes that way.
fn parse_integers(name: &str, value: &RawValue, bits: u32) -> Result<Vec<u64>, BadDocument> {
    let expected = format!("an array of integers of {bits} bits");
    parse_elements(name, value, &expected, |element| {
        let number = integer_bits(element.get(), bits);
        let number = number.and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| element.get().chars().take(40).collect())
    })
}

/// Returns the bits of an integer, signed or not, if they fit.
fn integer_bits(json: &str, bits: u32) -> Option<u128> {
    let unused = u128::BITS - bits;
    let signed = || {
        let number = json.parse::<i128>().ok()?;
        let shortened = number << unused;
        (shortened >> unused == number).then_some(shortened.cast_unsigned() >> unused)
    };
    let unsigned = json.parse::<u128>().ok();
    match unsigned {
        Some(number) => Some(number).filter(|number| *number << unused >> unused == *number),
        None => signed(),
    }
}

fn parse_weight(
    place: impl fmt::Display,
    value: &RawValue,
    least: f64,
) -> Result<f64, BadDocument> {
    let weight = serde_json::from_str(value.get())
        .ok()
        .filter(|weight| (least..=MAX_WEIGHT).contains(weight));
    weight.ok_or_else(|| {
        let shown: String = value.get().chars().take(40).collect();
        let expected = match least < 0.0 {
            true => "numbers from -65,536 to 65,536",
            false => "numbers from 0 to 65,536",
        };
        BadDocument::field("weights", format!("{shown} at {place}"), expected)
    })
}

/// Parses the weights of this number of features.
fn parse_weight_list(
    of: &str,
    value: &RawValue,
    features: usize,
    least: f64,
) -> Result<Vec<f64>, BadDocument> {
    let expected = format!("an array of {features} numbers, one for each of {of:?}");
    let elements = elements("weights", value, &expected)?;
    if elements.len() != features {
        let found = format!("an array of {}", elements.len());
        return Err(BadDocument::field("weights", found, expected));
    }
    let weight =
        |(place, value): (usize, &RawValue)| parse_weight(format!("place {place}"), value, least);
    (1..).zip(elements).map(weight).collect()
}

/// Parses an object of features with weights. The weights of a repeated feature add up.
fn parse_weight_object(value: &RawValue, least: f64) -> Result<Vec<(u64, f64)>, BadDocument> {
    let expected = "an object of features and their weights, or an array beside \"features\" or \
                    \"hashes\"";
    if !value.get().starts_with('{') {
        return Err(BadDocument::field("weights", fields::kind(value), expected));
    }
    let mut json = serde_json::Deserializer::from_str(value.get());
    let found = json
        .deserialize_map(NamedWeights)
        .map_err(|e| BadDocument::field("weights", format!("no JSON ({e})"), expected))?;
    let mut weights = Vec::with_capacity(found.len());
    for (name, value) in found {
        let weight = parse_weight(format!("{name:?}"), value, least)?;
        weights.push((feature_hash(name.as_bytes()), weight));
    }
    Ok(weights)
}

/// The fields of an object in their order, with repeats.
struct NamedWeights;

impl<'de> Visitor<'de> for NamedWeights {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(entries)
    }
}

fn wrong_signature(found: impl fmt::Display, expected: impl fmt::Display) -> BadDocument {
    BadDocument::field("signature", found, expected)
}

/// Parses a signature: an array of MinHash values (for bottom-k, of the smallest hashes), a
/// fingerprint, or an object with both.
fn parse_signature(rule: &ContentRule, value: &RawValue) -> Result<Content<'static>, BadDocument> {
    let mut parts = (None, None);
    match value.get().as_bytes() {
        [b'{', ..] => {
            let found = fields::find(value.get(), &["minhash", "simhash"])
                .map_err(|e| wrong_signature(format!("no JSON ({e})"), "JSON"))?;
            if let [minhash, simhash] = found[..] {
                parts = (minhash, simhash);
            }
        }
        [b'[', ..] => parts.0 = Some(value),
        _ => parts.1 = Some(value),
    }
    let schema = rule.schema.as_ref();
    let values = match (schema.and_then(Schema::minhash), parts.0) {
        (None, None) => None,
        (Some(own), Some(found)) => Some(parse_values(schema, &own, found)?),
        (Some(own), None) => {
            let expected = format!("an array of the {} values of MinHash", own.values());
            return Err(wrong_signature("without MinHash", expected));
        }
        (None, Some(_)) => {
            let expected = "a fingerprint alone: the schema has no MinHash";
            return Err(wrong_signature("of MinHash", expected));
        }
    };
    let fingerprint = match (schema.and_then(Schema::simhash), parts.1) {
        (None, None) => None,
        (Some(own), Some(found)) => Some(parse_fingerprint(own.bits(), found)?),
        (Some(own), None) => {
            let bits = own.bits();
            let expected = format!("a fingerprint of {bits} bits as well, in \"simhash\"");
            return Err(wrong_signature("without a fingerprint", expected));
        }
        (None, Some(found)) => {
            let expected = "an array of MinHash values: the schema has no SimHash";
            return Err(wrong_signature(fields::kind(found), expected));
        }
    };
    let signature = match (values, fingerprint) {
        (Some(values), Some(fingerprint)) => values.with_simhash_of(&fingerprint),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return Err(wrong_signature(fields::kind(value), "a signature")),
    };
    Ok(Content::Signature(Box::new(signature)))
}

fn parse_values(
    schema: Option<&Schema>,
    own: &resemblance::schema::MinHashSchema,
    value: &RawValue,
) -> Result<Signature, BadDocument> {
    let count = usize::from(own.values());
    if own.kind() == MinHashKind::BottomK {
        let hashes = parse_integers("signature", value, u64::BITS)?;
        if hashes.len() > count {
            let found = format!("{} hashes", hashes.len());
            return Err(wrong_signature(
                found,
                format!("at most the {count} smallest hashes"),
            ));
        }
        return Ok(Signature::from_bottom_k(own.values(), hashes));
    }
    let values = parse_integers("signature", value, u32::BITS)?;
    if values.len() != count {
        let found = format!("an array of {}", values.len());
        return Err(wrong_signature(
            found,
            format!("{count} values, as in the schema"),
        ));
    }
    // Each is at most `u32::MAX`.
    let words = values.into_iter().map(|value| value as u32).collect();
    match schema.filter(|_| own.kind() != MinHashKind::External) {
        Some(schema) => {
            let made = schema.signature_of_values(words);
            made.map_err(|error| BadDocument::new(error.to_string()))
        }
        None => Ok(Signature::from_minhash(words)),
    }
}

/// Parses hexadecimal digits, one for every four bits, or an integer, signed or not.
fn parse_fingerprint(bits: u16, value: &RawValue) -> Result<Signature, BadDocument> {
    let json = value.get();
    // Digits in a text are hexadecimal, so an integer there would be misread.
    if let Ok(text) = fields::string(value) {
        let read = Fingerprint::from_hex(&text, bits);
        return read.map(Signature::from_fingerprint).map_err(|error| {
            let bad = match error {
                SketchError::InvalidParameter {
                    found, expected, ..
                } => wrong_signature(found, expected),
                other => BadDocument::new(other.to_string()),
            };
            match text.parse::<i128>() {
                Ok(_) => bad.with_advice(
                    "an integer is read from a column of integers, not from a string or from CSV",
                ),
                Err(_) => bad,
            }
        });
    }
    let fingerprint = match bits {
        32 => integer_bits(json, 32).map(|number| Fingerprint::from(number as u32)),
        64 => integer_bits(json, 64).map(|number| Fingerprint::from(number as u64)),
        128 => integer_bits(json, 128).map(Fingerprint::from),
        _ => None,
    };
    let made = fingerprint.map(Signature::from_fingerprint);
    made.ok_or_else(|| {
        let shown: String = json.chars().take(80).collect();
        let digits = bits / 4;
        let expected = match bits {
            256 => format!("{digits} hexadecimal digits"),
            bits => format!("{digits} hexadecimal digits, or an integer of {bits} bits"),
        };
        wrong_signature(shown, expected)
    })
}
