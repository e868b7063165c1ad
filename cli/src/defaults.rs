//! Defaults of options, read from a file.
//!
//! They become arguments behind the given ones, unless these override them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use toml::{Table, Value};

use crate::failure::{Failure, Result};

/// The environment's name for `--config`.
pub(crate) const CONFIG_VARIABLE: &str = "RESEMBLANCE_CONFIG";

/// The path of the file in the user's folder of configurations.
const USUAL_PLACE: &str = "resemblance/config.toml";

/// Options that concern near-duplicate documents. Their defaults are not applied where `dedup`
/// removes only paragraphs or lines.
const DOCUMENT_OPTIONS: [&str; 35] = [
    "threshold",
    "distance",
    "by",
    "policy",
    "keep",
    "budget",
    "max-bucket",
    "verify",
    "auto",
    "words",
    "unordered",
    "minhash",
    "minhash-kind",
    "permutations",
    "value-bits",
    "recall",
    "bands",
    "rows",
    "simhash",
    "simhash-counts",
    "fingerprints",
    "tables",
    "containment",
    "expected",
    "seed",
    "tf-idf",
    "near",
    "empty",
    "annotate",
    "verdicts",
    "report",
    "rejected",
    "review",
    "against",
    "lost",
];

/// The part of `--help` about the file of defaults.
pub(crate) const DEFAULTS_HELP: &str = "\
Defaults of options come from a TOML file: the one that --config or
$RESEMBLANCE_CONFIG names (an empty name means none), or else
resemblance/config.toml in $XDG_CONFIG_HOME or ~/.config (on Windows, in
%APPDATA%). Common options are at its top, others in a table named after the
verb:
    memory = \"4G\"
    [dedup]
    threshold = 0.85
    text-field = \"content\"
$RESEMBLANCE_MEMORY, $RESEMBLANCE_CACHE, $RESEMBLANCE_THREADS,
$RESEMBLANCE_TEMP_DIR and $RESEMBLANCE_WAIT override the file, and the command
line overrides both. -v prints which file was read.";

/// Returns the arguments with the defaults of the file that they or the environment name, and the
/// path of the file, if there is one. `contradicts_itself` returns whether the values of parsed
/// options contradict each other.
///
/// # Errors
///
/// Returns a usage failure if the file has an unknown option, or is not TOML; a failure of the
/// system if it was named and cannot be read.
pub(crate) fn with_defaults(
    command: &Command,
    arguments: Vec<OsString>,
    contradicts_itself: impl Fn(&ArgMatches) -> bool,
) -> Result<(Vec<OsString>, Option<PathBuf>)> {
    if !may_have_file(&arguments) {
        return Ok((arguments, None));
    }
    // The given arguments decide which defaults count. Any fault of them is reported later.
    let Some(given) = partial_matches(command, arguments.clone()) else {
        return Ok((arguments, None));
    };
    if given.subcommand_name().is_none() {
        return Ok((arguments, None));
    }
    let Some((path, text)) = read(given.get_one::<OsString>("config"))? else {
        return Ok((arguments, None));
    };
    let in_file = |error: String| Failure::usage(format!("{}: {error}", path.display()));
    let table = text
        .parse::<Table>()
        .map_err(|error| not_toml(&path, &text, &error))?;
    let defaults = defaults(command, &table, &given).map_err(in_file)?;
    let is_end_of_options = |argument: &OsString| argument == "--";
    let end = arguments
        .iter()
        .position(is_end_of_options)
        .unwrap_or(arguments.len());
    let with = |defaults: &[Vec<OsString>]| {
        let mut arguments = arguments.clone();
        arguments.splice(end..end, defaults.iter().flatten().cloned());
        arguments
    };
    let met = without_unmet(command, defaults, &with);
    let alone = |defaults: &[Vec<OsString>]| alone(command, &given, defaults);
    let contradict = |arguments: Vec<OsString>| {
        let parsed = partial_matches(command, arguments);
        parsed.is_some_and(|matches| contradicts_itself(&matches))
    };
    let agreeing = without_contradicting(
        met,
        |defaults| contradict(with(defaults)),
        |defaults| contradict(alone(defaults)),
    );
    let applicable = without_unmet(command, agreeing, &with);
    Ok((with(&applicable), Some(path)))
}

/// Parses arguments as far as they are right.
fn partial_matches(command: &Command, arguments: Vec<OsString>) -> Option<ArgMatches> {
    let partial = command.clone().ignore_errors(true);
    partial.try_get_matches_from(arguments).ok()
}

