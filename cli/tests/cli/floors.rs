//! The floors of the source: imports point downward, and no files import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// From the top down. A room may use those on lower floors; rooms that know no command line are last.
const FLOORS: [&str; 14] = [
    "main", "lib", "tool", "verbs", "session", "options", "output", "failure", "corpus", "tune",
    "eval", "dedup", "exact", "pipeline",
];

/// Below all floors.
const LOWEST: &str = "bug";

/// Files and folders in one folder.
const MAX_ROOMS: usize = 25;

struct SourceFile {
    /// Its modules, such as `["output", "results"]`; of a `mod.rs` those of its folder.
    module: Vec<String>,
    /// Without comments and without tests.
    code: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn read_folder(folder: &Path, module: &[String], found: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut own = module.to_vec();
        if name != "mod" {
            own.push(name.clone());
        }
        if path.is_dir() {
            read_folder(&path, &own, found);
        } else if name != "tests" && name != "fuzzing" {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
            let lines = text.lines().map(|line| line.split("//").next().unwrap());
            found.push(SourceFile {
                module: own,
                code: lines.collect::<Vec<_>>().join("\n"),
            });
        }
    }
}

fn files() -> Vec<SourceFile> {
    let mut files = Vec::new();
    read_folder(&root(), &[], &mut files);
    assert!(files.len() > 70, "{} files were read", files.len());
    files
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// All paths that begin with one of `words`, such as `super::results::Column`; of a list in braces one
/// for each member.
fn paths(code: &str, word: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let start = format!("{word}::");
    for (place, _) in code.match_indices(&start) {
        let is_whole = !code[..place].ends_with(|letter| is_name(letter) || letter == ':');
        if is_whole {
            collect(&code[place + start.len()..], &mut Vec::new(), &mut paths);
        }
    }
    paths
}

fn collect(text: &str, before: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    if let Some(list) = text.strip_prefix('{') {
        let (mut depth, mut start) = (1, 0);
        for (place, letter) in list.char_indices() {
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            if depth == 0 || depth == 1 && letter == ',' {
                collect(list[start..place].trim(), &mut before.clone(), paths);
                start = place + 1;
            }
            if depth == 0 {
                return;
            }
        }
    }
    let name: String = text.chars().take_while(|letter| is_name(*letter)).collect();
    if name.is_empty() {
        return;
    }
    let rest = &text[name.len()..];
    before.push(name);
    match rest.strip_prefix("::") {
        Some(rest) if rest.starts_with(|letter| is_name(letter) || letter == '{') => {
            collect(rest, before, paths);
        }
        _ => paths.push(before.clone()),
    }
}

/// The files that each file uses, by their modules.
fn imports(files: &[SourceFile]) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let modules: BTreeSet<&[String]> = files.iter().map(|file| &*file.module).collect();
    let mut imports = BTreeMap::new();
    for file in files {
        let is_folder = modules
            .iter()
            .any(|other| other.len() > file.module.len() && other.starts_with(&file.module));
        let mut used = paths(&file.code, "crate");
        let parent = &file.module[..file.module.len().saturating_sub(1)];
        let parent = if is_folder { &file.module } else { parent };
        let mut add = |base: &[String], path: Vec<String>| used.push([base, &path].concat());
        for path in paths(&file.code, "super") {
            let above = if is_folder {
                &parent[..parent.len() - 1]
            } else {
                parent
            };
            add(above, path);
        }
        for line in file.code.lines().filter(|_| is_folder) {
            let line = line
                .trim()
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ");
            if let Some(name) = line.strip_prefix("mod ") {
                add(&file.module, vec![name.trim_end_matches(';').to_owned()]);
            }
        }
        let targets = used.iter().filter_map(|path| {
            let lengths = (1..=path.len()).rev();
            let mut prefixes = lengths.map(|length| &path[..length]);
            prefixes
                .find(|prefix| modules.contains(prefix))
                .map(<[String]>::to_vec)
        });
        let targets = targets.filter(|target| *target != file.module);
        imports.insert(file.module.clone(), targets.collect());
    }
    imports
}

fn height(module: &[String]) -> usize {
    let room = module[0].as_str();
    let floor = FLOORS.iter().position(|floor| *floor == room);
    floor.unwrap_or_else(|| {
        assert_eq!(room, LOWEST, "it has no floor");
        FLOORS.len()
    })
}

#[test]
fn imports_point_downward() {
    let mut count = 0;
    for (module, used) in imports(&files()) {
        for target in used {
            let is_same_room = target[0] == module[0];
            assert!(
                is_same_room || height(&target) > height(&module),
                "{module:?} uses {target:?}"
            );
            count += 1;
        }
    }
    assert!(count > 250, "{count} imports were found");
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let mut left = imports(&files());
    // Files that use none of those left are taken away until none is left.
    loop {
        let names: BTreeSet<Vec<String>> = left.keys().cloned().collect();
        left.retain(|_, used| used.iter().any(|target| names.contains(target)));
        if left.len() == names.len() {
            break;
        }
    }
    assert!(left.is_empty(), "circles in {:?}", left.keys());
}

#[test]
fn folders_have_few_rooms() {
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap();
        let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let is_exempt = folder.ends_with("verbs");
        assert!(
            is_exempt || paths.len() <= MAX_ROOMS,
            "{}",
            folder.display()
        );
        folders.extend(paths.into_iter().filter(|path| path.is_dir()));
    }
}

#[test]
fn names_of_types_stand_once() {
    let mut homes = BTreeMap::new();
    for file in files() {
        for line in file.code.lines() {
            let line = line
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ");
            let line = line.trim_start_matches("pub(super) ");
            let starts = ["struct ", "enum ", "type ", "trait "];
            let Some(rest) = starts.iter().find_map(|start| line.strip_prefix(start)) else {
                continue;
            };
            let name: String = rest.chars().take_while(|letter| is_name(*letter)).collect();
            let other = homes.insert(name.clone(), file.module.clone());
            assert_eq!(other, None, "{name} stands in {:?} too", file.module);
        }
    }
}
