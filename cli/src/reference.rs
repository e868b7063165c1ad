//! Writes the pages in `docs/cli` from the definition of the command line, and checks that they agree with it.

use std::collections::BTreeMap;
use std::path::Path;

use clap::{Arg, ArgAction, Command};

use crate::help::GROUPS;
use crate::tool::command;

/// Set, it makes the test write the pages.
const WRITE: &str = "RESEMBLANCE_WRITE";

const NOTICE: &str = "<!-- Generated, to look things up in: this page is not counted among the words that people read. \
    `RESEMBLANCE_WRITE=1 cargo test -p resemblance-cli --lib reference` writes it. -->\n";

/// Returns a text as one line of a table.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let escaped = words.join(" ").replace('|', "\\|");
    escaped
        .replace('<', "&lt;")
        .replace('*', "\\*")
        .replace('_', "\\_")
}

/// Returns an option or an argument as it is typed.
fn form(arg: &Arg) -> String {
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let mut value = String::new();
    for name in arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .filter(|_| takes_value)
    {
        value += &format!(" {name}");
    }
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    if names.is_empty() {
        return value.trim().to_owned();
    }
    format!("{}{value}", names.join(", "))
}

fn row(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut text = help.map_or_else(String::new, ToString::to_string);
    let values = arg.get_possible_values();
    let is_flag = !arg.get_action().takes_values();
    for value in values
        .iter()
        .filter(|value| !is_flag && !value.is_hide_set())
    {
        let about = value
            .get_help()
            .map_or_else(String::new, |help| format!(" ({help})"));
        text += &format!("; {}{about}", value.get_name());
    }
    let text = text.replace(".;", ";");
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    let default = if is_flag || defaults.is_empty() {
        String::new()
    } else {
        format!("`{}`", defaults.join(" "))
    };
    let form = form(arg).replace('|', "\\|");
    format!("| `{form}` | {} | {default} |\n", cell(&text))
}

/// Returns the tables of some arguments, one for each heading.
fn tables<'a>(args: impl Iterator<Item = &'a Arg>) -> String {
    let mut groups: Vec<(&str, String)> = Vec::new();
    for arg in args
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
    {
        let heading = match arg.get_help_heading() {
            _ if arg.is_positional() => "Arguments",
            Some(heading) => heading,
            None => "Options",
        };
        match groups.iter_mut().find(|(title, _)| *title == heading) {
            Some((_, rows)) => *rows += &row(arg),
            None => groups.push((heading, row(arg))),
        }
    }
    let table = |(title, rows): (&str, String)| {
        format!("\n## {title}\n\n| | | default |\n|---|---|---|\n{rows}")
    };
    groups.into_iter().map(table).collect()
}

fn page(verb: &mut Command) -> String {
    let about = verb.get_long_about().or_else(|| verb.get_about());
    let about = about.map_or_else(String::new, ToString::to_string);
    let usage = verb.render_usage().to_string().replace("Usage: ", "");
    let examples = verb
        .get_after_help()
        .map_or_else(String::new, ToString::to_string);
    let (name, tables) = (
        verb.get_name(),
        tables(verb.get_arguments().filter(|arg| !arg.is_global_set())),
    );
    format!(
        "{NOTICE}\n# resemblance {name}\n\n{}\n\n```text\n{usage}\n```\n{tables}\nAll verbs have the [common options](README.md#common-options).\n\n```text\n{}\n```\n",
        about.trim_end(),
        examples.trim_end()
    )
}

fn index(tool: &Command) -> String {
    let mut text = format!("{NOTICE}\n# Verbs and options\n");
    for (title, names) in GROUPS {
        text += &format!("\n## {title}\n\n| verb | |\n|---|---|\n");
        for verb in names.iter().filter_map(|name| tool.find_subcommand(name)) {
            let (name, about) = (
                verb.get_name(),
                verb.get_about()
                    .map_or_else(String::new, ToString::to_string),
            );
            text += &format!("| [`{name}`]({name}.md) | {} |\n", cell(&about));
        }
    }
    text + &tables(tool.get_arguments())
}

fn pages() -> BTreeMap<String, String> {
    let mut tool = command();
    tool.build();
    let mut pages = BTreeMap::from([("README.md".to_owned(), index(&tool))]);
    for verb in tool
        .get_subcommands_mut()
        .filter(|verb| verb.get_name() != "help")
    {
        pages.insert(format!("{}.md", verb.get_name()), page(verb));
    }
    pages
}

#[test]
fn pages_of_verbs_agree_with_the_command_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli");
    let pages = pages();
    if std::env::var_os(WRITE).is_some() {
        for (name, page) in &pages {
            std::fs::write(folder.join(name), page).unwrap();
        }
    }
    let (mut stale, mut found) = (Vec::new(), 0);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        if pages.get(&name) == Some(&text) {
            found += 1;
        } else {
            stale.push(name);
        }
    }
    assert!(
        stale.is_empty() && found == pages.len(),
        "stale pages in docs/cli: {stale:?}, and {} are missing; set {WRITE}=1 to write them",
        pages.len() - found - stale.len()
    );
}
