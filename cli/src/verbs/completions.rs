//! The verb `completions`.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::{Outcome, Result};
use crate::output::guard;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples (bash, fish, zsh):
  mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions ~/.zfunc
  resemblance completions bash > ~/.local/share/bash-completion/completions/resemblance
  resemblance completions fish > ~/.config/fish/completions/resemblance.fish
  resemblance completions zsh > ~/.zfunc/_resemblance    # a folder of fpath")]
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
    guard::print(&script)?;
    Ok(Outcome::Done)
}
