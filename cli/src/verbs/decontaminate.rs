//! The verb `decontaminate`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use resemblance::exact::{SharedPassage, WholeTexts};
use resemblance::invariant::{at, bug};
use resemblance::{
    Containment, Document, DocumentId, Overlaps, Schema, Signature, Sketcher, Snapshot, Store, Text,
};

use super::contain::must_have_passages;
use crate::failure::{Failure, Outcome, Result};
use crate::options::{CorpusOptions, PassageOptions, parse_part};
use crate::output::{
    Column, CompleteFile, Counted, Format, GroupedNumber, Layout, OutputTarget, Results, Sink,
    Value, longest_run, passage_positions,
};
use crate::session::{
    BitList, Context, CopiedRecords, CorpusDocuments, DocumentTally, KnownTexts, ScratchStore,
    StoreBuilding, copy_records, must_be_rereadable, open_to_read, resolve_corpus,
    resolve_corpus_to_store, sketch_documents, spool_sources,
};
use resemblance_corpus::{ContentRule, Corpus, CorpusDocument, ReadTotals, is_store};

/// Words of a shingle, and shingles of a window, with which every passage of 13 words is found.
const SHINGLE_WORDS: u16 = 8;
const WINDOW_SHINGLES: u16 = 6;

/// The least number of words with which a test document that is shorter than a passage is looked
/// for as a whole.
const WHOLE_UNITS: u64 = 5;

/// Write a corpus without the documents that share passages with test sets
///
/// A document is left out if it shares a passage with a test document. With the defaults, every document that shares 13
/// consecutive words is left out, and none that shares fewer than 8 (letter case and punctuation do not count). With
/// --min-share, a document is left out only if it contains that share of the shingles of a test document. A test
/// document too short for this is found if another one contains all its words in their order. The remaining lines are
/// written unchanged, byte for byte, as with dedup.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance decontaminate train.jsonl.gz --against tests.jsonl -o clean.jsonl.gz --report dropped.tsv
  resemblance decontaminate train/ --against gsm8k.jsonl mmlu.jsonl -o clean/ --min-share 0.5
  resemblance decontaminate train.jsonl --against tests.jsonl -o /dev/null --items items.tsv --fail-above 0.01
  resemblance decontaminate more.jsonl --against tests.rsm -o clean.jsonl")]
pub(crate) struct DecontaminateArguments {
    /// JSON Lines files, tables, folders or - (see resemblance --help)
    #[arg(required = true)]
    corpus: Vec<PathBuf>,
    /// The test sets: corpora, or one store built with --containment
    #[arg(long, value_name = "CORPUS|STORE", num_args = 1.., required = true)]
    pub(crate) against: Vec<PathBuf>,
    /// A file (its name determines the compression), - for standard output, or a folder, which gets the input's file
    /// names and compression (if it exists, ends in /, or texts are written)
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write a tab-separated line for each document left out: dropped, test (the test document that shares most with
    /// it), test_share_estimate (the share of the test document that it contains; test_share with windows of one
    /// shingle, where it is exact), shared_hashes, longest_run_estimate (in shingles of the document left out), test_set
    /// (the file of the test document, or the store). A test document that was found as a whole has no hashes
    #[arg(long, value_name = "OUT")]
    report: Option<PathBuf>,
    /// Add the longest passage that the document shares with the test to the report, compared exactly: longest_run (in
    /// shingles), and its position in bytes, from 0: start, end, test_start, test_end. The texts of the tests, which
    /// must be corpora, are held in memory, up to half of --memory
    #[arg(long, requires = "report")]
    spans: bool,
    /// Omit the header line of the report
    #[arg(long, requires = "report")]
    no_header: bool,
    /// Write a tab-separated line for each test document that was found, and for each that is too short to be looked for:
    /// test_set, test, outcome (found or short), documents (the number of documents left out that share enough with it)
    #[arg(long, value_name = "OUT")]
    items: Option<PathBuf>,
    /// Exit with code 1 if more than this share of the documents of a test set is found, at least 0 and below 1. The
    /// outputs are written all the same
    #[arg(long, value_name = "SHARE", value_parser = parse_part)]
    fail_above: Option<f64>,
    /// Find test documents that are shorter than a passage as wholes if they have at least this number of words
    #[arg(long, value_name = "N", default_value_t = WHOLE_UNITS)]
    whole: u64,
    /// Leave a document out only if it contains at least this share of the distinct shingles of a test document, 0 to 1
    #[arg(long, value_name = "S")]
    min_share: Option<f64>,
    /// Words of a shingle, if the test sets are corpora [default: 8]
    #[arg(long, value_name = "K")]
    containment: Option<u16>,
    /// Shingles of a window, if the test sets are corpora: every passage of at least W + K - 1 words is found. With 1,
    /// shares are exact [default: 6, or 1 with --min-share]
    #[arg(long, value_name = "W")]
    window: Option<u16>,
    /// Overwrite existing output, but never a store
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    passages: PassageOptions,
    #[command(flatten)]
    options: CorpusOptions,
}

impl DecontaminateArguments {
    /// Shingles of a window, of test sets that are corpora.
    fn window(&self) -> u16 {
        self.window.unwrap_or(match self.min_share {
            Some(_) => 1,
            None => WINDOW_SHINGLES,
        })
    }

