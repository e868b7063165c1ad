//! The command-line tool: see `resemblance --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    resemblance_cli::run()
}
