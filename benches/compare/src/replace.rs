//! Replacing all documents of a store over and over: how large its file gets.

use std::path::Path;
use std::time::Duration;

use resemblance::Store;
use resemblance::stats::{Stats, TableStats};

use crate::Result;
use crate::documents::{BANDS, Form, batches, mix};
use crate::link::timed;
use crate::options::{Options, Order};
use crate::ours::store_options;
use crate::process::{allocated_bytes, written_bytes};
use crate::report::percentile;

/// Keys and whole signatures: most of a file is rows.
const FORM: Form = Form::Records;

const MIB: f64 = (1 << 20) as f64;

/// The results of one round.
#[derive(Default)]
struct Round {
    times: Vec<Duration>,
    /// The largest that the file was after a commit, in bytes on the disk.
    greatest_bytes: u64,
    written_bytes: u64,
    greatest_written_bytes: u64,
}

pub fn run(options: &Options) -> Result<()> {
    println!(
        "## replace: {} documents ({} values, a key), {} a durable commit, {BANDS} bands; then all \
         of them {} times over, in {} order, each by an `upsert` of new content",
        options.documents,
        FORM.values(),
        options.batch,
        options.rounds,
        options.order
    );
    println!(
        "bytes in MiB; file: blocks on the disk (length); tables: their pages, used bytes; ratios to \
         the file as loaded; commits with their inserts, in ms\n"
    );
    let folder = tempfile::tempdir_in(&options.folder)?;
    let path = folder.path().join("replaced.rsm");
    let store = store_options().create(&path, FORM.schema()?)?;
    println!(
        "round |  file (length) | ratio, greatest | tables used (dead rows) | commits: median, \
         longest | written, by a commit at most"
    );
    let loaded = one_round(&store, options, &path, 0)?;
    let loaded_bytes = allocated_bytes(&path)?;
    report(0, &store, &loaded, loaded_bytes)?;
    for round in 1..=options.rounds {
        let outcome = one_round(&store, options, &path, round)?;
        report(round, &store, &outcome, loaded_bytes)?;
    }
    drop(store);
    store_options().compact(&path).run()?;
    println!("compacted: {:.1} MiB", allocated_bytes(&path)? as f64 / MIB);
    Ok(())
}

fn one_round(store: &Store, options: &Options, path: &Path, round: u64) -> Result<Round> {
    let order = order(options, round);
    let mut outcome = Round::default();
    let before = written_bytes();
    for range in batches(0..options.documents, options.batch) {
        let numbers = order.iter().skip(usize::try_from(range.start)?);
        let numbers = numbers.take(usize::try_from(range.end - range.start)?);
        let batch: Vec<_> = numbers
            .map(|number| {
                let content = round * options.documents + number;
                (format!("doc-{number}"), FORM.signature(content))
            })
            .collect();
        let written = written_bytes();
        let ((), time) = timed(|| {
            let mut transaction = store.begin_write()?;
            for (key, signature) in &batch {
                transaction.upsert(key, signature)?;
            }
            Ok(transaction.commit()?)
        })?;
        outcome.times.push(time);
        let size = allocated_bytes(path)?;
        outcome.greatest_bytes = outcome.greatest_bytes.max(size);
        let written = written_bytes() - written;
        outcome.greatest_written_bytes = outcome.greatest_written_bytes.max(written);
    }
    outcome.written_bytes = written_bytes() - before;
    Ok(outcome)
}

/// The numbers of all documents, in the order in which a round takes them.
fn order(options: &Options, round: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..options.documents).collect();
    if options.order == Order::Random && round > 0 {
        // The shuffle of Fisher and Yates, from the end.
        for last in (1..numbers.len()).rev() {
            let random = mix(round << 40 | last as u64);
            let other = random % (last as u64 + 1);
            numbers.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
    numbers
}

fn report(round: u64, store: &Store, outcome: &Round, loaded_bytes: u64) -> Result<()> {
    let stats: Stats = store.snapshot()?.stats().run()?;
    let ratio = |bytes: u64| bytes as f64 / loaded_bytes as f64;
    let mib = |bytes: u64| bytes as f64 / MIB;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let pages: u64 = stats.tables.iter().map(TableStats::total_bytes).sum();
    let used: u64 = stats.tables.iter().map(|table| table.stored_bytes).sum();
    let mut times = outcome.times.clone();
    println!(
        "{round:>5} | {:>6.1} ({:>6.1}) | {:.2} {:.2} | {:>6.1} {:>6.1} ({}) | {:>5.0} {:>5.0} | {:>7.1} \
         {:>6.1}",
        mib(stats.allocated_bytes),
        mib(stats.file_bytes),
        ratio(stats.allocated_bytes),
        ratio(outcome.greatest_bytes),
        mib(pages),
        mib(used),
        stats.dead_rows,
        milliseconds(percentile(&mut times, 0.5)),
        milliseconds(percentile(&mut times, 1.0)),
        mib(outcome.written_bytes),
        mib(outcome.greatest_written_bytes),
    );
    Ok(())
}
