//! The verb `export`.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use resemblance::{ExportEvent, ExportReport, Snapshot};

use super::Context;
use super::destination::Destination;
use super::failure::{Failure, Outcome, Result};
use super::progress::Progress;
use super::subject::open_to_read;

/// Write the documents of a store as a stream that import takes
///
/// The stream has keys, stamps, payloads and signatures, with checksums, and is described in
/// format-spec.md. Bands and tables are not in it: the store that takes it in files documents by its
/// own. A file whose name ends in .gz or .zst is compressed; it has its name only when it is complete.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance export seen.rsm -o seen.stream.zst
  resemblance export seen.rsm | ssh other resemblance import seen.rsm -")]
pub(crate) struct Arguments {
    /// The store
    pub(crate) store: PathBuf,
    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Outcome> {
    if arguments.output.as_os_str() == "-" && io::stdout().is_terminal() {
        let message = "the stream is no text for a terminal; give -o FILE, or redirect the output";
        return Err(Failure::usage(message));
    }
    let snapshot = open_to_read(context, &arguments.store)?.snapshot()?;
    let mut output = Output {
        destination: Destination::create(&arguments.output, arguments.force)?,
        failure: None,
    };
    let report = export(context, &snapshot, &mut output)?;
    output.destination.finish()?;
    context.messages.note(format!(
        "exported {} documents in {} bytes",
        report.documents, report.bytes
    ));
    Ok(Outcome::Done)
}

/// A destination as the library writes to it. Why it failed is kept in this tool's words.
struct Output {
    destination: Destination,
    failure: Option<Failure>,
}

impl Write for Output {
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

fn export(context: &Context, snapshot: &Snapshot, output: &mut Output) -> Result<ExportReport> {
    let mut progress = Progress::new("exporting", context.messages.quiet);
    let mut stopped = None;
    let report = snapshot.export_with(&mut *output, |event| {
        if let ExportEvent::Written {
            documents, bytes, ..
        } = event
        {
            progress.update(documents, bytes);
        }
        match context.interrupt.check() {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                stopped = Some(failure);
                ControlFlow::Break(())
            }
        }
    });
    progress.clear();
    let failure = stopped.or_else(|| output.failure.take());
    report.map_err(|error| failure.unwrap_or_else(|| error.into()))
}
