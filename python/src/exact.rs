//! Exact similarities of sets of features and of weighted sets, and the passages that texts share.

use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use resemblance::Error;
use resemblance::exact::{FeatureSet, SharedPassage, SharedSpans, WeightedSet};
use resemblance_corpus::verification::Explanation;

use crate::errors::OrRaise;
use crate::keys::{Key, features_of, several};
use crate::python::{Report, choice, object};
use crate::schema::{Part, Schema, TextFields, weighted_features};
use crate::waiting::{interruptible, released};

/// Texts up to this length are compared within some milliseconds, so without a thread of their own.
const COMPARED_AT_ONCE_BYTES: usize = 64 * 1024;

type Features = FeatureSet<Vec<u8>>;
type Weights = WeightedSet<Vec<u8>>;

/// A function that computes the similarity of two values of a kind.
type Measure<T> = fn(&T, &T) -> f64;

fn set_of(features: &Bound<'_, PyAny>) -> PyResult<Features> {
    let read = features_of(features)?.map(|feature| {
        features.py().check_signals()?;
        Ok(feature?.extract::<Key>()?.0)
    });
    read.collect()
}

fn weights_of(weights: &Bound<'_, PyDict>) -> PyResult<Weights> {
    WeightedSet::new(weighted_features(weights)?).or_raise(weights.py())
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
    let measure = choice(a.py(), "measure", measure, &measures)?;
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
    let measure = choice(a.py(), "measure", measure, &measures)?;
    Ok(measure(&weights_of(a)?, &weights_of(b)?))
}

/// Compares copies of two texts, long ones in a separate thread, so that Ctrl-C works.
fn compare<T: Send + 'static>(
    py: Python<'_>,
    a: &str,
    b: &str,
    work: impl FnOnce(&str, &str) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    if a.len() + b.len() <= COMPARED_AT_ONCE_BYTES {
        return released(py, || work(a, b));
    }
    let (a, b) = (a.to_owned(), b.to_owned());
    interruptible(py, move || work(&a, &b))
}

/// The start and the end of a part of a text, as a tuple in Python.
#[derive(IntoPyObject)]
pub(crate) struct Position(pub(crate) usize, pub(crate) usize);

/// One byte range in characters.
pub(crate) fn position(text: &str, range: &Range<usize>) -> Position {
    let characters = |range: Range<usize>| text.get(range).map_or(0, |part| part.chars().count());
    let start = characters(0..range.start);
    Position(start, start + characters(range.clone()))
}

/// Byte ranges, ascending and without overlap, as positions in a `str` of Python, which counts characters.
fn positions(text: &str, ranges: &[Range<usize>]) -> Vec<Position> {
    let (mut byte, mut character) = (0, 0);
    let mut advance = |to: usize| {
        let part = text.get(byte..to).map_or(0, |part| part.chars().count());
        (byte, character) = (to, character + part);
        character
    };
    let mut all = Vec::with_capacity(ranges.len());
    for range in ranges {
        all.push(Position(advance(range.start), advance(range.end)));
    }
    all
}

/// The fields of `exact.SharedSpans`, with positions in both texts.
struct SpanFields {
    found: SharedSpans,
    spans_a: Vec<Position>,
    spans_b: Vec<Position>,
}

impl SpanFields {
    fn new(found: SharedSpans, a: &str, b: &str) -> Self {
        Self {
            spans_a: positions(a, &found.spans_a),
            spans_b: positions(b, &found.spans_b),
            found,
        }
    }

    fn object(self, py: Python<'_>) -> Report<'_> {
        let found = self.found;
        object!(py, exact.SharedSpans,
            found { shingles_a, shingles_b, shared, jaccard, cosine, dice, overlap, share_of_a,
                share_of_b },
            spans_a: self.spans_a,
            spans_b: self.spans_b,
        )
    }
}

/// The fields of `exact.SharedPassage`.
struct PassageOfTexts {
    a: Position,
    b: Position,
    shingles: usize,
}

impl PassageOfTexts {
    fn new(found: &SharedPassage, a: &str, b: &str) -> Self {
        Self {
            a: position(a, &found.a),
            b: position(b, &found.b),
            shingles: found.shingles,
        }
    }

