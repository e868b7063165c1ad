//! Scores: numbers in fields, by which one of several documents is preferred.

use std::fmt;
use std::str::FromStr;

use resemblance::invariant::OrBug;
use resemblance::{ClusterId, DocumentId, Error, Representative, Snapshot};
use serde_json::value::RawValue;

use super::bad_document::BadDocument;
use super::columns;
use super::fields::{self, FieldPath};

/// The rule that prefers the document with the greatest or the least number in a field: `FIELD:max`
/// or `FIELD:min`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreRule {
    /// The field with the number.
    pub field: FieldPath,
    /// True for `max`, false for `min`.
    pub is_highest: bool,
}

impl FromStr for ScoreRule {
    type Err = String;

    fn from_str(rule: &str) -> Result<Self, String> {
        let (field, is_highest) = match rule.rsplit_once(':') {
            Some((field, "max")) => (field, true),
            Some((field, "min")) => (field, false),
            _ => return Err("expected a field with :max or :min, such as quality:max".into()),
        };
        let field = field.parse()?;
        Ok(Self { field, is_highest })
    }
}

impl fmt::Display for ScoreRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let which = if self.is_highest { "max" } else { "min" };
        write!(f, "{}:{which}", self.field)
    }
}

impl ScoreRule {
    /// Returns the score of a document with this number: documents with higher scores are preferred.
    pub fn score(&self, number: [f64; 2]) -> [f64; 2] {
        match self.is_highest {
            true => number,
            false => number.map(|part| -part),
        }
    }

    /// Returns the member of a kept cluster that this rule prefers.
    fn best_member(
        &self,
        snapshot: &Snapshot,
        cluster: ClusterId,
    ) -> resemblance::Result<Option<DocumentId>> {
        let mut best: Option<(Option<[f64; 2]>, DocumentId)> = None;
        for member in snapshot.members(cluster)? {
            let record = snapshot.get_id(member)?;
            let record = record.or_bug("a member of a cluster")?;
            let score = self.in_payload(record.payload()).map_err(|bad| {
                let expected = "JSON objects with numbers as the payloads of all members";
                let expected = format!("{expected}: that of document {member} has a fault: {bad}");
                Error::invalid("representative", self, expected)
            })?;
            // Of equal ones the first stays, and `None` is less than any score.
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, member));
            }
        }
        Ok(best.map(|(_, member)| member))
    }

    /// Returns the score of a document with this payload.
    fn in_payload(&self, payload: &[u8]) -> Result<Option<[f64; 2]>, BadDocument> {
        if payload.is_empty() {
            return Ok(None);
        }
        let json = columns::utf8(payload)?;
        if !json.trim_ascii_start().starts_with('{') {
            return Err(BadDocument::new("not a JSON object"));
        }
        let found = fields::find(json, &[self.field.name()]);
        let mut found = found.map_err(|error| BadDocument::new(format!("not JSON: {error}")))?;
        let number = found.pop().flatten();
        let number = number.map_or(Ok(None), |value| number_in(&self.field, value))?;
        Ok(number.map(|number| self.score(number)))
    }
}

/// The rule by which a member represents a cluster that a store keeps: `first`, `latest`, `longest`
/// or `medoid`, which the [store](Representative) knows, or a field of the payload.
///
/// ```
/// # use resemblance::{Document, MinHash, Schema, Store, Text, schema::ClusterBounds};
/// use resemblance_corpus::RepresentativeRule;
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
/// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// store.insert(("a", r#"{"meta": {"quality": 0.4}}"#), &page)?;
/// store.insert(("b", r#"{"meta": {"quality": 0.9}}"#), &page)?;
/// let snapshot = store.snapshot()?;
/// let cluster = snapshot.cluster_of("a")?.expect("two documents are in it");
/// let rule: RepresentativeRule = "meta.quality:max".parse()?;
/// let best = rule.find(&snapshot, cluster)?.expect("a member");
/// assert_eq!(snapshot.key(best)?.as_deref(), Some(&b"b"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepresentativeRule {
    /// A rule of the store.
    Stored(Representative),
    /// The greatest or the least number in a field. Payloads must be JSON objects, or empty.
    /// Members without the number come last.
    Score(ScoreRule),
}