    /// The answer for each document of the corpus: the test documents, the one that shares most first.
    fn ask(
        &self,
    ) -> impl Fn(&Snapshot, &[resemblance::Signature]) -> Result<Vec<Overlaps>> + Send + Sync + 'static
    {
        let (passages, min_share) = (self.passages, self.min_share);
        move |snapshot, signatures| {
            let query = match min_share {
                Some(_) => snapshot.contents_of(signatures),
                None => snapshot.overlaps(signatures),
            };
            let query = passages.apply(query, min_share).threads(1);
            Ok(query.run()?)
        }
    }
}

pub(crate) fn decontaminate(
    context: &Context,
    arguments: &DecontaminateArguments,
) -> Result<Outcome> {
    let opened = open_tests(context, arguments)?;
    let schema = match &opened {
        Some(store) => store.schema().clone(),
        None => tests_schema(arguments)?,
    };
    let mut files = DecontaminationFiles::open(context, arguments, &schema)?;
    let (scratch, mut tests);
    let store = match &opened {
        Some(store) => {
            context.note(
                "a store has no texts: tests shorter than a passage that is certainly found may be missed",
            );
            tests = Tests::of_store(arguments, store)?;
            store
        }
        None => {
            (scratch, tests) = read_tests(context, arguments, &schema)?;
            scratch.store()
        }
    };
    // An impossible question is reported before the corpus is read.
    if store.snapshot()?.is_empty() {
        return Err(Failure::refused(
            "the test sets have no documents, so nothing can be compared with them",
        ));
    }
    arguments.ask()(&store.snapshot()?, &[])?;
    let known = known_texts(context, arguments, &schema)?;
    spool_sources(context, &mut files.corpus)?;
    let DecontaminationFiles {
        corpus,
        sink,
        mut report,
        items,
    } = files;
    let shared_corpus = Arc::new(corpus);
    let comparison = Comparison {
        context,
        arguments,
        store,
        corpus: &shared_corpus,
    };
    let compared = comparison.run(known, &mut tests, report.as_mut())?;
    let kept = CopiedRecords::unchanged(compared.kept, sink);
    let mut reports = Vec::new();
    reports.extend(report.map(Results::complete).transpose()?);
    reports.extend(items.map(|items| tests.write(items)).transpose()?);
    let totals = compared.totals;
    let outputs = vec![kept];
    copy_records(context, &shared_corpus, totals, outputs, reports, || Ok(()))?;
    if compared.capped > 0 {
        context.note(format!(
            "--max-frequency ignored hashes of {}: kept ones may share passages with tests",
            Counted(compared.capped, "document")
        ));
    }
    let summary = compared.tally.summary("kept", compared.totals);
    context.counts(summary);
    tests.print(context, arguments)
}

/// Reads the texts of the tests, if their passages are to be located.
fn known_texts(
    context: &Context,
    arguments: &DecontaminateArguments,
    schema: &Schema,
) -> Result<Option<KnownTexts>> {
    let (tests, options) = (&arguments.against, &arguments.options);
    let known = arguments
        .spans
        .then(|| KnownTexts::read(context, tests, options, schema));
    known.transpose()
}

/// Opens the store of the tests, if they are one.
fn open_tests(context: &Context, arguments: &DecontaminateArguments) -> Result<Option<Store>> {
    match &arguments.against[..] {
        [path] if is_store(path) => {
            must_leave_schema(arguments)?;
            let opened = open_to_read(context, path)?;
            must_have_passages(path, opened.schema())?;
            Ok(Some(opened))
        }
        corpora => {
            if arguments.spans {
                must_be_rereadable(context, corpora, &arguments.options)?;
            }
            Ok(None)
        }
    }
}

/// The corpus, and where its documents and the report go.
struct DecontaminationFiles {
    corpus: Corpus,
    sink: Sink,
    report: Option<Results>,
    items: Option<Results>,
}

impl DecontaminationFiles {
    /// Opens all outputs before anything is read, so that one that cannot be written is refused
    /// immediately.
    fn open(
        context: &Context,
        arguments: &DecontaminateArguments,
        schema: &Schema,
    ) -> Result<Self> {
        let content = ContentRule::new(schema, false);
        let (inputs, force) = (&arguments.corpus, arguments.force);
        let corpus = resolve_corpus(context, inputs, &arguments.options, content)?;
        let target = OutputTarget::choose(&arguments.output, inputs, &corpus, force, false)?;
        let create = |name, path: &PathBuf, columns| {
            target.must_not_meet(name, path, &corpus)?;
            let layout = Layout::new(Some(Format::Tsv), !arguments.no_header);
            Results::create(path, force, layout, columns)
        };
        let report = arguments.report.as_ref();
        let report = report.map(|path| create("the report", path, columns(arguments, schema)));
        let items = arguments.items.as_ref().map(|path| {
            let columns = Column::list("test_set test outcome documents");
            create("the list of test documents", path, columns)
        });
        let (report, items) = (report.transpose()?, items.transpose()?);
        Ok(Self {
            sink: Sink::create(&target, force)?,
            corpus,
            report,
            items,
        })
    }
}

/// The outcome of a comparison of all documents.
struct Compared {
    kept: BitList,
    tally: DocumentTally,
    totals: ReadTotals,
    /// Documents of which some hashes were left out.
    capped: u64,
}

/// A comparison of the documents of a corpus with the tests.
struct Comparison<'a> {
    context: &'a Context,
    arguments: &'a DecontaminateArguments,
    store: &'a Store,
    corpus: &'a Arc<Corpus>,
}

