//! Mistakes on the command line, in the words of the tool.
//!
//! clap detects what is wrong. But its messages about values are those of Rust, and for unknown
//! options and verbs it suggests the nearest spelling. This module suggests what people mean
//! instead.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

/// Options of other tools and of other verbs, with those that do the same here. The first that the verb has is named.
const OPTIONS: [(&[&str], &[&str]); 20] = [
    (
        &[
            "-j",
            "--jobs",
            "--workers",
            "--num-workers",
            "--cpus",
            "--cores",
            "--processes",
            "--num-proc",
        ],
        &["threads"],
    ),
    (
        &[
            "-t",
            "--similarity",
            "--sim",
            "--jaccard",
            "--min-similarity",
            "--cutoff",
        ],
        &["threshold", "distance"],
    ),
    (&["--hamming", "--max-distance"], &["distance"]),
    (&["--l2", "--max-l2"], &["euclidean"]),
    (
        &[
            "--cosine",
            "--dim",
            "--dimension",
            "--dimensions",
            "--embedding",
            "--embeddings",
            "--vectors",
        ],
        &["vector", "vector-field"],
    ),
    (&["--embedding-field", "--vector-column"], &["vector-field"]),
    (
        &[
            "--num-perm",
            "--num-perms",
            "--perms",
            "--hashes-per-document",
        ],
        &["minhash"],
    ),
    (
        &[
            "--ngram",
            "--ngrams",
            "--ngram-size",
            "--shingle",
            "--shingles",
            "--shingle-size",
        ],
        &["words", "chars"],
    ),
    (
        &["-n", "-k", "--top", "--top-k", "--count"],
        &["limit", "nearest"],
    ),
    (
        &[
            "--field",
            "--column",
            "--text-column",
            "--content",
            "--text",
        ],
        &["text-field"],
    ),
    (&["--id-column", "--key-field", "--key"], &["id"]),
    (&["--mem", "--ram", "--max-memory"], &["memory"]),
    (&["--tmp", "--tmpdir", "--temp"], &["temp-dir"]),
    (&["--ignore", "--skip-files"], &["exclude"]),
    (&["-f", "-y", "--yes", "--overwrite"], &["force"]),
    (&["--dryrun", "--no-act"], &["dry-run"]),
    (&["--sep", "--delimiter", "--delim"], &["separator"]),
    (&["--silent"], &["quiet"]),
    (&["--debug", "--log-level"], &["verbose"]),
    (
        &["-o", "--out", "--outfile", "--output"],
        &["output", "svg"],
    ),
];

/// Options that nothing replaces, with what to do.
const OTHERWISE: [(&[&str], &str); 4] = [
    (
        &["--format"],
        "the name of an output file determines its format: .tsv, .csv, .jsonl, .json or .parquet",
    ),
    (
        &["-i", "--input", "--in", "--file", "--files", "--corpus"],
        "files and folders need no option: give them after the verb",
    ),
    (
        &["-f", "-y", "--yes", "--overwrite", "--force"],
        "it overwrites no file: give a new name where it makes one",
    ),
    (
        &["--encoding"],
        "texts must be UTF-8: convert them first, for example with iconv",
    ),
];

