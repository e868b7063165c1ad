//! What is found on real texts whose similarities are known exactly, against what theory promises.
//!
//! The corpora are in the folder that `RESEMBLANCE_DATA` names. Where it is not set these tests
//! pass and say that they were skipped; the tests of the theory itself, and of synthetic sets, run
//! everywhere.

mod articles;
pub(crate) mod corpus;
mod default_seed;
mod fingerprints;
mod many_seeds;
mod stored;
mod theory;
mod verified;

use resemblance::{MinHash, Schema, SchemaBuilder, Text};

/// The schema that all of this is about: what a user gets who asks for nothing special.
fn default_schema() -> SchemaBuilder {
    Schema::builder()
        .text(Text::words(5))
        .minhash(MinHash::new(128).threshold(0.8))
}
