//! One store and several processes: durable inserts of documents that are not near-duplicates,
//! compared with other engines, and a writer together with readers.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use resemblance::{Document, Novelty, Signature, Store};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::batch::Batch;
use crate::documents::{BANDS, Form, batches};
use crate::engine::cache_bytes;
use crate::options::Options;
use crate::ours::store_options;
use crate::outcome::{Figure, Outcome};
use crate::report::{self, microseconds, percentile};
use crate::{lmdb, process, sqlite};

const FORM: Form = Form::Records;

const BASE_DOCUMENTS: u64 = 100_000;

/// The maximum time that a process waits for its turn, in every engine.
pub const WAIT: Duration = Duration::from_secs(60);

/// The minimum estimate of two near-duplicates: the default of the schema.
const THRESHOLD: f64 = 0.8;

/// The time for which a reader rests after it has taken a snapshot and asked one question.
const READER_REST: Duration = Duration::from_millis(1);

/// The time between the commits of a writer that commits 100 times a second.
const WRITER_REST: Duration = Duration::from_millis(10);

/// A store or database that several processes share.
pub trait Shared {
    /// Inserts a batch durably.
    fn load(&mut self, batch: &Batch) -> Result<()>;

    /// Inserts a document unless it has a stored near-duplicate. Returns whether it did. The insert
    /// is durable, and atomic among all processes.
    fn insert_if_new(&mut self, key: &str, signature: &Signature, codes: &[u64]) -> Result<bool>;
}

impl Shared for Store {
    fn load(&mut self, batch: &Batch) -> Result<()> {
        let mut transaction = self.begin_write()?;
        for (key, signature) in batch.keys.iter().flatten().zip(&batch.signatures) {
            transaction.insert(Document::new(key.as_bytes()), signature)?;
        }
        Ok(transaction.commit()?)
    }

    fn insert_if_new(&mut self, key: &str, signature: &Signature, _: &[u64]) -> Result<bool> {
        let novelty = Store::insert_if_new(self, key, signature)?;
        Ok(matches!(novelty, Novelty::New { .. }))
    }
}

/// Returns whether a stored signature, as little-endian values, is a near-duplicate.
pub fn is_near(signature: &Signature, stored: &[u8]) -> bool {
    let values = signature.minhash().unwrap_or_default();
    let pairs = values.iter().zip(stored.chunks_exact(4));
    let equal = pairs.filter(|(value, bytes)| value.to_le_bytes() == **bytes);
    equal.count() as f64 >= THRESHOLD * values.len() as f64
}

/// The work of one process.
#[derive(Clone, Serialize, Deserialize)]
enum Work {
    /// Inserts every `processes`th document of the list, from place `first` on.
    Insert { first: u64, processes: u64 },
    /// Commits new documents, one in each commit, and rests in between.
    Write { rest: Duration },
    /// Takes snapshots and asks questions until the input ends.
    Read,
}

/// The report of one process.
#[derive(Default, Serialize, Deserialize)]
struct Report {
    inserted: u64,
    latencies: Vec<Duration>,
}

pub fn run(options: &Options) -> Result<()> {
    let known = ["resemblance", "one-process", "sqlite", "lmdb"].map(str::to_owned);
    let base = options.base.unwrap_or(BASE_DOCUMENTS);
    println!(
        "## sharing: durable insert_if_new by 1 to 8 processes into one store of {base} documents with {} \
         values and a key, {BANDS} bands; {} documents, each given to two processes; then a writer beside \
         readers, which take a snapshot, ask for the candidates of a document and rest for {READER_REST:?}\n",
        FORM.values(),
        options.singles,
    );
    let mut outcomes = Vec::new();
    for engine in options.engines(&known, &known)? {
        let mut outcome = Outcome::new(&engine);
        let counts: &[u64] = if engine == "one-process" {
            &[1]
        } else {
            &[1, 2, 4, 8]
        };
        for &processes in counts {
            insert(options, base, processes, &mut outcome)?;
        }
        if engine == "one-process" {
            read_and_write(options, base, &mut outcome)?;
        }
        outcomes.push(outcome);
    }
    report::print(&options.folder, &outcomes)
}

