//! Names, paths and links in documents: each has to exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::repository::{self, Text};

/// Paths in documents that are not of this repository.
const FOREIGN_PATHS: [&str; 4] = [
    "docs/a.txt",
    "docs/design.md",
    "src/tree_store/table_tree_base.rs",
    "resemblance/config.toml",
];

/// Options of other programs, or of no verb.
const FOREIGN_OPTIONS: [&str; 7] = [
    "--engines",
    "--bytes",
    "--only",
    "--tasks",
    "--order",
    "--skip-null",
    "--verb",
];

/// Paths of other crates and languages.
const FOREIGN_ITEMS: [&str; 1] = ["FileBackend::new"];

/// The anchors of a document, as GitHub makes them from headings.
fn anchors(document: &Text) -> BTreeSet<String> {
    let (mut anchors, mut times) = (BTreeSet::new(), BTreeMap::new());
    for (_, line) in document.prose().filter(|(_, line)| line.starts_with('#')) {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor = kept.collect::<String>().replace(' ', "-");
        let time: &mut u32 = times.entry(anchor.clone()).or_default();
        anchors.insert(if *time == 0 {
            anchor
        } else {
            format!("{anchor}-{time}")
        });
        *time += 1;
    }
    anchors
}

/// Returns a path without `.` and `..`.
fn plain(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !["", "."].contains(part)) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

#[test]
fn links_in_documents_resolve() {
    let documents = repository::documents();
    let pages: BTreeMap<&str, BTreeSet<String>> = documents
        .iter()
        .map(|document| (&*document.path, anchors(document)))
        .collect();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for document in &documents {
        let folder = document
            .path
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        for (at, line) in document.prose() {
            for rest in line.split("](").skip(1) {
                let target = rest.split([')', ' ']).next().unwrap();
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                count += 1;
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let path = if path.is_empty() {
                    document.path.clone()
                } else {
                    plain(&format!("{folder}/{path}"))
                };
                let is_there = Path::new(repository::ROOT).join(&path).exists();
                let has_anchor = anchor.is_empty()
                    || pages
                        .get(&*path)
                        .is_none_or(|anchors| anchors.contains(anchor));
                if !is_there || !has_anchor {
                    wrong.push(format!("{}:{at}: {target}", document.path));
                }
            }
        }
    }
    super::assert_none("links that lead nowhere", &wrong);
    assert!(count > 100, "{count} links: the documents were not read");
}

#[test]
fn the_table_of_contents_names_every_document() {
    let documents = repository::documents();
    let is_contents = |path: &str| path == "docs/SUMMARY.md";
    let contents = documents
        .iter()
        .find(|document| is_contents(&document.path))
        .unwrap();
    let links = contents.text.split("](").skip(1);
    let named: BTreeSet<String> = links
        .map(|rest| plain(&format!("docs/{}", rest.split(')').next().unwrap())))
        .collect();
    let missing: Vec<String> = documents
        .iter()
        .map(|document| document.path.clone())
        // The list of agents is beside the site.
        .filter(|path| !is_contents(path) && path != "llms.txt" && !named.contains(path))
        .collect();
    super::assert_none("documents that docs/SUMMARY.md lacks", &missing);
    assert!(named.len() > 40, "{} documents are named", named.len());
}

fn is_path(code: &str) -> bool {
    code.chars()
        .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        && !code.starts_with(['/', '-', '.'])
}

#[test]
fn paths_in_documents_exist() {
    let files = repository::files("");
    let top: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.split_once('/'))
        .map(|(top, _)| top)
        .collect();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for document in repository::documents() {
        for (at, code) in document.code().filter(|(_, code)| is_path(code)) {
            let is_source = [".rs", ".md", ".toml", ".awk"]
                .iter()
                .any(|ending| code.ends_with(ending));
            let is_below_top = code
                .split_once('/')
                .is_some_and(|(first, _)| top.contains(first));
            if !(is_source || is_below_top) || FOREIGN_PATHS.contains(&code) {
                continue;
            }
            count += 1;
            let ending = format!("/{code}");
            let is_end_of_path = |file: &String| file == code || file.ends_with(&ending);
            if !Path::new(repository::ROOT).join(code).exists() && !files.iter().any(is_end_of_path)
            {
                wrong.push(format!("{}:{at}: {code}", document.path));
            }
        }
    }
    super::assert_none("paths of no file", &wrong);
    assert!(count > 50, "{count} paths: the documents were not read");
}

