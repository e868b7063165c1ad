//! Sketches for near-duplicate search. Texts become features, features become signatures, and
//! signatures become the codes by which an index finds them. The crate does no I/O, keeps no store
//! and starts no threads.
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
//! - [`Schema`] states how documents become signatures and how these are compared. [`Text`] states
//!   how a text is cut into shingles; [`MinHash`], [`SimHash`] and [`Containment`] state how
//!   shingles are sketched.
//! - [`Sketcher`] makes [`Signature`]s, in any thread. [`Fingerprint`] holds up to 256 bits that
//!   another program computed.
//! - [`exact`] computes the similarities that signatures estimate.
//! - [`lanes`] turns signatures into codes: bands of MinHash values and permuted tables of
//!   fingerprints. It chooses both for a threshold and a recall.
//!
//! The crate `resemblance` stores such signatures durably. Its `format-spec.md` freezes the hashes:
//! they do not change with the platform or the release.
//!
//! # Features
//!
//! No feature is enabled by default. `languages` adds the steps of [`Text`] that know a language:
//! stop words and stems.

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
pub use lanes::{Banding, TYPICAL_FEATURES, TableDesign};
pub use schema::{
    Combine, DesignReport, MinHash, MinHashSchema, Rebanding, Schema, SchemaBuilder, SimHash,
    Vector, VectorSchema,
};
pub use sketch::{
    Containment, DocumentFrequencies, EmptyDocuments, KeptVector, MinHashKind, Permutations,
    Signature, Sketcher, StreamedText, VectorMetric, exact, feature_hash,
};
pub use text::{Language, ShingleUnit, Text, UNICODE_VERSION};

/// Runs the examples of the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
