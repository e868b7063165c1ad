//! How documents of one store are compared: recipe, signatures, lanes.
//!
//! Imports `text`, `sketch` and `lanes`.

mod builder;
mod design;
mod difference;
mod display;
mod rebanding;
mod schema;

pub use builder::{MinHash, SchemaBuilder, SimHash};
pub use design::DesignReport;
pub use rebanding::Rebanding;
pub use schema::{MinHashSchema, Near, Schema, SimHashSchema};
