//! The command line as a whole: which verbs there are, and how a run ends.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{
    Arg, ArgMatches, Args as _, Command, CommandFactory, FromArgMatches, Parser, Subcommand,
};

use crate::defaults::{DEFAULTS_HELP, with_defaults};
use crate::failure::{
    EXIT_CODES, Failure, FailureKind, Outcome, Result, contain_panics, silence_panics,
};
use crate::help::{build_details, shaped, version};
use crate::options::{CommonOptions, CorpusOptions, StoredOptions};
use crate::output::{guard, print_failure, print_help, print_usage};
use crate::session::{Context, Interrupt};
use crate::usage::explained;
use crate::verbs;
use crate::verbs::completions::{CompletionsArguments, completions};
use crate::verbs::man::{ManArguments, man};
use resemblance_corpus::{is_store, only_store};

/// The length of a run from which its duration is printed.
const LONG_RUN: Duration = Duration::from_secs(10);

const CORPUS_HELP: &str = "\
A CORPUS is one of these:
  - A JSON Lines file, plain or compressed with gzip, Zstandard, bzip2 or xz.
    Each line is an object with a string \"text\" and, optionally, an \"id\",
    a string or a number. Lines end with \\n or \\r\\n. Blank lines and a leading
    byte order mark are ignored. A line that has a field twice is bad.
  - A table. CSV and TSV, plain or compressed, are recognized by name; the first
    row names the columns. Parquet, Arrow IPC (feature tables) and SQLite
    (feature sqlite) are recognized by content. A database has one table or
    view, or --table names one. Each row is read like a line of JSON whose
    fields are the columns; a null counts as a missing field.
  - A crawl: WARC or WET (feature warc).
  - An array of NumPy (.npy). Each row is a vector, and its index is the key.
  - A folder. Tables and crawls are recognized as above. A file is JSON Lines if
    it is named *.jsonl or *.ndjson, or if its first two lines are JSON objects,
    and otherwise one text in UTF-8, whose key is its path as given. Archives
    are refused. Beside Parquet or Arrow files, text files are not read. Names
    that begin with a dot need --hidden. Links to files are followed, links to
    folders are not.
  - A pattern in quotes, such as 'data/train-*.parquet'.
  - An address (feature remote): s3://BUCKET/KEY, s3://BUCKET/PREFIX/ for all
    objects below it, an s3:// pattern in quotes, or https://HOST/FILE.
    Credentials come from AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL and
    the other variables of AWS.
  - A hyphen (-): JSON Lines on standard input.
Documents are read in the order of the arguments, and the files of a folder or
pattern in the byte order of their paths. --as overrides the recognition.

In place of \"text\", a line may have \"features\" (an array of strings and
numbers), \"hashes\" (64-bit integers), \"weights\" (an object of features and
weights, or an array beside one of the two), or a \"signature\" (MinHash values, a
fingerprint in hexadecimal, or an object with \"minhash\" and \"simhash\"). With
--vector it has a \"vector\", an array of numbers. build and add store a \"stamp\"
and a \"payload\" with each document.

A document without an id gets the key path:line (in SQLite path:rowid), with the
path as given. An id that an earlier file has gets the key path:id. A number is
a key as it is written: 1.0 and 1 are different keys.

Keys are printed with \\\\ \\t \\n \\r for backslash, tab, newline and return, and
with \\xHH for bytes outside UTF-8; a document without a key is printed as \\#ID.
In CSV, in Parquet, and in the fields that --annotate and --verdicts write, a
key in UTF-8 is unchanged, unless it looks like such an escape. In JSON Lines a
key is a string; a key outside UTF-8 is null, and a field whose name ends in
_hex has it in hexadecimal.";

const KILLED_HELP: &str = "\
A run that is killed or stopped by a full disk loses nothing. A store keeps all
that was committed, and a new file or folder exists as a whole or not at all. A
killed run can leave files and folders named .resemblance-* beside its output or
in --temp-dir. Remove them when no other run works there.";

