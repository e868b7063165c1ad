//! Loading, and probing what was loaded.

use std::path::Path;
use std::time::{Duration, Instant};

use resemblance::{Signature, Stats, Store, TableStats};

use crate::Result;
use crate::documents::{BANDS, Form, mix};
use crate::engine::{Batch, CACHE_BYTES, Engine, Ours, Theirs};
use crate::options::Options;
use crate::report::{microseconds, page_sync, percentile, print_header, print_row};

/// Half of them of documents that are there.
const PROBES: u64 = 2_000;

pub fn run(options: &Options) -> Result<()> {
    for form in &options.forms {
        let folder = tempfile::tempdir_in(&options.folder)?;
        if options.alone {
            load_alone(*form, options, folder.path())?;
        } else {
            race(*form, options, folder.path())?;
        }
    }
    Ok(())
}

fn name(form: Form) -> &'static str {
    match form {
        Form::Postings => "postings (20 values, no key)",
        Form::Records => "records (128 values, a key)",
    }
}

/// The numbers of the documents of each batch.
fn batches(options: &Options) -> impl Iterator<Item = std::ops::Range<u64>> {
    let (documents, batch) = (options.documents, options.batch.max(1));
    let starts = (0..documents).step_by(batch as usize);
    starts.map(move |start| start..(start + batch).min(documents))
}

/// The store only.
fn load_alone(form: Form, options: &Options, folder: &Path) -> Result<()> {
    let mut ours = Ours::create(form, folder)?;
    let mut time = Duration::ZERO;
    for numbers in batches(options) {
        let batch = Batch::new(form, numbers);
        let start = Instant::now();
        ours.insert(&batch)?;
        time += start.elapsed();
    }
    let bytes = Box::new(ours).close()? as f64 / options.documents as f64;
    let rate = options.documents as f64 / time.as_secs_f64();
    println!(
        "{}: {rate:.0} documents a second, {bytes:.1} bytes a document",
        name(form)
    );
    Ok(())
}

/// All engines, batch by batch in turn.
fn race(form: Form, options: &Options, folder: &Path) -> Result<()> {
    let mut ours = Ours::create(form, folder)?;
    let mut sqlite = Theirs::create(folder, false)?;
    let mut sorted = Theirs::create(folder, true)?;
    print_settings(form, options, folder, &sqlite)?;
    print_header(&[ours.name(), sqlite.name(), sorted.name()]);

    load(form, options, &mut [&mut ours, &mut sqlite, &mut sorted])?;
    let snapshot = ours.store.snapshot()?;
    let stats = snapshot.stats()?;
    ours.snapshot = Some(snapshot);
    probe(form, options, &[&ours, &sqlite, &sorted])?;

    let path = ours.path.clone();
    let documents = options.documents as f64;
    let engines: [Box<dyn Engine>; 3] = [Box::new(ours), Box::new(sqlite), Box::new(sorted)];
    let bytes = engines.map(|engine| engine.close());
    let mut bytes_a_document = Vec::new();
    for bytes in bytes {
        bytes_a_document.push(bytes? as f64 / documents);
    }
    print_sizes(&mut bytes_a_document, &stats, &path)
}

fn print_settings(form: Form, options: &Options, folder: &Path, sqlite: &Theirs) -> Result<()> {
    println!("== {}", name(form));
    println!(
        "{} documents, {} a durable commit, {BANDS} bands; cache {} MiB each; batch by batch in \
         turn, insert and commit timed",
        options.documents,
        options.batch,
        CACHE_BYTES >> 20
    );
    println!(
        "resemblance: {}",
        form.schema()?.to_string().replace('\n', ";")
    );
    println!("{}", sqlite.settings()?);
    let kept = match (form, options.sqlite_records) {
        (Form::Records, true) => "postings, keys and signatures",
        _ => "postings only",
    };
    println!("SQLite keeps {kept}; sorted: the rows of each batch are sorted by its primary key");
    let sync = microseconds(page_sync(folder)?);
    println!("one page written and synced with fdatasync here: {sync:.0} us");
    Ok(())
}

