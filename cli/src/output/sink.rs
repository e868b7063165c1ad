//! Writes the kept documents of a corpus, as they are in the input.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(not(feature = "tables"))]
use resemblance_corpus::CorpusError;
use resemblance_corpus::{
    AddedColumn, ArchiveCopy, ArchiveCounts, Compression, Corpus, CorpusRecord, CorpusRecords,
    CorpusSource, PageFate, SourceKind, header_with, record_with,
};
#[cfg(feature = "tables")]
use resemblance_corpus::{TableError, TableWriter};
use tempfile::{TempDir, TempPath};

use super::destination::{self, CompleteFile, Destination, cannot_write, failed};
use super::guard;
use super::messages::Counted;
use super::target::OutputTarget;
use crate::failure::{Failure, Result};
use resemblance::invariant::{at, bug};

/// A target that is being written to.
pub(crate) struct Sink {
    files: SinkFiles,
    /// The columns that are added to the rows.
    added: Option<Arc<Vec<AddedColumn>>>,
}

enum SinkFiles {
    One(OneOutput),
    Folder(OutputFolder),
}

/// The rows of a table that are copied.
#[cfg_attr(
    not(feature = "tables"),
    expect(dead_code, reason = "tables are refused")
)]
struct CopiedRows<'a> {
    source: &'a CorpusSource,
    /// Their numbers in the corpus.
    numbers: Range<u64>,
    /// The bytes that a page or batch may take.
    memory_bytes: u64,
}

/// One file for all sources.
struct OneOutput {
    file: OutputFile,
    /// The number of the next source whose names of columns were not looked at.
    next: usize,
}

impl Sink {
    /// Opens the target under a temporary name. A target that cannot be written is refused
    /// immediately.
    pub(crate) fn create(target: &OutputTarget, force: bool) -> Result<Self> {
        let one = |path: &Path| {
            let file = OutputFile::new(Destination::create(path, force)?);
            Ok::<_, Failure>(SinkFiles::One(OneOutput { file, next: 0 }))
        };
        let files = match target {
            OutputTarget::Standard => one(Path::new("-"))?,
            OutputTarget::File(path) => one(path)?,
            OutputTarget::InPlace(path) => SinkFiles::One(OneOutput {
                file: OutputFile::new(Destination::replace_corpus(path)?),
                next: 0,
            }),
            OutputTarget::Folder { path, are_rows } => {
                let folder = OutputFolder::create(path.clone(), force)?;
                SinkFiles::Folder(OutputFolder {
                    are_rows: *are_rows,
                    ..folder
                })
            }
        };
        Ok(Self { files, added: None })
    }

    /// Returns the same sink, whose rows get more columns.
    pub(crate) fn with_columns(self, columns: Vec<AddedColumn>) -> Self {
        Self {
            added: Some(Arc::new(columns)),
            ..self
        }
    }

    /// Returns the same sink, which copies only those records of WARC files that belong to its pages.
    pub(crate) fn of_pages_alone(mut self) -> Self {
        if let SinkFiles::Folder(folder) = &mut self.files {
            *folder.archive = ArchiveCopy::new(false);
        }
        self
    }

    /// Makes ready for records of this source, those that are kept and those that are not.
    pub(crate) fn begin_source(
        &mut self,
        source: usize,
        corpus: &Corpus,
        records: &CorpusRecords,
    ) -> Result<()> {
        let header = |source| header(corpus, records, self.added.as_deref(), source);
        match &mut self.files {
            SinkFiles::One(one) => one.begin_up_to(source, header),
            SinkFiles::Folder(folder) => folder.open_up_to(source, corpus, records, header),
        }
    }

    /// Writes a kept record of the source that was begun last. `number` is its own in the corpus.
    pub(crate) fn record(
        &mut self,
        record: &CorpusRecord,
        number: u64,
        corpus: &Corpus,
        records: &CorpusRecords,
    ) -> Result<()> {
        let at_place = |bad| Failure::from(bad).at(corpus.position(record.source, record.line));
        let line = corpus.as_line(record).map_err(at_place)?;
        let changed = match &self.added {
            Some(columns) => Some(record_with(columns, &line, number).map_err(at_place)?),
            None => None,
        };
        let record = changed.as_ref().unwrap_or(&line);
        match &mut self.files {
            SinkFiles::One(one) => one.file.record(record),
            SinkFiles::Folder(folder) => folder.record(record, corpus, records),
        }
    }

