//! Stores whose process, system or disk fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

#[path = "../common/mod.rs"]
mod common;
mod crash;
#[cfg(unix)]
mod crawler;
#[cfg(unix)]
mod fork;
#[cfg(unix)]
mod kills;
#[cfg(unix)]
mod no_locks;
#[cfg(unix)]
mod private_files;
mod processes;
mod pure_readers;
mod sharing;
