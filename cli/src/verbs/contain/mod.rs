//! The verb `contain`.

mod boilerplate;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use itertools::izip;
use resemblance::exact::span_of_shingles;
use resemblance::{ContainmentQuery, Filter, Overlap, Overlaps, Schema, Signature, Snapshot};

use self::boilerplate::list_boilerplate;
use crate::failure::{Failure, Outcome, Result};
use crate::options::{CorpusOptions, FilterOptions, FormatOptions, PassageOptions};
use crate::output::{Column, Counted, Results, Value, longest_run, passage_positions};
use crate::session::{
    Context, CorpusDocuments, DocumentTally, KnownTexts, open_to_read, resolve_corpus,
    sketch_documents,
};
use resemblance_corpus::{ContentRule, CorpusDocument};

/// The documents of the store to find
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Documents that contain the text
    Containing,
    /// Documents that the text contains
    Contained,
    /// Documents that share any passage with the text
    Overlapping,
}

/// Find the documents of a store that share passages with a text
///
/// The store must keep hashes of shingles: create or build it with --containment K. Every document that shares a
/// passage of at least W + K - 1 words or characters with a text is found, unless --max-frequency ignores its hashes.
/// tsv columns: query (the key of the text), key, query_share_estimate (the share of the text that the document
/// contains; six decimals; from hashes), document_share_estimate, shared_hashes, longest_run_estimate (in shingles of
/// the text); those that share most come first. jsonl has the id as well. --texts, the corpus from which the store was
/// built, adds the longest shared passage, compared exactly: longest_run (in shingles), and its position in bytes, from
/// 0: query_start, query_end, start, end (empty if the text of a document is not available). Without --texts, a store
/// that keeps positions (--positions) adds the longest passage that its hashes show: longest_run, query_start and
/// query_end in bytes, and start_unit and end_unit, the words (or characters, or code tokens) of the document, from 0.
///
/// --prefix, --older-than and --newer-than choose the documents to find, as if the store held no others. --limit,
/// --max-frequency and --boilerplate count only these.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance build pages.rsm pages.jsonl --containment 5 --window 8
  resemblance contain --in pages.rsm --query paragraphs.jsonl
  resemblance contain --in pages.rsm --query paragraphs.jsonl --texts pages.jsonl
  resemblance contain --in pages.rsm --query tests.jsonl --which overlapping --min-shared 3
  resemblance contain --in tests.rsm --query pages.jsonl --which contained --min-share 0.9
  resemblance contain --in pages.rsm --query pages.jsonl --boilerplate 1000")]
pub(crate) struct ContainArguments {
    /// The store
    #[arg(long = "in", value_name = "STORE")]
    pub(crate) store: PathBuf,
    /// The texts: JSON Lines files, tables, folders or - (see resemblance --help)
    #[arg(long, value_name = "CORPUS", num_args = 1.., required = true)]
    query: Vec<PathBuf>,
    /// The documents of the store to find
    #[arg(long, value_name = "WHICH", default_value = "containing")]
    which: Which,
    /// Minimum share of the text, 0 to 1; with --which contained, of the document [default: 0.8; 0 with --which
    /// overlapping]
    #[arg(long, value_name = "S")]
    min_share: Option<f64>,
    /// The corpus from which the store was built, or a part of it: the longest shared passage is reported with its
    /// positions. The texts are held in memory, up to half of --memory
    #[arg(long, value_name = "CORPUS", num_args = 1..)]
    texts: Vec<PathBuf>,
    /// Print at most N documents for each text, those that share most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Instead of documents, list the passages of the texts that more than N documents of the store have, such as menus
    /// and licences, each once: query (the first text that has it), start, end (its position there in bytes),
    /// documents, shingles, passage. When you search for documents, --max-frequency N ignores such passages
    #[arg(long, value_name = "N", conflicts_with_all = ["which", "min_share", "limit", "texts", "min_shared", "max_frequency"])]
    boilerplate: Option<u64>,
    /// Also show the stamp of each document
    #[arg(long, conflicts_with = "boilerplate")]
    stamps: bool,
    #[command(flatten)]
    filter: FilterOptions,
    #[command(flatten)]
    passages: PassageOptions,
    #[command(flatten)]
    options: CorpusOptions,
    #[command(flatten)]
    format: FormatOptions,
}

