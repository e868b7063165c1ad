//! Compares the store with other engines, and measures sketching.

mod accuracy;
mod batch;
mod build;
mod documents;
mod engine;
mod fjall;
mod group;
mod hash_map;
mod kept_sets;
mod kernels;
mod link;
mod lmdb;
mod load;
mod nearest;
mod options;
mod ours;
mod outcome;
mod packed;
mod pair_of_stores;
mod probe;
mod process;
mod race;
mod replace;
mod report;
#[cfg(rocksdb)]
mod rocksdb;
mod sharing;
mod shingle;
mod simhash;
mod sketch;
mod slow_disk;
mod soak;
mod sqlite;
mod steady;
mod table;

use std::error::Error;
use std::process::ExitCode;

use crate::engine::Kind;
use crate::link::Link;
use crate::options::Options;

/// Any error ends the measurement.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

const USAGE: &str = "\
usage: resemblance-compare VERB [options]

load     inserts generated documents of 20 lanes, a durable commit a batch; then probes
steady   the same into engines that hold --base documents, then one document a commit, beside a
         bare fdatasync of a page
build    all documents at once, in every engine's own fastest way, from sorted input
probe    candidates of one document, and of many at once: warm, cold, as loaded, compacted
replace  all documents of a store anew, over and over: the size of its file, ours only
group    durable insert_if_new of many threads: gathered by the store, with a sync each, and in
         explicit transactions, beside a bare fdatasync
sharing  durable insert_if_new by 1 to 8 processes on one store, beside SQLite and LMDB; a writer
         beside readers in other processes
soak     years of a crawler: visits to pages most of which are unchanged, some changed, new or
         gone, with eviction beside them; curves of rate, file and memory as CSV and SVG
years    three years of daily crawls, 30 % of the pages seen before, with eviction after 90 days: a line
         for each quarter; fails unless rate, file, memory and probes stay as they are
simhash  fingerprints of 64 bits, distance 3: insert, probe, self-join
shingle  texts to hashed shingles, without signatures, on the articles of RESEMBLANCE_DATA or on
         words of a generator
sketch   texts to signatures, on the corpora of RESEMBLANCE_DATA or the sources of --folder
accuracy estimates of random pairs of sets of 10 to 10,000,000 features, every kind of signature
         against its own theory; fails where they do not agree
nearest  the ten nearest documents: recall, signatures read and time on the corpora of
         RESEMBLANCE_DATA, beside brute force and an LSH forest, and on --documents generated ones
exact    bytes and time of the sets of exact stores beside kept texts, by size of text; insert_if_new
         and probes of an exact store beside an estimating one
clusters insert into a store that keeps clusters beside insert_if_new into one that keeps none, and
         the size of their tables
kernels  hashes to MinHash values, by kernel and family, beside plain loops and bounds

