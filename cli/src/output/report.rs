//! The list of documents that were dropped.

use std::path::Path;

use resemblance::{Match, Schema};

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

/// The document for which another was dropped.
pub(crate) struct Survivor {
    pub(crate) place: SurvivorPlace,
    /// Documents of the other store may have none.
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) similarity: Option<f64>,
    pub(crate) evidence: Evidence,
    pub(crate) distance: Option<u32>,
    /// The share of the dropped document's features that this one has, and the share of this one's
    /// features that the dropped one has, where both are known.
    pub(crate) shares: Option<FeatureShares>,
}

/// The shares of the features of two documents that both have.
#[derive(Clone, Copy)]
pub(crate) struct FeatureShares {
    pub(crate) held: f64,
    pub(crate) covered: f64,
}

impl Survivor {
    /// A document that was found.
    pub(crate) fn from_match(
        found: &Match,
        place: SurvivorPlace,
        key: Option<Vec<u8>>,
        is_equal: bool,
    ) -> Self {
        Self {
            place,
            key,
            similarity: found.similarity(),
            evidence: Evidence::of(is_equal, found.is_exact()),
            distance: found.distance(),
            shares: None,
        }
    }

    fn value(&self) -> Value<'_> {
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

/// A row for each dropped document.
pub(crate) struct DropReport {
    results: Results,
    has_shares: bool,
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
        has_shares: bool,
    ) -> Result<Self> {
        let [similarity, distance] = nearness_columns(schema, similarity);
        let mut columns = vec![
            Column::new("dropped"),
            Column::new("survivor"),
            similarity,
            distance,
            Column::new("similarity_is"),
        ];
        if has_shares {
            columns.extend(["held", "covered"].map(|name| Column::of(name, ColumnKind::Number)));
        }
        let layout = Layout::of_name(path, has_header)?;
        Ok(Self {
            results: Results::create(path, force, layout, columns)?,
            has_shares,
        })
    }

    pub(crate) fn row(&mut self, dropped: &[u8], survivor: &Survivor) -> Result<()> {
        let mut row = vec![
            Value::Key(dropped),
            survivor.value(),
            Value::Similarity(survivor.similarity),
            Value::Distance(survivor.distance),
            Value::Text(survivor.evidence.name()),
        ];
        if self.has_shares {
            let (held, covered) = survivor.shares.map(|it| (it.held, it.covered)).unzip();
            row.extend([held, covered].map(Value::Similarity));
        }
        self.results.row(&row)
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.results.finish()
    }
}
