//! The arguments of `dedup`, and those of them that decide which documents are dropped.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use resemblance::{Bounds, Schema, Snapshot};
use resemblance_corpus::dedup::TextPart;
use resemblance_corpus::verification::FeatureSets;

use super::write::DedupPaths;
use crate::failure::{Failure, Result};
use crate::options::{JoinLimits, JoinOptions, PolicyName, SurvivorOptions, parse_share};
use crate::session::{Context, open_to_read, read_schema, read_stored_features};

/// The unit that is removed if it has appeared before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LevelName {
    /// Near-duplicate documents
    Document,
    /// Paragraphs with the same words
    Paragraph,
    /// Lines with the same words
    Line,
}

/// Write a corpus without its near-duplicates
///
/// The earlier of two near-duplicates survives, unless --keep says otherwise: arguments in their
/// order, paths in a folder in byte order. Kept lines pass through byte for byte (a missing newline
/// is added where another line follows, blank lines are removed, a byte order mark is kept only at
/// the start of an output), rows of CSV and TSV below their first row. Parquet and Arrow lose rows,
/// and nothing else. Nothing is written before the whole input has been read, and nothing is left
/// behind after a failure. A file and a new folder get their name when they are complete; an
/// existing folder gets its files one after the other, and with --force loses all others, which are
/// counted. An output never replaces a store, a link or a file that the command reads, and is never
/// written into a folder that it reads. Ids need not be unique. Documents without any word are kept,
/// unless --empty alike is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  resemblance dedup corpus.jsonl.gz -o unique.jsonl.zst --report dropped.tsv
  resemblance dedup shard-*.jsonl.gz -o unique/
  resemblance dedup data/train-*.parquet -o unique.parquet
  resemblance dedup texts/ -o unique-texts/ --chars 9 --threshold 0.9
  resemblance dedup corpus.jsonl -o unique.jsonl --verify estimate --report dropped.tsv
  resemblance dedup corpus.jsonl -o unique.jsonl --keep quality:max --dropped dropped.jsonl
  resemblance dedup corpus.jsonl -o unique.jsonl --level line,document
  resemblance dedup corpus.jsonl --in-place --report dropped.tsv
  resemblance dedup corpus.jsonl --dry-run --sample 0.05
  resemblance dedup shard-*.jsonl.gz -o unique/ --job dedup.job
  resemblance dedup corpus.parquet --annotate annotated.parquet --policy cluster
  resemblance dedup articles.db --table articles --text-field body --verdicts verdicts
  zcat corpus.jsonl.gz | resemblance dedup - -o - | gzip > unique.jsonl.gz
  resemblance dedup more.jsonl --against seen.rsm -o new.jsonl")]
