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

/// The rule by which documents that are near belong to one cluster of a store.
///
/// Whatever the rule, a cluster keeps its id while it changes, and ids are never reused.
///
/// ```
/// use resemblance_sketch::{MinHash, Schema, schema::{ClusterBounds, Linkage}};
/// let stars = ClusterBounds::default().linkage(Linkage::Star);
/// let schema = Schema::builder().minhash(MinHash::new(64)).clusters(stars).build()?;
/// assert_eq!(schema.clusters().map(|bounds| bounds.linkage), Some(Linkage::Star));
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Linkage {
    /// Documents that a chain of near ones connects are in one cluster: a cluster is a connected
    /// component. Two clusters become one when a document is near both.
    #[default]
    Single,
    /// Every member of a cluster is near its representative. A new document joins the cluster of the
    /// oldest representative near it, or else becomes a representative itself. When a representative
    /// is removed, its members join again, in the order of their ids.
    Star,
    /// All members of a cluster are near each other. A new document joins the cluster with the oldest
    /// member, among those whose members are all near it.
    Complete,
}

/// The bounds within which a store links documents to the clusters that it keeps, and the rule of
/// their [`Linkage`], for [`SchemaBuilder::clusters`](super::SchemaBuilder::clusters).
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
#[non_exhaustive]
pub struct ClusterBounds {
    /// See the [method](Self::min_similarity); `None` takes the schema's threshold.
    pub min_similarity: Option<f64>,
    /// See the [method](Self::max_distance); `None` takes the schema's maximum distance.
    pub max_distance: Option<u8>,
    /// The rule by which documents belong to one cluster.
    pub linkage: Linkage,
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

    /// Sets the rule by which documents belong to one cluster. Default: [`Linkage::Single`].
    pub fn linkage(mut self, linkage: Linkage) -> Self {
        self.linkage = linkage;
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
    AnyInClusters(StoredBounds),
    BothInClusters(StoredBounds),
    AnyInStars(StoredBounds),
    BothInStars(StoredBounds),
    AnyInComplete(StoredBounds),
    BothInComplete(StoredBounds),
}

/// The bounds of clusters as a schema is written. Frozen.
#[derive(Serialize, Deserialize)]
struct StoredBounds {
    min_similarity: Option<f64>,
    max_distance: Option<u8>,
}

impl From<StoredNear> for NearRule {
    fn from(stored: StoredNear) -> Self {
        let (combine, linkage, bounds) = match stored {
            StoredNear::Any => (Combine::Any, Linkage::Single, None),
            StoredNear::Both => (Combine::Both, Linkage::Single, None),
            StoredNear::AnyInClusters(it) => (Combine::Any, Linkage::Single, Some(it)),
            StoredNear::BothInClusters(it) => (Combine::Both, Linkage::Single, Some(it)),
            StoredNear::AnyInStars(it) => (Combine::Any, Linkage::Star, Some(it)),
            StoredNear::BothInStars(it) => (Combine::Both, Linkage::Star, Some(it)),
            StoredNear::AnyInComplete(it) => (Combine::Any, Linkage::Complete, Some(it)),
            StoredNear::BothInComplete(it) => (Combine::Both, Linkage::Complete, Some(it)),
        };
        let clusters = bounds.map(|stored| ClusterBounds {
            min_similarity: stored.min_similarity,
            max_distance: stored.max_distance,
            linkage,
        });
        Self { combine, clusters }
    }
}

impl From<NearRule> for StoredNear {
    fn from(rule: NearRule) -> Self {
        let Some(kept) = rule.clusters else {
            return match rule.combine {
                Combine::Any => Self::Any,
                Combine::Both => Self::Both,
            };
        };
        let bounds = StoredBounds {
            min_similarity: kept.min_similarity,
            max_distance: kept.max_distance,
        };
        match (rule.combine, kept.linkage) {
            (Combine::Any, Linkage::Single) => Self::AnyInClusters(bounds),
            (Combine::Both, Linkage::Single) => Self::BothInClusters(bounds),
            (Combine::Any, Linkage::Star) => Self::AnyInStars(bounds),
            (Combine::Both, Linkage::Star) => Self::BothInStars(bounds),
            (Combine::Any, Linkage::Complete) => Self::AnyInComplete(bounds),
            (Combine::Both, Linkage::Complete) => Self::BothInComplete(bounds),
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
        for (linkage, number) in [
            (Linkage::Single, 3),
            (Linkage::Star, 5),
            (Linkage::Complete, 7),
        ] {
            let kept = schema(Some(bounds.linkage(linkage)));
            let encoded = metadata::encode("a rule", &kept.near).unwrap();
            assert_eq!(encoded[..4], [number, 0, 0, 0]);
            assert_eq!(Schema::from_bytes(&kept.to_bytes().unwrap()).unwrap(), kept);
        }
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