    /// Copies a record of the WARC file that was begun last. Returns false if its pages are written
    /// as rows.
    pub(crate) fn archived(&mut self, record: &CorpusRecord, fate: PageFate<'_>) -> Result<bool> {
        match &mut self.files {
            SinkFiles::Folder(folder) if folder.is_archive => {
                folder.copy_archive(|archive, output| archive.copy(record, fate, output))?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Writes the rows of the source that was begun last, a table, for which `is_kept` returns true, by
    /// their numbers from 0. `numbers` are those of its rows in the corpus.
    pub(crate) fn table(
        &mut self,
        source: usize,
        corpus: &Corpus,
        numbers: Range<u64>,
        is_kept: impl FnMut(u64) -> Result<bool>,
    ) -> Result<()> {
        let file = match &mut self.files {
            SinkFiles::One(one) => &mut one.file,
            SinkFiles::Folder(folder) => folder.current()?,
        };
        let read = CopiedRows {
            source: at(&corpus.sources, source)?,
            numbers,
            memory_bytes: corpus.settings.window_bytes,
        };
        file.table(read, self.added.as_ref(), is_kept)
    }

    /// Completes what was written, which has no name yet.
    pub(crate) fn complete(self, corpus: &Corpus, records: &CorpusRecords) -> Result<CompleteSink> {
        let sources = corpus.sources.len();
        let header = |source| header(corpus, records, self.added.as_deref(), source);
        Ok(match self.files {
            SinkFiles::One(mut one) => {
                one.begin_up_to(sources.saturating_sub(1), header)?;
                CompleteSink::File(one.file.complete()?)
            }
            SinkFiles::Folder(mut folder) => {
                folder.open_up_to(sources, corpus, records, header)?;
                folder.close()?;
                folder.sync()?;
                CompleteSink::Folder(Box::new(folder))
            }
        })
    }
}

/// An output that is complete and gets its name when all others are, too.
#[must_use = "without a name it is removed"]
pub(crate) enum CompleteSink {
    File(CompleteFile),
    Folder(Box<OutputFolder>),
}

impl CompleteSink {
    /// True unless it would replace a corpus that was changed while it was read.
    pub(crate) fn is_current(&self) -> bool {
        match self {
            Self::File(file) => file.is_current(),
            Self::Folder(_) => true,
        }
    }

    /// Renames what was written to its final name. Returns messages about files that were removed
    /// for it, and about records without a page.
    pub(crate) fn give_name(self) -> Result<Vec<String>> {
        match self {
            Self::File(file) => file.give_name().map(|()| Vec::new()),
            Self::Folder(folder) => {
                let mut notes = archive_notes(folder.archive.counts);
                notes.extend(folder.finish()?);
                Ok(notes)
            }
        }
    }
}

/// The row with the names of the columns of a source, if it has one: they may be given by an option.
fn header(
    corpus: &Corpus,
    records: &CorpusRecords,
    added: Option<&Vec<AddedColumn>>,
    source: usize,
) -> Result<Option<CorpusRecord>> {
    let header = records.header(source).filter(|row| !row.bytes.is_empty());
    let Some(header) = header else {
        return Ok(None);
    };
    let Some(added) = added else {
        return Ok(Some(header.clone()));
    };
    let header = header_with(added, header)
        .map_err(|bad| Failure::from(bad).at(corpus.position(source, header.line)))?;
    Ok(Some(header))
}

impl OneOutput {
    /// Writes the names of the columns of sources up to this one, of which all have the same.
    fn begin_up_to(
        &mut self,
        number: usize,
        header: impl Fn(usize) -> Result<Option<CorpusRecord>>,
    ) -> Result<()> {
        while self.next <= number {
            if let Some(header) = header(self.next)? {
                self.file.header(&header)?;
            }
            self.next += 1;
        }
        Ok(())
    }
}

/// A folder of output files, written elsewhere and moved into place at the end.
pub(crate) struct OutputFolder {
    target: PathBuf,
    /// True if pages of WARC files are written as rows.
    are_rows: bool,
    overwrites: bool,
    staging: TempDir,
    /// The number of the next source whose output has not been opened.
    next: usize,
    current: Option<OutputFile>,
    /// True if the current file gets records of WARC.
    is_archive: bool,
    archive: Box<ArchiveCopy>,
    written: Vec<PathBuf>,
}

impl OutputFolder {
    fn create(target: PathBuf, overwrites: bool) -> Result<Self> {
        guard::open_output(&target, true)?;
        guard::begin_output(&target, false);
        let beside = if target.is_dir() {
            target.clone()
        } else {
            guard::parent(&target)
        };
        Ok(Self {
            staging: destination::folder_in(&beside)?,
            target,
            are_rows: false,
            overwrites,
            next: 0,
            current: None,
            is_archive: false,
            archive: Box::new(ArchiveCopy::new(true)),
            written: Vec::new(),
        })
    }

    /// Returns the path of the folder in preparation, below a folder that only its owner may enter.
    fn root(&self) -> PathBuf {
        self.staging.path().join("files")
    }

    /// Opens the output of sources with several records up to this one: those without any get an
    /// empty file.
    fn open_up_to(
        &mut self,
        number: usize,
        corpus: &Corpus,
        records: &CorpusRecords,
        header: impl Fn(usize) -> Result<Option<CorpusRecord>>,
    ) -> Result<()> {
        while self.next <= number {
            self.close()?;
            let Some(source) = corpus.sources.get(self.next) else {
                return Ok(());
            };
            let is_read = source.problem.is_none() && !corpus.is_unread(self.next);
            if source.kind != SourceKind::Text && is_read {
                let path = source.output_path(self.are_rows);
                self.open(&path, records.compression(self.next))?;
                self.is_archive = source.kind == SourceKind::Warc && !self.are_rows;
            }
            if let Some(header) = header(self.next)?.filter(|_| is_read) {
                self.current()?.header(&header)?;
            }
            self.next += 1;
        }
        Ok(())
    }

    fn open(&mut self, relative: &Path, compression: Compression) -> Result<()> {
        let path = self.root().join(relative);
        let file = std::fs::create_dir_all(guard::parent(&path))
            .and_then(|()| File::create(&path))
            .map_err(|e| cannot_write(&self.target.join(relative), &e))?;
        let mut destination = Destination::new(&path, compression, Box::new(file), None)?;
        destination.path = self.target.join(relative);
        self.current = Some(OutputFile::new(destination));
        self.written.push(relative.to_path_buf());
        Ok(())
    }

    fn record(
        &mut self,
        record: &CorpusRecord,
        corpus: &Corpus,
        records: &CorpusRecords,
    ) -> Result<()> {
        let source = corpus.sources.get(record.source);
        if let Some(source) = source.filter(|source| source.kind == SourceKind::Text) {
            self.open(&source.relative, records.compression(record.source))?;
        }
        self.current()?.record(record)
    }

    fn current(&mut self) -> Result<&mut OutputFile> {
        let current = self.current.as_mut();
        current.ok_or_else(|| bug("a record was kept before its file was opened").into())
    }

    fn copy_archive(
        &mut self,
        copy: impl FnOnce(&mut ArchiveCopy, &mut Destination) -> io::Result<()>,
    ) -> Result<()> {
        let current = self.current.as_mut();
        let file = current.ok_or_else(|| bug("a record was copied before its file was opened"))?;
        let output = file.lines()?;
        copy(&mut self.archive, output).map_err(|error| failed(&output.path, &error))
    }

    fn close(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_archive) {
            self.copy_archive(ArchiveCopy::end_file)?;
        }
        match self.current.take() {
            Some(file) => file.complete()?.give_name(),
            None => Ok(()),
        }
    }

    /// Makes what was written outlast a crash of the system.
    fn sync(&self) -> Result<()> {
        let synced = destination::sync_tree(&self.root(), &self.written);
        synced.map_err(|e| cannot_write(&self.target, &e))
    }

    /// Gives a new folder its name, with all that is in it, or moves the files into the one that is
    /// there, and removes all others; if one cannot be moved, those that were are taken back.
    fn finish(self) -> Result<Option<String>> {
        let (target, written) = (self.target.clone(), self.written.clone());
        let removed = self.give_names()?;
        guard::complete_output(&target);
        // The files were synced before they were moved.
        destination::sync_names(&target, &written)
            .and_then(|()| destination::sync_folder(&guard::parent(&target)))
            .map_err(|e| cannot_write(&target, &e))?;
        Ok(removed)
    }

    fn give_names(self) -> Result<Option<String>> {
        if !self.target.exists() && !self.written.is_empty() {
            let named = std::fs::rename(self.root(), &self.target);
            return match named {
                Ok(()) => Ok(None),
                Err(error) => Err(cannot_write(&self.target, &error)),
            };
        }
        let made = std::fs::create_dir_all(&self.target);
        made.map_err(|e| cannot_write(&self.target, &e))?;
        let (mut stale, mut moved) = (Vec::new(), Vec::new());
        let result = self
            .set_aside(&mut stale)
            .and_then(|()| self.move_all(&mut moved));
        if let Err(failure) = result {
            // nothing better can be done about a second failure
            if !self.overwrites {
                for path in moved {
                    let _ = std::fs::remove_file(path);
                }
            }
            for path in stale {
                let _ = std::fs::rename(self.aside(&path), self.target.join(path));
            }
            return Err(failure);
        }
        let removed = stale.iter().map(|path| count_files(&self.aside(path)));
        Ok(match removed.sum::<u64>() {
            0 => None,
            count => Some(format!(
                "removed {} from {}",
                Counted(count, "file"),
                self.target.display()
            )),
        })
    }

    /// Where a file or folder of the target waits for its removal.
    fn aside(&self, relative: &Path) -> PathBuf {
        self.staging.path().join("removed").join(relative)
    }

    /// Takes everything out of the target that is not about to be replaced.
    fn set_aside(&self, stale: &mut Vec<PathBuf>) -> Result<()> {
        let files: HashSet<&Path> = self.written.iter().map(PathBuf::as_path).collect();
        let parents = self
            .written
            .iter()
            .flat_map(|path| path.ancestors().skip(1));
        let folders: HashSet<&Path> = parents.collect();
        let mut waiting = vec![PathBuf::new()];
        let failed = |e| cannot_write(&self.target, &e);
        while let Some(folder) = waiting.pop() {
            for entry in std::fs::read_dir(self.target.join(&folder)).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let relative = folder.join(entry.file_name());
                let kind = entry.file_type().map_err(failed)?;
                if guard::is_unfinished(&entry.file_name()) {
                    continue;
                }
                if kind.is_dir() && folders.contains(&*relative) {
                    waiting.push(relative);
                } else if kind.is_dir() || !files.contains(&*relative) {
                    let aside = self.aside(&relative);
                    std::fs::create_dir_all(guard::parent(&aside))
                        .and_then(|()| std::fs::rename(entry.path(), &aside))
                        .map_err(failed)?;
                    stale.push(relative);
                }
            }
        }
        match stale.is_empty() || self.overwrites {
            true => Ok(()),
            false => Err(Failure::refused(format!(
                "{} was empty, and now has files: nothing was written",
                self.target.display()
            ))),
        }
    }

    fn move_all(&self, moved: &mut Vec<PathBuf>) -> Result<()> {
        for relative in &self.written {
            let target = self.target.join(relative);
            destination::must_not_pass_links(&self.target, relative)?;
            let staged = std::fs::create_dir_all(guard::parent(&target))
                .and_then(|()| TempPath::try_from_path(self.root().join(relative)))
                .map_err(|e| cannot_write(&target, &e))?;
            destination::give_name(staged, &target, self.overwrites)?;
            moved.push(target);
        }
        Ok(())
    }
}

/// Describes the records of WARC files that were copied beside pages, and those in place of pages.
fn archive_notes(counts: ArchiveCounts) -> Vec<String> {
    let ArchiveCounts {
        others,
        left_out,
        same_payload,
        near,
        unreplaced,
        ..
    } = counts;
    let mut notes = Vec::new();
    if others + left_out > 0 {
        notes.push(format!(
            "WARC records other than pages: {others} copied, {left_out} left out with their pages"
        ));
    }
    if same_payload + near + unreplaced > 0 {
        let mut note = format!(
            "revisit records: {same_payload} of the same payload, {near} of near-duplicates"
        );
        if unreplaced > 0 {
            note += &format!(
                "; dropped pages without one, because they or their survivors are not responses of WARC: {unreplaced}"
            );
        }
        notes.push(note);
    }
    notes
}

/// The number of files at a path and below it.
fn count_files(path: &Path) -> u64 {
    let is_folder = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    match std::fs::read_dir(path) {
        Ok(entries) if is_folder => entries.flatten().map(|e| count_files(&e.path())).sum(),
        _ => 1,
    }
}

/// An output that is a file, or standard output.
pub(super) struct OutputFile {
    /// The file of lines, or of a table until its first source is known.
    lines: Option<Destination>,
    #[cfg(feature = "tables")]
    table: Option<TableWriter<Destination>>,
    has_header: bool,
    /// The path in messages.
    #[cfg(feature = "tables")]
    path: PathBuf,
}

impl OutputFile {
    pub(super) fn new(destination: Destination) -> Self {
        Self {
            #[cfg(feature = "tables")]
            path: destination.path.clone(),
            lines: Some(destination),
            #[cfg(feature = "tables")]
            table: None,
            has_header: false,
        }
    }

