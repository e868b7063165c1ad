//! The command-line tool: see `resemblance --help`.

use std::process::ExitCode;

/// The allocator of musl has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    resemblance_cli::run()
}