/// The options of a text, such as `--threshold`.
fn options(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '[', ']', '(', ')', '|', ',', '=', '`', '\'', '"'])
        .filter(|word| {
            word.strip_prefix("--").is_some_and(|name| {
                !name.is_empty()
                    && name
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            })
        })
}

#[test]
fn options_in_documents_exist() {
    let pages = repository::texts("docs/cli", "md");
    let known: BTreeSet<&str> = pages.iter().flat_map(|page| options(&page.text)).collect();
    let of_verb = |verb: &str| {
        let path = format!("docs/cli/{verb}.md");
        let page = pages.iter().find(|page| page.path == path);
        page.map(|page| options(&page.text).collect::<BTreeSet<&str>>())
    };
    let common = of_verb("README").unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for document in repository::documents()
        .iter()
        .filter(|document| document.path != "format-spec.md")
    {
        let spans = document
            .code()
            .filter(|(_, code)| code.starts_with("--") || code.starts_with("resemblance "));
        let shown = document
            .text
            .lines()
            .zip(1..)
            .filter_map(|(line, at)| Some((at, line.strip_prefix("$ ")?)));
        for (at, code) in spans.chain(shown) {
            for command in code.split('|').map(str::trim) {
                let verb = command
                    .strip_prefix("resemblance ")
                    .map(|rest| rest.split(' ').next().unwrap());
                if verb.is_none() && !command.starts_with("--") {
                    continue;
                }
                let own = verb.and_then(of_verb);
                if verb.is_some()
                    && own.is_none()
                    && !["VERB", "--help", "--version"].contains(&verb.unwrap())
                {
                    wrong.push(format!("{}:{at}: no such verb: {command}", document.path));
                }
                for option in options(command).filter(|option| !FOREIGN_OPTIONS.contains(option)) {
                    count += 1;
                    let is_known = own.as_ref().map_or(known.contains(option), |own| {
                        own.contains(option) || common.contains(option)
                    });
                    if !is_known && option != "--help" {
                        wrong.push(format!("{}:{at}: {option} in {command}", document.path));
                    }
                }
            }
        }
    }
    super::assert_none("options of no verb", &wrong);
    assert!(count > 200, "{count} options: the documents were not read");
}

/// Whether sources that know a type have something of this name: a function, a field or a variant.
fn has_item(sources: &[Text], owner: &str, name: &str) -> bool {
    let declares =
        ["struct", "enum", "trait", "type", "mod"].map(|keyword| format!("{keyword} {owner}"));
    let is_declared = |source: &Text| {
        declares
            .iter()
            .any(|declaration| source.text.contains(declaration))
    };
    let forms = [
        format!("fn {name}("),
        format!("fn {name}<"),
        format!("{name}: "),
        format!(" {name},"),
        format!(" {name}("),
        format!(" {name} {{"),
    ];
    let is_named = |source: &Text| forms.iter().any(|form| source.text.contains(form));
    let names_owner = |source: &Text| source.text.contains(owner);
    sources.iter().any(is_declared)
        && sources
            .iter()
            .any(|source| names_owner(source) && is_named(source))
}

#[test]
fn items_in_documents_exist() {
    let mut sources = repository::texts("src", "rs");
    for folder in ["crates", "cli/src", "python/src"] {
        sources.extend(repository::texts(folder, "rs"));
    }
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    for document in repository::documents() {
        for (at, code) in document.code() {
            let path = code.split('(').next().unwrap();
            let parts: Vec<&str> = path.split("::").collect();
            let is_name = |part: &&str| {
                let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
                !part.is_empty() && part.chars().all(is_letter)
            };
            let [.., owner, name] = &parts[..] else {
                continue;
            };
            let is_type = owner.starts_with(|c: char| c.is_ascii_uppercase());
            if is_type && parts.iter().all(is_name) && !FOREIGN_ITEMS.contains(&path) {
                let place = format!("{}:{at}: {path}", document.path);
                named.entry(format!("{owner}::{name}")).or_insert(place);
            }
        }
    }
    let mut wrong = Vec::new();
    for (path, place) in &named {
        let (owner, name) = path.split_once("::").unwrap();
        if !has_item(&sources, owner, name) {
            wrong.push(place.clone());
        }
    }
    super::assert_none("items of no source", &wrong);
    let count = named.len();
    assert!(count > 50, "{count} items: the documents were not read");
}
