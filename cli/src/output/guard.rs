//! Protects paths that no output may touch: stores, links, and everything that the command reads.
//!
//! The tool registers the paths that its arguments read before a verb runs, and the session the files of each corpus.
//! Everything that creates an output asks here, so that a verb cannot miss the rule.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use resemblance_corpus::{is_remote, is_store};

use crate::failure::{Failure, Result};

/// The beginning of the names of files that are not complete.
pub(super) const PREFIX: &str = ".resemblance-";

/// The interval at which a wait looks for signals.
const POLL: Duration = Duration::from_millis(50);

/// Names that lead to whatever a stream of this process is, a file perhaps.
const STREAMS: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd"];

/// True for devices, pipes and the process's own streams, which are written to as they are.
pub(crate) fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| {
        let is_stream = || STREAMS.iter().any(|stream| path.starts_with(stream));
        !metadata.is_dir() && (!metadata.is_file() || is_stream())
    })
}

/// The folder in which a path lies.
pub(crate) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Returns the path that a path leads to, whether or not anything is there: two paths that agree
/// are one file.
pub(crate) fn canonical_path(path: &Path) -> Option<PathBuf> {
    let beside = || {
        Some(
            std::fs::canonicalize(parent(path))
                .ok()?
                .join(path.file_name()?),
        )
    };
    std::fs::canonicalize(path).ok().or_else(beside)
}

/// The identity of a file, whatever its name.
#[derive(Clone, PartialEq, Eq, Hash)]
struct FileIdentity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    #[cfg(not(unix))]
    canonical: PathBuf,
}

#[cfg(unix)]
fn identity(metadata: &Metadata, _path: &Path) -> Option<FileIdentity> {
    use std::os::unix::fs::MetadataExt;
    metadata.is_file().then(|| FileIdentity {
        device_and_inode: (metadata.dev(), metadata.ino()),
    })
}

#[cfg(not(unix))]
fn identity(metadata: &Metadata, path: &Path) -> Option<FileIdentity> {
    if !metadata.is_file() {
        return None;
    }
    let canonical = std::fs::canonicalize(path).ok()?;
    Some(FileIdentity { canonical })
}

/// A file at a time: another one, or another content, has another version.
#[derive(PartialEq, Eq)]
pub(super) struct FileVersion {
    identity: Option<FileIdentity>,
    bytes: u64,
    /// `None` where the system does not know it.
    modified: Option<SystemTime>,
}