    fn object(self, py: Python<'_>) -> Report<'_> {
        object!(py, exact.SharedPassage, self { a, b, shingles })
    }
}

/// The fields of `explanation.Explanation`: the texts that the schema extracts, compared.
struct ComparedTexts {
    found: Explanation,
    spans: SpanFields,
    longest: Option<PassageOfTexts>,
    a: String,
    b: String,
}

/// Returns the passages that two texts share, as `exact.SharedSpans`.
#[pyfunction]
pub(crate) fn spans_of_texts<'py>(
    py: Python<'py>,
    a: &str,
    b: &str,
    text: Part<TextFields>,
) -> Report<'py> {
    let recipe = text.0.build(py)?;
    let found = compare(py, a, b, move |a, b| {
        let found = resemblance::exact::shared_spans(&recipe, a, b)?;
        Ok(SpanFields::new(found, a, b))
    })?;
    found.object(py)
}

/// Returns two texts compared by a schema, as `Explanation`.
#[pyfunction]
pub(crate) fn explanation_of_texts<'py>(
    py: Python<'py>,
    a: &str,
    b: &str,
    schema: &Schema,
) -> Report<'py> {
    let parts = Arc::clone(&schema.parts);
    let compared = compare(py, a, b, move |a, b| {
        let (a, b) = (parts.taken(a)?.into_owned(), parts.taken(b)?.into_owned());
        let found = Explanation::new(&parts.schema, &a, &b)?;
        let longest = found.longest.as_ref();
        Ok(ComparedTexts {
            longest: longest.map(|it| PassageOfTexts::new(it, &a, &b)),
            spans: SpanFields::new(found.shared.clone(), &a, &b),
            found,
            a,
            b,
        })
    })?;
    let found = compared.found;
    let longest = compared.longest.map(|longest| longest.object(py));
    object!(py, explanation.Explanation,
        found { estimate, weighted_similarity, weighted_cosine, distance },
        a: compared.a,
        b: compared.b,
        shared: compared.spans.object(py)?,
        longest: longest.transpose()?,
    )
}

/// Returns the longest passage of two texts, as `exact.SharedPassage`, or `None`.
#[pyfunction]
pub(crate) fn passage_of_texts<'py>(
    py: Python<'py>,
    a: &str,
    b: &str,
    text: Part<TextFields>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let recipe = text.0.build(py)?;
    let found = compare(py, a, b, move |a, b| {
        let found = resemblance::exact::longest_shared_passage(&recipe, a, b)?;
        Ok(found.map(|found| PassageOfTexts::new(&found, a, b)))
    })?;
    found.map(|found| found.object(py)).transpose()
}

/// Short texts that are found as wholes in others.
#[pyclass(frozen, module = "resemblance.exact")]
pub(crate) struct WholeTexts(Arc<resemblance::exact::WholeTexts>);

#[pymethods]
impl WholeTexts {
    #[new]
    #[pyo3(signature = (texts, text=None))]
    fn create(
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        text: Option<Part<TextFields>>,
    ) -> PyResult<Self> {
        let recipe = match text {
            Some(text) => text.0.build(py)?,
            None => resemblance::Text::auto(),
        };
        let whole = resemblance::exact::WholeTexts::new(&recipe);
        let mut whole = whole.map_err(resemblance::Error::from).or_raise(py)?;
        for text in several("texts", texts)? {
            py.check_signals()?;
            whole.insert(&text?.extract::<String>()?);
        }
        Ok(Self(Arc::new(whole)))
    }

    /// Returns the numbers of the texts that are wholly in another one, and where each is first.
    fn find(&self, py: Python<'_>, text: &str) -> PyResult<Vec<(usize, Position)>> {
        let whole = Arc::clone(&self.0);
        compare(py, text, "", move |text, _| {
            let found = whole.find(text)?.into_iter();
            Ok(found
                .map(|(number, span)| (number, position(text, &span)))
                .collect())
        })
    }
}
