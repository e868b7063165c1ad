//! Near-duplicate search: how texts and sets become signatures, and under which codes they are filed.

#![allow(
    dead_code,
    unused_imports,
    reason = "the store that uses the rest is not here yet"
)]

mod error;
mod id;
mod lanes;
mod schema;
mod sketch;
mod text;

pub use error::{Error, Result};
pub use id::DocumentId;
pub use lanes::{Banding, TableDesign};
pub use schema::{MinHash, MinHashSchema, Near, Schema, SchemaBuilder, SimHash, SimHashSchema};
pub use sketch::{EmptyDocuments, Signature, Sketcher};
pub use text::{Text, UNICODE_VERSION};
