//! The floors of the code: who may import whom, as the source files really have it.
//!
//! The test parses the files, follows `use` declarations and paths through re-exports to the file
//! that defines a name, and compares the result with the rules of ARCHITECTURE.md.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

#[path = "floors/examples.rs"]
mod examples;
#[path = "floors/links.rs"]
mod links;
#[path = "floors/prose.rs"]
mod prose;
#[path = "floors/repository.rs"]
mod repository;
#[path = "floors/source_tree.rs"]
mod source_tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use examples::Shown;
use repository::{ROOT, texts};
use source_tree::{Imports, SourceTree, circles};

/// The library's modules from the bottom up. A module imports only itself and modules before it in
/// this list.
const LIBRARY_FLOORS: &[&str] = &[
    "id",
    "error",
    "invariant",
    "sync",
    "threads",
    "types",
    "format",
    "observe",
    "engine",
    "options",
    "index",
    "state",
    "read",
    "query",
    "clusters",
    "write",
    "group_commit",
    "build",
    "maintain",
    "join",
    "memory",
    "snapshot",
    "store",
    "fuzzing",
    "guide",
    "lib",
];

/// The tool's rooms from the bottom up.
const TOOL_FLOORS: &[&str] = &[
    "failure", "defaults", "help", "usage", "output", "options", "session", "verbs", "tool", "lib",
    "main",
];

/// Types that only the crate's root may name: they call rooms, and no room knows them.
const FACADES: [&str; 2] = ["store", "snapshot"];

/// Files and folders that a folder may hold, unless it is one of verbs.
const MAX_ROOMS: usize = 25;

/// Lines of a function, its signature and closing brace included.
const MAX_FUNCTION_LINES: usize = 70;

/// The facts that the rules need from a tree. Threads cannot share the tree itself, and reading it
/// takes long.
struct Facts {
    imports: Imports,
    files: Vec<String>,
    functions: Vec<(String, usize)>,
    types: BTreeMap<String, Vec<String>>,
    naming_engine: Vec<String>,
    shown: Shown,
}

impl Facts {
    fn of(folder: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let tree = SourceTree::read(&root, "lib.rs");
        Self {
            imports: tree.imports(),
            files: tree.files(),
            functions: tree.functions(),
            types: tree.types(),
            naming_engine: tree.files_that_name("redb"),
            shown: tree.examples(),
        }
    }
}

static LIBRARY: LazyLock<Facts> = LazyLock::new(|| Facts::of("src"));
static TOOL: LazyLock<Facts> = LazyLock::new(|| Facts::of("cli/src"));
static SKETCH: LazyLock<Facts> = LazyLock::new(|| Facts::of("crates/resemblance-sketch/src"));
static READERS: LazyLock<Facts> = LazyLock::new(|| Facts::of("crates/resemblance-corpus/src"));
/// The one crate that may name the storage engine.
static VERIFIED: LazyLock<Facts> = LazyLock::new(|| Facts::of("crates/redb-verified/src"));

/// The first part of a file's path, without the ending.
fn room(path: &str) -> &str {
    let first = path.split('/').next().unwrap();
    first.trim_end_matches(".rs")
}

/// Imports that do not point downward.
fn upward(imports: &Imports, floors: &[&str]) -> Vec<String> {
    let height = |path: &str| floors.iter().position(|floor| *floor == room(path));
    let mut wrong = Vec::new();
    for (file, imports) in imports {
        let Some(own) = height(file) else {
            wrong.push(format!("{file} stands on no floor"));
            continue;
        };
        for (target, name) in imports {
            match height(target) {
                Some(other) if other <= own => {}
                _ => wrong.push(format!("{file} imports {name} of {target}")),
            }
        }
    }
    wrong
}

