//! The verb `dedup`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use resemblance::{
    Bounds, Clusters, Document, DocumentId, Error, JoinOptions, Match, Novelty, Record, Schema,
    Signature, Snapshot, WriteTransaction,
};

use super::Context;
use super::arguments::{BoundOptions, CorpusOptions, JoinLimits};
use super::building::Building;
use super::clusters::tell_suspicious;
use super::destination::Destination;
use super::escape;
use super::expect::{self, Product};
use super::failure::{Failure, Outcome, Result};
use super::forecast::Forecaster;
use super::output::{self, Bits, Sink, Target};
use super::pipeline::{DOCUMENTS_TOGETHER, Item, Pipeline};
use super::progress::Progress;
use super::results::Value;
use super::schema::SchemaOptions;
use super::scratch::ScratchStore;
use super::subject::{must_take_text, open_to_read, sketch, warn_if_nothing_included};
use super::tally::Tally;
use crate::corpus::{Corpus, Totals};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
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
/// Ids need not be unique. Documents without any word are kept, unless --empty alike is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance dedup corpus.jsonl.gz -o unique.jsonl.zst --report dropped.tsv
  resemblance dedup shard-*.jsonl.gz -o unique/
  resemblance dedup texts/ -o unique-texts/ --chars 9 --threshold 0.9
  zcat corpus.jsonl.gz | resemblance dedup - -o - | gzip > unique.jsonl.gz
  resemblance dedup more.jsonl --against seen.rsm -o new.jsonl")]
pub(crate) struct Arguments {
    /// JSON Lines files, folders of text files, or - (see resemblance --help)
    #[arg(required = true)]
    corpus: Vec<PathBuf>,
    /// A file (its name tells the compression), - for standard output, or a folder, which gets the
    /// input's file names and compression (if it exists, or ends in /, or texts are written)
    #[arg(short, long, value_name = "OUT", required = true)]
    output: PathBuf,
    /// Write a line for each dropped document: dropped, survivor, similarity (of SimHash alone the
    /// distance, of both families both); tab-separated
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Also drop what this store has already; its schema is used
    #[arg(long, value_name = "STORE")]
    pub(crate) against: Option<PathBuf>,
    /// Which documents survive
    #[arg(long, value_name = "POLICY", default_value = "first")]
    policy: Policy,
    /// Overwrite existing output, but never a store
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    limits: JoinLimits,
    #[command(flatten)]
    schema: SchemaOptions,
    #[command(flatten)]
    options: CorpusOptions,
}

pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<Outcome> {
    if arguments.limits.max_bucket.is_some() && arguments.policy != Policy::Cluster {
        return Err(Failure::usage(
            "--max-bucket is for --policy cluster; the policy first compares with what is kept",
        ));
    }
    let settings = arguments.options.settings()?;
    let (schema, against) = match &arguments.against {
        Some(path) => {
            let store = open_to_read(context, path)?;
            arguments.schema.must_agree(store.schema())?;
            arguments.bounds.must_lie_within(store.schema())?;
            (store.schema().clone(), Some(store.snapshot()?))
        }
        None => (arguments.schema.build(&arguments.bounds)?, None),
    };
    must_take_text(&schema)?;
    let mut corpus = Corpus::resolve(&arguments.corpus, settings)?;
    warn_if_nothing_included(context, &corpus);
    let target = Target::choose(
        &arguments.output,
        &arguments.corpus,
        &corpus,
        arguments.force,
    )?;
    let report = match &arguments.report {
        None => None,
        Some(path) => {
            target.must_not_meet(path, &corpus)?;
            let destination = Destination::create(path, arguments.force)?;
            Some(Report {
                destination,
                schema: schema.clone(),
            })
        }
    };
    let sink = Sink::create(&target, arguments.force)?;
    output::spool(context, &mut corpus)?;

    let mut plan = Plan {
        context,
        arguments,
        corpus: Arc::new(corpus),
        schema,
        against,
        report,
        kept: Bits::default(),
        tally: Tally::default(),
    };
    let totals = match arguments.policy {
        Policy::First => plan.first()?,
        Policy::Cluster => plan.clusters()?,
    };
    let Plan {
        corpus,
        report,
        kept,
        tally,
        ..
    } = plan;
    output::copy(context, &corpus, &kept, totals, sink)?;
    if let Some(report) = report {
        report.destination.finish()?;
    }
    context.messages.note(tally.summary("kept", totals));
    Ok(Outcome::Done)
}