/// Returns the verb with its inputs and some defaults, without the options that are given.
fn alone(command: &Command, given: &ArgMatches, defaults: &[Vec<OsString>]) -> Vec<OsString> {
    let Some((name, values)) = given.subcommand() else {
        return Vec::new();
    };
    let verb = command.find_subcommand(name);
    let inputs = verb.into_iter().flat_map(Command::get_positionals);
    let inputs = inputs.filter_map(|input| values.try_get_raw(input.get_id().as_str()).ok());
    let inputs = inputs.flatten().flatten().map(OsString::from);
    let words = [command.get_name(), name].map(OsString::from).into_iter();
    let defaults = defaults.iter().flatten().cloned();
    let end = std::iter::once(OsString::from("--"));
    words.chain(defaults).chain(end).chain(inputs).collect()
}

/// Leaves out the defaults whose values contradict those of the command line, which overrides them.
/// Defaults that contradict each other remain, as a mistake to report. Both functions return whether
/// some defaults contradict themselves: with the command line, and without it.
fn without_contradicting(
    mut defaults: Vec<Vec<OsString>>,
    with_given: impl Fn(&[Vec<OsString>]) -> bool,
    alone: impl Fn(&[Vec<OsString>]) -> bool,
) -> Vec<Vec<OsString>> {
    if defaults.is_empty() || with_given(&[]) {
        return defaults;
    }
    let are_at_odds = alone(&defaults);
    while with_given(&defaults) {
        let is_cause = |index: &usize| {
            let Some(one) = defaults.get(*index).map(std::slice::from_ref) else {
                return false;
            };
            let mut others = defaults.clone();
            others.remove(*index);
            with_given(one) && !alone(one) || !are_at_odds && !with_given(&others)
        };
        let Some(cause) = (0..defaults.len()).find(is_cause) else {
            return defaults;
        };
        defaults.remove(cause);
    }
    defaults
}

/// Leaves out the defaults of options that need another one, which neither the command line nor the
/// file gives. `with` returns the given arguments with some defaults.
fn without_unmet(
    command: &Command,
    mut defaults: Vec<Vec<OsString>>,
    with: &impl Fn(&[Vec<OsString>]) -> Vec<OsString>,
) -> Vec<Vec<OsString>> {
    let missing = |defaults: &[Vec<OsString>]| {
        let parsed = command.clone().try_get_matches_from(with(defaults));
        let error = parsed.err();
        let error = error.filter(|error| error.kind() == ErrorKind::MissingRequiredArgument);
        match error.and_then(|error| error.get(ContextKind::InvalidArg).cloned()) {
            Some(ContextValue::Strings(names)) => names,
            Some(ContextValue::String(name)) => vec![name],
            _ => Vec::new(),
        }
    };
    loop {
        let with_all = missing(&defaults);
        if with_all.is_empty() {
            return defaults;
        }
        // What the command line lacks by itself is for its own error.
        let without_any = missing(&[]);
        let is_unmet = |name: &String| with_all.contains(name) && !without_any.contains(name);
        let before = defaults.len();
        defaults.retain(|default| !missing(std::slice::from_ref(default)).iter().any(is_unmet));
        if defaults.len() == before {
            return defaults;
        }
    }
}

/// Returns whether a file is named, or is at its usual place, as far as that can be decided without
/// parsing the arguments twice.
fn may_have_file(arguments: &[OsString]) -> bool {
    let names_one = |argument: &OsString| argument.as_encoded_bytes().starts_with(b"--config");
    arguments.iter().any(names_one)
        || match std::env::var_os(CONFIG_VARIABLE) {
            Some(path) => !path.is_empty(),
            None => usual_path().is_some_and(|path| path.is_file()),
        }
}

/// Returns the path of the file and its contents.
fn read(named: Option<&OsString>) -> Result<Option<(PathBuf, String)>> {
    let path = match named {
        Some(named) if named.is_empty() => return Ok(None),
        Some(named) => named.into(),
        None => match usual_path() {
            Some(path) if path.is_file() => path,
            _ => return Ok(None),
        },
    };
    let name = path.display();
    let cannot_read = |error| Failure::io(format!("cannot read {name}"), &error);
    let found = std::fs::metadata(&path).map_err(cannot_read)?;
    // A pipe would have to be waited for, and a device may have no end.
    if !found.is_file() {
        return Err(Failure::usage(format!(
            "--config {name}: found something other than a file"
        ))
        .with_note("write the defaults to a file"));
    }
    let bytes = std::fs::read(&path).map_err(cannot_read)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) => {
            let bytes = error
                .as_bytes()
                .iter()
                .take(error.utf8_error().valid_up_to());
            let line = 1 + bytes.filter(|byte| **byte == b'\n').count();
            Err(
                Failure::usage("a configuration file must be UTF-8, and this line is not")
                    .at(format!("{name}:{line}")),
            )
        }
    }
}

