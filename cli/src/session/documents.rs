//! The documents of a corpus, worked on by all threads and returned in corpus order.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::vec;

use resemblance::schema::ShingleUnit;
use resemblance::{Signature, Sketcher, Text};
use resemblance_corpus::{
    ContentRule, Corpus, CorpusDocument, CorpusRecord, CorpusRecords, CorpusSettings, CorpusSource,
    ReadTotals, SourceKind, SourceTotals, is_remote, is_store,
};

use super::context::Context;
use super::interrupt::Interrupt;
use super::job::{FinishedSources, Job, JobReading};
use super::pipeline::{BatchLimits, Pipeline};
use super::pipeline::{HeldBytes, InFlight, locked};
use super::shard::JobValue;
use super::tally::DocumentTally;
use super::tally::{ReadDocument, WorkedDocument};
use crate::failure::{Failure, Result};
use crate::options::{CorpusOptions, StoredOptions};
use crate::output::{ProgressDisplay, guard};
use resemblance::invariant::bug;

/// Documents that are looked up in a store together: the more, the less each costs.
pub(crate) const DOCUMENTS_TOGETHER: usize = 4096;

/// Bytes of memory that the features of documents may take that wait to be decided together.
pub(crate) const MAX_HELD_BYTES: usize = 64 << 20;

const EACH_ALONE: BatchLimits = BatchLimits {
    records: 256,
    bytes: 1 << 20,
};

const TOGETHER: BatchLimits = BatchLimits {
    records: DOCUMENTS_TOGETHER,
    bytes: 4 << 20,
};

/// The memory that a document takes while it is processed, as a multiple of its length: its line,
/// the text in it, and the features of the text.
const BYTES_PER_DOCUMENT_BYTE: u64 = 4;

/// Batches that are read ahead may take this part of the memory.
const BATCHES_SHARE: u64 = 4;

/// The smallest number of batches that are on their way at a time.
const MIN_BATCHES: u64 = 18;

/// Batches of fewer bytes would cost more than they save.
const MIN_BATCH_BYTES: u64 = 64 << 10;

/// The number of documents after which progress is shown, and signals are looked for.
const DOCUMENTS_PER_CHECK: u64 = 64;

/// The number of documents whose stored id differs from the id in the corpus.
#[derive(Clone, Copy, Debug, Default)]
struct IdCounts {
    made: u64,
    with_path: u64,
}

/// Counts texts, and those of them whose shingles can have nothing in common with those of a near-copy: one or none.
struct ShingleCounts {
    recipe: Option<Text>,
    texts: AtomicU64,
    short: AtomicU64,
}

/// The minimum number of texts in a sample of a corpus.
const MIN_COUNTED_TEXTS: u64 = 20;

/// The lengths of the parts of a text in which shingles are counted. The short part of a text with
/// spaces has at least two shingles. The long part is for the others: a text without spaces that
/// has none in it has none at all.
const LOOKED_AT_BYTES: [usize; 2] = [256, 4096];

impl ShingleCounts {
    fn add(&self, document: &CorpusDocument<'_>) {
        let Some((recipe, text)) = self.recipe.as_ref().zip(document.content.text()) else {
            return;
        };
        self.texts.fetch_add(1, Ordering::Relaxed);
        let is_short = LOOKED_AT_BYTES.iter().all(|length| {
            let end = text.floor_char_boundary(*length);
            let mut shingles = 0;
            if let Some(part) = text.get(..end) {
                recipe.for_each_shingle(part, |_| shingles += 1);
            }
            shingles < 2
        });
        self.short.fetch_add(u64::from(is_short), Ordering::Relaxed);
    }