pub(crate) struct DedupArguments {
    /// Files of JSON Lines or tables, folders, or - (see resemblance --help)
    #[arg(required = true)]
    pub(super) corpus: Vec<PathBuf>,
    /// A file (its name tells the compression), - for standard output, or a folder, which gets the
    /// input's file names and compression (if it exists, or ends in /, or texts are written)
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["in_place", "dry_run", "annotate", "verdicts"])]
    pub(super) output: Option<PathBuf>,
    /// Replace the corpus, one file of lines or a table, by what is kept of it, once that is complete
    #[arg(long, conflicts_with = "output")]
    pub(super) in_place: bool,
    /// Decide, and write the report and what was dropped, but not what was kept, even with -o, --in-place or --verdicts
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run: decide on this share of the documents alone, such as 0.01, those whose keys have the least
    /// hashes, the same each time, and tell which share of all documents is expected to go
    #[arg(
        long,
        value_name = "SHARE",
        value_parser = parse_share,
        requires = "dry_run",
        conflicts_with_all = ["dropped", "annotate", "verdicts", "job"]
    )]
    pub(super) sample: Option<f64>,
    /// Write the documents that were dropped as near-duplicates here, as they stand in the input: a file or
    /// a folder, as with -o
    #[arg(long, value_name = "OUT")]
    pub(super) dropped: Option<PathBuf>,
    /// Write all documents here as they stand in the input, with what became of each: a file or a folder, as with
    /// -o. Lines of JSON get fields and tables columns: dedup_kept, dedup_cluster (the place of the survivor
    /// in the corpus, from 1, or store:ID), dedup_size (documents of the cluster, with the survivor), dedup_rank
    /// (1 for the survivor, then in the order of the corpus), and of dropped ones dedup_survivor (its key, as
    /// the report has it), dedup_similarity, dedup_distance and dedup_similarity_is; null where there is
    /// none. A cluster is a survivor and what was dropped for it
    #[arg(long, value_name = "OUT")]
    pub(super) annotate: Option<PathBuf>,
    /// Begin the names of the fields that --annotate adds with NAME and an underscore
    #[arg(
        long,
        value_name = "NAME",
        default_value = "dedup",
        requires = "annotate",
        conflicts_with_all = ["sample", "verdicts"]
    )]
    pub(super) annotate_prefix: String,
    /// For one SQLite database: write what became of each row to TABLE of the same database, in one transaction.
    /// Its columns are row_id (or key, for rows without a rowid) and those of --annotate without a prefix; kept
    /// is 1 or 0. --force overwrites verdicts that are there
    #[arg(long, value_name = "TABLE", conflicts_with = "annotate")]
    pub(super) verdicts: Option<String>,
    /// Write a line for each dropped document: dropped, survivor, similarity (of SimHash alone the
    /// distance, of both families both); tab-separated, or as .csv, .jsonl, .json or .parquet at the end of the
    /// name tells. The last column says equal where both have the same
    /// text, byte for byte, or the same features, else exact, or estimate, as with --verify estimate and where the
    /// survivor's text is not at hand
    #[arg(long, value_name = "OUT")]
    pub(super) report: Option<PathBuf>,
    /// Leave out the first line of a report in tsv or csv, which has the names of the columns
    #[arg(long, requires = "report")]
    pub(super) no_header: bool,
    /// Remove near-duplicate documents, or paragraphs or lines whose words have appeared before, or
    /// both, such as paragraph,document: then near-duplicates are looked for in what is left. A
    /// document of which nothing is left is removed. A paragraph ends at a blank line
    #[arg(
        long,
        value_name = "LEVEL",
        value_delimiter = ',',
        default_value = "document"
    )]
    pub(super) level: Vec<LevelName>,
    /// Keep what was made of each file of the corpus in this folder, and go on with what a run that was
    /// stopped has left there. Deciding begins anew
    #[arg(long, value_name = "OUT_DIR", conflicts_with_all = ["against", "texts"])]
    pub(super) job: Option<PathBuf>,
    /// Overwrite existing output, but never a store
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(crate) survivors: SurvivorOptions,
    #[command(flatten)]
    pub(super) join: JoinOptions,
}

impl DedupArguments {
    /// Returns the prefix of the names of added columns.
    pub(super) fn column_prefix(&self) -> String {
        match self.verdicts {
            Some(_) => String::new(),
            None => format!("{}_", self.annotate_prefix),
        }
    }

    /// Returns the paths of what is written beside the kept documents.
    pub(super) fn paths(&self) -> DedupPaths<'_> {
        DedupPaths {
            inputs: &self.corpus,
            dropped: self.dropped.as_deref(),
            annotated: self.annotate.as_deref(),
            report: self.report.as_deref(),
            has_header: !self.no_header,
            force: self.force,
        }
    }

    /// Returns the choices that the decision depends on.
    pub(super) fn choices(&self) -> DedupChoices<'_> {
        DedupChoices {
            inputs: &self.corpus,
            survivors: &self.survivors,
            join: &self.join,
            limits: self.join.limits,
        }
    }

    /// Returns the kind of text parts that are removed if they have appeared before, if any.
    pub(super) fn part(&self) -> Result<Option<TextPart>> {
        let has = |level| self.level.contains(&level);
        match (has(LevelName::Paragraph), has(LevelName::Line)) {
            (true, true) => Err(Failure::usage(
                "--level: paragraph and line exclude each other; a repeated paragraph is repeated lines",
            )),
            (true, false) => Ok(Some(TextPart::Paragraph)),
            (false, true) => Ok(Some(TextPart::Line)),
            (false, false) => Ok(None),
        }
    }

    /// Returns true if near-duplicate documents are removed.
    pub(super) fn drops_documents(&self) -> bool {
        self.level.contains(&LevelName::Document)
    }
}

