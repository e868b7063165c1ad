//! The verb `man`.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::{Failure, Outcome, Result};
use crate::output::{Destination, make_folder, scratch_builder};

/// Write the manual pages of the tool and of each verb
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  resemblance man ~/.local/share/man/man1")]
pub(crate) struct ManArguments {
    /// A folder, which is created if it does not exist; pages of the same names are replaced
    #[arg(value_name = "OUT_DIR")]
    folder: PathBuf,
}

pub(crate) fn man(arguments: &ManArguments, command: Command) -> Result<Outcome> {
    let folder = &arguments.folder;
    make_folder(folder)?;
    let failed = |error| Failure::io(format_args!("writing to {}", folder.display()), &error);
    let drawn = scratch_builder().tempdir().map_err(failed)?;
    clap_mangen::generate_to(command, &drawn).map_err(failed)?;
    for page in std::fs::read_dir(&drawn).map_err(failed)? {
        let page = page.map_err(failed)?;
        let mut destination = Destination::create(&folder.join(page.file_name()), true)?;
        destination.write(&std::fs::read(page.path()).map_err(failed)?)?;
        destination.finish()?;
    }
    Ok(Outcome::Done)
}