Each engine runs in a process of its own, in turns with the others, and is stopped between its
turns. All answers must be the same. Engines: resemblance, sqlite, sqlite-sorted, lmdb, fjall,
hashmap, and rocksdb where it is built in (docs/benchmarks.md says how); for steady also
fdatasync; for simhash: resemblance, sqlite, gaoya, scan; for group: grouped, single, many, each,
fdatasync; for sharing: resemblance, one-process (a store that one process writes to), sqlite,
lmdb.

  --documents 200000    inserted, besides the base
  --base N              documents that are there before: 3000000 (steady), 100000 (group, sharing)
  --batch 10000         documents a durable commit
  --singles 2000        (steady, sharing) documents that are committed one by one
  --form both           postings: 20 values a document and no key; records: 128 values and a key;
                        load takes both in turn if not told otherwise, the other verbs postings
  --sqlite-records      SQLite keeps keys and signatures of the form `records` as well
  --engines a,b,c       these only; ratios are to the first
  --seconds-limit 600   an engine that takes longer for its commits is quoted at what it reached
  --memory-limit MIB    the same for its memory; 45 % of what is available if not given
  --memory 64,1024      MiB of every engine that can be told: measured with each in turn; 64 if not given
  --folder .            where the files are made: their file system is what is measured
  --pairs 10000         (accuracy) a cell of one kind, size and similarity
  --most-features N     (accuracy) sizes of sets up to this one
  --cgroup MIB          (probe) memory that each engine may take once it is loaded, cached or mapped
                        pages of its files included: a control group holds it to that; SQLite maps none
  --bulk                (probe) what is probed is made as `build` does
  --rounds 10           (replace) how often all documents are replaced
  --order random        (replace) in which order: random or ascending
  --threads 1,4,32,256  (group)
  --sync-delay 0        (group) microseconds by which every sync is made to take longer, as on a slower disk
  --visits 50000000     (soak)
  --pages 2000000       (soak) that are there at a time
  --site-pages 1000     (soak) that are visited one after the other; 1: any page after any other
  --day-pages 30000     (years) that arrive each day
  --values 64           (soak, years) of a signature, and --value-bits 16 of each
  --output soak         (soak) soak.csv and soak.svg, written anew with every sample
  --without-check       (soak) does not read the whole store at the end
  --probes 2000         (probe, simhash) of each kind; (nearest) of each corpus, at most
  --cold-rounds 8       (probe) how often the page cache is dropped, for 25 probes each; 0: never
  --expected N          (simhash) the number of documents for which tables are chosen
  --scan-limit 100000   (simhash) most fingerprints that a linear scan joins with themselves
  --alone ENGINE        one engine, in this very process: for a profiler";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments
        .iter()
        .any(|argument| argument == "--help" || argument == "-h")
    {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("resemblance-compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> Result<()> {
    let mut arguments = arguments.into_iter();
    let verb = arguments.next().unwrap_or_default();
    let options = Options::parse(arguments).map_err(|error| format!("{error}\n{USAGE}"))?;
    for &mebibytes in &options.memories {
        let options = options.with_memory(mebibytes);
        match options.alone.clone() {
            Some(name) => alone(&verb, &name, &options)?,
            None => run_verb(&verb, &options)?,
        }
    }
    Ok(())
}

fn run_verb(verb: &str, options: &Options) -> Result<()> {
    match verb {
        "load" => load::run(options),
        "steady" => steady::run(options),
        "build" => build::run(options),
        "probe" => probe::run(options),
        "replace" => replace::run(options),
        "group" => group::run(options),
        "sharing" => sharing::run(options),
        "soak" => soak::run(options),
        "years" => soak::years::run(options),
        "simhash" => simhash::run(options),
        "shingle" => shingle::run(),
        "sketch" => sketch::run(options),
        "accuracy" => accuracy::run(options),
        "exact" => kept_sets::run(options),
        "clusters" => pair_of_stores::run(options),
        "kernels" => kernels::run(),
        "nearest" => nearest::run(options),
        _ => Err(USAGE.into()),
    }
}

/// Measures one engine in this process.
fn alone(verb: &str, name: &str, options: &Options) -> Result<()> {
    if let Some(work) = &options.work {
        return sharing::work(name, options, work);
    }
    if options.turns {
        return measure(verb, name, options).map(|_| ());
    }
    let folder = tempfile::tempdir_in(&options.folder)?;
    let inside = options.inside(folder.path());
    let link = measure(verb, name, &inside)?;
    report::print(&options.folder, &[link.into_outcome()])
}

fn measure(verb: &str, name: &str, options: &Options) -> Result<Link> {
    process::die_with_parent(options.turns)?;
    let mut link = Link::new(name, options.turns)?;
    let kind = || name.parse::<Kind>();
    match verb {
        "load" => load::alone(kind()?, options, &mut link)?,
        "steady" if name == steady::SYNC => steady::sync_alone(options, &mut link)?,
        "steady" => steady::alone(kind()?, options, &mut link)?,
        "build" => build::alone(kind()?, options, &mut link)?,
        "probe" => probe::alone(kind()?, options, &mut link)?,
        "group" => group::alone(name, options, &mut link)?,
        "simhash" => simhash::alone(name, options, &mut link)?,
        _ => return Err(format!("{verb} has no --alone").into()),
    }
    Ok(link)
}
