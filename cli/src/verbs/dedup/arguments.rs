//! The arguments of `dedup`, and those of them that decide which documents are dropped.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use resemblance::{Bounds, Schema, Snapshot};
use resemblance_corpus::dedup::TextPart;
use resemblance_corpus::verification::FeatureSets;

use crate::failure::{Failure, Result};
use crate::options::{
    JoinLimits, JoinOptions, PolicyName, SurvivorOptions, must_compare_sets, must_use_texts,
    parse_part, parse_share,
};
use crate::session::{Context, MissingText, StoredTexts, open_to_read, weighed};

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
/// The earlier of two near-duplicates survives, unless --keep sets another rule. Arguments count in their order, paths
/// in a folder in byte order. The remaining lines, and rows of CSV and TSV after the first, are written unchanged, byte
/// for byte (a missing newline is added if another line follows, blank lines are removed, a byte order mark is kept
/// only at the start of an output). Parquet and Arrow files lose rows and nothing else. Nothing is written before the
/// whole input has been read, and a failure leaves no output behind. A file and a new folder appear under their names
/// when they are complete. An existing folder gets its files one after the other, and with --force loses all others,
/// which are counted. An output never replaces a store, a link or a file that the command reads, and is never written
/// into a folder that it reads. Ids need not be unique. Documents without any word are kept, unless --empty alike is
/// given.
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
    /// JSON Lines files, tables, folders or - (see resemblance --help)
    #[arg(required = true)]
    pub(super) corpus: Vec<PathBuf>,
    /// A file (its name determines the compression), - for standard output, or a folder, which gets the input's file
    /// names and compression (if it exists, ends in /, or texts are written)
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["in_place", "dry_run", "annotate", "verdicts"])]
    pub(super) output: Option<PathBuf>,
    /// Replace the corpus, which must be one JSON Lines file or table, by the documents kept, once they are written
    #[arg(long, conflicts_with = "output")]
    pub(super) in_place: bool,
    /// Write only reports, the dropped documents and --annotate, not those kept, even with -o, --in-place or --verdicts
    #[arg(long)]
    pub(super) dry_run: bool,
    /// With --dry-run: read only this share of the documents, such as 0.01, those whose keys have the least hashes,
    /// always the same ones, and print the share of all documents that is expected to be dropped
    #[arg(
        long,
        value_name = "SHARE",
        value_parser = parse_share,
        requires = "dry_run",
        conflicts_with_all = ["dropped", "annotate", "verdicts", "job"]
    )]
    pub(super) sample: Option<f64>,
    /// Write the documents that were dropped as near-duplicates here, unchanged: a file or a folder, as with -o
    #[arg(long, value_name = "OUT")]
    pub(super) dropped: Option<PathBuf>,
    /// Write all documents here with a verdict on each: a file or a folder, as with -o. JSON lines get fields and
    /// tables columns: dedup_kept, dedup_cluster (the place of the survivor in the corpus, from 1, or store:ID),
    /// dedup_size (documents of the cluster, with the survivor), dedup_rank (1 for the survivor, then in the order of
    /// the corpus), and for dropped documents dedup_survivor (its key, as in the report), dedup_similarity,
    /// dedup_distance and dedup_similarity_is; null if there is no value. A cluster is a survivor and the documents
    /// dropped for it
    #[arg(long, value_name = "OUT")]
    pub(super) annotate: Option<PathBuf>,
    /// Prefix, followed by an underscore, of the fields that --annotate adds
    #[arg(
        long,
        value_name = "NAME",
        default_value = "dedup",
        requires = "annotate",
        conflicts_with_all = ["sample", "verdicts"]
    )]
    pub(super) annotate_prefix: String,
    /// For one SQLite database: write a verdict on each row to TABLE of the same database, in one transaction. Its
    /// columns are row_id (or key, for rows without a rowid) and those of --annotate without a prefix; kept is 1 or 0.
    /// --force overwrites existing verdicts
    #[arg(long, value_name = "TABLE", conflicts_with = "annotate")]
    pub(super) verdicts: Option<String>,
    /// For WARC files, with a folder after -o: replace each dropped response by a revisit record that refers to the
    /// survivor. If both have the same payload digest, it is one of identical payloads, and otherwise one of
    /// near-duplicates, whose replay shows the survivor
    #[arg(
        long,
        requires = "output",
        conflicts_with_all = ["in_place", "dry_run", "against"]
    )]
    pub(super) revisit: bool,
    /// Write a line for each dropped document: dropped, survivor, similarity (with SimHash alone the distance, with
    /// both families both); similarity_is, which is equal if both have the same text, byte for byte, or the same
    /// features, otherwise exact, or estimate with --verify estimate, with SimHash alone or if the survivor's text is
    /// not available; held, the share of the dropped document's features that the survivor has; covered, the share of
    /// the survivor's features that the dropped document has (both empty unless the features of both are
    /// known); and rule, which decided: similarity, distance, both, cluster (others link the two) or contained
    /// (--lost). It is tab-separated, unless its name ends in .csv, .jsonl, .json or .parquet
    #[arg(long, value_name = "OUT")]
    pub(super) report: Option<PathBuf>,
    /// Write a line for each document kept or in the store that a document was compared with and is not near (or that
    /// lacks too many of its features, with --lost): document, candidate,
    /// similarity, similarity_is, held and covered as in --report, and the reason. Each comparison then runs to its
    /// end. For exact similarities, or --lost, and any policy but cluster
    #[arg(long, value_name = "OUT")]
    pub(super) rejected: Option<PathBuf>,
    #[command(flatten)]
    pub(super) review: Box<ReviewOptions>,
    /// Omit the header line of a report in tsv or csv
    #[arg(long, requires = "report")]
    pub(super) no_header: bool,
    /// Remove near-duplicate documents, or paragraphs or lines whose words have appeared before, or both, such as
    /// paragraph,document, which compares the documents that remain after paragraphs are removed. A document of which
    /// nothing remains is removed. A paragraph ends at a blank line
    #[arg(
        long,
        value_name = "LEVEL",
        value_delimiter = ',',
        default_value = "document"
    )]
    pub(super) level: Vec<LevelName>,
    /// Drop a document only if a document that is kept has its features, all but this share of its distinct ones: with
    /// --lost 0 nothing is lost. Similarity plays no part: a short document that is contained in a long one is dropped.
    /// The longer one survives unless each has the features of the other; then --keep decides. All documents are read
    /// before one is dropped. Needs texts. With --against, a document is also dropped if a document of the store has
    /// its features: the store must be exact, or --texts must give its texts. No document of the store is dropped
    #[arg(
        long,
        value_name = "SHARE",
        value_parser = parse_part,
        conflicts_with_all = ["budget", "max_bucket", "threshold", "euclidean", "distance", "by", "margin", "verify"]
    )]
    pub(super) lost: Option<f64>,
    /// Save the results for each file of the corpus in this folder, and reuse those of an interrupted run. The
    /// selection of survivors starts over
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