fn after_help() -> String {
    format!(
        "{CORPUS_HELP}\n\n{DEFAULTS_HELP}\n\n{KILLED_HELP}\n\n{EXIT_CODES}\n\n\
Examples:
  resemblance dedup corpus.jsonl.gz -o unique.jsonl.gz --report dropped.tsv
  resemblance pairs corpus.jsonl --threshold 0.9
  resemblance build seen.rsm corpus.jsonl --minhash 128 --threshold 0.8
  resemblance query seen.rsm --file page.txt
  curl -s https://example.org | resemblance query seen.rsm
  resemblance add seen.rsm more.jsonl --if-new
  resemblance dedup more.jsonl --against seen.rsm -o new.jsonl
  resemblance contain --in pages.rsm --query paragraphs.jsonl
  resemblance decontaminate train.jsonl --against tests.jsonl -o clean.jsonl
  resemblance tune --threshold 0.7 --recall 0.99
  resemblance eval corpus.jsonl --sample 5000
  resemblance check seen.rsm || resemblance repair seen.rsm -o new.rsm"
    )
}

/// Finds near-duplicate documents, in a corpus or against a store on disk
#[derive(Debug, Parser)]
#[command(name = "resemblance", version = version(), after_long_help = after_help())]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct ToolArguments {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    common: CommonOptions,
}

/// Declares the verbs, in the order of their completions: the module and the arguments of each, and the store that is
/// named on its command line, which messages about damage must name.
macro_rules! verbs {
    ($($verb:ident $module:ident($arguments:ident) $store:expr;)*) => {
        #[derive(Debug, Subcommand)]
        enum Verb {
            $($verb(verbs::$module::$arguments),)*
            Completions(CompletionsArguments),
            Man(ManArguments),
        }

        impl Verb {
            fn store(&self) -> Option<&Path> {
                match self {
                    $(Self::$verb(arguments) => {
                        let store: fn(&verbs::$module::$arguments) -> Option<&Path> = $store;
                        store(arguments)
                    })*
                    Self::Completions(_) | Self::Man(_) => None,
                }
            }

            fn run(self, context: &Context) -> Result<Outcome> {
                match self {
                    $(Self::$verb(arguments) => verbs::$module::$module(context, &arguments),)*
                    Self::Completions(arguments) => completions(&arguments, command()),
                    Self::Man(arguments) => man(&arguments, command()),
                }
            }
        }
    };
}

impl Verb {
    /// An error if the values of options contradict each other, as far as that is known before anything is read.
    fn must_agree(&self) -> Result<()> {
        match self {
            Self::Create(arguments) => arguments.must_agree(),
            Self::Build(arguments) => arguments.must_agree(),
            Self::Pairs(arguments) => arguments.must_agree(),
            Self::Clusters(arguments) => arguments.must_agree(),
            Self::Dedup(arguments) => arguments.must_agree(),
            Self::Report(arguments) => arguments.must_agree(),
            Self::Explain(arguments) => arguments.own_schema().map(drop),
            Self::Eval(arguments) => arguments.own_schema().map(drop),
            _ => Ok(()),
        }
    }
}

/// Returns true if the values of options contradict each other. What cannot be parsed is reported later.
fn contradicts_itself(matches: &ArgMatches) -> bool {
    ToolArguments::from_arg_matches(matches).is_ok_and(|parsed| parsed.verb.must_agree().is_err())
}

verbs! {
    Create create(CreateArguments) |_| None;
    Build build(BuildArguments) |_| None;
    Add add(AddArguments) |it| Some(&it.store);
    Query query(QueryArguments) |it| Some(&it.store);
    Get get(GetArguments) |it| Some(&it.store);
    List list(ListArguments) |it| Some(&it.store);
    Cluster cluster(ClusterArguments) |it| Some(&it.store);
    Changes changes(ChangesArguments) |it| Some(&it.store);
    Remove remove(RemoveArguments) |it| Some(&it.store);
    Touch touch(TouchArguments) |it| Some(&it.store);
    Evict evict(EvictArguments) |it| Some(&it.store);
    Pairs pairs(PairsArguments) |it| only_store(&it.inputs);
    Clusters clusters(ClustersArguments) |it| only_store(&it.inputs);
    Dedup dedup(DedupArguments) |it| it.survivors.against.as_deref();
    Explain explain(ExplainArguments) |_| None;
    Report report(ReportArguments) |it| it.survivors.against.as_deref();
    Contain contain(ContainArguments) |it| Some(&it.store);
    Decontaminate decontaminate(DecontaminateArguments) |it| only_store(&it.against);
    Stats stats(StatsArguments) |it| Some(&it.store);
    Tune tune(TuneArguments) |_| None;
    Eval eval(EvalArguments) |_| None;
    Check check(CheckArguments) |it| Some(&it.store);
    Compact compact(CompactArguments) |it| Some(&it.store);
    Reband reband(RebandArguments) |it| Some(&it.store);
    Repair repair(RepairArguments) |it| Some(&it.store);
    Backup backup(BackupArguments) |it| Some(&it.store);
    Export export(ExportArguments) |it| Some(&it.store);
    Import import(ImportArguments) |it| Some(&it.store);
}

