//! Writing the kept documents of a corpus.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::{TempDir, TempPath};

use super::Context;
use super::dedup::folders;
use super::destination::{Destination, is_special};
use super::failure::{Failure, Result};
use super::progress::Progress;
use super::scratch::{self, FORCE, cannot_write};
use crate::corpus::{self, Compression, Corpus, Kind, Origin, Record, Records, Source, Totals};

/// One bit a record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    length: u64,
}

impl Bits {
    pub(crate) fn push(&mut self, bit: bool) {
        let shift = self.length % 64;
        if shift == 0 {
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(bit) << shift;
        }
        self.length += 1;
    }

    pub(crate) fn clear(&mut self, index: u64) {
        let word = usize::try_from(index / 64).ok();
        if let Some(word) = word.and_then(|word| self.words.get_mut(word)) {
            *word &= !(1 << (index % 64));
        }
    }

    pub(crate) fn get(&self, index: u64) -> bool {
        let word = usize::try_from(index / 64).ok();
        let word = word.and_then(|word| self.words.get(word));
        word.is_some_and(|word| word >> (index % 64) & 1 == 1)
    }
}

/// Where kept documents go.
pub(crate) enum Target {
    Standard,
    /// One file for all.
    File(PathBuf),
    /// A file for each file of the input.
    Folder(PathBuf),
}

impl Target {
    /// Reads the `-o` option, and refuses what could not be written in the end.
    pub(crate) fn choose(
        path: &Path,
        inputs: &[PathBuf],
        corpus: &Corpus,
        force: bool,
    ) -> Result<Self> {
        let text = corpus
            .sources
            .iter()
            .find(|source| source.kind == Kind::Text);
        let name = path.display();
        let ends_in_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if path.as_os_str() != "-" && (path.is_dir() || ends_in_slash || text.is_some()) {
            let is_lines = path.extension().is_some_and(|e| e == "jsonl")
                || Compression::of_name(path) != Compression::None;
            if !path.is_dir() && (path.exists() || is_lines) {
                return Err(Failure::usage(format!(
                    "{name} is a file name, but text files can only be written to a folder"
                )));
            }
            check_folder(path, inputs, corpus, force)?;
            return Ok(Self::Folder(path.to_path_buf()));
        }
        if let Some(text) = text {
            return Err(Failure::usage(format!(
                "{} is a text file: text files can only be written to a folder",
                text.name().display()
            )));
        }
        if path.as_os_str() == "-" {
            return Ok(Self::Standard);
        }
        if !force && !is_special(path) {
            scratch::must_not_exist(path, FORCE)?;
        }
        must_not_be_a_store(path)?;
        Ok(Self::File(path.to_path_buf()))
    }

    /// An error if a report at `report` would overwrite the output, or what the output is made of.
    pub(crate) fn must_not_meet(&self, report: &Path, corpus: &Corpus) -> Result<()> {
        if is_special(report) {
            return Ok(());
        }
        let is_standard = report.as_os_str() == "-";
        let place = scratch::place(report).filter(|_| !is_standard);
        let meets = match self {
            Self::Standard => is_standard,
            Self::File(path) => place.is_some() && scratch::place(path) == place,
            Self::Folder(out) => {
                let below = place.as_deref().zip(scratch::place(out));
                let relative = below.and_then(|(place, out)| place.strip_prefix(out).ok());
                relative.is_some_and(|relative| {
                    let mut sources = corpus.sources.iter();
                    sources.any(|source| source.relative == relative)
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
                "the output and the report cannot both go to {name}"
            )));
        }
        let is_report = |path: &Path| {
            // almost all paths are told apart by their last part, without a look at the disk
            let place = place.as_deref();
            place.is_some_and(|place| path.file_name() == place.file_name())
                && scratch::place(path).as_deref() == place
        };
        let mut paths = corpus.sources.iter().filter_map(Source::path);
        if paths.any(|path| is_report(&path)) {
            return Err(Failure::usage(format!(
                "the report {} would overwrite the corpus",
                report.display()
            )));
        }
        must_not_be_a_store(report)
    }
}

/// A store takes long to make, and is never what a corpus is meant to replace.
fn must_not_be_a_store(path: &Path) -> Result<()> {
    if corpus::is_store(path) {
        return Err(Failure::usage(format!(
            "{} is a store, which is not overwritten",
            path.display()
        )));
    }
    Ok(())
}

