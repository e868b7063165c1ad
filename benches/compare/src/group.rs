//! Measures durable calls of many threads: grouped by the store, each with a separate sync, and in
//! explicit transactions.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use resemblance::{BulkOptions, Document, Novelty, Store};

use crate::Result;
use crate::batch::Batch;
use crate::documents::{BANDS, Form};
use crate::link::Link;
use crate::options::Options;
use crate::ours::store_options;
use crate::race;
use crate::report::{self, percentile};
use crate::slow_disk::SlowDisk;
use crate::table::grouped;

const FORM: Form = Form::Records;

const BASE_DOCUMENTS: u64 = 100_000;

/// How often each way has its turn, for every number of threads, and for how long.
const TURNS: usize = 5;
const TURN: Duration = Duration::from_secs(1);

/// Documents that are made before a turn; it ends when they have been used up.
const POOL: u64 = 100_000;

const PAGE_BYTES: usize = 4096;

/// How a document gets into the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `Store::insert_if_new` from all threads.
    Grouped,
    /// The same, in groups of one: a transaction and a sync a call.
    Single,
    /// One thread inserts one document for each thread in one call and one transaction.
    Many,
    /// The same, a call a document.
    Each,
    /// No store: a page written in place and synced, by one thread.
    Sync,
}

const WAYS: [(Way, &str, &str); 5] = [
    (
        Way::Grouped,
        "grouped",
        "Store::insert_if_new from all threads",
    ),
    (
        Way::Single,
        "single",
        "the same with StoreOptions::group_calls(1): a transaction a call",
    ),
    (
        Way::Many,
        "many",
        "one thread, insert_many(..).if_new() of as many documents a transaction as there are threads",
    ),
    (
        Way::Each,
        "each",
        "one thread, as many insert_if_new a transaction as there are threads",
    ),
    (
        Way::Sync,
        "fdatasync",
        "one page of 4096 bytes written in place and fdatasync, by one thread",
    ),
];

impl FromStr for Way {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let found = WAYS.iter().find(|(_, known, _)| *known == name);
        found
            .map(|(way, ..)| *way)
            .ok_or(format!("{name}: no such way"))
    }
}

pub fn run(options: &Options) -> Result<()> {
    let known: Vec<String> = WAYS.iter().map(|(_, name, _)| (*name).to_owned()).collect();
    println!(
        "## group: durable insert_if_new of documents with {} values and a key, {BANDS} bands, all of them \
         new, into a store that holds {}; {TURNS} turns of {} s; \"call\": until it returns, for explicit \
         transactions until their commit does\n",
        FORM.values(),
        base(options),
        TURN.as_secs()
    );
    if !options.sync_delay.is_zero() {
        println!(
            "every sync is made to take {:?} longer\n",
            options.sync_delay
        );
    }
    let outcomes = race::run(options, &options.engines(&known, &known)?, &[])?;
    report::print(&options.folder, &outcomes)
}

fn base(options: &Options) -> u64 {
    options.base.unwrap_or(BASE_DOCUMENTS)
}

pub fn alone(name: &str, options: &Options, link: &mut Link) -> Result<()> {
    let way: Way = name.parse()?;
    let about = WAYS.iter().find(|(one, ..)| *one == way);
    link.settings(about.map_or_else(String::new, |(_, _, about)| (*about).to_owned()))?;
    let mut place = Place::new(way, options)?;
    for &threads in &options.threads {
        link.meet()?;
        let mut sample = Sample::default();
        for turn in 0..TURNS {
            if turn > 0 {
                link.pause()?;
            }
            place.turn(way, threads, &mut sample)?;
        }
        sample.report(threads, link)?;
    }
    link.peak_memory("base included")?;
    if let Some(store) = &place.store {
        let documents = store.snapshot()?.len();
        if documents != place.next {
            let expected = place.next;
            return Err(format!("{documents} documents are there, {expected} were new").into());
        }
    }
    Ok(())
}

/// Where it is done.
struct Place {
    store: Option<Store>,
    pages: File,
    sync_delay: Duration,
    /// The number of the next document.
    next: u64,
}

/// The results of the turns with one number of threads.
#[derive(Default)]
struct Sample {
    calls: u64,
    commits: u64,
    time: Duration,
    latencies: Vec<Duration>,
}

impl Sample {
    fn report(mut self, threads: usize, link: &mut Link) -> Result<()> {
        let threads = match threads {
            1 => "1 thread".to_owned(),
            _ => format!("{} threads", grouped(threads as f64)),
        };
        let rate = self.calls as f64 / self.time.as_secs_f64();
        link.rate(format!("{threads}: calls a second"), rate)?;
        if self.commits > 0 {
            let size = self.calls as f64 / self.commits as f64;
            link.rate(format!("{threads}: calls a commit"), size)?;
        }
        for (name, share) in [("median", 0.5), ("99 %", 0.99), ("longest", 1.0)] {
            let value = report::microseconds(percentile(&mut self.latencies, share));
            link.cost(format!("{threads}: call, {name}, us"), value)?;
        }
        Ok(())
    }
}

