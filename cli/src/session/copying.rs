//! Reads a corpus twice: a source that can be read only once is copied first, repeated parts are
//! found in the first reading, and kept documents are written in the second.

use std::collections::{HashMap, HashSet};
use std::io::{self, Seek};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use resemblance::Text;
use resemblance_corpus::dedup::{RepeatedParts, TextPart, TextParts};
use resemblance_corpus::{
    Corpus, CorpusDocument, CorpusRecord, CorpusRecords, PageFate, ReadTotals, RevisitTarget,
    SourceKind, SourceOrigin, TextTrims,
};

use super::context::Context;
use super::documents::CorpusDocuments;
use super::positions::BitList;
use super::tally::DocumentTally;
use crate::failure::{Failure, Result};
use crate::output::{CompleteFile, CompleteSink, ProgressDisplay, Sink};

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

/// The records for one output.
pub(crate) struct CopiedRecords {
    /// Their bits are set.
    pub(crate) wanted: BitList,
    pub(crate) sink: Sink,
    /// True if texts are written without their left-out parts.
    pub(crate) are_trimmed: bool,
    /// The revisit records in place of pages that are not wanted.
    pub(crate) revisits: Option<Revisits>,
}

impl CopiedRecords {
    /// Returns the records as they are.
    pub(crate) fn unchanged(wanted: BitList, sink: Sink) -> Self {
        Self {
            wanted,
            sink,
            are_trimmed: false,
            revisits: None,
        }
    }

    /// Writes a record, or those of its documents that are wanted.
    fn copy(
        &mut self,
        context: &Context,
        corpus: &Corpus,
        records: &CorpusRecords,
        record: &CorpusRecord,
        numbers: Range<u64>,
    ) -> Result<()> {
        let (sink, wanted, first) = (&mut self.sink, &self.wanted, numbers.start);
        sink.begin_source(record.source, corpus, records)?;
        // A corpus that has grown since is reported in the end.
        let is_wanted = |number| Ok::<_, Failure>(number < wanted.len() && wanted.get(number)?);
        if let Some(archived) = &record.archived {
            let fate = match &self.revisits {
                _ if is_wanted(first)? => PageFate::Copied,
                Some(revisits) => revisits.fate(first),
                None => PageFate::LeftOut,
            };
            if sink.archived(record, fate)? || !archived.is_page() {
                return Ok(());
            }
        }
        if record.table_rows.is_some() {
            return sink.table(record.source, corpus, numbers, |row| {
                context.interrupt.check()?;
                is_wanted(first + row)
            });
        }
        if !is_wanted(first)? {
            return Ok(());
        }
        // The second reading saw the same, or the totals differ in the end.
        let trimmed = match self.are_trimmed {
            true => corpus
                .trimmed_record(record)
                .map_err(|_| corpus_changed())?,
            false => None,
        };
        sink.record(trimmed.as_ref().unwrap_or(record), first, corpus, records)
    }
}

/// The pages that revisit records refer to.
pub(crate) struct Revisits {
    /// The number of the survivor of each dropped document.
    survivors: HashMap<u64, u64>,
    targets: HashMap<u64, RevisitTarget>,
}

impl Revisits {
    /// Reads the corpus for the survivors.
    pub(crate) fn read(
        context: &Context,
        corpus: &Arc<Corpus>,
        totals: ReadTotals,
        survivors: HashMap<u64, u64>,
    ) -> Result<Self> {
        let wanted: HashSet<u64> = survivors.values().copied().collect();
        let mut targets = HashMap::new();
        let mut records =
            CorpusRecords::new(Arc::clone(corpus), Arc::default()).with_whole_tables();
        let mut progress = context.progress("looking for survivors");
        let mut number = 0;
        for record in records.by_ref() {
            let record = record?;
            context.count(&mut progress, number)?;
            if record.documents() == 1 && wanted.contains(&number) {
                targets.extend(RevisitTarget::of(&record).map(|target| (number, target)));
            }
            number += record.documents();
        }
        progress.clear();
        must_be_same(totals, records.totals())?;
        Ok(Self { survivors, targets })
    }

    fn fate(&self, number: u64) -> PageFate<'_> {
        let Some(survivor) = self.survivors.get(&number) else {
            return PageFate::LeftOut;
        };
        PageFate::Replaced(self.targets.get(survivor))
    }
}