/// The tests that a document has something of.
struct FoundTests {
    /// The tests that share passages with it.
    overlaps: Overlaps,
    /// The longest passage that it shares with the first of these.
    passage: Option<SharedPassage>,
    /// The numbers of the texts that it contains as wholes, with their places in it.
    wholes: Vec<(usize, Range<usize>)>,
}

impl Comparison<'_> {
    fn start(
        &self,
        known: Option<KnownTexts>,
        tests: &Tests,
    ) -> Result<CorpusDocuments<FoundTests>> {
        let (snapshot, ask) = (self.store.snapshot()?, self.arguments.ask());
        let (sketcher, whole) = (self.store.sketcher().clone(), tests.whole.clone());
        let look_up = move |documents: &[CorpusDocument<'_>]| {
            let signatures = sketch_documents(&sketcher, documents)?;
            let mut answers = Vec::with_capacity(documents.len());
            for (overlaps, document) in ask(&snapshot, &signatures)?.into_iter().zip(documents) {
                let text = document.content.text();
                let passage = match (&known, text, overlaps.first()) {
                    (Some(known), Some(text), Some(test)) => known.passage(text, test)?,
                    _ => None,
                };
                let wholes = text.map(|text| whole.find(text)).transpose();
                let wholes = wholes.map_err(resemblance::Error::from)?;
                answers.push(FoundTests {
                    overlaps,
                    passage,
                    wholes: wholes.into_iter().flatten().collect(),
                });
            }
            Ok(answers)
        };
        let (context, corpus) = (self.context, self.corpus);
        Ok(CorpusDocuments::start_together(
            context,
            "comparing",
            corpus,
            look_up,
        ))
    }

    /// Compares each document with the tests, and reports those that share passages with them.
    fn run(
        &self,
        known: Option<KnownTexts>,
        tests: &mut Tests,
        mut report: Option<&mut Results>,
    ) -> Result<Compared> {
        let (context, skip_bad) = (self.context, self.arguments.options.skip_bad);
        let mut items = self.start(known, tests)?;
        let (mut kept, mut tally) = (BitList::default(), DocumentTally::default());
        let mut capped = 0;
        while let Some(item) = items.next()? {
            let taken = item.take(context, self.corpus, &mut tally, skip_bad)?;
            let Some(document) = taken else {
                kept.push(false);
                continue;
            };
            let found = &document.value;
            capped += u64::from(found.overlaps.capped_hashes() > 0);
            let is_kept = found.overlaps.is_empty() && found.wholes.is_empty();
            kept.push(is_kept);
            if is_kept {
                tally.kept += 1;
                continue;
            }
            tally.dropped += 1;
            tests.count(found)?;
            if let Some(report) = &mut report {
                self.write(report, tests, &document.key, found)?;
            }
        }
        let totals = items.end(context, &tally)?;
        Ok(Compared {
            kept,
            tally,
            totals,
            capped,
        })
    }

    /// Writes the line of a document that is left out: the test that shares most with it, or the
    /// first that it contains as a whole.
    fn write(
        &self,
        report: &mut Results,
        tests: &Tests,
        key: &[u8],
        found: &FoundTests,
    ) -> Result<()> {
        let mut row = vec![Value::Key(key)];
        let positions = match (found.overlaps.first(), found.wholes.first()) {
            (Some(overlap), _) => {
                let id = overlap.id();
                row.extend([
                    Value::document(id, overlap.key()),
                    Value::Similarity(Some(overlap.document_share())),
                    Value::Count(overlap.shared_hashes().into()),
                    Value::Count(longest_run(overlap)?),
                    Value::Text(tests.set_of(id)?),
                ]);
                passage_positions(found.passage.as_ref())
            }
            (None, Some((number, span))) => {
                let WholeTest { id, bytes } = *at(&tests.wholes, *number)?;
                row.extend([
                    Value::document(id, Some(&tests.item(id)?.key)),
                    Value::Similarity(Some(1.0)),
                    Value::OptionalText(None),
                    Value::OptionalText(None),
                    Value::Text(tests.set_of(id)?),
                ]);
                let (start, end) = (Some(span.start), Some(span.end));
                [None, start, end, Some(0), Some(bytes)]
            }
            (None, None) => return Ok(()),
        };
        if self.arguments.spans {
            row.extend(positions.map(Value::Position));
        }
        report.row(&row)
    }
}

