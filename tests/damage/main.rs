//! Files that are damaged, foreign or of a newer layout.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

#[path = "../common/mod.rs"]
mod common;
mod corruption;
mod engine_layout;
mod repair;
