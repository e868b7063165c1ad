//! Dense vectors in a schema.

use super::builder::{MinHash, SchemaBuilder};
use super::definition::Schema;
use crate::lanes::{IntervalWidth, distance_at, similarity_at};
use crate::sketch::{INTERVAL, KeptVector, MinHashKind, VectorKind, VectorMetric};

/// The rules by which a schema hashes, indexes and compares dense vectors, such as embeddings.
///
/// A vector has hash values that take the place of MinHash values, and a schema has either. With
/// the cosine, a value is the side of a random hyperplane on which the vector lies, and two vectors
/// at an angle θ agree in it with the probability 1 − θ / π (Charikar 2002). With the Euclidean
/// distance, it is the interval of a random projection (Datar et al. 2004). Bands of values find
/// the candidates, with a [recall](Self::recall) that is stated, and the vectors decide.
///
/// The similarity of two vectors is their cosine, where a negative one counts as 0, or 1 / (1 + d)
/// at a Euclidean distance of d. Texts beside vectors have SimHash or containment.
///
/// ```
/// use resemblance_sketch::{Schema, Vector};
/// let schema = Schema::builder().vector(Vector::cosine(4).threshold(0.9)).build()?;
/// let sketcher = schema.sketcher();
/// let a = sketcher.vector(&[1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!(a, sketcher.vector(&[2.0, 4.0, 6.0, 8.0])?); // only the direction counts
/// assert!(schema.minhash().unwrap().recall_at_threshold() >= 0.95);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[doc(alias("embedding", "hyperplanes", "lsh"))]
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Vector {
    hashed: MinHash,
    kept: Option<KeptVector>,
}

impl Vector {
    /// Creates vectors of 2 to 65,535 dimensions that are compared by the cosine of their angle.
    pub fn cosine(dimensions: u16) -> Self {
        Self::of_metric(dimensions, VectorMetric::Cosine).threshold(0.95)
    }

    /// Creates vectors of 2 to 65,535 dimensions that are compared by their Euclidean distance, and
    /// are near within this distance, 10⁻⁶ to 10⁶. Scale vectors whose distances are of another
    /// order.
    ///
    /// ```
    /// use resemblance_sketch::{Schema, Vector};
    /// let schema = Schema::builder().vector(Vector::euclidean(2, 0.5)).build()?;
    /// let sketcher = schema.sketcher();
    /// let (a, b) = (sketcher.vector(&[0.0, 0.0])?, sketcher.vector(&[0.3, 0.4])?);
    /// let (a, b) = (a.exact_set().unwrap(), b.exact_set().unwrap());
    /// let similarity = a.similarity_from(0.0, b, schema.minhash().unwrap().kind())?;
    /// assert!((schema.vector().unwrap().distance_at(similarity) - 0.5).abs() < 1e-6);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn euclidean(dimensions: u16, distance: f64) -> Self {
        // A width that cannot be used is refused when the schema is built.
        let width = IntervalWidth::unchecked(INTERVAL * distance);
        Self::of_metric(dimensions, VectorMetric::Euclidean(width))
            .threshold(similarity_at(distance))
    }

    fn of_metric(dimensions: u16, metric: VectorMetric) -> Self {
        // Unrelated vectors agree in half of their signs, but hardly ever in their intervals.
        let values = match metric {
            VectorMetric::Cosine => 1_024,
            VectorMetric::Euclidean(_) => 512,
        };
        let kind = MinHashKind::Vector(VectorKind { dimensions, metric });
        Self {
            hashed: MinHash::new_of_kind(kind, values),
            kept: Some(KeptVector::F32),
        }
    }

    /// Sets the number of hash values, 16 to 1,024. Default: 1,024 for the cosine, which takes one
    /// bit for each, and 512 for the Euclidean distance, which takes two bytes. With more of them,
    /// bands have more rows and find fewer false candidates.
    pub fn values(mut self, values: u16) -> Self {
        self.hashed.values = values;
        self
    }

    /// Sets the minimum similarity of near-duplicates, above 0 and at most 1: a cosine, or 1 / (1 +
    /// d) for a Euclidean distance. Default: 0.95, or that of the distance.
    pub fn threshold(mut self, threshold: f64) -> Self {
        self.hashed.threshold = threshold;
        self
    }

    /// Sets the share of the pairs at the threshold that must share a band, between 0 and 1.
    /// Default: 0.95.
    pub fn recall(mut self, recall: f64) -> Self {
        self.hashed.recall = recall;
        self
    }

    /// Sets the bands and rows directly. Otherwise they are chosen for the recall.
    pub fn banding(mut self, bands: u16, rows: u16) -> Self {
        self.hashed.banding = Some((bands, rows));
        self
    }

    /// Sets how many bits of a band's hash are stored, 32 to 64. Default: 40.
    pub fn code_bits(mut self, bits: u8) -> Self {
        self.hashed.code_bits = bits;
        self
    }

    /// Sets the form in which vectors are kept for the exact comparison. Default:
    /// [`KeptVector::F32`].
    pub fn kept(mut self, form: KeptVector) -> Self {
        self.kept = Some(form);
        self
    }

    /// Keeps hash values without vectors. Answers then have estimated similarities, and say so: at
    /// a cosine of 0.95, the estimate from 1,024 values has a standard deviation of 0.009.
    ///
    /// ```
    /// use resemblance_sketch::{Schema, Vector};
    /// let schema = Schema::builder().vector(Vector::cosine(384).estimated()).build()?;
    /// assert!(!schema.is_exact());
    /// assert!((schema.minhash().unwrap().variance(0.95).sqrt() - 0.009).abs() < 0.0005);
    /// # Ok::<(), resemblance_sketch::SketchError>(())
    /// ```
    pub fn estimated(mut self) -> Self {
        self.kept = None;
        self
    }
}