/// The question that is asked about every text.
#[derive(Clone)]
struct PassageQuestion {
    which: Which,
    min_share: Option<f64>,
    limit: Option<usize>,
    passages: PassageOptions,
    filter: Option<Filter<'static>>,
}

impl PassageQuestion {
    fn run(&self, snapshot: &Snapshot, signatures: &[Signature]) -> Result<Vec<Overlaps>> {
        let query: ContainmentQuery<'_, Vec<Overlaps>> = match self.which {
            Which::Containing => snapshot.contained_in(signatures),
            Which::Contained => snapshot.contents_of(signatures),
            Which::Overlapping => snapshot.overlaps(signatures),
        };
        let mut query = self.passages.apply(query, self.min_share).threads(1);
        if let Some(filter) = &self.filter {
            query = query.filter(filter.clone());
        }
        if let Some(limit) = self.limit {
            query = query.limit(limit);
        }
        Ok(query.run()?)
    }
}

/// An error if a store has not what shared passages are found by.
pub(super) fn must_have_passages(path: &Path, schema: &Schema) -> Result<()> {
    match schema.containment() {
        Some(_) => Ok(()),
        None => Err(Failure::usage(format!(
            "{} keeps no hashes of shingles, so shared passages cannot be found",
            path.display()
        ))
        .with_note("build it with --containment K")),
    }
}

pub(crate) fn contain(context: &Context, arguments: &ContainArguments) -> Result<Outcome> {
    let store = open_to_read(context, &arguments.store)?;
    let snapshot = store.snapshot()?;
    let question = PassageQuestion {
        which: arguments.which,
        min_share: arguments.min_share,
        limit: arguments.limit,
        passages: arguments.passages,
        filter: arguments.filter.filter(false)?,
    };
    must_have_passages(&arguments.store, store.schema())?;
    // An impossible question is reported before the corpus is read.
    question.run(&snapshot, &[])?;
    let (texts, options) = (&arguments.texts, &arguments.options);
    let read_known = || KnownTexts::read(context, texts, options, store.schema());
    let known = (!texts.is_empty()).then(read_known).transpose()?;
    let places = PassagePlaces::new(store.schema(), known);
    let names = places.names();
    let content = ContentRule::new(store.schema(), false);
    let corpus = resolve_corpus(context, &arguments.query, &arguments.options, content)?;
    let corpus = Arc::new(corpus);
    if let Some(documents) = arguments.boilerplate {
        return list_boilerplate(context, arguments, &store, &corpus, documents);
    }
    let sketcher = store.sketcher().clone();
    let mut items =
        CorpusDocuments::start_together(context, "querying", &corpus, move |documents| {
            let signatures = sketch_documents(&sketcher, documents)?;
            let answers = question.run(&snapshot, &signatures)?;
            izip!(documents, signatures, answers)
                .map(|(document, signature, overlaps)| {
                    AnsweredText::new(document, &signature, overlaps, &places)
                })
                .collect()
        });
    let mut columns = Column::list(
        "query key query_share_estimate document_share_estimate shared_hashes longest_run_estimate",
    );
    columns.extend(names.iter().copied().map(Column::new));
    columns.extend(arguments.stamps.then(|| Column::new("stamp")));
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let (mut tally, mut capped) = (DocumentTally::default(), 0_u64);
    let skip_bad = arguments.options.skip_bad;
    while let Some(document) =
        items.next_good_while(context, &mut tally, skip_bad, &mut || results.pass_on())?
    {
        let answered: AnsweredText = document.value;
        tally.empty += u64::from(answered.is_empty);
        tally.kept += u64::from(!answered.overlaps.is_empty());
        capped += u64::from(answered.overlaps.capped_hashes() > 0);
        for (overlap, passage) in answered.overlaps.iter().zip(&answered.passages) {
            let row = row(&document.key, overlap)?.into_iter();
            let positions = passage.map(Value::Position).into_iter();
            let mut row: Vec<Value<'_>> = row.chain(positions.take(names.len())).collect();
            row.extend(arguments.stamps.then(|| Value::Stamp(overlap.stamp())));
            results.row(&row)?;
        }
    }
    results.finish()?;
    let totals = items.end(context, &tally)?;
    if capped > 0 {
        context.note(format!(
            "--max-frequency ignored hashes of {}: more documents may share passages with them",
            Counted(capped, "text")
        ));
    }
    context.counts(tally.summary("with documents", totals));
    Ok(Outcome::found(tally.kept > 0))
}

