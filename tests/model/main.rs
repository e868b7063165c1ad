//! Random sequences of all operations on a store, against a map in memory.
//!
//! A failing sequence is made shorter before it is reported. The seed is fixed: a run that passed
//! passes again. `MODEL_CASES` asks for more sequences than the usual ones.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

mod changes;
#[path = "../common/mod.rs"]
mod common;
mod episode;
mod steps;

use proptest::test_runner::{Config, RngSeed, TestRunner};
use resemblance::{EmptyDocuments, MinHash, Near, Schema, SimHash, Text};

use episode::{Episode, SEALS};
use steps::step;

fn run_cases(name: &str, schema: &Schema) {
    let cases = std::env::var("MODEL_CASES").ok();
    let config = Config {
        cases: cases.map_or(40, |cases| cases.parse().unwrap()),
        rng_seed: RngSeed::Fixed(20_260_101),
        failure_persistence: None,
        max_shrink_iters: 3_000,
        ..Config::default()
    };
    let steps = (
        proptest::sample::select(&SEALS[..]),
        proptest::collection::vec(step(), 1..25),
    );
    let outcome = TestRunner::new(config).run(&steps, |(seal_after, steps)| {
        Episode::new(schema, seal_after).run(&steps);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{name}: {error}");
    }
}

fn schema(
    minhash: Option<MinHash>,
    simhash: Option<SimHash>,
    near: Near,
    empty: EmptyDocuments,
) -> Schema {
    let mut builder = Schema::builder().near(near);
    if minhash != Some(external()) {
        builder = builder.text(Text::words(2));
    }
    if let Some(minhash) = minhash {
        builder = builder.minhash(minhash);
    }
    if let Some(simhash) = simhash {
        builder = builder.simhash(simhash);
    }
    builder
        .empty_documents(empty)
        .expected_documents(1_000)
        .build()
        .unwrap()
}

fn small_minhash() -> MinHash {
    MinHash::new(16).banding(4, 3).threshold(0.5)
}

/// Values of 8 bits that are made elsewhere.
fn external() -> MinHash {
    let minhash = MinHash::external(16).value_bits(8);
    minhash.banding(4, 3).threshold(0.5)
}

#[test]
fn minhash_empty_documents_distinct() {
    let schema = schema(
        Some(small_minhash()),
        None,
        Near::Any,
        EmptyDocuments::Distinct,
    );
    run_cases("minhash", &schema);
}

#[test]
fn minhash_by_recall_empty_documents_alike() {
    let minhash = MinHash::new(64).threshold(0.8).code_bits(64);
    let schema = schema(Some(minhash), None, Near::Any, EmptyDocuments::Alike);
    run_cases("minhash alike", &schema);
}

#[test]
fn simhash_empty_documents_distinct() {
    let schema = schema(
        None,
        Some(SimHash::bits64()),
        Near::Any,
        EmptyDocuments::Distinct,
    );
    run_cases("simhash", &schema);
}

#[test]
fn simhash_far_empty_documents_alike() {
    let simhash = SimHash::bits64().max_distance(8);
    let schema = schema(None, Some(simhash), Near::Both, EmptyDocuments::Alike);
    run_cases("simhash alike", &schema);
}

#[test]
fn either_family() {
    let simhash = SimHash::bits64().max_distance(2);
    let schema = schema(
        Some(small_minhash()),
        Some(simhash),
        Near::Any,
        EmptyDocuments::Alike,
    );
    run_cases("any", &schema);
}

#[test]
fn both_families() {
    let simhash = SimHash::bits64().max_distance(4);
    let schema = schema(
        Some(small_minhash()),
        Some(simhash),
        Near::Both,
        EmptyDocuments::Distinct,
    );
    run_cases("both", &schema);
}

#[test]
fn minhash_of_few_bits_and_simhash_of_128() {
    let simhash = SimHash::bits128().max_distance(5);
    let schema = schema(
        Some(small_minhash().value_bits(4)),
        Some(simhash),
        Near::Any,
        EmptyDocuments::Alike,
    );
    run_cases("few bits", &schema);
}

#[test]
fn minhash_of_one_pass_empty_documents_alike() {
    let minhash = MinHash::one_pass(16).banding(4, 3).threshold(0.5);
    let schema = schema(Some(minhash), None, Near::Any, EmptyDocuments::Alike);
    run_cases("one pass", &schema);
}

#[test]
fn the_smallest_hashes_empty_documents_alike() {
    let minhash = MinHash::bottom_k(128).banding(5, 3).threshold(0.85);
    let schema = schema(Some(minhash), None, Near::Any, EmptyDocuments::Alike);
    run_cases("bottom-k", &schema);
}

#[test]
fn minhash_of_one_bit_empty_documents_distinct() {
    let minhash = small_minhash().value_bits(1);
    let schema = schema(Some(minhash), None, Near::Any, EmptyDocuments::Distinct);
    run_cases("one bit", &schema);
}

#[test]
fn minhash_made_elsewhere_empty_documents_alike() {
    let schema = schema(Some(external()), None, Near::Any, EmptyDocuments::Alike);
    run_cases("external", &schema);
}

#[test]
fn simhash_of_128_bits_empty_documents_distinct() {
    let simhash = SimHash::bits128().max_distance(6);
    let schema = schema(None, Some(simhash), Near::Any, EmptyDocuments::Distinct);
    run_cases("128 bits", &schema);
}
