//! A job: a folder that keeps the results for each completely read file of a corpus. A run that was
//! stopped continues after these files.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use resemblance::Schema;
use resemblance::distributed::Codec;
use serde::{Deserialize, Serialize};

use super::context::Context;
use super::pipeline::locked;
use super::shard::{self, JobContent, JobValue, ShardReader, ShardWriter};
use super::tally::ReadDocument;
use crate::failure::{Failure, Result};
use crate::options::differing_options;
use crate::output::{Counted, open_folder, scratch_builder, sync_folder};
use resemblance::invariant::bug;
use resemblance_corpus::{
    Corpus, CorpusSource, JOB_LOCK, JOB_MANIFEST, SourceKind, SourceOrigin, SourceTotals,
};

/// The name of the schema among the settings of a job.
const SCHEMA: &str = "the schema";

/// The inputs and options that a job was started with: everything it keeps depends on them.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Manifest {
    version: String,
    /// Settings by their names in messages.
    settings: BTreeMap<String, String>,
    files: Vec<JobFile>,
}

/// A file of the corpus.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct JobFile {
    name: String,
    kind: String,
    bytes: u64,
    /// Nanoseconds since 1970, or a server's name of the version.
    modified: String,
}

/// An open job.
pub(crate) struct Job {
    folder: PathBuf,
    codec: Codec,
    /// The sources of which everything is kept.
    known: BTreeMap<usize, SourceTotals>,
    sources: usize,
    /// Held while this lives.
    _lock: File,
}

impl Job {
    /// Begins a job in a folder that does not exist or is empty, or continues the one in it.
    /// `settings` are the inputs, besides the schema and the corpus, on which the kept documents
    /// depend, by their names in messages. Returns `None` without a folder.
    pub(crate) fn open(
        context: &Context,
        folder: Option<&Path>,
        corpus: &Corpus,
        schema: &Schema,
        settings: &[(&str, String)],
    ) -> Result<Option<Arc<Self>>> {
        let Some(folder) = folder else {
            return Ok(None);
        };
        let manifest = Manifest::of(corpus, schema, settings)?;
        let failed = |e| Failure::io(format!("cannot use {}", folder.display()), &e);
        if !folder.join(JOB_MANIFEST).exists() && folder.exists() {
            must_be_empty(folder)?;
        }
        open_folder(folder)?;
        let lock = lock(folder, context.is_without_lock)?;
        match std::fs::read(folder.join(JOB_MANIFEST)) {
            Ok(bytes) => manifest.must_be(&bytes, folder)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                must_be_empty(folder)?;
                manifest.write(folder).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        remove_unfinished(folder).map_err(failed)?;
        let mut known = BTreeMap::new();
        for source in 0..corpus.sources.len() {
            let path = shard_path(folder, source);
            if !path.exists() {
                continue;
            }
            match shard::totals(&path)? {
                Some(totals) => drop(known.insert(source, totals)),
                None => context.note(format!(
                    "{} is damaged: its source file is read again",
                    path.display()
                )),
            }
        }
        context.note(format!(
            "job {}: reusing {} of {}",
            folder.display(),
            known.len(),
            Counted(corpus.sources.len() as u64, "file")
        ));
        Ok(Some(Arc::new(Self {
            folder: folder.to_path_buf(),
            codec: Codec::new(schema)?,
            known,
            sources: corpus.sources.len(),
            _lock: lock,
        })))
    }

    /// The sources that need not be read.
    pub(super) fn known(&self) -> &BTreeMap<usize, SourceTotals> {
        &self.known
    }
}

fn shard_path(folder: &Path, source: usize) -> PathBuf {
    folder.join(format!("{source:06}.documents"))
}

/// Only one run may work in a folder at a time.
fn lock(folder: &Path, is_without_lock: bool) -> Result<File> {
    let path = folder.join(JOB_LOCK);
    let failed = |e| Failure::io(format!("cannot lock {}", path.display()), &e);
    let options = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = options.map_err(failed)?;
    let locked = loop {
        match file.try_lock() {
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {}
            locked => break locked,
        }
    };
    match locked {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(_)) if is_without_lock => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::refused(format!(
            "another run is using the job in {}",
            folder.display()
        ))),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn must_be_empty(folder: &Path) -> Result<()> {
    let failed = |e| Failure::io(format!("cannot use {}", folder.display()), &e);
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let is_ours = name == JOB_LOCK || is_unfinished(&name);
        if !is_ours {
            return Err(
                Failure::refused(format!("{} has files but no job", folder.display()))
                    .with_note("give a new or empty folder"),
            );
        }
    }
    Ok(())
}