/// Verbs of other tools, with the ones that do the same here.
const VERBS: [(&[&str], &str); 18] = [
    (
        &["find", "search", "lookup", "match", "nearest"],
        "query finds the near-duplicates of a text in a store, and pairs finds those within a corpus",
    ),
    (
        &["similar", "join", "near", "duplicates"],
        "pairs lists near-duplicates",
    ),
    (
        &["group", "components"],
        "clusters lists groups of near-duplicates",
    ),
    (
        &["dedupe", "deduplicate", "uniq", "unique", "dup", "clean"],
        "dedup writes a corpus without its near-duplicates",
    ),
    (
        &["diff", "compare", "show"],
        "explain shows what two texts share",
    ),
    (&["init", "new"], "create makes an empty store"),
    (
        &["index", "load-corpus", "sketch", "fit"],
        "build makes a store from a corpus",
    ),
    (
        &["insert", "put", "upsert", "append", "update", "ingest"],
        "add adds documents to a store",
    ),
    (
        &["delete", "rm", "del", "drop"],
        "remove removes documents from a store",
    ),
    (
        &["prune", "expire", "gc", "purge", "trim"],
        "evict removes the oldest documents",
    ),
    (
        &["ls", "keys", "cat", "dump-keys"],
        "list prints the keys of a store",
    ),
    (
        &["info", "status", "stat", "inspect"],
        "stats describes a store",
    ),
    (
        &["verify", "fsck", "validate", "doctor"],
        "check looks for damage in a store",
    ),
    (
        &["vacuum", "optimize", "defrag", "shrink"],
        "compact shrinks the file of a store",
    ),
    (
        &["merge", "union", "concat"],
        "export and import add the documents of one store to another",
    ),
    (&["dump", "save"], "export writes a store as a stream"),
    (&["load", "restore"], "import reads the stream of export"),
    (
        &["plan", "params", "calibrate"],
        "tune chooses bands and rows",
    ),
];

/// Returns what is wrong, and what to do about it; `None` where clap's own words do.
pub(crate) fn explained(
    error: &clap::Error,
    command: &Command,
    arguments: &[OsString],
) -> Option<String> {
    // Common options belong to each verb once it is built.
    let mut built = command.clone();
    built.build();
    let command = &built;
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let verb = used_verb(command, arguments)?;
            unknown_option(verb, &context(error, ContextKind::InvalidArg)?)
        }
        ErrorKind::InvalidSubcommand => {
            let given = context(error, ContextKind::InvalidSubcommand)?;
            Some(unknown_verb(command, &given))
        }
        ErrorKind::MissingRequiredArgument => {
            missing_argument(error, used_verb(command, arguments)?)
        }
        ErrorKind::ArgumentConflict => {
            let verb = used_verb(command, arguments)?.get_name();
            let one = context(error, ContextKind::InvalidArg)?;
            let others = match error.get(ContextKind::PriorArg)? {
                ContextValue::String(other) => other.clone(),
                ContextValue::Strings(others) => others.join(" or "),
                _ => return None,
            };
            let message = match one == others {
                true => format!("{one} is given twice"),
                false => format!("{one} does not go with {others}; leave one of them out"),
            };
            Some(format!("{message} (see resemblance {verb} --help)"))
        }
        ErrorKind::WrongNumberOfValues => {
            wrong_number(error, used_verb(command, arguments)?.get_name())
        }
        ErrorKind::ValueValidation => {
            let argument = context(error, ContextKind::InvalidArg)?;
            let value = context(error, ContextKind::InvalidValue)?;
            let reason = error.source()?.to_string();
            let name = name_of(&argument, command, arguments);
            Some(format!("{name}: found {value:?}, {}", expected(&reason)))
        }
        ErrorKind::InvalidValue => {
            let argument = context(error, ContextKind::InvalidArg)?;
            let value = context(error, ContextKind::InvalidValue)?;
            let ContextValue::Strings(values) = error.get(ContextKind::ValidValue)? else {
                return None;
            };
            let name = name_of(&argument, command, arguments);
            let found = match value.is_empty() {
                true => "there is no value".to_owned(),
                false => format!("found {value:?}"),
            };
            let expected = match values.is_empty() {
                true => "a value".to_owned(),
                false => alternatives(values),
            };
            Some(format!("{name}: {found}, expected {expected}"))
        }
        _ => None,
    }
}

fn wrong_number(error: &clap::Error, verb: &str) -> Option<String> {
    let argument = context(error, ContextKind::InvalidArg)?;
    let number = |kind| match error.get(kind)? {
        ContextValue::Number(number) => Some(*number),
        _ => None,
    };
    let expected = number(ContextKind::ExpectedNumValues)?;
    let found = number(ContextKind::ActualNumValues)?;
    Some(format!(
        "{verb} needs {expected} values for {argument}, found {found} (see resemblance {verb} --help)"
    ))
}