/// Runs the tool with the arguments of the process, and returns the exit code of the process.
pub fn run() -> ExitCode {
    let command = command();
    let given: Vec<OsString> = std::env::args_os().collect();
    let (arguments, config) = match with_defaults(&command, given.clone(), contradicts_itself) {
        Ok(with) => with,
        Err(failure) => {
            print_failure(&failure);
            return ExitCode::from(failure.exit_code());
        }
    };
    let matches = command.clone().try_get_matches_from(&arguments);
    if let Ok(matches) = &matches {
        protect_inputs(&command, matches);
        // A default in a file may be without effect in some runs.
        let own = config
            .as_ref()
            .map(|_| command.clone().try_get_matches_from(&given));
        let given = own.as_ref().map_or(Some(matches), |own| own.as_ref().ok());
        if let Some(failure) = given.and_then(|given| idle_option(&command, given)) {
            print_failure(&failure);
            return ExitCode::from(failure.exit_code());
        }
    }
    let parsed = match matches.and_then(|matches| ToolArguments::from_arg_matches(&matches)) {
        Ok(parsed) => parsed,
        Err(error) => {
            let explained = explained(&error, &command, &arguments);
            return explain_usage(&error, explained, config.as_deref());
        }
    };
    parsed.common.color.choose();
    silence_panics();
    let store = parsed.verb.store().map(Path::to_path_buf);
    let outcome = contain_panics(|| {
        let context = Context::new(&parsed.common, watched_signals()?);
        let started = Instant::now();
        if let Some(config) = &config {
            let file = config.display();
            context.detail(format_args!("read defaults of options from {file}"));
        }
        let outcome = parsed.verb.run(&context);
        print_time(&context, started.elapsed());
        match (outcome, context.print_unreadable()) {
            (Ok(_), true) => Ok(Outcome::Partial),
            (outcome, _) => outcome,
        }
    })
    .map_err(|failure| {
        let config = config.filter(|_| arguments != given);
        with_circumstances(failure, store.as_deref(), config.as_deref())
    });
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Nothing) => ExitCode::from(1),
        Ok(Outcome::Partial) => ExitCode::from(2),
        Err(failure) => {
            if failure.kind != FailureKind::ClosedPipe {
                print_failure(&failure);
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Adds to a failure the outputs that it leaves, the store, and the file that options came from.
fn with_circumstances(failure: Failure, store: Option<&Path>, config: Option<&Path>) -> Failure {
    let mut failure = match (failure.is_signal(), guard::unfinished_outputs()) {
        (true, _) => guard::interrupted_outputs()
            .into_iter()
            .fold(failure, Failure::with_note),
        (false, Some(unfinished)) => failure.or_unfinished(&unfinished),
        (false, None) => failure,
    };
    if let Some(store) = store {
        failure = failure.in_store(store.display());
    }
    match config {
        Some(config) if failure.kind == FailureKind::Usage => {
            failure.with_note(format!("options also come from {}", config.display()))
        }
        _ => failure,
    }
}

/// Installs the handlers of signals, which also end waits for other processes.
fn watched_signals() -> Result<Interrupt> {
    let interrupt = Interrupt::install()?;
    let watched = interrupt.clone();
    guard::watch_signals(move || watched.check());
    Ok(interrupt)
}

/// The names of the values of arguments that are written. Every other path is read.
const WRITTEN: [&str; 3] = ["OUT", "OUT_DIR", "NEW_STORE"];

/// The name of the value of `--temp-dir`, a folder whose files are neither read nor replaced.
const WORKED_IN: &str = "DIR";

/// Returns the paths among the arguments of a verb, each with the name of its value.
fn path_arguments(verb: &Command) -> impl Iterator<Item = (&Arg, String)> {
    let path = ValueParser::path_buf().type_id();
    let is_path = move |arg: &&Arg| arg.get_value_parser().type_id() == path;
    verb.get_arguments().filter(is_path).map(|arg| {
        let names = arg.get_value_names().unwrap_or_default();
        (arg, names.iter().map(|name| name.as_str()).collect())
    })
}

/// Keeps all that the command reads from being overwritten.
fn protect_inputs(command: &Command, matches: &ArgMatches) {
    let Some((name, values)) = matches.subcommand() else {
        return;
    };
    let verb = command.find_subcommand(name);
    let arguments = verb.into_iter().flat_map(path_arguments);
    let read = arguments.filter(|(_, value)| !WRITTEN.contains(&&**value) && value != WORKED_IN);
    for (argument, _) in read {
        let given = values.try_get_raw(argument.get_id().as_str());
        let paths = given.ok().flatten().into_iter().flatten();
        guard::protect(paths.map(Path::new));
    }
}

/// The verbs that read a text from a file without a corpus, up to the length that an option of corpora sets.
const READ_TEXTS: [&str; 2] = ["explain", "query"];

/// Returns true if the command reads a text from a file.
fn reads_text(verb: &str, values: &ArgMatches) -> bool {
    let is_given = |id: &&str| {
        let mut given = values.try_get_raw(id).ok().flatten().into_iter().flatten();
        given.any(|value| *id != "text" || value != "-")
    };
    let is_text_given = verb == "query" && ["text", "key", "hash"].iter().any(is_given);
    READ_TEXTS.contains(&verb) && !is_text_given
}

/// Returns a command with the options of corpora alone.
fn corpus_options() -> Command {
    StoredOptions::augment_args(CorpusOptions::augment_args(Command::new("corpus")))
}

/// Returns true for a verb that may read a corpus.
fn takes_corpus(verb: &Command) -> bool {
    path_arguments(verb).any(|(_, value)| value.contains("CORPUS"))
}

/// Returns a failure for an option that has no effect in a verb or beside its arguments.
fn idle_option(command: &Command, matches: &ArgMatches) -> Option<Failure> {
    idle_corpus_option(command, matches).or_else(|| idle_schema_option(command, matches))
}

/// Options of a schema that decide which documents are found in it, and nothing between two texts.
const OF_SEARCHES: [&str; 9] = [
    "threshold",
    "euclidean",
    "distance",
    "recall",
    "bands",
    "rows",
    "tables",
    "expected",
    "near",
];

/// Options for the hashes that `contain` finds.
const OF_CONTAINMENT: [&str; 4] = ["containment", "window", "scaled", "positions"];

/// The options that give signatures, by which near documents are found.
const OF_SIGNATURES: [&str; 4] = ["minhash", "simhash", "fingerprints", "vector"];

/// Returns a failure for an option of the schema that the verb makes no use of.
fn idle_schema_option(command: &Command, matches: &ArgMatches) -> Option<Failure> {
    let (name, values) = matches.subcommand()?;
    let verb = command.find_subcommand(name)?;
    let is_given = |id: &&&str| {
        let is_known = verb.get_arguments().any(|it| it.get_id() == **id);
        is_known && values.value_source(id) == Some(ValueSource::CommandLine)
    };
    let of_searches = || OF_SEARCHES.iter().find(is_given);
    // Alone they are no schema for a search, which is reported as that.
    let of_containment = || {
        let has_signatures = OF_SIGNATURES.iter().any(|id| is_given(&id));
        OF_CONTAINMENT
            .iter()
            .find(is_given)
            .filter(|_| has_signatures)
    };
    let (id, reason) = match name {
        "explain" => (
            of_searches().or_else(of_containment)?,
            "explain compares two texts without a search",
        ),
        "pairs" | "clusters" | "dedup" | "report" | "eval" => {
            let reason = "contain finds shared passages, in a store that build makes";
            let of_tables = || {
                let has_tables = ["simhash", "fingerprints"].iter().any(|id| is_given(&id));
                let is_idle = is_given(&&"expected") && !has_tables && !is_given(&&"level");
                is_idle.then_some(&"expected")
            };
            match of_containment() {
                Some(id) => (id, reason),
                None => (of_tables()?, "it is for the tables of SimHash (--simhash)"),
            }
        }
        _ => return None,
    };
    let option = id.replace('_', "-");
    Some(Failure::usage(format!(
        "--{option} has no effect in {name}: {reason}"
    )))
}

/// Returns a failure for an option of corpora where the command reads none: it has no effect.
fn idle_corpus_option(command: &Command, matches: &ArgMatches) -> Option<Failure> {
    let (name, values) = matches.subcommand()?;
    let verb = command.find_subcommand(name)?;
    let mut store = None;
    for (argument, _) in path_arguments(verb).filter(|(_, value)| value.contains("CORPUS")) {
        let given = values.try_get_raw(argument.get_id().as_str());
        for path in given.ok().flatten().into_iter().flatten().map(Path::new) {
            if !is_store(path) {
                return None;
            }
            store = Some(path);
        }
    }
    if !takes_corpus(verb) {
        return None;
    }
    let of_corpora = corpus_options();
    let mut options = verb.get_arguments().filter(|option| {
        let id = option.get_id().as_str();
        let is_of_corpora = of_corpora.get_arguments().any(|it| it.get_id() == id);
        let is_of_texts = id == "max_line" && reads_text(name, values);
        let is_given = values.value_source(id) == Some(ValueSource::CommandLine);
        is_of_corpora && !is_of_texts && is_given
    });
    let option = options.find_map(Arg::get_long)?;
    let failure = Failure::usage(format!(
        "--{option} is for a corpus, and {name} reads none here"
    ));
    Some(match store {
        Some(store) => failure.with_note(format!("{} is a store", store.display())),
        None => failure,
    })
}

/// Prints how long a run took: without `-v` only after a long one.
fn print_time(context: &Context, took: Duration) {
    let (seconds, threads) = (took.as_secs_f64(), context.threads);
    let text = format!("took {seconds:.1} s with up to {threads} threads");
    if took >= LONG_RUN {
        context.note(text);
    } else {
        context.detail(text);
    }
}

pub(crate) fn command() -> Command {
    shaped(ToolArguments::command())
}

/// Prints help and version to standard output, and mistakes in the words of the tool.
fn explain_usage(
    error: &clap::Error,
    explained: Option<String>,
    config: Option<&Path>,
) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return print_whole(|| match error.kind() {
            ErrorKind::DisplayVersion if is_verbose(std::env::args_os()) => {
                guard::print(build_details().as_bytes())
            }
            _ => error.print().map_err(|e| Failure::output(&e)),
        });
    }
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        print_help(text.trim_end());
        return ExitCode::from(2);
    }
    // Common options without a verb, which a file of defaults may have given.
    if error.kind() == ErrorKind::MissingSubcommand {
        print_help(command().render_help().to_string().trim_end());
        return ExitCode::from(2);
    }
    let own = explained.unwrap_or_else(|| without_guesses(&text));
    let usage = own.as_str();
    match config {
        Some(path) => print_usage(&format!(
            "{usage}\n\nDefaults of options come from {}.",
            path.display()
        )),
        None => print_usage(usage),
    }
    ExitCode::from(2)
}

