//! Choosing a schema: what bands and tables find, and what they cost.
//!
//! It knows neither corpora nor options, and prints nothing.

mod background;
mod choices;

pub(crate) use background::{Background, SimilarityHistogram};
pub(crate) use choices::{
    BAND_POSTING_BYTES, BandingChoice, TABLE_POSTING_BYTES, TableChoice, banding_choice,
    table_choice,
};