fn insert(options: &Options, base: u64, processes: u64, outcome: &mut Outcome) -> Result<()> {
    let place = Place::new(options, base, &outcome.name)?;
    let work = (0..processes).map(|first| Work::Insert { first, processes });
    let mut workers = work
        .map(|work| place.start(&work))
        .collect::<Result<Vec<_>>>()?;
    let start = Instant::now();
    for worker in &mut workers {
        worker.go()?;
    }
    let reports = workers
        .into_iter()
        .map(Worker::report)
        .collect::<Result<Vec<_>>>()?;
    let elapsed = start.elapsed();
    let inserted: u64 = reports.iter().map(|report| report.inserted).sum();
    if inserted != options.singles {
        let (name, expected) = (&outcome.name, options.singles);
        return Err(format!("{name}: {inserted} documents were new in place of {expected}").into());
    }
    let label = format!("{processes} processes");
    let rate = (2 * options.singles) as f64 / elapsed.as_secs_f64();
    add(outcome, format!("{label}: calls a second"), rate, true);
    let latencies = reports.into_iter().flat_map(|report| report.latencies);
    add_latencies(outcome, &format!("{label}: call"), latencies.collect());
    Ok(())
}

/// Measures a writer beside 0, 1 and 8 readers, and readers beside a writer that rests and without
/// one.
fn read_and_write(options: &Options, base: u64, outcome: &mut Outcome) -> Result<()> {
    for readers in [0, 1, 8] {
        for rest in [Duration::ZERO, WRITER_REST] {
            let place = Place::new(options, base, &outcome.name)?;
            let mut writer = place.start(&Work::Write { rest })?;
            let mut asking = Vec::new();
            for _ in 0..readers {
                let mut reader = place.start(&Work::Read)?;
                reader.go()?;
                asking.push(reader);
            }
            writer.go()?;
            let written = writer.report()?;
            let read = asking
                .into_iter()
                .map(Worker::report)
                .collect::<Result<Vec<_>>>()?;
            let pace = if rest.is_zero() { "" } else { ", 100 a second" };
            let label = format!("{readers} readers: commit{pace}");
            add_latencies(outcome, &label, written.latencies);
            let latencies: Vec<_> = read.into_iter().flat_map(|one| one.latencies).collect();
            if readers > 0 {
                let label = format!("{readers} readers: snapshot and question{pace}");
                add_latencies(outcome, &label, latencies);
            }
        }
    }
    let place = Place::new(options, base, &outcome.name)?;
    let mut reader = place.start(&Work::Read)?;
    reader.go()?;
    std::thread::sleep(Duration::from_secs(2));
    let latencies = reader.report()?.latencies;
    add_latencies(outcome, "no writer: snapshot and question", latencies);
    Ok(())
}

fn add(outcome: &mut Outcome, label: String, value: f64, more_is_better: bool) {
    outcome.figures.push(Figure {
        label,
        value,
        more_is_better,
    });
}

fn add_latencies(outcome: &mut Outcome, label: &str, mut latencies: Vec<Duration>) {
    for (name, share) in [("median", 0.5), ("99 %", 0.99), ("longest", 1.0)] {
        let value = microseconds(percentile(&mut latencies, share));
        add(outcome, format!("{label}, {name}, us"), value, false);
    }
}

/// A store that contains the base. It is removed at the end.
struct Place {
    folder: tempfile::TempDir,
    engine: String,
}

impl Place {
    fn new(options: &Options, base: u64, engine: &str) -> Result<Self> {
        let folder = tempfile::tempdir_in(&options.folder)?;
        let mut shared = open(engine, folder.path())?;
        for numbers in batches(0..base, options.batch) {
            shared.load(&Batch::new(FORM, numbers).with_rows(FORM).with_records())?;
        }
        let engine = engine.to_owned();
        Ok(Self { folder, engine })
    }

    /// Starts a process and waits until it is ready.
    fn start(&self, work: &Work) -> Result<Worker> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(std::env::args_os().skip(1))
            .args(["--alone", &self.engine, "--memory"])
            .arg((cache_bytes() >> 20).to_string())
            .args(["--work", &serde_json::to_string(work)?, "--folder"])
            .arg(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().ok_or("no pipe from the process")?;
        let mut worker = Worker {
            child,
            output: BufReader::new(output),
        };
        worker.line()?;
        Ok(worker)
    }
}

struct Worker {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

/// Ends the process, however the measurement ends.
impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err("a process ended early".into()),
            _ => Ok(line),
        }
    }

    fn go(&mut self) -> Result<()> {
        let input = self.child.stdin.as_mut().ok_or("no pipe to the process")?;
        Ok(input.write_all(b"\n")?)
    }

    /// Asks a reader to stop, waits for the process to finish, and returns its report.
    fn report(mut self) -> Result<Report> {
        drop(self.child.stdin.take());
        Ok(serde_json::from_str(&self.line()?)?)
    }
}