/// Prints the help or the version.
fn print_whole(print: impl FnOnce() -> Result<()>) -> ExitCode {
    match print() {
        Err(failure) if failure.kind == FailureKind::Io => {
            print_failure(&failure);
            ExitCode::from(failure.exit_code())
        }
        // a closed pipe is not worth a word
        _ => ExitCode::SUCCESS,
    }
}

/// Returns true if a command line that asks for the version asks for details as well. Clap stops at the version.
fn is_verbose(given: impl Iterator<Item = OsString>) -> bool {
    let is_short = |it: &str| it.starts_with('-') && !it.starts_with("--") && it.contains('v');
    let mut options = given.skip(1).filter_map(|it| it.into_string().ok());
    options.any(|it| it == "--verbose" || is_short(&it))
}

/// Returns the message of clap, without the label of an error and its advice on how to give values that look like options.
fn without_guesses(text: &str) -> String {
    let said = text.strip_prefix("error: ").unwrap_or(text).trim_end();
    let lines = said.lines().filter(|line| !line.starts_with("  tip: "));
    let kept: Vec<&str> = lines.collect();
    kept.join("\n").replace("\n\n\n", "\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help::GROUPS;
    use crate::options::{BoundOptions, SchemaOptions};

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_is_in_one_group_of_the_help() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, verbs)| verbs.iter().copied())
            .collect();
        grouped.sort_unstable();
        let command = command();
        let mut verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
    }

    /// Returns the shortest command line that a verb accepts.
    fn least(verb: &Command) -> Vec<String> {
        let mut line = vec!["resemblance".to_owned(), verb.get_name().to_owned()];
        let positional = verb.get_positionals();
        let values = positional.filter(|it| it.is_required_set()).count();
        line.extend(std::iter::repeat_n("1".to_owned(), values));
        let named = verb.get_opts().filter(|it| it.is_required_set());
        line.extend(
            named
                .filter_map(|it| it.get_long())
                .map(|long| format!("--{long}=x")),
        );
        let more: &[&str] = match verb.get_name() {
            "dedup" => &["--dry-run"],
            "evict" => &["--keep-newest=1"],
            "explain" => &["a", "b"],
            "remove" => &["1"],
            _ => &[],
        };
        line.extend(more.iter().map(|word| (*word).to_owned()));
        line
    }

    /// An option with a value that it takes.
    fn with_value(command: &Command, least: &[String], option: &clap::Arg) -> Option<String> {
        let long = option.get_long()?;
        if !option.get_action().takes_values() {
            return Some(format!("--{long}"));
        }
        let possible = option.get_possible_values();
        let possible = possible.iter().map(|value| value.get_name().to_owned());
        let usual = ["1", "64", "0.5", "en", "5,2", "ff", "x"].map(str::to_owned);
        let written = possible
            .chain(usual)
            .map(|value| format!("--{long}={value}"));
        written.into_iter().find(|given| {
            let line = least.iter().chain([given]);
            let parsed = command.clone().try_get_matches_from(line);
            let is_value = |error: &clap::Error| {
                matches!(
                    error.kind(),
                    ErrorKind::ValueValidation | ErrorKind::InvalidValue
                )
            };
            parsed.as_ref().err().is_none_or(|error| !is_value(error))
        })
    }

    /// clap drops the requirement of an option when something that is given conflicts with what is required. Then
    /// the option would have no effect.
    #[test]
    fn required_options_are_enforced_beside_any_other_option() {
        let command = command();
        let (mut idle, mut tried) = (Vec::new(), 0);
        for verb in command.get_subcommands() {
            let least = least(verb);
            let options: Vec<String> = verb
                .get_arguments()
                .filter_map(|option| with_value(&command, &least, option))
                .collect();
            let parsed = |more: &[&String]| {
                let line = least.iter().chain(more.iter().copied());
                command.clone().try_get_matches_from(line)
            };
            for option in &options {
                let Err(error) = parsed(&[option]) else {
                    continue;
                };
                if error.kind() != ErrorKind::MissingRequiredArgument {
                    continue;
                }
                let missing = format!("{error}");
                for other in &options {
                    tried += 1;
                    let long = other.split('=').next().unwrap();
                    if !missing.contains(long) && parsed(&[option, other]).is_ok() {
                        idle.push(format!("{} {option} {other}", verb.get_name()));
                    }
                }
            }
        }
        assert!(tried > 500, "{tried}");
        assert!(idle.is_empty(), "{idle:#?}");
    }

    /// Each option of corpora is refused where none is read, and is not where one is.
    #[test]
    fn options_of_corpora_need_a_corpus() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("s.rsm");
        let schema = resemblance::Schema::builder().simhash(resemblance::SimHash::bits64());
        resemblance::Store::create(&store, schema.build().unwrap()).unwrap();
        let store = store.to_str().unwrap();
        let without: [(&str, &[&str], &[&str]); 7] = [
            ("pairs", &[store], &["c.jsonl"]),
            ("clusters", &[store], &["c.jsonl"]),
            ("create", &["new.rsm"], &["new.rsm", "--tf-idf-of=c.jsonl"]),
            ("explain", &["a", "b"], &["a", "b", "--corpus=c.jsonl"]),
            ("query", &[store, "x"], &[store, "--corpus=c.jsonl"]),
            (
                "reband",
                &[store, "--recall=0.9"],
                &[store, "--exact=c.jsonl"],
            ),
            ("tune", &[], &["--corpus=c.jsonl"]),
        ];
        let (command, mut tried) = (command(), 0);
        for verb in command.get_subcommands().filter(|verb| takes_corpus(verb)) {
            let options = corpus_options();
            let of_corpora = |option: &&clap::Arg| {
                let mut known = options.get_arguments();
                known.any(|it| it.get_id() == option.get_id())
            };
            for option in verb.get_arguments().filter(of_corpora) {
                let name = verb.get_name();
                let idle = |words: &[&str]| {
                    let least: Vec<String> = ["resemblance", name]
                        .iter()
                        .chain(words)
                        .map(|word| (*word).to_owned())
                        .collect();
                    let given = with_value(&command, &least, option);
                    let line = least.into_iter().chain(given);
                    let matches = command.clone().try_get_matches_from(line).unwrap();
                    idle_corpus_option(&command, &matches).is_some()
                };
                let Some((_, without, with)) = without.iter().find(|(verb, ..)| *verb == name)
                else {
                    // A corpus is required.
                    let positional = verb.get_arguments().any(|it| {
                        let value = it.get_value_names().unwrap_or_default();
                        it.is_required_set() && value.iter().any(|name| name.contains("CORPUS"))
                    });
                    assert!(positional, "{name}");
                    continue;
                };
                tried += 1;
                let is_of_texts = option.get_id() == "max_line" && name == "explain";
                assert_eq!(idle(without), !is_of_texts, "{name} {}", option.get_id());
                assert!(!idle(with), "{name} {}", option.get_id());
            }
        }
        assert!(tried > 60, "{tried}");
        for (words, is_idle) in [
            ("x", true),
            ("-", false),
            ("--file=f", false),
            ("--key=k", true),
        ] {
            let line = ["resemblance", "query", store, words, "--max-line=9"];
            let matches = command.clone().try_get_matches_from(line).unwrap();
            let idle = idle_corpus_option(&command, &matches);
            assert_eq!(idle.is_some(), is_idle, "{words}");
        }
    }

    /// A path option counts as read unless the name of its value shows that it is written. This
    /// list forces a decision for each new option.
    #[test]
    fn every_path_option_is_declared_as_read_or_written() {
        let read = [
            "STORE",
            "CORPUS",
            "CORPUS|STORE",
            "F",
            "FILE",
            "STREAM",
            "STORE|CORPUS",
        ];
        let command = command();
        for verb in command.get_subcommands() {
            for (argument, value) in path_arguments(verb) {
                let is_known = WRITTEN.contains(&&*value) || value == WORKED_IN;
                let (verb, name) = (verb.get_name(), argument.get_id());
                assert!(
                    is_known || read.contains(&&*value),
                    "{verb} {name}: {value}"
                );
            }
        }
    }

    /// Options of searches and of containment are refused in the verbs that make no use of them, and in no other.
    #[test]
    fn options_without_effect_in_a_verb_are_refused() {
        let (command, mut tried) = (command(), 0);
        for verb in command.get_subcommands() {
            let name = verb.get_name();
            let is_idle = match name {
                "explain" => true,
                _ => ["pairs", "clusters", "dedup", "report", "eval"].contains(&name),
            };
            // Nothing is refused beside --minhash alone, except what is for tables of SimHash.
            let of_searches = OF_SEARCHES.iter();
            let of_searches =
                of_searches.map(|id| (id, name == "explain" || is_idle && *id == "expected"));
            let of_containment = OF_CONTAINMENT.iter().map(|id| (id, is_idle));
            for (id, is_refused) in of_searches.chain(of_containment) {
                let known = |id: &str| verb.get_arguments().any(|it| it.get_id() == id);
                if !known(id) || !known("minhash") || !known("containment") {
                    continue;
                }
                let line = [least(verb), vec!["--minhash=64".to_owned()]].concat();
                let beside = match *id {
                    "bands" => Some("--rows=4"),
                    "rows" => Some("--bands=4"),
                    "window" | "scaled" | "positions" => Some("--containment=5"),
                    _ => None,
                };
                let line: Vec<String> = line.into_iter().chain(beside.map(str::to_owned)).collect();
                let option = verb.get_arguments().find(|it| it.get_id() == *id);
                let given = option.and_then(|option| with_value(&command, &line, option));
                let matches = command
                    .clone()
                    .try_get_matches_from(line.iter().chain(&given));
                let refused = idle_schema_option(&command, &matches.unwrap());
                tried += 1;
                assert_eq!(refused.is_some(), is_refused, "{name} {given:?}");
            }
        }
        assert!(tried > 60, "{tried}");
    }

    /// Each option of a schema changes a schema of any other kind, or is refused beside it.
    #[test]
    fn every_option_of_a_schema_changes_it_or_is_refused() {
        let arguments = SchemaOptions::augment_args(BoundOptions::augment_args(Command::new("x")));
        let build = |words: &[&str]| {
            let line = ["x"].iter().chain(words);
            let matches = arguments.clone().try_get_matches_from(line).ok()?;
            let bounds = BoundOptions::from_arg_matches(&matches).unwrap();
            let schema = SchemaOptions::from_arg_matches(&matches).unwrap();
            schema.build(&bounds).ok()
        };
        let kinds: [&[&str]; 20] = [
            &[],
            &["--chars=4"],
            &["--code=4"],
            &["--features"],
            &["--minhash-kind=one-pass"],
            &["--minhash-kind=bottom-k"],
            &["--minhash-kind=weighted"],
            &["--minhash-kind=probability"],
            &["--minhash-kind=external"],
            &["--simhash=64"],
            &["--simhash=32", "--minhash=64"],
            &["--simhash=128", "--minhash-kind=weighted", "--minhash=64"],
            &["--fingerprints=64"],
            &["--fingerprints=64", "--minhash=64"],
            &["--exact"],
            &["--exact", "--features"],
            &["--containment=6"],
            &["--containment=6", "--minhash=64"],
            &["--vector=8"],
            &["--vector=8", "--simhash=64"],
        ];
        let values = [
            "0.7",
            "2",
            "3",
            "16",
            "32",
            "64",
            "128",
            "256",
            "512",
            "0.99",
            "en",
            "5,2",
            "both",
            "alike",
            "one-pass",
            "bottom-k",
            "jenkins",
            "1000000000000",
            "2000",
            "f16",
        ];
        let (mut idle, mut tried) = (Vec::new(), 0);
        for kind in kinds {
            let plain = build(kind).unwrap();
            for option in arguments.get_arguments() {
                let Some(long) = option.get_long().filter(|long| *long != "help") else {
                    continue;
                };
                if kind
                    .iter()
                    .any(|word| word.starts_with(&format!("--{long}")))
                {
                    continue;
                }
                let given: Vec<String> = match option.get_action().takes_values() {
                    true => values
                        .iter()
                        .map(|value| format!("--{long}={value}"))
                        .collect(),
                    false => vec![format!("--{long}")],
                };
                let beside: &[&str] = match long {
                    "bands" => &["--rows=3"],
                    "rows" => &["--bands=3"],
                    _ => &[],
                };
                let built = given.iter().filter_map(|given| {
                    let words = kind.iter().chain(beside).copied().chain([given.as_str()]);
                    build(&words.collect::<Vec<_>>())
                });
                let built: Vec<_> = built.collect();
                tried += 1;
                // Documents of both kinds are no texts, which the option states again.
                let is_implied = long == "features"
                    && kind.iter().any(|word| {
                        ["--minhash-kind=external", "--fingerprints=64"].contains(word)
                    });
                if !is_implied && !built.is_empty() && built.iter().all(|schema| *schema == plain) {
                    idle.push(format!("{kind:?} --{long}"));
                }
            }
        }
        assert!(tried > 400, "{tried}");
        assert!(idle.is_empty(), "{idle:#?}");
    }
}
