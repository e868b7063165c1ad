//! The verb `query`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use resemblance::verification::{FeatureSets, SketchedText};
use resemblance::{
    Bounds, DocumentId, Family, Fingerprint, Match, Matches, Nearest, Query, Scope, Signature,
    Snapshot,
};

use crate::bug::at;
use crate::failure::{Failure, Outcome, Result};
use crate::options::{
    BoundOptions, ByOptions, CorpusOptions, TypedFormatOptions, must_have_similarities, parse_key,
    similarity_name,
};
use crate::output::escape::{self, PrintedKey, printed};
use crate::output::{Column, ColumnKind, Results, Value, nearness_columns};
use crate::session::{
    Context, CorpusDocuments, DocumentTally, NamedStore, must_take_text, open_to_read, read_text,
    resolve_corpus, taken_text,
};
use resemblance_corpus::{ContentRule, CorpusDocument};

/// Find the documents of a store that are like a text
///
/// The text is an argument, a file, standard input, a document of the store (which itself is left
/// out), or every document of a corpus. tsv columns: key, similarity_estimate (six decimals; from
/// the signatures), best first; with SimHash alone the distance, with both families both. With
/// --corpus a first column, query, has the key of the corpus's document. With --texts the column is called
/// similarity, and a last one, similarity_is, says exact or estimate. jsonl fields: query (with
/// --corpus), id, key, similarity_estimate, distance.
///
/// Without --nearest the matches are within the store's bounds, or --threshold and --distance; --limit
/// only cuts their list. --nearest N answers with the N nearest documents, however far they are.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance query seen.rsm 'some text to look for'
  resemblance query seen.rsm --file page.txt --limit 1
  curl -s https://example.org | resemblance query seen.rsm
  resemblance query seen.rsm --key https://example.org/ --threshold 0.95
  resemblance query seen.rsm --corpus more.jsonl --format jsonl
  resemblance query seen.rsm --file page.txt --budget 1000
  resemblance query images.rsm --hash f8f8f0cee0f4a84f --distance 10
  resemblance query seen.rsm --file page.txt --nearest 10
  resemblance query seen.rsm --file page.txt --nearest 10 --texts corpus.jsonl
  resemblance query seen.rsm --file page.txt --within 0.2 --factor 1.5")]
pub(crate) struct QueryArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// The text, after -- if it begins with -; without it, or with - alone, standard input
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
    /// A ready-made fingerprint, in as many hexadecimal digits as the store's have
    #[arg(long, value_name = "HEX", conflicts_with_all = ["text", "file", "key", "corpus", "escaped"])]
    hash: Option<Fingerprint>,
    /// Every document of these corpora (see resemblance --help)
    #[arg(long, value_name = "CORPUS", num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// The key is given as results print it: with escapes, or as \#ID
    #[arg(short, long, requires = "key", conflicts_with = "corpus")]
    escaped: bool,
    /// At most N matches, the best ones (of each document)
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// The N nearest documents, however far they are: not only those within the bounds, as --limit has
    /// them. Where buckets do not find them with the probability --min-recall, all signatures are read
    #[arg(long, value_name = "N", conflicts_with_all = BOUNDED)]
    nearest: Option<usize>,
    /// One document within C times the distance R, where --factor sets C; or none if there is none within R,
    /// told with its probability. The distance is 1 - similarity, or differing bits for SimHash
    #[arg(long, value_name = "R", conflicts_with_all = BOUNDED, conflicts_with = "nearest")]
    within: Option<f64>,
    /// See --within [default: 1]
    #[arg(long, value_name = "C", requires = "within")]
    factor: Option<f64>,
    /// The probability with which a document as near as the last one must be found [default: 0.9]
    #[arg(long, value_name = "P")]
    min_recall: Option<f64>,
    /// The corpus that the store was made of, or a part of it: the similarities to documents whose texts
    /// are there are exact, and decide
    #[arg(long, value_name = "CORPUS", num_args = 1..)]
    texts: Vec<PathBuf>,
    /// Do not read all signatures: the answer may have fewer documents, or miss some
    #[arg(long)]
    no_scan: bool,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    by: ByOptions,
    /// Compare with every document of the store: complete, slow, and with any bound
    #[arg(long)]
    scan: bool,
    /// Compare with at most N candidates, those that share the most buckets with the text. This bounds
    /// the cost of a query where buckets are large. The candidates left out are counted
    #[arg(long, value_name = "N", conflicts_with = "scan")]
    budget: Option<NonZeroU64>,
    /// Accept a bound beyond that of the store, where a smaller share of the pairs is found
    #[arg(long)]
    accept_lower_recall: bool,
    #[command(flatten)]
    options: CorpusOptions,
    #[command(flatten)]
    format: TypedFormatOptions,
}

