//! The verb `dedup`.

use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use resemblance::collection::Collected;
use resemblance::dedup::{DedupDecision, Deduplicator};
use resemblance::verification::{FeatureSets, SketchedText};
use resemblance::{Bounds, Document, Error, Match, Schema, Snapshot};

use crate::bug::bug;
use crate::corpus::{ContentRule, Corpus, CorpusDocument, ReadTotals};
use crate::failure::{Failure, Outcome, Result};
use crate::options::{
    BoundOptions, ByOptions, CorpusOptions, JoinLimits, SchemaOptions, VerifyOptions,
    similarity_name,
};
use crate::output::{DropReport, OutputTarget, Sink, Survivor, escape};
use crate::session::{
    BitList, BuildForecaster, Building, Context, CorpusDocuments, DOCUMENTS_TOGETHER,
    DocumentTally, JoinProduct, MAX_HELD_BYTES, NamedStore, ReadDocument, announce_join, copy_kept,
    limited, open_to_read, resolve_corpus, spool_sources, tell_left_out, tell_suspicious,
    temporary_name, with_tf_idf,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DedupPolicy {
    /// Drop a document that is a near-duplicate of an earlier one that was kept
    First,
    /// Keep the first document of each cluster, as `clusters` lists them
    Cluster,
}

/// Write a corpus without its near-duplicates
///
/// Of two near-duplicates the earlier one survives: arguments in their order, paths in a folder in
/// byte order. Kept lines pass through byte for byte (a missing newline is added where another
/// line follows, blank lines go, a byte order mark stays only at the start of an output). Nothing
/// is written before the whole input has been read, and nothing is left behind after a failure.
/// A file and a new folder get their name when they are complete; a folder that is there gets its
/// files one after the other.
/// Ids need not be unique. Documents without any word are kept, unless --empty alike is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance dedup corpus.jsonl.gz -o unique.jsonl.zst --report dropped.tsv
  resemblance dedup shard-*.jsonl.gz -o unique/
  resemblance dedup texts/ -o unique-texts/ --chars 9 --threshold 0.9
  resemblance dedup corpus.jsonl -o unique.jsonl --verify estimate --report dropped.tsv
  zcat corpus.jsonl.gz | resemblance dedup - -o - | gzip > unique.jsonl.gz
  resemblance dedup more.jsonl --against seen.rsm -o new.jsonl")]
pub(crate) struct DedupArguments {
    /// JSON Lines files, folders of text files, or - (see resemblance --help)
    #[arg(required = true)]
    corpus: Vec<PathBuf>,
    /// A file (its name tells the compression), - for standard output, or a folder, which gets the
    /// input's file names and compression (if it exists, or ends in /, or texts are written)
    #[arg(short, long, value_name = "OUT", required = true)]
    output: PathBuf,
    /// Write a line for each dropped document: dropped, survivor, similarity (of SimHash alone the
    /// distance, of both families both); tab-separated. A last column says whether the similarity is
    /// exact, or an estimate because the survivor's text is not at hand. With --verify estimate there is
    /// no such column, and all are estimates
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Leave out the first line of the report, which has the names of the columns
    #[arg(long, requires = "report")]
    no_header: bool,
    /// Also drop near-duplicates of documents in this store, whose schema is used. A store has no texts,
    /// so documents are compared with it by estimate
    #[arg(long, value_name = "STORE")]
    pub(crate) against: Option<PathBuf>,
    /// The corpus that this store was made of, or a part of it: the similarity to documents whose texts
    /// are there is exact
    #[arg(long, value_name = "CORPUS", num_args = 1.., requires = "against")]
    texts: Vec<PathBuf>,
    /// Which documents survive
    #[arg(long, value_name = "POLICY", default_value = "first")]
    policy: DedupPolicy,
    /// Compare a document with at most N candidates, those that share the most buckets with it. This
    /// bounds the time where texts have much boilerplate, but some near-duplicates may stay. Documents
    /// with more candidates are counted. For --policy first
    #[arg(long, value_name = "N")]
    budget: Option<NonZeroU64>,
    /// Overwrite existing output, but never a store
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    by: ByOptions,
    #[command(flatten)]
    limits: JoinLimits,
    #[command(flatten)]
    verify: VerifyOptions,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    options: CorpusOptions,
}

pub(crate) fn dedup(context: &Context, arguments: &DedupArguments) -> Result<Outcome> {
    check_limits(arguments)?;
    let (schema, snapshot) = match &arguments.against {
        Some(path) => {
            let store = open_to_read(context, path)?;
            arguments.schema.must_agree(store.schema())?;
            arguments.bounds.must_lie_within(store.schema())?;
            (store.schema().clone(), Some(store.snapshot()?))
        }
        None => {
            let schema = arguments.schema.build(&arguments.bounds)?;
            let weighed = arguments.schema.weighs_by_rarity().then(|| {
                let (inputs, options) = (&arguments.corpus, &arguments.options);
                with_tf_idf(context, schema.clone(), inputs, options)
            });
            (weighed.transpose()?.unwrap_or(schema), None)
        }
    };
    let is_exact = arguments
        .verify
        .is_exact(&schema, arguments.budget.is_some())?;
    let content = ContentRule::new(&schema, is_exact);
    let mut corpus = resolve_corpus(context, &arguments.corpus, &arguments.options, content)?;
    let target = OutputTarget::choose(
        &arguments.output,
        &arguments.corpus,
        &corpus,
        arguments.force,
    )?;
    let report = create_report(arguments, &schema, is_exact, (&target, &corpus))?;
    let sink = Sink::create(&target, arguments.force)?;
    spool_sources(context, &mut corpus)?;
    let known_features = known_features(context, arguments, snapshot.as_ref(), is_exact)?;

    let mut plan = DedupPlan {
        context,
        arguments,
        corpus: Arc::new(corpus),
        schema,
        against: snapshot,
        known_features,
        report,
        features: context.features(is_exact),
        is_exact,
        kept: BitList::default(),
        tally: DocumentTally::default(),
    };
    let totals = match arguments.policy {
        DedupPolicy::First => plan.first()?,
        DedupPolicy::Cluster => plan.clusters()?,
    };
    let DedupPlan {
        corpus,
        report,
        kept,
        tally,
        ..
    } = plan;
    copy_kept(context, &corpus, &kept, totals, sink)?;
    if let Some(report) = report {
        report.finish()?;
    }
    context.messages.note(tally.summary("kept", totals));
    Ok(Outcome::Done)
}

/// The features of the documents of the other store, if similarities are to be exact.
fn known_features(
    context: &Context,
    arguments: &DedupArguments,
    snapshot: Option<&Snapshot>,
    is_exact: bool,
) -> Result<Option<Arc<FeatureSets>>> {
    let against = arguments.against.as_ref().zip(snapshot);
    let Some(((path, snapshot), mut features)) = against.zip(context.features(is_exact)) else {
        return Ok(None);
    };
    let name = path.display();
    let store = NamedStore { name, snapshot };
    let known = store.read_texts(context, &arguments.texts, &arguments.options, &mut features)?;
    // A search that nobody verifies compares one of equal documents.
    Ok((known > 0).then(|| Arc::new(features)))
}

/// An error if a limit was given for the other policy.
fn check_limits(arguments: &DedupArguments) -> Result<()> {
    if arguments.limits.max_bucket.is_some() && arguments.policy != DedupPolicy::Cluster {
        return Err(Failure::usage(
            "--max-bucket is for --policy cluster; the policy first compares with what is kept",
        ));
    }
    if arguments.budget.is_some() && arguments.policy == DedupPolicy::Cluster {
        return Err(Failure::usage(
            "--budget is for --policy first; --max-bucket is for --policy cluster",
        ));
    }
    Ok(())
}

/// The list of dropped documents, if one is wanted.
fn create_report(
    arguments: &DedupArguments,
    schema: &Schema,
    is_exact: bool,
    (target, corpus): (&OutputTarget, &Corpus),
) -> Result<Option<DropReport>> {
    let Some(path) = &arguments.report else {
        return Ok(None);
    };
    target.must_not_meet(path, corpus)?;
    let mut report = DropReport::create(path, arguments.force, schema, is_exact)?;
    if !arguments.no_header {
        report.header(similarity_name(is_exact))?;
    }
    Ok(Some(report))
}

/// A document, and the document of the other store that it is most like.
struct SketchedDocument {
    sketched: SketchedText,
    known: Option<Match>,
    /// True if it was compared with a part of its candidates in the other store only.
    is_beyond_budget: bool,
}

/// Decides which documents are kept.
struct DedupPlan<'a> {
    context: &'a Context,
    arguments: &'a DedupArguments,
    corpus: Arc<Corpus>,
    /// Of a temporary store of the kept documents (with [`DedupPolicy::Cluster`] of all). The stamp of
    /// a document is its number in the corpus, and its payload is its key, because keys need not be
    /// unique.
    schema: Schema,
    against: Option<Snapshot>,
    /// Those of its documents, as far as their texts are at hand.
    known_features: Option<Arc<FeatureSets>>,
    report: Option<DropReport>,
    /// Those of the documents in the temporary store, if similarities are to be exact.
    features: Option<FeatureSets>,
    /// Whether similarities are exact where texts are at hand.
    is_exact: bool,
    kept: BitList,
    tally: DocumentTally,
}