/// A document of a test set.
struct TestItem {
    /// The number of its test set.
    set: usize,
    key: Vec<u8>,
    /// True if it is too short to be looked for.
    is_short: bool,
    /// The number of documents of the corpus in which it was found.
    documents: u64,
}

/// A test that is looked for as a whole.
#[derive(Clone, Copy)]
struct WholeTest {
    id: DocumentId,
    /// The length of its text.
    bytes: usize,
}

/// The test sets.
struct Tests {
    /// Their names.
    sets: Vec<String>,
    /// Their documents, by the ids in the store.
    items: BTreeMap<DocumentId, TestItem>,
    /// The texts that are looked for as wholes.
    whole: WholeTexts,
    /// The documents of these texts, by their numbers.
    wholes: Vec<WholeTest>,
}

impl Tests {
    fn new(sets: Vec<String>, schema: &Schema) -> Result<Self> {
        // Without texts in the schema, there are none to look for.
        let recipe = schema.containment_text().unwrap_or(Text::words(1));
        Ok(Self {
            sets,
            items: BTreeMap::new(),
            whole: WholeTexts::new(&recipe).map_err(resemblance::Error::from)?,
            wholes: Vec::new(),
        })
    }

    /// The documents of a store, which has no texts to look for as wholes.
    fn of_store(arguments: &DecontaminateArguments, store: &Store) -> Result<Self> {
        let names = arguments.against.iter();
        let names = names.map(|path| path.display().to_string());
        let mut tests = Self::new(names.collect(), store.schema())?;
        for record in store.snapshot()?.iter() {
            let record = record?;
            let key = record.key().map(<[u8]>::to_vec);
            let key = key.unwrap_or_else(|| record.id().get().to_string().into_bytes());
            tests.insert(record.id(), key, 0);
        }
        Ok(tests)
    }

    fn insert(&mut self, id: DocumentId, key: Vec<u8>, set: usize) {
        let item = TestItem {
            set,
            key,
            is_short: false,
            documents: 0,
        };
        self.items.insert(id, item);
    }