impl FileVersion {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        Ok(Self {
            identity: identity(&metadata, path),
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
}

fn identity_of(path: &Path) -> Option<FileIdentity> {
    identity(&std::fs::metadata(path).ok()?, path)
}

/// The regular file, if any, that a standard stream of the process is.
#[cfg(unix)]
fn stream_identity(stream: &impl std::os::fd::AsFd) -> Option<FileIdentity> {
    let file = stream.as_fd().try_clone_to_owned().ok()?;
    identity(&std::fs::File::from(file).metadata().ok()?, Path::new("-"))
}

#[cfg(not(unix))]
fn stream_identity<S>(_stream: &S) -> Option<FileIdentity> {
    None
}

/// An output that has been opened.
struct OpenOutput {
    shown: PathBuf,
    place: PathBuf,
    is_folder: bool,
    /// The file that it replaces, unless the command reads it.
    replaced: Option<FileIdentity>,
}

/// An output that gets its name when it is complete.
struct NamedOutput {
    shown: PathBuf,
    is_complete: bool,
    /// True for a new store, which is there as soon as it is complete.
    is_store: bool,
}

impl NamedOutput {
    fn is_written(&self) -> bool {
        self.is_complete || self.is_store && self.shown.exists()
    }
}

#[derive(Default)]
struct Guarded {
    /// The folders that are read, as they were given, with their canonical paths.
    folders: Vec<(PathBuf, PathBuf)>,
    /// The files that are read.
    files: HashSet<FileIdentity>,
    outputs: Vec<OpenOutput>,
    /// The outputs that were begun, in their order.
    named: Vec<NamedOutput>,
    /// True once results were printed to standard output.
    has_printed: bool,
}

static GUARDED: Mutex<Option<Guarded>> = Mutex::new(None);

fn guarded() -> MutexGuard<'static, Option<Guarded>> {
    GUARDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers paths that the command reads: files, folders, and `-` for standard input.
pub(crate) fn protect<'a>(paths: impl IntoIterator<Item = &'a Path>) {
    let mut guard = guarded();
    let guarded = guard.get_or_insert_default();
    for path in paths {
        if path.as_os_str() == "-" {
            guarded.files.extend(stream_identity(&io::stdin()));
        } else if is_remote(path) {
            continue;
        } else if path.is_dir() {
            let canonical = std::fs::canonicalize(path).ok();
            let folder = canonical.map(|canonical| (path.to_path_buf(), canonical));
            guarded.folders.extend(folder);
        } else {
            guarded.files.extend(identity_of(path));
        }
    }
}

/// Registers the files of a corpus, and returns an error if one of them is an output that is open, or standard output.
pub(crate) fn protect_sources(paths: impl Iterator<Item = PathBuf>) -> Result<()> {
    let stdout = stream_identity(&io::stdout());
    let mut guard = guarded();
    let guarded = guard.get_or_insert_default();
    for path in paths {
        let Some(identity) = identity_of(&path) else {
            continue;
        };
        if stdout.as_ref() == Some(&identity) {
            return Err(is_standard_output(&path));
        }
        let mut outputs = guarded.outputs.iter();
        if let Some(output) = outputs.find(|output| output.replaced.as_ref() == Some(&identity)) {
            return Err(is_read(&output.shown));
        }
        guarded.files.insert(identity);
    }
    Ok(())
}

fn is_standard_output(path: &Path) -> Failure {
    Failure::usage(format!(
        "standard output is redirected to {}, which is an input",
        path.display()
    ))
    .with_note("redirect it to another file")
}

fn is_read(path: &Path) -> Failure {
    Failure::usage(format!(
        "{} is an input, and this output would overwrite it",
        path.display()
    ))
    .with_note("give another name")
}

/// True if the command reads the file at a path, by whatever name.
pub(crate) fn reads_file(path: &Path) -> bool {
    let files = |guarded: &Guarded| identity_of(path).is_some_and(|id| guarded.files.contains(&id));
    guarded().as_ref().is_some_and(files)
}

/// An error if standard output is a store or a file that is read.
pub(super) fn must_not_be_standard_output() -> Result<()> {
    let Some(identity) = stream_identity(&io::stdout()) else {
        return Ok(());
    };
    let is_input = |guarded: &Guarded| guarded.files.contains(&identity);
    if guarded().as_ref().is_some_and(is_input) {
        return Err(Failure::usage("standard output is redirected to an input")
            .with_note("redirect it to another file"));
    }
    if is_store(Path::new("/dev/stdout")) {
        return Err(Failure::usage(
            "standard output is redirected to a store, and stores are never overwritten",
        )
        .with_note("redirect it to another file"));
    }
    Ok(())
}

/// An error if a path is a store, a link, a file that is read, or lies in a folder that is read. Every output, file or
/// folder, is checked here.
pub(super) fn must_be_harmless(path: &Path) -> Result<()> {
    must_not_be_a_store(path)?;
    if reads_file(path) {
        return Err(is_read(path));
    }
    if is_special(path) {
        return Ok(());
    }
    must_not_be_a_link(path)?;
    let guard = guarded();
    let Some((place, guarded)) = canonical_place(path).zip(guard.as_ref()) else {
        return Ok(());
    };
    let is_inside = |(_, folder): &&(PathBuf, PathBuf)| place.starts_with(folder);
    match guarded.folders.iter().find(is_inside) {
        Some((folder, _)) => Err(Failure::usage(format!(
            "{} is inside the input folder {}",
            path.display(),
            folder.display()
        ))
        .with_note("choose a place outside it")),
        None => Ok(()),
    }
}

/// Where a path leads, even where several of its last folders are still to be made.
fn canonical_place(path: &Path) -> Option<PathBuf> {
    let ancestors = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    for ancestor in ancestors.chain([Path::new(".")]) {
        if let Ok(canonical) = std::fs::canonicalize(ancestor) {
            let rest = path.strip_prefix(ancestor).unwrap_or(path);
            return Some(match rest.as_os_str().is_empty() {
                true => canonical,
                false => canonical.join(rest),
            });
        }
    }
    canonical_path(path)
}

/// A store takes long to make, and is never what an output is meant to replace.
pub(super) fn must_not_be_a_store(path: &Path) -> Result<()> {
    match is_store(path) {
        true => Err(Failure::usage(format!(
            "{} is a store, and stores are never overwritten",
            path.display()
        ))
        .with_note("give another name")),
        false => Ok(()),
    }
}

/// An error if a path is a link: nothing is written through links, whether or not they lead anywhere.
pub(super) fn must_not_be_a_link(path: &Path) -> Result<()> {
    // with a slash at its end, a path means what the link leads to
    let name: PathBuf = path.components().collect();
    match std::fs::read_link(&name) {
        Ok(place) => Err(Failure::refused(format!(
            "{} is a link, and outputs are never written through links",
            name.display()
        ))
        .with_note(format!("give the name of its target, {}", place.display()))),
        Err(_) => Ok(()),
    }
}

/// Returns an error once a signal asks the process to end.
type SignalCheck = Box<dyn Fn() -> Result<()> + Send + Sync>;

static SIGNALS: OnceLock<SignalCheck> = OnceLock::new();

/// Sets the check by which a wait for the reader of a pipe ends at a signal.
pub(crate) fn watch_signals(check: impl Fn() -> Result<()> + Send + Sync + 'static) {
    // A process has one set of handlers, and a second call changes nothing.
    let _ = SIGNALS.set(Box::new(check));
}

/// Opens a device, a pipe or a stream of the process. Waits until a named pipe has a reader; a
/// signal ends the wait.
pub(super) fn open_special(path: &Path) -> Result<File> {
    let (sender, receiver) = mpsc::channel();
    let name = path.to_path_buf();
    // A stream that is a file may not be empty.
    let opening = move || {
        let file = File::options().append(true).open(&name);
        // After a signal, the channel has no receiver.
        let _ = sender.send(file);
    };
    let failed = |e| Failure::io(format!("cannot write {}", path.display()), &e);
    let thread = thread::Builder::new().name("rsm-open".into());
    thread.spawn(opening).map_err(failed)?;
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(file) => return file.map_err(failed),
            Err(RecvTimeoutError::Disconnected) => return Err(Failure::internal()),
            Err(RecvTimeoutError::Timeout) => SIGNALS.get().map_or(Ok(()), |check| check())?,
        }
    }
}

