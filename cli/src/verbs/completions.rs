//! The verb `completions`.

use std::io::Write;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::{Failure, Outcome, Result};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  resemblance completions bash > ~/.local/share/bash-completion/completions/resemblance")]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn completions(
    arguments: &CompletionsArguments,
    mut command: Command,
) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "resemblance", &mut script);
    let mut stdout = std::io::stdout();
    stdout
        .write_all(&script)
        .and_then(|()| stdout.flush())
        .map_err(|e| Failure::output(&e))?;
    Ok(Outcome::Done)
}