    fn item(&self, id: DocumentId) -> Result<&TestItem> {
        let item = self.items.get(&id);
        item.ok_or_else(|| bug("a test that was not read").into())
    }

    fn set_of(&self, id: DocumentId) -> Result<&str> {
        Ok(at(&self.sets, self.item(id)?.set)?)
    }

    /// Counts a document of the corpus for each test that was found in it.
    fn count(&mut self, found: &FoundTests) -> Result<()> {
        let mut ids: Vec<DocumentId> = found.overlaps.iter().map(|overlap| overlap.id()).collect();
        for (number, _) in &found.wholes {
            ids.push(at(&self.wholes, *number)?.id);
        }
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            let item = self.items.get_mut(&id);
            item.ok_or_else(|| bug("a test that was not read"))?
                .documents += 1;
        }
        Ok(())
    }

    /// Writes the documents that were found or are too short.
    fn write(&self, mut results: Results) -> Result<CompleteFile> {
        for item in self.items.values() {
            let outcome = match (item.documents, item.is_short) {
                (0, false) => continue,
                (0, true) => "short",
                _ => "found",
            };
            results.row(&[
                Value::Text(at(&self.sets, item.set)?),
                Value::Key(&item.key),
                Value::Text(outcome),
                Value::Count(item.documents),
            ])?;
        }
        results.complete()
    }

    /// Prints how many documents of each test set were found, and decides on the exit code.
    fn print(&self, context: &Context, arguments: &DecontaminateArguments) -> Result<Outcome> {
        let mut is_above = false;
        for (number, set) in self.sets.iter().enumerate() {
            let of_set = || self.items.values().filter(|item| item.set == number);
            let all = of_set().count() as u64;
            let found = of_set().filter(|item| item.documents > 0).count() as u64;
            let is_missed = |item: &&TestItem| item.is_short && item.documents == 0;
            let short = of_set().filter(is_missed).count() as u64;
            let [grouped_all, grouped_found] = [all, found].map(GroupedNumber);
            let short = match short {
                0 => String::new(),
                short => format!(
                    ", too short to look for {} (--items lists them)",
                    GroupedNumber(short)
                ),
            };
            let mut line = format!("{set}: tests {grouped_all}, found {grouped_found}{short}");
            if let Some(most) = arguments.fail_above
                && found as f64 > most * all as f64
            {
                is_above = true;
                line += &format!(", above --fail-above {most}");
            }
            context.counts(line);
        }
        Ok(match is_above {
            true => Outcome::Nothing,
            false => Outcome::Done,
        })
    }
}

/// A store has its own rule for shingles, and no texts.
fn must_leave_schema(arguments: &DecontaminateArguments) -> Result<()> {
    for (option, is_given) in [
        ("--containment", arguments.containment.is_some()),
        ("--window", arguments.window.is_some()),
    ] {
        if is_given {
            return Err(Failure::usage(format!(
                "{option} needs test sets that are corpora: the schema of a store is fixed"
            )));
        }
    }
    if arguments.spans {
        return Err(
            Failure::usage("--spans needs the texts of the tests, and a store has none")
                .with_note("give their corpora"),
        );
    }
    Ok(())
}

/// The schema of test sets that are corpora.
fn tests_schema(arguments: &DecontaminateArguments) -> Result<Schema> {
    let words = arguments.containment.unwrap_or(SHINGLE_WORDS);
    let window = arguments.window();
    let schema = Schema::builder()
        .text(Text::auto().with_length(words))
        .containment(Containment::new(words).window(window));
    Ok(schema.build()?)
}

/// The number of units of a test with which it is found by its shingles, and with which it is looked
/// for as a whole.
#[derive(Clone, Copy)]
struct UnitBounds {
    passage: u64,
    whole: u64,
}

/// A document of a test set as it is read.
struct ReadTest {
    signature: Signature,
    /// Its text, if it is to be looked for as a whole.
    whole: Option<String>,
    is_short: bool,
}

