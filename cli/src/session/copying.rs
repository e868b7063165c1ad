//! Reading a corpus twice: what can be read only once is copied first, and what was kept is written
//! in the second reading.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bit_list::BitList;
use super::context::Context;
use crate::bug::bug;
use crate::corpus::{Corpus, CorpusRecords, ReadTotals, SourceOrigin};
use crate::failure::{Failure, Result};
use crate::output::{ProgressDisplay, Sink};

/// Copies standard input, and whatever else can be read only once, to temporary files.
pub(crate) fn spool_sources(context: &Context, corpus: &mut Corpus) -> Result<()> {
    let dir = &context.temp_dir;
    for source in &mut corpus.sources {
        if source.is_rereadable() {
            continue;
        }
        let file = tempfile::tempfile_in(dir)
            .map_err(|e| Failure::io(format!("temporary file in {}", dir.display()), &e))?;
        let mut progress = ProgressDisplay::new("reading", context.messages.quiet);
        let name = source.name().into_owned();
        let path = source.path().map(Cow::into_owned);
        let shown = name.display().to_string();
        let file = context.interrupt.while_working(&mut progress, move || {
            let cannot_read = |e| Failure::io(format!("cannot read {shown}"), &e);
            let mut input: Box<dyn io::Read> = match path {
                Some(path) => Box::new(File::open(path).map_err(cannot_read)?),
                None => Box::new(io::stdin()),
            };
            let mut file = file;
            io::copy(&mut input, &mut file)
                .and_then(|_| file.rewind())
                .map_err(|e| Failure::io(format!("cannot copy {shown} to a temporary file"), &e))?;
            Ok(Arc::new(file))
        })?;
        source.origin = SourceOrigin::Spool(file, name);
    }
    Ok(())
}

/// Reads the corpus a second time, and writes to each sink the records whose bits are set.
pub(crate) fn copy_records(
    context: &Context,
    corpus: &Arc<Corpus>,
    totals: ReadTotals,
    mut sinks: Vec<(BitList, Sink)>,
) -> Result<()> {
    if sinks.is_empty() {
        return Ok(());
    }
    let bytes_read = Arc::new(AtomicU64::new(0));
    let records = CorpusRecords::new(Arc::clone(corpus), Arc::clone(&bytes_read));
    let mut records = records.with_whole_tables();
    let mut progress = ProgressDisplay::with_total_bytes("writing", context.messages.quiet, || {
        corpus.size_bytes()
    });
    let mut number = 0;
    while let Some(record) = records.next() {
        let record = record?;
        context.interrupt.check()?;
        progress.update(number, bytes_read.load(Ordering::Relaxed));
        let first = number;
        number += record.table_rows.unwrap_or(1);
        for (wanted, sink) in &mut sinks {
            sink.begin_source(record.source, corpus, &records)?;
            // A corpus that has grown since is told below.
            let is_wanted = |number| Ok(number < wanted.len() && wanted.get(number)?);
            if record.table_rows.is_some() {
                let source = corpus.sources.get(record.source);
                let source = source.ok_or_else(|| bug("a table is of no source"))?;
                sink.table(source, |row| {
                    context.interrupt.check()?;
                    is_wanted(first + row)
                })?;
            } else if is_wanted(first)? {
                sink.record(&record, corpus, &records)?;
            }
        }
    }
    progress.clear();
    // Decisions are by the number of a record: of other records they would keep the wrong ones.
    if records.totals() != totals {
        return Err(Failure::refused(
            "the corpus was changed while it was being read; nothing was written",
        ));
    }
    let mut sinks = sinks.into_iter();
    sinks.try_for_each(|(_, sink)| sink.finish(corpus, &records))
}
