//! The destination of the kept documents of a corpus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::destination;
use super::guard;
use crate::failure::{Failure, Result};
use resemblance_corpus::{
    Compression, Corpus, SourceKind, SourceOrigin, is_json_name, is_remote, named_kind,
    not_for_one_file,
};

/// The destination of kept documents.
pub(crate) enum OutputTarget {
    Standard,
    /// One file for all.
    File(PathBuf),
    /// A file for each file of the input.
    Folder {
        path: PathBuf,
        /// True if pages of WARC files are written as rows, which get columns.
        are_rows: bool,
    },
    /// The only file of the input, which is replaced.
    InPlace(PathBuf),
}

impl OutputTarget {
    /// Reads the `-o` option, and refuses what could not be written in the end. If pages of WARC files
    /// `are_rows`, they are written as such.
    pub(crate) fn choose(
        path: &Path,
        inputs: &[PathBuf],
        corpus: &Corpus,
        force: bool,
        are_rows: bool,
    ) -> Result<Self> {
        let text = corpus
            .sources
            .iter()
            .find(|source| source.kind == SourceKind::Text && source.problem.is_none());
        let name = path.display();
        let ends_in_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let is_file_name = is_lines_name(path) || guard::is_special(path);
        // A folder makes a folder, unless the name implies that one file of lines is wanted.
        let is_of_folder = folders(inputs).next().is_some() && !is_file_name;
        let is_of_folder = is_of_folder || (has_prefix(inputs) && !is_file_name);
        let wants_folder = path.is_dir() || ends_in_slash || is_of_folder || text.is_some();
        if path.as_os_str() != "-" && wants_folder {
            if !path.is_dir() && text.is_none() && path.exists() {
                return Err(Failure::usage(format!(
                    "{name} is a file, but the output of a folder is a folder"
                ))
                .with_note("give another name, or one such as out.jsonl for one file"));
            }
            if !path.is_dir() && text.is_some() && (path.exists() || is_file_name) {
                return Err(Failure::usage(format!(
                    "{name} is a file name, but text files can only be written to a folder"
                )));
            }
            check_folder(path, corpus, force, are_rows)?;
            return Ok(Self::Folder {
                path: path.to_path_buf(),
                are_rows,
            });
        }
        if let Some(text) = text {
            return Err(Failure::usage(format!(
                "{} is a text file: text files can only be written to a folder",
                text.name().display()
            )));
        }
        if let Some(reason) = not_for_one_file(corpus)? {
            return Err(Failure::usage(reason));
        }
        must_be_named_for(path, corpus)?;
        if path.as_os_str() == "-" {
            return Ok(Self::Standard);
        }
        destination::must_be_free(path, force)?;
        Ok(Self::File(path.to_path_buf()))
    }

    /// The only input, which gets what is left of it.
    pub(crate) fn in_place(inputs: &[PathBuf], corpus: &Corpus) -> Result<Self> {
        let ([path], [source]) = (inputs, &corpus.sources[..]) else {
            return Err(Failure::usage("--in-place replaces exactly one file")
                .with_note("give one file, or -o OUT"));
        };
        let is_lines = source.kind != SourceKind::Text && source.kind.written_as() == source.kind;
        if !is_lines || !path.is_file() || guard::is_special(path) || is_remote(path) {
            return Err(Failure::usage(format!(
                "--in-place replaces a JSON Lines file or a table, and {} is neither",
                path.display()
            ))
            .with_note("give -o OUT"));
        }
        guard::must_not_be_a_store(path)?;
        guard::must_not_be_a_link(path)?;
        Ok(Self::InPlace(path.clone()))
    }

    /// An error if another output at `report`, such as "the report", would overwrite this one.
    pub(crate) fn must_not_meet(&self, what: &str, report: &Path, corpus: &Corpus) -> Result<()> {
        if guard::is_special(report) {
            return Ok(());
        }
        let is_standard = report.as_os_str() == "-";
        let place = guard::canonical_path(report).filter(|_| !is_standard);
        let meets = match self {
            Self::Standard => is_standard,
            Self::File(path) | Self::InPlace(path) => {
                place.is_some() && guard::canonical_path(path) == place
            }
            Self::Folder { path, are_rows } => {
                let below = place.as_deref().zip(guard::canonical_path(path));
                let relative = below.and_then(|(place, out)| place.strip_prefix(out).ok());
                relative.is_some_and(|relative| {
                    let mut sources = corpus.sources.iter();
                    sources.any(|source| source.output_path(*are_rows) == relative)
                })
            }
        };
        if meets {
            let name = if is_standard {
                "standard output".into()
            } else {
                report.display().to_string()
            };
            return Err(Failure::usage(format!(
                "the output and {what} cannot both go to {name}"
            )));
        }
        Ok(())
    }
}

/// Fails if the name of a file implies contents other than rows or lines of this corpus.
fn must_be_named_for(path: &Path, corpus: &Corpus) -> Result<()> {
    let source = corpus.sources.iter().find(|s| s.problem.is_none());
    let (Some(source), Some(named)) = (source, named_kind(path)) else {
        return Ok(());
    };
    let written = source.kind.written_as();
    if named != written {
        let advice = match source.kind {
            SourceKind::Warc if named == SourceKind::Warc => {
                "a folder, such as out/, gets WARC files"
            }
            _ => "give the output another name",
        };
        let (path, kind, named) = (path.display(), source.kind.name(), named.name());
        let form = match written == source.kind {
            true => "unchanged",
            false => "as JSON Lines",
        };
        return Err(Failure::usage(format!(
            "{path} has the name of {named}, but {} is {kind} and is written {form}",
            source.name().display()
        ))
        .with_note(advice));
    }
    Ok(())
}

fn check_folder(out: &Path, corpus: &Corpus, force: bool, are_rows: bool) -> Result<()> {
    destination::may_be_folder(out)?;
    let mut names = BTreeMap::new();
    for source in &corpus.sources {
        if matches!(
            source.origin,
            SourceOrigin::StandardInput | SourceOrigin::Spool(..)
        ) {
            return Err(Failure::usage("standard input has no file name")
                .with_note("give a file name or - after -o"));
        }
        if let Some(other) = names.insert(source.output_path(are_rows), source) {
            return Err(Failure::usage(format!(
                "{} and {} would be written to the same file in {}",
                other.name().display(),
                source.name().display(),
                out.display()
            )));
        }
        destination::must_not_pass_links(out, &source.output_path(are_rows))?;
    }
    if !out.is_dir() {
        return Ok(());
    }
    match guard::must_be_replaceable(out)? {
        0 => Ok(()),
        _ if force => Ok(()),
        _ => Err(Failure::refused(format!("{} is not empty", out.display()))
            .with_note("--force removes everything in it; a new folder keeps it")),
    }
}

/// True for names of files of JSON Lines and of tables.
fn is_lines_name(path: &Path) -> bool {
    is_json_name(path)
        || named_kind(path).is_some()
        || Compression::from_name(path) != Compression::None
}

/// The folders among the inputs.
fn folders(inputs: &[PathBuf]) -> impl Iterator<Item = &Path> {
    inputs
        .iter()
        .map(PathBuf::as_path)
        .filter(|path| path.is_dir())
}

/// True if all objects below some prefix are read, as the files of a folder are.
fn has_prefix(inputs: &[PathBuf]) -> bool {
    let is_prefix = |path: &PathBuf| path.as_os_str().as_encoded_bytes().ends_with(b"/");
    inputs.iter().any(|path| is_remote(path) && is_prefix(path))
}
