//! The verb `query`.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use resemblance::{Bounds, DocumentId, Match, Matches, Query, Scope, Signature, Snapshot};

use crate::corpus::{ContentRule, read_bounded};
use crate::failure::{Failure, Outcome, Result};
use crate::options::{BoundOptions, ByOptions, CorpusOptions, ESTIMATE, FormatOptions, parse_key};
use crate::output::escape::{self, PrintedKey, printed};
use crate::output::{Column, ProgressDisplay, Results, Value, nearness_columns};
use crate::session::{
    Context, CorpusDocuments, DocumentTally, must_take_text, open_to_read, resolve_corpus,
    sketch_documents,
};

/// Find the documents of a store that are like a text
///
/// The text is an argument, a file, standard input, a document of the store (which itself is left
/// out), or every document of a corpus. tsv columns: key, similarity_estimate (six decimals; from
/// the signatures), best first; with SimHash alone the distance, with both families both. With
/// --corpus a first column, query, has the key of the corpus's document. jsonl fields: query (with
/// --corpus), id, key, similarity_estimate, distance.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance query seen.rsm 'some text to look for'
  resemblance query seen.rsm --file page.txt --limit 1
  curl -s https://example.org | resemblance query seen.rsm
  resemblance query seen.rsm --key https://example.org/ --threshold 0.95
  resemblance query seen.rsm --corpus more.jsonl --format jsonl
  resemblance query seen.rsm --file page.txt --budget 1000")]
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
    /// Every document of these corpora (see resemblance --help)
    #[arg(long, value_name = "CORPUS", num_args = 1..)]
    corpus: Vec<PathBuf>,
    /// The key is given as results print it: with escapes, or as \#ID
    #[arg(short, long, requires = "key", conflicts_with = "corpus")]
    escaped: bool,
    /// At most N matches, the best ones (of each document)
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
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
    format: FormatOptions,
}

/// What is asked of every document.
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

    fn run(self, query: Query<'_>) -> Result<Matches> {
        let mut query = query.bounds(self.bounds);
        if let Some(limit) = self.limit {
            query = query.limit(limit);
        }
        if self.scan {
            query = query.scan();
        }
        if let Some(budget) = self.budget {
            query = query.probe_budget(budget.get());
        }
        Ok(query.run()?)
    }

    /// The answer for each signature, without a scan.
    fn run_many(self, snapshot: &Snapshot, signatures: &[Signature]) -> Result<Vec<Matches>> {
        let mut query = snapshot.query(signatures).bounds(self.bounds);
        if let Some(limit) = self.limit {
            query = query.limit(limit);
        }
        if let Some(budget) = self.budget {
            query = query.probe_budget(budget.get());
        }
        Ok(query.run()?)
    }
}

pub(crate) fn query(context: &Context, arguments: &QueryArguments) -> Result<Outcome> {
    let store = open_to_read(context, &arguments.store)?;
    arguments.bounds.must_suit(store.schema())?;
    let snapshot = store.snapshot()?;
    let question = StoreQuestion::new(arguments);
    if !arguments.corpus.is_empty() {
        return query_corpus(context, arguments, &snapshot, question);
    }
    let matches: Vec<Match> = match &arguments.key {
        Some(key) => {
            let key = parse_key(key, arguments.escaped)?;
            match matches_of_key(context, &snapshot, &key, question)? {
                Some(matches) => {
                    if matches.is_empty() {
                        tell_nearest_to_key(context, &snapshot, &key)?;
                    }
                    matches
                }
                None => {
                    let key = printed(&key);
                    context
                        .messages
                        .note(format!("no document has the key {key}"));
                    return Ok(Outcome::Nothing);
                }
            }
        }
        None => {
            must_take_text(snapshot.schema())?;
            let text = read_text(context, arguments)?;
            let signature = store.sketch_text(&text)?;
            if signature.is_empty() {
                context
                    .messages
                    .note("the text has no features, so nothing is like it");
            }
            let matches = question.run(snapshot.query(&signature))?;
            explain(context, &matches);
            if matches.is_empty() && !signature.is_empty() {
                tell_nearest(context, &snapshot, &signature, None)?;
            }
            matches.into_iter().collect()
        }
    };
    let mut results = Results::new(arguments.format.layout(), columns(&snapshot, false))?;
    let found = !matches.is_empty();
    for found in matches {
        results.row(&match_values(&found))?;
    }
    results.finish()?;
    Ok(Outcome::found(found))
}

fn columns(snapshot: &Snapshot, with_query: bool) -> Vec<Column> {
    let query = with_query.then(|| Column::new("query"));
    let nearness = nearness_columns(snapshot.schema(), ESTIMATE);
    let columns = query.into_iter().chain([Column::new("key")]);
    columns.chain(nearness).collect()
}

fn match_values(found: &Match) -> [Value<'_>; 3] {
    [
        Value::Document {
            id: found.id().get(),
            key: found.key(),
        },
        Value::Similarity(found.similarity()),
        Value::Distance(found.distance()),
    ]
}

fn explain(context: &Context, matches: &Matches) {
    let scope = match matches.scope() {
        Scope::Scan => "every document was compared",
        _ => "candidates were compared",
    };
    let recall = match matches.recall() {
        Some(recall) => {
            format!("; a pair right at the bound is found with probability {recall:.3}")
        }
        None => String::new(),
    };
    let count = matches.candidates();
    context.messages.detail(format!("{scope}: {count}{recall}"));
    if let Some(beyond) = matches.beyond_budget() {
        context.messages.note(format!(
            "the budget left out {beyond} documents that share a bucket; others may be more like it"
        ));
    }
}

