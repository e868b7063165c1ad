//! Schemas: the rules by which documents become signatures, and by which signatures are indexed and
//! compared.
//!
//! Every module above may import everything here. This module imports only `text`, `sketch`,
//! `lanes` and errors; it knows neither stores nor files.

mod builder;
mod definition;
mod design;
mod difference;
mod display;
mod near;
mod rebanding;
mod schema_bytes;
mod stored;
mod vector;

pub use builder::{MinHash, SchemaBuilder, SimHash};
pub use definition::{MinHashSchema, Schema};
pub use design::DesignReport;
pub use difference::RecipeDifference;
pub use display::noun;
pub use near::{ClusterBounds, Combine, Linkage};
pub use rebanding::Rebanding;
pub use stored::UncheckedSchema;
pub use vector::{Vector, VectorSchema};
