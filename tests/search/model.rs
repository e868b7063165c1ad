//! Random sequences of all operations on a store, against a map in memory.
//!
//! A failing sequence is made shorter before it is reported, and its seed is noted in a file in
//! `regressions/`: it is tried first from then on. Such a seed means the same sequence only as long
//! as the strategies stay as they are; what must be kept for ever is an episode of `episodes.rs`.
//!
//! The seeds are fixed: a run that passed will pass again. A normal run tries the first twelfth or
//! eighth of the sequences of `RESEMBLANCE_TESTS=all`. `MODEL_CASES` sets the number of sequences,
//! `MODEL_SEED` selects others, `MODEL_STEPS` makes them longer, and `MODEL_COUNTS=1` prints how
//! much was done (with `--nocapture`).

mod episodes;
mod recipes;
mod strategies;

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use proptest::prelude::Just;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestRunner};
use resemblance::schema::{ClusterBounds, EmptyDocuments, KeptVector, Linkage};
use resemblance::{Combine, MinHash, Schema, SchemaBuilder, SimHash, Text, Vector};

use crate::common::model::episode::{CHANGES, Episode, STEPS};
use crate::common::model::readers::WATCHED;
use crate::common::model::steps::{Opened, Step};
use crate::common::sample::trials;
use crate::common::verify::COMPARED;
use strategies::{opened, step};

static EPISODES: AtomicU64 = AtomicU64::new(0);

fn number_in(variable: &str) -> Option<u64> {
    let number = std::env::var(variable).ok()?;
    Some(number.parse().unwrap())
}

/// How long sequences may be. The seeds of failed ones are kept for the usual length alone.
const USUAL_STEPS: u64 = 25;

fn most_steps() -> usize {
    number_in("MODEL_STEPS").unwrap_or(USUAL_STEPS) as usize
}

/// Where the seeds of failed sequences are.
macro_rules! regressions {
    ($name:expr) => {
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/search/model/regressions/",
            $name,
            ".txt"
        )
    };
}