/// Lists values, with "or" before the last.
fn alternatives(values: &[String]) -> String {
    match values {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        values => values.concat(),
    }
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn used_verb<'c>(command: &'c Command, arguments: &[OsString]) -> Option<&'c Command> {
    let mut given = arguments.iter().skip(1);
    given.find_map(|argument| command.find_subcommand(argument))
}

fn missing_argument(error: &clap::Error, used: &Command) -> Option<String> {
    let ContextValue::Strings(missing) = error.get(ContextKind::InvalidArg)? else {
        return None;
    };
    let verb = used.get_name();
    // Options that the verb does not always require are required by others.
    let is_always_required = |missing: &String| {
        let mut required = used.get_arguments().filter(|it| it.is_required_set());
        required.any(|it| it.to_string() == *missing) || missing.starts_with('<')
    };
    let with = match missing.iter().any(is_always_required) {
        true => "",
        false => " with these options",
    };
    let named = missing.iter().map(|missing| {
        let any = missing
            .strip_prefix("<--")
            .and_then(|any| any.strip_suffix('>'));
        any.map_or(missing.clone(), |any| {
            format!("one of --{}", any.replace("|--", ", --"))
        })
    });
    let missing = named.collect::<Vec<_>>().join(" and ");
    Some(format!(
        "{verb}{with} needs {missing} (see resemblance {verb} --help)"
    ))
}

fn unknown_option(verb: &Command, given: &str) -> Option<String> {
    let name = verb.get_name();
    let help = format!("see resemblance {name} --help");
    let given = given.split('=').next()?;
    if !given.starts_with('-') {
        let advice = match verb.get_arguments().any(|a| a.get_id() == "output") {
            true => format!("; -o {given} writes to it"),
            false => String::new(),
        };
        return Some(format!(
            "{name} takes no more arguments: found {given:?}{advice} ({help})"
        ));
    }
    if given
        .trim_start_matches('-')
        .starts_with(|first: char| first.is_ascii_digit())
    {
        return Some(format!(
            "{name} has no option {given}; put a value that begins with - after =, and a text or key after -- \
             ({help})"
        ));
    }
    let has = |long: &str| verb.get_arguments().any(|a| a.get_long() == Some(long));
    let hyphenated = given.replace('_', "-");
    let is_known = |names: &&[&str]| names.contains(&&*hyphenated);
    let same = OPTIONS.iter().filter(|(names, _)| is_known(names));
    let found = same.flat_map(|(_, here)| *here).find(|long| has(long));
    if let Some(long) = found {
        return Some(format!(
            "{name} has no option {given}; use --{long} ({help})"
        ));
    }
    if has("format") && ["-o", "--out", "--outfile", "--output"].contains(&given) {
        return Some(format!(
            "{name} has no option {given}; its results go to standard output: > FILE writes them to a file ({help})"
        ));
    }
    let otherwise = OTHERWISE.iter().find(|(names, _)| is_known(names));
    if let Some((_, advice)) = otherwise {
        return Some(format!("{name} has no option {given}; {advice} ({help})"));
    }
    let similar = verb.get_arguments().filter(|option| !option.is_hide_set());
    let similar = similar
        .filter_map(Arg::get_long)
        .filter(|long| is_slip(given, long))
        .min();
    Some(match similar {
        Some(long) => format!("{name} has no option {given}; did you mean --{long}? ({help})"),
        None => format!("{name} has no option {given} ({help})"),
    })
}

/// True if an option is misspelt, and not another one: the same letters in another order, or one too many or too few.
fn is_slip(given: &str, long: &str) -> bool {
    let Some(given) = given.strip_prefix("--") else {
        return false;
    };
    let plain = |text: &str| text.replace(['-', '_'], "");
    let (given, long) = (plain(given), plain(long));
    if given.len() < 3 {
        return false;
    }
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    sorted(&given) == sorted(&long) || lacks_one(&given, &long) || lacks_one(&long, &given) || {
        let differing = given.chars().zip(long.chars()).filter(|(a, b)| a != b);
        given.len() == long.len() && given.len() > 4 && differing.count() == 1
    }
}

