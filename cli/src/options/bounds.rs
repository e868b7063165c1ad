//! The options for the bounds of similarity, and for how pairs are found.

use std::num::NonZeroU32;

use clap::{Args, ValueEnum};
use resemblance::schema::VectorSchema;
use resemblance::{Bounds, ContainmentQuery, Family, Schema};

use crate::failure::{Failure, Result};

/// The bounds of near-duplicates: of a new schema, or of the results.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Bounds")]
pub(crate) struct BoundOptions {
    /// Minimum similarity of near-duplicates, above 0 and at most 1 (MinHash, or the cosine of --vector) [default: 0.8,
    /// for vectors 0.95, or the store's]
    #[arg(long, value_name = "T")]
    pub(crate) threshold: Option<f64>,
    /// Maximum Euclidean distance of near vectors (--vector). With a new schema, vectors are compared by this distance
    /// instead of the cosine. Results have the similarity 1 / (1 + distance), and those of query and pairs a column
    /// euclidean_distance [default: the store's]
    #[arg(long, value_name = "D", conflicts_with = "threshold", value_parser = parse_euclidean)]
    pub(crate) euclidean: Option<f64>,
    /// Maximum Hamming distance of near-duplicates (SimHash) [default: the store's; for a new schema 3 (32 bits: 2, 128
    /// bits: 6, 256 bits: 31)]
    #[arg(long, value_name = "D")]
    pub(crate) distance: Option<u8>,
}

impl BoundOptions {
    /// Returns the bounds on what is reported from a store.
    pub(crate) fn bounds(&self) -> Bounds {
        let mut bounds = Bounds::new();
        if let Some(similarity) = self.min_similarity() {
            bounds = bounds.min_similarity(similarity);
        }
        if let Some(distance) = self.distance {
            bounds = bounds.max_distance(u32::from(distance));
        }
        bounds
    }

    /// Returns the minimum similarity that was given, or that of vectors at the maximum distance.
    fn min_similarity(&self) -> Option<f64> {
        self.threshold
            .or_else(|| Some(1.0 / (1.0 + self.euclidean?)))
    }

    /// True if any bound was given.
    pub(crate) fn is_given(&self) -> bool {
        self.min_similarity().is_some() || self.distance.is_some()
    }

    /// Checks that no bound was given for a family that the store does not have.
    pub(crate) fn must_suit(&self, schema: &Schema) -> Result<()> {
        if self.threshold.is_some() && schema.minhash().is_none() {
            return Err(Failure::usage("--threshold: the store has no MinHash"));
        }
        if self.euclidean.is_some() && euclidean(schema).is_none() {
            return Err(Failure::usage(
                "--euclidean: the store has no vectors with a Euclidean distance",
            ));
        }
        if self.distance.is_some() && schema.simhash().is_none() {
            return Err(Failure::usage("--distance: the store has no SimHash"));
        }
        Ok(())
    }

    /// Checks [`must_suit`](Self::must_suit), and that the threshold is at least the store's. Distances may be
    /// any.
    pub(crate) fn must_be_found(&self, schema: &Schema) -> Result<()> {
        self.must_suit(schema)?;
        let own = schema.minhash().map(|minhash| minhash.threshold());
        let bounds = self.min_similarity().zip(own);
        let Some((given, own)) = bounds.filter(|(given, own)| given < own) else {
            return Ok(());
        };
        Err(Failure::usage(match (self.euclidean, schema.vector()) {
            (Some(distance), Some(vector)) => format!(
                "--euclidean {distance} is above {}, the distance of the store",
                // Without the digits that come from the conversion.
                vector.distance_at(own) as f32
            ),
            _ => format!("--threshold {given} is below {own}, the threshold of the store"),
        }))
    }

    /// Checks [`must_be_found`](Self::must_be_found), and that the distance is at most the store's.
    pub(crate) fn must_lie_within(&self, schema: &Schema) -> Result<()> {
        self.must_be_found(schema)?;
        let own = schema.simhash().map(|simhash| simhash.max_distance());
        if let Some((given, own)) = self.distance.zip(own).filter(|(given, own)| given > own) {
            return Err(Failure::usage(format!(
                "--distance {given} is above {own}, the distance of the store"
            )));
        }
        Ok(())
    }
}

/// Returns the rules for vectors, if they are compared by their Euclidean distance.
pub(crate) fn euclidean(schema: &Schema) -> Option<VectorSchema> {
    let vector = schema.vector();
    vector.filter(|vector| vector.distance().is_some())
}

