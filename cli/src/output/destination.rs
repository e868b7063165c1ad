//! A file that is written under a temporary name, standard output, or a device.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::staging::{self, FORCE, cannot_write};
use super::terminal::TerminalWriter;
use crate::failure::{Failure, Result};
use resemblance_corpus::{Compression, CorpusRecord, Encoder};

const BUFFER_BYTES: usize = 256 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Names that lead to whatever a stream of this process is, a file perhaps.
const STREAMS: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd"];

/// True for devices, pipes and the process's own streams, which are written to as they are.
pub(crate) fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| {
        let is_stream = || STREAMS.iter().any(|stream| path.starts_with(stream));
        !metadata.is_dir() && (!metadata.is_file() || is_stream())
    })
}

type EncodedWriter = Encoder<BufWriter<Box<dyn Write + Send>>>;

/// A file that does not have its name yet.
pub(crate) struct StagedFile {
    path: TempPath,
    file: File,
    overwrites: bool,
    /// Those that it gets with its name: until then it is for its owner alone.
    permissions: Permissions,
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
    /// The name tells the compression. Nothing is at `path` before [`Destination::finish`].
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self> {
        if path.as_os_str() == "-" {
            let stdout = io::stdout();
            let writer: Box<dyn Write + Send> = if stdout.is_terminal() {
                Box::new(TerminalWriter::new(stdout))
            } else {
                Box::new(stdout)
            };
            return Self::new(path, Compression::None, writer, None);
        }
        let compression = Compression::from_name(path);
        if is_special(path) {
            // a stream that is a file may hold something already
            let file = File::options()
                .append(true)
                .open(path)
                .map_err(|e| cannot_write(path, &e))?;
            return Self::new(path, compression, Box::new(file), None);
        }
        if !force {
            staging::must_not_exist(path, FORCE)?;
        }
        // what is overwritten is the file to which a link leads, and it stays as private as it is
        let is_link = std::fs::read_link(path).is_ok();
        let linked = is_link.then(|| std::fs::canonicalize(path).ok()).flatten();
        let path = linked.as_deref().unwrap_or(path);
        let (file, of_new_files) = staging::file_beside(path)?;
        let overwritten = std::fs::metadata(path);
        let (file, staged) = file.into_parts();
        let staged = StagedFile {
            path: staged,
            file: file.try_clone().map_err(|e| cannot_write(path, &e))?,
            overwrites: force,
            permissions: overwritten.map_or(of_new_files, |metadata| metadata.permissions()),
        };
        Self::new(path, compression, Box::new(file), Some(staged))
    }

    /// Gives the file the permissions of another one, whose content it has.
    pub(crate) fn with_permissions_of(mut self, source: &Path) -> Result<Self> {
        if let Some(staged) = &mut self.staged {
            let metadata = std::fs::metadata(source).map_err(|e| cannot_write(&self.path, &e))?;
            staged.permissions = metadata.permissions();
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
        let written = self.writer.write_all(bytes);
        written.map_err(|e| failed(&self.path, &e))
    }

    /// Writes a kept record as it stood in its source.
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

    /// True if it is a terminal or a file whose name says that it is compressed.
    pub(crate) fn alters_bytes(&self) -> bool {
        let is_terminal = self.path.as_os_str() == "-" && io::stdout().is_terminal();
        is_terminal || !matches!(self.writer, Encoder::None(_))
    }

    /// Completes the file and gives it its name.
    pub(crate) fn finish(self) -> Result<()> {
        let path = self.path;
        let flushed = self.writer.finish().and_then(|mut inner| inner.flush());
        flushed.map_err(|e| failed(&path, &e))?;
        let Some(staged) = self.staged else {
            return Ok(());
        };
        let permitted = staged.file.set_permissions(staged.permissions);
        permitted
            .and_then(|()| staged.file.sync_all())
            .map_err(|e| cannot_write(&path, &e))?;
        let named = if staged.overwrites {
            staged.path.persist(&path)
        } else {
            staged.path.persist_noclobber(&path)
        };
        named.map_err(|e| cannot_write(&path, &e.error))
    }
}

/// For tables, which are written by others: their errors are to be given to [`failed`].
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

#[cfg(all(unix, test))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn until_it_has_its_name_a_file_is_for_its_owner_alone() {
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
}