fn path(engine: &str, folder: &Path) -> PathBuf {
    folder.join(engine)
}

fn open_store(engine: &str, folder: &Path) -> Result<Store> {
    let (options, path) = (store_options().wait(WAIT), path(engine, folder));
    if path.exists() {
        return Ok(options.open(path)?);
    }
    let options = options.shared_writers(engine == "resemblance");
    Ok(options.create(path, FORM.schema()?)?)
}

fn open(engine: &str, folder: &Path) -> Result<Box<dyn Shared>> {
    Ok(match engine {
        "sqlite" => Box::new(sqlite::Sqlite::open(&path(engine, folder), false)?),
        "lmdb" => Box::new(lmdb::SharedLmdb::open(&path(engine, folder))?),
        _ => Box::new(open_store(engine, folder)?),
    })
}

/// Returns the number of a document that a process inserts. These documents come after the base and
/// resemble no other.
fn number(options: &Options, place: u64) -> u64 {
    let base = options.base.unwrap_or(BASE_DOCUMENTS);
    (base + place) * 10
}

/// Does one process's part.
pub fn work(engine: &str, options: &Options, work: &str) -> Result<()> {
    process::die_with_parent(true)?;
    let report = match serde_json::from_str(work)? {
        Work::Insert { first, processes } => insert_alone(engine, options, first, processes)?,
        Work::Write { rest } => write_alone(engine, options, rest)?,
        Work::Read => read_alone(engine, options)?,
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn wait_for_start() -> Result<()> {
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

fn insert_alone(engine: &str, options: &Options, first: u64, processes: u64) -> Result<Report> {
    let mut shared = open(engine, &options.folder)?;
    let mut documents = Vec::new();
    // Equal documents are neighbors in the list, so that different processes insert them at the
    // same time.
    for place in (first..2 * options.singles).step_by(usize::try_from(processes)?) {
        let signature = FORM.signature(number(options, place / 2));
        let codes = FORM.codes(&signature);
        documents.push((format!("place-{place}"), signature, codes));
    }
    wait_for_start()?;
    let mut report = Report::default();
    for (key, signature, codes) in &documents {
        let start = Instant::now();
        let inserted = shared.insert_if_new(key, signature, codes)?;
        report.latencies.push(start.elapsed());
        report.inserted += u64::from(inserted);
    }
    Ok(report)
}

fn write_alone(engine: &str, options: &Options, rest: Duration) -> Result<Report> {
    let store = open_store(engine, &options.folder)?;
    let count = if rest.is_zero() { options.singles } else { 300 };
    let signatures: Vec<_> = (0..count)
        .map(|place| FORM.signature(number(options, place)))
        .collect();
    wait_for_start()?;
    let mut report = Report::default();
    for (place, signature) in signatures.iter().enumerate() {
        std::thread::sleep(rest);
        let start = Instant::now();
        let mut transaction = store.begin_write()?;
        transaction.insert(format!("place-{place}").as_bytes(), signature)?;
        transaction.commit()?;
        report.latencies.push(start.elapsed());
        report.inserted += 1;
    }
    Ok(report)
}

fn read_alone(engine: &str, options: &Options) -> Result<Report> {
    let store = store_options().open_read_only(path(engine, &options.folder))?;
    let base = options.base.unwrap_or(BASE_DOCUMENTS);
    let probes: Vec<_> = (0..1_000)
        .map(|probe| FORM.signature(crate::documents::mix(probe) % base))
        .collect();
    wait_for_start()?;
    let (ended, mut report) = (AtomicBool::new(false), Report::default());
    std::thread::scope(|scope| -> Result<()> {
        scope.spawn(|| {
            // Zero bytes and an error both mean that the parent has stopped waiting.
            let _ = std::io::stdin().read_line(&mut String::new());
            ended.store(true, Ordering::Relaxed);
        });
        for signature in probes.iter().cycle() {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            let start = Instant::now();
            let found = store.snapshot()?.query(signature).candidates()?;
            report.latencies.push(start.elapsed());
            if found.is_empty() {
                return Err("a document that is there was not found".into());
            }
            std::thread::sleep(READER_REST);
        }
        Ok(())
    })?;
    Ok(report)
}
