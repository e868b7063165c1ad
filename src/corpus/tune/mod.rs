//! Chooses a schema by the recall and the cost of bands and tables.
//!
//! Nothing here opens a store. Imports `verification`, `build`, `schema` and `lanes`.

mod background;
mod choices;
mod near_neighbour;

pub use background::Background;
pub use choices::{
    BAND_POSTING_BYTES, BandingChoice, TABLE_POSTING_BYTES, TableChoice, banding_choice,
    explicit_banding_choice, table_choice,
};
pub use near_neighbour::{NearNeighbourPlan, near_neighbour_plan};
