//! The verb `dedup`.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use resemblance::{Bounds, Clusters, Document, DocumentId, Match, Record, Schema, Snapshot};

use super::Context;
use super::arguments::{BoundOptions, CorpusOptions, JoinLimits};
use super::building::Building;
use super::clusters::{clusters_of, tell_suspicious};
use super::escape;
use super::expect::{self, Product};
use super::failure::{Failure, Outcome, Result};
use super::features::Features;
use super::forecast::Forecaster;
use super::kept::Kept;
use super::output::{self, Bits, Sink, Target};
use super::pipeline::{DOCUMENTS_TOGETHER, Item, Pipeline};
use super::progress::Progress;
use super::report::{Report, Survivor};
use super::schema::SchemaOptions;
use super::scratch::ScratchStore;
use super::subject::{must_take_text, open_to_read, sketch, warn_if_nothing_included};
use super::tally::Tally;
use super::verify::{self, MOST_HELD_BYTES, Sketched, VerifyOptions};
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
/// A file and a new folder get their name when they are complete; a folder that is there gets its
/// files one after the other.
/// Ids need not be unique. Documents without any word are kept, unless --empty alike is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance dedup corpus.jsonl.gz -o unique.jsonl.zst --report dropped.tsv
  resemblance dedup shard-*.jsonl.gz -o unique/
  resemblance dedup texts/ -o unique-texts/ --chars 9 --threshold 0.9
  resemblance dedup corpus.jsonl -o unique.jsonl --verify exact --report dropped.tsv
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
    /// Write a line for each dropped document: dropped, survivor, estimated similarity (of SimHash
    /// alone the distance, of both families both); tab-separated. With --verify exact the
    /// similarity is exact, and a last column says exact, or estimate where the survivor's text is
    /// not at hand
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Also drop what this store has already; its schema is used. It has no texts: --verify exact
    /// compares with it by estimate
    #[arg(long, value_name = "STORE")]
    pub(crate) against: Option<PathBuf>,
    /// Which documents survive
    #[arg(long, value_name = "POLICY", default_value = "first")]
    policy: Policy,
    /// Compare with at most N of the documents that share a bucket with one, those that share the most
    /// buckets: bounds the time where texts have much boilerplate. Beyond that near-duplicates can
    /// stay; how many documents had more is counted. For --policy first
    #[arg(long, value_name = "N")]
    budget: Option<NonZeroU64>,
    /// Overwrite existing output, but never a store
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    bounds: BoundOptions,
    #[command(flatten)]
    limits: JoinLimits,
    #[command(flatten)]
    verify: VerifyOptions,
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
    if arguments.budget.is_some() && arguments.policy == Policy::Cluster {
        return Err(Failure::usage(
            "--budget is for --policy first; --max-bucket is for --policy cluster",
        ));
    }
    let settings = arguments.options.settings()?;
    let (schema, snapshot) = match &arguments.against {
        Some(path) => {
            let store = open_to_read(context, path)?;
            arguments.schema.must_agree(store.schema())?;
            arguments.bounds.must_lie_within(store.schema())?;
            (store.schema().clone(), Some(store.snapshot()?))
        }
        None => (arguments.schema.build_for_texts(&arguments.bounds)?, None),
    };
    must_take_text(&schema)?;
    let features = arguments.verify.features(context, &schema)?;
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
            let tells_exact = arguments.verify.is_exact();
            Some(Report::create(path, arguments.force, &schema, tells_exact)?)
        }
    };
    let sink = Sink::create(&target, arguments.force)?;
    output::spool(context, &mut corpus)?;
    if let Some(against) = arguments.against.as_ref().filter(|_| features.is_some()) {
        let documents = snapshot.as_ref().map_or(0, Snapshot::len);
        verify::tell_not_at_hand(context, against.display(), documents);
    }

    let mut plan = Plan {
        context,
        arguments,
        corpus: Arc::new(corpus),
        schema,
        against: snapshot,
        report,
        features,
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
        report.finish()?;
    }
    context.messages.note(tally.summary("kept", totals));
    Ok(Outcome::Done)
}

/// A document and what the other store has that is like it.
struct Seen {
    sketched: Sketched,
    known: Option<Match>,
    /// Whether it was compared with a part of its candidates in the other store only.
    is_beyond_budget: bool,
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
    /// Those of the documents in the temporary store, if similarities are to be exact.
    features: Option<Features>,
    kept: Bits,
    tally: Tally,
}

