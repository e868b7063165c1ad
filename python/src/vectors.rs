//! Dense vectors: from NumPy, from what NumPy converts, and from columns of Arrow.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use resemblance::Error;
use resemblance::schema::{KeptVector, VectorMetric, VectorSchema};

use crate::batches::{arrow_error, in_shares, list_arrays, threads_or_all};
use crate::errors::invalid;
use crate::keys::several;
use crate::python::{choice, given, number, object, optional_number};
use crate::schema::{Schema, SchemaParts, name_of};
use crate::signature::{Signature, Signatures, check_unmasked};
use crate::waiting::released;

/// The fields of `resemblance.Vector`.
#[derive(FromPyObject)]
pub(crate) struct VectorFields {
    dimensions: i64,
    metric: String,
    distance: Option<f64>,
    threshold: Option<f64>,
    recall: Option<f64>,
    values: Option<i64>,
    bands: Option<i64>,
    rows: Option<i64>,
    code_bits: Option<i64>,
    kept: Option<String>,
}

const KEPT: [(&str, KeptVector); 3] = [
    ("f32", KeptVector::F32),
    ("f16", KeptVector::F16),
    ("i8", KeptVector::I8),
];

/// The number of vectors that a thread sketches before signals are handled.
const VECTORS_TOGETHER: usize = 4_096;

impl VectorFields {
    pub(crate) fn build(&self, py: Python<'_>) -> PyResult<resemblance::Vector> {
        let dimensions = number(py, "dimensions", self.dimensions)?;
        let vector = match (self.metric.as_str(), self.distance) {
            ("cosine", None) => resemblance::Vector::cosine(dimensions),
            ("euclidean", Some(distance)) => resemblance::Vector::euclidean(dimensions, distance),
            ("cosine", Some(found)) => {
                return Err(invalid(
                    py,
                    "distance",
                    found,
                    "none: a cosine has a threshold",
                ));
            }
            ("euclidean", None) => {
                let expected = "the distance within which vectors are near";
                return Err(invalid(py, "distance", "none", expected));
            }
            (found, _) => {
                return Err(invalid(py, "metric", found, "\"cosine\" or \"euclidean\""));
            }
        };
        let kept = match &self.kept {
            Some(form) => Some(choice(py, "kept", form, &KEPT)?),
            None => None,
        };
        let vector = given!(
            vector.estimated(),
            kept,
            threshold: self.threshold,
            recall: self.recall,
            values: optional_number(py, "values", self.values)?,
            code_bits: optional_number(py, "code_bits", self.code_bits)?
        );
        match (self.bands, self.rows) {
            (None, None) => Ok(vector),
            (Some(bands), Some(rows)) => {
                Ok(vector.banding(number(py, "bands", bands)?, number(py, "rows", rows)?))
            }
            _ => Err(invalid(
                py,
                "bands",
                "bands or rows alone",
                "both or neither",
            )),
        }
    }
}

#[pymethods]
impl Schema {
    /// Makes the signature of a vector: a sequence of numbers, a NumPy array, or what NumPy
    /// converts, such as a tensor. `text` is what the document has beside it, if the schema has
    /// texts as well.
    #[pyo3(signature = (vector, *, text=None))]
    fn sketch_vector(
        slf: &Bound<'_, Self>,
        vector: &Bound<'_, PyAny>,
        text: Option<&str>,
    ) -> PyResult<Signature> {
        let (py, parts) = (slf.py(), &slf.get().parts);
        let rows = Rows::of_numpy(vector, 1)?;
        let signature = released(py, || sketch(parts, &rows.numbers, text))?;
        Ok(Signature::new(signature, slf.clone().unbind()))
    }

