//! The files of the repository, and the text of its documents.

use std::fs;
use std::path::Path;

pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Folders that hold no files of the repository, or none that documents name.
const LEFT_OUT: [&str; 6] = [
    ".git",
    "target",
    "corpus",
    "golden",
    "__pycache__",
    "node_modules",
];

/// Documents on top, and folders of documents.
const DOCUMENTS: [&str; 17] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "SKILL.md",
    "llms.txt",
    "format-spec.md",
    "docs",
    "examples/README.md",
    "fuzz/README.md",
    "python/README.md",
    "cli/README.md",
    "crates/redb-verified/README.md",
    "crates/resemblance-corpus/README.md",
    "crates/resemblance-eval/README.md",
    "crates/resemblance-sketch/README.md",
];

/// A file with its path from the root.
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Text {
    fn read(path: &str) -> Self {
        let text = fs::read_to_string(Path::new(ROOT).join(path));
        Self {
            path: path.to_owned(),
            text: text.unwrap_or_else(|error| panic!("{path}: {error}")),
        }
    }

    /// The lines outside blocks of code, with their numbers.
    pub(crate) fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut is_code = false;
        self.text.lines().zip(1..).filter_map(move |(line, at)| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            (!is_code && !is_fence).then_some((at, line))
        })
    }

    /// Returns the text between backquotes in the prose, with the numbers of the lines.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.prose().flat_map(|(at, line)| {
            let spans = line.split('`').skip(1).step_by(2);
            spans.map(move |span| (at, span))
        })
    }
}

fn collect(folder: &str, files: &mut Vec<String>) {
    let entries = fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
    for entry in entries {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() {
            name.clone()
        } else {
            format!("{folder}/{name}")
        };
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !LEFT_OUT.contains(&&*name) {
            collect(&path, files);
        } else if kind.is_file() {
            files.push(path);
        }
    }
}

/// All files below a folder, in order.
pub(crate) fn files(folder: &str) -> Vec<String> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    files
}

/// The texts below a folder whose names end so.
pub(crate) fn texts(folder: &str, ending: &str) -> Vec<Text> {
    let ending = format!(".{ending}");
    let files = files(folder).into_iter();
    files
        .filter(|path| path.ends_with(&ending))
        .map(|path| Text::read(&path))
        .collect()
}

/// All documents but generated ones.
pub(crate) fn documents() -> Vec<Text> {
    let mut documents = Vec::new();
    for path in DOCUMENTS {
        if path == "docs" {
            documents.extend(texts(path, "md"));
        } else {
            documents.push(Text::read(path));
        }
    }
    documents.retain(|document| !document.path.starts_with("docs/cli/"));
    documents
}
