//! The list of documents that were dropped.

use std::path::Path;

use resemblance::{Match, Schema};

use super::destination::Destination;
use super::escape;
use super::results::Value;
use crate::failure::Result;

/// Where a survivor stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SurvivorPlace {
    /// Its number in the corpus, from 0.
    Corpus(u64),
    /// Its id in the other store.
    Store(u64),
}

/// How it is known that two documents are near each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Their contents are equal.
    Equal,
    /// Their features were compared.
    Exact,
    /// Their signatures were compared.
    Estimate,
}

impl Evidence {
    /// As it stands in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Exact => "exact",
            Self::Estimate => "estimate",
        }
    }
}

/// For whom a document was dropped.
pub(crate) struct Survivor {
    pub(crate) place: SurvivorPlace,
    /// Its key as it is printed.
    pub(crate) label: String,
    pub(crate) similarity: Option<f64>,
    pub(crate) evidence: Evidence,
    pub(crate) distance: Option<u32>,
}

impl Survivor {
    /// A document that was found, and how it is printed.
    pub(crate) fn from_match(
        found: &Match,
        place: SurvivorPlace,
        label: String,
        is_equal: bool,
    ) -> Self {
        Self {
            place,
            label,
            similarity: found.similarity(),
            evidence: match (is_equal, found.is_exact()) {
                (true, _) => Evidence::Equal,
                (false, true) => Evidence::Exact,
                (false, false) => Evidence::Estimate,
            },
            distance: found.distance(),
        }
    }
}

/// A line for each dropped document.
pub(crate) struct DropReport {
    destination: Destination,
    schema: Schema,
}

impl DropReport {
    pub(crate) fn create(path: &Path, force: bool, schema: &Schema) -> Result<Self> {
        Ok(Self {
            destination: Destination::create(path, force)?,
            schema: schema.clone(),
        })
    }

    /// Writes the names of the columns; that of the similarity is given.
    pub(crate) fn header(&mut self, similarity: &str) -> Result<()> {
        let mut names = vec!["dropped", "survivor"];
        if self.schema.minhash().is_some() {
            names.push(similarity);
        }
        if self.schema.simhash().is_some() {
            names.push("distance");
        }
        names.push("similarity_is");
        let line = names.join("\t") + "\n";
        self.destination.write(line.as_bytes())
    }

    pub(crate) fn line(&mut self, dropped: &[u8], survivor: &Survivor) -> Result<()> {
        let mut line = format!("{}\t{}", escape::key(dropped), survivor.label);
        if self.schema.minhash().is_some() {
            line.push('\t');
            line.push_str(&Value::Similarity(survivor.similarity).text());
        }
        if self.schema.simhash().is_some() {
            line.push('\t');
            line.push_str(&Value::Distance(survivor.distance).text());
        }
        line.push('\t');
        line.push_str(survivor.evidence.name());
        line.push('\n');
        self.destination.write(line.as_bytes())
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.destination.finish()
    }
}
