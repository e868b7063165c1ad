//! Measures which pairs a near-duplicate search finds, and helps to choose a schema before a store
//! is made.
//!
//! - [`Sampler`] draws a sample of documents. [`Evaluation`] queries a store for each of them, and
//!   compares the answers with exact similarities: recall, precision, and errors of estimates.
//! - [`Background`], [`BandingChoice`], [`TableChoice`] and [`near_neighbour_plan`] compare schemas
//!   before a store is made. [`compare_kinds`] compares kinds of signatures.
//! - The feature `charts` draws the results as SVG. The feature `report` writes an HTML page about
//!   the near-duplicates of a corpus.
#![doc = include_str!("../README.md")]

mod background;
#[cfg(feature = "charts")]
mod chart;
mod choices;
mod compared;
#[cfg(feature = "charts")]
mod comparison_charts;
mod costs;
mod evaluation;
#[cfg(feature = "charts")]
mod evaluation_charts;
mod kinds;
mod near_neighbour;
#[cfg(feature = "report")]
pub mod printable;
#[cfg(feature = "report")]
pub mod report;
mod sample;
mod sampled_clusters;
mod spread;
mod tally;

pub use background::Background;
#[cfg(feature = "charts")]
pub use chart::{Chart, ChartAxis, ChartMark, ChartScale, ChartSeries};
#[cfg(feature = "charts")]
pub use choices::s_curves;
pub use choices::{BandingChoice, TableChoice};
pub use compared::{ComparedKind, ComparedPairs, compare_kinds};
#[cfg(feature = "charts")]
pub use comparison_charts::comparison_charts;
pub use costs::{BAND_POSTING_BYTES, TABLE_POSTING_BYTES, document_bytes};
pub use evaluation::Evaluation;
#[cfg(feature = "charts")]
pub use evaluation_charts::{
    CHART_NAMES, NamedChart, minhash_charts, promise_chart, simhash_chart,
};
pub use kinds::{MAX_SIGNATURE_BYTES, SignatureKind};
pub use near_neighbour::{NearNeighbourPlan, near_neighbour_plan};
pub use sample::{DocumentSample, Sampler};
pub use sampled_clusters::SampledClusters;
pub use spread::{Promise, RecallSpread};
pub use tally::{
    EstimateErrors, FamilyTally, MinHashTally, MissedPair, ReturnedPairs, SimHashTally,
    SimilarityStep, step_name,
};
