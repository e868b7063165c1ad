//! The command-line tool: see `resemblance --help`.

mod cli;
mod corpus;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
