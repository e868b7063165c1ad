//! The verb `add`.

use std::io::Write;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use resemblance::search::Certainty;
use resemblance::{Document, DocumentId, Error, Match, Novelty, Revision, Store, WriteTransaction};
use resemblance_corpus::dedup::DropRule;
use resemblance_corpus::verification::{FeatureSets, SketchedText};

use super::add_outputs::{AddOutputOptions, AdditionFiles};
#[cfg(feature = "sqlite")]
use super::add_verdicts::AdditionVerdicts;
#[cfg(not(feature = "sqlite"))]
use super::verdicts::NoVerdicts as AdditionVerdicts;
use crate::failure::{Failure, Outcome, Result};
use crate::options::{
    BoundOptions, CorpusOptions, StoredOptions, VerifyOptions, must_use_texts, parse_euclidean,
    parse_seconds,
};
use crate::output::{Counted, Evidence, Survivor, SurvivorPlace};
use crate::session::{
    Context, CorpusDocuments, DOCUMENTS_TOGETHER, DocumentTally, MAX_HELD_BYTES, MissingText,
    ReadDocument, StoredTexts, WorkedDocument, change_store, resolve_corpus_to_store,
    spool_sources,
};
use resemblance_corpus::{ContentRule, Corpus, FieldPath, ReadTotals, SourceKind};

/// Add the documents of a corpus to a store
///
/// Documents are committed in the order of the corpus, 10,000 at a time. SIGINT and SIGTERM commit what has been read.
/// After a failure the store holds the documents up to the last commit. In both cases the message explains how to
/// continue. After a kill the store holds the documents that the last line of -v reports as committed, or those of one
/// more commit. A key that is already in the store is bad input unless --upsert or --if-new is given. With --if-new,
/// similarities within the corpus are exact unless --verify estimate is given. Similarities to documents that were in
/// the store before are estimates unless it is exact, because a store has no texts; --texts makes them exact. Documents dropped by an
/// estimate are counted. For an exact store, and with --verify estimate, -v shows the probability with which a
/// near-duplicate is missed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance add seen.rsm more.jsonl
  resemblance add seen.rsm more.jsonl --if-new
  resemblance add seen.rsm more.jsonl --if-new -o new.jsonl --report dropped.tsv
  resemblance add seen.rsm more.jsonl --if-new --verify estimate
  resemblance add seen.rsm more.jsonl --stamp now
  resemblance add seen.rsm more.jsonl --skip 20000
  resemblance add seen.rsm articles.db --text-field body --if-new --verdicts verdicts
  crawl | resemblance add seen.rsm - --upsert --commit-interval 5
  crawl | resemblance add seen.rsm - --if-new -o - --commit-interval 5 | index
  consume | resemblance add seen.rsm - --if-new --position pages-0=offset --commit-interval 5")]