/// A document's signature and what the other store has that is like it.
struct Sketched {
    signature: Signature,
    known: Option<Match>,
}

/// Decides which documents are kept.
struct Plan<'a> {
    context: &'a Context,
    arguments: &'a Arguments,
    corpus: Arc<Corpus>,
    /// Of a temporary store of the kept documents (with [`Policy::Cluster`] of all): number in the
    /// corpus as stamp, key as payload, because keys need not be unique.
    schema: Schema,
    against: Option<Snapshot>,
    report: Option<Report>,
    kept: Bits,
    tally: Tally,
}

impl Plan<'_> {
    fn start(&self) -> Pipeline<Sketched> {
        let sketcher = self.schema.sketcher();
        let against = self.against.clone();
        let bounds = self.bounds();
        let Some(snapshot) = against else {
            return Pipeline::start(self.context, "reading", &self.corpus, 0, move |document| {
                Ok(Sketched {
                    signature: sketcher.text(&document.text)?,
                    known: None,
                })
            });
        };
        Pipeline::start_together(self.context, "reading", &self.corpus, move |documents| {
            let signatures = sketch(&sketcher, documents)?;
            let query = snapshot.query_many(&signatures).bounds(bounds).limit(1);
            let known = query.run()?.into_iter().map(|m| m.into_iter().next());
            let known: Vec<Option<Match>> = known.collect();
            let sketched = signatures.into_iter().zip(known);
            let sketched = sketched.map(|(signature, known)| Sketched { signature, known });
            Ok(sketched.collect())
        })
    }

    /// Bounds beyond the schema's own, which exist only with `--against`.
    fn bounds(&self) -> Bounds {
        if self.against.is_some() {
            self.arguments.bounds.bounds()
        } else {
            Bounds::new()
        }
    }

    /// Counts an item and drops what the other store has: what is left is to be decided.
    fn take(&mut self, item: Item<Sketched>) -> Result<Option<(Vec<u8>, Signature)>> {
        let skip_bad = self.arguments.options.skip_bad;
        let corpus = Arc::clone(&self.corpus);
        let Some(document) = self.tally.take(self.context, &corpus, item, skip_bad)? else {
            self.kept.push(false);
            return Ok(None);
        };
        let Sketched { signature, known } = document.value;
        if let Some(known) = known {
            self.kept.push(false);
            let survivor = Survivor {
                label: match known.key() {
                    Some(key) => escape::key(key).into_owned(),
                    None => escape::without_key(known.id().get()),
                },
                similarity: known.similarity(),
                distance: known.distance(),
            };
            self.drop(&document.key, &survivor)?;
            return Ok(None);
        }
        self.tally.empty += u64::from(signature.is_empty());
        Ok(Some((document.key, signature)))
    }

    fn drop(&mut self, dropped: &[u8], survivor: &Survivor) -> Result<()> {
        self.tally.dropped += 1;
        match &mut self.report {
            Some(report) => report.line(dropped, survivor),
            None => Ok(()),
        }
    }

    /// Every document is compared with the earlier ones that were kept.
    fn first(&mut self) -> Result<Totals> {
        let mut items = self.start();
        let scratch = &ScratchStore::create_unnamed(self.context, &self.schema)?;
        let begun = scratch.store().begin_write();
        let transaction = &mut begun.map_err(|e| scratch.failure(e))?;
        let mut gathered = Vec::new();
        loop {
            match items.next() {
                Ok(Some(item)) => gathered.push(item),
                Ok(None) => break,
                // what came before may have failed earlier
                Err(failure) if !failure.is_signal() => {
                    self.decide(scratch, transaction, gathered)?;
                    return Err(failure);
                }
                Err(failure) => return Err(failure),
            }
            if gathered.len() == DOCUMENTS_TOGETHER {
                self.decide(scratch, transaction, std::mem::take(&mut gathered))?;
            }
        }
        self.decide(scratch, transaction, gathered)?;
        Ok(items.totals())
    }

    /// Decides some documents in their order.
    fn decide(
        &mut self,
        scratch: &ScratchStore,
        transaction: &mut WriteTransaction,
        items: Vec<Item<Sketched>>,
    ) -> Result<()> {
        // the only bounds that can differ from the schema's
        let bounds = (self.against.is_some() && self.arguments.bounds.is_given())
            .then(|| self.arguments.bounds.bounds());
        let together = match bounds {
            Some(_) => None,
            None => insert_together(scratch, transaction, &items)?,
        };
        let mut together = together.map(Vec::into_iter);
        for item in items {
            let (number, source, line) = (item.number, item.source, item.line);
            let Some((key, signature)) = self.take(item)? else {
                continue;
            };
            let found = match &mut together {
                Some(together) => together.next().flatten(),
                None => {
                    self.context.interrupt.check()?;
                    let document = Document::without_key().payload(&key).stamp(number);
                    let inserted = insert_unless_near(transaction, document, &signature, bounds);
                    inserted.map_err(|e| {
                        let place = self.corpus.place(source, line);
                        scratch.document_failure(place, e)
                    })?
                }
            };
            self.kept.push(found.is_none());
            match found {
                None => self.tally.kept += 1,
                Some(found) => {
                    let record = transaction.get_id(found.id())?;
                    let survivor = Survivor {
                        label: record.map_or_else(String::new, |record| {
                            escape::key(record.payload()).into_owned()
                        }),
                        similarity: found.similarity(),
                        distance: found.distance(),
                    };
                    self.drop(&key, &survivor)?;
                }
            }
        }
        Ok(())
    }

    /// All documents are compared with each other, then all but the first of a cluster go.
    fn clusters(&mut self) -> Result<Totals> {
        let context = self.context;
        let (scratch, totals) = ScratchStore::build_unnamed(context, |path| self.build(path))?;
        let snapshot = scratch.store().snapshot()?;
        let (searched, bounds) = (snapshot.clone(), self.bounds());
        let join = self.arguments.limits.options(self.context);
        expect::announce(self.context, &snapshot, bounds, Product::Clusters)?;
        let mut progress = Progress::new("finding clusters", self.context.messages.quiet);
        let interrupt = self.context.interrupt.clone();
        let (dropped, clusters) =
            interrupt.while_working(&mut progress, move || followers(&searched, bounds, join))?;
        expect::tell_left_out(self.context, clusters.left_out());
        for cluster in clusters.suspicious() {
            let record = snapshot.get_id(cluster.first)?;
            let key = record.as_ref().map(Record::payload);
            tell_suspicious(self.context, cluster, key);
        }
        let schema = snapshot.schema().clone();
        for (dropped, survivor) in dropped {
            interrupt.check()?;
            let records = snapshot.get_id(dropped)?.zip(snapshot.get_id(survivor)?);
            let Some((dropped, survivor)) = records else {
                continue;
            };
            self.kept.clear(dropped.stamp());
            self.tally.kept -= 1;
            let (a, b) = (dropped.signature(), survivor.signature());
            let has_minhash = schema.minhash().is_some();
            let has_simhash = schema.simhash().is_some();
            let survivor = Survivor {
                label: escape::key(survivor.payload()).into_owned(),
                similarity: has_minhash.then(|| a.jaccard(b)).transpose()?,
                distance: has_simhash.then(|| a.hamming(b)).transpose()?,
            };
            self.drop(dropped.payload(), &survivor)?;
        }
        Ok(totals)
    }

    /// Makes a store of all documents that are to be decided.
    fn build(&mut self, path: &Path) -> Result<Totals> {
        let schema = self.schema.clone();
        let mut building =
            Building::begin(self.context, path, &self.context.temp_dir, &schema, false)?;
        let mut items = self.start();
        let mut forecaster = Forecaster::new(self.context, || self.corpus.size_bytes());
        while let Some(item) = items.next()? {
            let (number, source, line) = (item.number, item.source, item.line);
            let Some((key, signature)) = self.take(item)? else {
                continue;
            };
            let what = (&schema, building.options());
            forecaster.document(self.context, what, key.len(), items.read_bytes())?;
            let document = Document::without_key().payload(&key).stamp(number);
            building.insert(document, &signature, || self.corpus.place(source, line))?;
            self.kept.push(true);
            self.tally.kept += 1;
        }
        building.finish(&mut |_, _| Ok(()))?;
        Ok(items.totals())
    }
}

