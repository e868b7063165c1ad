//! The verb `query`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use itertools::Itertools as _;
use resemblance::schema::noun;
use resemblance::search::Scope;
use resemblance::{
    DocumentId, Filter, Fingerprint, Match, Matches, Schema, SearchOptions, Signature, Snapshot,
};
use resemblance_corpus::verification::{FeatureSets, SketchedText};

use crate::failure::{Outcome, Result};
use crate::options::{
    BoundOptions, ByOptions, CorpusOptions, FilterOptions, FormatOptions, euclidean,
    must_have_similarities, parse_key, similarity_name,
};
use crate::output::escape::{self, PrintedKey, printed};
use crate::output::{
    Column, ColumnKind, Results, Value, euclidean_column, euclidean_distance, nearness_columns,
};
use crate::session::{
    Context, CorpusDocuments, DocumentTally, MissingText, StoredTexts, find_document,
    must_take_text, open_to_read, read_text, resolve_corpus, taken_text,
};
use resemblance::invariant::{at, bug};
use resemblance_corpus::{ContentRule, CorpusDocument};

/// Find the near-duplicates of a text in a store
///
/// The text is an argument, a file, standard input, a document of the store (which is not its own match), or every
/// document of a corpus. tsv columns: key, similarity_estimate (six decimals; from the signatures), best first; with
/// SimHash alone the distance, with both families both. --corpus adds query as the first column: the key of the
/// document of the corpus. With --texts the column is named similarity, and a last column, similarity_is, is exact or
/// estimate. jsonl fields: query (with --corpus), id, key, similarity_estimate, distance.
///
/// --prefix, --older-than and --newer-than choose the documents that can match, as if the store held no others.
/// --limit and --budget count only these.
///
/// Without --nearest the matches are within the store's bounds, or --threshold and --distance; --limit only shortens
/// the list. --nearest N returns the N nearest documents at any distance.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance query seen.rsm 'some text to look for'
  resemblance query seen.rsm --file page.txt --limit 1
  curl -s https://example.org | resemblance query seen.rsm
  resemblance query seen.rsm --key https://example.org/ --threshold 0.95
  resemblance query seen.rsm --corpus more.jsonl --format jsonl
  resemblance query seen.rsm --file page.txt --newer-than 14d --limit 10 --stamps
  resemblance query seen.rsm --file page.txt --budget 1000
  resemblance query images.rsm --hash f8f8f0cee0f4a84f --distance 10
  resemblance query seen.rsm --file page.txt --nearest 10
  resemblance query seen.rsm --file page.txt --nearest 10 --texts corpus.jsonl
  resemblance query seen.rsm --file page.txt --within 0.2 --factor 1.5")]
pub(crate) struct QueryArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// The text, after -- if it begins with -. Without a text, or with - alone, standard input is read
    #[arg(conflicts_with_all = ["file", "key", "corpus", "escaped"])]
    text: Option<String>,
    /// A file that holds the text, in UTF-8; - for standard input
    #[arg(long, value_name = "F", conflicts_with_all = ["key", "corpus", "escaped"])]
    file: Option<PathBuf>,
    /// The key of a document of the store
    #[arg(
        long,
        value_name = "K",
        conflicts_with = "corpus",
        allow_hyphen_values = true
    )]
    key: Option<OsString>,
    /// A precomputed fingerprint, with the same number of hexadecimal digits as those of the store
    #[arg(long, value_name = "HEX", conflicts_with_all = ["text", "file", "key", "corpus", "escaped"])]
    hash: Option<Fingerprint>,
    /// Every document of these corpora (see resemblance --help)
    #[arg(long, value_name = "CORPUS", num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// The key is given as results print it, with escapes, or as \#ID
    #[arg(short, long, requires = "key", conflicts_with = "corpus")]
    escaped: bool,
    /// Print at most the N best matches (of each document)
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Return the N nearest documents at any distance, not only those within the bounds. If buckets do not find them
    /// with the probability --min-recall, all signatures are read
    #[arg(long, value_name = "N", group = "nearness", conflicts_with_all = BOUNDED)]
    nearest: Option<NonZeroUsize>,
    /// Return one document within C times the distance R (--factor sets C), or the probability that there is none
    /// within R. The distance is 1 - similarity, or the number of differing bits for SimHash
    #[arg(long, value_name = "R", group = "nearness", conflicts_with_all = BOUNDED)]
    within: Option<f64>,
    /// The factor C of --within [default: 1]
    #[arg(long, value_name = "C", requires = "within", conflicts_with_all = BOUNDED, conflicts_with = "nearest")]
    factor: Option<f64>,
    /// The probability with which a document as near as the last result must be found [default: 0.9]
    #[arg(long, value_name = "P", requires = "nearness")]
    min_recall: Option<f64>,
    /// The corpus from which the store was built, or a part of it: matches are chosen by exact similarity for documents
    /// whose texts are in it
    #[arg(long, value_name = "CORPUS", num_args = 1..)]
    texts: Vec<PathBuf>,
    #[command(flatten)]
    filter: FilterOptions,
    /// Also show the stamp of each match
    #[arg(long)]
    stamps: bool,
    /// Also show the payload of each match, in hexadecimal and, if it is UTF-8, as text
    #[arg(long)]
    payloads: bool,
    /// Never read all signatures: the result may have fewer documents, or miss some
    #[arg(long, requires = "nearness")]
    no_scan: bool,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    by: ByOptions,
    /// Compare with every document of the store: complete and slow, and allows any bound
    #[arg(long)]
    scan: bool,
    /// Compare with at most N candidates, those that share the most buckets with the text. This bounds the cost of a
    /// query if buckets are large. The candidates left out are counted
    #[arg(long, value_name = "N", conflicts_with = "scan")]
    budget: Option<NonZeroU64>,
    /// Accept a bound outside the schema of the store, at which a smaller share of the pairs is found
    #[arg(long)]
    accept_lower_recall: bool,
    #[command(flatten)]
    options: CorpusOptions,
    #[command(flatten)]
    format: FormatOptions<true>,
}

