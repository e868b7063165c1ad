//! Loads all documents at once, in the fastest way that each engine offers.

use crate::Result;
use crate::batch::Input;
use crate::documents::BANDS;
use crate::engine::Kind;
use crate::link::Link;
use crate::load::{self, describe, engine_names, one_of_a_kind};
use crate::options::Options;
use crate::process::written_bytes;
use crate::race;
use crate::report;
use crate::table::grouped;

pub fn run(options: &Options) -> Result<()> {
    println!("## build: {}", describe(options.form(), options));
    println!(
        "{} documents, {BANDS} bands; resemblance takes documents in any order, the others rows \
         sorted by band, code and document, a band at a time; opening, writing and syncing timed, \
         the making of the input not; resident memory includes one batch or one band of it\n",
        options.documents
    );
    let outcomes = race::run(
        options,
        &options.engines(&engine_names(), &one_of_a_kind())?,
        &[],
    )?;
    report::print(&options.folder, &outcomes)
}

pub fn alone(kind: Kind, options: &Options, link: &mut Link) -> Result<()> {
    let mut input = Input::new(options, options.documents, options.time_limit);
    let before = written_bytes();
    let mut engine = kind.bulk_load(&options.folder, &mut input)?;
    let (worked, sorting) = (input.worked().as_secs_f64(), input.sorting.as_secs_f64());
    link.settings(engine.settings()?)?;
    let documents = input.rows as f64 / f64::from(BANDS);
    link.note(format!("{} postings", grouped(input.rows as f64)))?;
    link.rate("documents a second", documents / worked)?;
    link.rate(
        "documents a second, the sorting of the input included",
        documents / (worked + sorting),
    )?;
    link.cost("seconds", worked)?;
    link.cost("seconds, sorting of the input", sorting)?;
    if kind.is_durable() {
        let written = (written_bytes() - before) as f64;
        link.cost("written by calls, bytes a document", written / documents)?;
    }
    link.peak_memory("building")?;
    engine.finish_background_work()?;
    if input.stopped {
        link.meet()?;
        link.note(format!(
            "stopped at the limit of time or memory, at {} postings of {}",
            input.rows,
            input.documents * u64::from(BANDS)
        ))?;
        return Ok(());
    }
    let documents = options.documents;
    let held = link.hold(documents)?;
    engine.begin_reading()?;
    load::probe_warm(&*engine, options, (held, documents), documents, link)?;
    load::finish(kind, engine, options, documents, link)
}
