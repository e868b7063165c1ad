//! The verb `man`.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::{Failure, Outcome, Result};

/// Write the manual pages of the tool and of each verb
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  resemblance man ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// A folder that is there; pages of the same names are replaced
    folder: PathBuf,
}

pub(crate) fn man(arguments: &ManArguments, command: Command) -> Result<Outcome> {
    let folder = &arguments.folder;
    let written = clap_mangen::generate_to(command, folder);
    written
        .map_err(|error| Failure::io(format_args!("writing to {}", folder.display()), &error))?;
    Ok(Outcome::Done)
}