fn is_unfinished(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".resemblance-")
}

/// Removes the files that a killed run has left.
fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if is_unfinished(&entry.file_name()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

impl Manifest {
    fn of(corpus: &Corpus, schema: &Schema, settings: &[(&str, String)]) -> Result<Self> {
        let schema = serde_json::to_string(schema).map_err(|error| bug(error.to_string()))?;
        let read = &corpus.settings;
        let of_corpus = [
            (SCHEMA, schema),
            ("--id", format!("{:?}", read.id)),
            ("--text-field", format!("{:?}", read.text_fields)),
            ("--vector-field", format!("{:?}", read.vector_field)),
            ("--stamp-field", format!("{:?}", read.stamp_field)),
            ("--stamp", format!("{} {}", read.stamp, read.needs_stamp)),
            ("--payload-field", format!("{:?}", read.payload_field)),
            ("--max-line", read.max_line_bytes.to_string()),
            ("--separator", format!("{:?}", read.separator)),
            ("--columns", format!("{:?}", read.columns)),
        ];
        let settings = settings
            .iter()
            .cloned()
            .chain(of_corpus)
            .map(|(name, value)| (name.to_owned(), value));
        let files = corpus.sources.iter().map(JobFile::of);
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").into(),
            settings: settings.collect(),
            files: files.collect::<Result<_>>()?,
        })
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        let mut file = scratch_builder().tempfile_in(folder)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.as_file().sync_all()?;
        file.persist(folder.join(JOB_MANIFEST))
            .map_err(|e| e.error)?;
        sync_folder(folder)
    }

    /// An error that names what differs if a job was begun with something else.
    fn must_be(&self, bytes: &[u8], folder: &Path) -> Result<()> {
        let shown = folder.display();
        let advice = "give the options and files that it was begun with, or another folder";
        let Ok(known) = serde_json::from_slice::<Self>(bytes) else {
            return Err(
                Failure::bad_input(format!("{shown} has no job of this version")).with_note(advice),
            );
        };
        let differs = if known.version != self.version {
            Some(format!("version {} of the tool", known.version))
        } else if known.settings != self.settings {
            let names: Vec<&str> = self
                .settings
                .iter()
                .filter(|(name, value)| known.settings.get(*name) != Some(value))
                .flat_map(|(name, value)| match known.settings.get(name) {
                    Some(then) if name == SCHEMA => schema_options(then, value),
                    _ => vec![name.as_str()],
                })
                .collect();
            Some(format!("different values of {}", names.join(", ")))
        } else if known.files.len() != self.files.len() {
            let (then, now) = (known.files.len(), self.files.len());
            let then = Counted(then as u64, "file");
            Some(format!("{then} instead of {now}"))
        } else {
            let pairs = known.files.iter().zip(&self.files);
            let mut different = pairs.filter(|(then, now)| then != now);
            different.next().map(|(then, now)| {
                if then.name == now.name {
                    format!("an earlier version of {}", then.name)
                } else {
                    format!("{} instead of {}", then.name, now.name)
                }
            })
        };
        match differs {
            None => Ok(()),
            Some(differs) => Err(Failure::usage(format!(
                "the job in {shown} was begun with {differs}"
            ))
            .with_note(advice)),
        }
    }
}

/// The options by which two schemas differ that are written as JSON.
fn schema_options(then: &str, now: &str) -> Vec<&'static str> {
    let schemas = (serde_json::from_str(then), serde_json::from_str(now));
    let options = match schemas {
        (Ok(then), Ok(now)) => differing_options(&then, &now),
        _ => Vec::new(),
    };
    if options.is_empty() {
        // Something that no option sets, such as the version of Unicode.
        return vec![SCHEMA];
    }
    options
}

