//! Choosing a schema: what bands and tables find, and what they cost.
//!
//! Nothing here opens a store. Imports `verification`, `build`, `schema` and `lanes`.

mod background;
mod choices;

pub use background::{Background, SimilarityHistogram};
pub use choices::{
    BAND_POSTING_BYTES, BandingChoice, TABLE_POSTING_BYTES, TableChoice, banding_choice,
    table_choice,
};