fn check_folder(out: &Path, inputs: &[PathBuf], corpus: &Corpus, force: bool) -> Result<()> {
    let place = scratch::place(out);
    for folder in folders(inputs) {
        let inside = place.as_ref().zip(scratch::place(folder));
        if inside.is_some_and(|(place, folder)| place.starts_with(folder)) {
            return Err(Failure::usage(format!(
                "{} lies in the input folder {}; choose a folder outside of it",
                out.display(),
                folder.display()
            )));
        }
    }
    let mut names = BTreeMap::new();
    for source in &corpus.sources {
        if source.path().is_none() {
            return Err(Failure::usage(
                "standard input has no file name: give a file name or - after -o",
            ));
        }
        if let Some(other) = names.insert(&source.relative, source) {
            return Err(Failure::usage(format!(
                "{} and {} would be written to the same file in {}",
                other.name().display(),
                source.name().display(),
                out.display()
            )));
        }
        if !force {
            scratch::must_not_exist(&out.join(&source.relative), FORCE)?;
        }
    }
    Ok(())
}

/// Copies standard input, and whatever else can be read only once, to temporary files.
pub(crate) fn spool(context: &Context, corpus: &mut Corpus) -> Result<()> {
    let dir = &context.temp_dir;
    for source in &mut corpus.sources {
        if source.is_rereadable() {
            continue;
        }
        let file = tempfile::tempfile_in(dir)
            .map_err(|e| Failure::io(format!("temporary file in {}", dir.display()), &e))?;
        let mut progress = Progress::new("reading", context.messages.quiet);
        let name = source.name().into_owned();
        let path = source.path().map(Cow::into_owned);
        let shown = name.display().to_string();
        let file = context.interrupt.while_working(&mut progress, move || {
            let cannot_read = |e| Failure::io(format!("cannot read {shown}"), &e);
            let mut input: Box<dyn io::Read> = match path {
                Some(path) => Box::new(File::open(path).map_err(cannot_read)?),
                None => Box::new(io::stdin()),
            };
            let mut file = file;
            io::copy(&mut input, &mut file)
                .and_then(|_| file.rewind())
                .map_err(|e| Failure::io(format!("cannot copy {shown} to a temporary file"), &e))?;
            Ok(Arc::new(file))
        })?;
        source.origin = Origin::Spool(file, name);
    }
    Ok(())
}

/// Reads the corpus a second time and writes the records whose bit is set.
pub(crate) fn copy(
    context: &Context,
    corpus: &Arc<Corpus>,
    kept: &Bits,
    totals: Totals,
    mut sink: Sink,
) -> Result<()> {
    let bytes_read = Arc::new(AtomicU64::new(0));
    let mut records = Records::new(Arc::clone(corpus), Arc::clone(&bytes_read));
    let mut progress =
        Progress::of_bytes("writing", context.messages.quiet, || corpus.size_bytes());
    let mut number = 0;
    while let Some(record) = records.next() {
        let record = record?;
        context.interrupt.check()?;
        progress.update(number, bytes_read.load(Ordering::Relaxed));
        if let Sink::Folder(folder) = &mut sink {
            folder.open_up_to(record.source, corpus, &records)?;
        }
        if kept.get(number) {
            match &mut sink {
                Sink::One(destination) => destination.record(&record)?,
                Sink::Folder(folder) => folder.record(&record, corpus)?,
            }
        }
        number += 1;
    }
    progress.clear();
    if records.totals() != totals {
        return Err(Failure::Io(
            "the corpus was changed while it was being read; nothing was written".into(),
        ));
    }
    match sink {
        Sink::One(destination) => destination.finish(),
        Sink::Folder(mut folder) => {
            folder.open_up_to(corpus.sources.len(), corpus, &records)?;
            folder.finish()
        }
    }
}

/// A target that is being written to.
pub(crate) enum Sink {
    One(Destination),
    Folder(Folder),
}

impl Sink {
    /// Opens the target under a temporary name: what cannot be written is refused at once.
    pub(crate) fn create(target: &Target, force: bool) -> Result<Self> {
        Ok(match target {
            Target::Standard => Self::One(Destination::create(Path::new("-"), force)?),
            Target::File(path) => Self::One(Destination::create(path, force)?),
            Target::Folder(path) => Self::Folder(Folder::create(path.clone(), force)?),
        })
    }
}

