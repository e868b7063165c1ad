//! Years of a crawler that visits its pages again and again: do rate, file and memory stay as they are?

mod curves;
mod world;
pub mod years;

use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use resemblance::report::EvictReport;
use resemblance::{Document, EvictPolicy, MinHash, Revision, Schema, Store, Upserted};

use self::curves::{Curves, Sample};
use self::world::{Found, Visit, World};
use crate::Result;
use crate::documents::{batches, mix};
use crate::link::timed;
use crate::options::Options;
use crate::ours::store_options;
use crate::process::{allocated_bytes, anonymous_bytes, peak_bytes, resident_bytes, written_bytes};

/// Visits between samples.
const SAMPLE_VISITS: u64 = 1_000_000;

/// The number of samples between two counts of deleted documents' rows. A count reads the whole
/// store.
const SAMPLES_A_COUNT: u64 = 10;

/// In a round, in which every page is visited once.
const EVICTIONS_A_ROUND: u64 = 4;

/// The number of rounds within which every existing page is visited. Pages without a visit in that
/// time no longer exist.
const KEPT_ROUNDS: u64 = 2;

/// Pages looked up at the end.
const LOOK_UPS: u64 = 20_000;

pub fn run(options: &Options) -> Result<()> {
    if options.visits > u32::MAX.into() {
        return Err("--visits: at most 2^32".into());
    }
    println!(
        "## soak: {} visits to {} pages, {} of a site after each other, {} a durable commit; {} values of {} \
         bits; evicted is what was not seen for {KEPT_ROUNDS} rounds, {EVICTIONS_A_ROUND} times a round, by \
         another thread\n",
        options.visits,
        options.pages,
        options.site_pages,
        options.batch,
        options.values,
        options.value_bits
    );
    let folder = tempfile::tempdir_in(&options.folder)?;
    let path = folder.path().join("soak.rsm");
    let store = store_options().create(&path, schema(options)?)?;
    let mut soak = Soak::new(&store, options, &path)?;
    soak.visit_all(options)?;
    let Soak { world, curves, .. } = soak;
    look_up(&store, &world)?;
    drop(store);
    report(options, &curves)?;
    if !options.without_check {
        let (report, time) = timed(|| Ok(Store::check(&path).run()?))?;
        if !report.is_clean() {
            return Err(format!("the store is damaged: {:?}", report.problems).into());
        }
        println!("- checked in {:.0} s: clean", time.as_secs_f64());
    }
    Ok(())
}

fn schema(options: &Options) -> Result<Schema> {
    let minhash = MinHash::new(options.values)
        .value_bits(options.value_bits)
        .threshold(0.8);
    Ok(Schema::builder()
        .minhash(minhash)
        .expected_documents(options.pages)
        .build()?)
}

/// A soak under way.
struct Soak<'a> {
    store: &'a Store,
    path: &'a Path,
    world: World,
    curves: Curves,
    eviction: Option<Eviction>,
    evicted: u64,
    started: Instant,
    /// Since the last sample.
    since: Since,
}

struct Since {
    start: Instant,
    written_bytes: u64,
    visits: u64,
    longest_commit: Duration,
}

/// An eviction that runs during the visits.
struct Eviction {
    thread: JoinHandle<resemblance::Result<EvictReport>>,
    /// The number of documents that it must remove.
    expected: u64,
}

impl Since {
    fn now(visits: u64) -> Self {
        Self {
            start: Instant::now(),
            written_bytes: written_bytes(),
            visits,
            longest_commit: Duration::ZERO,
        }
    }
}

impl<'a> Soak<'a> {
    fn new(store: &'a Store, options: &Options, path: &'a Path) -> Result<Self> {
        Ok(Self {
            store,
            path,
            world: World::new(options.pages, options.site_pages, options.values),
            curves: Curves::new(&options.output)?,
            eviction: None,
            evicted: 0,
            started: Instant::now(),
            since: Since::now(0),
        })
    }

    fn visit_all(&mut self, options: &Options) -> Result<()> {
        let eviction_visits = (options.pages / EVICTIONS_A_ROUND).max(1);
        let mut next_eviction = eviction_visits;
        let mut next_sample = SAMPLE_VISITS;
        for numbers in batches(0..options.visits, options.batch) {
            let done = numbers.end;
            let visits: Vec<Visit> = numbers.map(|number| self.world.visit(number)).collect();
            let ((), time) = timed(|| write(self.store, &visits))?;
            self.since.longest_commit = self.since.longest_commit.max(time);
            if done >= next_eviction {
                next_eviction += eviction_visits;
                self.end_eviction()?;
                self.begin_eviction(done);
            }
            if done >= next_sample || done == options.visits {
                next_sample += SAMPLE_VISITS;
                if done == options.visits {
                    self.end_eviction()?;
                }
                self.sample(done)?;
            }
        }
        let (documents, expected) = (self.store.snapshot()?.len(), self.world.documents());
        if documents != expected {
            return Err(format!("{documents} documents are there, not {expected}").into());
        }
        Ok(())
    }

    fn begin_eviction(&mut self, now: u64) {
        let before = now.saturating_sub(KEPT_ROUNDS * self.world.pages());
        let expected = self.world.evict(before);
        let store = self.store.clone();
        let thread = std::thread::spawn(move || store.evict(EvictPolicy::OlderThan(before)).run());
        self.eviction = Some(Eviction { thread, expected });
    }

