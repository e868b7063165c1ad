//! Exact similarities of sets of features, and of weighted ones.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use resemblance::exact::{FeatureSet, WeightedSet};

use crate::errors::OrRaise;
use crate::keys::Key;

type Features = FeatureSet<Vec<u8>>;
type Weights = WeightedSet<Vec<u8>>;

/// How similar two of a kind are.
type Measure<T> = fn(&T, &T) -> f64;

fn set_of(features: &Bound<'_, PyAny>) -> PyResult<Features> {
    let features = features
        .try_iter()?
        .map(|feature| Ok(feature?.extract::<Key>()?.0));
    features.collect()
}

fn weights_of(weights: &Bound<'_, PyDict>) -> PyResult<Weights> {
    let mut features = Vec::with_capacity(weights.len());
    for (feature, weight) in weights {
        features.push((feature.extract::<Key>()?.0, weight.extract::<f64>()?));
    }
    WeightedSet::new(features).or_raise(weights.py())
}

/// Returns the similarity of two sets of features by a measure.
#[pyfunction]
pub(crate) fn similarity_of_sets(
    measure: &str,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
) -> PyResult<f64> {
    let measures: [(&str, Measure<Features>); 5] = [
        ("jaccard", resemblance::exact::jaccard),
        ("dice", resemblance::exact::dice),
        ("overlap", resemblance::exact::overlap),
        ("cosine", resemblance::exact::cosine),
        ("containment", resemblance::exact::containment),
    ];
    let measure = crate::python::choice(a.py(), "measure", measure, &measures)?;
    Ok(measure(&set_of(a)?, &set_of(b)?))
}

/// Returns the similarity of two weighted sets of features by a measure.
#[pyfunction]
pub(crate) fn similarity_of_weights(
    measure: &str,
    a: &Bound<'_, PyDict>,
    b: &Bound<'_, PyDict>,
) -> PyResult<f64> {
    let measures: [(&str, Measure<Weights>); 3] = [
        ("jaccard", resemblance::exact::weighted_jaccard),
        ("cosine", resemblance::exact::weighted_cosine),
        ("probability", resemblance::exact::probability_jaccard),
    ];
    let measure = crate::python::choice(a.py(), "measure", measure, &measures)?;
    Ok(measure(&weights_of(a)?, &weights_of(b)?))
}
