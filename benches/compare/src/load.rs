//! Loading, a durable commit a batch, and probing what was loaded.

use std::time::Duration;

use crate::Result;
use crate::documents::{BANDS, Form, Probe};
use crate::engine::{Engine, Kind};
use crate::link::{Commits, Link, ask_warm, timed};
use crate::options::Options;
use crate::process::{allocated_bytes, written_bytes};
use crate::race;
use crate::report::{self, microseconds, percentile};

/// The engines that have a separate form for records.
const OF_RECORDS: [Kind; 3] = [Kind::Resemblance, Kind::Sqlite, Kind::SqliteSorted];

/// A step that takes less time did no work.
const NOTHING_LEFT: Duration = Duration::from_millis(100);

/// The names of all engines that keep postings.
pub fn engine_names() -> Vec<String> {
    Kind::ALL.iter().map(Kind::to_string).collect()
}

/// The same without those that differ only in how they are given batches.
pub fn one_of_a_kind() -> Vec<String> {
    let names = engine_names().into_iter();
    let twin = Kind::SqliteSorted.to_string();
    names.filter(|name| *name != twin).collect()
}

pub fn describe(form: Form, options: &Options) -> String {
    match form {
        Form::Postings => format!("postings ({} values, no key)", form.values()),
        Form::Records => {
            let others = match options.with_records_of(form) {
                true => "SQLite keeps postings, keys and signatures",
                false => "other engines keep postings only",
            };
            format!("records ({} values, a key); {others}", form.values())
        }
    }
}

pub fn run(options: &Options) -> Result<()> {
    for &form in options.forms() {
        let default = match form {
            Form::Postings => engine_names(),
            Form::Records => OF_RECORDS.iter().map(Kind::to_string).collect(),
        };
        let engines = options.engines(&engine_names(), &default)?;
        println!("## load: {}", describe(form, options));
        println!(
            "{} documents, {} a durable commit, {BANDS} bands; insert and commit timed\n",
            options.documents, options.batch
        );
        let outcomes = race::run(options, &engines, &["--form".into(), form.to_string()])?;
        report::print(&options.folder, &outcomes)?;
    }
    Ok(())
}

pub fn alone(kind: Kind, options: &Options, link: &mut Link) -> Result<()> {
    let mut engine = kind.open(options.form(), &options.folder)?;
    link.settings(engine.settings()?)?;
    let before = written_bytes();
    let reached = insert(kind, &mut *engine, options, link, 0)?;
    let ((), finishing) = timed(|| engine.finish_background_work())?;
    if finishing >= NOTHING_LEFT {
        let label = "work in the background left at the end, s";
        link.cost(label, finishing.as_secs_f64())?;
    }
    if kind.is_durable() {
        let written = (written_bytes() - before) as f64;
        let label = "written by calls, bytes a document";
        link.cost(label, written / reached as f64)?;
    }
    link.peak_memory("loading")?;
    let held = link.hold(reached)?;
    engine.begin_reading()?;
    probe_warm(&*engine, options, (held, options.documents), reached, link)?;
    finish(kind, engine, options, reached, link)
}

/// Inserts the number of documents that the options set, beginning with `first`, and returns the
/// number of the next.
pub fn insert(
    kind: Kind,
    engine: &mut dyn Engine,
    options: &Options,
    link: &mut Link,
    first: u64,
) -> Result<u64> {
    let commits = Commits {
        documents: options.documents,
        size: options.batch,
        a_turn: 10,
    };
    commits.run(options, link, first, |numbers| {
        let batch = kind.batch(options, numbers);
        let ((), time) = timed(|| engine.insert(&batch))?;
        Ok(time)
    })
}

/// Probes of all kinds; the answers are compared. All engines hold the documents below `held`, none
/// those from `end` on, and this one those below `reached`.
pub fn probe_warm(
    engine: &dyn Engine,
    options: &Options,
    (held, end): (u64, u64),
    reached: u64,
    link: &mut Link,
) -> Result<()> {
    let probes = Probe::mixed(options.form(), (held, end), options.probes);
    let (answers, mut times) = ask_warm(&probes, |probe| engine.candidates(probe))?;
    for (label, share) in [("median", 0.5), ("99 %", 0.99)] {
        let time = microseconds(percentile(&mut times, share));
        link.cost(format!("probes of all kinds, warm, {label}, us"), time)?;
    }
    link.answers("probes of all kinds", reached, 0.5, answers)
}

/// Reports what the engine says about itself, and its size on disk.
pub fn finish(
    kind: Kind,
    engine: Box<dyn Engine>,
    options: &Options,
    documents: u64,
    link: &mut Link,
) -> Result<()> {
    let (notes, posting_bytes) = engine.inspect()?;
    for note in notes {
        link.note(note)?;
    }
    engine.close()?;
    if !kind.is_durable() {
        return Ok(());
    }
    let a_document = |bytes: u64| bytes as f64 / documents as f64;
    let folder = &options.folder;
    link.cost(
        "bytes a document, files",
        a_document(allocated_bytes(folder)?),
    )?;
    let posting_bytes = match kind {
        Kind::Resemblance => posting_bytes,
        _ if options.with_records() => None,
        _ => Some(a_document(kind.file_bytes(folder)?)),
    };
    if let Some(bytes) = posting_bytes {
        link.cost("bytes a document, postings alone, without logs", bytes)?;
    }
    if kind == Kind::Resemblance {
        kind.compact(folder)?;
        let compacted = a_document(allocated_bytes(folder)?);
        link.cost("bytes a document, files after compact", compacted)?;
    }
    Ok(())
}
