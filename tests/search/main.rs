//! Tests what searches find, for every schema, against brute force, theory and published answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

#[path = "../common/mod.rs"]
mod common;
mod containment;
mod evaluation;
mod hamming;
mod known_answers;
mod many_threads;
mod model;
