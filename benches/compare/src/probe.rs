//! Candidates of one document and of many, from memory and from the disk.

use std::time::Duration;

use crate::Result;
use crate::batch::Input;
use crate::documents::{BANDS, Probe};
use crate::engine::{Engine, Kind, set_mapped};
use crate::link::{Link, ask_warm, best_round, timed};
use crate::load::{self, describe, engine_names, one_of_a_kind};
use crate::options::Options;
use crate::process::{anonymous_bytes, drop_page_cache, enter_memory_group, limit_memory, reads};
use crate::race;
use crate::report::{self, microseconds, percentile};

/// Probes between one drop of the page cache and the next.
const COLD_PROBES: u64 = 25;

/// The number of probes in a batch.
const BATCH_PROBES: usize = 10_000;

pub fn run(options: &Options) -> Result<()> {
    println!("## probe: {}", describe(options.form(), options));
    let how = match options.bulk {
        true => "loaded at once".to_owned(),
        false => format!("loaded with {} a commit", options.batch),
    };
    println!(
        "{} documents, {how}, {BANDS} bands; {} probes of each kind after as many to warm; many at \
         once: {BATCH_PROBES}; cold: {COLD_PROBES} probes after the page cache is dropped and the \
         engine opened, {} times; read calls: pages that were not in the engine's own cache, which \
         LMDB does not have; compacted: resemblance one run, SQLite VACUUM, LMDB copied, \
         fjall major_compact, RocksDB its whole range compacted\n",
        options.documents, options.probes, options.cold_rounds
    );
    let outcomes = race::run(
        options,
        &options.engines(&engine_names(), &one_of_a_kind())?,
        &[],
    )?;
    report::print(&options.folder, &outcomes)
}

pub fn alone(kind: Kind, options: &Options, link: &mut Link) -> Result<()> {
    let form = options.form();
    let group = match options.group_bytes {
        Some(bytes) => {
            set_mapped(false);
            Some((enter_memory_group()?, bytes))
        }
        None => None,
    };
    let (mut engine, documents) = if options.bulk {
        let mut input = Input::new(options, options.documents, Duration::MAX);
        let engine = kind.bulk_load(&options.folder, &mut input)?;
        if input.stopped {
            return Err("--documents take more memory than --memory-limit".into());
        }
        (engine, options.documents)
    } else {
        let mut engine = kind.open(form, &options.folder)?;
        let reached = load::insert(kind, &mut *engine, options, link, 0)?;
        (engine, reached)
    };
    link.settings(engine.settings()?)?;
    engine.finish_background_work()?;
    if let Some((group, bytes)) = group {
        limit_memory(&group, anonymous_bytes()? + bytes)?;
        link.note(format!(
            "probed with {} MiB for its cache and the cached or mapped pages of its files together",
            bytes >> 20
        ))?;
    }
    let held = link.hold(documents)?;
    engine.begin_reading()?;
    let asked = Asked {
        hits: Probe::hits(form, held, options.probes),
        misses: Probe::misses(form, options.documents, options.probes),
        documents,
        kind,
        options,
    };
    engine = asked.all("as loaded", engine, link)?;
    // A bulk load is already compact, and to compact within little memory would take hours.
    if kind.is_durable() && !options.bulk && options.group_bytes.is_none() {
        engine.close()?;
        kind.compact(&options.folder)?;
        engine = kind.open(form, &options.folder)?;
        engine.finish_background_work()?;
        engine.begin_reading()?;
        engine = asked.all("compacted", engine, link)?;
    }
    link.meet()?;
    load::probe_warm(
        &*engine,
        options,
        (held, options.documents),
        documents,
        link,
    )?;
    load::finish(kind, engine, options, documents, link)
}

struct Asked<'a> {
    hits: Vec<Probe>,
    misses: Vec<Probe>,
    /// That the engine holds.
    documents: u64,
    kind: Kind,
    options: &'a Options,
}