    /// Says so where most texts are like that.
    fn note(&self) -> Option<String> {
        let [texts, short] = [&self.texts, &self.short].map(|count| count.load(Ordering::Relaxed));
        if texts < MIN_COUNTED_TEXTS || short <= texts / 2 {
            return None;
        }
        let advice = match self.recipe?.unit() {
            ShingleUnit::Characters => "shorter shingles (--chars with a smaller number)",
            ShingleUnit::Auto => "shorter shingles (--auto with a smaller number)",
            ShingleUnit::CodeTokens => "shorter shingles (--code with a smaller number)",
            _ => "shorter ones, or --auto 5 for languages without spaces between words,",
        };
        Some(format!(
            "warning: {short} of {texts} texts have at most one shingle, so only equal ones are found; \
             {advice} also find near-copies of them"
        ))
    }
}

/// The documents of a corpus in its order.
pub(crate) struct CorpusDocuments<T> {
    corpus: Arc<Corpus>,
    /// The ledger of ids where ids of several files may collide.
    ledger: Option<Arc<Mutex<KeyLedger>>>,
    ids: IdCounts,
    shingles: Arc<ShingleCounts>,
    pipeline: Pipeline<ReadDocument<T>>,
    interrupt: Interrupt,
    progress: ProgressDisplay,
    bytes_read: Arc<AtomicU64>,
    taken: u64,
    totals: Arc<Mutex<ReadTotals>>,
    /// Keeps the documents that are read, and returns those that were kept.
    job: Option<JobReading<T>>,
}

