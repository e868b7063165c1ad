//! Lists the files of a folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::{DirEntry, WalkDir};

use super::argument::{PassedOver, is_file, path_bytes};
use super::bad_document::BadDocument;
use super::error::CorpusError;
use super::form;
use super::settings::{CorpusSettings, SourceKind};
use super::source::{CorpusSource, SourceOrigin};

/// The file that records the settings of a job.
pub const JOB_MANIFEST: &str = "job.json";

/// The file that a process holds while it works on a job.
pub const JOB_LOCK: &str = "lock";

/// Returns the folder's files in the byte order of their relative paths, and notes about what is
/// skipped: folders of jobs, links to folders, and what is neither a file nor a folder. Links to
/// files are read.
pub(crate) fn list(
    root: &Path,
    settings: &CorpusSettings,
) -> Result<(Vec<CorpusSource>, Vec<String>), CorpusError> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut passed = PassedOver::default();
    let mut jobs = 0;
    let wanted = |entry: &DirEntry| {
        if entry.depth() == 0 {
            return true;
        }
        let is_job = entry.file_type().is_dir() && is_job(entry.path());
        jobs += usize::from(is_job);
        !is_job && (settings.hidden || !is_hidden(entry))
    };
    for walked in WalkDir::new(root).into_iter().filter_entry(wanted) {
        let entry = match walked {
            Ok(entry) => entry,
            Err(error) => {
                settings.pass_over(CorpusError::walk(root, error))?;
                continue;
            }
        };
        let relative = entry.path().strip_prefix(root).map_err(|_| {
            let (path, root) = (entry.path().display(), root.display());
            CorpusError::bad(format!("{path} was listed, which is not in {root}"))
        })?;
        // A dangling link matters only if the file is selected.
        if !settings.selects(relative) {
            continue;
        }
        match is_file(&entry) {
            true => found.push(relative.to_path_buf()),
            false => passed.note(&entry),
        }
    }
    found.sort_by(|a, b| path_bytes(a).cmp(&path_bytes(b)));
    let root: Arc<Path> = root.into();
    let mut sources = Vec::new();
    for relative in found {
        match look_into(&root, relative, settings) {
            Ok(source) => sources.push(source),
            Err(error) => settings.pass_over(error)?,
        }
    }
    let shown = root.display();
    let mut notes = passed.notes(&shown);
    notes.extend(object_files(&root, &sources, settings));
    if jobs > 0 {
        notes.insert(0, format!("skipped folders of jobs below {shown}: {jobs}"));
    }
    Ok((sources, notes))
}

/// Returns a note if most of the texts of a folder are JSON objects on several lines, which were
/// probably meant as documents.
fn object_files(
    root: &Path,
    sources: &[CorpusSource],
    settings: &CorpusSettings,
) -> Option<String> {
    if settings.kind.is_some() {
        return None;
    }
    let is_text =
        |source: &&CorpusSource| source.kind == SourceKind::Text && source.problem.is_none();
    let texts = sources.iter().filter(is_text).count();
    let paths = sources
        .iter()
        .filter(is_text)
        .filter_map(CorpusSource::path);
    let objects = paths.filter(|path| form::is_object_file(path)).count();
    (objects > 0 && objects * 2 >= texts).then(|| {
        format!(
            "JSON objects below {} that are read as texts, with their markup: {objects}; jq -c . FILE > FILE.jsonl \
             makes a document of each",
            root.display()
        )
    })
}

/// Returns true if a folder holds the results of a job rather than a corpus.
fn is_job(folder: &Path) -> bool {
    #[derive(serde::Deserialize)]
    struct ManifestFields {
        #[serde(rename = "version")]
        _version: serde::de::IgnoredAny,
        #[serde(rename = "settings")]
        _settings: serde::de::IgnoredAny,
        #[serde(rename = "files")]
        _files: serde::de::IgnoredAny,
    }
    let manifest = std::fs::read(folder.join(JOB_MANIFEST));
    folder.join(JOB_LOCK).is_file()
        && manifest.is_ok_and(|bytes| serde_json::from_slice::<ManifestFields>(&bytes).is_ok())
}

/// Examines a file and returns a source: lines or one text, or a bad document.
fn look_into(
    root: &Arc<Path>,
    relative: PathBuf,
    settings: &CorpusSettings,
) -> Result<CorpusSource, CorpusError> {
    let path = root.join(&relative);
    let found = match std::fs::metadata(&path) {
        // The caller decides whether it counts as a bad document or an unreadable file.
        Err(error) if settings.unreadable.is_some() => {
            return Err(CorpusError::open(&path, error));
        }
        Err(error) => Err(BadDocument::of_link(&error)),
        Ok(_) => {
            let file = File::open(&path).map_err(|e| CorpusError::open(&path, e))?;
            form::look_into(Box::new(file), &path, settings)?
        }
    };
    let origin = SourceOrigin::Folder(Arc::clone(root));
    Ok(CorpusSource::found(found, origin, relative))
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}