/// The options that require bounds, which the nearest documents do not have.
const BOUNDED: [&str; 7] = [
    "limit",
    "threshold",
    "euclidean",
    "distance",
    "scan",
    "budget",
    "accept_lower_recall",
];

/// The question that is asked about every document.
#[derive(Clone)]
struct Question {
    goal: QueryGoal,
    options: SearchOptions,
    filter: Option<Filter<'static>>,
}

/// The documents that are requested.
#[derive(Clone, Copy, PartialEq)]
enum QueryGoal {
    /// The matches within the bounds.
    Matches,
    /// This number of documents, however far they are.
    Nearest(usize),
    /// One within the factor times the radius.
    Within { radius: f64, factor: f64 },
}

impl Question {
    fn new(arguments: &QueryArguments) -> Result<Self> {
        let mut bounds = arguments.by.apply(arguments.bounds.bounds());
        bounds.accept_lower_recall |= arguments.accept_lower_recall;
        let mut options = SearchOptions::default();
        options.bounds = bounds;
        options.limit = arguments.limit;
        options.probe_budget = arguments.budget.map(NonZeroU64::get);
        options.scan = match (arguments.scan, arguments.no_scan) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        };
        options.min_recall = arguments.min_recall;
        options.with_payloads = arguments.payloads;
        Ok(Self {
            goal: match (arguments.within, arguments.nearest) {
                (Some(radius), _) => QueryGoal::Within {
                    radius,
                    factor: arguments.factor.unwrap_or(1.0),
                },
                (None, Some(n)) => QueryGoal::Nearest(n.get()),
                (None, None) => QueryGoal::Matches,
            },
            options,
            filter: arguments.filter.filter(false)?,
        })
    }

    /// Returns the answer for each document. If features are known, `similarity` computes the
    /// similarity of the document at an index and a stored one.
    fn ask(
        &self,
        snapshot: &Snapshot,
        signatures: &[Signature],
        known: Option<&FeatureSets>,
        similarity: ExactSimilarity<'_>,
    ) -> Result<Vec<Matches>> {
        let exact = known.map(|known| move |index: usize, id| similarity(known, index, id));
        let n = match self.goal {
            QueryGoal::Matches => {
                let mut query = snapshot.query(signatures).options(self.options);
                if let Some(filter) = &self.filter {
                    query = query.filter(filter.clone());
                }
                if let Some(exact) = exact {
                    query = query.verify(exact);
                }
                return Ok(query.run()?);
            }
            QueryGoal::Nearest(n) => n,
            QueryGoal::Within { .. } => 1,
        };
        let mut nearest = snapshot.nearest(signatures, n).options(self.options);
        if let Some(filter) = &self.filter {
            nearest = nearest.filter(filter.clone());
        }
        if let Some(exact) = exact {
            nearest = nearest.verify(exact);
        }
        Ok(match self.goal {
            QueryGoal::Within { radius, factor } => nearest.within(radius, factor)?,
            _ => nearest.run()?,
        })
    }

    /// Asks the question about one document.
    fn ask_one(
        &self,
        snapshot: &Snapshot,
        signature: &Signature,
        known: Option<&FeatureSets>,
        similarity: ExactSimilarity<'_>,
    ) -> Result<Matches> {
        let one = std::slice::from_ref(signature);
        let mut answers = self.ask(snapshot, one, known, similarity)?;
        Ok(answers
            .pop()
            .ok_or_else(|| bug("a question without an answer"))?)
    }
}