/// The options of a review.
#[derive(Debug, Args)]
pub(super) struct ReviewOptions {
    /// Write pairs near the bound (the threshold, or the share of --lost) for a person to judge, half of them dropped
    /// and half kept apart, chosen at random: document, candidate (the survivor, or the document that it was compared
    /// with), decision (dropped, or kept apart), judgement, which is empty, similarity, similarity_is, held and covered
    /// as in --report, population, the number of pairs with this decision that are as near the bound, and both texts,
    /// where [- -] and {+ +} enclose what only one of them has. The same comparisons as for --rejected are needed
    #[arg(long, value_name = "OUT")]
    pub(super) review: Option<PathBuf>,
    /// Number of pairs to review
    #[arg(long, value_name = "N", default_value_t = 20, requires = "review")]
    pub(super) review_pairs: usize,
    /// Choose from pairs whose similarity, or with --lost the share that would be lost, is less than this away from the
    /// bound
    #[arg(
        long,
        value_name = "DISTANCE",
        default_value_t = 0.05,
        value_parser = parse_share,
        requires = "review"
    )]
    pub(super) review_within: f64,
    /// Another number chooses other pairs
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "review")]
    pub(super) review_seed: u64,
}

impl DedupArguments {
    /// Returns the prefix of the names of added columns.
    pub(super) fn column_prefix(&self) -> String {
        match self.verdicts {
            Some(_) => String::new(),
            None => format!("{}_", self.annotate_prefix),
        }
    }