pub(crate) struct AddArguments {
    /// The store
    pub(crate) store: PathBuf,
    /// JSON Lines files, tables, folders or - (see resemblance --help)
    #[arg(required = true)]
    corpus: Vec<PathBuf>,
    /// Skip and count near-duplicates of documents in the store, and documents whose keys it has
    #[arg(long, conflicts_with = "upsert")]
    if_new: bool,
    /// With --if-new: look for an identical document first, then compare with at most N candidates, those that share
    /// the most buckets. Some near-duplicates may be added as new; documents with more candidates are counted
    #[arg(long, value_name = "N", requires = "if_new", conflicts_with = "upsert")]
    budget: Option<NonZeroU64>,
    /// With --if-new: minimum similarity of near-duplicates, at least the store's [default: the store's]
    #[arg(long, value_name = "T", requires = "if_new", conflicts_with = "upsert")]
    threshold: Option<f64>,
    /// With --if-new: maximum Euclidean distance of near vectors, at most the store's [default: the store's]
    #[arg(long, value_name = "D", requires = "if_new", conflicts_with_all = ["upsert", "threshold"], value_parser = parse_euclidean)]
    euclidean: Option<f64>,
    /// With --if-new: maximum Hamming distance of near-duplicates, at most the store's [default: the
    /// store's]. In a store with MinHash and SimHash, only the family of --threshold or --distance counts if the other
    /// is not given
    #[arg(long, value_name = "D", requires = "if_new", conflicts_with = "upsert")]
    distance: Option<u8>,
    #[command(flatten)]
    verify: VerifyOptions,
    /// With --if-new: the corpus from which the store was built, or a part of it: similarities to documents whose texts
    /// are in it are exact
    #[arg(long, value_name = "CORPUS", num_args = 1.., requires = "if_new", conflicts_with = "upsert")]
    texts: Vec<PathBuf>,
    /// Replace documents whose key the store has. A document with the same signature is kept and counted as unchanged
    #[arg(long)]
    upsert: bool,
    /// With --if-new, for one SQLite database: read only the rows whose rowid is greater than any in TABLE, and write a
    /// verdict on each to that table of the same database: row_id, kept (1 or 0), cluster (store:ID), survivor,
    /// similarity, distance, similarity_is (key if the store had the key). After a kill, the next run completes the
    /// table
    #[arg(
        long,
        value_name = "TABLE",
        requires = "if_new",
        conflicts_with_all = ["atomic", "skip", "upsert"]
    )]
    verdicts: Option<String>,
    /// Commit after every N documents of the corpus [default: 10000]
    #[arg(long, value_name = "N")]
    commit_every: Option<NonZeroU64>,
    /// Also commit when the last commit is SECONDS ago, such as 5 or 0.5 [default: 5 for a pipe]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    commit_interval: Option<Duration>,
    /// Add all documents in one commit at the end, or none
    #[arg(long, conflicts_with_all = ["commit_every", "commit_interval"])]
    atomic: bool,
    /// Skip the first N documents of the corpus, which are already in the store
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// With each commit, store the FIELD of its last document as the position NAME: the offset of a queue, from which
    /// get --position NAME lets its reader continue. A document without that string or number is bad input
    #[arg(long, value_name = "NAME=FIELD", value_parser = parse_position)]
    position: Option<PositionField>,
    #[command(flatten)]
    outputs: AddOutputOptions,
    #[command(flatten)]
    stored: StoredOptions,
    #[command(flatten)]
    options: CorpusOptions,
}

/// The name of a position, and the field that contains it.
#[derive(Clone, Debug)]
struct PositionField {
    name: String,
    field: FieldPath,
}

fn parse_position(text: &str) -> std::result::Result<PositionField, String> {
    let expected = "expected the name of a position, = and the name of a field";
    let (name, field) = text.split_once('=').ok_or(expected)?;
    match (1..=MAX_POSITION_NAME_BYTES).contains(&name.len()) {
        true => Ok(PositionField {
            name: name.into(),
            field: field.parse()?,
        }),
        false => Err("expected a name of 1 to 255 bytes before the =".into()),
    }
}

impl AddArguments {
    /// Returns true if there is one commit at the end.
    fn is_atomic(&self) -> bool {
        self.atomic || self.outputs.are_given() && !self.is_live()
    }

    /// Returns true if the time of commits was chosen.
    fn has_commits(&self) -> bool {
        self.commit_every.is_some() || self.commit_interval.is_some()
    }

    /// Returns true if added documents are written to standard output with each commit.
    fn is_live(&self) -> bool {
        self.has_commits() && self.outputs.is_standard_output()
    }

    fn bounds(&self) -> BoundOptions {
        BoundOptions {
            threshold: self.threshold,
            euclidean: self.euclidean,
            distance: self.distance,
        }
    }
}

pub(crate) fn add(context: &Context, arguments: &AddArguments) -> Result<Outcome> {
    let outputs = &arguments.outputs;
    outputs.must_be_free(
        context,
        &arguments.corpus,
        &arguments.options,
        arguments.has_commits(),
    )?;
    let mut options = context.store_options.clone();
    if let Some(budget) = arguments.budget {
        options = options.probe_budget(budget.get());
    }
    change_store(context, &arguments.store, &options, |store| {
        add_to(context, arguments, store)
    })
}

