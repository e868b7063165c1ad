//! The verb `export`.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;

use crate::failure::{Failure, Outcome, Result};
use crate::output::{Counted, Destination};
use crate::session::{Context, open_to_read};

/// Write the documents of a store as a stream for import
///
/// The stream has keys, stamps, payloads and signatures, with checksums; format-spec.md describes it. It has no bands
/// and tables: a store that imports it indexes the documents by its own schema. A file whose name ends in .gz or .zst
/// is compressed; it appears under its name when it is complete.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance export seen.rsm -o seen.stream.zst
  resemblance export seen.rsm | ssh other resemblance import seen.rsm -")]
pub(crate) struct ExportArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// The file to write; - for standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

pub(crate) fn export(context: &Context, arguments: &ExportArguments) -> Result<Outcome> {
    if arguments.output.as_os_str() == "-" && io::stdout().is_terminal() {
        let message = "the stream is binary and is not written to a terminal";
        return Err(Failure::usage(message).with_note("give -o FILE, or redirect the output"));
    }
    let snapshot = open_to_read(context, &arguments.store)?.snapshot()?;
    let destination = Destination::create(&arguments.output, arguments.force)?;
    let mut output = StreamOutput {
        destination: destination.with_permissions_of(&arguments.store)?,
        failure: None,
    };
    let (done, stopped) = context.carry_out(snapshot.export(&mut output));
    let failure = stopped.or_else(|| output.failure.take());
    let report = done.map_err(|error| failure.unwrap_or_else(|| error.into()))?;
    output.destination.finish()?;
    context.note(format!(
        "exported {} in {}",
        Counted(report.documents, "document"),
        Counted(report.bytes, "byte")
    ));
    Ok(Outcome::Done)
}

/// A destination as the library writes to it. Why it failed is kept in this tool's words.
struct StreamOutput {
    destination: Destination,
    failure: Option<Failure>,
}

impl Write for StreamOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.destination.write(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(failure) => {
                self.failure = Some(failure);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
