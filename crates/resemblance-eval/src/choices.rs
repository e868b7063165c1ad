//! Candidate schemas, with what they would find and cost.

use resemblance::invariant::OrBug;
use resemblance::schema::{Banding, MinHashSchema, TableDesign};
use resemblance::{MinHash, Result, Schema, SimHash};

use super::background::Background;
#[cfg(feature = "charts")]
use super::chart::{Chart, ChartAxis};
use super::costs::document_bytes;

/// A number of MinHash values with its bands, and the cost.
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
    /// Plans a store of these values for a number of documents.
    ///
    /// # Errors
    ///
    /// The errors of building the schema.
    pub fn new(minhash: MinHash, documents: u64, background: &Background) -> Result<Self> {
        let schema = Schema::builder().minhash(minhash).build()?;
        let minhash = schema.minhash().or_bug("the schema has MinHash")?;
        let banding = minhash.banding();
        Ok(Self {
            minhash,
            banding,
            candidates: background.candidates(banding, documents),
            document_bytes: document_bytes(&schema)?,
        })
    }
}

/// Draws the S-curves of several choices.
#[cfg(feature = "charts")]
#[must_use]
pub fn s_curves(choices: &[BandingChoice], threshold: f64, title: String) -> Chart {
    let mut chart = Chart::new(
        title,
        ChartAxis::share("Jaccard similarity"),
        ChartAxis::share("probability of being looked at"),
    );
    for BandingChoice {
        minhash, banding, ..
    } in choices
    {
        let (values, bands, rows) = (minhash.values(), banding.bands(), banding.rows());
        let name = format!("{values} values: {bands} bands of {rows} rows");
        chart.curve(name, |similarity| banding.probability(similarity));
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
