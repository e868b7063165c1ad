//! Builders of schemas.

use super::definition::{MinHashSchema, Schema, value_layout};
use super::near::{ClusterBounds, Combine, NearRule};
use crate::error::{Result, SketchError};
use crate::lanes::{Banding, TableDesign, check_recall, check_threshold, choose_design};
use crate::sketch::{
    Containment, EmptyDocuments, KEPT_HASH_BITS, MinHashKind, MinHashRecipe, Permutations, Recipe,
};
use crate::text::{Text, UNICODE_VERSION};

/// The widths of stored values that a schema accepts, in bits.
const VALUE_BITS: [u8; 6] = [1, 2, 4, 8, 16, 32];

/// The widths of band codes that a schema accepts, in bits.
const CODE_BITS: std::ops::RangeInclusive<u8> = 32..=64;

/// The rules by which a schema computes, indexes and compares MinHash signatures (Broder 1997).
///
/// ```
/// use resemblance_sketch::{MinHash, Schema};
/// let schema = Schema::builder().minhash(MinHash::new(128).threshold(0.8)).build()?;
/// let minhash = schema.minhash().unwrap();
/// assert_eq!((minhash.bands(), minhash.rows()), (13, 7));
/// assert!(minhash.recall_at_threshold() >= 0.95);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[doc(alias("jaccard", "lsh"))]
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct MinHash {
    pub(super) kind: MinHashKind,
    pub(super) values: u16,
    pub(super) value_bits: u8,
    pub(super) threshold: f64,
    pub(super) recall: f64,
    pub(super) banding: Option<(u16, u16)>,
    pub(super) code_bits: u8,
}

impl MinHash {
    /// Creates signatures of `values` values, 16 to 1,024. Each value is the minimum of one hash
    /// function. A store keeps [16 bits](Self::value_bits) of it unless you set another number. The
    /// usual choice is 128: the estimate then has a standard deviation of at most 1 / (2 · √128) =
    /// 0.044.
    pub fn new(values: u16) -> Self {
        Self::new_of_kind(MinHashKind::Functions(Permutations::default()), values)
    }

