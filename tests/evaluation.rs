//! What is found on real texts whose similarities are known exactly, against what theory promises.
//!
//! The corpora are in the folder that `RESEMBLANCE_DATA` names. Where it is not set these tests
//! pass and say that they were skipped; the tests of the theory itself, and of synthetic sets, run
//! everywhere.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

#[path = "evaluation/articles.rs"]
mod articles;
#[path = "evaluation/corpus.rs"]
mod corpus;
#[path = "evaluation/default_seed.rs"]
mod default_seed;
#[path = "evaluation/fingerprints.rs"]
mod fingerprints;
#[path = "evaluation/many_seeds.rs"]
mod many_seeds;
#[path = "evaluation/stored.rs"]
mod stored;
#[path = "evaluation/synthetic.rs"]
mod synthetic;
#[path = "evaluation/theory.rs"]
mod theory;
#[path = "evaluation/verified.rs"]
mod verified;

use resemblance::{MinHash, Schema, SchemaBuilder, Text};

/// The schema that all of this is about: what a user gets who asks for nothing special.
fn default_schema() -> SchemaBuilder {
    Schema::builder()
        .text(Text::words(5))
        .minhash(MinHash::new(128).threshold(0.8))
}