    /// Makes the signatures of many vectors: the rows of a NumPy array of two dimensions, or of what
    /// NumPy converts to one, such as a tensor; or an Arrow column of lists. `texts` are what the
    /// documents have beside them, if the schema has texts as well. `threads` is the number of
    /// threads, by default one for each core.
    #[pyo3(signature = (vectors, *, texts=None, threads=None))]
    fn sketch_vectors(
        slf: &Bound<'_, Self>,
        vectors: &Bound<'_, PyAny>,
        texts: Option<&Bound<'_, PyAny>>,
        threads: Option<usize>,
    ) -> PyResult<Signatures> {
        let (py, parts) = (slf.py(), &slf.get().parts);
        let texts: Option<Vec<String>> = match texts {
            Some(texts) => {
                let read = several("texts", texts)?.map(|text| text?.extract::<String>());
                Some(read.collect::<PyResult<_>>()?)
            }
            None => None,
        };
        let threads = threads_or_all(py, threads)?;
        let vector = of_schema(py, parts)?;
        let rows = match Rows::of_arrow(vectors)? {
            Some(rows) => rows,
            None => Rows::of_numpy(vectors, 2)?,
        };
        let width = usize::from(vector.dimensions());
        if let Some(found) = rows.width.filter(|found| *found != width) {
            let [found, expected] = [found, width].map(|it| format!("{it} numbers in each row"));
            return Err(invalid(py, "vectors", found, expected));
        }
        let vectors: Vec<&[f32]> = rows.numbers.chunks_exact(width).collect();
        if let Some(texts) = texts.as_ref().filter(|texts| texts.len() != vectors.len()) {
            let expected = format!("{}, as there are vectors", vectors.len());
            return Err(invalid(
                py,
                "texts",
                format!("{} texts", texts.len()),
                &expected,
            ));
        }
        let texts = texts.iter().flatten().map(|text| Some(text.as_str()));
        let rest = std::iter::repeat(None);
        let documents: Vec<_> = vectors.iter().copied().zip(texts.chain(rest)).collect();
        let mut signatures = Vec::with_capacity(documents.len());
        let work = |documents: &[(&[f32], Option<&str>)]| {
            let made = documents
                .iter()
                .map(|(vector, text)| sketch(parts, vector, *text));
            made.collect()
        };
        for documents in documents.chunks(threads * VECTORS_TOGETHER) {
            let first = signatures.len();
            let made = released(py, || in_shares(documents, threads, work));
            signatures.extend(made.map_err(|error| at_row(py, error, first))?);
            py.check_signals()?;
        }
        Ok(Signatures::new(signatures, slf.clone().unbind()))
    }

    /// The rules for vectors, or `None` if documents have none.
    #[getter]
    pub(crate) fn vector<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let schema = &self.parts.schema;
        let Some((vector, hashed)) = schema.vector().zip(schema.minhash()) else {
            return Ok(None);
        };
        object!(py, schema.Vector,
            dimensions: vector.dimensions(),
            metric: match vector.metric() {
                VectorMetric::Cosine => "cosine",
                VectorMetric::Euclidean(_) => "euclidean",
                _ => "other",
            },
            distance: vector.distance(),
            threshold: hashed.threshold(),
            values: hashed.values(),
            bands: hashed.bands(),
            rows: hashed.rows(),
            code_bits: hashed.code_bits(),
            kept: vector.kept().and_then(|form| name_of(&KEPT, &form)),
        )
        .map(Some)
    }
}

#[pymethods]
impl Signature {
    /// The vector that the schema keeps: of length 1 for a cosine, and rounded to the form that is
    /// kept. `None` without vectors, or if none are kept.
    #[getter]
    fn vector<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f32>>> {
        let vector = self.signature.vector();
        vector.map(|vector| PyArray1::from_slice(py, vector))
    }
}

/// Adds to an error which rows it is about.
fn at_row(py: Python<'_>, error: PyErr, first: usize) -> PyErr {
    let note = format!("in a row from {first} on, counted from 0");
    // Without the note, the error is still right.
    let _ = error.value(py).call_method1("add_note", (note,));
    error
}

fn of_schema(py: Python<'_>, parts: &SchemaParts) -> PyResult<VectorSchema> {
    let vector = parts.schema.vector();
    vector.ok_or_else(|| invalid(py, "schema", "no vectors", "Schema(vector=Vector(...))"))
}

fn sketch(
    parts: &SchemaParts,
    vector: &[f32],
    text: Option<&str>,
) -> Result<resemblance::Signature, Error> {
    let sketcher = &parts.sketcher;
    match (text, sketcher.beside_vector()) {
        (Some(text), Some(beside)) => {
            let rest = beside.text(&parts.taken(text)?)?;
            Ok(sketcher.with_vector(rest, vector)?)
        }
        (Some(_), None) => Err(crate::errors::invalid_parameter(
            "text",
            "a text",
            "none: the schema has vectors alone",
        )),
        (None, _) => Ok(sketcher.vector(vector)?),
    }
}

