//! Sketches for near-duplicate search: texts become features, features signatures, and signatures
//! the codes by which an index finds them. No I/O, no store, no threads.
//!
//! ```
//! use resemblance_sketch::{MinHash, Schema, Text};
//!
//! let schema = Schema::builder()
//!     .text(Text::words(2))
//!     .minhash(MinHash::new(128).threshold(0.7))
//!     .build()?;
//! let sketcher = schema.sketcher();
//! let a = sketcher.text("the quick brown fox jumps over the lazy dog")?;
//! let b = sketcher.text("The quick brown fox jumps over the lazy DOG!")?;
//! assert_eq!(a.jaccard(&b)?, 1.0);
//! # Ok::<(), resemblance_sketch::SketchError>(())
//! ```
//!
//! - [`Schema`] states how documents become signatures and how they are compared;
//!   [`Text`] how a text is cut into shingles, [`MinHash`], [`SimHash`] and [`Containment`] how
//!   these are sketched.
//! - [`Sketcher`] makes [`Signature`]s, in any thread. [`Fingerprint`] holds up to 256 bits that were
//!   made elsewhere.
//! - [`exact`] computes the similarities that signatures estimate.
//! - [`lanes`] turns signatures into codes: bands of MinHash values, permuted tables of fingerprints,
//!   and the choice of both for a threshold and a recall.
//!
//! The crate `resemblance` is a durable store of such signatures. Hashes are frozen by its
//! `format-spec.md`, and do not change with the platform or the release.
//!
//! # Features
//!
//! None by default. `languages` has those steps of [`Text`] that know a language: stop words and
//! stems.

mod error;
pub mod fingerprint;
mod invariant;
pub mod lanes;
pub mod metadata;
#[cfg(test)]
#[path = "../../../tests/common/sample.rs"]
mod sample;
pub mod schema;
pub mod sketch;
pub mod text;

pub use error::{Result, SketchError};
pub use fingerprint::Fingerprint;
pub use lanes::{Banding, TableDesign};
pub use schema::{
    Combine, DesignReport, MinHash, MinHashSchema, Rebanding, Schema, SchemaBuilder, SimHash,
};
pub use sketch::{
    Containment, DocumentFrequencies, EmptyDocuments, MinHashKind, Permutations, Signature,
    Sketcher, StreamedText, exact, feature_hash,
};
pub use text::{Language, ShingleUnit, Text, UNICODE_VERSION};

/// The examples of the README, held to be true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