/// Registers an output that is about to be written, and returns an error if another one is in the same place.
pub(super) fn open_output(path: &Path, is_folder: bool) -> Result<()> {
    let Some(place) = canonical_place(path) else {
        return Ok(());
    };
    let mut guard = guarded();
    let guarded = guard.get_or_insert_default();
    // A file may lie in the folder of another output, which leaves unfinished files alone.
    let is_within = |inner: &Path, is_inner_folder: bool, folder: &Path| {
        let is_beside = !is_inner_folder && inner.parent() == Some(folder);
        inner.starts_with(folder) && !is_beside
    };
    let meets = |other: &&OpenOutput| {
        place == other.place
            || is_folder && is_within(&other.place, other.is_folder, &place)
            || other.is_folder && is_within(&place, is_folder, &other.place)
    };
    if let Some(other) = guarded.outputs.iter().find(meets) {
        return Err(Failure::usage(format!(
            "two outputs would be written to the same place: {} and {}",
            other.shown.display(),
            path.display()
        )));
    }
    // a file that is read already is replaced on purpose
    let replaced = identity_of(path).filter(|identity| !guarded.files.contains(identity));
    guarded.outputs.push(OpenOutput {
        shown: path.to_path_buf(),
        replaced,
        place,
        is_folder,
    });
    Ok(())
}

