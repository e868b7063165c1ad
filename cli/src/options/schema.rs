//! The options from which a schema is made.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use resemblance::schema::{
    ClusterBounds, DocumentFrequencies, EmptyDocuments, KeptVector, Linkage, MinHashKind,
    Permutations,
};
use resemblance::{Combine, Containment, MinHash, Schema, SchemaBuilder, SimHash, Vector};
use resemblance_corpus::HtmlExtractor;

use super::bounds::BoundOptions;
use super::difference::schema_part;
use super::text::{Agreement, TextOptions, agreement};
use crate::failure::{Failure, Result};

const DEFAULT_VALUES: u16 = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NearOption {
    /// Near-duplicates by MinHash or by SimHash
    Any,
    /// Near-duplicates by both
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmptyOption {
    /// Documents without any feature resemble nothing
    Distinct,
    /// Documents without any feature resemble each other
    Alike,
}

impl From<EmptyOption> for EmptyDocuments {
    fn from(option: EmptyOption) -> Self {
        match option {
            EmptyOption::Distinct => Self::Distinct,
            EmptyOption::Alike => Self::Alike,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindOption {
    /// Minima of K hash functions
    Functions,
    /// K values from one pass over the shingles: faster for long texts and large K
    OnePass,
    /// The K smallest hashes of 64 bits, indexed as K / 8 rows
    BottomK,
    /// K samples of shingles weighted by their frequency, for weighted similarity
    Weighted,
    /// K samples of shingles weighted by their share of the document, for probability Jaccard similarity
    Probability,
    /// K values computed by another program; documents have a "signature"
    External,
}

impl KindOption {
    fn is(self, kind: MinHashKind) -> bool {
        match self {
            Self::Functions => matches!(kind, MinHashKind::Functions(_)),
            Self::OnePass => kind == MinHashKind::OnePass,
            Self::BottomK => kind == MinHashKind::BottomK,
            Self::Weighted => kind == MinHashKind::Weighted,
            Self::Probability => kind == MinHashKind::Probability,
            Self::External => kind == MinHashKind::External,
        }
    }

    fn minhash(self, values: u16) -> MinHash {
        match self {
            Self::Functions => MinHash::new(values),
            Self::OnePass => MinHash::one_pass(values),
            Self::BottomK => MinHash::bottom_k(values),
            Self::Weighted => MinHash::weighted(values),
            Self::Probability => MinHash::probability(values),
            Self::External => MinHash::external(values),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PermutationsOption {
    /// The fastest by far
    PairMultiply,
    /// High bits of (a·x + b) mod 2^64
    MultiplyShift,
    /// (a·x + b) mod 2^61 - 1
    Modular,
    /// Random tables, one for each byte
    Tabulation,
    /// Robert Jenkins' 96-bit mix
    Jenkins,
}

impl From<PermutationsOption> for Permutations {
    fn from(option: PermutationsOption) -> Self {
        match option {
            PermutationsOption::PairMultiply => Self::PairMultiply,
            PermutationsOption::MultiplyShift => Self::MultiplyShift,
            PermutationsOption::Modular => Self::Modular,
            PermutationsOption::Tabulation => Self::Tabulation,
            PermutationsOption::Jenkins => Self::Jenkins,
        }
    }
}

/// The options that a schema of vectors has no use for.
const WITHOUT_VECTORS: [&str; 9] = [
    "features",
    "tf_idf",
    "minhash",
    "minhash_kind",
    "permutations",
    "value_bits",
    "fingerprints",
    "exact",
    "exact_bits",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeptOption {
    /// Numbers of 32 bits, unchanged
    F32,
    /// Numbers of 16 bits, with 11 significant bits
    F16,
    /// Whole numbers of 8 bits, with a power of two for each vector
    I8,
    /// No vectors: similarities are estimates by the hash values
    None,
}

impl KeptOption {
    fn form(self) -> Option<KeptVector> {
        match self {
            Self::F32 => Some(KeptVector::F32),
            Self::F16 => Some(KeptVector::F16),
            Self::I8 => Some(KeptVector::I8),
            Self::None => None,
        }
    }
}

/// Options for how signatures are computed and indexed. Without --minhash, --vector, --simhash and
/// --containment: 128 MinHash values.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Schema")]
pub(crate) struct SchemaOptions {
    #[command(flatten)]
    text: TextOptions,
    /// Documents have vectors of N numbers, such as embeddings (see --vector-field, or rows of .npy files). They are near
    /// by the cosine of their angle, or with --euclidean by their distance. With --simhash or --containment, they have
    /// texts as well
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..), conflicts_with_all = WITHOUT_VECTORS)]
    vector: Option<u16>,
    /// Hash values of each vector [default: 1024, with --euclidean 512]
    #[arg(long, value_name = "K", requires = "vector", conflicts_with_all = WITHOUT_VECTORS, value_parser = clap::value_parser!(u16).range(16..=1024))]
    vector_values: Option<u16>,
    /// Form in which vectors are kept: every similarity is that of the kept vectors [default: f32]
    #[arg(long, value_name = "FORM", requires = "vector", conflicts_with_all = WITHOUT_VECTORS)]
    vector_kept: Option<KeptOption>,
    /// Treat texts as HTML: compare the visible text, without markup, scripts and styles. A store records this and
    /// expects HTML from then on; the seed identifies the extractor and its version (feature html)
    #[arg(long, conflicts_with_all = ["seed", "features"])]
    html: bool,
    /// Documents are not texts: their lines have "features" (strings and numbers), "hashes" (64-bit integers),
    /// "weights", or a precomputed "signature" (see resemblance --help)
    #[arg(long)]
    features: bool,
    /// Weight features by their rarity in the corpus (tf-idf), which is read twice; for --simhash and for
    /// --minhash-kind weighted and probability. The store keeps the counts
    #[arg(long)]
    tf_idf: bool,
    /// Use MinHash with K values [default: 128, unless --vector, --simhash or --containment is given]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(16..=1024))]
    minhash: Option<u16>,
    /// Kind of MinHash values [default: functions]
    #[arg(long, value_name = "KIND")]
    minhash_kind: Option<KindOption>,
    /// Family of the hash functions of --minhash-kind functions [default: pair-multiply]
    #[arg(long, value_name = "FAMILY")]
    permutations: Option<PermutationsOption>,
    /// Bits to keep of each MinHash value: 1, 2, 4, 8, 16 or 32; fewer bits save space and make estimates less precise
    /// [default: 16; external values 32]
    #[arg(long, value_name = "B")]
    value_bits: Option<u8>,
    /// Share of the pairs at the threshold that must be found [default: 0.95]
    #[arg(long, value_name = "R", conflicts_with_all = ["bands", "rows"])]
    recall: Option<f64>,
    /// Explicit number of bands
    #[arg(long, value_name = "B", requires = "rows")]
    bands: Option<u16>,
    /// Explicit number of rows per band
    #[arg(long, value_name = "R", requires = "bands")]
    rows: Option<u16>,
    /// SimHash fingerprints of this many bits: 32, 64 or 128
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    simhash: Option<u16>,
    /// Whether SimHash counts how often a shingle occurs, or uses the set of shingles [default: no]
    #[arg(
        long,
        value_name = "YES|NO",
        value_parser = clap::builder::BoolishValueParser::new(),
        requires = "simhash",
        conflicts_with = "fingerprints"
    )]
    simhash_counts: Option<bool>,
    /// Precomputed fingerprints of this many bits (32, 64, 128 or 256), such as perceptual hashes of images: each line
    /// has one as its "signature", in hexadecimal
    #[arg(long, value_name = "BITS", conflicts_with = "simhash")]
    fingerprints: Option<u16>,
    /// Keep hashes of shingles of K words (or characters, or code tokens), so that contain can find shared passages
    #[arg(long, value_name = "K")]
    containment: Option<u16>,
    /// Keep the least hash of each W consecutive shingles: every shared passage of at least W + K - 1 words is found
    /// [default: 8]
    #[arg(long, value_name = "W", requires = "containment")]
    window: Option<u16>,
    /// Keep one in S shingles instead of windows: takes less space, but any passage may be missed
    #[arg(
        long,
        value_name = "S",
        requires = "containment",
        conflicts_with = "window"
    )]
    scaled: Option<u32>,
    /// Keep the position of each kept shingle, so that contain can locate shared passages without --texts
    #[arg(long, requires = "containment")]
    positions: bool,
    /// Keep the hashes of all features of each document, about 5 bytes each: every similarity of the store is then exact,
    /// without --texts. Needs MinHash other than external
    #[arg(long)]
    exact: bool,
    /// Bits of these hashes, 32 to 64 [default: 44]. Fewer take less space and collide more often: create prints how often
    #[arg(long, value_name = "N", requires = "exact")]
    exact_bits: Option<u8>,
    /// Explicit permuted tables: groups of S blocks of which any R lead, such as 5,2 for ten tables, or 3,2+2,2+2,2
    /// [default of --distance: the largest at which the tables find all fingerprints]
    #[arg(long, value_name = "S,R+...")]
    tables: Option<TableGroups>,
    /// Expected number of documents, for which the tables are chosen
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    expected: Option<u64>,
    /// Seed of all hashing [default: 1]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Rule for a schema of both families [default: any]
    #[arg(long, value_name = "WHICH")]
    near: Option<NearOption>,
    /// How to treat documents without any feature [default: distinct]
    #[arg(long, value_name = "HOW")]
    empty: Option<EmptyOption>,
}

/// Options for the clusters that a new store keeps.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Schema")]
pub(crate) struct ClusterOptions {
    /// Keep clusters of near-duplicates in the store, with ids that last: see cluster
    #[arg(long)]
    clusters: bool,
    /// Least similarity of the documents that are linked, from the threshold to 1 [default: the threshold]
    #[arg(long, value_name = "S", requires = "clusters")]
    cluster_threshold: Option<f64>,
    /// Largest distance of the documents that are linked, up to that of the schema [default: that of the schema]
    #[arg(long, value_name = "BITS", requires = "clusters")]
    cluster_distance: Option<u8>,
    /// Rule by which linked documents belong to one cluster
    #[arg(
        long,
        value_name = "LINKAGE",
        requires = "clusters",
        default_value = "single"
    )]
    linkage: LinkageOption,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LinkageOption {
    /// A chain of linked documents is in one cluster; clusters that meet become one
    #[default]
    Single,
    /// Each member is linked to the representative of its cluster, the oldest one that it could join
    Star,
    /// All members of a cluster are linked to each other
    Complete,
}

