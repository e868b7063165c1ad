//! Files that get their name when they are complete, standard output, and devices.

use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use resemblance::kept_permissions;
use resemblance_corpus::{Compression, CorpusRecord, Encoder, is_remote, is_store};
use tempfile::{Builder, NamedTempFile, TempDir, TempPath};

use super::guard::FileVersion;
use super::{escape, guard};
use crate::failure::{Failure, Result};

/// The advice of messages about a file that exists.
const FORCE: &str = "--force overwrites it";

/// Creates temporary files and folders whose names identify their origin.
pub(crate) fn scratch_builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(guard::PREFIX);
    builder
}

/// An empty file next to `target` that its owner alone may read, and the permissions of any new file there.
pub(crate) fn file_beside(target: &Path) -> Result<(NamedTempFile, Permissions)> {
    must_be_local(target)?;
    let dir = guard::parent(target);
    let made = || {
        // Only creating a file shows the permissions that the process gives to new ones. The file
        // is removed at once.
        let usual = scratch_builder().make_in(&dir, |path| File::create_new(path))?;
        let permissions = usual.as_file().metadata()?.permissions();
        Ok((scratch_builder().tempfile_in(&dir)?, permissions))
    };
    made().map_err(|e| cannot_write(target, &e))
}

/// A folder for files that will be moved into or next to `dir`.
pub(crate) fn folder_in(dir: &Path) -> Result<TempDir> {
    must_be_local(dir)?;
    let made = scratch_builder().tempdir_in(dir);
    made.map_err(|e| Failure::io(format!("cannot write to {}", dir.display()), &e))
}

/// Makes the names of files in a folder outlast a crash of the system, where a system can.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match resemblance::sync_folder(folder) {
        // A folder may be open to writers alone.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// The most files that are synced one by one.
#[cfg(target_os = "linux")]
const MOST_SYNCED_ALONE: usize = 100;

/// Makes files below a folder outlast a crash of the system, and their names.
pub(super) fn sync_tree(root: &Path, files: &[PathBuf]) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    // One call for thousands of small files, where the system has it. It writes what other programs have written, too.
    #[cfg(target_os = "linux")]
    if files.len() > MOST_SYNCED_ALONE
        && File::open(root).is_ok_and(|root| rustix::fs::syncfs(root).is_ok())
    {
        return Ok(());
    }
    for file in files {
        File::open(root.join(file))?.sync_all()?;
    }
    sync_names(root, files)
}

/// Makes the names of files below a folder outlast a crash of the system, and those of the folders between.
pub(super) fn sync_names(root: &Path, files: &[PathBuf]) -> io::Result<()> {
    let folders = files.iter().flat_map(|file| file.ancestors().skip(1));
    let folders: BTreeSet<PathBuf> = folders.map(|part| root.join(part)).collect();
    folders.iter().try_for_each(|folder| sync_folder(folder))
}

/// An error if a name is that of a place on a server, where nothing is written.
fn must_be_local(path: &Path) -> Result<()> {
    if is_remote(path) {
        return Err(Failure::usage(format!(
            "{} cannot be written to: outputs are local files",
            path.display()
        ))
        .with_note("write a local file, and copy it there"));
    }
    Ok(())
}

/// An error unless a new store can be made at a path.
pub(crate) fn must_be_new(path: &Path, advice: &str) -> Result<()> {
    must_not_exist(path, advice)?;
    guard::must_be_harmless(path)?;
    guard::begin_output(path, true);
    Ok(())
}

/// An error if something has the name already.
fn must_not_exist(path: &Path, advice: &str) -> Result<()> {
    must_be_local(path)?;
    match std::fs::symlink_metadata(path) {
        Ok(_) => {
            Err(Failure::refused(format!("{} already exists", path.display())).with_note(advice))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot_write(path, &error)),
    }
}

/// The ends of names that promise a compression or an archive that the tool does not write.
const UNWRITTEN: [&str; 12] = [
    "7z", "br", "bz", "gzip", "lz4", "lzma", "rar", "sz", "tgz", "z", "zip", "zstd",
];

