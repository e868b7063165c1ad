//! The verb `decontaminate`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use resemblance::exact::SharedPassage;
use resemblance::{Containment, Overlaps, Schema, Snapshot, Store, Text};

use super::contain::must_have_passages;
use crate::failure::{Failure, Outcome, Result};
use crate::options::{CorpusOptions, PassageOptions};
use crate::output::{
    Column, Format, Layout, OutputTarget, Results, Sink, Value, longest_run, passage_positions,
};
use crate::session::{
    BitList, Context, CopiedRecords, CorpusDocuments, DocumentTally, KnownTexts, ScratchStore,
    StoreBuilding, copy_records, fill, must_be_rereadable, open_to_read, resolve_corpus,
    resolve_corpus_to_store, sketch_documents, spool_sources,
};
use resemblance_corpus::{ContentRule, Corpus, ReadTotals, is_store};

/// Words of a shingle, and shingles of a window, with which every passage of 13 words is found.
const SHINGLE_WORDS: u16 = 8;
const WINDOW_SHINGLES: u16 = 6;

/// Write a corpus without the documents that share passages with test sets
///
/// A document is left out if it shares a passage with a test document. With the defaults, every document that shares 13
/// consecutive words is left out, and none that shares fewer than 8 (letter case and punctuation do not count). With
/// --min-share, a document is left out only if it contains that share of a test document. The remaining lines are
/// written unchanged, byte for byte, as with dedup.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance decontaminate train.jsonl.gz --against tests.jsonl -o clean.jsonl.gz --report dropped.tsv
  resemblance decontaminate train/ --against gsm8k.jsonl mmlu.jsonl -o clean/ --min-share 0.5
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
    /// it), test_share_estimate (the share of the test document that it contains), shared_hashes, longest_run_estimate
    /// (in shingles of the document left out)
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
    /// Leave a document out only if it contains at least this share of a test document, 0 to 1
    #[arg(long, value_name = "S")]
    min_share: Option<f64>,
    /// Words of a shingle, if the test sets are corpora [default: 8]
    #[arg(long, value_name = "K")]
    containment: Option<u16>,
    /// Shingles of a window, if the test sets are corpora: every passage of at least W + K - 1 words is found [default:
    /// 6]
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
    /// The answer for each document of the corpus: the test document that shares most with it.
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
            let query = passages.apply(query, min_share).limit(1).threads(1);
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
    let scratch;
    let store = match &opened {
        Some(store) => store,
        None => {
            scratch = read_tests(context, arguments, &schema)?;
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
    let known = match arguments.spans {
        true => {
            let (tests, options) = (&arguments.against, &arguments.options);
            Some(KnownTexts::read(context, tests, options, &schema)?)
        }
        false => None,
    };
    spool_sources(context, &mut files.corpus)?;
    let DecontaminationFiles {
        corpus,
        sink,
        mut report,
    } = files;
    let shared_corpus = Arc::new(corpus);
    let rows = report.as_mut();
    let compared = compare(context, arguments, store, known, &shared_corpus, rows)?;
    let kept = CopiedRecords {
        wanted: compared.kept,
        sink,
        are_trimmed: false,
    };
    copy_records(context, &shared_corpus, compared.totals, vec![kept])?;
    if let Some(report) = report {
        report.finish()?;
    }
    if compared.capped > 0 {
        context.note(format!(
            "--max-frequency ignored hashes of {} documents: kept ones may share passages with tests",
            compared.capped
        ));
    }
    let summary = compared.tally.summary("kept", compared.totals);
    context.counts(summary);
    Ok(Outcome::Done)
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
        let target = OutputTarget::choose(&arguments.output, inputs, &corpus, force)?;
        let report = match &arguments.report {
            Some(path) => {
                target.must_not_meet("the report", path, &corpus)?;
                let layout = Layout::new(Some(Format::Tsv), !arguments.no_header);
                Some(Results::create(path, force, layout, columns(arguments))?)
            }
            None => None,
        };
        Ok(Self {
            sink: Sink::create(&target, force)?,
            corpus,
            report,
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

/// Compares each document with the tests, and reports those that share passages with them.
fn compare(
    context: &Context,
    arguments: &DecontaminateArguments,
    store: &Store,
    known: Option<KnownTexts>,
    corpus: &Arc<Corpus>,
    mut report: Option<&mut Results>,
) -> Result<Compared> {
    let (snapshot, ask) = (store.snapshot()?, arguments.ask());
    let sketcher = store.sketcher().clone();
    let mut items =
        CorpusDocuments::start_together(context, "comparing", corpus, move |documents| {
            let signatures = sketch_documents(&sketcher, documents)?;
            let mut answers = Vec::with_capacity(documents.len());
            for (overlaps, document) in ask(&snapshot, &signatures)?.into_iter().zip(documents) {
                let passage = match (&known, document.content.text(), overlaps.first()) {
                    (Some(known), Some(text), Some(test)) => known.passage(text, test)?,
                    _ => None,
                };
                answers.push((overlaps, passage));
            }
            Ok(answers)
        });
    let (mut kept, mut tally) = (BitList::default(), DocumentTally::default());
    let mut capped = 0;
    while let Some(item) = items.next()? {
        let taken = item.take(context, corpus, &mut tally, arguments.options.skip_bad)?;
        let Some(document) = taken else {
            kept.push(false);
            continue;
        };
        let (overlaps, passage): (Overlaps, Option<SharedPassage>) = document.value;
        capped += u64::from(overlaps.capped_hashes() > 0);
        kept.push(overlaps.is_empty());
        let Some(overlap) = overlaps.first() else {
            tally.kept += 1;
            continue;
        };
        tally.dropped += 1;
        if let Some(report) = &mut report {
            let mut row = vec![
                Value::Key(&document.key),
                Value::Document {
                    id: overlap.id().get(),
                    key: overlap.key(),
                },
                Value::Similarity(Some(overlap.document_share())),
                Value::Count(overlap.shared_hashes().into()),
                Value::Count(longest_run(overlap)?),
            ];
            if arguments.spans {
                row.extend(passage_positions(passage.as_ref()).map(Value::Position));
            }
            report.row(&row)?;
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
    let window = arguments.window.unwrap_or(WINDOW_SHINGLES);
    let schema = Schema::builder()
        .text(Text::auto().with_length(words))
        .containment(Containment::new(words).window(window));
    Ok(schema.build()?)
}

/// Reads test sets into a store that is removed after this run.
fn read_tests(
    context: &Context,
    arguments: &DecontaminateArguments,
    schema: &Schema,
) -> Result<ScratchStore> {
    let window = arguments.window.unwrap_or(WINDOW_SHINGLES);
    let content = ContentRule::new(schema, false).found_by_windows(window);
    let corpora = &arguments.against;
    let corpus = resolve_corpus_to_store(context, corpora, &arguments.options, content, None)?;
    let corpus = Arc::new(corpus);
    let (scratch, filled) = ScratchStore::build_unnamed(context, |path| {
        let (folder, skip_bad) = (&context.temp_dir, arguments.options.skip_bad);
        let building = StoreBuilding::begin(context, path, folder, schema, skip_bad)?;
        fill(context, &corpus, building, schema, None)
    })?;
    context.counts(filled.tally.summary("test documents", filled.totals));
    Ok(scratch)
}

/// The columns of the report.
fn columns(arguments: &DecontaminateArguments) -> Vec<Column> {
    let mut columns =
        Column::list("dropped test test_share_estimate shared_hashes longest_run_estimate");
    if arguments.spans {
        columns.extend(Column::list("longest_run start end test_start test_end"));
    }
    columns
}