impl DedupPlan<'_> {
    fn start(&self) -> CorpusDocuments<SketchedDocument> {
        let sketcher = self.schema.sketcher();
        let with_features = self.features.is_some();
        let (bounds, budget) = (self.bounds(), self.arguments.budget);
        let known_features = self.known_features.clone();
        let Some(snapshot) = self.against.clone() else {
            let work = move |document: &CorpusDocument<'_>| {
                Ok(SketchedDocument {
                    sketched: document.content.sketch(&sketcher, with_features)?,
                    known: None,
                    is_beyond_budget: false,
                })
            };
            return CorpusDocuments::start(self.context, "reading", &self.corpus, 0, work);
        };
        CorpusDocuments::start_together(self.context, "reading", &self.corpus, move |documents| {
            let texts = documents.iter();
            let texts = texts.map(|d| d.content.sketch(&sketcher, with_features));
            let (signatures, features): (Vec<_>, Vec<_>) = texts
                .map(|text| text.map(|text| (text.signature, text.features)))
                .collect::<resemblance::Result<Vec<_>>>()?
                .into_iter()
                .unzip();
            let mut query = snapshot.query(&signatures).bounds(bounds).limit(1);
            if let Some(budget) = budget {
                query = query.probe_budget(budget.get());
            }
            if let Some(known_features) = &known_features {
                query = query.verify(|index: usize, id| match features.get(index) {
                    Some(features) => known_features.similarity_to(features, id),
                    None => Ok(None),
                });
            }
            let answers = query.run()?;
            let sketched = signatures.into_iter().zip(features).zip(answers);
            let sketched = sketched.map(|((signature, features), answer)| SketchedDocument {
                is_beyond_budget: answer.beyond_budget().is_some(),
                known: answer.into_iter().next(),
                sketched: SketchedText {
                    signature,
                    features,
                },
            });
            Ok(sketched.collect())
        })
    }

    /// Bounds beyond the schema's own, which exist only with `--against`, and the family that decides.
    fn bounds(&self) -> Bounds {
        let bounds = match self.against {
            Some(_) => self.arguments.bounds.bounds(),
            None => Bounds::new(),
        };
        self.arguments.by.apply(bounds)
    }

    /// Counts a document, and drops it if the other store has one like it; the others are returned,
    /// to be decided.
    fn take(
        &mut self,
        read: ReadDocument<SketchedDocument>,
    ) -> Result<Option<(Vec<u8>, SketchedDocument)>> {
        let skip_bad = self.arguments.options.skip_bad;
        let corpus = Arc::clone(&self.corpus);
        let Some(document) = read.take(self.context, &corpus, &mut self.tally, skip_bad)? else {
            self.kept.push(false);
            return Ok(None);
        };
        let sketched = document.value;
        if let Some(known) = &sketched.known {
            self.tally.beyond_budget += u64::from(sketched.is_beyond_budget);
            self.kept.push(false);
            let label = match known.key() {
                Some(key) => escape::key(key).into_owned(),
                None => escape::without_key(known.id().get()),
            };
            self.drop(&document.key, &Survivor::from_match(known, label))?;
            return Ok(None);
        }
        self.tally.empty += u64::from(sketched.sketched.signature.is_empty());
        Ok(Some((document.key, sketched)))
    }

    fn drop(&mut self, dropped: &[u8], survivor: &Survivor) -> Result<()> {
        self.tally.dropped += 1;
        let is_estimated = self.is_exact && !survivor.is_exact;
        self.tally.estimated += u64::from(is_estimated);
        match &mut self.report {
            Some(report) => report.line(dropped, survivor),
            None => Ok(()),
        }
    }

    /// Every document is compared with the earlier ones that were kept.
    fn first(&mut self) -> Result<ReadTotals> {
        let mut documents = self.start();
        let (mut options, budget) = (self.context.store_options.clone(), self.arguments.budget);
        if let Some(budget) = budget {
            options = options.probe_budget(budget.get());
        }
        let folder = &self.context.temp_dir;
        let name = temporary_name(folder);
        let begun = Deduplicator::create(folder, self.schema.clone(), &options);
        let begun = begun.map_err(|error| Failure::store(&name, error))?;
        let begun = begun.memory_bytes(self.context.corpus_bytes());
        let begun = match NonZeroUsize::new(self.context.threads) {
            Some(threads) => begun.threads(threads),
            None => begun,
        };
        let mut kept = KeptDocuments {
            documents: match self.features.take() {
                Some(features) => begun.verify_exact(features),
                None => begun,
            },
            name,
        };
        let (mut gathered, mut held_bytes) = (Vec::new(), 0);
        loop {
            match documents.next() {
                Ok(Some(read)) => {
                    if let Ok(document) = &read.document {
                        held_bytes += document.value.sketched.feature_bytes();
                    }
                    gathered.push(read);
                }
                Ok(None) => break,
                // A document that came before may have been wrong: its failure comes first.
                Err(failure) if !failure.is_signal() => {
                    self.decide(&mut kept, gathered)?;
                    return Err(failure);
                }
                Err(failure) => return Err(failure),
            }
            if gathered.len() == DOCUMENTS_TOGETHER || held_bytes >= MAX_HELD_BYTES {
                self.decide(&mut kept, std::mem::take(&mut gathered))?;
                held_bytes = 0;
            }
        }
        self.decide(&mut kept, gathered)?;
        documents.end(self.context, &self.tally)
    }

    /// Decides some documents in their order: together, or one by one where that cannot be.
    fn decide(
        &mut self,
        kept: &mut KeptDocuments,
        gathered: Vec<ReadDocument<SketchedDocument>>,
    ) -> Result<()> {
        // Bounds that differ from the schema's come with another store only, or with another family.
        let has_own_bounds = self.against.is_some() && self.arguments.bounds.is_given()
            || self.arguments.by.is_given();
        let together = if has_own_bounds {
            None
        } else {
            kept.decide_together(&gathered)?
        };
        let mut together = together.map(Vec::into_iter);
        for read in gathered {
            let (number, source, line) = (read.number, read.source, read.line);
            let Some((key, document)) = self.take(read)? else {
                continue;
            };
            let decision = match &mut together {
                Some(decisions) => decisions
                    .next()
                    .ok_or_else(|| bug("a document was not decided"))?,
                None => {
                    self.context.interrupt.check()?;
                    let stored = Document::without_key().payload(&key).stamp(number);
                    let place = || self.corpus.position(source, line);
                    kept.decide(stored, &document.sketched, self.bounds(), place)?
                }
            };
            let is_beyond_budget = decision.is_beyond_budget || document.is_beyond_budget;
            self.tally.beyond_budget += u64::from(is_beyond_budget);
            self.kept.push(decision.found.is_none());
            match decision.found {
                None => self.tally.kept += 1,
                Some(found) => {
                    let label = kept.label(&found)?;
                    self.drop(&key, &Survivor::from_match(&found, label))?;
                }
            }
        }
        Ok(())
    }

    /// All documents are compared with each other, then all but the first of a cluster go.
    fn clusters(&mut self) -> Result<ReadTotals> {
        let context = self.context;
        let (collected, totals) = self.collect()?;
        let features = self.features.take().map(Arc::new);
        let join = collected.clusters().bounds(self.bounds());
        let join = limited(context, join, self.arguments.limits);
        let joining = announce_join(context, &join, JoinProduct::Clusters)?;
        let join = joining.follow(join);
        let mut progress = joining.display("finding clusters", context.messages.quiet);
        let interrupt = context.interrupt.clone();
        let duplicates =
            interrupt.while_working(&mut progress, move || Ok(join.duplicates(features)?))?;
        tell_left_out(context, duplicates.left_out());
        for cluster in duplicates.suspicious() {
            let first = collected.get_id(cluster.first)?;
            let first = first.ok_or_else(|| bug("a cluster of no documents"))?;
            tell_suspicious(context, cluster, Some(first.payload()));
        }
        for duplicate in duplicates {
            interrupt.check()?;
            let duplicate = duplicate?;
            let dropped = &duplicate.document;
            self.kept.clear(dropped.stamp())?;
            self.tally.kept -= 1;
            let survivor = Survivor {
                label: escape::key(duplicate.survivor.payload()).into_owned(),
                similarity: duplicate.similarity,
                is_exact: duplicate.is_exact,
                distance: duplicate.distance,
            };
            self.drop(dropped.payload(), &survivor)?;
        }
        Ok(totals)
    }

    /// Collects all documents that are to be decided.
    fn collect(&mut self) -> Result<(Collected, ReadTotals)> {
        let schema = self.schema.clone();
        let context = self.context;
        let mut building = Building::collect(context, &schema, false)?;
        let mut documents = self.start();
        let mut forecaster = BuildForecaster::new(context, || self.corpus.size_bytes());
        while let Some(read) = documents.next()? {
            let (number, source, line) = (read.number, read.source, read.line);
            let Some((key, document)) = self.take(read)? else {
                continue;
            };
            let sketched = document.sketched;
            let kind = (&schema, building.options());
            let stored = (key.len(), &sketched.signature);
            forecaster.document(context, kind, stored, documents.read_bytes())?;
            let stored = Document::without_key().payload(&key).stamp(number);
            let place = || self.corpus.position(source, line);
            let id = building.insert(stored, &sketched.signature, place)?;
            if let Some(features) = &mut self.features {
                features.put(id, sketched.features)?;
            }
            self.kept.push(true);
            self.tally.kept += 1;
        }
        let totals = documents.end(context, &self.tally)?;
        let collected = building.finish(&mut |_, _| Ok(()))?;
        if let Some(features) = &mut self.features {
            features.flush()?;
        }
        Ok((collected, totals))
    }
}