/// The numbers of vectors, one after another.
struct Rows {
    numbers: Vec<f32>,
    /// `None` if there are no rows, and nothing else shows it.
    width: Option<usize>,
    /// The number of rows of the columns read so far.
    count: usize,
}

impl Rows {
    /// Reads what NumPy converts to an array of this number of dimensions.
    fn of_numpy(object: &Bound<'_, PyAny>, dimensions: usize) -> PyResult<Self> {
        check_unmasked("vectors", object)?;
        let numpy = object.py().import("numpy")?;
        let array = numpy.call_method1("asarray", (object,))?;
        let (kind, shape) = (array.getattr("dtype")?, array.getattr("shape")?);
        let kind_code: String = kind.getattr("kind")?.extract()?;
        let is_empty_list = shape.eq((0,))?;
        let is_array = is_empty_list || shape.len()? == dimensions;
        if !is_array || !["f", "i", "u"].contains(&kind_code.as_str()) {
            let message = format!(
                "vectors: found an array of type {kind} and shape {shape}, expected numbers in \
                 {dimensions} dimension(s)"
            );
            return Err(PyTypeError::new_err(message));
        }
        let singles = numpy.call_method1("ascontiguousarray", (array, "float32"))?;
        let singles = singles.cast_into::<PyArrayDyn<f32>>()?;
        Ok(Self {
            width: singles.shape().last().copied().filter(|_| !is_empty_list),
            numbers: singles.readonly().as_slice()?.to_vec(),
            count: 0,
        })
    }

    /// Reads an Arrow column of lists of numbers, or returns `None` for another object.
    fn of_arrow(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        // NumPy reads its own arrays, and tensors.
        let Some(arrays) = list_arrays(object)? else {
            return Ok(None);
        };
        let mut rows = Self {
            numbers: Vec::new(),
            width: None,
            count: 0,
        };
        for array in arrays {
            rows.append(&array.map_err(arrow_error)?)?;
        }
        Ok(Some(rows))
    }

    fn append(&mut self, column: &ArrayRef) -> PyResult<()> {
        for row in 0..column.len() {
            let place = self.count + row;
            let found = vector_at(column, row, place)?.ok_or_else(|| not_numbers(column, place))?;
            let before = self.numbers.len();
            self.numbers.extend(found);
            let width = self.numbers.len() - before;
            let first = *self.width.get_or_insert(width);
            if width != first {
                let message = format!(
                    "vectors: found {width} numbers in row {place}, expected {first} as in the first"
                );
                return Err(PyTypeError::new_err(message));
            }
        }
        self.count += column.len();
        Ok(())
    }
}

/// Returns the vectors of an Arrow column of lists of numbers, `None` for a null.
pub(crate) fn optional_vectors(column: &ArrayRef) -> PyResult<Vec<Option<Vec<f32>>>> {
    (0..column.len())
        .map(|row| vector_at(column, row, row))
        .collect()
}

/// Returns the vector in a row of a column. `place` is the row of the whole that an error names.
fn vector_at(column: &ArrayRef, row: usize, place: usize) -> PyResult<Option<Vec<f32>>> {
    let list = match column.data_type() {
        DataType::Null => return Ok(None),
        _ if column.is_null(row) => return Ok(None),
        DataType::FixedSizeList(..) => column.as_fixed_size_list().value(row),
        DataType::List(_) => column.as_list::<i32>().value(row),
        DataType::LargeList(_) => column.as_list::<i64>().value(row),
        _ => return Err(not_numbers(column, place)),
    };
    match list.data_type() {
        _ if list.null_count() > 0 => Err(not_numbers(column, place)),
        DataType::Float32 => Ok(Some(list.as_primitive::<Float32Type>().values().to_vec())),
        DataType::Float64 => {
            let numbers = list.as_primitive::<Float64Type>().values();
            Ok(Some(numbers.iter().map(|number| *number as f32).collect()))
        }
        DataType::Float16 => {
            let numbers = list.as_primitive::<Float16Type>().values();
            Ok(Some(numbers.iter().map(|number| number.to_f32()).collect()))
        }
        _ => Err(not_numbers(column, place)),
    }
}

fn not_numbers(column: &ArrayRef, row: usize) -> PyErr {
    let kind = column.data_type();
    PyTypeError::new_err(format!(
        "vectors: found {kind} with row {row}, expected lists of floating-point numbers without nulls"
    ))
}