/// Names the line that is not TOML.
fn not_toml(path: &Path, text: &str, error: &toml::de::Error) -> Failure {
    let start = error.span().map_or(0, |span| span.start);
    let bytes = text.bytes().take(start);
    let line = 1 + bytes.filter(|byte| *byte == b'\n').count();
    let reason = error.message().replace('\n', ", ");
    Failure::usage(format!("not TOML: {reason}")).at(format!("{}:{line}", path.display()))
}

fn usual_path() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = if cfg!(windows) {
        variable("APPDATA").map(PathBuf::from)
    } else {
        let home = || variable("HOME").map(|home| Path::new(&home).join(".config"));
        variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)
    };
    folder.map(|folder| folder.join(USUAL_PLACE))
}

/// Returns the arguments that each option of a file represents. The error describes the fault of the
/// file.
fn defaults(
    command: &Command,
    table: &Table,
    given: &ArgMatches,
) -> Result<Vec<Vec<OsString>>, String> {
    let mut defaults = Vec::new();
    for (name, value) in table {
        let Value::Table(options) = value else {
            defaults.push(default(command, name, value, Some(given))?);
            continue;
        };
        let Some(of_verb) = command.find_subcommand(name) else {
            return Err(format!("[{name}]: there is no such verb"));
        };
        let given_to_verb = given.subcommand_matches(name);
        for (option, value) in options {
            // Tables of other verbs are read as well, so that a mistake is reported immediately.
            let default = default(of_verb, option, value, given_to_verb)
                .map_err(|error| format!("[{name}]: {error}"))?;
            let is_idle = name == "dedup"
                && DOCUMENT_OPTIONS.contains(&&**option)
                && given_to_verb.is_some_and(|given| !drops_documents(options, given));
            if given_to_verb.is_some() && !is_idle {
                defaults.push(default);
            }
        }
    }
    Ok(defaults)
}

/// True unless a verb takes out paragraphs or lines alone, by the command line or else by the file.
fn drops_documents(options: &Table, given: &ArgMatches) -> bool {
    let is_document = |levels: &str| levels.split(',').any(|level| level == "document");
    let is_given = given.value_source("level") == Some(ValueSource::CommandLine);
    match options.get("level") {
        _ if is_given => {
            let levels = given.get_raw("level").into_iter().flatten();
            levels
                .map(|level| level.to_string_lossy())
                .any(|level| is_document(&level))
        }
        Some(Value::Array(levels)) => levels.iter().filter_map(Value::as_str).any(is_document),
        Some(level) => level.as_str().is_none_or(is_document),
        None => true,
    }
}

/// Returns the arguments that an option of the file represents: none if it was given, or another
/// that excludes it. `given` is `None` for a verb that does not run.
fn default(
    command: &Command,
    name: &str,
    value: &Value,
    given: Option<&ArgMatches>,
) -> Result<Vec<OsString>, String> {
    let is_named = |option: &&Arg| option.get_long() == Some(name) && name != "config";
    let Some(option) = command.get_arguments().find(is_named) else {
        return Err(match command.has_subcommands() {
            true => format!(
                "there is no common option {name} (see resemblance --help); options of a verb belong in its table, \
                 such as [dedup]"
            ),
            false => format!(
                "there is no option {name} (see resemblance {} --help)",
                command.get_name()
            ),
        });
    };
    let values = values(option, name, value)?;
    let mut excluding = command.get_arguments().filter(|other| {
        *other == option
            || command.get_arg_conflicts_with(other).contains(&option)
            || command.get_arg_conflicts_with(option).contains(other)
    });
    if given.is_some_and(|given| excluding.any(|other| is_given(given, other))) {
        return Ok(Vec::new());
    }
    Ok(values)
}

fn is_given(given: &ArgMatches, option: &Arg) -> bool {
    let id = option.get_id().as_str();
    let source = given
        .try_contains_id(id)
        .ok()
        .and_then(|_| given.value_source(id));
    source.is_some_and(|source| source != ValueSource::DefaultValue)
}

fn values(option: &Arg, name: &str, value: &Value) -> Result<Vec<OsString>, String> {
    let takes_value = option.get_action().takes_values();
    let argument = |value: &Value| {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Datetime(time) => time.to_string(),
            _ => return Err(format!("{name}: expected a string or a number")),
        };
        Ok(format!("--{name}={value}").into())
    };
    match value {
        Value::Boolean(is_set) if !takes_value => {
            let flag = is_set.then(|| format!("--{name}").into());
            Ok(flag.into_iter().collect())
        }
        _ if !takes_value => Err(format!("{name}: expected true or false")),
        Value::Array(values) => values.iter().map(argument).collect(),
        value => Ok(vec![argument(value)?]),
    }
}