impl From<LinkageOption> for Linkage {
    fn from(option: LinkageOption) -> Self {
        match option {
            LinkageOption::Single => Self::Single,
            LinkageOption::Star => Self::Star,
            LinkageOption::Complete => Self::Complete,
        }
    }
}

impl ClusterOptions {
    /// Returns a schema with the clusters that were asked for, if any.
    pub(crate) fn put(&self, schema: Schema) -> Result<Schema> {
        let mut bounds = ClusterBounds::default().linkage(self.linkage.into());
        bounds.min_similarity = self.cluster_threshold;
        bounds.max_distance = self.cluster_distance;
        match self.clusters {
            true => Ok(schema
                .with_clusters(Some(bounds))
                .map_err(resemblance::Error::from)?),
            false => Ok(schema),
        }
    }
}

/// The options by which the parts of texts are compared.
const PART_OPTIONS: [&str; 10] = [
    "--html",
    "--features",
    "--chars",
    "--code",
    "--nfkc",
    "--keep-case",
    "--remove-spaces",
    "--strip-accents",
    "--stop-words",
    "--stem",
];

impl SchemaOptions {
    fn is_external(&self) -> bool {
        self.minhash_kind == Some(KindOption::External)
    }

    /// True if features are to be weighed by their rarity in the documents that are read.
    pub(crate) fn weighs_by_rarity(&self) -> bool {
        self.tf_idf
    }