/// An error if the name of an output promises a compression in which it would not be written.
fn must_be_written_as_named(path: &Path) -> Result<()> {
    let end = path.extension().map(|end| end.to_ascii_lowercase());
    match UNWRITTEN
        .into_iter()
        .find(|name| end.as_ref().is_some_and(|end| end == name))
    {
        Some(end) => Err(Failure::usage(format!(
            "{} ends with .{end}: outputs cannot be written in this form",
            path.display()
        ))
        .with_note("names that end with .gz, .zst, .bz2 or .xz compress them")),
        None => Ok(()),
    }
}

/// An error unless an output may be made at a path. Every output file that is not a new store is checked here.
pub(crate) fn must_be_free(path: &Path, force: bool) -> Result<()> {
    must_be_local(path)?;
    must_be_written_as_named(path)?;
    if !force && is_store(path) && !guard::is_special(path) {
        let advice = "it is a store, and stores are never overwritten";
        return must_not_exist(path, advice);
    }
    guard::must_be_harmless(path)?;
    if guard::is_special(path) {
        return Ok(());
    }
    if path.is_dir() {
        return Err(Failure::usage(format!(
            "{} is a folder, expected a file",
            path.display()
        )));
    }
    match force {
        true => Ok(()),
        false => must_not_exist(path, FORCE),
    }
}

/// Makes a folder for output files, with those above it, unless it is there. No file of it may be a store, a link, or
/// read: [`Destination::create`] checks each of them.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    may_be_folder(path)?;
    std::fs::create_dir_all(path).map_err(|e| cannot_write(path, &e))
}

/// Makes a folder that the command works in. It may lie in a folder that is read: reading skips the
/// folders of jobs.
pub(crate) fn open_folder(path: &Path) -> Result<()> {
    must_be_local(path)?;
    guard::must_not_be_a_store(path)?;
    guard::must_not_be_a_link(path)?;
    guard::open_output(path, true)?;
    std::fs::create_dir_all(path).map_err(|e| cannot_write(path, &e))
}

/// An error unless output files can go to a folder of this name.
pub(crate) fn may_be_folder(path: &Path) -> Result<()> {
    must_be_local(path)?;
    guard::must_be_harmless(path)?;
    match path.exists() && !path.is_dir() {
        true => Err(
            Failure::refused(format!("{} is a file, expected a folder", path.display()))
                .with_note("give another name"),
        ),
        false => Ok(()),
    }
}

/// Gives a complete file its name. Every file of an output gets it here.
pub(super) fn give_name(staged: TempPath, target: &Path, overwrites: bool) -> Result<()> {
    let named = if overwrites {
        staged.persist(target)
    } else {
        staged.persist_noclobber(target)
    };
    named.map_err(|e| cannot_write(target, &e.error))
}

/// An error if `relative` below `root`, or a folder on the way to it, is a link: what is written there would be written
/// elsewhere.
pub(super) fn must_not_pass_links(root: &Path, relative: &Path) -> Result<()> {
    let mut path = root.to_path_buf();
    for part in relative.components() {
        path.push(part);
        guard::must_not_be_a_link(&path)?;
    }
    Ok(())
}

pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::io(format!("cannot write {}", path.display()), error)
}

const BUFFER_BYTES: usize = 256 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

type EncodedWriter = Encoder<BufWriter<Box<dyn Write + Send>>>;

/// A file that does not have its name yet.
pub(crate) struct StagedFile {
    path: TempPath,
    file: File,
    overwrites: bool,
    /// The corpus that it replaces, as it was before it was read.
    corpus: Option<FileVersion>,
    /// The permissions that the file gets with its name. Until then only its owner may read it.
    permissions: Permissions,
}

/// A file that is on the disk as a whole and gets its name when all other outputs are, too.
#[must_use = "without a name it is removed"]
pub(crate) struct CompleteFile {
    path: PathBuf,
    /// `None` for standard output and devices.
    unnamed: Option<UnnamedFile>,
}

/// A complete file under its temporary name.
struct UnnamedFile {
    staged: TempPath,
    overwrites: bool,
    /// The corpus that it replaces, as it was before it was read.
    corpus: Option<FileVersion>,
}

/// An output file under a temporary name, standard output, or a device.
pub(crate) struct Destination {
    /// The name in messages, and the name that a staged file gets.
    pub(crate) path: PathBuf,
    writer: EncodedWriter,
    /// Gone once the file has its name.
    staged: Option<StagedFile>,
    is_empty: bool,
    ends_line: bool,
}

