//! Reading a corpus twice: what can be read only once is copied first, and what was kept is written
//! in the second reading.

use std::io::{self, Seek};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bit_list::BitList;
use super::context::Context;
use crate::bug::at;
use crate::failure::{Failure, Result};
use crate::output::{ProgressDisplay, Sink};
use resemblance_corpus::{Corpus, CorpusRecords, ReadTotals, SourceOrigin};

/// Copies standard input, and whatever else can be read only once, to temporary files.
pub(crate) fn spool_sources(context: &Context, corpus: &mut Corpus) -> Result<()> {
    let dir = &context.temp_dir;
    for source in &mut corpus.sources {
        if source.is_rereadable() {
            continue;
        }
        let file = tempfile::tempfile_in(dir)
            .map_err(|e| Failure::io(format!("temporary file in {}", dir.display()), &e))?;
        let mut progress = context.progress("reading");
        let name = source.name().into_owned();
        let shown = name.display().to_string();
        let read = source.clone();
        let file = context.interrupt.while_working(&mut progress, move || {
            let mut input = read.open()?;
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

/// The records that go to one output.
pub(crate) struct CopiedRecords {
    /// Their bits are set.
    pub(crate) wanted: BitList,
    pub(crate) sink: Sink,
    /// Texts are written without what is left out of them.
    pub(crate) are_trimmed: bool,
}

/// Reads the corpus once more, and writes to each output the records that it is to have.
pub(crate) fn copy_records(
    context: &Context,
    corpus: &Arc<Corpus>,
    totals: ReadTotals,
    mut outputs: Vec<CopiedRecords>,
) -> Result<()> {
    if outputs.is_empty() {
        return Ok(());
    }
    let bytes_read = Arc::new(AtomicU64::new(0));
    let mut records =
        CorpusRecords::new(Arc::clone(corpus), Arc::clone(&bytes_read)).with_whole_tables();
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
        for CopiedRecords {
            wanted,
            sink,
            are_trimmed,
        } in &mut outputs
        {
            sink.begin_source(record.source, corpus, &records)?;
            // A corpus that has grown since is told below.
            let is_wanted = |number| Ok(number < wanted.len() && wanted.get(number)?);
            if record.table_rows.is_some() {
                sink.table(at(&corpus.sources, record.source)?, first, |row| {
                    context.interrupt.check()?;
                    is_wanted(first + row)
                })?;
            } else if is_wanted(first)? {
                // The second reading saw the same, or the totals below differ.
                let trimmed = match are_trimmed {
                    true => corpus
                        .trimmed_record(&record)
                        .map_err(|_| corpus_changed())?,
                    false => None,
                };
                sink.record(trimmed.as_ref().unwrap_or(&record), first, corpus, &records)?;
            }
        }
    }
    progress.clear();
    // Decisions are by the number of a record: of other records they would keep the wrong ones.
    must_be_same(totals, records.totals())?;
    outputs
        .into_iter()
        .try_for_each(|output| output.sink.finish(corpus, &records))
}

/// An error unless two readings saw the same.
pub(crate) fn must_be_same(before: ReadTotals, now: ReadTotals) -> Result<()> {
    if before == now {
        Ok(())
    } else {
        Err(corpus_changed())
    }
}

/// Two readings of a corpus have not seen the same.
pub(crate) fn corpus_changed() -> Failure {
    Failure::refused("the corpus was changed while it was being read; nothing was written")
}