fn assert_none(what: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn imports_of_the_library_point_downward() {
    let imports = &LIBRARY.imports;
    let wrong = upward(imports, LIBRARY_FLOORS);
    assert_none("imports that point upward", &wrong);
    let count: usize = imports.values().map(BTreeSet::len).sum();
    assert!(count > 500, "{count} imports: the files were not read");
}

#[test]
fn imports_of_the_tool_point_downward() {
    let imports = &TOOL.imports;
    assert_none("imports that point upward", &upward(imports, TOOL_FLOORS));
    let count: usize = imports.values().map(BTreeSet::len).sum();
    assert!(count > 100, "{count} imports: the files were not read");
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    for tree in [&LIBRARY, &TOOL, &READERS, &VERIFIED, &SKETCH] {
        let found = circles(&tree.imports);
        let found: Vec<String> = found.iter().map(|circle| circle.join(" ")).collect();
        assert_none("circles of files", &found);
    }
}

#[test]
fn modules_do_not_import_the_facades() {
    let mut wrong = Vec::new();
    for (file, imports) in &LIBRARY.imports {
        if [
            "store",
            "snapshot",
            "transaction",
            "lib",
            "fuzzing",
            "guide",
        ]
        .contains(&room(file))
        {
            continue;
        }
        let named = imports
            .iter()
            .filter(|(target, _)| FACADES.contains(&room(target)));
        wrong.extend(named.map(|(target, name)| format!("{file} imports {name} of {target}")));
    }
    assert_none("façades that rooms import", &wrong);
}

#[test]
fn only_one_crate_imports_the_storage_engine() {
    for tree in [&LIBRARY, &TOOL, &READERS, &SKETCH] {
        assert_none("files that name redb", &tree.naming_engine);
    }
    let named = &VERIFIED.naming_engine;
    assert!(named.len() > 3, "{named:?}: the files were not read");
}

/// A fuzz target is made of the tests' oracle, in a workspace that no other test builds.
#[test]
fn fuzz_package_has_the_crates_of_the_oracle() {
    let read = |path: &str| fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let (manifest, fuzz) = (read("Cargo.toml"), read("fuzz/Cargo.toml"));
    let (_, own) = manifest.split_once("\n[dependencies]\n").unwrap();
    let named: BTreeSet<&str> = own
        .lines()
        .filter_map(|line| line.split(['.', ' ']).next())
        .collect();
    let oracle = texts("tests/common", "rs");
    let is_used = |name: &str| {
        let path = format!("{}::", name.replace('-', "_"));
        oracle.iter().any(|file| file.text.contains(&path))
    };
    let used: Vec<&str> = named
        .into_iter()
        .filter(|name| !name.is_empty() && is_used(name))
        .collect();
    assert!(used.contains(&"redb"), "{used:?}");
    let is_missing = |name: &&str| {
        !fuzz
            .lines()
            .any(|line| line.starts_with(&format!("{name} =")))
    };
    let missing: Vec<String> = used
        .into_iter()
        .filter(is_missing)
        .map(str::to_owned)
        .collect();
    assert_none("crates that fuzz/Cargo.toml lacks", &missing);
}

#[test]
fn folders_have_few_files() {
    for tree in [&LIBRARY, &TOOL, &READERS, &VERIFIED, &SKETCH] {
        let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in &tree.files {
            let parts: Vec<&str> = file.split('/').collect();
            for depth in 0..parts.len() {
                let folder = parts[..depth].join("/");
                rooms.entry(folder).or_default().insert(parts[depth].into());
            }
        }
        // The folder on top is a list of the floors, which the rules above hold.
        let full = rooms
            .iter()
            .filter(|(folder, rooms)| {
                rooms.len() > MAX_ROOMS && !["", "verbs"].contains(&&***folder)
            })
            .map(|(folder, rooms)| format!("{folder}: {} rooms", rooms.len()));
        assert_none("full folders", &full.collect::<Vec<_>>());
    }
}

#[test]
fn functions_are_short() {
    for tree in [&LIBRARY, &TOOL, &READERS, &VERIFIED, &SKETCH] {
        let long: Vec<String> = tree
            .functions
            .iter()
            .filter(|(_, lines)| *lines > MAX_FUNCTION_LINES)
            .map(|(name, lines)| format!("{name}: {lines} lines"))
            .collect();
        assert_none("long functions", &long);
    }
}

#[test]
fn type_names_are_unique() {
    for tree in [&LIBRARY, &TOOL, &READERS, &VERIFIED, &SKETCH] {
        let twice: Vec<String> = tree
            .types
            .iter()
            .filter(|(_, files)| files.len() > 1)
            .map(|(name, files)| format!("{name}: {}", files.join(" ")))
            .collect();
        assert_none("type names that stand twice", &twice);
    }
}

#[test]
fn public_items_have_examples() {
    let shown = &LIBRARY.shown;
    assert_none("public items without an example", &shown.without);
    let (types, functions) = (shown.types, shown.functions);
    assert!(
        types > 65 && functions > 200,
        "{types} types, {functions} functions: not all were found"
    );
}

#[test]
fn missing_examples_are_found() {
    let tree = SourceTree::of(&[
        (
            "lib.rs",
            "mod a; pub mod b; mod c; pub use a::{Shown, Bare}; pub use c::Made;",
        ),
        (
            "a.rs",
            "
            /// ```
            /// Shown::new().named(); // and Shown.in_a_comment()
            /// # Shown.hidden_line();
            /// ```
            pub struct Shown;
            impl Shown {
                pub fn new() -> Self {}
                pub fn named(&self) {}
                pub fn in_a_comment(&self) {}
                pub fn hidden_line(&self) {}
                /// ```
                /// ```
                pub fn own(&self) {}
                /// ```text
                /// ```
                pub fn prose(&self) {}
                pub(crate) fn inner(&self) {}
                #[doc(hidden)]
                pub fn hidden(&self) {}
            }
            impl Clone for Shown { fn clone(&self) -> Self {} }
            pub enum Bare {}
            pub struct Unreachable;
            ",
        ),
        (
            "c.rs",
            "
            macro_rules! make { () => {
                /// ```
                /// Made.named();
                /// ```
                pub struct Made;
                impl Made {
                    pub fn named(&self) {}
                    pub fn bare(&self) {}
                }
            } }
            ",
        ),
        ("b.rs", "pub fn bare() {}"),
    ]);
    let mut without = tree.examples().without;
    without.sort();
    let expected = [
        "Bare",
        "Made::bare",
        "Shown::hidden_line",
        "Shown::in_a_comment",
        "Shown::prose",
        "b::bare",
    ];
    assert_eq!(without, expected);
}

#[test]
fn circles_and_imports_are_found() {
    let tree = SourceTree::of(&[
        ("lib.rs", "mod a; mod b; pub use a::Up;"),
        ("a/mod.rs", "mod one; mod two; pub(crate) use one::Up;"),
        (
            "a/one.rs",
            "use super::two::Down; pub(crate) struct Up(Down);",
        ),
        (
            "a/two.rs",
            "pub(crate) struct Down; fn f() { crate::a::Up::new(); }",
        ),
        (
            "b.rs",
            "use crate::{a::Up as Renamed, b::X}; struct X; #[cfg(test)] mod tests { use crate::a::two::Down; }",
        ),
    ]);
    let imports = tree.imports();
    let names = |file: &str| -> Vec<String> {
        imports[file]
            .iter()
            .map(|(target, name)| format!("{target}:{name}"))
            .collect()
    };
    assert_eq!(names("a/one.rs"), ["a/two.rs:Down"]);
    assert_eq!(names("a/two.rs"), ["a/one.rs:Up"]);
    assert_eq!(names("b.rs"), ["a/one.rs:Up"]);
    assert_eq!(circles(&imports), [["a/one.rs", "a/two.rs"]]);
    assert_eq!(upward(&imports, &["a", "b", "lib"]), [""; 0]);
    assert_eq!(
        upward(&imports, &["b", "a", "lib"]),
        ["b.rs imports Up of a/one.rs"]
    );
}