/// The options that bounds go with, and the nearest do not.
const BOUNDED: [&str; 6] = [
    "limit",
    "threshold",
    "distance",
    "scan",
    "budget",
    "accept_lower_recall",
];

/// What is asked about every document.
#[derive(Clone, Copy)]
enum Question {
    Bounded(StoreQuestion),
    Nearest(NearestQuestion),
}

impl Question {
    fn new(arguments: &QueryArguments) -> Result<Self> {
        if let Some(nearest) = NearestQuestion::new(arguments) {
            return Ok(Self::Nearest(nearest));
        }
        for (option, is_given) in [
            ("--min-recall", arguments.min_recall.is_some()),
            ("--no-scan", arguments.no_scan),
        ] {
            if is_given {
                let usage = format!("{option} goes with --nearest or --within");
                return Err(Failure::usage(usage));
            }
        }
        Ok(Self::Bounded(StoreQuestion::new(arguments)))
    }

    fn about(self, snapshot: &Snapshot, asked: &Asked<'_>) -> Result<Matches> {
        let signature = asked.signature;
        match self {
            Self::Bounded(question) => {
                let mut query = question.about(snapshot.query(signature));
                if question.scan {
                    query = query.scan();
                }
                if let Some(id) = asked.own {
                    query = query.excluding(id);
                }
                if let Some(features) = asked.known {
                    query = query.verify(|id| asked.similarity_to(features, id));
                }
                Ok(query.run()?)
            }
            Self::Nearest(question) => {
                let mut nearest = question.about(snapshot.nearest(signature, question.n()));
                if let Some(id) = asked.own {
                    nearest = nearest.excluding(id);
                }
                if let Some(features) = asked.known {
                    nearest = nearest.verify(|id| asked.similarity_to(features, id));
                }
                Ok(match question.goal {
                    Goal::First(_) => nearest.run()?,
                    Goal::Within { radius, factor } => nearest.within(radius, factor)?,
                })
            }
        }
    }

    /// The answer for each document, without a scan for what is within bounds.
    fn about_many(
        self,
        snapshot: &Snapshot,
        signatures: &[Signature],
        exact: Option<&ExactOfMany<'_>>,
    ) -> Result<Vec<Matches>> {
        Ok(match self {
            Self::Bounded(question) => {
                let mut query = question.about(snapshot.query(signatures));
                if let Some(exact) = exact {
                    query = query.verify(exact);
                }
                query.run()?
            }
            Self::Nearest(question) => {
                let mut nearest = question.about(snapshot.nearest(signatures, question.n()));
                if let Some(exact) = exact {
                    nearest = nearest.verify(exact);
                }
                match question.goal {
                    Goal::First(_) => nearest.run()?,
                    Goal::Within { radius, factor } => nearest.within(radius, factor)?,
                }
            }
        })
    }
}

/// Says how alike the document at an index and a stored one are.
type ExactOfMany<'e> = dyn Fn(usize, DocumentId) -> resemblance::Result<Option<f64>> + 'e;

/// A document that is asked about.
struct Asked<'a> {
    signature: &'a Signature,
    /// Those of its text, sorted.
    features: &'a [u64],
    /// Its id, if it is stored: then its features are among those that are known.
    own: Option<DocumentId>,
    /// The features of the stored documents, if similarities are to be exact.
    known: Option<&'a FeatureSets>,
}

impl Asked<'_> {
    fn similarity_to(
        &self,
        known: &FeatureSets,
        id: DocumentId,
    ) -> resemblance::Result<Option<f64>> {
        match self.own {
            Some(own) => known.similarity(own, id),
            None => known.similarity_to(self.features, id),
        }
    }
}

/// Which documents are the nearest.
#[derive(Clone, Copy)]
enum Goal {
    First(usize),
    Within { radius: f64, factor: f64 },
}

