//! Near-duplicate search: signatures, the codes they are filed under, and how these are kept.

#![allow(
    dead_code,
    unused_imports,
    reason = "the store that uses the rest is not here yet"
)]

mod error;
mod format;
mod id;
mod lanes;
mod postings;
mod schema;
mod sketch;
mod text;

pub use error::{Error, Result};
pub use format::FORMAT_VERSION;
pub use id::DocumentId;
pub use lanes::{Banding, TableDesign};
pub use schema::{MinHash, MinHashSchema, Near, Schema, SchemaBuilder, SimHash, SimHashSchema};
pub use sketch::{EmptyDocuments, Signature, Sketcher};
pub use text::{Text, UNICODE_VERSION};