/// A folder of output files, written elsewhere and moved into place at the end.
pub(crate) struct Folder {
    target: PathBuf,
    overwrites: bool,
    staging: TempDir,
    /// The number of the next source whose output has not been opened.
    next: usize,
    current: Option<Destination>,
    written: Vec<PathBuf>,
}

impl Folder {
    fn create(target: PathBuf, overwrites: bool) -> Result<Self> {
        let beside = if target.is_dir() {
            target.clone()
        } else {
            scratch::parent(&target)
        };
        Ok(Self {
            staging: scratch::folder_in(&beside)?,
            target,
            overwrites,
            next: 0,
            current: None,
            written: Vec::new(),
        })
    }

    /// What becomes the folder, below one that nobody else may enter.
    fn root(&self) -> PathBuf {
        self.staging.path().join("files")
    }

    /// Opens the output of JSON Lines sources up to this one: those without any record get an
    /// empty file.
    fn open_up_to(&mut self, number: usize, corpus: &Corpus, records: &Records) -> Result<()> {
        while self.next <= number {
            self.close()?;
            let Some(source) = corpus.sources.get(self.next) else {
                return Ok(());
            };
            if source.kind == Kind::Lines {
                self.open(&source.relative, records.compression(self.next))?;
            }
            self.next += 1;
        }
        Ok(())
    }

    fn open(&mut self, relative: &Path, compression: Compression) -> Result<()> {
        let path = self.root().join(relative);
        let file =
            std::fs::create_dir_all(scratch::parent(&path)).and_then(|()| File::create(&path));
        let file = file.map_err(|e| cannot_write(&self.target.join(relative), &e))?;
        let mut destination = Destination::new(&path, compression, Box::new(file), None)?;
        destination.path = self.target.join(relative);
        self.current = Some(destination);
        self.written.push(relative.to_path_buf());
        Ok(())
    }

    fn record(&mut self, record: &Record, corpus: &Corpus) -> Result<()> {
        let source = corpus.sources.get(record.source);
        if let Some(source) = source.filter(|source| source.kind == Kind::Text) {
            self.open(&source.relative, Compression::None)?;
        }
        match &mut self.current {
            Some(destination) => destination.record(record),
            None => Ok(()),
        }
    }

    fn close(&mut self) -> Result<()> {
        match self.current.take() {
            Some(destination) => destination.finish(),
            None => Ok(()),
        }
    }

    /// Gives a new folder its name, with all that is in it, or moves the files into the one that is
    /// there; if one cannot be moved, those that were are taken back.
    fn finish(mut self) -> Result<()> {
        self.close()?;
        if !self.target.exists() && !self.written.is_empty() {
            let named = std::fs::rename(self.root(), &self.target);
            return named.map_err(|e| cannot_write(&self.target, &e));
        }
        let mut moved = Vec::new();
        let result = self.move_all(&mut moved);
        if result.is_err() && !self.overwrites {
            for path in moved {
                // nothing better can be done about a second failure
                let _ = std::fs::remove_file(path);
            }
        }
        result
    }

    fn move_all(&self, moved: &mut Vec<PathBuf>) -> Result<()> {
        let made = std::fs::create_dir_all(&self.target);
        made.map_err(|e| cannot_write(&self.target, &e))?;
        for relative in &self.written {
            let target = self.target.join(relative);
            std::fs::create_dir_all(scratch::parent(&target))
                .and_then(|()| TempPath::try_from_path(self.root().join(relative)))
                .and_then(|staged| {
                    let named = if self.overwrites {
                        staged.persist(&target)
                    } else {
                        staged.persist_noclobber(&target)
                    };
                    named.map_err(|e| e.error)
                })
                .map_err(|e| cannot_write(&target, &e))?;
            moved.push(target);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_in_order() {
        let mut bits = Bits::default();
        for number in 0..200_u64 {
            bits.push(number % 3 == 0);
        }
        bits.clear(66);
        for number in 0..200 {
            assert_eq!(
                bits.get(number),
                number % 3 == 0 && number != 66,
                "{number}"
            );
        }
        assert!(!bits.get(200));
        assert!(!bits.get(1_000_000));
    }
}
