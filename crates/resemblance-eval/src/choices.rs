//! Candidate schemas, with what they would find and cost.

use resemblance::invariant::OrBug;
use resemblance::schema::{Banding, MinHashKind, MinHashSchema, TableDesign};
use resemblance::{Error, Result, Schema, SimHash};

use super::background::Background;
#[cfg(feature = "charts")]
use super::chart::{Chart, ChartAxis};
use super::costs::document_bytes;

/// A number of values, of MinHash or of vectors, with its bands, and the cost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BandingChoice {
    /// The settings for computing and comparing values.
    pub minhash: MinHashSchema,
    /// The bands.
    pub banding: Banding,
    /// The expected number of candidates of a query.
    pub candidates: f64,
    /// The bytes on disk of a document without its key.
    pub document_bytes: f64,
}

impl BandingChoice {
    /// Plans a store of this schema for a number of documents.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the schema has neither MinHash nor vectors.
    pub fn new(schema: &Schema, documents: u64, background: &Background) -> Result<Self> {
        let expected = "a schema with MinHash or vectors";
        let minhash = schema.minhash();
        let minhash = minhash.ok_or_else(|| Error::invalid("schema", "another", expected))?;
        let choice = Self {
            minhash,
            banding: minhash.banding(),
            candidates: 0.0,
            document_bytes: document_bytes(schema)?,
        };
        Ok(Self {
            candidates: background.expected(documents, |it| choice.probability(it)),
            ..choice
        })
    }

    /// Returns the probability that a pair of this similarity becomes a candidate.
    #[must_use]
    pub fn probability(&self, similarity: f64) -> f64 {
        match self.minhash.kind() {
            // A value of vectors agrees by another curve than the similarity itself.
            MinHashKind::Vector(_) => self.minhash.probability(similarity),
            _ => self.banding.probability(similarity),
        }
    }
}

/// Draws the S-curves of several choices.
#[cfg(feature = "charts")]
#[must_use]
pub fn s_curves(choices: &[BandingChoice], threshold: f64, title: String) -> Chart {
    let is_vector =
        |choice: &BandingChoice| matches!(choice.minhash.kind(), MinHashKind::Vector(_));
    let similarity = match choices.iter().any(is_vector) {
        true => "similarity of vectors",
        false => "Jaccard similarity",
    };
    let mut chart = Chart::new(
        title,
        ChartAxis::share(similarity),
        ChartAxis::share("probability of being looked at"),
    );
    for choice in choices {
        let values = choice.minhash.values();
        let (bands, rows) = (choice.banding.bands(), choice.banding.rows());
        let name = format!("{values} values: {bands} bands of {rows} rows");
        chart.curve(name, |similarity| choice.probability(similarity));
    }
    chart.upright("threshold", threshold);
    chart
}

/// The tables for a number of documents, and their cost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableChoice {
    /// The number of documents.
    pub documents: u64,
    /// The tables.
    pub design: TableDesign,
    /// The bytes on disk of a document without its key.
    pub document_bytes: f64,
}

impl TableChoice {
    /// Plans a store of these fingerprints for a number of documents.
    ///
    /// # Errors
    ///
    /// The errors of building the schema.
    pub fn new(simhash: SimHash, documents: u64) -> Result<Self> {
        let schema = Schema::builder()
            .simhash(simhash)
            .expected_documents(documents)
            .build()?;
        let design = schema.simhash().or_bug("the schema has SimHash")?.clone();
        Ok(Self {
            documents,
            design,
            document_bytes: document_bytes(&schema)?,
        })
    }

    /// Draws the probability that pairs of documents that have this number of features together are
    /// within the distance, by similarity.
    #[cfg(feature = "charts")]
    #[must_use]
    pub fn curve(&self, features: u64) -> Chart {
        let design = &self.design;
        let mut chart = Chart::new(
            format!("SimHash of {} bits", design.bits()),
            ChartAxis::share("Jaccard similarity of unweighted sets"),
            ChartAxis::share("probability of being found"),
        );
        let name = format!("distance {} or less", design.max_distance());
        chart.curve(name, |similarity| design.probability(similarity, features));
        chart
    }
}