    /// Fails if features are weighted by their rarity, which takes an additional reading of the
    /// corpus that `option` does not support.
    pub(crate) fn must_not_weigh(&self, option: &str) -> Result<()> {
        if self.tf_idf {
            return Err(Failure::usage(format!(
                "{option} does not go with --tf-idf, which reads the corpus twice"
            )));
        }
        Ok(())
    }

    /// Keeps the sets of features, if these options ask for them.
    fn with_sets(&self, schema: SchemaBuilder) -> SchemaBuilder {
        match self.exact_bits {
            Some(bits) => schema.exact_bits(bits),
            None if self.exact => schema.exact(),
            None => schema,
        }
    }

    /// A new schema, for texts unless documents are features or signatures; `bounds` are its
    /// threshold and distance. Features that will be weighted by their rarity have no weights yet.
    pub(crate) fn build(&self, bounds: &BoundOptions) -> Result<Schema> {
        let mut schema = Schema::builder();
        match (
            self.without_texts(),
            given(self.text.agreements(None)).next(),
        ) {
            (None, _) => schema = schema.text(self.text.text()),
            (Some(option), _) if self.html => {
                return Err(Failure::usage(format!(
                    "--html does not go with {option}: its documents are not texts"
                )));
            }
            (Some(_), None) => {}
            (Some(option), Some((name, _))) => {
                return Err(Failure::usage(format!(
                    "{name} does not go with {option}: its documents are not texts"
                )));
            }
        }
        if let Some(vector) = self.vector_options(bounds)? {
            schema = schema.vector(vector);
        } else if let Some(minhash) = self.minhash_options(bounds)? {
            schema = schema.minhash(minhash);
        }
        let ready_made = self.fingerprints.map(SimHash::external);
        if let Some(mut simhash) = self.simhash.map(simhash_of).or(ready_made) {
            if let Some(distance) = bounds.distance {
                simhash = simhash.max_distance(distance);
            }
            if let Some(TableGroups(groups)) = &self.tables {
                simhash = simhash.tables(groups);
            }
            if let Some(counts) = self.simhash_counts {
                simhash = simhash.term_counts(counts);
            }
            schema = schema.simhash(simhash);
        } else if bounds.distance.is_some() || self.tables.is_some() {
            let option = match self.tables {
                Some(_) => "--tables",
                None => "--distance",
            };
            let usage = format!("{option} needs --simhash 32, 64 or 128, or --fingerprints");
            return Err(Failure::usage(usage));
        }
        if let Some(containment) = self.containment() {
            schema = schema.containment(containment);
        }
        schema = self.with_sets(schema);
        if let Some(number) = self.expected {
            schema = schema.expected_documents(number);
        }
        if let Some(seed) = self.seed()? {
            schema = schema.seed(seed);
        }
        match self.near {
            None => {}
            Some(_) if !self.has_both_families() => {
                return Err(Failure::usage("--near needs a schema with both families")
                    .with_note("add --minhash K and --simhash BITS, or omit --near"));
            }
            Some(NearOption::Any) => schema = schema.near(Combine::Any),
            Some(NearOption::Both) => schema = schema.near(Combine::Both),
        }
        if let Some(empty) = self.empty {
            schema = schema.empty_documents(empty.into());
        }
        self.weighable(schema.build()?)
    }

