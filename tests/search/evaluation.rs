//! Compares the results on real texts with known exact similarities to what theory promises.
//!
//! The corpora are in the folder that `RESEMBLANCE_DATA` names. If it is not set, these tests print
//! that they were skipped, and pass. The tests of the theory itself and of synthetic sets always
//! run.

mod articles;
pub(crate) mod corpus;
mod default_seed;
mod exact_stores;
mod fingerprints;
mod many_seeds;
mod promised;
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