/// Returns the features of the stored documents whose texts are there, if similarities are exact.
fn stored_features(
    context: &Context,
    arguments: &AddArguments,
    store: &Store,
    is_exact: bool,
) -> Result<Option<FeatureSets>> {
    let Some(mut features) = context.features(is_exact) else {
        return Ok(None);
    };
    let texts = StoredTexts {
        store: &arguments.store,
        snapshot: &store.snapshot()?,
        texts: &arguments.texts,
        options: &arguments.options,
        missing: MissingText::IsEstimated,
    };
    texts.read(context, &mut features)?;
    Ok(Some(features))
}

fn add_to(context: &Context, arguments: &AddArguments, store: &Store) -> Result<Outcome> {
    if arguments.verify.asks_for_exact() && !arguments.if_new {
        return Err(Failure::usage("--verify exact needs --if-new"));
    }
    let bounds = arguments.bounds();
    bounds.must_lie_within(store.schema())?;
    let has_budget = arguments.budget.is_some();
    let is_exact = arguments.if_new && arguments.verify.is_exact(store.schema(), has_budget)?;
    must_use_texts(&arguments.texts, store.schema(), is_exact)?;
    let features = stored_features(context, arguments, store, is_exact)?;
    let stored = Some(&arguments.stored);
    let (options, content) = (
        &arguments.options,
        ContentRule::new(store.schema(), is_exact),
    );
    let mut corpus = resolve_corpus_to_store(context, &arguments.corpus, options, content, stored)?;
    let position = arguments.position.as_ref();
    corpus.settings.position_field = position.map(|position| position.field.clone());
    let verdicts = arguments
        .verdicts
        .as_ref()
        .map(|name| AdditionVerdicts::open(context, name, &mut corpus, store))
        .transpose()?;
    let outputs = match arguments.is_live() {
        true => None,
        false => AdditionFiles::open(
            &arguments.outputs,
            &arguments.corpus,
            &corpus,
            store.schema(),
            is_exact || store.schema().is_exact(),
        )?,
    };
    if outputs.is_some() {
        spool_sources(context, &mut corpus)?;
    }
    let reads_pipe = corpus.sources.iter().any(|source| !source.is_rereadable());
    let mut addition = Addition {
        context,
        arguments,
        commits_pipes: reads_pipe && !arguments.is_atomic(),
        corpus: Arc::new(corpus),
        store,
        features,
        verdicts,
        outputs,
        unwritten: Vec::new(),
        tally: DocumentTally::default(),
        committed: DocumentTally::default(),
        done: arguments.skip,
        next: None,
        position: None,
    };
    match addition.run() {
        Ok(totals) => {
            context.counts(addition.committed.summary("added", totals));
            context.messages.advise(&store.snapshot()?.design());
            addition.print_certainty()?;
            if let Some(verdicts) = addition.verdicts {
                verdicts.finish()?;
            }
            Ok(Outcome::Done)
        }
        Err(failure) => {
            let unfinished = failure.or_unfinished("not all documents were added");
            Err(unfinished.with_note(addition.where_to_resume()))
        }
    }
}

struct Addition<'a> {
    context: &'a Context,
    arguments: &'a AddArguments,
    corpus: Arc<Corpus>,
    /// True if documents come from a pipe, and there is more than one commit. Asking the files again
    /// for each document would take longer than adding it.
    commits_pipes: bool,
    store: &'a Store,
    /// Feature sets of the documents that were added, if similarities are to be exact.
    features: Option<FeatureSets>,
    /// The table that verdicts are written to, if any.
    verdicts: Option<AdditionVerdicts>,
    /// The files to which documents are written in addition to the store, if any.
    outputs: Option<AdditionFiles>,
    /// The lines of added documents to write to standard output before the next commit.
    unwritten: Vec<u8>,
    tally: DocumentTally,
    /// The tally as of the last commit.
    committed: DocumentTally,
    /// The number of documents at the start of the corpus that are committed or left out for good.
    done: u64,
    /// The place of the first one that is not, once it has been seen.
    next: Option<(usize, u64)>,
    /// The position of the last document added or left out, if positions are stored.
    position: Option<Box<[u8]>>,
}