    fn lines(&mut self) -> Result<&mut Destination> {
        let lines = self.lines.as_mut();
        lines.ok_or_else(|| bug("a line was to be written to a table").into())
    }

    /// Writes the names of the columns, unless a source before had the same.
    pub(super) fn header(&mut self, header: &CorpusRecord) -> Result<()> {
        if !self.has_header {
            self.has_header = true;
            self.lines()?.record(header)?;
        }
        Ok(())
    }

    /// Writes a kept record.
    pub(super) fn record(&mut self, record: &CorpusRecord) -> Result<()> {
        self.lines()?.record(record)
    }

    #[cfg(not(feature = "tables"))]
    fn table(
        &mut self,
        CopiedRows { source, .. }: CopiedRows<'_>,
        _: Option<&Arc<Vec<AddedColumn>>>,
        _: impl FnMut(u64) -> Result<bool>,
    ) -> Result<()> {
        Err(CorpusError::requires(&source.name(), source.kind.name(), "tables").into())
    }

    /// Writes the rows of a table for which `is_kept` returns true, by their numbers from 0, with more columns if
    /// there are any.
    #[cfg(feature = "tables")]
    fn table(
        &mut self,
        read: CopiedRows<'_>,
        added: Option<&Arc<Vec<AddedColumn>>>,
        is_kept: impl FnMut(u64) -> Result<bool>,
    ) -> Result<()> {
        let CopiedRows {
            source,
            numbers,
            memory_bytes,
        } = read;
        let path = self.path.clone();
        let failure = |error: TableError<Failure>| match error {
            TableError::Input(error) => error.into(),
            TableError::Output(error) => failed(&path, &error),
            TableError::Choice(failure) => failure,
        };
        let table = match &mut self.table {
            Some(table) => table,
            None => {
                let lines = self
                    .lines
                    .take()
                    .ok_or_else(|| bug("a table has no file to go to"))?;
                if lines.alters_bytes() {
                    return Err(Failure::usage(format!(
                        "{} cannot be compressed or written to a terminal",
                        source.kind.name()
                    ))
                    .with_note("give the name of a file"));
                }
                let created = TableWriter::create(source, memory_bytes, lines, added.cloned());
                let created = created.map_err(failure)?;
                self.table.insert(created)
            }
        };
        table.copy(source, numbers, is_kept).map_err(failure)
    }

    /// Completes the file, which has no name yet.
    pub(super) fn complete(self) -> Result<CompleteFile> {
        #[cfg(feature = "tables")]
        if let Some(table) = self.table {
            let finished = table.finish().map_err(|e| failed(&self.path, &e))?;
            return finished.complete();
        }
        match self.lines {
            Some(lines) => lines.complete(),
            None => Err(bug("an output has no file").into()),
        }
    }
}