/// Reads the corpus again, and writes to each output its records. All get their names once all are
/// complete and `before_names` has succeeded: the outputs in their order, and `others`, which may be
/// in a folder of an output.
pub(crate) fn copy_records(
    context: &Context,
    corpus: &Arc<Corpus>,
    totals: ReadTotals,
    mut outputs: Vec<CopiedRecords>,
    others: Vec<CompleteFile>,
    before_names: impl FnOnce() -> Result<()>,
) -> Result<()> {
    if outputs.is_empty() {
        before_names()?;
        return others.into_iter().try_for_each(CompleteFile::give_name);
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
        number += record.documents();
        for output in &mut outputs {
            output.copy(context, corpus, &records, &record, first..number)?;
        }
    }
    progress.clear();
    // Decisions are by the number of a record: of other records they would keep the wrong ones.
    must_be_same(totals, records.totals())?;
    let complete = outputs
        .into_iter()
        .map(|output| output.sink.complete(corpus, &records));
    let complete: Vec<CompleteSink> = complete.collect::<Result<_>>()?;
    // What was appended to the corpus since would be lost with it.
    if !complete.iter().all(CompleteSink::is_current) {
        return Err(corpus_changed());
    }
    before_names()?;
    for output in complete {
        let notes = output.give_name()?;
        notes.iter().for_each(|note| context.note(note));
    }
    others.into_iter().try_for_each(CompleteFile::give_name)
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
    Failure::refused("the corpus was changed while it was being read")
        .with_note("nothing was written")
}

/// A corpus that has been read once, and its remains without repeated parts.
pub(crate) struct TrimmedCorpus {
    /// Corpus that leaves out the repeated parts as it is read and written.
    pub(crate) corpus: Corpus,
    /// A bit for each record: whether anything is left of it.
    pub(crate) kept: BitList,
    /// A bit for each document: set if nothing is left of it.
    pub(crate) emptied: BitList,
    pub(crate) tally: DocumentTally,
    pub(crate) totals: ReadTotals,
}

/// Reads a corpus, and finds the parts of its texts that have already appeared, in an earlier text
/// or earlier in the same text.
pub(crate) fn trim_corpus(
    context: &Context,
    mut corpus: Corpus,
    part: TextPart,
    recipe: &Text,
    skip_bad: bool,
) -> Result<TrimmedCorpus> {
    must_be_writable(&corpus)?;
    let read_corpus = Arc::new(corpus.clone());
    let recipe = *recipe;
    let work = move |document: &CorpusDocument<'_>| match document.content.text() {
        Some(text) => Ok(Some(TextParts::new(part, &recipe, text)?)),
        None => Ok(None),
    };
    let mut documents = CorpusDocuments::start(context, "reading", &read_corpus, 0, work);
    let mut repeated = RepeatedParts::new().memory_bytes(context.memory_bytes);
    let mut trims = TextTrims::new(part);
    let (mut kept, mut emptied) = (BitList::default(), BitList::default());
    let mut tally = DocumentTally::default();
    while let Some(read) = documents.next()? {
        let (source, line) = (read.source, read.line);
        let document = read.take(context, &read_corpus, &mut tally, skip_bad)?;
        let is_good = document.is_some();
        let parts = document.and_then(|document| document.value);
        let mut is_emptied = false;
        if let Some(parts) = parts {
            let trimmed = repeated
                .trim(&parts)
                .map_err(|error| too_many(error, &repeated))?;
            tally.dropped_parts += trimmed.dropped.len() as u64;
            is_emptied = trimmed.is_emptied;
            trims.note(source, line, trimmed);
        }
        tally.emptied += u64::from(is_emptied);
        tally.kept += u64::from(is_good && !is_emptied);
        kept.push(is_good && !is_emptied);
        emptied.push(is_emptied);
    }
    tally.must_be_mostly_good()?;
    let totals = documents.totals();
    corpus.trims = Some(trims);
    Ok(TrimmedCorpus {
        corpus,
        kept,
        emptied,
        tally,
        totals,
    })
}

/// More different parts than memory holds.
fn too_many(error: resemblance::Error, repeated: &RepeatedParts) -> Failure {
    match error {
        resemblance::Error::InvalidParameter { .. } => Failure::usage(format!(
            "more than {} different paragraphs or lines do not fit into --memory",
            repeated.len()
        ))
        .with_note("raise --memory: each takes 31 bytes"),
        error => error.into(),
    }
}

/// An error where a text cannot be written without a part of it.
fn must_be_writable(corpus: &Corpus) -> Result<()> {
    if corpus.settings.text_fields.len() > 1 {
        return Err(Failure::usage(
            "--level paragraph and line need one --text-field: a text joined from several cannot be \
             written back",
        ));
    }
    let is_other = |kind| !matches!(kind, SourceKind::Lines | SourceKind::Text);
    match corpus.sources.iter().find(|source| is_other(source.kind)) {
        None => Ok(()),
        Some(source) => Err(Failure::usage(format!(
            "--level paragraph and line need JSON Lines or text files, and {} is neither",
            source.name().display()
        ))),
    }
}
