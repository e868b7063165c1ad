//! Fingerprints of 64 bits and what is within a distance of three.

mod fingerprints;
mod gaoya;
mod ours;
mod scan;
mod sqlite;

use std::path::Path;
use std::time::Duration;

use crate::Result;
use crate::link::{Commits, Link, ask_warm, best_round, timed};
use crate::options::Options;
use crate::process::{allocated_bytes, anonymous_bytes};
use crate::race;
use crate::report;

/// The maximum distance of queries.
const DISTANCE: u32 = 3;

/// The number of probes in a batch.
const BATCH_PROBES: usize = 10_000;

const ENGINES: [&str; 4] = ["resemblance", "sqlite", "gaoya", "scan"];

type Pairs = Vec<(u64, u64)>;

/// An index of fingerprints.
trait Index {
    fn settings(&self) -> Result<String>;

    /// Inserts fingerprints, the first of which is that of document `first`, in one commit.
    fn insert(&mut self, first: u64, fingerprints: &[u64]) -> Result<()>;

    /// Takes the state that is read. Nothing is inserted after it.
    fn begin_reading(&mut self) -> Result<()> {
        Ok(())
    }

    /// The documents within the distance, ascending.
    fn near(&self, fingerprint: u64) -> Result<Vec<u64>>;

    /// Answers many probes in one call. Returns `None` if the engine has no such call.
    fn near_many(&self, _: &[u64]) -> Option<Result<Vec<Vec<u64>>>> {
        None
    }

    /// All pairs within the distance, in any order, each once.
    fn pairs(&self) -> Result<Pairs>;

    /// Returns lines for the report, and the bytes of a document's postings if the engine stores
    /// more than postings.
    fn inspect(&self) -> Result<(Vec<String>, Option<f64>)> {
        Ok((Vec::new(), None))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn open(name: &str, options: &Options) -> Result<Box<dyn Index>> {
    let folder = &options.folder;
    Ok(match name {
        "resemblance" => Box::new(ours::Ours::open(folder, options)?),
        "sqlite" => Box::new(sqlite::Blocks::open(folder)?),
        "gaoya" => Box::new(gaoya::Gaoya::new()),
        "scan" => Box::new(scan::Scan::default()),
        _ => return Err(format!("{name}: not one of {}", ENGINES.join(", ")).into()),
    })
}

fn compact(name: &str, folder: &Path) -> Result<()> {
    match name {
        "resemblance" => ours::compact(folder),
        "sqlite" => sqlite::compact(folder),
        _ => Err(format!("{name} keeps nothing on disk").into()),
    }
}

pub fn run(options: &Options) -> Result<()> {
    let known = ENGINES.map(str::to_owned);
    println!("## simhash");
    println!(
        "{} fingerprints of 64 bits, {} a commit (gaoya and the scan are in memory: nothing of \
         theirs is durable); {} probes of each kind, at most {DISTANCE} bits apart, after as many \
         to warm; many at once: {BATCH_PROBES}; a linear scan joins {} at most\n",
        options.documents, options.batch, options.probes, options.scan_limit
    );
    let outcomes = race::run(options, &options.engines(&known, &known)?, &[])?;
    report::print(&options.folder, &outcomes)
}

pub fn alone(name: &str, options: &Options, link: &mut Link) -> Result<()> {
    let before = anonymous_bytes()?;
    let mut index = open(name, options)?;
    link.settings(index.settings()?)?;
    let commits = Commits {
        documents: options.documents,
        size: options.batch,
        a_turn: 10,
    };
    let documents = commits.run(options, link, 0, |numbers| {
        let first = numbers.start;
        let batch: Vec<u64> = numbers.map(fingerprints::fingerprint).collect();
        Ok(timed(|| index.insert(first, &batch))?.1)
    })?;
    let taken = anonymous_bytes()?.saturating_sub(before);
    link.peak_memory("loading")?;
    index.begin_reading()?;
    probe("as loaded", &*index, options, documents, link)?;
    let a_fingerprint = |bytes: u64| bytes as f64 / documents as f64;
    let folder = &options.folder;
    if allocated_bytes(folder)? == 0 {
        link.cost("bytes a fingerprint", a_fingerprint(taken))?;
    } else {
        index.close()?;
        link.cost(
            "bytes a fingerprint",
            a_fingerprint(allocated_bytes(folder)?),
        )?;
        compact(name, folder)?;
        let compacted = a_fingerprint(allocated_bytes(folder)?);
        link.cost("bytes a fingerprint, compacted", compacted)?;
        index = open(name, options)?;
        index.begin_reading()?;
        let (notes, posting_bytes) = index.inspect()?;
        for note in notes {
            link.note(format!("compacted: {note}"))?;
        }
        let postings = posting_bytes.unwrap_or(compacted);
        link.cost("bytes a fingerprint, compacted, postings alone", postings)?;
        probe("compacted", &*index, options, documents, link)?;
    }
    join(name, &*index, options, documents, link)?;
    index.close()?;
    link.peak_memory("in all")
}

/// Single probes and batches, hits and misses; of several rounds the best.
fn probe(
    state: &str,
    index: &dyn Index,
    options: &Options,
    documents: u64,
    link: &mut Link,
) -> Result<()> {
    // The same for all engines, whatever each has reached.
    let hits = fingerprints::near_earlier(options.documents, options.probes);
    let misses = fingerprints::strangers(options.documents, options.probes);
    for (kind, probes) in [("hit", &hits), ("miss", &misses)] {
        link.meet()?;
        let label = format!("{state}, {kind}");
        let rate = |times: &[Duration]| probes.len() as f64 / best_round(times).as_secs_f64();
        let (answers, times) = ask_warm(probes, |probe| index.near(*probe))?;
        link.rate(format!("{label}: probes a second"), rate(&times))?;
        let batches: Vec<&[u64]> = probes.chunks(BATCH_PROBES).collect();
        let (at_once, times) = ask_warm(&batches, |probes| index.near_many(probes).transpose())?;
        let at_once: Vec<_> = at_once.into_iter().flatten().flatten().collect();
        if !at_once.is_empty() {
            if at_once != answers {
                return Err(format!("{label}: batches are answered otherwise").into());
            }
            link.rate(format!("{label}, many at once: a second"), rate(&times))?;
        }
        if state == "as loaded" {
            link.answers(kind, documents, 0.0, answers)?;
        }
    }
    Ok(())
}

fn join(
    name: &str,
    index: &dyn Index,
    options: &Options,
    documents: u64,
    link: &mut Link,
) -> Result<()> {
    link.meet()?;
    if name == "scan" && documents > options.scan_limit {
        return link.note(format!(
            "no self-join: {documents} is more than {}",
            options.scan_limit
        ));
    }
    let (mut pairs, time) = timed(|| index.pairs())?;
    link.cost("self-join, s", time.as_secs_f64())?;
    pairs.sort_unstable();
    link.pairs(documents, pairs)
}
