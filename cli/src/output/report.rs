//! The list of documents that were dropped.

use std::path::Path;

use resemblance::{Match, Schema};
use resemblance_corpus::dedup::{ComparedCandidate, DropRule, FeatureShares};

use super::destination::CompleteFile;
use super::results::{Layout, Results};
use super::value::{Column, ColumnKind, Value, nearness_columns};
use crate::failure::Result;

/// The place of a survivor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SurvivorPlace {
    /// Its number in the corpus, from 0.
    Corpus(u64),
    /// Its id in the other store.
    Store(u64),
}

/// The evidence that two documents are near each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Their contents are equal.
    Equal,
    /// Their features were compared.
    Exact,
    /// Their signatures were compared.
    Estimate,
    /// Their keys are equal.
    Key,
}

impl Evidence {
    pub(crate) fn of(is_equal: bool, is_exact: bool) -> Self {
        match (is_equal, is_exact) {
            (true, _) => Self::Equal,
            (false, true) => Self::Exact,
            (false, false) => Self::Estimate,
        }
    }

    /// Returns its name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Exact => "exact",
            Self::Estimate => "estimate",
            Self::Key => "key",
        }
    }
}

/// The document for which another was dropped, or with which it was compared.
#[derive(Clone)]
pub(crate) struct Survivor {
    pub(crate) place: SurvivorPlace,
    /// Documents of the other store may have none.
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) similarity: Option<f64>,
    pub(crate) evidence: Evidence,
    pub(crate) distance: Option<u32>,
    /// The shares of their features that both have, where these are known.
    pub(crate) shares: Option<FeatureShares>,
    pub(crate) rule: DropRule,
}

impl Survivor {
    /// A document that was found.
    pub(crate) fn from_match(
        found: &Match,
        place: SurvivorPlace,
        key: Option<Vec<u8>>,
        rule: DropRule,
    ) -> Self {
        Self {
            place,
            key,
            similarity: found.similarity(),
            evidence: Evidence::of(false, found.is_exact()),
            distance: found.distance(),
            shares: None,
            rule,
        }
    }

    /// A document that was compared exactly, by its features unless it was found otherwise.
    pub(crate) fn compared(
        compared: &ComparedCandidate,
        place: SurvivorPlace,
        key: Option<Vec<u8>>,
    ) -> Self {
        Self {
            place,
            key,
            similarity: Some(compared.similarity),
            evidence: Evidence::Exact,
            distance: None,
            shares: Some(compared.shares),
            rule: DropRule::Contained,
        }
    }

    pub(crate) fn value(&self) -> Value<'_> {
        match (&self.key, self.place) {
            (Some(key), _) => Value::Key(key),
            (None, SurvivorPlace::Corpus(number) | SurvivorPlace::Store(number)) => {
                Value::NoKey(number)
            }
        }
    }

    /// Returns the key as a field of a record. It is unchanged unless it could be read as an escape or is missing.
    pub(crate) fn field(&self) -> String {
        self.value().unescaped().into_owned()
    }

    /// Its key as it is printed.
    pub(crate) fn label(&self) -> String {
        self.value().text().into_owned()
    }
}

/// A row for each document that was compared with another one and does not survive for it.
pub(crate) struct RejectedReport {
    results: Results,
    /// The reason, which is the same for all.
    reason: String,
}

impl RejectedReport {
    /// Creates a report, whose form the name of the file implies.
    pub(crate) fn create(
        path: &Path,
        force: bool,
        has_header: bool,
        reason: String,
    ) -> Result<Self> {
        let number = |name| Column::of(name, ColumnKind::Number);
        let columns = vec![
            Column::new("document"),
            Column::new("candidate"),
            number("similarity"),
            Column::new("similarity_is"),
            number("held"),
            number("covered"),
            Column::new("reason"),
        ];
        let layout = Layout::of_name(path, has_header)?;
        Ok(Self {
            results: Results::create(path, force, layout, columns)?,
            reason,
        })
    }

    /// Writes the row of a document, given its key, and a candidate.
    pub(crate) fn row(&mut self, document: &[u8], candidate: &Survivor) -> Result<()> {
        let (held, covered) = candidate.shares.map(|it| (it.held, it.covered)).unzip();
        self.results.row(&[
            Value::Key(document),
            candidate.value(),
            Value::Similarity(candidate.similarity),
            Value::Text(candidate.evidence.name()),
            Value::Similarity(held),
            Value::Similarity(covered),
            Value::Text(&self.reason),
        ])
    }

    pub(crate) fn complete(self) -> Result<CompleteFile> {
        self.results.complete()
    }
}

/// A row for each dropped document.
pub(crate) struct DropReport {
    results: Results,
}

impl DropReport {
    /// Creates a report, whose form the name of the file implies. `similarity` is the name of that
    /// column.
    pub(crate) fn create(
        path: &Path,
        force: bool,
        has_header: bool,
        schema: &Schema,
        similarity: &'static str,
    ) -> Result<Self> {
        let [similarity, distance] = nearness_columns(schema, similarity);
        let [held, covered] = ["held", "covered"].map(|name| Column::of(name, ColumnKind::Number));
        let columns = vec![
            Column::new("dropped"),
            Column::new("survivor"),
            similarity,
            distance,
            Column::new("similarity_is"),
            held,
            covered,
            Column::new("rule"),
        ];
        let layout = Layout::of_name(path, has_header)?;
        Ok(Self {
            results: Results::create(path, force, layout, columns)?,
        })
    }

    pub(crate) fn row(&mut self, dropped: &[u8], survivor: &Survivor) -> Result<()> {
        let (held, covered) = survivor.shares.map(|it| (it.held, it.covered)).unzip();
        self.results.row(&[
            Value::Key(dropped),
            survivor.value(),
            Value::Similarity(survivor.similarity),
            Value::Distance(survivor.distance),
            Value::Text(survivor.evidence.name()),
            Value::Similarity(held),
            Value::Similarity(covered),
            Value::Text(survivor.rule.name()),
        ])
    }

    pub(crate) fn complete(self) -> Result<CompleteFile> {
        self.results.complete()
    }
}