fn config(seeds: &'static str, seed: u64, usual_cases: u32) -> Config {
    let cases = number_in("MODEL_CASES").map(|cases| cases.try_into().unwrap());
    let seed = seed + number_in("MODEL_SEED").unwrap_or(0);
    let kept = match most_steps() as u64 {
        USUAL_STEPS => FileFailurePersistence::Direct(seeds),
        _ => FileFailurePersistence::Off,
    };
    Config {
        cases: cases.unwrap_or(usual_cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: Some(Box::new(kept)),
        max_shrink_iters: 3_000,
        ..Config::default()
    }
}

/// Runs sequences on stores of schemas that are made of what `schemas` gives.
fn run_cases<S: Clone + Debug>(
    config: Config,
    schemas: impl Strategy<Value = S>,
    schema_of: impl Fn(&S) -> Schema,
) {
    let steps = proptest::collection::vec(step(), 1..most_steps());
    let sequences = (schemas, opened(), steps);
    let run = |(schema, opened, steps): (S, Opened, Vec<Step>)| {
        EPISODES.fetch_add(1, Relaxed);
        Episode::new(&schema_of(&schema), &opened).run(&steps);
        Ok(())
    };
    if let Err(error) = TestRunner::new(config).run(&sequences, run) {
        panic!("{error}");
    }
    if number_in("MODEL_COUNTS").is_some() {
        let [episodes, steps, changes, watched, compared] =
            [&EPISODES, &STEPS, &CHANGES, &WATCHED, &COMPARED].map(|count| count.load(Relaxed));
        eprintln!(
            "until now {episodes} sequences of {steps} steps with {changes} changes, {compared} \
             answers compared, {watched} snapshots read by other threads while the writer was at work"
        );
    }
}

/// Sequences on stores of one schema.
fn run_of(seeds: &'static str, builder: SchemaBuilder) {
    let schema = builder.expected_documents(1_000).build().unwrap();
    let config = config(seeds, 20_260_101, trials(1, 8));
    run_cases(config, Just(()), |()| schema.clone());
}

/// Sequences on stores of any schemas.
fn run_of_any(seeds: &'static str, seed: u64) {
    run_cases(
        config(seeds, seed, trials(4, 50)),
        recipes::recipe(),
        recipes::Recipe::schema,
    );
}

#[test]
fn any_schema_1() {
    run_of_any(regressions!("any_schema_1"), 1);
}

#[test]
fn any_schema_2() {
    run_of_any(regressions!("any_schema_2"), 2_000_000);
}

#[test]
fn any_schema_3() {
    run_of_any(regressions!("any_schema_3"), 3_000_000);
}

fn minhash(minhash: MinHash) -> SchemaBuilder {
    Schema::builder().text(Text::words(2)).minhash(minhash)
}

fn simhash(simhash: SimHash) -> SchemaBuilder {
    Schema::builder().text(Text::words(2)).simhash(simhash)
}

fn small() -> MinHash {
    MinHash::new(16).banding(4, 3).threshold(0.5)
}

/// Values of 8 bits that are made elsewhere.
fn external() -> SchemaBuilder {
    let external = MinHash::external(16).value_bits(8);
    Schema::builder().minhash(external.banding(4, 3).threshold(0.5))
}

/// Vectors in few dimensions, so that many are near each other.
fn vector() -> Vector {
    Vector::cosine(6).values(64).banding(8, 6).threshold(0.9)
}

fn bits64(max_distance: u8) -> SimHash {
    SimHash::bits64().max_distance(max_distance)
}

fn bits128(max_distance: u8) -> SimHash {
    SimHash::bits128().max_distance(max_distance)
}

fn linked(linkage: Linkage) -> ClusterBounds {
    ClusterBounds::default().linkage(linkage)
}

/// A test of each kind of schema, with the name of its seeds and the rule for empty documents.
macro_rules! sequences {
    ($($test:ident: $seeds:literal, $empty:ident, $schema:expr;)*) => {
        $(#[test]
        fn $test() {
            run_of(regressions!($seeds), $schema.empty_documents(EmptyDocuments::$empty));
        })*
    };
}

sequences! {
    minhash_empty_documents_distinct: "minhash", Distinct, minhash(small());
    minhash_by_recall_empty_documents_alike: "minhash_alike", Alike,
        minhash(MinHash::new(64).threshold(0.8).code_bits(64));
    simhash_empty_documents_distinct: "simhash", Distinct, simhash(SimHash::bits64());
    simhash_far_empty_documents_alike: "simhash_alike", Alike, simhash(bits64(8)).near(Combine::Both);
    simhash_of_128_bits_empty_documents_distinct: "simhash_128", Distinct, simhash(bits128(6));
    simhash_of_32_bits_empty_documents_alike: "simhash_32", Alike,
        Schema::builder().simhash(SimHash::bits32().tables(&[(4, 2)]));
    either_family: "either_family", Alike, minhash(small()).simhash(bits64(2));
    both_families: "both_families", Distinct, minhash(small()).simhash(bits64(4)).near(Combine::Both);
    minhash_of_few_bits_and_simhash_of_128: "few_bits", Alike, minhash(small().value_bits(4)).simhash(bits128(5));
    minhash_of_one_bit_empty_documents_distinct: "one_bit", Distinct, minhash(small().value_bits(1));
    minhash_of_one_pass_empty_documents_alike: "one_pass", Alike,
        minhash(MinHash::one_pass(16).banding(4, 3).threshold(0.5));
    the_smallest_hashes_empty_documents_alike: "bottom_k", Alike,
        minhash(MinHash::bottom_k(128).banding(5, 3).threshold(0.85));
    minhash_made_elsewhere_empty_documents_alike: "external", Alike, external();
    vectors_by_their_cosine: "vectors", Distinct, Schema::builder().vector(vector());
    vectors_by_estimates: "estimated_vectors", Alike, Schema::builder().vector(vector().estimated());
    vectors_by_their_distance: "distant_vectors", Distinct,
        Schema::builder().vector(Vector::euclidean(6, 0.5).values(64).banding(8, 4).kept(KeptVector::I8));
    clusters_of_vectors: "vector_clusters", Distinct,
        Schema::builder().vector(vector().kept(KeptVector::F16)).clusters(ClusterBounds::default());
    clusters_of_similar_documents: "clusters", Alike, minhash(small()).clusters(ClusterBounds::default());
    clusters_of_close_documents: "close_clusters", Distinct,
        simhash(bits64(4)).clusters(ClusterBounds::default().max_distance(2));
    clusters_of_the_smallest_hashes: "bottom_k_clusters", Distinct,
        minhash(MinHash::bottom_k(64).threshold(0.6)).clusters(ClusterBounds::default());
    clusters_by_both_families: "clusters_by_both", Distinct,
        minhash(small()).simhash(bits64(4)).near(Combine::Both).clusters(ClusterBounds::default());
    clusters_by_one_of_two_families: "clusters_by_one", Distinct,
        minhash(small()).simhash(bits64(2)).clusters(ClusterBounds::default().min_similarity(0.7));
    clusters_of_an_exact_store: "exact_clusters", Alike, minhash(small()).exact().clusters(ClusterBounds::default());
    stars_of_similar_documents: "stars", Alike, minhash(small()).clusters(linked(Linkage::Star));
    stars_of_close_documents: "close_stars", Distinct, simhash(bits64(4)).clusters(linked(Linkage::Star).max_distance(2));
    complete_clusters: "complete", Alike, minhash(small()).clusters(linked(Linkage::Complete));
    complete_clusters_by_both_families: "complete_by_both", Distinct,
        minhash(small()).exact().simhash(bits64(2)).clusters(linked(Linkage::Complete));
}