/// All members of clusters but the first ones, each with its first one, ascending; and what else is
/// known of the clusters, which have been taken.
fn followers(
    snapshot: &Snapshot,
    bounds: Bounds,
    join: JoinOptions,
) -> Result<(Vec<(DocumentId, DocumentId)>, Clusters)> {
    let mut followers = Vec::new();
    let mut clusters = snapshot.clusters_with(bounds, &join)?;
    for cluster in clusters.by_ref() {
        if let [first, rest @ ..] = cluster.as_slice() {
            followers.extend(rest.iter().map(|member| (*member, *first)));
        }
    }
    followers.sort_unstable();
    Ok((followers, clusters))
}

/// Inserts a document, or returns the best match among those inserted before.
fn insert_unless_near(
    transaction: &mut WriteTransaction,
    document: Document<'_>,
    signature: &Signature,
    bounds: Option<Bounds>,
) -> resemblance::Result<Option<Match>> {
    if let Some(bounds) = bounds {
        let query = transaction.query(signature).bounds(bounds).limit(1);
        let found = query.run()?.into_iter().next();
        if found.is_none() {
            transaction.insert_document(document, signature)?;
        }
        return Ok(found);
    }
    let novelty = transaction.insert_document_if_new(document, signature)?;
    Ok(near(novelty))
}