impl Asked<'_> {
    fn all(
        &self,
        state: &str,
        mut engine: Box<dyn Engine>,
        link: &mut Link,
    ) -> Result<Box<dyn Engine>> {
        for (kind, probes, min_share) in [("hit", &self.hits, 1.0), ("miss", &self.misses, 0.0)] {
            link.meet()?;
            let label = format!("{state}, warm, {kind}");
            let answers = warm(&label, &*engine, probes, link)?;
            link.answers(&label, self.documents, min_share, answers)?;
        }
        if !self.kind.is_durable() || self.options.cold_rounds == 0 {
            return Ok(engine);
        }
        for (kind, probes) in [("hit", &self.hits), ("miss", &self.misses)] {
            link.meet()?;
            engine = self.cold((state, kind), engine, probes, link)?;
        }
        Ok(engine)
    }

    /// Opens the engine again and again, with nothing of its files in memory.
    fn cold(
        &self,
        (state, kind): (&str, &str),
        mut engine: Box<dyn Engine>,
        probes: &[Probe],
        link: &mut Link,
    ) -> Result<Box<dyn Engine>> {
        let label = format!("{state}, cold, {kind}");
        let is_first = (state, kind) == ("as loaded", "hit");
        let folder = &self.options.folder;
        let (mut times, mut calls, mut bytes) = (Vec::new(), 0, 0);
        // The first were asked last.
        let mut probes = probes.iter().rev().cycle();
        for round in 0..self.options.cold_rounds {
            engine.close()?;
            let how = drop_page_cache(folder)?;
            if round == 0 && is_first {
                link.note(format!("cold: {how}"))?;
            }
            engine = self.kind.open(self.options.form(), folder)?;
            engine.finish_background_work()?;
            engine.begin_reading()?;
            let before = reads();
            for probe in probes.by_ref().take(COLD_PROBES as usize) {
                times.push(timed(|| engine.candidates(probe))?.1);
            }
            let after = reads();
            calls += after.0 - before.0;
            bytes += after.1 - before.1;
        }
        send_times(&label, &mut times, link)?;
        let asked = times.len() as f64;
        link.cost(format!("{label}: read calls a probe"), calls as f64 / asked)?;
        let kib = bytes as f64 / 1024.0 / asked;
        link.cost(format!("{label}: KiB from the disk a probe"), kib)?;
        Ok(engine)
    }
}

/// Probes one by one, then in batches. Returns what was found.
fn warm(
    label: &str,
    engine: &dyn Engine,
    probes: &[Probe],
    link: &mut Link,
) -> Result<Vec<Vec<u64>>> {
    let before = reads().0;
    let (answers, mut times) = ask_warm(probes, |probe| engine.candidates(probe))?;
    let calls = (reads().0 - before) as f64 / (probes.len() + times.len()) as f64;
    send_times(label, &mut times, link)?;
    link.cost(format!("{label}: read calls a probe"), calls)?;
    let batches: Vec<&[Probe]> = probes.chunks(BATCH_PROBES).collect();
    let (at_once, times) = ask_warm(&batches, |probes| {
        engine.candidates_many(probes).transpose()
    })?;
    let at_once: Vec<_> = at_once.into_iter().flatten().flatten().collect();
    if at_once.is_empty() {
        return Ok(answers);
    }
    if at_once != answers {
        return Err(format!("{label}: many at once are answered otherwise than one by one").into());
    }
    let time = microseconds(best_round(&times)) / probes.len() as f64;
    link.cost(format!("{label}, many at once: us a probe"), time)?;
    Ok(answers)
}

fn send_times(label: &str, times: &mut [Duration], link: &mut Link) -> Result<()> {
    let mean = times.iter().sum::<Duration>().as_secs_f64() * 1e6 / times.len().max(1) as f64;
    for (name, share) in [("median", 0.5), ("99 %", 0.99)] {
        let time = microseconds(percentile(times, share));
        link.cost(format!("{label}: {name}, us"), time)?;
    }
    link.cost(format!("{label}: mean, us"), mean)
}
