//! The verb `import`.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use resemblance::report::ImportReport;
use resemblance::{Error, ExistingKeys, Store};

use crate::failure::{Failure, Outcome, Result};
use crate::output::Counted;
use crate::session::{Context, change_store};
use resemblance_corpus::{Compression, CorpusError};

/// Add the documents of an exported stream to a store
///
/// The store must compute signatures in the same way as the exported store; its threshold, bands and tables may differ.
/// Documents are committed 10,000 at a time. After a failure or an interruption the store holds the documents up to the
/// last commit, and the message reports their number. To continue, give the command again with --keys skip; documents
/// without a key are then added twice.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance import all.rsm a.stream.zst
  resemblance import all.rsm b.stream.zst --keys newer
  resemblance export a.rsm | resemblance import all.rsm - --if-new --keys skip")]
pub(crate) struct ImportArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// A stream that export wrote, plain, gzip or Zstandard; - for standard input
    stream: PathBuf,
    /// How to treat a document whose key the store has
    #[arg(long, value_name = "RULE", default_value = "refuse")]
    keys: KeyRule,
    /// Skip and count near-duplicates of documents in the store
    #[arg(long)]
    if_new: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KeyRule {
    /// Stop with an error
    Refuse,
    /// Skip it
    Skip,
    /// Replace the document in the store
    Replace,
    /// Replace the document in the store if its stamp is smaller; otherwise skip this one
    Newer,
}

impl KeyRule {
    fn rule(self) -> ExistingKeys {
        match self {
            Self::Refuse => ExistingKeys::Refuse,
            Self::Skip => ExistingKeys::Skip,
            Self::Replace => ExistingKeys::Replace,
            Self::Newer => ExistingKeys::ReplaceIfNewer,
        }
    }
}

pub(crate) fn import(context: &Context, arguments: &ImportArguments) -> Result<Outcome> {
    if arguments.if_new && matches!(arguments.keys, KeyRule::Replace | KeyRule::Newer) {
        return Err(Failure::usage("--if-new needs --keys refuse or skip"));
    }
    change_store(context, &arguments.store, &context.store_options, |store| {
        let report = import_stream(context, arguments, store)?;
        context.note(summary(&report));
        context.messages.advise(&store.snapshot()?.design());
        Ok(Outcome::Done)
    })
}

/// A compressed file as the library reads it. Why it failed is kept in this tool's words.
struct StreamInput<'a> {
    reader: Box<dyn Read + Send>,
    is_compressed: bool,
    path: &'a Path,
    failure: &'a RefCell<Option<Failure>>,
}

/// A stream that was opened, decompressed.
struct OpenedStream {
    reader: Box<dyn Read + Send>,
    is_compressed: bool,
}

impl OpenedStream {
    fn open(path: &Path, window_bytes: u64) -> Result<Self> {
        let open_error = |error| Failure::from(CorpusError::open(path, error));
        let mut inner: Box<dyn BufRead + Send> = if path.as_os_str() == "-" {
            Box::new(BufReader::new(io::stdin()))
        } else {
            Box::new(BufReader::new(File::open(path).map_err(open_error)?))
        };
        let compression = Compression::from_content(inner.fill_buf().map_err(open_error)?);
        Ok(Self {
            reader: compression
                .decoder(inner, window_bytes)
                .map_err(open_error)?,
            is_compressed: compression != Compression::None,
        })
    }
}

impl Read for StreamInput<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.reader.read(bytes).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                let error = CorpusError::read(self.path, self.is_compressed, error);
                *self.failure.borrow_mut() = Some(error.into());
            }
        })
    }
}

fn import_stream(
    context: &Context,
    arguments: &ImportArguments,
    store: &Store,
) -> Result<ImportReport> {
    let failure = RefCell::new(None);
    let path = &arguments.stream;
    // A pipe may be empty for a long time. A signal ends the wait.
    let opening = {
        let (path, window_bytes) = (path.clone(), context.memory_bytes / 2);
        move || OpenedStream::open(&path, window_bytes)
    };
    let mut progress = context.progress("reading");
    let opened = context.interrupt.while_working(&mut progress, opening)?;
    let input = StreamInput {
        reader: opened.reader,
        is_compressed: opened.is_compressed,
        path,
        failure: &failure,
    };
    let import = store
        .import(input)
        .existing_keys(arguments.keys.rule())
        .if_new(arguments.if_new);
    let (done, stopped) = context.carry_out(import);
    let known = stopped.or_else(|| failure.take());
    done.map_err(|error| reported(arguments, error, known))
}

/// Returns the failure in this tool's words, with the documents that are in the store in spite of
/// it.
fn reported(arguments: &ImportArguments, error: Error, known: Option<Failure>) -> Failure {
    let (error, note) = match error {
        Error::ImportStopped { documents, source } => {
            let note = match documents {
                0 => "no document of the stream was added".to_owned(),
                1 => "its first document was committed or skipped".to_owned(),
                _ => format!("its first {documents} documents were committed or skipped"),
            };
            (*source, Some(note))
        }
        error => (error, None),
    };
    let of_stream = matches!(
        error,
        Error::DamagedStream { .. } | Error::OtherRecipe { .. }
    );
    let failure = match known {
        Some(failure) => failure,
        None if of_stream => {
            let name = arguments.stream.display();
            Failure::bad_input(error.to_string()).at(name.to_string())
        }
        None => error.into(),
    };
    match note {
        Some(note) => failure.with_note(note),
        None => failure,
    }
}

fn summary(report: &ImportReport) -> String {
    let read = Counted(report.read, "document");
    let mut summary = format!("read {read}, added {}", report.inserted);
    for (count, what) in [
        (report.replaced, "replaced"),
        (report.skipped, "skipped because of their keys"),
        (report.near_duplicates, "skipped as near-duplicates"),
        (report.budget_exceeded, "compared with only some candidates"),
    ] {
        if count > 0 {
            summary += &format!(", {count} {what}");
        }
    }
    summary
}