    /// Returns the option by which documents are not texts, if one was given.
    fn without_texts(&self) -> Option<&'static str> {
        let is_beside = self.simhash.is_some() || self.containment.is_some();
        let given = [
            ("--features", self.features),
            ("--minhash-kind external", self.is_external()),
            ("--vector", self.vector.is_some() && !is_beside),
            (
                "--fingerprints",
                self.fingerprints.is_some() && self.minhash.is_none(),
            ),
        ];
        given
            .into_iter()
            .find_map(|(option, is_given)| is_given.then_some(option))
    }

    /// Returns a schema with weights of no documents if there are to be any, or an error if it cannot have them.
    fn weighable(&self, schema: Schema) -> Result<Schema> {
        match self.tf_idf {
            true => Ok(schema.with_weights(DocumentFrequencies::new())?),
            false => Ok(schema),
        }
    }

    fn has_both_families(&self) -> bool {
        self.minhash.or(self.vector).is_some() && self.simhash.or(self.fingerprints).is_some()
    }

    /// Returns the rules for vectors, if documents have any.
    fn vector_options(&self, bounds: &BoundOptions) -> Result<Option<Vector>> {
        let Some(dimensions) = self.vector else {
            return match bounds.euclidean {
                Some(_) => Err(Failure::usage("--euclidean needs --vector")),
                None => Ok(None),
            };
        };
        let mut vector = match bounds.euclidean {
            Some(distance) => Vector::euclidean(dimensions, distance),
            None => Vector::cosine(dimensions),
        };
        if let Some(threshold) = bounds.threshold {
            vector = vector.threshold(threshold);
        }
        if let Some(values) = self.vector_values {
            vector = vector.values(values);
        }
        if let Some(recall) = self.recall {
            vector = vector.recall(recall);
        }
        if let Some((bands, rows)) = self.bands.zip(self.rows) {
            vector = vector.banding(bands, rows);
        }
        Ok(Some(match self.vector_kept.map(KeptOption::form) {
            None => vector,
            Some(Some(form)) => vector.kept(form),
            Some(None) => vector.estimated(),
        }))
    }

    fn containment(&self) -> Option<Containment> {
        let containment = Containment::new(self.containment?).positions(self.positions);
        Some(match (self.window, self.scaled) {
            (Some(window), _) => containment.window(window),
            (None, Some(scale)) => containment.scaled(scale),
            (None, None) => containment,
        })
    }

    fn minhash_options(&self, bounds: &BoundOptions) -> Result<Option<MinHash>> {
        let has_other = self.simhash.or(self.fingerprints).is_some() || self.containment.is_some();
        if self.minhash.is_none() && has_other {
            let needs_minhash = [
                ("--minhash-kind", self.minhash_kind.is_some()),
                ("--permutations", self.permutations.is_some()),
                ("--value-bits", self.value_bits.is_some()),
                ("--threshold", bounds.threshold.is_some()),
                ("--recall", self.recall.is_some()),
                ("--bands", self.bands.is_some()),
            ];
            return match needs_minhash.iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => Err(Failure::usage(format!("{name} needs MinHash")).with_note(
                    "add --minhash K, or omit --simhash, --fingerprints and --containment",
                )),
                None => Ok(None),
            };
        }
        let kind = self.minhash_kind.unwrap_or(KindOption::Functions);
        let mut minhash = kind.minhash(self.minhash.unwrap_or(DEFAULT_VALUES));
        if let Some(permutations) = self.permutations {
            if kind != KindOption::Functions {
                return Err(Failure::usage(
                    "--permutations needs --minhash-kind functions",
                ));
            }
            minhash = minhash.permutations(permutations.into());
        }
        if let Some(bits) = self.value_bits {
            if kind == KindOption::BottomK {
                return Err(Failure::usage(
                    "--value-bits does not go with --minhash-kind bottom-k, which keeps whole hashes",
                ));
            }
            minhash = minhash.value_bits(bits);
        }
        if let Some(threshold) = bounds.threshold {
            minhash = minhash.threshold(threshold);
        }
        if let Some(recall) = self.recall {
            minhash = minhash.recall(recall);
        }
        if let Some((bands, rows)) = self.bands.zip(self.rows) {
            minhash = minhash.banding(bands, rows);
        }
        Ok(Some(minhash))
    }

    /// The seed that was given, or that of texts that are HTML.
    fn seed(&self) -> Result<Option<u64>> {
        if self.html {
            HtmlExtractor::CURRENT.must_be_here()?;
            return Ok(Some(HtmlExtractor::CURRENT.seed()));
        }
        match self.seed {
            Some(seed) if HtmlExtractor::of_seed(seed).is_some() => Err(Failure::usage(format!(
                "--seed {seed} is reserved for HTML texts"
            ))
            .with_note("use --html instead")),
            seed => Ok(seed),
        }
    }

    /// The options that were given, each with whether it agrees with `schema`.
    fn given(&self, schema: Option<&Schema>) -> Vec<(&'static str, bool)> {
        let minhash = schema.and_then(Schema::minhash);
        let simhash = schema.and_then(Schema::simhash);
        let is_html = schema.and_then(HtmlExtractor::of).is_some();
        let is_external = schema.is_some_and(Schema::has_external_fingerprints);
        let external = simhash.filter(|_| is_external);
        let agreements = [
            ("--html", self.html.then_some(is_html)),
            ("--recall", self.recall.map(|_| false)),
            agreement("--bands", self.bands, minhash.map(|m| m.bands())),
            agreement("--rows", self.rows, minhash.map(|m| m.rows())),
            agreement("--simhash", self.simhash, simhash.map(|s| s.bits())),
            agreement(
                "--simhash-counts",
                self.simhash_counts,
                schema.map(Schema::has_term_counts),
            ),
            agreement(
                "--fingerprints",
                self.fingerprints,
                external.map(|s| s.bits()),
            ),
            agreement(
                "--tables",
                self.tables.as_ref().map(|t| &*t.0),
                simhash.map(|s| s.groups()),
            ),
            agreement(
                "--containment",
                self.containment(),
                schema.and_then(Schema::containment),
            ),
            (
                "--exact",
                self.exact.then(|| schema.is_some_and(Schema::is_exact)),
            ),
            agreement(
                "--exact-bits",
                self.exact_bits,
                schema.and_then(Schema::exact_bits),
            ),
            ("--expected", self.expected.map(|_| false)),
            agreement("--seed", self.seed, schema.map(Schema::seed)),
            (
                "--features",
                self.features
                    .then(|| schema.is_some_and(|s| s.text().is_none())),
            ),
            (
                "--tf-idf",
                self.tf_idf
                    .then(|| schema.is_some_and(|s| s.weights().is_some())),
            ),
            ("--near", self.near.map(|_| false)),
            ("--empty", self.empty.map(|_| false)),
        ];
        let text = self.text.agreements(schema).into_iter();
        let values = self.minhash_agreements(schema).into_iter();
        let vectors = self.vector_agreements(schema);
        given(text.chain(values).chain(vectors).chain(agreements)).collect()
    }

    /// Returns for each option that concerns vectors whether it agrees, if it was given.
    fn vector_agreements(&self, schema: Option<&Schema>) -> [Agreement; 3] {
        let vector = schema.and_then(Schema::vector);
        let values = schema
            .and_then(Schema::minhash)
            .filter(|_| vector.is_some());
        [
            agreement("--vector", self.vector, vector.map(|it| it.dimensions())),
            agreement(
                "--vector-values",
                self.vector_values,
                values.map(|it| it.values()),
            ),
            agreement(
                "--vector-kept",
                self.vector_kept.map(KeptOption::form),
                vector.map(|it| it.kept()),
            ),
        ]
    }

    /// Returns for each option that concerns the values whether it agrees, if it was given.
    fn minhash_agreements(&self, schema: Option<&Schema>) -> [Agreement; 4] {
        let has_vectors = schema.and_then(Schema::vector).is_some();
        let own = schema.and_then(Schema::minhash).filter(|_| !has_vectors);
        let kind = own.map(|minhash| minhash.kind());
        let is_of = |own: PermutationsOption| kind == Some(MinHashKind::Functions(own.into()));
        let is_kind = |own: KindOption| kind.is_some_and(|kind| own.is(kind));
        [
            agreement("--minhash", self.minhash, own.map(|m| m.values())),
            ("--minhash-kind", self.minhash_kind.map(is_kind)),
            ("--permutations", self.permutations.map(is_of)),
            agreement("--value-bits", self.value_bits, own.map(|m| m.value_bits())),
        ]
    }

    /// Returns the first given option that does not concern the comparison of texts part by part,
    /// which compares words, characters or tokens one by one.
    pub(crate) fn first_of_signatures(&self) -> Option<&'static str> {
        self.first_besides(&[])
    }

    /// Returns the first option given that neither determines the features of documents nor how those
    /// without any are treated. Comparisons of features are always exact.
    pub(crate) fn first_besides_features(&self) -> Option<&'static str> {
        self.first_besides(&["--auto", "--words", "--unordered", "--empty", "--exact"])
    }

    /// Returns these options for documents whose features are compared, which need no sets besides.
    pub(crate) fn by_features(&self) -> Self {
        Self {
            exact: false,
            ..self.clone()
        }
    }

    fn first_besides(&self, others: &[&str]) -> Option<&'static str> {
        let is_expected = |name: &str| PART_OPTIONS.contains(&name) || others.contains(&name);
        let mut given = self.given(None).into_iter().map(|(name, _)| name);
        given.find(|name| !is_expected(name))
    }

    /// Fails if any option contradicts an existing store's schema, and names each that does.
    pub(crate) fn must_agree(&self, schema: &Schema) -> Result<()> {
        let given = self.given(Some(schema));
        let contradicting = given.iter().filter(|(_, agrees)| !agrees);
        let shown: Vec<String> = contradicting
            .map(|(name, _)| format!("{name}: the store has {}", schema_part(schema, name)))
            .collect();
        match shown.is_empty() {
            true => Ok(()),
            false => Err(Failure::usage(shown.join("; "))
                .with_note("a store uses its own schema: omit options that contradict it")),
        }
    }
}