/// A distance of vectors, at which the similarity 1 / (1 + distance) has digits.
pub(crate) fn parse_euclidean(text: &str) -> Result<f64, String> {
    let distance: Option<f64> = text.parse().ok();
    let is_possible = |distance: &f64| (1e-6..=1e6).contains(distance);
    let expected = "expected a distance from 0.000001 to 1,000,000";
    distance.filter(is_possible).ok_or_else(|| expected.into())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ByOption {
    /// The similarity, estimated or exact, of MinHash or of vectors
    #[value(alias = "vector")]
    Minhash,
    /// The Hamming distance
    Simhash,
    /// Either of them
    Any,
    /// Both of them
    Both,
}

/// The options for what decides: the family, and how far an estimate may be off.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Bounds")]
pub(crate) struct ByOptions {
    /// The family that determines which documents are near-duplicates, if the schema has both [default: the rule of
    /// --near, or of the store; with only one of --threshold and --distance for a store, the family of that bound]
    #[arg(long, value_name = "FAMILY")]
    by: Option<ByOption>,
    /// Accept estimates from Z standard deviations below the threshold, 0 to 10, so that fewer documents truly at it are
    /// missed. The results then also hold some that are less similar. Exact similarities are compared with the threshold
    /// itself [default: 0]
    #[arg(long, value_name = "Z")]
    margin: Option<f64>,
}

impl ByOptions {
    /// True if an option was given.
    pub(crate) fn is_given(self) -> bool {
        self.by.is_some() || self.margin.is_some()
    }

    /// An error if a family is to decide that the signatures do not have.
    pub(crate) fn must_suit(self, schema: &Schema) -> Result<()> {
        if self.margin.is_some() && schema.minhash().is_none() {
            return Err(Failure::usage("--margin: the schema has no MinHash"));
        }
        let Some(by) = self.by else {
            return Ok(());
        };
        let (has_minhash, has_simhash) = (schema.minhash().is_some(), schema.simhash().is_some());
        let (name, is_there) = match by {
            ByOption::Minhash => ("minhash", has_minhash),
            ByOption::Simhash => ("simhash", has_simhash),
            ByOption::Any => ("any", has_minhash && has_simhash),
            ByOption::Both => ("both", has_minhash && has_simhash),
        };
        if is_there {
            return Ok(());
        }
        let had = match (has_minhash, has_simhash) {
            (true, _) if schema.vector().is_some() => "only vectors",
            (true, _) => "only MinHash",
            (_, true) => "only SimHash",
            _ => "neither MinHash nor SimHash",
        };
        Err(
            Failure::usage(format!("--by {name}: the schema has {had}")).with_note(
                "omit --by, or use a schema with both families (--minhash K --simhash BITS)",
            ),
        )
    }

    /// The bounds with what decides.
    pub(crate) fn apply(self, mut bounds: Bounds) -> Bounds {
        bounds.by = self.by.map(|by| match by {
            ByOption::Minhash => Family::MinHash,
            ByOption::Simhash => Family::SimHash,
            ByOption::Any => Family::Any,
            ByOption::Both => Family::Both,
        });
        bounds.margin = self.margin.unwrap_or(0.0);
        bounds
    }
}

/// Limits of a join.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Bounds")]
pub(crate) struct JoinLimits {
    /// In each bucket, compare documents with the first N different signatures only. This saves time if many documents
    /// are alike, but may miss pairs. The comparisons left out are counted [default: compare all]
    #[arg(long, value_name = "N")]
    pub(crate) max_bucket: Option<NonZeroU32>,
}

/// Options for the amount that must be shared.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Shared passages")]
pub(crate) struct PassageOptions {
    /// Minimum number of shared hashes [default: 1]
    #[arg(long, value_name = "N")]
    min_shared: Option<u32>,
    /// Ignore hashes that more than N documents of the store have, such as those of menus and licences. Passages that
    /// consist of such hashes only are not found; documents that have any are counted
    #[arg(long, value_name = "N")]
    max_frequency: Option<u64>,
}

impl PassageOptions {
    /// The query within these bounds.
    pub(crate) fn apply<'q, A>(
        self,
        mut query: ContainmentQuery<'q, A>,
        min_share: Option<f64>,
    ) -> ContainmentQuery<'q, A> {
        if let Some(hashes) = self.min_shared {
            query = query.min_shared(hashes);
        }
        if let Some(documents) = self.max_frequency {
            query = query.max_document_frequency(documents);
        }
        match min_share {
            Some(share) => query.min_share(share),
            None => query,
        }
    }
}