    /// Creates signatures of `values` values, 16 to 1,024, from one pass over the features. They
    /// are as accurate as signatures from `values` hash functions. For sets of more than about
    /// `values` · ln `values` features, the cost per feature does not depend on the number of
    /// values. Smaller sets take several rounds, and [`new`](Self::new) may be faster for them.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::one_pass(1_024)).build()?;
    /// let signature = schema.sketcher().hashes(0..100_000)?; // 100,000 steps, not 100 million
    /// assert_eq!(signature.minhash().map(<[u32]>::len), Some(1_024));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn one_pass(values: u16) -> Self {
        Self::new_of_kind(MinHashKind::OnePass, values)
    }

    /// Creates signatures of the smallest 64-bit hashes, at most `max_values` of them, 64 to 1,024.
    ///
    /// The index uses rows that are computed from the hashes, one row for every eight values: an
    /// independent hash assigns each value to one of the rows, and a row is the least value
    /// assigned to it. Two documents agree in a row with a probability of at least their
    /// similarity, less a share of e⁻⁸. There are fewer rows than values, so bands for the same
    /// recall are shorter and find more candidates than with other kinds of values.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let sketcher = Schema::builder().minhash(MinHash::bottom_k(128)).build()?.sketcher();
    /// let (a, b) = (sketcher.hashes(0..60)?, sketcher.hashes(20..80)?);
    /// assert_eq!(a.jaccard(&b)?, 0.5); // 40 of 80: exact, as the union has fewer than 128
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn bottom_k(max_values: u16) -> Self {
        Self::new_of_kind(MinHashKind::BottomK, max_values)
    }

    /// Creates signatures of `values` values, 16 to 1,024, from *weighted* features. They estimate
    /// the weighted similarity Σ min / Σ max. A text's shingle, or a feature given without a
    /// weight, weighs 1 each time it occurs.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let sketcher = Schema::builder().minhash(MinHash::weighted(1_024)).build()?.sketcher();
    /// let a = sketcher.weighted_features([("rose", 3.0), ("thorn", 1.0)])?;
    /// let b = sketcher.weighted_features([("rose", 1.0), ("thorn", 1.0)])?;
    /// assert!((a.jaccard(&b)? - 2.0 / 4.0).abs() < 0.1); // of the sets it is 1
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn weighted(values: u16) -> Self {
        Self::new_of_kind(MinHashKind::Weighted, values)
    }

    /// Creates signatures of `values` values, 16 to 1,024, from weighted features. They treat the
    /// weights of a document as a probability distribution, and estimate the [probability Jaccard
    /// similarity](crate::exact::probability_jaccard) of two distributions (Moulton and Jiang
    /// 2018). Documents with the same shares of features are equal, whatever their lengths. A
    /// text's shingle, or a feature given without a weight, weighs 1 each time it occurs.
    ///
    /// ```
    /// use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::probability(128)).build()?;
    /// let sketcher = schema.sketcher();
    /// let short = sketcher.weighted_features([("bread", 1.0), ("milk", 2.0)])?;
    /// let long = sketcher.weighted_features([("bread", 10.0), ("milk", 20.0)])?;
    /// assert_eq!(short.jaccard(&long)?, 1.0);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn probability(values: u16) -> Self {
        Self::new_of_kind(MinHashKind::Probability, values)
    }

    /// Accepts signatures of `values` values, 16 to 1,024, that another program computes. Any
    /// method fits if two values are equal with a probability equal to the similarity. Values have
    /// 32 bits unless [`value_bits`](Self::value_bits) sets another number. If values have more
    /// bits, the store keeps the lowest. [`Signature::from_minhash64`] accepts 64-bit values.
    ///
    /// [`Signature::from_minhash64`]: crate::Signature::from_minhash64
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema, Signature};
    /// let schema = Schema::builder().minhash(MinHash::external(64)).build()?;
    /// let page = Signature::from_minhash((0..64).collect()); // from another program
    /// assert_eq!(page.jaccard(&page)?, 1.0);
    /// assert!(schema.sketcher().features(["x"]).is_err()); // the schema cannot compute such values
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn external(values: u16) -> Self {
        Self::new_of_kind(MinHashKind::External, values)
    }

    /// Creates signatures of any kind, with defaults for everything else.
    pub(super) fn new_of_kind(kind: MinHashKind, values: u16) -> Self {
        Self {
            kind,
            values,
            value_bits: match kind {
                MinHashKind::BottomK | MinHashKind::External => 32,
                MinHashKind::Vector(kind) => kind.value_bits(),
                _ => 16,
            },
            threshold: 0.8,
            recall: 0.95,
            banding: None,
            code_bits: 40,
        }
    }

    /// Sets the family of hash functions. Default: [`Permutations::PairMultiply`]. It affects only
    /// [`new`](Self::new).
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, MinHashKind, Permutations, Schema};
    /// let minhash = MinHash::new(128).permutations(Permutations::Tabulation);
    /// let schema = Schema::builder().minhash(minhash).build()?;
    /// assert_eq!(schema.minhash().unwrap().kind(), MinHashKind::Functions(Permutations::Tabulation));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn permutations(mut self, permutations: Permutations) -> Self {
        if let MinHashKind::Functions(_) = self.kind {
            self.kind = MinHashKind::Functions(permutations);
        }
        self
    }

    /// Sets how many bits of each value are kept: 1, 2, 4, 8, 16 or all 32 (b-bit MinHash: Li and
    /// König 2010). The default is 16, or 32 for [external](Self::external) values.
    ///
    /// Values cut to b bits become equal by chance with probability 2⁻ᵇ. The estimate corrects for
    /// this; its variance grows from J (1 − J) / k to (1 − J) (J + 1 / (2ᵇ − 1)) / k. Bands consist
    /// of cut values. Their choice takes the probability into account, so bands of few bits have
    /// more rows. Signatures of cut values cannot be [merged](crate::Signature::merge).
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let one_bit = MinHash::new(1_024).value_bits(1); // 128 bytes a document
    /// let sketcher = Schema::builder().minhash(one_bit).build()?.sketcher();
    /// let (a, b) = (sketcher.hashes(0..900)?, sketcher.hashes(100..1_000)?);
    /// assert!((a.jaccard(&b)? - 0.8).abs() < 0.1);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn value_bits(mut self, bits: u8) -> Self {
        self.value_bits = bits;
        self
    }

    /// Sets the minimum Jaccard similarity of near-duplicates, above 0 and at most 1. Default: 0.8.
    pub fn threshold(mut self, threshold: f64) -> Self {
        self.threshold = threshold;
        self
    }

    /// Sets the share of the pairs at the threshold that must share a band, between 0 and 1.
    /// Default: 0.95. Pairs above the threshold share a band with a higher probability.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let bands = |recall| {
    ///     let minhash = MinHash::new(128).threshold(0.8).recall(recall);
    ///     Schema::builder().minhash(minhash).build().map(|schema| schema.minhash().unwrap().bands())
    /// };
    /// assert!(bands(0.99)? > bands(0.9)?); // it costs space and time
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn recall(mut self, recall: f64) -> Self {
        self.recall = recall;
        self
    }

    /// Sets the bands and rows directly. Otherwise they are chosen for the recall.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let minhash = MinHash::new(128).threshold(0.8).banding(25, 5);
    /// let schema = Schema::builder().minhash(minhash).build()?;
    /// assert!(schema.minhash().unwrap().recall_at_threshold() > 0.999);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn banding(mut self, bands: u16, rows: u16) -> Self {
        self.banding = Some((bands, rows));
        self
    }

    /// Sets how many bits of a band's hash are stored, 32 to 64. The default is 40. Fewer bits make
    /// smaller files and more false candidates (which are never returned).
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let minhash = MinHash::new(128).code_bits(48); // for some hundred million documents
    /// let schema = Schema::builder().minhash(minhash).build()?;
    /// assert_eq!(schema.minhash().unwrap().code_bits(), 48);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn code_bits(mut self, bits: u8) -> Self {
        self.code_bits = bits;
        self
    }

    /// Checks the parameters and chooses the bands.
    pub(super) fn build(self) -> Result<MinHashSchema> {
        check_threshold("threshold", self.threshold)?;
        check_recall(self.recall)?;
        let expected = "32 to 64";
        let is_valid = CODE_BITS.contains(&self.code_bits);
        SketchError::require(is_valid, "code_bits", self.code_bits, expected)?;
        let expected = "1, 2, 4, 8, 16 or 32";
        let is_valid = VALUE_BITS.contains(&self.value_bits);
        SketchError::require(is_valid, "value_bits", self.value_bits, expected)?;
        if let Some(kind) = self.kind.vector() {
            let is_valid = self.value_bits == kind.value_bits();
            SketchError::require(is_valid, "value_bits", self.value_bits, kind.value_bits())?;
        }
        let is_allowed = self.kind != MinHashKind::BottomK || self.value_bits == 32;
        let expected = "none for bottom-k, whose hashes are kept whole";
        SketchError::require(is_allowed, "value_bits", self.value_bits, expected)?;
        let rows = self.kind.row_count(self.values);
        let layout = value_layout(self.kind, self.values, self.value_bits);
        let agreement = layout.agreement_probability(self.threshold);
        let banding = match self.banding {
            Some((bands, rows_per_band)) => Banding::explicit(bands, rows_per_band, rows)?,
            None => Banding::by_recall(rows, self.threshold, self.recall, agreement)?,
        };
        Ok(MinHashSchema {
            kind: self.kind,
            values: self.values,
            value_bits: self.value_bits,
            threshold: self.threshold,
            banding,
            code_bits: self.code_bits,
        })
    }
}

