//! The command-line tool, run as a process.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "helpers of tests are tests too"
)]

mod add;
mod annotate;
mod backup;
mod batches;
mod budget;
mod colours;
#[cfg(unix)]
mod consoles;
mod contain;
#[cfg(unix)]
mod contents;
mod corpora;
mod dedup;
mod defaults;
mod eval;
mod explain;
mod features;
mod folders;
mod formats;
#[cfg(target_os = "linux")]
mod full;
mod histories;
mod html;
mod ids;
#[cfg(unix)]
mod job;
mod keep;
#[cfg(unix)]
mod kills;
mod kinds;
mod levels;
#[cfg(unix)]
mod locks;
mod messages;
mod mistakes;
mod moves;
#[cfg(all(unix, feature = "remote"))]
mod object_server;
mod outputs;
mod pairs;
mod query;
mod reband;
#[cfg(all(unix, feature = "remote"))]
mod remote;
mod repair;
#[cfg(unix)]
mod safety;
#[path = "../../../tests/common/sample.rs"]
mod sample;
mod separated;
#[cfg(unix)]
mod signals;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stamps;
mod steps;
mod stores;
mod support;
#[cfg(feature = "tables")]
mod tables;
mod tune;
mod verify;
