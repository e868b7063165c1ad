//! The command-line tool `resemblance`: see `resemblance --help`.
//!
//! [`run`] is the whole tool; [`corpus`] reads documents from JSON Lines and folders of texts, and can
//! be used by other programs.

mod add;
mod arguments;
mod background;
mod backup;
mod build;
mod building;
mod chart;
mod check;
mod clusters;
mod compact;
mod compare;
mod completions;
pub mod corpus;
mod create;
mod dedup;
mod destination;
mod escape;
mod eval;
mod eval_output;
mod eval_tally;
mod evict;
mod exact_join;
mod expect;
mod export;
mod failure;
mod features;
mod forecast;
mod get;
mod import;
mod interrupt;
mod kept;
mod keys;
mod kinds;
mod messages;
mod output;
mod pairs;
mod panics;
mod pipeline;
mod places;
mod progress;
mod query;
mod reband;
mod remove;
mod repair;
mod report;
mod results;
mod sample;
mod schema;
mod scratch;
mod spill;
mod stats;
mod subject;
mod tally;
mod text;
mod text_plot;
mod tune;
mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use arguments::{Arguments, CommonOptions, Verb};
use failure::{Failure, Outcome, Result};
use interrupt::Interrupt;
use messages::Messages;
use resemblance::StoreOptions;

/// What every verb can use.
pub(crate) struct Context {
    pub(crate) messages: Messages,
    pub(crate) interrupt: Interrupt,
    pub(crate) threads: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) temp_dir: PathBuf,
    /// What `--temp-dir` says, if it is there.
    pub(crate) given_temp_dir: Option<PathBuf>,
    pub(crate) store_options: StoreOptions,
}

impl Context {
    fn new(options: &CommonOptions, interrupt: Interrupt) -> Self {
        let available = || std::thread::available_parallelism().map_or(1, usize::from);
        let mut store_options = StoreOptions::new();
        if let Some(bytes) = options.cache {
            store_options = store_options.cache_bytes(bytes);
        }
        Self {
            messages: Messages {
                quiet: options.quiet,
                verbose: options.verbose,
            },
            interrupt,
            threads: options.threads.map_or_else(available, usize::from),
            memory_bytes: options.memory,
            temp_dir: options.temp_dir.clone().unwrap_or_else(std::env::temp_dir),
            given_temp_dir: options.temp_dir.clone(),
            store_options,
        }
    }
}

/// Runs the tool with the arguments of the process, and returns the exit code of the process.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return explain_usage(&error),
    };
    panics::silence();
    let store = arguments.verb.store().map(Path::to_path_buf);
    let outcome = panics::contain(|| {
        let context = Context::new(&arguments.common, Interrupt::install()?);
        dispatch(&context, arguments.verb)
    });
    let outcome = outcome.map_err(|failure| match &store {
        Some(store) => failure.in_store(store.display()),
        None => failure,
    });
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Nothing) => ExitCode::from(1),
        Err(failure) => {
            if !matches!(failure, Failure::ClosedPipe) {
                messages::error(&failure);
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(context: &Context, verb: Verb) -> Result<Outcome> {
    match verb {
        Verb::Create(arguments) => create::run(context, &arguments),
        Verb::Build(arguments) => build::run(context, &arguments),
        Verb::Add(arguments) => add::run(context, &arguments),
        Verb::Query(arguments) => query::run(context, &arguments),
        Verb::Get(arguments) => get::run(context, &arguments),
        Verb::Remove(arguments) => remove::run(context, &arguments),
        Verb::Evict(arguments) => evict::run(context, &arguments),
        Verb::Pairs(arguments) => pairs::run(context, &arguments),
        Verb::Clusters(arguments) => clusters::run(context, &arguments),
        Verb::Dedup(arguments) => dedup::run(context, &arguments),
        Verb::Stats(arguments) => stats::run(context, &arguments),
        Verb::Tune(arguments) => tune::run(context, &arguments),
        Verb::Eval(arguments) => eval::run(context, &arguments),
        Verb::Check(arguments) => check::run(context, &arguments),
        Verb::Compact(arguments) => compact::run(context, &arguments),
        Verb::Reband(arguments) => reband::run(context, &arguments),
        Verb::Repair(arguments) => repair::run(context, &arguments),
        Verb::Backup(arguments) => backup::run(context, &arguments),
        Verb::Export(arguments) => export::run(context, &arguments),
        Verb::Import(arguments) => import::run(context, &arguments),
        Verb::Completions(arguments) => completions::run(&arguments),
    }
}

/// Help and version go to standard output; a mistake is told in our own voice.
fn explain_usage(error: &clap::Error) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return match error.print().map_err(|e| Failure::output(&e)) {
            Err(failure @ Failure::Io(_)) => {
                messages::error(&failure);
                ExitCode::from(failure.exit_code())
            }
            // a closed pipe is not worth a word
            _ => ExitCode::SUCCESS,
        };
    }
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        messages::help(text.trim_end());
        return ExitCode::from(2);
    }
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    messages::error(text.trim_end());
    ExitCode::from(2)
}
