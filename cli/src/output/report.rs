//! The list of documents that were dropped.

use std::path::Path;

use resemblance::{Match, Schema};

use super::destination::Destination;
use super::escape;
use super::results::Value;
use crate::failure::Result;

/// For whom a document was dropped.
pub(crate) struct Survivor {
    /// Its key as it is printed.
    pub(crate) label: String,
    pub(crate) similarity: Option<f64>,
    /// Whether that is no estimate.
    pub(crate) is_exact: bool,
    pub(crate) distance: Option<u32>,
    /// Whether it is a document of the store of --against, and not of the corpus.
    pub(crate) is_in_store: bool,
}

impl Survivor {
    /// A document that was found, and how it is printed.
    pub(crate) fn from_match(found: &Match, label: String) -> Self {
        Self {
            label,
            similarity: found.similarity(),
            is_exact: found.is_exact(),
            distance: found.distance(),
            is_in_store: false,
        }
    }
}

/// A line for each dropped document.
pub(crate) struct DropReport {
    destination: Destination,
    schema: Schema,
    /// Whether a last column says which similarities are exact.
    tells_exact: bool,
}

impl DropReport {
    pub(crate) fn create(
        path: &Path,
        force: bool,
        schema: &Schema,
        tells_exact: bool,
    ) -> Result<Self> {
        Ok(Self {
            destination: Destination::create(path, force)?,
            schema: schema.clone(),
            tells_exact,
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
        if self.tells_exact {
            names.push("similarity_is");
        }
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
        if self.tells_exact {
            let how = if survivor.is_exact {
                "exact"
            } else {
                "estimate"
            };
            line.push('\t');
            line.push_str(how);
        }
        line.push('\n');
        self.destination.write(line.as_bytes())
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.destination.finish()
    }
}
