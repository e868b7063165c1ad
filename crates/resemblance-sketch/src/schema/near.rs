//! The rule by which documents are near, and the bounds of the clusters that a store keeps.

use serde::{Deserialize, Serialize};

/// The rule by which two documents count as near if a schema has both MinHash and SimHash.
///
/// ```
/// # use resemblance_sketch::{MinHash, Combine, Schema, SimHash};
/// let schema = Schema::builder().minhash(MinHash::external(16)).simhash(SimHash::bits64());
/// let schema = schema.near(Combine::Both).build()?;
/// assert_eq!(schema.near(), Combine::Both); // `Combine::Any` if not given
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Combine {
    /// The similarity or the distance is within its bound.
    #[default]
    Any,
    /// Both are within their bounds.
    Both,
}

/// The bounds within which a store links documents to the clusters that it keeps, for
/// [`SchemaBuilder::clusters`](super::SchemaBuilder::clusters).
///
/// A bound that is not set comes from the schema, as those of a query do: its threshold, its
/// maximum distance, and its [`Combine`] rule. If a schema has both families and only one bound is
/// set, only the family of that bound counts.
///
/// ```
/// use resemblance_sketch::{MinHash, Schema, schema::ClusterBounds};
/// let bounds = ClusterBounds::default().min_similarity(0.9);
/// let schema = Schema::builder().minhash(MinHash::new(64)).clusters(bounds).build()?;
/// assert_eq!(schema.clusters(), Some(bounds));
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct ClusterBounds {
    /// See the [method](Self::min_similarity); `None` takes the schema's threshold.
    pub min_similarity: Option<f64>,
    /// See the [method](Self::max_distance); `None` takes the schema's maximum distance.
    pub max_distance: Option<u8>,
}

impl ClusterBounds {
    /// Sets the minimum similarity of linked documents, from the threshold of the schema to 1.
    pub fn min_similarity(mut self, similarity: f64) -> Self {
        self.min_similarity = Some(similarity);
        self
    }

    /// Sets the maximum distance of linked documents, in bits, up to that of the schema. Tables for
    /// that distance find all of them.
    ///
    /// ```
    /// # use resemblance_sketch::{Schema, SimHash, schema::ClusterBounds};
    /// let builder = Schema::builder().simhash(SimHash::bits64().max_distance(3));
    /// let clusters = |bits| builder.clone().clusters(ClusterBounds::default().max_distance(bits));
    /// assert!(clusters(2).build().is_ok() && clusters(4).build().is_err());
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn max_distance(mut self, distance: u8) -> Self {
        self.max_distance = Some(distance);
        self
    }
}

/// The rule by which documents are near, and the bounds of the clusters, if the store keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredNear", into = "StoredNear")]
pub(super) struct NearRule {
    pub(super) combine: Combine,
    pub(super) clusters: Option<ClusterBounds>,
}

/// A rule as a schema is written. Frozen.
#[derive(Serialize, Deserialize)]
enum StoredNear {
    Any,
    Both,
    AnyInClusters(ClusterBounds),
    BothInClusters(ClusterBounds),
}

impl From<StoredNear> for NearRule {
    fn from(stored: StoredNear) -> Self {
        let (combine, clusters) = match stored {
            StoredNear::Any => (Combine::Any, None),
            StoredNear::Both => (Combine::Both, None),
            StoredNear::AnyInClusters(bounds) => (Combine::Any, Some(bounds)),
            StoredNear::BothInClusters(bounds) => (Combine::Both, Some(bounds)),
        };
        Self { combine, clusters }
    }
}

impl From<NearRule> for StoredNear {
    fn from(rule: NearRule) -> Self {
        match (rule.combine, rule.clusters) {
            (Combine::Any, None) => Self::Any,
            (Combine::Both, None) => Self::Both,
            (Combine::Any, Some(bounds)) => Self::AnyInClusters(bounds),
            (Combine::Both, Some(bounds)) => Self::BothInClusters(bounds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata;
    use crate::schema::{MinHash, Rebanding, Schema, SimHash};

    fn schema(clusters: Option<ClusterBounds>) -> Schema {
        let builder = Schema::builder().minhash(MinHash::new(64).threshold(0.8));
        let builder = builder.simhash(SimHash::bits64()).near(Combine::Both);
        let built = match clusters {
            Some(bounds) => builder.clusters(bounds).build(),
            None => builder.build(),
        };
        built.unwrap()
    }

    #[test]
    fn clusters_are_encoded_beside_the_rule_of_the_families() {
        let bounds = ClusterBounds::default().min_similarity(0.9).max_distance(2);
        let (plain, kept) = (schema(None), schema(Some(bounds)));
        let (old, new) = (plain.to_bytes().unwrap(), kept.to_bytes().unwrap());
        // A similarity and a distance, each behind the byte of its option.
        assert_eq!(new.len(), old.len() + 9 + 2);
        assert_eq!(Schema::from_bytes(&new).unwrap(), kept);
        assert_eq!(kept.with_clusters(None).unwrap(), plain);
        let encoded = metadata::encode("a rule", &plain.near).unwrap();
        assert_eq!(encoded, [1, 0, 0, 0]);
        assert_eq!(serde_json::to_value(plain.near).unwrap(), "Both");
    }

    #[test]
    fn clusters_need_bands_and_tables_for_their_bounds() {
        let builder = || Schema::builder().minhash(MinHash::new(64).threshold(0.8));
        for bounds in [
            ClusterBounds::default().min_similarity(0.7),
            ClusterBounds::default().min_similarity(1.1),
            ClusterBounds::default().min_similarity(f64::NAN),
            ClusterBounds::default().max_distance(1),
        ] {
            assert!(builder().clusters(bounds).build().is_err(), "{bounds:?}");
        }
        let kept = builder().clusters(ClusterBounds::default().min_similarity(0.85));
        let kept = kept.build().unwrap();
        assert!(kept.rebanded(&Rebanding::new().threshold(0.85)).is_ok());
        assert!(kept.rebanded(&Rebanding::new().threshold(0.9)).is_err());
    }
}