    /// Waits for the eviction that is under way, if there is one.
    fn end_eviction(&mut self) -> Result<()> {
        let Some(Eviction { thread, expected }) = self.eviction.take() else {
            return Ok(());
        };
        let report = thread.join().map_err(|_| "the eviction panicked")??;
        self.evicted += report.evicted;
        if report.evicted != expected {
            return Err(format!("{expected} were to be evicted: {report:?}").into());
        }
        Ok(())
    }

    fn sample(&mut self, visits: u64) -> Result<()> {
        let seconds = self.since.start.elapsed().as_secs_f64();
        let snapshot = self.store.snapshot()?;
        let count = (self.curves.samples().len() as u64 + 1).is_multiple_of(SAMPLES_A_COUNT);
        let sample = Sample {
            visits,
            seconds: self.started.elapsed().as_secs_f64(),
            visits_per_second: (visits - self.since.visits) as f64 / seconds,
            file_bytes: std::fs::metadata(self.path)?.len(),
            allocated_bytes: allocated_bytes(self.path)?,
            resident_bytes: resident_bytes()?,
            anonymous_bytes: anonymous_bytes()?,
            written_bytes: written_bytes() - self.since.written_bytes,
            longest_commit_ms: self.since.longest_commit.as_secs_f64() * 1e3,
            documents: snapshot.len(),
            dead_rows: match count {
                true => Some(snapshot.stats().run()?.dead_rows),
                false => None,
            },
            evicted: self.evicted,
        };
        drop(snapshot);
        eprintln!(
            "{:>10} visits, {:>6.0} s: {:>7.0} a second, file {:.0} MB, memory {:.0} MB, longest commit {:.0} ms",
            sample.visits,
            sample.seconds,
            sample.visits_per_second,
            sample.allocated_bytes as f64 / 1e6,
            sample.resident_bytes as f64 / 1e6,
            sample.longest_commit_ms,
        );
        self.curves.add(sample)?;
        // The time for counting is not part of the visits.
        self.since = Since::now(visits);
        Ok(())
    }
}

/// Tells the store of visits, in one transaction; it must see what has become of the pages.
fn write(store: &Store, visits: &[Visit]) -> Result<()> {
    let mut transaction = store.begin_write()?;
    for visit in visits {
        let document = Document::new(&visit.key).stamp(visit.stamp);
        let upserted = transaction.upsert(document, &visit.signature)?;
        if found(&upserted) != Some(visit.found) {
            let (key, expected) = (&visit.key, visit.found);
            return Err(format!("{key}: {expected:?} was answered by {upserted:?}").into());
        }
    }
    Ok(transaction.commit()?)
}

fn found(upserted: &Upserted) -> Option<Found> {
    Some(match upserted.revision {
        Revision::First => Found::First,
        Revision::Unchanged(_) => Found::Unchanged,
        Revision::Near(_) => Found::Edited,
        Revision::Different(_) => Found::Rewritten,
        _ => return None,
    })
}

/// Checks that pages here and there are in the store as they were visited last.
fn look_up(store: &Store, world: &World) -> Result<()> {
    let snapshot = store.snapshot()?;
    for look in 0..LOOK_UPS {
        let slot = mix(look) % world.pages();
        let key = world.key(slot);
        let record = snapshot.get(&key)?;
        let stamp = record.as_ref().map(|record| record.stamp());
        if stamp != world.stamp(slot) {
            let expected = world.stamp(slot);
            return Err(format!("{key}: its stamp is {stamp:?}, not {expected:?}").into());
        }
        let Some(record) = record else { continue };
        let signature = world.signature(slot);
        if record.signature().jaccard(&signature)? != 1.0 {
            return Err(format!("{key}: its signature is not that of the last visit").into());
        }
    }
    println!("- {LOOK_UPS} pages looked up: all are there as they were visited last");
    Ok(())
}

/// Reports how much samples vary, and how much the last differs from the first, once evictions
/// balance insertions.
fn report(options: &Options, curves: &Curves) -> Result<()> {
    let samples = curves.samples();
    let late = |visits: u64| visits > 3 * options.pages;
    let steady: Vec<&Sample> = samples.iter().filter(|one| late(one.visits)).collect();
    let output = options.output.display();
    println!("- curves in {output}.svg, samples in {output}.csv");
    println!(
        "- peak resident memory {:.0} MB",
        peak_bytes()? as f64 / 1e6
    );
    println!(
        "- from round 4 on, the least and the most of the samples, and the last by the first:"
    );
    let line = |name: &str, value: fn(&Sample) -> f64| {
        let values: Vec<f64> = steady.iter().map(|one| value(one)).collect();
        if let (Some(first), Some(last)) = (values.first(), values.last()) {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(0.0, f64::max);
            println!("  {name}: {least:.0} to {most:.0}, {:.2}", last / first);
        }
    };
    line("visits a second", |one| one.visits_per_second);
    line("file, MB on the disk", |one| {
        one.allocated_bytes as f64 / 1e6
    });
    line("resident memory, MB", |one| one.resident_bytes as f64 / 1e6);
    line("longest commit, ms", |one| one.longest_commit_ms);
    Ok(())
}