/// The content of a document.
struct AddedContent {
    sketched: SketchedText,
    /// Its position in a queue, empty if positions are not stored.
    position: Box<[u8]>,
    /// Its line, if it is to be written to standard output.
    line: Box<[u8]>,
}

/// A document and its place in the corpus.
struct GatheredDocument {
    document: WorkedDocument<AddedContent>,
    number: u64,
    source: usize,
    line: u64,
}

impl GatheredDocument {
    fn feature_bytes(&self) -> usize {
        self.document.value.sketched.feature_bytes()
    }
}

/// The maximum length of the name of a position.
const MAX_POSITION_NAME_BYTES: usize = 255;

/// The number of documents in a commit, unless another one was given.
const COMMIT_EVERY: u64 = 10_000;

/// The interval of commits where other processes wait for their turn to write, unless another one was given.
const TURN: Duration = Duration::from_secs(1);

/// The interval of commits of a pipe, unless another one was given.
const PIPE_INTERVAL: Duration = Duration::from_secs(5);

/// The documents of the next commit.
struct OpenCommit {
    transaction: Option<WriteTransaction>,
    /// Read, and not added yet.
    gathered: Vec<GatheredDocument>,
    /// The number of documents of the corpus since the last commit.
    pending: u64,
    since: Instant,
}

impl OpenCommit {
    fn new() -> Self {
        Self {
            transaction: None,
            gathered: Vec::new(),
            pending: 0,
            since: Instant::now(),
        }
    }
}