impl FromStr for RepresentativeRule {
    type Err = String;

    fn from_str(rule: &str) -> Result<Self, String> {
        Ok(Self::Stored(match rule {
            "first" => Representative::First,
            "latest" => Representative::Latest,
            "longest" => Representative::Longest,
            "medoid" => Representative::Medoid,
            _ => {
                let score = rule.parse::<ScoreRule>().map_err(|_| {
                    "expected first, latest, longest, medoid, or a field with :max or :min, such as quality:max"
                })?;
                return Ok(Self::Score(score));
            }
        }))
    }
}

impl RepresentativeRule {
    /// Returns the member that represents a cluster, by its id or a former one; `None` if it has no
    /// members. Of equal ones it is the first.
    ///
    /// # Errors
    /// The errors of [`Snapshot::representative`], and [`Error::InvalidParameter`] if a payload is
    /// anything but a JSON object, or the field anything but a number or null.
    pub fn find(
        &self,
        snapshot: &Snapshot,
        cluster: ClusterId,
    ) -> resemblance::Result<Option<DocumentId>> {
        match self {
            Self::Stored(rule) => snapshot.representative(cluster, *rule),
            Self::Score(rule) => rule.best_member(snapshot, cluster),
        }
    }
}

/// Parses a number: its value, and what rounding took from it. Returns `None` for null.
pub(crate) fn number_in(
    path: &FieldPath,
    value: &RawValue,
) -> Result<Option<[f64; 2]>, BadDocument> {
    // The remainder after rounding an integer is small.
    let rest = |rounded: f64| match value.get().parse::<i128>() {
        Ok(whole) => whole.saturating_sub(rounded as i128) as f64,
        Err(_) => 0.0,
    };
    match (fields::kind(value), value.get().parse()) {
        ("null", _) => Ok(None),
        ("a number", Ok(score)) => Ok(Some([score, rest(score)])),
        (found, _) => Err(BadDocument::field(path.name(), found, "a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_payloads_are_numbers_in_json_objects() {
        let score = |rule: &str, payload: &str| {
            let rule: ScoreRule = rule.parse().unwrap();
            rule.in_payload(payload.as_bytes())
                .map_err(|bad| bad.reason)
        };
        for (payload, expected) in [
            ("", Ok(None)),
            ("{}", Ok(None)),
            (r#"{"a": null}"#, Ok(None)),
            (r#" {"b": 1, "a": -2.5}"#, Ok(Some([-2.5, 0.0]))),
            (
                r#"{"a": 9007199254740993}"#,
                Ok(Some([9_007_199_254_740_992.0, 1.0])),
            ),
            (
                r#"{"a": "1"}"#,
                Err("field \"a\" is a string, expected a number"),
            ),
            ("7", Err("not a JSON object")),
            ("[1]", Err("not a JSON object")),
            (
                r#"{"a": 1"#,
                Err("not JSON: EOF while parsing an object at line 1 column 7"),
            ),
        ] {
            let expected = expected.map_err(str::to_owned);
            let negative = expected
                .clone()
                .map(|it| it.map(|parts: [f64; 2]| parts.map(|part| -part)));
            assert_eq!(score("a:max", payload), expected, "{payload}");
            assert_eq!(score("a:min", payload), negative, "{payload}");
        }
        let nested = r#"{"a": {"b": 3}, "a.c": 4}"#;
        assert_eq!(score("a.b:max", nested), Ok(Some([3.0, 0.0])));
        assert_eq!(score("a.c:max", nested), Ok(Some([4.0, 0.0])));
        for rule in ["", "a", ":max", "a:most", "best"] {
            assert!(rule.parse::<ScoreRule>().is_err(), "{rule}");
        }
        let rules = ["first", "medoid", "first:min"].map(str::parse::<RepresentativeRule>);
        let is_score = |rule: &Result<RepresentativeRule, String>| {
            matches!(rule, Ok(RepresentativeRule::Score(_)))
        };
        assert_eq!(
            rules.each_ref().map(is_score),
            [false, false, true],
            "{rules:?}"
        );
    }
}