/// What is asked about every document with --nearest or --within.
#[derive(Clone, Copy)]
struct NearestQuestion {
    goal: Goal,
    by: Option<Family>,
    min_recall: Option<f64>,
    scans: bool,
}

impl NearestQuestion {
    fn new(arguments: &QueryArguments) -> Option<Self> {
        let within = arguments.within.map(|radius| Goal::Within {
            radius,
            factor: arguments.factor.unwrap_or(1.0),
        });
        Some(Self {
            goal: within.or(arguments.nearest.map(Goal::First))?,
            by: arguments.by.family(),
            min_recall: arguments.min_recall,
            scans: !arguments.no_scan,
        })
    }

    fn n(self) -> usize {
        match self.goal {
            Goal::First(n) => n,
            Goal::Within { .. } => 1,
        }
    }

    fn about<A>(self, mut nearest: Nearest<'_, A>) -> Nearest<'_, A> {
        if let Some(by) = self.by {
            nearest = nearest.by(by);
        }
        if let Some(probability) = self.min_recall {
            nearest = nearest.min_recall(probability);
        }
        if !self.scans {
            nearest = nearest.without_scan();
        }
        nearest
    }
}

/// What is asked about every document within bounds.
#[derive(Clone, Copy)]
struct StoreQuestion {
    bounds: Bounds,
    limit: Option<usize>,
    scan: bool,
    budget: Option<NonZeroU64>,
}

impl StoreQuestion {
    fn new(arguments: &QueryArguments) -> Self {
        let mut bounds = arguments.by.apply(arguments.bounds.bounds());
        if arguments.accept_lower_recall {
            bounds = bounds.accept_lower_recall();
        }
        Self {
            bounds,
            limit: arguments.limit,
            scan: arguments.scan,
            budget: arguments.budget,
        }
    }

    fn about<A>(self, query: Query<'_, A>) -> Query<'_, A> {
        let mut query = query.bounds(self.bounds);
        if let Some(limit) = self.limit {
            query = query.limit(limit);
        }
        if let Some(budget) = self.budget {
            query = query.probe_budget(budget.get());
        }
        query
    }
}

pub(crate) fn query(context: &Context, arguments: &QueryArguments) -> Result<Outcome> {
    let store = open_to_read(context, &arguments.store)?;
    arguments.bounds.must_suit(store.schema())?;
    let snapshot = store.snapshot()?;
    let question = Question::new(arguments)?;
    let known = known_features(context, arguments, &snapshot)?;
    if !arguments.corpus.is_empty() {
        return query_corpus(context, arguments, &snapshot, question, known);
    }
    let matches: Vec<Match> = match &arguments.key {
        Some(key) => {
            let key = parse_key(key, arguments.escaped)?;
            match matches_of_key(context, &snapshot, &key, question, known.as_ref())? {
                Some(matches) => {
                    if matches.is_empty() && matches!(question, Question::Bounded(_)) {
                        tell_nearest_to_key(context, &snapshot, &key)?;
                    }
                    matches
                }
                None => {
                    let key = printed(&key);
                    context.note(format!("no document has the key {key}"));
                    return Ok(Outcome::Nothing);
                }
            }
        }
        None => matches_of_text(context, arguments, &snapshot, question, known.as_ref())?,
    };
    let columns = columns(&snapshot, false, known.is_some());
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let found = !matches.is_empty();
    for found in matches {
        results.row(&match_values(None, &found, known.is_some()))?;
    }
    results.finish()?;
    Ok(Outcome::found(found))
}

/// The features of the stored documents, if their texts are at hand.
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
    let name = arguments.store.display();
    let store = NamedStore { name, snapshot };
    store.read_texts(context, &arguments.texts, &arguments.options, &mut features)?;
    Ok(Some(features))
}

fn matches_of_text(
    context: &Context,
    arguments: &QueryArguments,
    snapshot: &Snapshot,
    question: Question,
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
            SketchedText::new(&snapshot.schema().sketcher(), known.is_some(), &text)?
        }
    };
    let signature = &sketched.signature;
    if signature.is_empty() {
        context.note("the text has no features, so nothing is like it");
    }
    let asked = Asked {
        signature,
        features: &sketched.features,
        own: None,
        // A ready-made fingerprint has no features.
        known: known.filter(|_| arguments.hash.is_none()),
    };
    let matches = question.about(snapshot, &asked)?;
    explain(context, question, &matches);
    let is_bounded = matches!(question, Question::Bounded(_));
    if matches.is_empty() && !signature.is_empty() && is_bounded {
        tell_nearest(context, snapshot, signature, None)?;
    }
    Ok(matches.into_iter().collect())
}