/// Returns the options that were given.
fn given(
    options: impl IntoIterator<Item = Agreement>,
) -> impl Iterator<Item = (&'static str, bool)> {
    options
        .into_iter()
        .filter_map(|(name, agrees)| Some((name, agrees?)))
}

pub(crate) fn parse_bits(text: &str) -> Result<u16, String> {
    match text {
        "32" => Ok(32),
        "64" => Ok(64),
        "128" => Ok(128),
        _ => Err("expected 32, 64 or 128".into()),
    }
}

/// Returns a SimHash of this number of bits, which [`parse_bits`] has read.
pub(crate) fn simhash_of(bits: u16) -> SimHash {
    match bits {
        32 => SimHash::bits32(),
        128 => SimHash::bits128(),
        _ => SimHash::bits64(),
    }
}

/// Groups of permuted tables: "5,2", or several as "3,2+2,2+2,2".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableGroups(pub(crate) Vec<(u8, u8)>);

impl FromStr for TableGroups {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let group = |group: &str| {
            let (blocks, leading) = group.trim().split_once(',')?;
            Some((blocks.trim().parse().ok()?, leading.trim().parse().ok()?))
        };
        let groups: Option<Vec<(u8, u8)>> = text.split('+').map(group).collect();
        let expected = "expected groups of blocks and leading blocks, such as 5,2 or 3,2+2,2+2,2";
        groups.map(Self).ok_or_else(|| expected.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_groups_parse() {
        assert_eq!("5,2".parse(), Ok(TableGroups(vec![(5, 2)])));
        let several = TableGroups(vec![(3, 2), (2, 2), (2, 2)]);
        assert_eq!("3,2 + 2,2+2, 2".parse(), Ok(several));
        for wrong in ["", "5", "5,2,1", "5,2+", "a,b", "300,2"] {
            assert!(wrong.parse::<TableGroups>().is_err(), "{wrong}");
        }
    }
}