/// The answer for one text.
struct AnsweredText {
    is_empty: bool,
    overlaps: Overlaps,
    /// The length and the places of the longest shared passage with each document, as far as they
    /// are known.
    passages: Vec<[Option<usize>; 5]>,
}

impl AnsweredText {
    fn new(
        document: &CorpusDocument<'_>,
        signature: &Signature,
        overlaps: Overlaps,
        places: &PassagePlaces,
    ) -> Result<Self> {
        let passage = |overlap| places.of(document.content.text(), overlap);
        Ok(Self {
            is_empty: signature.is_empty(),
            passages: overlaps.iter().map(passage).collect::<Result<_>>()?,
            overlaps,
        })
    }
}

/// The source of the places of passages.
enum PassagePlaces {
    Unknown,
    /// Places known from both texts.
    OfTexts(KnownTexts),
    /// Places known from the positions that the store keeps, and from the query text.
    OfHashes(Schema),
}

impl PassagePlaces {
    fn new(schema: &Schema, known: Option<KnownTexts>) -> Self {
        let has_positions = schema.containment().is_some_and(|it| it.has_positions());
        match known {
            Some(known) => Self::OfTexts(known),
            None if has_positions => Self::OfHashes(schema.clone()),
            None => Self::Unknown,
        }
    }

    /// The names of their columns.
    fn names(&self) -> &'static [&'static str] {
        match self {
            Self::Unknown => &[],
            Self::OfTexts(_) => &["longest_run", "query_start", "query_end", "start", "end"],
            Self::OfHashes(_) => &[
                "longest_run",
                "query_start",
                "query_end",
                "start_unit",
                "end_unit",
            ],
        }
    }

    /// The length of the longest passage in shingles, and where it begins and ends in both.
    fn of(&self, text: Option<&str>, found: &Overlap) -> Result<[Option<usize>; 5]> {
        match self {
            Self::Unknown => Ok([None; 5]),
            Self::OfTexts(known) => {
                let passage = match text {
                    Some(text) => known.passage(text, found)?,
                    None => None,
                };
                Ok(passage_positions(passage.as_ref()))
            }
            Self::OfHashes(schema) => {
                let passages = found.passages().unwrap_or(&[]).iter();
                // Among passages of the same length, the first one.
                let longest = passages.rev().max_by_key(|passage| passage.query.len());
                let Some(longest) = longest else {
                    return Ok([None; 5]);
                };
                let span = match text.zip(schema.containment_text()) {
                    Some((text, cut)) => span_of_shingles(&cut, text, longest.query.clone())?,
                    None => None,
                };
                let units = schema.containment().map_or(1, |it| it.shingle_units());
                Ok([
                    Some(longest.query.len()),
                    span.as_ref().map(|span| span.start),
                    span.map(|span| span.end),
                    Some(longest.document.start),
                    Some(longest.document.end + usize::from(units) - 1),
                ])
            }
        }
    }
}

fn row<'v>(query: &'v [u8], overlap: &'v Overlap) -> Result<[Value<'v>; 6]> {
    Ok([
        Value::Key(query),
        Value::document(overlap.id(), overlap.key()),
        Value::Similarity(Some(overlap.query_share())),
        Value::Similarity(Some(overlap.document_share())),
        Value::Count(overlap.shared_hashes().into()),
        Value::Count(longest_run(overlap)?),
    ])
}
