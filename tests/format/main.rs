//! The bytes of stores and streams, and what the fuzzer has kept.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

#[path = "../common/mod.rs"]
mod common;
mod fuzz_corpus;
mod golden;
mod operations;
mod spec;
