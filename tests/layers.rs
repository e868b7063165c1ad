//! The order of the modules, as `src` really has it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// From the top down. A module may use those below it, and itself. `lib` stands for the names that
/// the crate re-exports: the command line uses nothing else.
const LAYERS: [&[&str]; 11] = [
    &["main", "cli", "fuzzing"],
    &["corpus"],
    &["bulk"],
    &["join"],
    &["store"],
    &["postings"],
    &["format"],
    &["schema"],
    &["lanes"],
    &["sketch"],
    &["text"],
];

/// Below everything.
const LOWEST: [&str; 3] = ["error", "id", "sync"];

/// The modules that may name the storage engine.
const ENGINE_USERS: [&str; 3] = ["store", "postings", "format"];

const MOST_LINES: usize = 500;

struct Source {
    path: String,
    module: String,
    /// Without comments, which may name anything.
    code: String,
    lines: usize,
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    files.sort();
    let read = |file: &PathBuf| {
        let relative = file.strip_prefix(&root).unwrap();
        let first = relative.components().next().unwrap().as_os_str();
        let text = fs::read_to_string(file).unwrap();
        let code = text
            .lines()
            .map(|line| line.split("//").next().unwrap_or(""));
        Source {
            path: relative.display().to_string().replace('\\', "/"),
            module: first.to_str().unwrap().trim_end_matches(".rs").to_owned(),
            code: code.collect::<Vec<_>>().join("\n"),
            lines: text.lines().count(),
        }
    };
    files.iter().map(read).collect()
}

fn height(module: &str) -> Option<usize> {
    if LOWEST.contains(&module) {
        return Some(LAYERS.len());
    }
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The first names after each `crate::`, those in braces included.
fn used_modules(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (place, _) in code.match_indices("crate::") {
        let before = code[..place].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[place + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => used.extend(names_in_braces(list)),
            None => used.push(first_name(rest)),
        }
    }
    used
}

fn first_name(text: &str) -> String {
    let is_name = |c: &char| c.is_alphanumeric() || *c == '_';
    text.trim_start().chars().take_while(is_name).collect()
}

fn names_in_braces(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 1;
    let mut start = 0;
    for (place, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && letter == ',' {
            names.push(first_name(&list[start..place]));
            start = place + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The module that a re-exported name comes from.
fn home_of(name: &str, lib: &str) -> Option<String> {
    for part in lib.split("pub use ").skip(1) {
        let item = part.split(';').next().unwrap_or_default();
        let (module, names) = item.split_once("::")?;
        let mut words = names.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        if words.any(|word| word == name) {
            return Some(module.trim().to_owned());
        }
    }
    None
}

#[test]
fn names_are_found_in_imports() {
    let code = "use crate::error::{Error, Result};\nuse crate::{\n a::{b, c},\n D,\n};\nfn f() -> crate::id::X { $crate::y }";
    assert_eq!(used_modules(code), ["error", "a", "D", "id"]);
    assert_eq!(
        home_of("Error", "pub use error::{Error, Result};").as_deref(),
        Some("error")
    );
    assert_eq!(home_of("Err", "pub use error::{Error, Result};"), None);
}

#[test]
fn imports_point_downward() {
    let sources = sources();
    let lib = &sources
        .iter()
        .find(|source| source.path == "lib.rs")
        .unwrap()
        .code;
    let mut wrong = Vec::new();
    let mut imports = 0;
    for source in sources.iter().filter(|source| source.module != "lib") {
        let Some(own) = height(&source.module) else {
            wrong.push(format!(
                "{}: module {} has no place",
                source.path, source.module
            ));
            continue;
        };
        for name in used_modules(&source.code) {
            let module = if height(&name).is_some() {
                name.clone()
            } else {
                home_of(&name, lib).unwrap_or_default()
            };
            imports += 1;
            let Some(target) = height(&module) else {
                wrong.push(format!("{}: crate::{name} is not known", source.path));
                continue;
            };
            let same =
                module == source.module || own == target && LOWEST.contains(&module.as_str());
            if target <= own && !same {
                wrong.push(format!("{}: {} uses {module}", source.path, source.module));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(imports > 50, "{imports}: the files were not read");
}

#[test]
fn the_storage_engine_stays_in_its_layers() {
    let mut wrong = Vec::new();
    let mut named = 0;
    for source in sources() {
        let names_engine = source.code.match_indices("redb").any(|(place, _)| {
            let before = source.code[..place].chars().next_back();
            let after = &source.code[place + 4..];
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && after.starts_with("::")
        });
        named += usize::from(names_engine);
        if names_engine && !ENGINE_USERS.contains(&source.module.as_str()) {
            wrong.push(source.path);
        }
    }
    assert!(wrong.is_empty(), "redb is named in {wrong:?}");
    assert!(named > 5, "{named}: the files were not read");
}

#[test]
fn files_can_be_read_in_one_go() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|source| source.lines > MOST_LINES)
        .map(|source| format!("{}: {} lines", source.path, source.lines))
        .collect();
    assert!(long.is_empty(), "longer than {MOST_LINES} lines: {long:?}");
}