impl ReadTest {
    fn new(
        sketcher: &Sketcher,
        units: Option<&Text>,
        bounds: UnitBounds,
        document: &CorpusDocument<'_>,
    ) -> Result<Self> {
        let mut test = Self {
            signature: document.content.sketch(sketcher, false)?.signature,
            whole: None,
            is_short: false,
        };
        if let Some((units, text)) = units.zip(document.content.text()) {
            let mut count = 0;
            units.for_each_shingle(text, |_| count += 1);
            let has_no_passage = count < bounds.passage;
            test.is_short = has_no_passage && count < bounds.whole;
            let is_whole = has_no_passage && !test.is_short && count > 0;
            test.whole = is_whole.then(|| text.to_owned());
        }
        Ok(test)
    }
}

/// Reads test sets into a store that is removed after this run.
fn read_tests(
    context: &Context,
    arguments: &DecontaminateArguments,
    schema: &Schema,
) -> Result<(ScratchStore, Tests)> {
    let content = ContentRule::new(schema, false);
    let corpora = &arguments.against;
    let corpus = resolve_corpus_to_store(context, corpora, &arguments.options, content, None)?;
    let corpus = Arc::new(corpus);
    let sources = corpus.sources.iter();
    let names = sources.map(|source| source.name().display().to_string());
    let mut tests = Tests::new(names.collect(), schema)?;
    let (scratch, summary) = ScratchStore::build_unnamed(context, |path| {
        let (folder, skip_bad) = (&context.temp_dir, arguments.options.skip_bad);
        let building = StoreBuilding::begin(context, path, folder, schema, skip_bad)?;
        fill_tests(context, arguments, &corpus, building, &mut tests)
    })?;
    context.counts(summary);
    Ok((scratch, tests))
}

/// Puts tests into a store, and returns the summary of their counts.
fn fill_tests(
    context: &Context,
    arguments: &DecontaminateArguments,
    corpus: &Arc<Corpus>,
    mut building: StoreBuilding<'_>,
    tests: &mut Tests,
) -> Result<String> {
    let skip_bad = arguments.options.skip_bad;
    let schema = tests_schema(arguments)?;
    let sketcher = schema.sketcher();
    let units = schema.containment_text().map(|text| text.with_length(1));
    let words = u64::from(arguments.containment.unwrap_or(SHINGLE_WORDS));
    let bounds = UnitBounds {
        passage: words + u64::from(arguments.window()) - 1,
        whole: arguments.whole,
    };
    let work = move |document: &CorpusDocument<'_>| {
        ReadTest::new(&sketcher, units.as_ref(), bounds, document)
    };
    let mut documents = CorpusDocuments::start(context, "reading tests", corpus, 0, work);
    let (mut tally, mut places) = (DocumentTally::default(), BTreeMap::new());
    while let Some(read) = documents.next()? {
        let (source, line) = (read.source, read.line);
        let Some(document) = read.take(context, corpus, &mut tally, skip_bad)? else {
            continue;
        };
        let test = document.value;
        let place = || corpus.position(source, line);
        let id = building.insert(Document::new(&document.key), &test.signature, place)?;
        tally.kept += 1;
        tally.empty += u64::from(test.signature.is_empty());
        tests.insert(id, document.key, source);
        if let Some(item) = tests.items.get_mut(&id) {
            item.is_short = test.is_short;
        }
        if let Some(text) = test.whole {
            tests.whole.insert(&text);
            let bytes = text.len();
            tests.wholes.push(WholeTest { id, bytes });
        }
        places.insert(id, (source, line));
    }
    let totals = documents.end(context, &tally)?;
    building.finish(&mut |id, key| {
        let (source, line) = *places
            .get(&id)
            .ok_or_else(|| bug("a test without a place"))?;
        let failure = Failure::repeated_key(key, corpus.position(source, line));
        tally.skip(context, failure, skip_bad)?;
        tally.kept -= 1;
        Ok(())
    })?;
    Ok(tally.summary("test documents", totals))
}

/// The columns of the report.
fn columns(arguments: &DecontaminateArguments, schema: &Schema) -> Vec<Column> {
    let is_exact = schema.containment().and_then(|it| it.window_shingles()) == Some(1);
    let mut columns = Column::list("dropped test");
    columns.extend(Column::list(match is_exact {
        true => "test_share",
        false => "test_share_estimate",
    }));
    columns.extend(Column::list("shared_hashes longest_run_estimate test_set"));
    if arguments.spans {
        columns.extend(Column::list("longest_run start end test_start test_end"));
    }
    columns
}