impl Addition<'_> {
    /// Prints how sure it is that no near-duplicate was added, where one statement holds for
    /// documents of the corpus and of the store.
    fn print_certainty(&self) -> Result<()> {
        let schema = self.store.schema();
        let is_mixed = self.features.is_some() && !schema.is_exact();
        if self.arguments.if_new && !is_mixed {
            let certainty = match self.tally.budget_exceeded {
                0 => self.arguments.bounds().bounds().certainty(schema, false)?,
                _ => Certainty::Uncertified,
            };
            self.context.detail(format!("a near-duplicate {certainty}"));
        }
        Ok(())
    }

    fn run(&mut self) -> Result<ReadTotals> {
        let sketcher = self.store.sketcher();
        let (skip, with_features) = (self.arguments.skip, self.features.is_some());
        let is_live = self.arguments.is_live();
        let mut items = CorpusDocuments::start(
            self.context,
            "adding",
            &self.corpus,
            skip,
            move |document| {
                let line: &[u8] = if is_live { &document.record } else { &[] };
                Ok(AddedContent {
                    sketched: document.content.sketch(&sketcher, with_features)?,
                    position: (&*document.position).into(),
                    line: line.into(),
                })
            },
        );
        let mut open = OpenCommit::new();
        loop {
            let next = items.next_while(&mut || self.commit_if_due(&mut open));
            match next {
                Ok(Some(item)) => self.take(&mut open, item)?,
                Ok(None) => break,
                Err(failure) if failure.is_signal() => {
                    self.commit_read(&mut items, &mut open)?;
                    return Err(failure);
                }
                // Earlier documents may have failed before.
                Err(failure) => {
                    self.add_gathered(&mut open)?;
                    self.commit_of_pipe(&mut open)?;
                    return Err(failure);
                }
            }
        }
        self.add_gathered(&mut open)?;
        if self.arguments.is_atomic() {
            self.context.interrupt.check()?;
        }
        let totals = items.end(self.context, &self.tally)?;
        // A document that is in the store and in no file could not be found again.
        if let Some(outputs) = self.outputs.take() {
            outputs.write(self.context, &self.corpus, totals)?;
        }
        self.commit(&mut open)?;
        Ok(totals)
    }

    /// Takes a document, and commits if there are enough.
    fn take(&mut self, open: &mut OpenCommit, item: ReadDocument<AddedContent>) -> Result<()> {
        self.gather(open, item)?;
        open.pending += 1;
        let commit_every = self
            .arguments
            .commit_every
            .map_or(COMMIT_EVERY, NonZeroU64::get);
        let is_full = open.pending == commit_every;
        if is_full && !self.arguments.is_atomic() {
            self.add_gathered(open)?;
            self.commit(open)?;
        }
        if self.unwritten.len() > MAX_HELD_BYTES {
            self.write_lines()?;
        }
        self.commit_if_due(open)
    }

    /// Commits if the last commit was longer ago than it should be.
    fn commit_if_due(&mut self, open: &mut OpenCommit) -> Result<()> {
        let shared = self.store.has_shared_writers() && !self.arguments.is_atomic();
        let usual = match shared {
            true => Some(TURN),
            false => self.commits_pipes.then_some(PIPE_INTERVAL),
        };
        let interval = self.arguments.commit_interval.or(usual);
        if interval.is_some_and(|interval| open.pending > 0 && open.since.elapsed() >= interval) {
            self.add_gathered(open)?;
            self.commit(open)?;
        }
        Ok(())
    }

    /// After a signal: commits what has been read. A pipe does not give it a second time.
    fn commit_read(
        &mut self,
        items: &mut CorpusDocuments<AddedContent>,
        open: &mut OpenCommit,
    ) -> Result<()> {
        if self.arguments.is_atomic() {
            return Ok(());
        }
        items.stop_reading();
        while let Some(item) = items.next_read()? {
            self.gather(open, item)?;
            open.pending += 1;
        }
        self.add_gathered(open)?;
        self.commit(open)
    }

    /// Keeps a document until there are enough to be added together. A bad one waits for those
    /// before it.
    fn gather(&mut self, open: &mut OpenCommit, item: ReadDocument<AddedContent>) -> Result<()> {
        let (number, source, line) = (item.number, item.source, item.line);
        self.next.get_or_insert((source, line));
        let held_bytes = || {
            open.gathered
                .iter()
                .map(GatheredDocument::feature_bytes)
                .sum::<usize>()
        };
        let is_full = open.gathered.len() == DOCUMENTS_TOGETHER
            || self.features.is_some() && held_bytes() >= MAX_HELD_BYTES;
        if item.document.is_err() || is_full {
            self.add_gathered(open)?;
        }
        let (corpus, skip_bad) = (Arc::clone(&self.corpus), self.arguments.options.skip_bad);
        let document = match item.take(self.context, &corpus, &mut self.tally, skip_bad) {
            Ok(document) => document,
            Err(failure) => {
                self.commit_of_pipe(open)?;
                self.next.get_or_insert((source, line));
                return Err(failure);
            }
        };
        open.gathered
            .extend(document.map(|document| GatheredDocument {
                document,
                number,
                source,
                line,
            }));
        Ok(())
    }

    /// Commits the documents before a failure if they came from a pipe, because they cannot be read
    /// again.
    fn commit_of_pipe(&mut self, open: &mut OpenCommit) -> Result<()> {
        match self.commits_pipes {
            true => self.commit(open),
            false => Ok(()),
        }
    }

    /// Adds what was gathered. A signal waits meanwhile: a commit must not have a part of it.
    fn add_gathered(&mut self, open: &mut OpenCommit) -> Result<()> {
        let gathered = std::mem::take(&mut open.gathered);
        if gathered.is_empty() {
            return Ok(());
        }
        let transaction = match &mut open.transaction {
            Some(transaction) => transaction,
            none => none.insert(self.begin()?),
        };
        if !self.add_together(transaction, &gathered)? {
            for placed in &gathered {
                if let Err(failure) = self.add(transaction, placed) {
                    let skip_bad = self.arguments.options.skip_bad;
                    self.tally.skip(self.context, failure, skip_bad)?;
                }
                self.pass(placed);
            }
        }
        gathered.last().into_iter().for_each(|last| self.pass(last));
        Ok(())
    }

    /// Notes the position of a document that was added or left out.
    fn pass(&mut self, placed: &GatheredDocument) {
        if self.arguments.position.is_some() {
            self.position = Some(placed.document.value.position.clone());
        }
    }

    /// Adds documents together, unless one of them is wrong: then none is added, and one after the
    /// other it will be found out which.
    fn add_together(
        &mut self,
        transaction: &mut WriteTransaction,
        gathered: &[GatheredDocument],
    ) -> Result<bool> {
        let documents: Vec<(Document<'_>, &SketchedText)> = gathered
            .iter()
            .map(|GatheredDocument { document, .. }| {
                (document.to_store(), &document.value.sketched)
            })
            .collect();
        let signatures = || documents.iter().map(|(d, s)| (d.into(), &s.signature));
        let added = if self.arguments.upsert || self.arguments.bounds().is_given() {
            return Ok(false);
        } else if let Some(features) = &mut self.features {
            features.insert_new(transaction, &documents)
        } else if self.arguments.if_new {
            let signed: Vec<_> = signatures().collect();
            transaction.insert_many(&signed).if_new().run()
        } else {
            let signed: Vec<_> = signatures().collect();
            let ids = transaction.insert_many(&signed).run();
            ids.map(|ids| ids.into_iter().map(as_new).collect())
        };
        match added {
            Ok(novelties) => {
                for (placed, novelty) in gathered.iter().zip(novelties) {
                    self.count(&novelty, placed)?;
                }
                Ok(true)
            }
            Err(
                Error::KeyExists { .. }
                | Error::InvalidParameter { .. }
                | Error::SignatureMismatch { .. },
            ) => Ok(false),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Returns the document of the store for which another one is left out.
    fn survivor(&self, novelty: &Novelty, document: &SketchedText) -> Result<Option<Survivor>> {
        let (found, is_by_key) = match novelty {
            Novelty::NearDuplicate(found) => (found, false),
            Novelty::KeyExists(found) => (found, true),
            _ => return Ok(None),
        };
        let rule = match is_by_key {
            true => DropRule::Key,
            false => {
                let (similarity, is_exact) = (found.similarity(), found.is_exact());
                let (bounds, schema) = (self.arguments.bounds().bounds(), self.store.schema());
                DropRule::of(bounds, schema, similarity, is_exact, found.distance())?
            }
        };
        let place = SurvivorPlace::Store(found.id().get());
        let key = found.key().map(<[u8]>::to_vec);
        let survivor = Survivor::from_match(found, place, key, rule);
        let features = self.features.as_ref();
        let shares = features.map(|features| features.shares_with(&document.features, found));
        Ok(Some(Survivor {
            shares: shares.transpose()?.flatten(),
            evidence: if is_by_key {
                Evidence::Key
            } else {
                survivor.evidence
            },
            ..survivor
        }))
    }

    fn count(&mut self, novelty: &Novelty, placed: &GatheredDocument) -> Result<()> {
        let content = &placed.document.value;
        let survivor = self.survivor(novelty, &content.sketched)?;
        if let Some(verdicts) = &mut self.verdicts {
            let (row, key) = (placed.line, &placed.document.key);
            verdicts.take(row, key, novelty.id().get(), survivor.as_ref())?;
        }
        self.tally.budget_exceeded += u64::from(novelty.budget_exceeded().is_some());
        match novelty {
            Novelty::NearDuplicate(found) => {
                self.tally.dropped += 1;
                let is_estimated = self.features.is_some() && !found.is_exact();
                self.tally.estimated += u64::from(is_estimated);
            }
            Novelty::KeyExists(known) => {
                if let Some(failure) = self.other_made_key(placed, known) {
                    let skip_bad = self.arguments.options.skip_bad;
                    return self.tally.skip(self.context, failure, skip_bad);
                }
                self.tally.known += 1;
            }
            _ => {
                self.tally.kept += 1;
                self.tally.empty += u64::from(content.sketched.signature.is_empty());
                self.unwritten.extend(&content.line);
                // The last line of a file may have no end.
                if !content.line.is_empty() && !content.line.ends_with(b"\n") {
                    self.unwritten.push(b'\n');
                }
            }
        }
        match &mut self.outputs {
            Some(outputs) => outputs.take(placed.number, &placed.document.key, survivor.as_ref()),
            None => Ok(()),
        }
    }

    /// A failure if the key of a document was made of its path, and the store has it with another document: a file of
    /// this name in another folder, or lines that have moved.
    fn other_made_key(&self, placed: &GatheredDocument, known: &Match) -> Option<Failure> {
        let is_same = known
            .similarity()
            .is_none_or(|similarity| similarity == 1.0)
            && known.distance().is_none_or(|distance| distance == 0);
        if placed.document.has_own_id || is_same {
            return None;
        }
        let key = String::from_utf8_lossy(&placed.document.key);
        let (source, advice) = match self.is_text(placed) {
            true => ("the path of the file", "--upsert replaces the document"),
            false => (
                "the path of the file and the line",
                "--id FIELD reads keys from the documents",
            ),
        };
        let message = format!(
            "key {key:?} is generated from {source}, and the store has a different document under it"
        );
        let place = self.corpus.position(placed.source, placed.line);
        let failure = Failure::bad_input(message).at(place).with_note(advice);
        Some(failure.with_note("a unique path, such as the absolute one, gives another key"))
    }

    fn is_text(&self, placed: &GatheredDocument) -> bool {
        let source = self.corpus.sources.get(placed.source);
        source.is_some_and(|source| source.kind == SourceKind::Text)
    }

    fn begin(&self) -> Result<WriteTransaction> {
        self.store.begin_write().map_err(|e| self.failure(e))
    }

    fn failure(&self, error: Error) -> Failure {
        Failure::store(self.arguments.store.display(), error)
    }

    /// Commits what was added, if there is anything.
    fn commit(&mut self, open: &mut OpenCommit) -> Result<()> {
        let OpenCommit {
            transaction,
            pending,
            ..
        } = std::mem::replace(open, OpenCommit::new());
        if pending == 0 {
            return Ok(());
        }
        if let Some(verdicts) = &mut self.verdicts {
            verdicts.prepare()?;
        }
        // A document that is in the store and was not written could not be found again.
        self.write_lines()?;
        if let Some(mut transaction) = transaction {
            if let (Some(field), Some(position)) = (&self.arguments.position, &self.position) {
                let set = transaction.set_position(&field.name, Some(position));
                set.map_err(|e| self.failure(e))?;
            }
            transaction.commit().map_err(|e| self.failure(e))?;
        }
        self.committed = self.tally.clone();
        self.done += pending;
        let (held, done) = (self.committed.held(), self.done);
        let held = Counted(held, "document");
        let detail = format!("committed {held} of the first {done}");
        self.context.detail(detail);
        self.next = None;
        match &mut self.verdicts {
            Some(verdicts) => verdicts.publish(),
            None => Ok(()),
        }
    }

    /// Writes the lines of added documents to standard output.
    fn write_lines(&mut self) -> Result<()> {
        let lines = std::mem::take(&mut self.unwritten);
        let mut out = std::io::stdout().lock();
        let written = out.write_all(&lines).and_then(|()| out.flush());
        // Also if its reader has ended: the documents that it has not received are not added.
        written.map_err(|error| Failure::io("cannot write to standard output", &error))
    }

    fn add(&mut self, transaction: &mut WriteTransaction, placed: &GatheredDocument) -> Result<()> {
        let document = placed.document.to_store();
        let sketched = &placed.document.value.sketched;
        let signature = &sketched.signature;
        let (source, line) = (placed.source, placed.line);
        let added = if self.arguments.bounds().is_given() {
            let key = &placed.document.key;
            self.add_within_bounds(transaction, key, document, sketched)
        } else if let Some(features) = &mut self.features {
            let documents = [(document, sketched)];
            let found = features.insert_new(transaction, &documents);
            found.map(|found| found.into_iter().next())
        } else if self.arguments.if_new {
            let inserted = transaction.insert_if_new(document, signature);
            inserted.map(Some)
        } else if self.arguments.upsert
            && !placed.document.has_own_id
            && !self.is_text(placed)
            && transaction
                .contains(&placed.document.key)
                .is_ok_and(|is_there| is_there)
            && let Ok(Novelty::KeyExists(known)) =
                transaction.insert_if_new(placed.document.to_store(), signature)
            && let Some(failure) = self.other_made_key(placed, &known)
        {
            return Err(failure);
        } else if self.arguments.upsert {
            let upserted = transaction.upsert(document, signature);
            upserted.map(|upserted| {
                let is_unchanged = matches!(upserted.revision, Revision::Unchanged(_));
                self.tally.unchanged += u64::from(is_unchanged);
                self.tally.replaced += u64::from(upserted.replaced.is_some());
                (!is_unchanged).then_some(as_new(upserted.id))
            })
        } else {
            let inserted = transaction.insert(document, signature);
            inserted.map(|id| Some(as_new(id)))
        };
        match added {
            Ok(Some(novelty)) => self.count(&novelty, placed)?,
            Ok(None) => {}
            Err(Error::KeyExists { key, .. }) => {
                let key = String::from_utf8_lossy(&key);
                let place = self.corpus.position(source, line);
                let message = format!("key {key:?} is already in the store");
                return Err(Failure::bad_input(message)
                    .at(place)
                    .with_note("--upsert replaces the document, and --if-new skips it"));
            }
            Err(error) => {
                let store = self.arguments.store.display();
                let place = self.corpus.position(source, line);
                return Err(Failure::document(store, place, error));
            }
        }
        Ok(())
    }

    /// Adds a document unless the store has its key, or one that is near by the given bounds.
    fn add_within_bounds(
        &mut self,
        transaction: &mut WriteTransaction,
        key: &[u8],
        document: Document<'_>,
        sketched: &SketchedText,
    ) -> resemblance::Result<Option<Novelty>> {
        let signature = &sketched.signature;
        if transaction.contains(key)? {
            return transaction.insert_if_new(document, signature).map(Some);
        }
        let bounds = self.arguments.bounds().bounds();
        let mut query = transaction.query(signature).bounds(bounds).limit(1);
        if let Some(features) = &self.features {
            query = query.verify(|id| features.similarity_to(&sketched.features, id));
        }
        if let Some(budget) = self.arguments.budget {
            query = query.probe_budget(budget.get());
        }
        let matches = query.run()?;
        if let Some(found) = matches.into_iter().next() {
            return Ok(Some(Novelty::NearDuplicate(found)));
        }
        let id = transaction.insert(document, signature)?;
        if let Some(features) = &mut self.features {
            features.put(id, Arc::clone(&sketched.features))?;
            features.flush()?;
        }
        Ok(Some(as_new(id)))
    }

    /// Describes after a failure which documents the store has, and how to continue.
    fn where_to_resume(&self) -> String {
        if self.arguments.is_atomic() || self.done == self.arguments.skip {
            return "nothing was added".into();
        }
        if self.verdicts.is_some() {
            let held = Counted(self.committed.held(), "document");
            return format!("committed {held}; to add the rest, give the command again");
        }
        let next = match self.next {
            Some((source, line)) => {
                let place = self.corpus.position(source, line);
                format!(", which begins at {place}")
            }
            None => String::new(),
        };
        format!(
            "committed {}; to add the rest{next}, give --skip {}",
            Counted(self.committed.held(), "document"),
            self.done
        )
    }
}

/// The outcome of an insertion for which nothing was compared.
fn as_new(id: DocumentId) -> Novelty {
    Novelty::New { id, left_out: None }
}