fn columns(snapshot: &Snapshot, with_query: bool, is_exact: bool) -> Vec<Column> {
    let query = with_query.then(|| Column::new("query"));
    let nearness = nearness_columns(snapshot.schema(), similarity_name(is_exact));
    let columns = query
        .into_iter()
        .chain([Column::of("key", ColumnKind::Document)]);
    let how = is_exact.then(|| Column::new("similarity_is"));
    columns.chain(nearness).chain(how).collect()
}

/// A row; the key of the document that asks is in front if there are several.
fn match_values<'a>(query: Option<&'a [u8]>, found: &'a Match, is_exact: bool) -> Vec<Value<'a>> {
    let document = Value::Document {
        id: found.id().get(),
        key: found.key(),
    };
    let mut values: Vec<Value<'_>> = query.map(Value::Key).into_iter().collect();
    values.extend([
        document,
        Value::Similarity(found.similarity()),
        Value::Distance(found.distance()),
    ]);
    if is_exact {
        values.push(Value::Text(match found.is_exact() {
            true => "exact",
            false => "estimate",
        }));
    }
    values
}

fn explain(context: &Context, question: Question, matches: &Matches) {
    let scope = match matches.scope() {
        Scope::Scan => "every document was compared",
        Scope::ShortBuckets => "documents that share the first rows of a band were compared",
        _ => "candidates were compared",
    };
    let subject = match question {
        Question::Bounded(_) => "a pair right at the bound",
        Question::Nearest(question) => match question.goal {
            Goal::First(_) => "a document as near as the last one",
            Goal::Within { .. } => "a document at the distance --within",
        },
    };
    let recall = match matches.recall() {
        Some(recall) => format!("; {subject} is found with probability {recall:.3}"),
        None => String::new(),
    };
    let count = matches.candidates();
    context.detail(format!("{scope}: {count}{recall}"));
    if let Question::Nearest(question) = question {
        explain_nearest(context, question, matches);
    }
    if let Some(beyond) = matches.budget_exceeded() {
        context.note(format!(
            "the budget left out {beyond} documents that share a bucket; others may be more like it"
        ));
    }
}

/// Says what an answer of the nearest may miss.
fn explain_nearest(context: &Context, question: NearestQuestion, matches: &Matches) {
    let recall = matches.recall().unwrap_or(1.0);
    match question.goal {
        Goal::Within { radius, .. } if matches.is_empty() => {
            context.note(format!(
                "no document is within {radius}: one would have been found with probability {recall:.3}"
            ));
        }
        Goal::First(n)
            if !question.scans && matches.scope() != Scope::Scan && matches.len() < n =>
        {
            let found = matches.len();
            context.note(format!(
                "found {found} of {n} without reading all signatures"
            ));
        }
        _ => {}
    }
}