fn load(form: Form, options: &Options, engines: &mut [&mut dyn Engine]) -> Result<()> {
    let mut total = vec![Duration::ZERO; engines.len()];
    let mut slowest = total.clone();
    for (turn, numbers) in batches(options).enumerate() {
        let batch = Batch::new(form, numbers).with_rows(form, options.sqlite_records);
        for place in 0..engines.len() {
            // Each is first as often as the others.
            let place = (place + turn) % engines.len();
            let start = Instant::now();
            engines[place].insert(&batch)?;
            let time = start.elapsed();
            total[place] += time;
            slowest[place] = slowest[place].max(time);
        }
    }
    let rates = total
        .iter()
        .map(|time| options.documents as f64 / time.as_secs_f64());
    print_row("documents a second", &rates.collect::<Vec<_>>(), true);
    let slowest: Vec<f64> = slowest
        .iter()
        .map(|time| microseconds(*time) / 1e3)
        .collect();
    print_row("slowest batch, ms", &slowest, false);
    Ok(())
}

/// Documents that are there, documents like some that are there, and others.
fn probes(form: Form, documents: u64) -> Vec<Signature> {
    let numbers = (0..PROBES).map(|probe| match probe % 4 {
        0 | 1 => mix(probe) % documents,
        // Every tenth is like an earlier one: see `Form::signature`.
        2 => documents + mix(probe) % documents / 10 * 10 + 9,
        _ => 4 * documents + probe * 10,
    });
    numbers.map(|number| form.signature(number)).collect()
}

fn probe(form: Form, options: &Options, engines: &[&dyn Engine]) -> Result<()> {
    let mut times = vec![Vec::new(); engines.len()];
    let (mut found, mut nothing) = (0, 0);
    // The first round warms the caches, the second is timed.
    for timed in [false, true] {
        for (turn, signature) in probes(form, options.documents).iter().enumerate() {
            let codes = form.codes(signature);
            let mut answer: Option<Vec<u64>> = None;
            for place in 0..engines.len() {
                let place = (place + turn) % engines.len();
                let (ids, time) = engines[place].candidates(signature, &codes)?;
                if timed {
                    times[place].push(time);
                }
                match &answer {
                    Some(answer) => assert_eq!(*answer, ids, "probe {turn}: answers differ"),
                    None => answer = Some(ids),
                }
            }
            let candidates = answer.map_or(0, |ids| ids.len());
            found += candidates;
            nothing += usize::from(candidates == 0);
        }
    }
    for (label, share) in [("probe, median, us", 0.5), ("probe, 99 %, us", 0.99)] {
        let times = times
            .iter_mut()
            .map(|times| microseconds(percentile(times, share)));
        print_row(label, &times.collect::<Vec<_>>(), false);
    }
    println!(
        "  ({PROBES} probes, twice, answered alike: {found} candidates, {nothing} without any)"
    );
    assert!(found > 0 && nothing > 0, "the probes do not try enough");
    Ok(())
}

/// `bytes_a_document`: of the files, ours first.
fn print_sizes(bytes_a_document: &mut [f64], stats: &Stats, path: &Path) -> Result<()> {
    let documents = stats.documents as f64;
    let (postings, others): (Vec<_>, Vec<_>) = stats
        .tables
        .iter()
        .partition(|table| ["keys", "bands", "permuted"].contains(&table.name.as_str()));
    let total = |tables: &[&TableStats]| {
        let bytes: u64 = tables.iter().map(|table| table.total_bytes()).sum();
        bytes as f64
    };
    let sealed = (stats.documents - stats.memtable_documents).max(1) as f64;
    print_row("bytes a document, file", bytes_a_document, false);
    for (label, bytes) in [
        ("- postings alone", total(&postings) / sealed),
        ("- all the rest", total(&others) / documents),
        (
            "- file after compact",
            Store::compact(path)?.size_after_bytes as f64 / documents,
        ),
    ] {
        bytes_a_document[0] = bytes;
        print_row(label, bytes_a_document, false);
    }
    println!(
        "  ({} runs; {} documents in no run yet: their signatures stand for their postings)",
        stats.runs.len(),
        stats.memtable_documents
    );
    for table in stats.tables.iter().filter(|table| table.rows > 0) {
        println!(
            "  ({}: {} rows; bytes a document: {:.1} stored, {:.1} tree, {:.1} unused)",
            table.name,
            table.rows,
            table.stored_bytes as f64 / documents,
            table.metadata_bytes as f64 / documents,
            table.fragmented_bytes as f64 / documents
        );
    }
    println!();
    Ok(())
}