/// The rules by which a schema computes, indexes and compares SimHash fingerprints (Charikar 2002;
/// Manku, Jain and Das Sarma 2007).
///
/// ```
/// use resemblance_sketch::{Schema, SimHash};
/// let schema = Schema::builder()
///     .simhash(SimHash::bits64().max_distance(3))
///     .expected_documents(1_000_000)
///     .build()?;
/// assert_eq!(schema.simhash().unwrap().max_distance(), 3);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[doc(alias("hamming", "lsh"))]
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct SimHash {
    pub(super) bits: u16,
    /// True if the caller provides the fingerprints, and no recipe makes them.
    pub(super) is_external: bool,
    pub(super) max_distance: Option<u8>,
    pub(super) groups: Option<Vec<(u8, u8)>>,
    pub(super) counts: bool,
}

impl SimHash {
    /// Creates fingerprints of 64 bits.
    pub fn bits64() -> Self {
        Self::of_bits(64)
    }

    /// Creates fingerprints of 32 bits, which are the lower half of the 64-bit ones. They suit
    /// short texts and save space. In large stores, distances above 2 occur by chance.
    ///
    /// ```
    /// # use resemblance_sketch::{Schema, SimHash, Text};
    /// let schema = Schema::builder().text(Text::words(1)).simhash(SimHash::bits32()).build()?;
    /// assert_eq!(schema.sketcher().text("a few words")?.fingerprint().unwrap().bits(), 32);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn bits32() -> Self {
        Self::of_bits(32)
    }

    /// Creates fingerprints of 128 bits. They take twice the space of 64-bit ones. A maximum
    /// distance that is twice as great separates near from far documents equally well.
    ///
    /// ```
    /// # use resemblance_sketch::{Schema, SimHash};
    /// let schema = Schema::builder().simhash(SimHash::bits128().max_distance(6)).build()?;
    /// let fingerprint = schema.sketcher().hashes([1, 2, 3])?;
    /// assert_eq!(fingerprint.fingerprint().unwrap().bits(), 128);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn bits128() -> Self {
        Self::of_bits(128)
    }

    /// Accepts fingerprints of 32, 64, 128 or 256 bits that another program computes, such as
    /// perceptual hashes of images (PDQ has 256 bits). Pass them as
    /// [`Signature::from_fingerprint`](crate::Signature::from_fingerprint); the store does not
    /// change them. It refuses texts and features unless the schema also has MinHash.
    ///
    /// ```
    /// # use resemblance_sketch::{Schema, Signature, SimHash};
    /// let schema = Schema::builder().simhash(SimHash::external(256).max_distance(31)).build()?;
    /// let image = Signature::from_fingerprint([0x5a; 32]);
    /// let mut near = [0x5a; 32];
    /// near[..3].fill(0xa5); // 24 bits differ
    /// assert_eq!(image.hamming(&Signature::from_fingerprint(near))?, 24);
    /// assert!(schema.sketcher().features(["x"]).is_err());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn external(bits: u16) -> Self {
        Self {
            is_external: true,
            ..Self::of_bits(bits)
        }
    }

    pub(super) fn of_bits(bits: u16) -> Self {
        Self {
            bits,
            is_external: false,
            max_distance: None,
            groups: None,
            counts: false,
        }
    }

    /// Sets the maximum number of differing bits between near-duplicates: 1 to 10 (default 3) for
    /// 64 bits, 1 to 5 (default 2) for 32 bits, 1 to 20 (default 6) for 128 bits, and 1 to 40
    /// (default 31) for 256 bits. With explicit [tables](Self::tables) it may be any distance for
    /// which a search reads at most 65,536 buckets, and the default is the greatest distance at
    /// which whole buckets suffice. The store finds *every* fingerprint within the distance. A
    /// query may set its own distance, smaller or greater.
    pub fn max_distance(mut self, distance: u8) -> Self {
        self.max_distance = Some(distance);
        self
    }

    /// Sets whether a feature without a weight weighs 1 each time it occurs, as in the papers
    /// (Charikar 2002; Henzinger 2006), or 1 in all. Default: false. Fingerprints made with and
    /// without counts cannot be compared.
    ///
    /// ```
    /// use resemblance_sketch::{Schema, SimHash, Text};
    /// let schema = |counts| {
    ///     let simhash = SimHash::bits64().term_counts(counts);
    ///     Schema::builder().text(Text::words(1)).simhash(simhash).build()
    /// };
    /// let (once, often) = ("tea or coffee", "tea tea tea or coffee");
    /// let sets = schema(false)?.sketcher();
    /// assert_eq!(sets.text(once)?, sets.text(often)?);
    /// let counts = schema(true)?.sketcher();
    /// assert!(counts.text(once)?.hamming(&counts.text(often)?)? > 0);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn term_counts(mut self, counts: bool) -> Self {
        self.counts = counts;
        self
    }

    /// Sets the permuted tables directly. Otherwise they are chosen for the number of [expected
    /// documents](SchemaBuilder::expected_documents). Each group is a pair `(blocks, leading
    /// blocks)`, as in [`TableDesign`](crate::TableDesign). Building the schema fails if a search
    /// within the maximum distance would read more than 65,536 buckets.
    ///
    /// ```
    /// use resemblance_sketch::{Schema, SimHash};
    /// // Ten tables: five blocks of 12 or 13 bits, any two of which lead (Manku, Jain and Das Sarma 2007).
    /// let simhash = SimHash::bits64().tables(&[(5, 2)]);
    /// let schema = Schema::builder().simhash(simhash.clone()).build()?;
    /// let design = schema.simhash().unwrap();
    /// assert_eq!((design.table_count(), design.max_distance()), (10, 3));
    /// // Beyond it, buckets near those of a fingerprint are read as well.
    /// assert!(Schema::builder().simhash(simhash.max_distance(5)).build().is_ok());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn tables(mut self, groups: &[(u8, u8)]) -> Self {
        self.groups = Some(groups.to_vec());
        self
    }

    /// Checks the parameters and chooses the tables.
    pub(super) fn build(self, expected_documents: u64) -> Result<TableDesign> {
        let is_used = !(self.counts && self.is_external);
        let expected = "false: external fingerprints are computed elsewhere";
        SketchError::require(is_used, "term_counts", true, expected)?;
        let default = match self.bits {
            32 => 2,
            128 => 6,
            256 => 31,
            _ => 3,
        };
        let Some(groups) = self.groups else {
            let distance = self.max_distance.unwrap_or(default);
            return choose_design(self.bits, distance, expected_documents);
        };
        let complete = TableDesign::complete_distance(&groups);
        TableDesign::new(self.bits, self.max_distance.unwrap_or(complete), &groups)
    }
}