/// The kept documents, and how failures call their store.
struct KeptDocuments {
    documents: Deduplicator,
    name: String,
}

impl KeptDocuments {
    /// Decides those documents that are good and that the other store does not have. `None` if one of
    /// them is wrong: then none was decided, and [`decide`](Self::decide) tells which.
    fn decide_together(
        &mut self,
        gathered: &[ReadDocument<SketchedDocument>],
    ) -> Result<Option<Vec<DedupDecision>>> {
        let mut open = Vec::with_capacity(gathered.len());
        for read in gathered {
            if let Ok(document) = &read.document
                && document.value.known.is_none()
            {
                let stored = Document::without_key().payload(&document.key);
                open.push((stored.stamp(read.number), &document.value.sketched));
            }
        }
        match self.documents.decide_many(&open) {
            Ok(decisions) => Ok(Some(decisions)),
            Err(Error::InvalidParameter { .. } | Error::SignatureMismatch { .. }) => Ok(None),
            Err(error) => Err(Failure::store(&self.name, error)),
        }
    }

    /// Decides a document, which stands at `place`.
    fn decide(
        &mut self,
        document: Document<'_>,
        sketched: &SketchedText,
        bounds: Bounds,
        place: impl FnOnce() -> String,
    ) -> Result<DedupDecision> {
        let decided = self.documents.decide(document, sketched, bounds);
        decided.map_err(|error| Failure::document(&self.name, place(), error))
    }

    /// The key of a kept document as it is printed.
    fn label(&self, found: &Match) -> Result<String> {
        let record = self.documents.get_id(found.id())?;
        let record = record.ok_or_else(|| bug("a document was found that was not kept"))?;
        Ok(escape::key(record.payload()).into_owned())
    }
}