impl Plan<'_> {
    fn start(&self) -> Pipeline<Seen> {
        let sketcher = self.schema.sketcher();
        let with_features = self.features.is_some();
        let against = self.against.clone();
        let (bounds, budget) = (self.bounds(), self.arguments.budget);
        let Some(snapshot) = against else {
            return Pipeline::start(self.context, "reading", &self.corpus, 0, move |document| {
                Ok(Seen {
                    sketched: Sketched::of(&sketcher, with_features, &document.text)?,
                    known: None,
                    is_beyond_budget: false,
                })
            });
        };
        Pipeline::start_together(self.context, "reading", &self.corpus, move |documents| {
            let signatures = sketch(&sketcher, documents)?;
            let mut query = snapshot.query_many(&signatures).bounds(bounds).limit(1);
            if let Some(budget) = budget {
                query = query.probe_budget(budget.get());
            }
            let answers = query.run()?;
            let seen = documents.iter().zip(signatures).zip(answers);
            let seen = seen.map(|((document, signature), answer)| {
                let is_beyond_budget = answer.beyond_budget().is_some();
                let known = answer.into_iter().next();
                // What is known is not compared any more.
                let wanted = (with_features && known.is_none()).then_some(&document.text);
                let features = wanted
                    .map(|text| sketcher.feature_hashes(text))
                    .transpose()?;
                let features = features.unwrap_or_default();
                let sketched = Sketched {
                    signature,
                    features,
                };
                Ok(Seen {
                    sketched,
                    known,
                    is_beyond_budget,
                })
            });
            seen.collect()
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
    fn take(&mut self, item: Item<Seen>) -> Result<Option<(Vec<u8>, Seen)>> {
        let skip_bad = self.arguments.options.skip_bad;
        let corpus = Arc::clone(&self.corpus);
        let Some(document) = self.tally.take(self.context, &corpus, item, skip_bad)? else {
            self.kept.push(false);
            return Ok(None);
        };
        let seen = document.value;
        if let Some(known) = &seen.known {
            self.tally.beyond_budget += u64::from(seen.is_beyond_budget);
            self.kept.push(false);
            let label = match known.key() {
                Some(key) => escape::key(key).into_owned(),
                None => escape::without_key(known.id().get()),
            };
            self.drop(&document.key, &Survivor::of(known, label))?;
            return Ok(None);
        }
        self.tally.empty += u64::from(seen.sketched.signature.is_empty());
        Ok(Some((document.key, seen)))
    }

    fn drop(&mut self, dropped: &[u8], survivor: &Survivor) -> Result<()> {
        self.tally.dropped += 1;
        let is_exact = survivor.is_exact || !self.arguments.verify.is_exact();
        self.tally.estimated += u64::from(!is_exact);
        match &mut self.report {
            Some(report) => report.line(dropped, survivor),
            None => Ok(()),
        }
    }

    /// Every document is compared with the earlier ones that were kept.
    fn first(&mut self) -> Result<Totals> {
        let mut items = self.start();
        let (mut options, budget) = (self.context.store_options.clone(), self.arguments.budget);
        if let Some(budget) = budget {
            options = options.probe_budget(budget.get());
        }
        let scratch = ScratchStore::create_unnamed(self.context, &self.schema, &options)?;
        let mut kept = Kept::begin(&scratch, self.features.take(), budget)?;
        let (mut gathered, mut held_bytes) = (Vec::new(), 0);
        loop {
            match items.next() {
                Ok(Some(item)) => {
                    let seen = item.document.as_ref().ok();
                    held_bytes += seen.map_or(0, |seen| seen.value.sketched.features_bytes());
                    gathered.push(item);
                }
                Ok(None) => break,
                // what came before may have failed earlier
                Err(failure) if !failure.is_signal() => {
                    self.decide(&mut kept, gathered)?;
                    return Err(failure);
                }
                Err(failure) => return Err(failure),
            }
            if gathered.len() == DOCUMENTS_TOGETHER || held_bytes >= MOST_HELD_BYTES {
                self.decide(&mut kept, std::mem::take(&mut gathered))?;
                held_bytes = 0;
            }
        }
        self.decide(&mut kept, gathered)?;
        Ok(items.totals())
    }

    /// Decides some documents in their order.
    fn decide(&mut self, kept: &mut Kept<'_>, items: Vec<Item<Seen>>) -> Result<()> {
        // the only bounds that can differ from the schema's
        let has_own_bounds = self.against.is_some() && self.arguments.bounds.is_given();
        let together = if has_own_bounds {
            None
        } else {
            kept.insert_together(&open_documents(&items))?
        };
        let mut together = together.map(Vec::into_iter);
        for item in items {
            let (number, source, line) = (item.number, item.source, item.line);
            let Some((key, seen)) = self.take(item)? else {
                continue;
            };
            let sketched = &seen.sketched;
            let decision = match &mut together {
                Some(together) => together.next(),
                None => {
                    self.context.interrupt.check()?;
                    let document = Document::without_key().payload(&key).stamp(number);
                    let place = || self.corpus.place(source, line);
                    Some(kept.insert_unless_near(document, sketched, self.bounds(), place)?)
                }
            };
            let is_beyond = decision.as_ref().is_some_and(|d| d.is_beyond_budget);
            self.tally.beyond_budget += u64::from(is_beyond || seen.is_beyond_budget);
            let found = decision.and_then(|decision| decision.found);
            self.kept.push(found.is_none());
            match found {
                None => self.tally.kept += 1,
                Some(found) => {
                    let label = kept.label(found.id())?;
                    self.drop(&key, &Survivor::of(&found, label))?;
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
        let features = self.features.take().map(Arc::new);
        let (searched, bounds) = (snapshot.clone(), self.bounds());
        let join = self.arguments.limits.options(self.context);
        expect::announce(self.context, &snapshot, bounds, Product::Clusters)?;
        let mut progress = Progress::new("finding clusters", self.context.messages.quiet);
        let interrupt = self.context.interrupt.clone();
        let compared = features.clone();
        let (dropped, clusters) = interrupt.while_working(&mut progress, move || {
            Ok(followers(clusters_of(&searched, bounds, join, compared)?))
        })?;
        expect::tell_left_out(self.context, clusters.left_out());
        for cluster in clusters.suspicious() {
            let record = snapshot.get_id(cluster.first)?;
            let key = record.as_ref().map(Record::payload);
            tell_suspicious(self.context, cluster, key);
        }
        for (dropped, survivor) in dropped {
            interrupt.check()?;
            let records = snapshot.get_id(dropped)?.zip(snapshot.get_id(survivor)?);
            let Some((dropped, survivor)) = records else {
                continue;
            };
            self.kept.clear(dropped.stamp());
            self.tally.kept -= 1;
            let survivor = compare(&dropped, &survivor, features.as_deref())?;
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
            let Some((key, Seen { sketched, .. })) = self.take(item)? else {
                continue;
            };
            let what = (&schema, building.options());
            forecaster.document(self.context, what, key.len(), items.read_bytes())?;
            let document = Document::without_key().payload(&key).stamp(number);
            let place = || self.corpus.place(source, line);
            let id = building.insert(document, &sketched.signature, place)?;
            if let Some(features) = &mut self.features {
                features.put(id, &sketched.features)?;
            }
            self.kept.push(true);
            self.tally.kept += 1;
        }
        building.finish(&mut |_, _| Ok(()))?;
        if let Some(features) = &mut self.features {
            features.flush()?;
        }
        Ok(items.totals())
    }
}

/// All members of clusters but the first ones, each with its first one, ascending; and what else is
/// known of the clusters, which have been taken.
fn followers(mut clusters: Clusters) -> (Vec<(DocumentId, DocumentId)>, Clusters) {
    let mut followers = Vec::new();
    for cluster in clusters.by_ref() {
        if let [first, rest @ ..] = cluster.as_slice() {
            followers.extend(rest.iter().map(|member| (*member, *first)));
        }
    }
    followers.sort_unstable();
    (followers, clusters)
}

/// The survivor of a cluster beside one of its followers.
fn compare(dropped: &Record, survivor: &Record, features: Option<&Features>) -> Result<Survivor> {
    let exact = match features {
        Some(features) => features.similarity(dropped.id(), survivor.id())?,
        None => None,
    };
    let (a, b) = (dropped.signature(), survivor.signature());
    let estimate = a.minhash().map(|_| a.jaccard(b)).transpose()?;
    Ok(Survivor {
        label: escape::key(survivor.payload()).into_owned(),
        similarity: exact.or(estimate),
        is_exact: exact.is_some(),
        distance: a.simhash().map(|_| a.hamming(b)).transpose()?,
    })
}

/// Those that are to be decided, as they go into the temporary store.
fn open_documents(items: &[Item<Seen>]) -> Vec<(Document<'_>, &Sketched)> {
    let documents = items.iter().filter_map(|item| {
        let worked = item.document.as_ref().ok()?;
        let document = Document::without_key().payload(&worked.key);
        let seen = &worked.value;
        let is_open = seen.known.is_none();
        is_open.then_some((document.stamp(item.number), &seen.sketched))
    });
    documents.collect()
}

/// The folder arguments among the inputs.
pub(crate) fn folders(inputs: &[PathBuf]) -> impl Iterator<Item = &Path> {
    inputs
        .iter()
        .map(PathBuf::as_path)
        .filter(|path| path.is_dir())
}
