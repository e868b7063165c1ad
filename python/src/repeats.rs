//! Paragraphs and lines that occur in a corpus more than once.

use std::sync::Mutex;

use pyo3::prelude::*;
use resemblance_corpus::dedup::{TextPart, TextParts};

use crate::errors::OrRaise;
use crate::python::{choice, given, object};
use crate::schema::{Part, TextFields};
use crate::waiting::{Home, lock, released};

const PARTS: [(&str, TextPart); 2] = [("paragraph", TextPart::Paragraph), ("line", TextPart::Line)];

/// Removes paragraphs or lines that have already appeared from texts.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct RepeatedParts {
    part: TextPart,
    recipe: resemblance::Text,
    seen: Mutex<resemblance_corpus::dedup::RepeatedParts>,
    home: Home,
}

#[pymethods]
impl RepeatedParts {
    #[new]
    #[pyo3(signature = (part, text=None, *, memory_bytes=None))]
    fn create(
        py: Python<'_>,
        part: &str,
        text: Option<Part<TextFields>>,
        memory_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let recipe = match text {
            Some(text) => text.0.build(py)?,
            None => resemblance::Text::words(1),
        };
        recipe.validate().or_raise(py)?;
        let seen = resemblance_corpus::dedup::RepeatedParts::new();
        Ok(Self {
            part: choice(py, "part", part, &PARTS)?,
            recipe,
            seen: Mutex::new(given!(seen, memory_bytes)),
            home: Home::here(),
        })
    }

    /// Returns a text without the parts that have already appeared, and records its other parts.
    fn trim<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        self.home.check(py)?;
        // The lock is taken without the interpreter, for which the thread that holds it may wait.
        let (dropped, is_emptied, text) = released(py, || {
            let parts = TextParts::new(self.part, &self.recipe, text)?;
            let trimmed = lock(&self.seen).trim(&parts)?;
            Ok((
                trimmed.dropped,
                trimmed.is_emptied,
                trimmed.text.into_owned(),
            ))
        })?;
        object!(py, reports.Trimmed, text: text, dropped: dropped, is_emptied: is_emptied)
    }

    /// The number of different parts seen so far.
    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| lock(&self.seen).len())
    }

    fn __bool__(&self) -> bool {
        true
    }
}