    /// Returns the paths of the outputs other than the kept documents.
    pub(super) fn paths(&self) -> DedupPaths<'_> {
        DedupPaths {
            inputs: &self.corpus,
            dropped: self.dropped.as_deref(),
            annotated: self.annotate.as_deref(),
            report: self.report.as_deref(),
            rejected: self.rejected.as_deref(),
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
            lost: self.lost,
            with_rejected: self.rejected.is_some() || self.review.review.is_some(),
        }
    }

    /// Returns the kind of text parts that are removed if they have appeared before, if any.
    pub(super) fn part(&self) -> Result<Option<TextPart>> {
        let has = |level| self.level.contains(&level);
        match (has(LevelName::Paragraph), has(LevelName::Line)) {
            (true, true) => Err(Failure::usage("--level: paragraph does not go with line")
                .with_note("line also removes repeated paragraphs")),
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

/// The paths of the outputs other than the kept documents.
pub(in crate::verbs) struct DedupPaths<'a> {
    /// The paths of the corpus.
    pub(in crate::verbs) inputs: &'a [PathBuf],
    pub(in crate::verbs) dropped: Option<&'a Path>,
    pub(in crate::verbs) annotated: Option<&'a Path>,
    pub(in crate::verbs) report: Option<&'a Path>,
    pub(in crate::verbs) rejected: Option<&'a Path>,
    /// Whether a report has the names of its columns.
    pub(in crate::verbs) has_header: bool,
    pub(in crate::verbs) force: bool,
}

/// All options that the decision depends on, of whichever verb they are.
#[derive(Clone, Copy)]
pub(in crate::verbs) struct DedupChoices<'a> {
    pub(in crate::verbs) inputs: &'a [PathBuf],
    pub(in crate::verbs) survivors: &'a SurvivorOptions,
    pub(in crate::verbs) join: &'a JoinOptions,
    pub(in crate::verbs) limits: JoinLimits,
    /// The share of a document's features that may be lost with it, if this decides.
    pub(in crate::verbs) lost: Option<f64>,
    /// Whether the candidates that are compared and not near are listed.
    pub(in crate::verbs) with_rejected: bool,
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
            return Err(
                Failure::usage("--max-bucket needs --policy cluster or representative")
                    .with_note("--budget limits --policy first"),
            );
        }
        if self.survivors.budget.is_some() && policy != PolicyName::First {
            return Err(Failure::usage("--budget needs --policy first")
                .with_note("--max-bucket limits the other policies"));
        }
        self.check_lost()?;
        match self.survivors.against {
            Some(_) => Ok(()),
            None => self.join.must_have_family(),
        }
    }

    /// An error if features decide, and an option asks for what they do not decide.
    fn check_lost(&self) -> Result<()> {
        if self.lost.is_none() {
            return Ok(());
        }
        if self.survivors.policy == PolicyName::Cluster {
            return Err(Failure::usage(
                "--lost does not go with --policy cluster, whose survivors need not have the features of their clusters",
            )
            .with_note("use --policy first or representative"));
        }
        match self.join.schema.first_besides_features() {
            Some(option) => Err(Failure::usage(format!(
                "{option} has no effect with --lost, which compares features and no signatures"
            ))),
            None => Ok(()),
        }
    }

    /// An error if the values of options contradict each other, whatever the corpus is. With another
    /// store, its schema decides about most of them.
    pub(in crate::verbs) fn must_agree(&self) -> Result<()> {
        self.check_limits()?;
        self.join.corpus.settings()?;
        match self.survivors.against {
            Some(_) => Ok(()),
            None => self.checked_basis(self.own_schema()?, None).map(drop),
        }
    }

    /// Returns the schema that the options ask for.
    fn own_schema(&self) -> Result<Schema> {
        let join = self.join;
        match self.lost {
            Some(_) => join.schema.by_features().build(&join.bounds),
            None => join.schema.build(&join.bounds),
        }
    }

    /// Returns the basis of the comparison, whose features have no weights yet.
    pub(in crate::verbs) fn basis(&self, context: &Context) -> Result<DedupBasis> {
        let join = self.join;
        match &self.survivors.against {
            Some(path) => {
                let store = open_to_read(context, path)?;
                join.schema.must_agree(store.schema())?;
                join.bounds.must_lie_within(store.schema())?;
                join.by.must_suit(store.schema())?;
                self.checked_basis(store.schema().clone(), Some(store.snapshot()?))
            }
            None => self.checked_basis(self.own_schema()?, None),
        }
    }

    /// Returns the basis for a schema, or an error if documents cannot be compared as the options ask.
    fn checked_basis(&self, schema: Schema, against: Option<Snapshot>) -> Result<DedupBasis> {
        let has_budget = self.survivors.budget.is_some();
        let by_features = self.join.verify.is_exact(&schema, has_budget)?;
        must_use_texts(&self.survivors.texts, &schema, by_features)?;
        // The features of an exact schema are read too where they are compared one way.
        let needs_features = self.lost.is_some() || self.with_rejected;
        let is_exact = by_features || needs_features && schema.is_exact();
        if self.lost.is_some() && schema.vector().is_some() {
            return Err(Failure::usage(
                "--lost compares features, and documents with vectors have none",
            ));
        }
        if self.lost.is_some() && !is_exact {
            return Err(Failure::usage(
                "--lost needs the features of documents, and with these options only signatures are kept",
            ));
        }
        if self.with_rejected {
            self.must_list_rejected(&schema, is_exact)?;
        }
        if needs_features {
            self.must_know_features(&schema)?;
        }
        Ok(DedupBasis {
            schema,
            against,
            is_exact,
        })
    }

    /// An error if no exact similarity decides on a candidate as soon as it is compared.
    fn must_list_rejected(&self, schema: &Schema, is_exact: bool) -> Result<()> {
        if self.survivors.policy == PolicyName::Cluster {
            return Err(Failure::usage(
                "--rejected and --review do not go with --policy cluster, which does not compare documents that others link",
            )
            .with_note("use --policy first or representative"));
        }
        if self.lost.is_none() && schema.minhash().is_some() {
            // The sets of a weighted store are compared without their weights here.
            must_compare_sets(schema)?;
        }
        let has_bound = self.lost.is_some() || self.join_bounds().similarity_floor(schema)? > 0.0;
        if !is_exact || !has_bound {
            return Err(Failure::usage(
                "--rejected and --review need exact similarities that decide, and with these options estimates or distances do",
            ));
        }
        Ok(())
    }

    /// An error if documents of the other store cannot be compared exactly.
    fn must_know_features(&self, schema: &Schema) -> Result<()> {
        let Some(path) = &self.survivors.against else {
            return Ok(());
        };
        if schema.is_exact() || !self.survivors.texts.is_empty() {
            return Ok(());
        }
        let option = self
            .lost
            .map_or("--rejected and --review compare", |_| "--lost compares");
        Err(Failure::usage(format!(
            "{option} features, and {} keeps only signatures of its documents",
            path.display()
        ))
        .with_note("--texts CORPUS reads their texts; reband --exact CORPUS makes the store exact"))
    }

    /// Reads the corpus for the weights of its features if the options request them. Call it once
    /// the outputs are open.
    pub(in crate::verbs) fn weigh(
        &self,
        context: &Context,
        basis: DedupBasis,
    ) -> Result<DedupBasis> {
        let (options, corpus) = (&self.join.schema, &self.join.corpus);
        Ok(DedupBasis {
            schema: weighed(context, basis.schema, options, self.inputs, corpus)?,
            ..basis
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
        // An exact store has sets, with which nothing else need be compared.
        let needs_texts = basis.is_exact && !basis.schema.is_exact();
        let Some(((path, snapshot), mut features)) = against.zip(context.features(needs_texts))
        else {
            return Ok(None);
        };
        let needs_all = self.lost.is_some();
        let texts = StoredTexts {
            store: path,
            snapshot,
            texts: &self.survivors.texts,
            options: &self.join.corpus,
            missing: match needs_all {
                true => MissingText::IsLeftOut,
                false => MissingText::IsEstimated,
            },
        };
        let known = texts.read(context, &mut features)?;
        // A search without verification compares one of several equal documents.
        Ok((known > 0 || needs_all).then(|| Arc::new(features)))
    }
}