impl Destination {
    /// Creates a destination, whose name decides on the compression. Nothing is at `path` before
    /// [`Destination::finish`].
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self> {
        if path.as_os_str() == "-" {
            guard::must_not_be_standard_output()?;
            let stdout = io::stdout();
            let writer: Box<dyn Write + Send> = if stdout.is_terminal() {
                Box::new(TerminalWriter::new(stdout))
            } else {
                Box::new(stdout)
            };
            return Self::new(path, Compression::None, writer, None);
        }
        if guard::is_special(path) {
            guard::must_be_harmless(path)?;
            let compression = Compression::from_name(path);
            let file = guard::open_special(path)?;
            return Self::new(path, compression, Box::new(file), None);
        }
        must_be_free(path, force)?;
        Self::stage(path, force, None)
    }

    /// The same for a corpus that is about to be read, which the new file replaces when it is complete.
    pub(super) fn replace_corpus(path: &Path) -> Result<Self> {
        let corpus = FileVersion::of(path).map_err(|e| cannot_write(path, &e))?;
        Self::stage(path, true, Some(corpus))
    }

    fn stage(path: &Path, force: bool, corpus: Option<FileVersion>) -> Result<Self> {
        guard::open_output(path, false)?;
        let compression = Compression::from_name(path);
        let (file, of_new_files) = file_beside(path)?;
        let (file, staged) = file.into_parts();
        // an overwritten file remains as private as it is
        let permissions = match std::fs::metadata(path) {
            Ok(overwritten) => {
                kept_permissions(&file, &overwritten).map_err(|e| cannot_write(path, &e))?
            }
            Err(_) => of_new_files,
        };
        let staged = StagedFile {
            path: staged,
            file: file.try_clone().map_err(|e| cannot_write(path, &e))?,
            overwrites: force,
            corpus,
            permissions,
        };
        guard::begin_output(path, false);
        Self::new(path, compression, Box::new(file), Some(staged))
    }

    /// Gives the file the mode, owner and group of another one, whose content it has.
    pub(crate) fn with_permissions_of(mut self, source: &Path) -> Result<Self> {
        if let Some(staged) = &mut self.staged {
            let copied =
                std::fs::metadata(source).and_then(|it| kept_permissions(&staged.file, &it));
            staged.permissions = copied.map_err(|e| cannot_write(&self.path, &e))?;
        }
        Ok(self)
    }

    pub(crate) fn new(
        path: &Path,
        compression: Compression,
        inner: Box<dyn Write + Send>,
        staged: Option<StagedFile>,
    ) -> Result<Self> {
        let inner = BufWriter::with_capacity(BUFFER_BYTES, inner);
        Ok(Self {
            path: path.to_path_buf(),
            writer: Encoder::new(compression, inner).map_err(|e| cannot_write(path, &e))?,
            staged,
            is_empty: true,
            ends_line: true,
        })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.path.as_os_str() == "-" && !bytes.is_empty() {
            guard::print_part();
        }
        let written = self.writer.write_all(bytes);
        written.map_err(|e| failed(&self.path, &e))
    }

    /// Writes a kept record as it was in its source.
    pub(crate) fn record(&mut self, record: &CorpusRecord) -> Result<()> {
        if self.is_empty && record.has_mark {
            self.write(BYTE_ORDER_MARK)?;
        }
        if !self.ends_line {
            self.write(b"\n")?;
        }
        self.write(&record.bytes)?;
        self.is_empty = false;
        self.ends_line = record.bytes.ends_with(b"\n");
        Ok(())
    }

    /// Returns true if it is a terminal, or a file whose name implies compression.
    pub(crate) fn alters_bytes(&self) -> bool {
        let is_terminal = self.path.as_os_str() == "-" && io::stdout().is_terminal();
        is_terminal || !matches!(self.writer, Encoder::None(_))
    }

    /// Flushes what has been written to a stream that another process may be reading.
    pub(crate) fn pass_on(&mut self) -> Result<()> {
        if self.staged.is_some() || !matches!(self.writer, Encoder::None(_)) {
            return Ok(());
        }
        let flushed = self.writer.flush();
        flushed.map_err(|e| failed(&self.path, &e))
    }