/// Records that an output has been begun. It gets its name when it is complete.
pub(super) fn begin_output(path: &Path, is_store: bool) {
    let named = NamedOutput {
        shown: path.to_path_buf(),
        is_complete: false,
        is_store,
    };
    guarded().get_or_insert_default().named.push(named);
}

/// Records that an output has its name.
pub(super) fn complete_output(path: &Path) {
    let mut guard = guarded();
    let named = guard.iter_mut().flat_map(|guarded| &mut guarded.named);
    for output in named.filter(|output| output.shown == path) {
        output.is_complete = true;
    }
}

/// Records that a part of the results is on standard output.
pub(super) fn print_part() {
    guarded().get_or_insert_default().has_printed = true;
}

/// Returns a note with the names of the outputs that were written, or of those that were not, if there
/// are any.
fn note_of_outputs(named: &[NamedOutput], are_written: bool) -> Option<String> {
    let outputs = named.iter().filter(|it| it.is_written() == are_written);
    let names: Vec<String> = outputs.map(|it| it.shown.display().to_string()).collect();
    let state = if are_written {
        "complete"
    } else {
        "not written"
    };
    (!names.is_empty()).then(|| format!("{state}: {}", names.join(", ")))
}

/// Returns a note with the names of outputs that were begun and are not complete, if there are any.
pub(crate) fn unfinished_outputs() -> Option<String> {
    note_of_outputs(&guarded().as_ref()?.named, false)
}

/// Describes for a run that was interrupted which of its outputs are complete.
pub(crate) fn interrupted_outputs() -> Vec<String> {
    let guard = guarded();
    let Some(guarded) = guard.as_ref() else {
        return Vec::new();
    };
    let states = [true, false].map(|are_written| note_of_outputs(&guarded.named, are_written));
    let mut notes: Vec<String> = states.into_iter().flatten().collect();
    if guarded.has_printed {
        notes.push("standard output has a part of the results".into());
    }
    notes
}

/// An error if the files in a folder may not be removed: one is a store, or is read. Returns the number of entries in
/// the folder itself.
pub(super) fn must_be_replaceable(folder: &Path) -> Result<usize> {
    let cannot_read = |e| Failure::io(format!("cannot read {}", folder.display()), &e);
    let (mut waiting, mut entries) = (vec![folder.to_path_buf()], 0);
    while let Some(inner) = waiting.pop() {
        for entry in std::fs::read_dir(&inner).map_err(cannot_read)? {
            let entry = entry.map_err(cannot_read)?;
            if is_unfinished(&entry.file_name()) {
                continue;
            }
            entries += usize::from(inner == folder);
            let (path, kind) = (entry.path(), entry.file_type().map_err(cannot_read)?);
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() && is_store(&path) {
                return Err(Failure::usage(format!(
                    "{} is a store, so {} is not replaced",
                    path.display(),
                    folder.display()
                ))
                .with_note("give another folder"));
            } else if kind.is_file() && reads_file(&path) {
                return Err(Failure::usage(format!(
                    "{} is an input, so {} is not replaced",
                    path.display(),
                    folder.display()
                ))
                .with_note("give another folder"));
            }
        }
    }
    Ok(entries)
}

/// True for names of what a run has not finished.
pub(super) fn is_unfinished(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// Prints to standard output, unless that is a file that is read, or a store.
pub(crate) fn print(bytes: &[u8]) -> Result<()> {
    must_not_be_standard_output()?;
    let mut stdout = io::stdout();
    let printed = stdout.write_all(bytes).and_then(|()| stdout.flush());
    printed.map_err(|e| Failure::output(&e))
}
