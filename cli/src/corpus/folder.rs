//! Listing the files of a folder.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::{DirEntry, WalkDir};

use super::error::CorpusError;
use super::source::{CorpusSettings, CorpusSource, SourceKind, SourceOrigin};

/// Names that make a file in a folder JSON Lines; every other file is one text.
const LINES_SUFFIXES: [&str; 3] = [".jsonl", ".jsonl.gz", ".jsonl.zst"];

/// Adds the folder's files in the byte order of their relative paths. Links to files are read,
/// links to folders are not followed.
pub(super) fn list(
    root: &Path,
    settings: &CorpusSettings,
    sources: &mut Vec<CorpusSource>,
) -> Result<(), CorpusError> {
    let mut found: Vec<PathBuf> = Vec::new();
    let wanted = |entry: &DirEntry| settings.hidden || entry.depth() == 0 || !is_hidden(entry);
    for entry in WalkDir::new(root).into_iter().filter_entry(wanted) {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(root).to_path_buf();
            CorpusError::open(&path, error.into())
        })?;
        let relative = entry.path().strip_prefix(root).map_err(|_| {
            let (path, root) = (entry.path().display(), root.display());
            CorpusError::bad(format!("{path} was listed, which is not in {root}"))
        })?;
        let included = settings
            .include
            .as_ref()
            .is_none_or(|globs| globs.is_match(relative));
        // A link that leads nowhere matters only where it is wanted.
        if included && is_file(&entry)? {
            found.push(relative.to_path_buf());
        }
    }
    found.sort_by(|a, b| path_bytes(a).cmp(&path_bytes(b)));
    let root: Arc<Path> = root.into();
    sources.extend(found.into_iter().map(|relative| {
        let name = path_bytes(&relative);
        let is_lines = LINES_SUFFIXES
            .iter()
            .any(|suffix| name.ends_with(suffix.as_bytes()));
        CorpusSource {
            kind: if is_lines {
                SourceKind::Lines
            } else {
                SourceKind::Text
            },
            origin: SourceOrigin::Folder(Arc::clone(&root)),
            relative,
        }
    }));
    Ok(())
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

fn is_file(entry: &DirEntry) -> Result<bool, CorpusError> {
    if !entry.file_type().is_symlink() {
        return Ok(entry.file_type().is_file());
    }
    let metadata =
        std::fs::metadata(entry.path()).map_err(|e| CorpusError::open(entry.path(), e))?;
    Ok(metadata.is_file())
}

/// A relative path as the bytes of a key: the parts joined by `/`.
pub(super) fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        Cow::Borrowed(path.as_os_str().as_bytes())
    }
    #[cfg(not(unix))]
    {
        let parts: Vec<_> = path
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        Cow::Owned(parts.join("/").into_bytes())
    }
}