impl Schema {
    /// Begins a schema. It needs at least one of MinHash, SimHash and containment.
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder::default()
    }
}

/// Collects the parts of a [`Schema`].
///
/// ```
/// # use resemblance_sketch::{MinHash, Schema, SimHash, Text};
/// let builder = Schema::builder().text(Text::words(3)).minhash(MinHash::new(128));
/// let schema = builder.clone().build()?;
/// assert_eq!(schema.text(), Some(Text::words(3)));
/// let both = builder.simhash(SimHash::bits64()).build()?;
/// assert!(both.lanes() > schema.lanes());
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SchemaBuilder {
    text: Option<Text>,
    pub(super) minhash: Option<MinHash>,
    simhash: Option<SimHash>,
    containment: Option<Containment>,
    near: NearRule,
    seed: u64,
    expected_documents: u64,
    empty: EmptyDocuments,
    pub(super) exact_bits: Option<u8>,
}

impl Default for SchemaBuilder {
    fn default() -> Self {
        Self {
            text: None,
            minhash: None,
            simhash: None,
            containment: None,
            near: NearRule::default(),
            seed: 1,
            expected_documents: 1_000_000,
            empty: EmptyDocuments::Distinct,
            exact_bits: None,
        }
    }
}

impl SchemaBuilder {
    /// Sets the rules by which texts become shingles. Without them, the store accepts features and
    /// signatures, but not texts.
    pub fn text(mut self, text: Text) -> Self {
        self.text = Some(text);
        self
    }