/// Says, where nothing matches, what came nearest, other than the document itself.
fn tell_nearest(
    context: &Context,
    snapshot: &Snapshot,
    signature: &Signature,
    own: Option<DocumentId>,
) -> Result<()> {
    let nearest = snapshot.nearest(signature, 2)?;
    let mut others = nearest.into_iter().filter(|found| Some(found.id()) != own);
    let Some(nearest) = others.next() else {
        let note = match snapshot.is_empty() {
            true => "no match: the store is empty",
            false => {
                "no match: no document shares a bucket with the text; --scan compares with all"
            }
        };
        context.messages.note(note);
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
    context.messages.note(format!(
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

/// Matches of a document of the store, without itself.
fn matches_of_key(
    context: &Context,
    snapshot: &Snapshot,
    key: &PrintedKey,
    question: StoreQuestion,
) -> Result<Option<Vec<Match>>> {
    match key {
        PrintedKey::Key(key) => {
            let Some(query) = snapshot.query_by_key(key)? else {
                return Ok(None);
            };
            let matches = question.run(query)?;
            explain(context, &matches);
            Ok(Some(matches.into_iter().collect()))
        }
        PrintedKey::Id(id) => {
            let Some(record) = snapshot.get_id(DocumentId::new(*id))? else {
                return Ok(None);
            };
            // one more, because the document finds itself
            let wider = StoreQuestion {
                limit: question.limit.map(|limit| limit.saturating_add(1)),
                ..question
            };
            let matches = wider.run(snapshot.query(record.signature()))?;
            explain(context, &matches);
            let others = matches
                .into_iter()
                .filter(|found| found.id() != record.id());
            Ok(Some(
                others.take(question.limit.unwrap_or(usize::MAX)).collect(),
            ))
        }
    }
}

fn read_text(context: &Context, arguments: &QueryArguments) -> Result<String> {
    if let Some(text) = arguments.text.as_ref().filter(|text| *text != "-") {
        return Ok(text.clone());
    }
    let file = arguments
        .file
        .clone()
        .filter(|path| path.as_os_str() != "-");
    let name = match &file {
        Some(path) => path.display().to_string(),
        None => "standard input".into(),
    };
    if file.is_none() && std::io::stdin().is_terminal() {
        context
            .messages
            .note("reading the text from standard input");
    }
    let mut progress = ProgressDisplay::new("reading", context.messages.quiet);
    let bytes = context.interrupt.while_working(&mut progress, {
        let name = name.clone();
        let max_bytes = arguments.options.max_line_bytes();
        move || {
            let bytes = match file {
                Some(path) => std::fs::File::open(path).and_then(|f| read_bounded(f, max_bytes)),
                None => read_bounded(std::io::stdin(), max_bytes),
            };
            bytes.map_err(|e| Failure::io(format!("cannot read {name}"), &e))
        }
    })?;
    let bytes = bytes.ok_or_else(|| {
        let failure = Failure::bad_input("the text is longer than --max-line").at(name.clone());
        failure.with_note("--max-line SIZE sets the limit")
    })?;
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let position = error.utf8_error().valid_up_to() + 1;
        Failure::bad_input(format!("invalid UTF-8 at byte {position}")).at(name)
    })?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

fn query_corpus(
    context: &Context,
    arguments: &QueryArguments,
    snapshot: &Snapshot,
    question: StoreQuestion,
) -> Result<Outcome> {
    let corpus = Arc::new(resolve_corpus(
        context,
        &arguments.corpus,
        &arguments.options,
        ContentRule::new(snapshot.schema(), false),
    )?);
    let sketcher = snapshot.schema().sketcher();
    let searched = snapshot.clone();
    let mut items = if question.scan {
        CorpusDocuments::start(context, "querying", &corpus, 0, move |document| {
            let signature = document.content.sketch(&sketcher, false)?.signature;
            let matches = question.run(searched.query(&signature))?;
            Ok((signature.is_empty(), matches))
        })
    } else {
        CorpusDocuments::start_together(context, "querying", &corpus, move |documents| {
            let signatures = sketch_documents(&sketcher, documents)?;
            let answers = question.run_many(&searched, &signatures)?;
            let empty = signatures.iter().map(Signature::is_empty);
            Ok(empty.zip(answers).collect())
        })
    };
    let mut results = Results::new(arguments.format.layout(), columns(snapshot, true))?;
    let mut tally = DocumentTally::default();
    let skip_bad = arguments.options.skip_bad;
    while let Some(item) = items.next()? {
        let Some(document) = item.take(context, &corpus, &mut tally, skip_bad)? else {
            continue;
        };
        let (is_empty, matches) = document.value;
        tally.empty += u64::from(is_empty);
        tally.kept += u64::from(!matches.is_empty());
        tally.beyond_budget += u64::from(matches.beyond_budget().is_some());
        for found in matches {
            let [key, similarity, distance] = match_values(&found);
            results.row(&[Value::Key(&document.key), key, similarity, distance])?;
        }
    }
    results.finish()?;
    let totals = items.end(context, &tally)?;
    context.messages.note(tally.summary("with matches", totals));
    Ok(Outcome::found(tally.kept > 0))
}
