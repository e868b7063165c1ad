//! Prints a schema in words. The alternate form `{:#}` also prints how the recall varies with the
//! seed.

use std::borrow::Cow;
use std::fmt;

use super::definition::{MinHashSchema, Schema};
use super::near::{ClusterBounds, Combine, Linkage};
use crate::lanes::{TYPICAL_FEATURES, distance_at, simhash_probability};
use crate::sketch::{Containment, MinHashKind, VectorKind, VectorMetric};

/// The number of families of near-duplicates for which the spread of the recall is shown.
const SHOWN_FAMILIES: u64 = 100;

/// Returns a noun as it follows a count in a message: `pair` after 1, and otherwise `pairs`.
#[doc(hidden)]
#[must_use]
pub fn noun(count: u64, singular: &str) -> Cow<'_, str> {
    if count == 1 {
        return singular.into();
    }
    let takes_es = ["ch", "sh"].iter().any(|end| singular.ends_with(end));
    Cow::Owned(format!("{singular}{}", if takes_es { "es" } else { "s" }))
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.recipe.text {
            Some(text) => write!(f, "text: {text}")?,
            None if self.vector().is_some() => write!(f, "text: none, vectors")?,
            None => write!(f, "text: none, precomputed features")?,
        }
        write!(f, "; seed {}", self.recipe.seed)?;
        if let Some(minhash) = &self.minhash {
            write_minhash(f, minhash)?;
        }
        if let Some(s) = &self.simhash {
            let (bits, distance) = (s.bits(), s.max_distance());
            let is_external = self.has_external_fingerprints();
            let made = match (is_external, self.has_term_counts()) {
                (true, _) => ", external",
                (false, true) => ", repeats count",
                (false, false) => "",
            };
            write!(
                f,
                "\nSimHash: {bits} bits{made}, distance up to {distance}: {s}"
            )?;
            let documents = self.expected_documents;
            let (candidates, buckets) = (s.candidates(documents), s.buckets(documents));
            write!(
                f,
                "\n  {documents} {} expected: {candidates:.1} candidates a probe in {buckets} buckets if \
                 uniform",
                noun(documents, "document")
            )?;
            if !is_external {
                write!(
                    f,
                    "\n  unweighted sets with {TYPICAL_FEATURES} features together come that near with probability"
                )?;
                for (index, similarity) in [0.8, 0.9, 0.95, 0.99].into_iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    let probability =
                        simhash_probability(bits, distance, similarity, TYPICAL_FEATURES);
                    write!(f, "{comma} {probability:.3} at Jaccard {similarity}")?;
                }
            }
        }
        if let Some(containment) = &self.recipe.containment {
            write_containment(f, containment)?;
        }
        if let Some(form) = self.vector().and_then(|vector| vector.kept()) {
            write!(f, "\nexact: vectors, kept as {form}, decide similarities")?;
        }
        if let Some((bits, chance)) = self.exact_bits().zip(self.collision_probability(1_000)) {
            write!(
                f,
                "\nexact: the sets of features decide similarities; two of 1000 features have the same hash of {bits} \
                 bits with a probability of {chance:.0e} at most"
            )?;
        }
        if self.minhash.is_some() && self.simhash.is_some() {
            let rule = match self.near.combine {
                Combine::Any => "either bound",
                Combine::Both => "both bounds",
            };
            write!(f, "\nnear-duplicates: within {rule}")?;
        }
        if let Some(bounds) = self.clusters() {
            write_clusters(f, &bounds)?;
        }
        Ok(())
    }
}

fn write_clusters(f: &mut fmt::Formatter<'_>, bounds: &ClusterBounds) -> fmt::Result {
    write!(f, "\nclusters: kept, of documents ")?;
    match (bounds.min_similarity, bounds.max_distance) {
        (None, None) => write!(f, "that are near-duplicates"),
        (Some(least), None) => write!(f, "with a similarity of {least} or more"),
        (None, Some(most)) => write!(f, "within a distance of {most}"),
        (Some(least), Some(most)) => write!(
            f,
            "with a similarity of {least} or more, and a distance of up to {most}, by the same rule"
        ),
    }?;
    match bounds.linkage {
        Linkage::Single => Ok(()),
        Linkage::Star => write!(f, "; each is near its representative"),
        Linkage::Complete => write!(f, "; all are near each other"),
    }
}

fn write_containment(f: &mut fmt::Formatter<'_>, containment: &Containment) -> fmt::Result {
    write!(f, "\ncontainment: {containment}")?;
    match containment.scale() {
        None => write!(
            f,
            "\n  every shared passage of {} words, characters or code tokens is found; none of fewer \
             than {} is",
            containment.guaranteed_units(),
            containment.shingle_units()
        ),
        Some(scale) => write!(
            f,
            "\n  a shared passage of n shingles is missed with probability (1 - 1 / {scale})^n"
        ),
    }
}

fn write_minhash(f: &mut fmt::Formatter<'_>, m: &MinHashSchema) -> fmt::Result {
    let (family, values) = match m.kind {
        MinHashKind::BottomK => ("MinHash", "hashes"),
        MinHashKind::Vector(_) => ("vectors", "values"),
        _ => ("MinHash", "values"),
    };
    write!(
        f,
        "\n{family}: {} {values} of {} {}, {}, {} {} of {} {}, {}",
        m.values,
        m.value_bits(),
        noun(m.value_bits().into(), "bit"),
        m.kind,
        m.bands(),
        noun(m.bands().into(), "band"),
        m.rows(),
        noun(m.rows().into(), "row"),
        match m.kind {
            // Without the digits that come from the conversion.
            MinHashKind::Vector(VectorKind {
                metric: VectorMetric::Euclidean(_),
                ..
            }) => format!("distance up to {}", distance_at(m.threshold) as f32),
            _ => format!("threshold {}", m.threshold),
        }
    )?;
    write!(f, "\n  a pair is looked at with probability")?;
    for step in [-0.1, -0.05, 0.0, 0.05, 0.1] {
        let similarity = m.threshold + step;
        if similarity > 0.0 && similarity <= 1.0 {
            write!(f, " {:.3} at {similarity:.2},", m.probability(similarity))?;
        }
    }
    write!(f, " 1.000 at 1.00")?;
    if !f.alternate() {
        return Ok(());
    }
    write!(
        f,
        "\n  of a corpus the share found at the threshold varies with the seed: mean {:.3}, \
         deviation {:.3} if its pairs are {SHOWN_FAMILIES} families, each found or missed as \
         a whole, {:.3} if {}",
        m.recall_at_threshold(),
        m.recall_deviation(SHOWN_FAMILIES),
        m.recall_deviation(100 * SHOWN_FAMILIES),
        100 * SHOWN_FAMILIES
    )
}
