//! Chooses a schema by the recall and the cost of bands and tables.
//!
//! Nothing here opens a store. Imports `verification`, `build`, `schema` and `lanes`.

mod background;
mod costs;
mod near_neighbour;

pub use background::Background;
pub use costs::{BAND_POSTING_BYTES, TABLE_POSTING_BYTES, document_bytes};
pub use near_neighbour::{NearNeighbourPlan, near_neighbour_plan};
