//! The command-line tool, run as a process.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "helpers of tests are tests too"
)]

mod colours;
#[cfg(unix)]
mod consoles;
#[cfg(unix)]
mod contents;
mod corpora;
mod decontaminate;
mod eval;
mod explain;
mod features;
mod filters;
#[cfg(target_os = "linux")]
mod full;
mod histories;
mod html;
#[cfg(unix)]
mod job;
mod keep;
#[cfg(unix)]
mod kills;
mod levels;
#[cfg(unix)]
mod locks;
mod messages;
mod mistakes;
#[cfg(all(unix, feature = "remote"))]
mod object_server;
mod outputs;
#[cfg(all(unix, feature = "remote"))]
mod remote;
mod repair;
#[cfg(unix)]
mod safety;
#[path = "../../../tests/common/sample.rs"]
mod sample;
#[cfg(unix)]
mod signals;
#[cfg(feature = "sqlite")]
mod sqlite;
mod support;
#[path = "../../../tests/common/survivors.rs"]
mod survivors;
#[cfg(feature = "tables")]
mod tables;
mod tune;