impl JobFile {
    fn of(source: &CorpusSource) -> Result<Self> {
        let name = source.name().display().to_string();
        // A source that can be read once was copied, and the copy is removed after the run.
        let is_copy = matches!(source.origin, SourceOrigin::Spool(..));
        if source.problem.is_some() || is_copy || !source.is_rereadable() {
            return Err(Failure::usage(format!(
                "--job needs files that can be read again, and {name} cannot"
            )));
        }
        if source.kind == SourceKind::Text {
            return Err(Failure::usage(format!(
                "--job needs files of many documents, and {name} is one text"
            )));
        }
        if source.kind == SourceKind::Sqlite {
            // Changes to a database may be in another file.
            return Err(Failure::usage(format!(
                "--job needs files with a time of modification that can be trusted, and {name} is a SQLite \
                 database"
            )));
        }
        let failed = |e| Failure::io(format!("cannot read {name}"), &e);
        let (bytes, modified) = match &source.origin {
            #[cfg(feature = "remote")]
            SourceOrigin::Remote(object) => {
                let version = object.version();
                (
                    object.bytes(),
                    version.ok_or_else(|| bug("an object without a version"))?,
                )
            }
            _ => {
                let path = source.path().ok_or_else(|| bug("a file without a path"))?;
                let metadata = std::fs::metadata(&path).map_err(failed)?;
                let modified = metadata.modified().map_err(failed)?;
                (metadata.len(), since_1970(modified))
            }
        };
        Ok(Self {
            name: name.clone(),
            kind: source.kind.name().into(),
            bytes,
            modified,
        })
    }
}

fn since_1970(time: SystemTime) -> String {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos().to_string(),
        Err(before) => format!("-{}", before.duration().as_nanos()),
    }
}

/// Totals of the sources that were read to their end.
pub(super) type FinishedSources = Arc<Mutex<BTreeMap<usize, SourceTotals>>>;

/// The documents of a corpus of which some files are kept by a job.
pub(super) struct JobReading<T> {
    job: Arc<Job>,
    /// The source of the next documents, and the number of the next one.
    source: usize,
    number: u64,
    reader: Option<ShardReader>,
    writer: Option<ShardWriter>,
    /// A document of a later source that has been read ahead.
    peeked: Option<ReadDocument<T>>,
    finished: FinishedSources,
    save: fn(&T) -> JobContent,
    restore: fn(JobContent) -> T,
}

impl<T: JobValue> JobReading<T> {
    pub(super) fn begin(job: Arc<Job>, finished: FinishedSources) -> Self {
        Self {
            job,
            source: 0,
            number: 0,
            reader: None,
            writer: None,
            peeked: None,
            finished,
            save: T::save,
            restore: T::restore,
        }
    }
}

impl<T> JobReading<T> {
    /// The next document: a kept one, or one that `worked` gives, which then is kept. `worked` gives the documents of
    /// the other sources in their order.
    pub(super) fn next(
        &mut self,
        mut worked: impl FnMut() -> Result<Option<ReadDocument<T>>>,
    ) -> Result<Option<ReadDocument<T>>> {
        loop {
            if let Some(reader) = &mut self.reader {
                match reader.next(&self.job.codec, self.number, self.restore)? {
                    Some(read) => {
                        self.number += 1;
                        return Ok(Some(read));
                    }
                    None => {
                        self.reader = None;
                        self.source += 1;
                    }
                }
            } else if let Some(totals) = self.job.known.get(&self.source) {
                let path = shard_path(&self.job.folder, self.source);
                self.reader = Some(ShardReader::open(path, self.source, totals)?);
            } else {
                let next = match self.peeked.take() {
                    Some(peeked) => Some(peeked),
                    None => worked()?,
                };
                match next {
                    Some(read) if read.source == self.source => {
                        self.number = read.number + 1;
                        let (job, save) = (Arc::clone(&self.job), self.save);
                        self.writer()?.write(&job.codec, &read, save)?;
                        return Ok(Some(read));
                    }
                    Some(later) => {
                        self.peeked = Some(later);
                        self.finish_source()?;
                    }
                    None if self.source < self.job.sources => self.finish_source()?,
                    None => return Ok(None),
                }
            }
        }
    }

    fn writer(&mut self) -> Result<&mut ShardWriter> {
        if self.writer.is_none() {
            let path = shard_path(&self.job.folder, self.source);
            self.writer = Some(ShardWriter::create(path)?);
        }
        let writer = self.writer.as_mut();
        writer.ok_or_else(|| bug("a job has no file to write to").into())
    }

    /// Keeps the results for a source, to which the next document does not belong.
    fn finish_source(&mut self) -> Result<()> {
        let Some(totals) = locked(&self.finished).get(&self.source).copied() else {
            return Err(bug("a file was not read to its end").into());
        };
        self.writer()?;
        if let Some(writer) = self.writer.take() {
            writer.finish(&totals)?;
        }
        self.source += 1;
        Ok(())
    }
}
