//! Exact similarities of sets of features, and of weighted ones, and what texts share.

use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use resemblance::exact::{FeatureSet, WeightedSet};

use crate::errors::OrRaise;
use crate::keys::Key;
use crate::python::{fields, object};
use crate::schema::TextFields;
use crate::waiting::released;

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

/// Byte ranges, ascending and without overlap, as positions in a `str` of Python, which counts characters.
fn positions(text: &str, ranges: &[Range<usize>]) -> Vec<(usize, usize)> {
    let (mut byte, mut character) = (0, 0);
    let mut advance = |to: usize| {
        let part = text.get(byte..to).map_or(0, |part| part.chars().count());
        (byte, character) = (to, character + part);
        character
    };
    let ranges = ranges.iter();
    ranges
        .map(|range| (advance(range.start), advance(range.end)))
        .collect()
}

/// Returns what two texts share, as `exact.SharedSpans`.
#[pyfunction]
pub(crate) fn spans_of_texts<'py>(
    py: Python<'py>,
    a: &str,
    b: &str,
    text: TextFields,
) -> PyResult<Bound<'py, PyAny>> {
    let text = text.build(py)?;
    let found = released(py, || {
        let found = resemblance::exact::shared_spans(&text, a, b)?;
        let spans = (positions(a, &found.spans_a), positions(b, &found.spans_b));
        Ok((found, spans))
    })?;
    let (found, (spans_a, spans_b)) = found;
    let fields = fields! {
        py,
        spans_a: spans_a,
        spans_b: spans_b,
        shingles_a: found.shingles_a,
        shingles_b: found.shingles_b,
        shared: found.shared,
        jaccard: found.jaccard,
        share_of_a: found.share_of_a,
        share_of_b: found.share_of_b,
    };
    object(py, "exact", "SharedSpans", &fields)
}

/// Returns the longest passage of two texts, as `exact.SharedPassage`, or `None`.
#[pyfunction]
pub(crate) fn passage_of_texts<'py>(
    py: Python<'py>,
    a: &str,
    b: &str,
    text: TextFields,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let text = text.build(py)?;
    let found = released(py, || {
        let found = resemblance::exact::longest_shared_passage(&text, a, b)?;
        Ok(found.map(|found| {
            let places = [(a, &found.a), (b, &found.b)];
            let places = places.map(|(text, range)| positions(text, std::slice::from_ref(range)));
            (places, found.shingles)
        }))
    })?;
    let Some(([a, b], shingles)) = found else {
        return Ok(None);
    };
    let fields = fields! {
        py,
        a: a.first().copied(),
        b: b.first().copied(),
        shingles: shingles,
    };
    object(py, "exact", "SharedPassage", &fields).map(Some)
}