/// The exact similarity of the document at an index and a stored one, if the text of that is known.
type ExactSimilarity<'e> =
    &'e dyn Fn(&FeatureSets, usize, DocumentId) -> resemblance::Result<Option<f64>>;

pub(crate) fn query(context: &Context, arguments: &QueryArguments) -> Result<Outcome> {
    let store = open_to_read(context, &arguments.store)?;
    arguments.bounds.must_suit(store.schema())?;
    if !(arguments.scan || arguments.accept_lower_recall) {
        let is_found = arguments.bounds.must_be_found(store.schema());
        is_found.map_err(|error| error.with_note("--accept-lower-recall or --scan allows it"))?;
    }
    arguments.by.must_suit(store.schema())?;
    let snapshot = store.snapshot()?;
    let question = Question::new(arguments)?;
    let known = known_features(context, arguments, &snapshot)?;
    if !arguments.corpus.is_empty() {
        return query_corpus(context, arguments, &snapshot, question, known);
    }
    let matches: Vec<Match> = match &arguments.key {
        Some(key) => {
            let key = parse_key(key, arguments.escaped)?;
            match matches_of_key(context, &snapshot, &key, &question, known.as_ref())? {
                Some(matches) => matches,
                None => {
                    let key = printed(&key);
                    context.note(format!("no document has the key {key}"));
                    return Ok(Outcome::Nothing);
                }
            }
        }
        None => matches_of_text(context, arguments, &snapshot, &question, known.as_ref())?,
    };
    let is_exact = known.is_some() || store.schema().is_exact();
    let columns = columns(arguments, &snapshot, is_exact);
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let found = !matches.is_empty();
    for found in matches {
        results.row(&match_values(
            arguments,
            store.schema(),
            None,
            &found,
            is_exact,
        ))?;
    }
    results.finish()?;
    Ok(Outcome::found(found))
}

/// Returns the features of the stored documents, if their texts are available.
fn known_features(
    context: &Context,
    arguments: &QueryArguments,
    snapshot: &Snapshot,
) -> Result<Option<FeatureSets>> {
    let is_exact = !arguments.texts.is_empty();
    let Some(mut features) = context.features(is_exact) else {
        return Ok(None);
    };
    must_have_similarities("--texts", snapshot.schema())?;
    let texts = StoredTexts {
        store: &arguments.store,
        snapshot,
        texts: &arguments.texts,
        options: &arguments.options,
        missing: MissingText::IsEstimated,
    };
    texts.read(context, &mut features)?;
    Ok(Some(features))
}

fn matches_of_text(
    context: &Context,
    arguments: &QueryArguments,
    snapshot: &Snapshot,
    question: &Question,
    known: Option<&FeatureSets>,
) -> Result<Vec<Match>> {
    let sketched = match arguments.hash {
        Some(fingerprint) => SketchedText {
            signature: Signature::from_fingerprint(fingerprint),
            features: Arc::default(),
        },
        None => {
            must_take_text(snapshot.schema())?;
            let text = taken_text(snapshot.schema(), text_of(context, arguments)?)?;
            SketchedText::new(&snapshot.schema().sketcher(), true, &text)?
        }
    };
    let signature = &sketched.signature;
    if signature.is_empty() {
        context.note("the text has no features, so it has no near-duplicates");
    }
    // A ready-made fingerprint has no features.
    let comparable = known.filter(|_| arguments.hash.is_none());
    let matches = question.ask_one(snapshot, signature, comparable, &|known, _, id| {
        known.similarity_to(&sketched.features, id)
    })?;
    if sketched.features.len() == 1 {
        context.note("the text has one shingle, so only texts with the same one are found");
    }
    explain(context, question, &matches);
    let is_bounded = question.goal == QueryGoal::Matches;
    if matches.is_empty() && !signature.is_empty() && is_bounded {
        print_nearest(context, snapshot, signature, &question.filter, None)?;
    }
    Ok(matches.into_iter().collect())
}