impl<T: Send + 'static> CorpusDocuments<T> {
    /// Starts the threads. Skips the first `skip` records without processing them.
    pub(crate) fn start(
        context: &Context,
        task: &'static str,
        corpus: &Arc<Corpus>,
        skip: u64,
        work: impl Fn(&CorpusDocument<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Self {
        let work = move |documents: &[CorpusDocument<'_>]| documents.iter().map(&work).collect();
        Self::start_with(context, task, corpus, skip, None, EACH_ALONE, work)
    }

    /// Starts from the beginning with a job that keeps the documents, if there is one: what it has
    /// is not read again.
    pub(crate) fn start_job(
        context: &Context,
        corpus: &Arc<Corpus>,
        job: Option<Arc<Job>>,
        work: impl Fn(&CorpusDocument<'_>) -> Result<T> + Send + Sync + 'static,
    ) -> Self
    where
        T: JobValue,
    {
        let Some(job) = job else {
            return Self::start(context, "reading", corpus, 0, work);
        };
        let work = move |documents: &[CorpusDocument<'_>]| documents.iter().map(&work).collect();
        let known = job.known().clone();
        let finished = FinishedSources::default();
        let kept = Some((known, Arc::clone(&finished)));
        let started = Self::start_with(context, "reading", corpus, 0, kept, EACH_ALONE, work);
        Self {
            job: Some(JobReading::begin(job, finished)),
            ..started
        }
    }

    /// Starts work that is quicker for many documents together, and gives a value for each.
    pub(crate) fn start_together(
        context: &Context,
        task: &'static str,
        corpus: &Arc<Corpus>,
        work: impl Fn(&[CorpusDocument<'_>]) -> Result<Vec<T>> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with(context, task, corpus, 0, None, TOGETHER, work)
    }

    fn start_with(
        context: &Context,
        task: &'static str,
        corpus: &Arc<Corpus>,
        skip: u64,
        kept: Option<KeptSources>,
        limits: BatchLimits,
        work: impl Fn(&[CorpusDocument<'_>]) -> Result<Vec<T>> + Send + Sync + 'static,
    ) -> Self {
        let limits = within_memory(context, limits);
        let bytes_read = Arc::new(AtomicU64::new(0));
        let totals = Arc::new(Mutex::new(ReadTotals::default()));
        let may_collide = corpus.sources.len() > 1 && corpus.settings.id.field().is_some();
        let ledger =
            may_collide.then(|| Arc::new(Mutex::new(KeyLedger::new(context.memory_bytes / 4))));
        let records = CorpusRecords::new(Arc::clone(corpus), Arc::clone(&bytes_read));
        let (records, finished) = match kept {
            Some((known, finished)) => (records.without(known), Some(finished)),
            None => (records, None),
        };
        let records = NumberedRecords {
            records,
            finished,
            skip,
            totals: Arc::clone(&totals),
            corpus: Arc::clone(corpus),
            ledger: ledger.clone(),
            in_flight: InFlight::new(context.memory_bytes),
            large_bytes: limits.bytes,
        };
        let worked_corpus = Arc::clone(corpus);
        let shingles = Arc::new(ShingleCounts {
            recipe: corpus.settings.content.recipe(),
            texts: AtomicU64::new(0),
            short: AtomicU64::new(0),
        });
        let counts = Arc::clone(&shingles);
        Self {
            pipeline: Pipeline::start(
                records,
                |numbered| numbered.record.bytes.len(),
                context.threads,
                limits,
                move |records| work_on(&records, &worked_corpus, &counts, &work),
            ),
            interrupt: context.interrupt.clone(),
            progress: ProgressDisplay::with_total_bytes(task, context.messages.quiet, || {
                corpus.size_bytes()
            }),
            bytes_read,
            taken: 0,
            totals,
            corpus: Arc::clone(corpus),
            ledger,
            ids: IdCounts::default(),
            shingles,
            job: None,
        }
    }

    /// The next document, or `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<ReadDocument<T>>> {
        self.next_while(&mut || Ok(()))
    }

    /// Returns the next document. Calls `on_wait` before each batch, and every 50 milliseconds
    /// while it waits.
    pub(crate) fn next_while(
        &mut self,
        on_wait: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<ReadDocument<T>>> {
        // Before a document is taken: after a signal it must not get lost.
        if self.taken.is_multiple_of(DOCUMENTS_PER_CHECK) {
            self.interrupt.check()?;
            let read_bytes = self.bytes_read.load(Ordering::Relaxed);
            self.progress.update(self.taken, read_bytes);
        }
        let (pipeline, interrupt, progress) =
            (&mut self.pipeline, &self.interrupt, &mut self.progress);
        let mut worked = || {
            pipeline.next(|| {
                interrupt.check()?;
                progress.tick();
                on_wait()
            })
        };
        let next = match &mut self.job {
            Some(job) => job.next(worked)?,
            None => worked()?,
        };
        let Some(mut read) = next else {
            self.progress.clear();
            return Ok(None);
        };
        if let Ok(document) = &mut read.document {
            self.give_id(read.source, document)?;
        }
        self.taken += 1;
        Ok(Some(read))
    }

    /// Reads no further after a signal.
    pub(crate) fn stop_reading(&mut self) {
        self.progress.clear();
        self.pipeline.stop_reading();
    }

    /// The next of the documents that were read before [`CorpusDocuments::stop_reading`].
    pub(crate) fn next_read(&mut self) -> Result<Option<ReadDocument<T>>> {
        let mut next = self.pipeline.next_read()?;
        if let Some(read) = &mut next
            && let Ok(document) = &mut read.document
        {
            self.give_id(read.source, document)?;
        }
        Ok(next)
    }

    /// The next good document, counted. Bad ones before it are errors, or are skipped.
    pub(crate) fn next_good(
        &mut self,
        context: &Context,
        tally: &mut DocumentTally,
        skip_bad: bool,
    ) -> Result<Option<WorkedDocument<T>>> {
        self.next_good_while(context, tally, skip_bad, &mut || Ok(()))
    }

    /// The same. Calls `on_wait` as [`CorpusDocuments::next_while`] does.
    pub(crate) fn next_good_while(
        &mut self,
        context: &Context,
        tally: &mut DocumentTally,
        skip_bad: bool,
        on_wait: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<WorkedDocument<T>>> {
        while let Some(read) = self.next_while(on_wait)? {
            let good = read.take(context, &self.corpus, tally, skip_bad)?;
            if good.is_some() {
                return Ok(good);
            }
        }
        Ok(None)
    }

    /// Puts the path in front of an id that an earlier file has.
    fn give_id(&mut self, source: usize, document: &mut WorkedDocument<T>) -> Result<()> {
        if !document.has_own_id {
            let sources = &self.corpus.sources;
            let is_text = |source: &CorpusSource| source.kind == SourceKind::Text;
            self.ids.made += u64::from(!sources.get(source).is_some_and(is_text));
        } else if let Some(ledger) = &self.ledger {
            let mut ledger = locked(ledger);
            if ledger.is_of_earlier_source(source, &document.key) {
                document.key = self.corpus.key_with_path(source, &document.key);
                self.ids.with_path += 1;
            }
            // A store would treat a later document with this id as a new version of this one.
            if self.corpus.settings.payload_field.is_some() && ledger.left_out > 0 {
                return Err(Failure::refused(ledger.limit()).with_note(
                    "a larger --memory tells more ids apart, and --id path does without them; or \
                     give one file at a time, if none of them has an id of another",
                ));
            }
        }
        Ok(())
    }

    /// Prints how the files were read, and returns the counts. Call this once
    /// [`CorpusDocuments::next`] has returned `None`. Fails if more than half of the documents are
    /// bad.
    pub(crate) fn end(&self, context: &Context, tally: &DocumentTally) -> Result<ReadTotals> {
        tally.must_be_mostly_good()?;
        if (0..self.corpus.sources.len()).all(|source| self.corpus.is_unread(source)) {
            return Err(Failure::refused("no file of the corpus could be read"));
        }
        let totals = self.totals();
        context.note(totals);
        if let Some(note) = passed_over(&self.corpus) {
            context.note(note);
        }
        if let Some(note) = self.shingles.note() {
            context.note(note);
        }
        if let (1.., Some(field)) = (self.ids.made, self.corpus.settings.id.field()) {
            context.note(format!(
                "documents without the field {:?}: {}; their keys are path:line",
                field.name(),
                self.ids.made
            ));
        }
        if self.ids.with_path > 0 {
            context.note(format!(
                "ids that an earlier file also has: {}; their keys are path:id",
                self.ids.with_path
            ));
        }
        if let Some(ledger) = &self.ledger
            && let ledger = locked(ledger)
            && ledger.left_out > 0
        {
            let keys = ledger.left_out;
            context.note(format!(
                "warning: {}; the same key may stand for documents of several files among {keys} others",
                ledger.limit()
            ));
        }
        Ok(totals)
    }

    /// Returns the totals of what was read, once [`CorpusDocuments::next`] has returned `None`.
    pub(crate) fn totals(&self) -> ReadTotals {
        *locked(&self.totals)
    }
}

/// Returns a note about the records of WARC files that are not pages.
fn passed_over(corpus: &Corpus) -> Option<String> {
    let counts = corpus.passed_over();
    let all: u64 = counts.values().sum();
    let shown = counts
        .iter()
        .map(|(kind, count)| format!("{kind}: {count}"));
    let shown: Vec<String> = shown.collect();
    (all > 0).then(|| {
        format!(
            "skipped WARC records without a page: {all} ({})",
            shown.join(", ")
        )
    })
}

/// Returns the limits of batches with which those that are read ahead stay within the memory.
fn within_memory(context: &Context, limits: BatchLimits) -> BatchLimits {
    let batches = (4 * context.threads as u64 + 1).max(MIN_BATCHES);
    let share = context.memory_bytes / BATCHES_SHARE / batches;
    let bytes = usize::try_from(share.max(MIN_BATCH_BYTES));
    BatchLimits {
        bytes: bytes.map_or(limits.bytes, |bytes| bytes.min(limits.bytes)),
        ..limits
    }
}

/// The sources that a job has completely, and the list of those that were read to their end.
type KeptSources = (BTreeMap<usize, SourceTotals>, FinishedSources);

/// A record, its number, and its share of the memory if it is large.
struct NumberedRecord {
    number: u64,
    record: CorpusRecord,
    _held: Option<HeldBytes>,
}

/// Records with their numbers. The totals are there once the last record has been read.
struct NumberedRecords {
    records: CorpusRecords,
    /// Collects the sources that were read to their end.
    finished: Option<FinishedSources>,
    skip: u64,
    totals: Arc<Mutex<ReadTotals>>,
    corpus: Arc<Corpus>,
    ledger: Option<Arc<Mutex<KeyLedger>>>,
    in_flight: Arc<InFlight>,
    /// The size of a record that completes its batch.
    large_bytes: usize,
}

impl NumberedRecords {
    /// A record that completes a batch waits for those before it, which are being worked on; a smaller
    /// one must not, because it may wait for itself in a batch that is not complete.
    fn hold(&self, record: &CorpusRecord) -> Option<HeldBytes> {
        let length = record.bytes.len();
        let bytes = (length as u64).saturating_mul(BYTES_PER_DOCUMENT_BYTE);
        (length >= self.large_bytes).then(|| self.in_flight.hold(bytes))
    }

    /// The ids of skipped documents are those that later ones may have too.
    fn note_skipped(&self, record: &CorpusRecord) {
        if let Some(ledger) = &self.ledger
            && let Ok(document) = self.corpus.parse(record)
            && document.has_own_id
        {
            locked(ledger).is_of_earlier_source(record.source, &document.key);
        }
    }
}

impl Iterator for NumberedRecords {
    type Item = Result<NumberedRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let next = self.records.next();
            if let Some(finished) = &self.finished {
                locked(finished).extend(self.records.take_finished());
            }
            let record = match next {
                Some(Ok(record)) => record,
                Some(Err(error)) => return Some(Err(error.into())),
                None => {
                    *locked(&self.totals) = self.records.totals();
                    return None;
                }
            };
            let number = self.records.last_number();
            // Skipped records are read all the same: the totals are those of the whole corpus.
            if number >= self.skip {
                return Some(Ok(NumberedRecord {
                    number,
                    _held: self.hold(&record),
                    record,
                }));
            }
            self.note_skipped(&record);
        }
    }
}

fn work_on<T>(
    records: &[NumberedRecord],
    corpus: &Corpus,
    counts: &ShingleCounts,
    work: &dyn Fn(&[CorpusDocument<'_>]) -> Result<Vec<T>>,
) -> Result<Vec<ReadDocument<T>>> {
    let mut good = Vec::new();
    let mut outcomes = Vec::new();
    for numbered in records {
        match corpus.parse(&numbered.record) {
            Ok(document) if !corpus.settings.is_sampled(&document.key) => {}
            Ok(mut document) => {
                counts.add(&document);
                document.number = numbered.number;
                good.push(document);
                outcomes.push((numbered, None));
            }
            // It has no key. The same number of bad ones as of good ones is taken, so that they can
            // be compared.
            Err(reason) => {
                let place = corpus.position(numbered.record.source, numbered.record.line);
                if corpus.settings.is_sampled(place.as_bytes()) {
                    outcomes.push((numbered, Some(reason)));
                }
            }
        }
    }
    let values = match good.is_empty() {
        true => Vec::new(),
        false => work(&good).or_else(|failure| {
            let mut faults = corpus.unsketched_vectors(&good);
            if faults.is_empty() {
                return Err(failure);
            }
            good.retain(|document| !faults.contains_key(&document.number));
            for (numbered, reason) in &mut outcomes {
                *reason = reason.take().or_else(|| faults.remove(&numbered.number));
            }
            work(&good)
        })?,
    };
    if values.len() != good.len() {
        return Err(bug("not every document was worked on").into());
    }
    let mut worked: vec::IntoIter<_> = values
        .into_iter()
        .zip(good)
        .map(|(value, document)| WorkedDocument::new(value, document))
        .collect::<Vec<_>>()
        .into_iter();
    let read = outcomes.into_iter().map(|(numbered, reason)| {
        let NumberedRecord { number, record, .. } = numbered;
        let document = match reason {
            Some(reason) => Err(reason),
            None => Ok(worked
                .next()
                .ok_or_else(|| bug("a good document is missing"))?),
        };
        Ok(ReadDocument {
            number: *number,
            source: record.source,
            line: record.line,
            document,
        })
    });
    read.collect()
}

/// Returns the corpus of these inputs, whose documents have the content of the rule. An empty one
/// is reported, because a pattern with a slip in it would otherwise look like one.
pub(crate) fn resolve_corpus(
    context: &Context,
    inputs: &[PathBuf],
    options: &CorpusOptions,
    content: ContentRule,
) -> Result<Corpus> {
    resolve_corpus_to_store(context, inputs, options, content, None)
}

/// Resolves a corpus whose documents are stored with what `stored` asks for.
pub(crate) fn resolve_corpus_to_store(
    context: &Context,
    inputs: &[PathBuf],
    options: &CorpusOptions,
    content: ContentRule,
    stored: Option<&StoredOptions>,
) -> Result<Corpus> {
    context.must_have_temp_dir()?;
    let mut settings = context.corpus_settings(options)?;
    settings.content = content;
    if let Some(stored) = stored {
        settings = stored.extend(settings);
    }
    let corpus = resolve(context, inputs, settings)?;
    if !options.skip_bad {
        must_be_readable(&corpus)?;
    }
    context.print_memory(corpus.size_bytes());
    corpus.notes.iter().for_each(|note| context.note(note));
    if let Some(note) = unused_table(&corpus, inputs) {
        context.note(note);
    }
    for note in idle_settings(&corpus, inputs) {
        context.note(note);
    }
    Ok(corpus)
}

/// Returns a note for each option that concerns a kind of input that is not present.
fn idle_settings(corpus: &Corpus, inputs: &[PathBuf]) -> Vec<String> {
    let settings = &corpus.settings;
    let has_folder = inputs.iter().any(|path| path.is_dir() || is_remote(path));
    let has = |kind: SourceKind| corpus.sources.iter().any(|source| source.kind == kind);
    let has_csv = has(SourceKind::Csv);
    let mut idle = Vec::new();
    let are_default = settings.text_fields == CorpusSettings::default().text_fields;
    if !settings.content.takes_texts && !are_default {
        idle.push("--text-field is for texts, and these documents are not texts".to_owned());
    }
    if settings.has_idle_vector_field() {
        idle.push("--vector-field is for vectors, and the schema has none".to_owned());
    }
    if !has_folder {
        let given = [
            ("--include", !settings.include.is_empty()),
            ("--exclude", !settings.exclude.is_empty()),
            ("--hidden", settings.hidden),
        ];
        let of_folders = given.into_iter().filter(|(_, is_given)| *is_given);
        idle.extend(
            of_folders.map(|(option, _)| format!("{option} is for folders, and none is given")),
        );
    }
    if settings.separator.is_some() && !has_csv {
        idle.push("--separator is for CSV files, and there are none".to_owned());
    }
    if !settings.columns.is_empty() && !has_csv && !has(SourceKind::Tsv) {
        idle.push("--columns is for CSV and TSV files, and there are none".to_owned());
    }
    idle
}

/// Returns a note if a table is named, and no source has tables.
fn unused_table(corpus: &Corpus, inputs: &[PathBuf]) -> Option<String> {
    let table = corpus.settings.table.as_ref()?;
    let mut kinds = corpus.sources.iter().map(|source| source.kind);
    if kinds.any(|kind| kind == SourceKind::Sqlite) {
        return None;
    }
    let (first, others) = inputs.split_first()?;
    let others = match others.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!(
        "--table {table} has no effect: there is no SQLite database in {}{others}",
        first.display()
    ))
}

/// Looks at the inputs, which may take long where servers are asked.
pub(crate) fn resolve(
    context: &Context,
    inputs: &[PathBuf],
    settings: CorpusSettings,
) -> Result<Corpus> {
    if let Some(html) = settings.content.html {
        html.must_be_here()?;
    }
    if let Some(store) = inputs.iter().find(|input| is_store(input)) {
        let cause = format!("{} is a store, not a corpus", store.display());
        let advice = "export writes its documents as a stream, which import adds to another store";
        return Err(Failure::bad_input(cause).with_note(advice));
    }
    let corpus = if inputs.iter().any(|input| is_remote(input)) {
        let looked_at = inputs.to_vec();
        let mut progress = context.progress("looking");
        context.interrupt.while_working(&mut progress, move || {
            Ok(Corpus::resolve(&looked_at, settings)?)
        })?
    } else {
        Corpus::resolve(inputs, settings)?
    };
    if corpus.sources.is_empty() {
        let names: Vec<_> = inputs
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        corpus.notes.iter().for_each(|note| context.note(note));
        return Err(Failure::refused(format!(
            "no file was found in {}",
            names.join(", ")
        )).with_note("a folder must have files that --include selects; names that begin with a dot need --hidden"));
    }
    let files = corpus.sources.iter().filter_map(CorpusSource::path);
    guard::protect_sources(files.map(Cow::into_owned))?;
    Ok(corpus)
}

/// Fails for the first file that cannot be read.
fn must_be_readable(corpus: &Corpus) -> Result<()> {
    for (number, source) in corpus.sources.iter().enumerate() {
        if let Some(problem) = &source.problem {
            let failure = Failure::from((**problem).clone()).at(corpus.position(number, 0));
            return Err(failure.with_note("--skip-bad skips such files"));
        }
    }
    Ok(())
}

/// The signatures of some documents.
pub(crate) fn sketch_documents(
    sketcher: &Sketcher,
    documents: &[CorpusDocument<'_>],
) -> Result<Vec<Signature>> {
    let signatures = documents
        .iter()
        .map(|document| Ok(document.content.sketch(sketcher, false)?.signature));
    signatures.collect()
}

/// The approximate memory of an id, in bytes.
const ENTRY_BYTES: u64 = 40;

/// The file that had each id first, by a hash of the id.
#[derive(Debug)]
pub(super) struct KeyLedger {
    first_sources: HashMap<u64, usize>,
    max_ids: u64,
    /// The number of documents whose ids did not fit and were not compared.
    left_out: u64,
}

impl KeyLedger {
    /// Creates a ledger that takes no further ids once it has this number of bytes.
    pub(super) fn new(memory_bytes: u64) -> Self {
        Self {
            first_sources: HashMap::new(),
            max_ids: memory_bytes / ENTRY_BYTES,
            left_out: 0,
        }
    }

    fn limit(&self) -> String {
        let ids = self.max_ids;
        format!(
            "a quarter of the memory (--memory) has room for {ids} ids to compare between files"
        )
    }

    /// Records an id. Returns true if an earlier file has it.
    pub(super) fn is_of_earlier_source(&mut self, source: usize, id: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let is_full = self.first_sources.len() as u64 >= self.max_ids;
        match self.first_sources.entry(hasher.finish()) {
            Entry::Occupied(first) => *first.get() != source,
            Entry::Vacant(_) if is_full => {
                self.left_out += 1;
                false
            }
            Entry::Vacant(entry) => {
                entry.insert(source);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_collide_only_between_sources() {
        let mut ledger = KeyLedger::new(2 * ENTRY_BYTES);
        let cases = [
            (0, "a", false),
            (0, "a", false),
            (1, "a", true),
            (1, "b", false),
            (2, "b", true),
            // A third does not fit.
            (2, "c", false),
            (3, "c", false),
            (3, "a", true),
        ];
        for (source, id, expected) in cases {
            let found = ledger.is_of_earlier_source(source, id.as_bytes());
            assert_eq!(found, expected, "{id} of {source}");
        }
        assert_eq!(ledger.left_out, 2);
    }
}