/// The match of a document that is not new.
fn near(novelty: Novelty) -> Option<Match> {
    match novelty {
        Novelty::NearDuplicate(found) | Novelty::SameKey(found) => Some(found),
        _ => None,
    }
}

/// For whom a document was dropped.
struct Survivor {
    /// Its key as it is printed.
    label: String,
    similarity: Option<f64>,
    distance: Option<u32>,
}

/// The list of dropped documents.
struct Report {
    destination: Destination,
    schema: Schema,
}

impl Report {
    fn line(&mut self, dropped: &[u8], survivor: &Survivor) -> Result<()> {
        let mut line = format!("{}\t{}", escape::key(dropped), survivor.label);
        if self.schema.minhash().is_some() {
            line.push('\t');
            line.push_str(&Value::Similarity(survivor.similarity).text());
        }
        if self.schema.simhash().is_some() {
            line.push('\t');
            line.push_str(&Value::Distance(survivor.distance).text());
        }
        line.push('\n');
        self.destination.write(line.as_bytes())
    }
}

/// The folder arguments among the inputs.
pub(crate) fn folders(inputs: &[PathBuf]) -> impl Iterator<Item = &Path> {
    inputs
        .iter()
        .map(PathBuf::as_path)
        .filter(|path| path.is_dir())
}

/// Inserts those that are to be decided unless they are near one before: the best match of
/// each. `None` if one of them cannot be inserted: then none was.
fn insert_together(
    scratch: &ScratchStore,
    transaction: &mut WriteTransaction,
    items: &[Item<Sketched>],
) -> Result<Option<Vec<Option<Match>>>> {
    let documents = items.iter().filter_map(|item| {
        let worked = item.document.as_ref().ok()?;
        let document = Document::without_key().payload(&worked.key);
        let sketched = &worked.value;
        let is_open = sketched.known.is_none();
        is_open.then_some((document.stamp(item.number), &sketched.signature))
    });
    let documents: Vec<_> = documents.collect();
    match transaction.insert_many_if_new(&documents) {
        Ok(novelties) => Ok(Some(novelties.into_iter().map(near).collect())),
        Err(Error::InvalidParameter { .. } | Error::SignatureMismatch { .. }) => Ok(None),
        Err(error) => Err(scratch.failure(error)),
    }
}