impl SchemaBuilder {
    /// Adds dense vectors, in place of MinHash signatures, and keeps them in the form that the rules
    /// state.
    pub fn vector(mut self, vector: Vector) -> Self {
        self.minhash = Some(vector.hashed);
        self.exact_bits = vector.kept.map(KeptVector::bits);
        self
    }
}

/// The vectors of a [`Schema`].
///
/// ```
/// use resemblance_sketch::{KeptVector, Schema, Vector, VectorMetric};
/// let schema = Schema::builder().vector(Vector::euclidean(128, 0.25)).build()?;
/// let vector = schema.vector().expect("it has vectors");
/// assert_eq!((vector.dimensions(), vector.kept()), (128, Some(KeptVector::F32)));
/// assert!(matches!(vector.metric(), VectorMetric::Euclidean(_)));
/// assert_eq!((vector.distance(), vector.similarity_at(0.25)), (Some(0.25), 0.8));
/// assert_eq!(vector.distance_at(0.8), 0.25);
/// # Ok::<(), resemblance_sketch::SketchError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorSchema {
    kind: VectorKind,
    kept: Option<KeptVector>,
}

impl VectorSchema {
    /// The number of components of a vector.
    #[must_use]
    pub fn dimensions(&self) -> u16 {
        self.kind.dimensions
    }

    /// The measure by which vectors are compared.
    #[must_use]
    pub fn metric(&self) -> VectorMetric {
        self.kind.metric
    }

    /// The Euclidean distance for which vectors are hashed, or `None` for a cosine.
    #[must_use]
    pub fn distance(&self) -> Option<f64> {
        match self.kind.metric {
            VectorMetric::Cosine => None,
            VectorMetric::Euclidean(width) => Some(width.get() / INTERVAL),
        }
    }

    /// The form in which vectors are kept, or `None` if only hash values are.
    #[must_use]
    pub fn kept(&self) -> Option<KeptVector> {
        self.kept
    }

    /// Returns the similarity of vectors at a distance: a Euclidean one, or 1 − cos θ.
    #[must_use]
    pub fn similarity_at(&self, distance: f64) -> f64 {
        match self.kind.metric {
            VectorMetric::Cosine => 1.0 - distance,
            VectorMetric::Euclidean(_) => similarity_at(distance),
        }
    }

    /// Returns the distance at which vectors have this similarity: a Euclidean one, or 1 − cos θ.
    #[must_use]
    pub fn distance_at(&self, similarity: f64) -> f64 {
        match self.kind.metric {
            VectorMetric::Cosine => 1.0 - similarity,
            VectorMetric::Euclidean(_) => distance_at(similarity),
        }
    }
}

impl Schema {
    /// Returns the rules for vectors, if documents have vectors.
    #[must_use]
    pub fn vector(&self) -> Option<VectorSchema> {
        Some(VectorSchema {
            kind: self.recipe.vector()?,
            kept: self.recipe.exact_bits.and_then(KeptVector::of_bits),
        })
    }
}