fn columns(arguments: &QueryArguments, snapshot: &Snapshot, is_exact: bool) -> Vec<Column> {
    let query = (!arguments.corpus.is_empty()).then(|| Column::new("query"));
    let nearness = nearness_columns(snapshot.schema(), similarity_name(is_exact));
    let columns = query
        .into_iter()
        .chain([Column::of("key", ColumnKind::Document)]);
    let how = is_exact.then(|| Column::new("similarity_is"));
    let stamps = arguments.stamps.then(|| Column::new("stamp"));
    let payloads = arguments
        .payloads
        .then(|| Column::list("payload_hex payload"));
    let euclidean = euclidean(snapshot.schema()).map(|_| euclidean_column());
    let named = columns
        .chain(nearness)
        .chain(euclidean)
        .chain(how)
        .chain(stamps);
    named.chain(payloads.into_iter().flatten()).collect()
}

/// A row; the key of the document that asks is in front if there are several.
fn match_values<'a>(
    arguments: &QueryArguments,
    schema: &Schema,
    query: Option<&'a [u8]>,
    found: &'a Match,
    is_exact: bool,
) -> Vec<Value<'a>> {
    let document = Value::document(found.id(), found.key());
    let mut values: Vec<Value<'_>> = query.map(Value::Key).into_iter().collect();
    values.extend([
        document,
        Value::Similarity(found.similarity()),
        Value::Distance(found.distance()),
    ]);
    values.extend(euclidean(schema).map(|vector| euclidean_distance(vector, found.similarity())));
    if is_exact {
        values.push(Value::Text(match found.is_exact() {
            true => "exact",
            false => "estimate",
        }));
    }
    if arguments.stamps {
        values.push(Value::Stamp(found.stamp()));
    }
    if let Some(payload) = found.payload() {
        values.push(Value::Bytes(payload));
        values.push(Value::OptionalText(std::str::from_utf8(payload).ok()));
    }
    values
}

fn explain(context: &Context, question: &Question, matches: &Matches) {
    let scope = match matches.scope() {
        Scope::Scan => "every document was compared",
        Scope::ShortBuckets => "documents that share the first rows of a band were compared",
        _ => "candidates were compared",
    };
    let subject = match question.goal {
        QueryGoal::Matches => "a document",
        QueryGoal::Nearest(_) => "with the last one as the bound, a document",
        QueryGoal::Within { .. } => "with --within as the bound, a document",
    };
    let (count, certainty) = (matches.candidates(), matches.certainty());
    context.detail(format!("{scope}: {count}; {subject} {certainty}"));
    explain_nearest(context, question, matches);
    if let Some(beyond) = matches.budget_exceeded() {
        context.note(format!(
            "the budget left out {beyond} {} of the same buckets, which may be more similar",
            noun(beyond.documents, "document")
        ));
    }
}

/// Prints what an answer of the nearest may miss.
fn explain_nearest(context: &Context, question: &Question, matches: &Matches) {
    let recall = matches.recall().unwrap_or(1.0);
    match question.goal {
        QueryGoal::Within { radius, .. } if matches.is_empty() => {
            context.note(format!(
                "no document is within {radius}: one would have been found with probability {recall:.3}"
            ));
        }
        QueryGoal::Nearest(n)
            if question.options.scan == Some(false)
                && matches.scope() != Scope::Scan
                && matches.len() < n =>
        {
            let found = matches.len();
            context.note(format!(
                "found {found} of {n} without reading all signatures"
            ));
        }
        _ => {}
    }
}

/// Prints, if nothing matches, the nearest document other than the document itself.
fn print_nearest(
    context: &Context,
    snapshot: &Snapshot,
    signature: &Signature,
    filter: &Option<Filter<'static>>,
    own: Option<DocumentId>,
) -> Result<()> {
    // A hint is not worth a scan.
    let mut nearest = snapshot.nearest(signature, 2).without_scan();
    if let Some(filter) = filter {
        nearest = nearest.filter(filter.clone());
    }
    let nearest = nearest.run()?;
    let mut others = nearest.into_iter().filter(|found| Some(found.id()) != own);
    let Some(nearest) = others.next() else {
        let note = match snapshot.is_empty() {
            true => "no match: the store is empty",
            false => {
                "no match: no document shares a bucket with the text; --nearest 1 finds the nearest \
                 document, and --scan compares with all"
            }
        };
        context.note(note);
        return Ok(());
    };
    let key = match nearest.key() {
        Some(key) => escape::key(key).into_owned(),
        None => escape::without_key(nearest.id().get()),
    };
    let similarity = nearest.similarity().map(|s| format!(" similarity {s:.6}"));
    let distance = nearest.distance().map(|d| format!(" distance {d}"));
    let nearness = similarity.into_iter().chain(distance).join(",");
    context.note(format!(
        "no match: the nearest candidate is {key}, with{nearness}"
    ));
    Ok(())
}