    /// Adds MinHash signatures.
    pub fn minhash(mut self, minhash: MinHash) -> Self {
        self.minhash = Some(minhash);
        self
    }

    /// Adds SimHash fingerprints.
    pub fn simhash(mut self, simhash: SimHash) -> Self {
        self.simhash = Some(simhash);
        self
    }

    /// Keeps hashes of shingles, by which queries find shared passages: a document that contains
    /// another one or a part of it.
    ///
    /// ```
    /// # use resemblance_sketch::{Containment, Schema, Text};
    /// let containment = Containment::new(3).window(4);
    /// let schema = Schema::builder().text(Text::words(3)).containment(containment).build()?;
    /// let sketcher = schema.sketcher();
    /// let page = "it was the best of times it was the worst of times it was the age of wisdom";
    /// let page = sketcher.text(page)?;
    /// let quotation = sketcher.text("It was the worst of times, it was the age")?;
    /// let kept = page.kept_hashes().unwrap(); // by a store's `contained_in`, one by one
    /// assert!(quotation.kept_hashes().unwrap().iter().all(|hash| kept.contains(hash)));
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn containment(mut self, containment: Containment) -> Self {
        self.containment = Some(containment);
        self
    }

    /// Sets the rule by which documents count as near if the schema has both MinHash and SimHash.
    /// Default: [`Combine::Any`].
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Combine, Schema, SimHash};
    /// let (minhash, simhash) = (MinHash::new(128), SimHash::bits64());
    /// let builder = Schema::builder().minhash(minhash).simhash(simhash);
    /// assert_eq!(builder.near(Combine::Both).build()?.near(), Combine::Both);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn near(mut self, near: Combine) -> Self {
        self.near.combine = near;
        self
    }

    /// Keeps clusters in the store: each change of documents updates, in its own commit, the groups
    /// of documents that pairs within the bounds connect. Default: no clusters are kept.
    ///
    /// An insertion then searches for the documents near the new one, as a query does, and a
    /// removal searches for what connects the others. The bands and tables of the schema must be
    /// made for the bounds.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema, schema::ClusterBounds};
    /// let builder = Schema::builder().minhash(MinHash::new(128).threshold(0.7));
    /// let kept = builder.clone().clusters(ClusterBounds::default()).build()?;
    /// assert!(kept.clusters().is_some() && builder.build()?.clusters().is_none());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn clusters(mut self, bounds: ClusterBounds) -> Self {
        self.near.clusters = Some(bounds);
        self
    }

    /// Sets the seed of all hash functions. Default: 1. Signatures made with different seeds cannot
    /// be compared.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let schema = |seed| Schema::builder().minhash(MinHash::new(64)).seed(seed).build();
    /// let (a, b) = (schema(1)?.sketcher().hashes([7])?, schema(2)?.sketcher().hashes([7])?);
    /// assert!(a.jaccard(&b).is_err());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the number of documents that the store is expected to contain. Default: 1,000,000. The
    /// number only determines the permuted tables of SimHash, whose prefixes are longer for more
    /// documents. A store with more documents than expected gives the same answers, more slowly.
    ///
    /// ```
    /// # use resemblance_sketch::{Schema, SimHash};
    /// let shortest_prefix = |documents| {
    ///     let schema = Schema::builder().simhash(SimHash::bits64()).expected_documents(documents);
    ///     schema.build().map(|schema| *schema.simhash().unwrap().prefix_bits().start())
    /// };
    /// assert!(shortest_prefix(1_000_000_000)? > shortest_prefix(100_000)?);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn expected_documents(mut self, documents: u64) -> Self {
        self.expected_documents = documents;
        self
    }

    /// Sets whether documents without features are near-duplicates of each other. The default is
    /// [`EmptyDocuments::Distinct`].
    ///
    /// ```
    /// # use resemblance_sketch::{EmptyDocuments, MinHash, Schema, Text};
    /// let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// let schema = schema.empty_documents(EmptyDocuments::Alike).build()?;
    /// assert_eq!(schema.empty_documents(), EmptyDocuments::Alike);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn empty_documents(mut self, empty: EmptyDocuments) -> Self {
        self.empty = empty;
        self
    }

    /// Keeps the set of all features of each document, as hashes of 44 bits, so that a store
    /// compares candidates exactly. Signatures and bands still find the candidates. A set of n
    /// features takes about (46.6 − log₂ n) / 8 bytes for each feature: 4.7 bytes if n is a
    /// thousand.
    ///
    /// The schema must have MinHash, and compute its values itself. If two documents together have
    /// n different features, two of these features are confused with a probability of at most n² /
    /// 2⁴⁵: 3 × 10⁻⁶ if n is 10,000. Anyone who knows the seed can choose features that collide.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema, SimHash, Text};
    /// let schema = Schema::builder().text(Text::words(3)).minhash(MinHash::new(128)).exact();
    /// assert!(schema.build()?.is_exact());
    /// assert!(Schema::builder().simhash(SimHash::bits64()).exact().build().is_err());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn exact(mut self) -> Self {
        self.exact_bits = Some(KEPT_HASH_BITS);
        self
    }

    /// Like [`exact`](Self::exact), with hashes of 32 to 64 bits. A set of n features takes about
    /// (`bits` + 2.6 − log₂ n) / 8 bytes for each feature. Two of n features have the same hash with
    /// a probability of at most n² / 2^(`bits` + 1): see
    /// [`Schema::collision_probability`](crate::Schema::collision_probability).
    ///
    /// Kept hashes of containment have 44 bits. With another width, sets are stored in addition to
    /// them.
    ///
    /// ```
    /// # use resemblance_sketch::{MinHash, Schema};
    /// let schema = Schema::builder().minhash(MinHash::new(128)).exact_bits(64).build()?;
    /// assert!(schema.is_exact() && schema.collision_probability(1_000_000).unwrap() < 1e-7);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn exact_bits(mut self, bits: u8) -> Self {
        self.exact_bits = Some(bits);
        self
    }

    /// Checks the parts and chooses bands and tables.
    ///
    /// # Errors
    ///
    /// [`SketchError::InvalidParameter`] names the part that is out of range or missing.
    pub fn build(self) -> Result<Schema> {
        let recipe = Recipe {
            text: self.text,
            seed: self.seed,
            empty: self.empty,
            minhash: self.minhash.map(|minhash| MinHashRecipe {
                kind: minhash.kind,
                values: minhash.values,
            }),
            simhash_bits: {
                let made = self.simhash.as_ref().filter(|simhash| !simhash.is_external);
                made.map(|simhash| simhash.bits)
            },
            simhash_counts: self.simhash.as_ref().is_some_and(|simhash| simhash.counts),
            containment: self.containment,
            exact_bits: self.exact_bits,
        };
        recipe.validate()?;
        let expected_documents = self.expected_documents;
        let simhash = self
            .simhash
            .map(|simhash| simhash.build(expected_documents));
        let schema = Schema {
            recipe,
            unicode_version: UNICODE_VERSION,
            minhash: self.minhash.map(MinHash::build).transpose()?,
            simhash: simhash.transpose()?,
            near: self.near,
            expected_documents,
            weights: None,
        };
        schema.check_has_family()?;
        schema.check_clusters()?;
        Ok(schema)
    }
}
