//! Inserting into engines that hold much already: batch by batch, and one by one.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::Result;
use crate::batch::Input;
use crate::documents::BANDS;
use crate::engine::Kind;
use crate::link::{Commits, Link, timed};
use crate::load::{self, describe, engine_names};
use crate::options::Options;
use crate::race;
use crate::report;

/// In place of an engine: what a durable write costs at least.
pub const SYNC: &str = "fdatasync";

const BASE_DOCUMENTS: u64 = 3_000_000;

const PAGE_BYTES: usize = 4096;

/// How many pages are written in turn.
const PAGES: u64 = 16;

pub fn run(options: &Options) -> Result<()> {
    let base = options.base.unwrap_or(BASE_DOCUMENTS);
    let mut known = engine_names();
    known.push(SYNC.to_owned());
    println!("## steady: {}", describe(options.form(), options));
    println!(
        "{base} documents bulk loaded, then {} with {} a durable commit, then {} with one; {BANDS} \
         bands; insert and commit timed\n",
        options.documents, options.batch, options.singles
    );
    let outcomes = race::run(options, &options.engines(&known, &known)?, &[])?;
    report::print(&options.folder, &outcomes)
}

pub fn alone(kind: Kind, options: &Options, link: &mut Link) -> Result<()> {
    let base = options.base.unwrap_or(BASE_DOCUMENTS);
    let mut input = Input::new(options, base, std::time::Duration::MAX);
    let mut engine = kind.bulk_load(&options.folder, &mut input)?;
    if input.stopped {
        return Err("--base takes more memory than --memory-limit".into());
    }
    engine.finish_background_work()?;
    link.settings(engine.settings()?)?;
    link.meet()?;
    let next = load::insert(kind, &mut *engine, options, link, base)?;
    link.meet()?;
    let next = one_by_one(options).run(options, link, next, |numbers| {
        let batch = kind.batch(options, numbers);
        let ((), time) = timed(|| engine.insert(&batch))?;
        Ok(time)
    })?;
    link.peak_memory("base included")?;
    engine.finish_background_work()?;
    let held = link.hold(next)?;
    engine.begin_reading()?;
    let end = base + options.documents + options.singles;
    load::probe_warm(&*engine, options, (held, end), next, link)?;
    load::finish(kind, engine, options, next, link)
}

fn one_by_one(options: &Options) -> Commits {
    Commits {
        documents: options.singles,
        size: 1,
        a_turn: 100,
    }
}

/// Measures durable writes of single pages to a separate file, for comparison with engines that
/// commit documents that way.
pub fn sync_alone(options: &Options, link: &mut Link) -> Result<()> {
    link.settings("no engine: one page of 4096 bytes written in place and fdatasync".into())?;
    let file = File::create(options.folder.join("pages"))?;
    for page in 0..PAGES {
        file.write_all_at(&[0; PAGE_BYTES], page * PAGE_BYTES as u64)?;
    }
    file.sync_all()?;
    // The base, and the batches.
    link.meet()?;
    link.meet()?;
    one_by_one(options).run(options, link, 0, |numbers| {
        let (page, bytes) = (numbers.start % PAGES, [numbers.start as u8; PAGE_BYTES]);
        let ((), time) = timed(|| {
            file.write_all_at(&bytes, page * PAGE_BYTES as u64)?;
            Ok(file.sync_data()?)
        })?;
        Ok(time)
    })?;
    Ok(())
}