/// True if the one text is the other one without one of its characters.
fn lacks_one(shorter: &str, longer: &str) -> bool {
    let indices = longer.char_indices();
    indices.into_iter().any(|(at, character)| {
        let (before, rest) = longer.split_at(at);
        shorter.strip_prefix(before) == Some(&rest[character.len_utf8()..])
    })
}

fn unknown_verb(command: &Command, given: &str) -> String {
    let known = VERBS.iter().find(|(names, _)| names.contains(&given));
    let advice = known.map(|(_, advice)| (*advice).to_owned()).or_else(|| {
        let verbs = command.get_subcommands().map(Command::get_name);
        let similar = verbs
            .filter(|verb| is_slip(&format!("--{given}"), verb))
            .min();
        similar.map(|verb| format!("did you mean {verb}?"))
    });
    match advice {
        Some(advice) => format!("there is no verb {given}; {advice} (see resemblance --help)"),
        None => format!("there is no verb {given} (see resemblance --help)"),
    }
}

/// The name of what has a value: the variable of the environment, if the value is from there.
fn name_of(argument: &str, command: &Command, arguments: &[OsString]) -> String {
    let name = argument.split([' ', '=']).next().unwrap_or(argument);
    let name = name.trim_end_matches("...");
    let Some(long) = name.strip_prefix("--") else {
        return name.to_owned();
    };
    let is_given = arguments
        .iter()
        .any(|given| given.as_encoded_bytes().starts_with(name.as_bytes()));
    let option = command
        .get_arguments()
        .find(|option| option.get_long() == Some(long));
    match option.and_then(Arg::get_env).filter(|_| !is_given) {
        Some(variable) => format!("${} ({name})", variable.to_string_lossy()),
        None => name.to_owned(),
    }
}

/// Returns the reason that Rust or clap gives against a value, in the words of the tool.
fn expected(reason: &str) -> String {
    let number = "expected a whole number";
    if let Some(range) = reason.split(" is not in ").nth(1) {
        return match range.split_once("..=").or_else(|| range.split_once("..")) {
            Some((least, most)) if most.is_empty() || most.parse() == Ok(u64::MAX) => {
                format!("{number} of at least {least}")
            }
            Some((least, most)) => format!("{number} from {least} to {most}"),
            None => format!("expected {range}"),
        };
    }
    match reason {
        "invalid float literal" | "cannot parse float from empty string" => {
            "expected a number, such as 0.8".into()
        }
        "invalid digit found in string" | "cannot parse integer from empty string" => number.into(),
        "number would be zero for non-zero type" => format!("{number} of at least 1"),
        "number too large to fit in target type" => format!("{number} that is smaller"),
        "number too small to fit in target type" => format!("{number} of at least 0"),
        reason if reason.starts_with("expected ") => reason.to_owned(),
        reason => match reason.split_once(", expected ") {
            Some((_, expected)) => format!("expected {expected}"),
            None => format!("which is wrong: {reason}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_cover_typing_errors_only() {
        for (given, long) in [
            ("--treshold", "threshold"),
            ("--text_field", "text-field"),
            ("--chasr", "chars"),
        ] {
            assert!(is_slip(given, long), "{given}");
        }
        for (given, long) in [
            ("--format", "force"),
            ("--exclude", "include"),
            ("--id", "in"),
            ("-o", "no"),
        ] {
            assert!(!is_slip(given, long), "{given}");
        }
    }

    #[test]
    fn errors_about_values_avoid_names_of_rust_types() {
        assert_eq!(
            expected("300 is not in 0..=255"),
            "expected a whole number from 0 to 255"
        );
        assert_eq!(
            expected("0 is not in 1.."),
            "expected a whole number of at least 1"
        );
        assert_eq!(
            expected("invalid float literal"),
            "expected a number, such as 0.8"
        );
    }
}