    /// Completes the file and gives it its name.
    pub(crate) fn finish(self) -> Result<()> {
        self.complete()?.give_name()
    }

    /// Completes the file, which has no name yet: other outputs may still fail.
    pub(crate) fn complete(self) -> Result<CompleteFile> {
        let path = self.path;
        let flushed = self.writer.finish().and_then(|mut inner| inner.flush());
        flushed.map_err(|e| failed(&path, &e))?;
        let unnamed = match self.staged {
            Some(staged) => {
                let permitted = staged.file.set_permissions(staged.permissions);
                permitted
                    .and_then(|()| staged.file.sync_all())
                    .map_err(|e| cannot_write(&path, &e))?;
                Some(UnnamedFile {
                    staged: staged.path,
                    overwrites: staged.overwrites,
                    corpus: staged.corpus,
                })
            }
            None => None,
        };
        Ok(CompleteFile { path, unnamed })
    }
}

impl CompleteFile {
    /// True unless it would replace a corpus that was changed while it was read.
    pub(super) fn is_current(&self) -> bool {
        let corpus = self.unnamed.as_ref().and_then(|it| it.corpus.as_ref());
        corpus.is_none_or(|corpus| FileVersion::of(&self.path).is_ok_and(|now| now == *corpus))
    }

    /// Gives the file its name, which outlasts a crash of the system.
    pub(crate) fn give_name(self) -> Result<()> {
        let Some(unnamed) = self.unnamed else {
            return Ok(());
        };
        give_name(unnamed.staged, &self.path, unnamed.overwrites)?;
        guard::complete_output(&self.path);
        let synced = sync_folder(&guard::parent(&self.path));
        synced.map_err(|e| cannot_write(&self.path, &e))
    }
}

/// For tables, which other crates write: their errors are to be given to [`failed`].
impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

pub(super) fn failed(path: &Path, error: &io::Error) -> Failure {
    if path.as_os_str() == "-" || error.kind() == io::ErrorKind::BrokenPipe {
        Failure::output(error)
    } else {
        cannot_write(path, error)
    }
}

/// Passes text on line by line, with control characters escaped.
pub(super) struct TerminalWriter<W: Write> {
    inner: W,
    /// The beginning of a line whose end has not been written yet.
    line: Vec<u8>,
}

impl<W: Write> TerminalWriter<W> {
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            line: Vec::new(),
        }
    }

    fn pass_on(&mut self, length: usize) -> io::Result<()> {
        let bytes: Vec<u8> = self.line.drain(..length).collect();
        let text = String::from_utf8_lossy(&bytes);
        self.inner.write_all(escape::for_terminal(&text).as_bytes())
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = memchr::memrchr(b'\n', bytes).map_or(0, |index| index + 1);
        let complete = self.line.len() + end;
        self.line.extend_from_slice(bytes);
        if end > 0 {
            self.pass_on(complete)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on(self.line.len())?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn unfinished_output_is_readable_by_its_owner_only() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let modes = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            let modes =
                entries.map(|entry| entry.unwrap().metadata().unwrap().permissions().mode());
            modes.map(|mode| mode & 0o777).collect::<Vec<_>>()
        };
        let path = folder.path().join("out");
        let mut destination = Destination::create(&path, false).unwrap();
        destination.write(b"text").unwrap();
        assert_eq!(modes(), [0o600]);
        destination.finish().unwrap();
        let usual = File::create(folder.path().join("usual"))
            .unwrap()
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777;
        assert_eq!(modes(), [usual, usual]);
    }

    #[test]
    fn terminal_output_escapes_control_characters_of_documents() {
        let text = "a\x1b[2J\u{9b}1mb\u{202e}c\té\r\n";
        let mut writer = TerminalWriter::new(Vec::new());
        for byte in text.as_bytes() {
            writer.write_all(&[*byte]).unwrap();
        }
        writer.write_all(b"rest\x07").unwrap();
        writer.flush().unwrap();
        let expected = "a\\x1B[2J\\xC2\\x9B1mb\\xE2\\x80\\xAEc\té\\x0D\nrest\\x07";
        assert_eq!(String::from_utf8(writer.inner).unwrap(), expected);
    }
}