/// Returns the matches of a document of the store, without itself; `None` if there is no such
/// document.
fn matches_of_key(
    context: &Context,
    snapshot: &Snapshot,
    key: &PrintedKey,
    question: &Question,
    known: Option<&FeatureSets>,
) -> Result<Option<Vec<Match>>> {
    let Some(record) = find_document(snapshot, key)? else {
        return Ok(None);
    };
    let own = record.id();
    let mut of_others = question.clone();
    of_others.options.exclude = Some(own);
    let matches = of_others.ask_one(snapshot, record.signature(), known, &|known, _, id| {
        known.similarity(own, id)
    })?;
    explain(context, question, &matches);
    let signature = record.signature();
    if matches.is_empty() && !signature.is_empty() && question.goal == QueryGoal::Matches {
        print_nearest(context, snapshot, signature, &question.filter, Some(own))?;
    }
    Ok(Some(matches.into_iter().collect()))
}

fn text_of(context: &Context, arguments: &QueryArguments) -> Result<String> {
    if let Some(text) = arguments.text.as_ref().filter(|text| *text != "-") {
        if Path::new(text).exists() {
            context.note(format!(
                "searching for the text {text}, which is also the name of a file: --file {text} searches \
                 for the contents of the file, and --corpus {text} for each of its documents"
            ));
        }
        return Ok(text.clone());
    }
    let file = arguments
        .file
        .as_deref()
        .filter(|path| path.as_os_str() != "-");
    if file.is_none() && std::io::stdin().is_terminal() {
        context.note("reading the text from standard input");
    }
    let shown = file.map_or("-".into(), |path| path.display().to_string());
    let corpus = format!("--corpus {shown} searches for each of its documents");
    read_text(context, file, arguments.options.max_line_bytes(), &corpus)
}

fn query_corpus(
    context: &Context,
    arguments: &QueryArguments,
    snapshot: &Snapshot,
    question: Question,
    known: Option<FeatureSets>,
) -> Result<Outcome> {
    let is_exact = known.is_some() || snapshot.schema().is_exact();
    let corpus = Arc::new(resolve_corpus(
        context,
        &arguments.corpus,
        &arguments.options,
        ContentRule::new(snapshot.schema(), is_exact),
    )?);
    let searched = snapshot.clone();
    let mut items =
        CorpusDocuments::start_together(context, "querying", &corpus, move |documents| {
            query_together(&searched, documents, &question, known.as_ref())
        });
    let columns = columns(arguments, snapshot, is_exact);
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let mut tally = DocumentTally::default();
    let skip_bad = arguments.options.skip_bad;
    while let Some(document) =
        items.next_good_while(context, &mut tally, skip_bad, &mut || results.pass_on())?
    {
        let (is_empty, matches) = document.value;
        tally.empty += u64::from(is_empty);
        tally.kept += u64::from(!matches.is_empty());
        tally.budget_exceeded += u64::from(matches.budget_exceeded().is_some());
        for found in matches {
            results.row(&match_values(
                arguments,
                snapshot.schema(),
                Some(&document.key),
                &found,
                is_exact,
            ))?;
        }
    }
    results.finish()?;
    let totals = items.end(context, &tally)?;
    context.counts(tally.summary("with matches", totals));
    Ok(Outcome::found(tally.kept > 0))
}

/// The answers for documents of a corpus, and whether each document is without features.
fn query_together(
    snapshot: &Snapshot,
    documents: &[CorpusDocument<'_>],
    question: &Question,
    known: Option<&FeatureSets>,
) -> Result<Vec<(bool, Matches)>> {
    let sketcher = snapshot.schema().sketcher();
    let (mut signatures, mut features) = (Vec::new(), Vec::new());
    for document in documents {
        let sketched = document.content.sketch(&sketcher, known.is_some())?;
        signatures.push(sketched.signature);
        features.push(sketched.features);
    }
    let answers = question.ask(snapshot, &signatures, known, &|known, index, id| {
        known.similarity_to(at(&features, index)?, id)
    })?;
    let empty = signatures.iter().map(Signature::is_empty);
    Ok(empty.zip(answers).collect())
}
