//! The form of the help: verbs in groups, and a short help that fits a screen.

use std::sync::OnceLock;

use clap::{Arg, Command};
use resemblance::schema::UNICODE_VERSION;
use resemblance::stats::{FORMAT_VERSION, vector_instructions};

/// The verbs by what they are for, in the order in which the help lists them.
pub(crate) const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Near-duplicates of a corpus",
        &[
            "dedup",
            "pairs",
            "clusters",
            "explain",
            "report",
            "decontaminate",
        ],
    ),
    (
        "Stores",
        &[
            "create", "build", "add", "query", "contain", "get", "list", "cluster", "changes",
            "remove", "touch", "evict",
        ],
    ),
    (
        "Upkeep of stores",
        &[
            "stats", "check", "compact", "reband", "repair", "backup", "export", "import",
        ],
    ),
    ("Choice of a schema", &["tune", "eval"]),
    ("This tool", &["completions", "man"]),
];

/// Headings of many options, of which the short help shows few.
const LONG_HEADINGS: [&str; 4] = ["Schema", "Bounds", "Corpus", "Common options"];

/// These few.
const SHORT: [&str; 15] = [
    "words",
    "chars",
    "minhash",
    "simhash",
    "vector",
    "threshold",
    "distance",
    "verify",
    "text-field",
    "id",
    "as",
    "skip-bad",
    "memory",
    "threads",
    "quiet",
];

/// The optional parts of this build.
const FEATURES: [(&str, bool); 5] = [
    ("html", cfg!(feature = "html")),
    ("remote", cfg!(feature = "remote")),
    ("sqlite", cfg!(feature = "sqlite")),
    ("tables", cfg!(feature = "tables")),
    ("warc", cfg!(feature = "warc")),
];

/// Returns the version of the tool and the format of its stores.
pub(crate) fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let release = env!("CARGO_PKG_VERSION");
        format!("{release} (store format {FORMAT_VERSION})")
    })
}

/// Returns the lines that identify a build in a report of a bug.
pub(crate) fn build_details() -> String {
    let present = FEATURES.iter().filter(|(_, is_present)| *is_present);
    let names: Vec<&str> = present.map(|(name, _)| *name).collect();
    let features = match names.is_empty() {
        true => "none".into(),
        false => names.join(", "),
    };
    let (major, minor, update) = UNICODE_VERSION;
    format!(
        "resemblance {}\ncommit: {}\ntarget: {}\nfeatures: {features}\nvector instructions: {}\n\
         Unicode: {major}.{minor}.{update}\n",
        version(),
        env!("RESEMBLANCE_COMMIT"),
        env!("RESEMBLANCE_TARGET"),
        vector_instructions(),
    )
}

/// Returns the command with its verbs in groups, and with most options left out of the short help.
pub(crate) fn shaped(command: Command) -> Command {
    let template = template(&command);
    let shorten = |verb: Command| verb.mut_args(shortened);
    command
        .mut_args(shortened)
        .mut_subcommands(shorten)
        .help_template(template)
}

fn shortened(option: Arg) -> Arg {
    let is_of_many = option
        .get_help_heading()
        .is_some_and(|heading| LONG_HEADINGS.contains(&heading));
    let is_short = option.get_long().is_none_or(|name| SHORT.contains(&name));
    option.hide_short_help(is_of_many && !is_short)
}

fn template(command: &Command) -> String {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut verbs = String::new();
    for (title, names) in GROUPS {
        verbs += &format!("{header}{title}:{header:#}\n");
        for verb in names
            .iter()
            .filter_map(|name| command.find_subcommand(name))
        {
            let about = verb
                .get_about()
                .map_or_else(String::new, ToString::to_string);
            verbs += &format!("  {literal}{:<13}{literal:#}  {about}\n", verb.get_name());
        }
        verbs.push('\n');
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{verbs}\
         {header}Options:{header:#}\n{{options}}\n\n\
         All about a verb: resemblance VERB --help{{after-help}}"
    )
}