/// Says, where nothing matches, what came nearest, other than the document itself.
fn tell_nearest(
    context: &Context,
    snapshot: &Snapshot,
    signature: &Signature,
    own: Option<DocumentId>,
) -> Result<()> {
    // A hint is not worth a scan.
    let nearest = snapshot.nearest(signature, 2).without_scan().run()?;
    let mut others = nearest.into_iter().filter(|found| Some(found.id()) != own);
    let Some(nearest) = others.next() else {
        let note = match snapshot.is_empty() {
            true => "no match: the store is empty",
            false => {
                "no match: no document shares a bucket with the text; --nearest 1 finds the nearest, \
                 and --scan compares with all"
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
    let nearness: Vec<_> = similarity.into_iter().chain(distance).collect();
    let nearness = nearness.join(",");
    context.note(format!(
        "no match: the nearest candidate is {key}, with{nearness}"
    ));
    Ok(())
}

fn tell_nearest_to_key(context: &Context, snapshot: &Snapshot, key: &PrintedKey) -> Result<()> {
    let record = match key {
        PrintedKey::Key(key) => snapshot.get(key)?,
        PrintedKey::Id(id) => snapshot.get_id(DocumentId::new(*id))?,
    };
    match record.filter(|record| !record.signature().is_empty()) {
        Some(record) => tell_nearest(context, snapshot, record.signature(), Some(record.id())),
        None => Ok(()),
    }
}

/// Matches of a document of the store, without itself; `None` if there is no such document.
fn matches_of_key(
    context: &Context,
    snapshot: &Snapshot,
    key: &PrintedKey,
    question: Question,
    known: Option<&FeatureSets>,
) -> Result<Option<Vec<Match>>> {
    let record = match key {
        PrintedKey::Key(key) => snapshot.get(key)?,
        PrintedKey::Id(id) => snapshot.get_id(DocumentId::new(*id))?,
    };
    let Some(record) = record else {
        return Ok(None);
    };
    let asked = Asked {
        signature: record.signature(),
        features: &[],
        own: Some(record.id()),
        known,
    };
    let matches = question.about(snapshot, &asked)?;
    explain(context, question, &matches);
    Ok(Some(matches.into_iter().collect()))
}

fn text_of(context: &Context, arguments: &QueryArguments) -> Result<String> {
    if let Some(text) = arguments.text.as_ref().filter(|text| *text != "-") {
        return Ok(text.clone());
    }
    let file = arguments
        .file
        .as_deref()
        .filter(|path| path.as_os_str() != "-");
    if file.is_none() && std::io::stdin().is_terminal() {
        context.note("reading the text from standard input");
    }
    read_text(context, file, arguments.options.max_line_bytes())
}

fn query_corpus(
    context: &Context,
    arguments: &QueryArguments,
    snapshot: &Snapshot,
    question: Question,
    known: Option<FeatureSets>,
) -> Result<Outcome> {
    let is_exact = known.is_some();
    let corpus = Arc::new(resolve_corpus(
        context,
        &arguments.corpus,
        &arguments.options,
        ContentRule::new(snapshot.schema(), is_exact),
    )?);
    let sketcher = snapshot.schema().sketcher();
    let searched = snapshot.clone();
    let mut items = match question {
        Question::Bounded(bounded) if bounded.scan => {
            CorpusDocuments::start(context, "querying", &corpus, 0, move |document| {
                let sketched = document.content.sketch(&sketcher, is_exact)?;
                let asked = Asked {
                    signature: &sketched.signature,
                    features: &sketched.features,
                    own: None,
                    known: known.as_ref(),
                };
                let matches = question.about(&searched, &asked)?;
                Ok((sketched.signature.is_empty(), matches))
            })
        }
        _ => CorpusDocuments::start_together(context, "querying", &corpus, move |documents| {
            query_together(&searched, documents, question, known.as_ref())
        }),
    };
    let columns = columns(snapshot, true, is_exact);
    let mut results = Results::new(arguments.format.layout(), columns)?;
    let mut tally = DocumentTally::default();
    let skip_bad = arguments.options.skip_bad;
    while let Some(document) = items.next_good(context, &mut tally, skip_bad)? {
        let (is_empty, matches) = document.value;
        tally.empty += u64::from(is_empty);
        tally.kept += u64::from(!matches.is_empty());
        tally.budget_exceeded += u64::from(matches.budget_exceeded().is_some());
        for found in matches {
            results.row(&match_values(Some(&document.key), &found, is_exact))?;
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
    question: Question,
    known: Option<&FeatureSets>,
) -> Result<Vec<(bool, Matches)>> {
    let sketcher = snapshot.schema().sketcher();
    let (mut signatures, mut features) = (Vec::new(), Vec::new());
    for document in documents {
        let sketched = document.content.sketch(&sketcher, known.is_some())?;
        signatures.push(sketched.signature);
        features.push(sketched.features);
    }
    let exact = known.map(|known| {
        let features = &features;
        move |index: usize, id| known.similarity_to(at(features, index)?, id)
    });
    let asked = exact.as_ref().map(|exact| exact as &ExactOfMany<'_>);
    let answers = question.about_many(snapshot, &signatures, asked)?;
    let empty = signatures.iter().map(Signature::is_empty);
    Ok(empty.zip(answers).collect())
}