/// All options that the decision depends on, of whichever verb they are.
#[derive(Clone, Copy)]
pub(in crate::verbs) struct DedupChoices<'a> {
    pub(in crate::verbs) inputs: &'a [PathBuf],
    pub(in crate::verbs) survivors: &'a SurvivorOptions,
    pub(in crate::verbs) join: &'a JoinOptions,
    pub(in crate::verbs) limits: JoinLimits,
}

/// The basis on which documents are compared.
#[derive(Clone)]
pub(in crate::verbs) struct DedupBasis {
    pub(in crate::verbs) schema: Schema,
    /// The documents of the other store, whose schema it is.
    pub(in crate::verbs) against: Option<Snapshot>,
    /// True if similarities are exact where texts are available.
    pub(in crate::verbs) is_exact: bool,
}

impl DedupChoices<'_> {
    /// An error if a limit was given for another policy, or a family that signatures will not have.
    pub(in crate::verbs) fn check_limits(&self) -> Result<()> {
        let policy = self.survivors.policy;
        if self.limits.max_bucket.is_some() && policy == PolicyName::First {
            return Err(Failure::usage(
                "--max-bucket is for --policy cluster and representative; the policy first compares with \
                 what is kept",
            ));
        }
        if self.survivors.budget.is_some() && policy != PolicyName::First {
            return Err(Failure::usage(
                "--budget is for --policy first; --max-bucket is for the other policies",
            ));
        }
        match self.survivors.against {
            Some(_) => Ok(()),
            None => self.join.must_have_family(),
        }
    }

    pub(in crate::verbs) fn basis(&self, context: &Context) -> Result<DedupBasis> {
        let join = self.join;
        let (schema, against) = match &self.survivors.against {
            Some(path) => {
                let store = open_to_read(context, path)?;
                join.schema.must_agree(store.schema())?;
                join.bounds.must_lie_within(store.schema())?;
                join.by.must_suit(store.schema())?;
                (store.schema().clone(), Some(store.snapshot()?))
            }
            None => {
                let schema = read_schema(
                    context,
                    &join.schema,
                    &join.bounds,
                    self.inputs,
                    &join.corpus,
                )?;
                (schema, None)
            }
        };
        let has_budget = self.survivors.budget.is_some();
        let is_exact = join.verify.is_exact(&schema, has_budget)?;
        Ok(DedupBasis {
            schema,
            against,
            is_exact,
        })
    }

    /// Bounds beyond the schema's own, which exist only with `--against`, and the family that decides.
    pub(in crate::verbs) fn join_bounds(&self) -> Bounds {
        let bounds = match self.survivors.against {
            Some(_) => self.join.bounds.bounds(),
            None => Bounds::new(),
        };
        self.join.by.apply(bounds)
    }

    /// The features of the documents of the other store, if similarities are to be exact.
    pub(super) fn known_features(
        &self,
        context: &Context,
        basis: &DedupBasis,
    ) -> Result<Option<Arc<FeatureSets>>> {
        let against = self.survivors.against.as_ref().zip(basis.against.as_ref());
        let Some(((path, snapshot), mut features)) = against.zip(context.features(basis.is_exact))
        else {
            return Ok(None);
        };
        let (name, texts, options) = (path.display(), &self.survivors.texts, &self.join.corpus);
        let known = read_stored_features(context, name, snapshot, texts, options, &mut features)?;
        // A search that nobody verifies compares one of equal documents.
        Ok((known > 0).then(|| Arc::new(features)))
    }
}