impl Place {
    fn new(way: Way, options: &Options) -> Result<Self> {
        let pages = File::create(options.folder.join("page"))?;
        pages.write_all_at(&[0; PAGE_BYTES], 0)?;
        pages.sync_all()?;
        let (mut store, mut next) = (None, 0);
        if way != Way::Sync {
            next = base(options);
            let path = options.folder.join("grouped.rsm");
            let bulk = BulkOptions::new().store(store_options());
            let mut build = Store::bulk_build(&path, FORM.schema()?, &bulk)?;
            for number in 0..next {
                let key = FORM.key(number).unwrap_or_default();
                build.insert(Document::new(&key), &FORM.signature(number))?;
            }
            build.finish()?;
            let mut settings = store_options();
            if way == Way::Single {
                settings = settings.group_calls(1);
            }
            if !options.sync_delay.is_zero() {
                let sync_delay = options.sync_delay;
                settings = settings.files(Arc::new(SlowDisk { sync_delay }));
            }
            store = Some(settings.open(&path)?);
        }
        Ok(Self {
            store,
            pages,
            sync_delay: options.sync_delay,
            next,
        })
    }

    fn turn(&mut self, way: Way, threads: usize, sample: &mut Sample) -> Result<()> {
        let Some(store) = &self.store else {
            return self.sync_pages(sample);
        };
        let batch = Batch::new(FORM, self.next..self.next + POOL);
        let documents: Vec<_> = batch.keys.iter().flatten().zip(&batch.signatures).collect();
        let (threads, size) = match way {
            Way::Grouped | Way::Single | Way::Sync => (threads, 1),
            Way::Many | Way::Each => (1, threads),
        };
        let commits = || store.metrics().transactions_committed;
        let commits_before = commits();
        let used = in_threads(threads, documents.len() / size, sample, |place| {
            let documents = &documents[place * size..(place + 1) * size];
            let insert = || -> resemblance::Result<Vec<Novelty>> {
                let all = documents.iter();
                if way == Way::Grouped || way == Way::Single {
                    return all
                        .map(|(key, one)| store.insert_if_new(*key, one))
                        .collect();
                }
                let mut transaction = store.begin_write()?;
                let answers = if way == Way::Many {
                    let all: Vec<_> = all.map(|(key, one)| (Document::new(*key), *one)).collect();
                    transaction.insert_many(&all).if_new().run()?
                } else {
                    all.map(|(key, one)| transaction.insert_if_new(*key, one))
                        .collect::<resemblance::Result<_>>()?
                };
                transaction.commit()?;
                Ok(answers)
            };
            let answers = insert().map_err(|error| error.to_string())?;
            must_be_new(&answers)
        })?;
        sample.commits += commits() - commits_before;
        self.next += (used * size) as u64;
        sample.calls += (used * size) as u64;
        Ok(())
    }

    fn sync_pages(&self, sample: &mut Sample) -> Result<()> {
        let used = in_threads(1, usize::MAX, sample, |place| {
            let page = [place as u8; PAGE_BYTES];
            std::thread::sleep(self.sync_delay);
            let written = self.pages.write_all_at(&page, 0);
            written
                .and_then(|()| self.pages.sync_data())
                .map_err(|error| error.to_string())
        })?;
        sample.calls += used as u64;
        Ok(())
    }
}

/// Checks that all of them were new.
fn must_be_new(answers: &[Novelty]) -> std::result::Result<(), String> {
    match answers
        .iter()
        .find(|one| !matches!(one, Novelty::New { .. }))
    {
        Some(other) => Err(format!("a new document was answered by {other:?}")),
        None => Ok(()),
    }
}

/// Does something for the numbers from 0 on, in threads that take the next one each, until the turn is
/// over or there are no more. Returns how many were done.
fn in_threads(
    threads: usize,
    end: usize,
    sample: &mut Sample,
    run: impl Fn(usize) -> std::result::Result<(), String> + Sync,
) -> Result<usize> {
    let next = AtomicUsize::new(0);
    let barrier = Barrier::new(threads + 1);
    let work = || -> std::result::Result<Vec<Duration>, String> {
        let mut latencies = Vec::new();
        barrier.wait();
        let start = Instant::now();
        while start.elapsed() < TURN {
            let place = next.fetch_add(1, Ordering::Relaxed);
            if place >= end {
                break;
            }
            let before = Instant::now();
            run(place)?;
            latencies.push(before.elapsed());
        }
        Ok(latencies)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        barrier.wait();
        let start = Instant::now();
        let mut done = 0;
        for worker in workers {
            let latencies = worker.join().map_err(|_| "a thread panicked")??;
            done += latencies.len();
            sample.latencies.extend(latencies);
        }
        sample.time += start.elapsed();
        Ok(done)
    })
}
