//! Signatures, one and many.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_schema::DataType;
use numpy::ndarray::ArrayView1;
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyByteArray, PyBytes, PyList, PySlice, PyTuple, PyType};
use resemblance::schema::SketchError;
use resemblance::{Error, Fingerprint};

use crate::batches::{arrow_arrays, arrow_error, optional_texts};
use crate::errors::{OrRaise, invalid};
use crate::keys::several;
use crate::python::at;
use crate::schema::Schema;
use crate::waiting::released;

/// The signature of one document.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Signature {
    pub(crate) signature: resemblance::Signature,
    /// The schema that made it, or `None` if the caller passed the values.
    #[pyo3(get)]
    schema: Option<Py<Schema>>,
}

/// A 32-bit value in each entry, by rows.
type Values<'py> = Bound<'py, PyArray2<u32>>;

impl Signature {
    pub(crate) fn new(signature: resemblance::Signature, schema: Py<Schema>) -> Self {
        Self {
            signature,
            schema: Some(schema),
        }
    }

    fn bare(signature: resemblance::Signature) -> Self {
        Self {
            signature,
            schema: None,
        }
    }

    fn schema_here(&self, py: Python<'_>) -> PyResult<&Py<Schema>> {
        let missing = || invalid(py, "signature", "one without a schema", "one of a schema");
        self.schema.as_ref().ok_or_else(missing)
    }
}

#[pymethods]
impl Signature {
    /// Makes a signature from MinHash values. Values of a schema, such as `Signature.minhash`
    /// returns, require that schema. Without a schema, they must be 32-bit values of another
    /// program, for a schema with `MinHash(kind="external")`.
    #[classmethod]
    #[pyo3(signature = (values, *, schema=None))]
    fn from_minhash(
        class: &Bound<'_, PyType>,
        values: &Bound<'_, PyAny>,
        schema: Option<&Bound<'_, Schema>>,
    ) -> PyResult<Self> {
        check_unmasked("values", values)?;
        let values = match values.extract::<PyReadonlyArray1<'_, u32>>() {
            Ok(array) => array.as_array().to_vec(),
            Err(_) => numbers_of(values).map_err(|_| {
                let expected = "whole numbers of 32 bits, in a list or an array of one dimension and type uint32";
                not_an_array("values", values, expected)
            })?,
        };
        Ok(Self {
            signature: of_values(schema, values).or_raise(class.py())?,
            schema: schema.map(|schema| schema.clone().unbind()),
        })
    }

    /// Makes a signature from a fingerprint of 32, 64, 128 or 256 bits, given as an integer (of 64
    /// bits by default, signed or not) or as hexadecimal digits, leading zeros included.
    #[classmethod]
    #[pyo3(signature = (fingerprint, bits=None))]
    fn from_simhash(
        _class: &Bound<'_, PyType>,
        fingerprint: &Bound<'_, PyAny>,
        bits: Option<u16>,
    ) -> PyResult<Self> {
        let read = read_fingerprint(fingerprint, bits)?;
        Ok(Self::bare(resemblance::Signature::from_fingerprint(read)))
    }

    /// Makes a signature from the hashes of features. The `max_count` smallest are kept.
    #[classmethod]
    fn from_bottom_k(
        _class: &Bound<'_, PyType>,
        max_count: u16,
        hashes: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let hashes: Vec<u64> = numbers_of(hashes).map_err(|_| {
            let expected =
                "whole numbers of 64 bits, in a list or an array of one dimension and type uint64";
            not_an_array("hashes", hashes, expected)
        })?;
        Ok(Self::bare(resemblance::Signature::from_bottom_k(
            max_count, hashes,
        )))
    }

    /// Makes a signature from the bytes that `to_bytes` returned, by a schema.
    #[classmethod]
    fn from_bytes(
        _class: &Bound<'_, PyType>,
        schema: &Bound<'_, Schema>,
        bytes: &[u8],
    ) -> PyResult<Self> {
        let signature = schema.get().parts.codec.decode(bytes);
        Ok(Self::new(
            signature.or_raise(schema.py())?,
            schema.clone().unbind(),
        ))
    }

    /// Returns the signature as bytes: equal signatures have equal bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let codec = &self.schema_here(py)?.get().parts.codec;
        let bytes = codec.encode(&self.signature).or_raise(py)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Returns the code of its bucket in each band and permuted table.
    fn bucket_codes(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let codec = &self.schema_here(py)?.get().parts.codec;
        codec.bucket_codes(&self.signature).or_raise(py)
    }

    /// Estimates the Jaccard similarity of two documents.
    fn jaccard(&self, py: Python<'_>, other: &Self) -> PyResult<f64> {
        self.signature.jaccard(&other.signature).or_raise(py)
    }

    /// Returns the Hamming distance of two fingerprints, in bits.
    fn hamming(&self, py: Python<'_>, other: &Self) -> PyResult<u32> {
        self.signature.hamming(&other.signature).or_raise(py)
    }

    /// Returns the signature of the union of two sets.
    fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        let signature = self.signature.merge(&other.signature).or_raise(py)?;
        Ok(Self {
            signature,
            schema: self.schema.as_ref().map(|schema| schema.clone_ref(py)),
        })
    }

    /// Returns the positions of ones in a vector of 2^value_bits zeros for each value, for linear models.
    fn one_hot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let positions = self.signature.one_hot().or_raise(py)?;
        Ok(PyArray1::from_vec(py, positions))
    }

    /// The MinHash values, or `None` without MinHash or for bottom-k.
    #[getter]
    fn minhash<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u32>>> {
        let values = self.signature.minhash();
        values.map(|values| PyArray1::from_slice(py, values))
    }

    /// The smallest hashes of the features in ascending order, or `None` unless the kind is
    /// bottom-k.
    #[getter]
    fn bottom_k<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u64>>> {
        let hashes = self.signature.bottom_k();
        hashes.map(|hashes| PyArray1::from_slice(py, hashes))
    }

    /// The number of bits of a MinHash value, or `None` without MinHash.
    #[getter]
    fn value_bits(&self) -> Option<u8> {
        self.signature.value_bits()
    }

    /// The fingerprint, or `None` without SimHash.
    #[getter]
    fn simhash<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(fingerprint) = self.signature.fingerprint() else {
            return Ok(None);
        };
        let integer = py.import("builtins")?.getattr("int")?;
        integer.call1((fingerprint.to_string(), 16)).map(Some)
    }

    /// The number of bits of the fingerprint, or `None` without SimHash.
    #[getter]
    fn simhash_bits(&self) -> Option<u16> {
        self.signature.fingerprint().map(|it| it.bits())
    }

    /// True if the document has no features.
    #[getter]
    fn is_empty(&self) -> bool {
        self.signature.is_empty()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.signature == other.signature
    }

    fn __hash__(&self) -> u64 {
        hash(&self.signature)
    }

    fn __repr__(&self) -> String {
        let mut parts = Vec::new();
        if let Some(values) = self.signature.minhash() {
            let bits = self.signature.value_bits().map_or(0, u32::from);
            parts.push(format!("{} MinHash values of {bits} bits", values.len()));
        }
        if let Some(hashes) = self.signature.bottom_k() {
            parts.push(format!("the {} smallest hashes", hashes.len()));
        }
        if let Some(fingerprint) = self.signature.fingerprint() {
            parts.push(format!("SimHash {fingerprint}"));
        }
        if self.signature.is_empty() {
            parts.push("no features".into());
        }
        format!("<resemblance.Signature: {}>", parts.join(", "))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        let class = slf.get_type();
        if let Some(schema) = &this.schema {
            let parts = (schema.clone_ref(py), this.to_bytes(py)?);
            return (class.getattr("from_bytes")?, parts).into_pyobject(py);
        }
        let of_values = this.signature.minhash().map(<[u32]>::to_vec);
        if let Some(values) = of_values
            && resemblance::Signature::from_minhash(values.clone()) == this.signature
        {
            return (class.getattr("from_minhash")?, (values,)).into_pyobject(py);
        }
        if let (None, None, Some(fingerprint)) = (
            this.signature.minhash(),
            this.signature.bottom_k(),
            this.signature.fingerprint(),
        ) {
            let digits = (fingerprint.to_string(),);
            return (class.getattr("from_simhash")?, digits).into_pyobject(py);
        }
        let text =
            "a signature of bottom-k hashes or of several parts cannot be pickled without a schema";
        Err(PyTypeError::new_err(text))
    }
}

fn parse_digits(digits: &str, bits: Option<u16>) -> Result<Fingerprint, SketchError> {
    match bits {
        Some(bits) => Fingerprint::from_hex(digits, bits),
        None => digits.parse(),
    }
}

/// Reads a fingerprint from an integer, signed or not, or from its hexadecimal digits.
fn read_fingerprint(given: &Bound<'_, PyAny>, bits: Option<u16>) -> PyResult<Fingerprint> {
    let py = given.py();
    if let Ok(digits) = given.extract::<PyBackedStr>() {
        return parse_digits(&digits, bits).or_raise(py);
    }
    let width = bits.unwrap_or(64);
    let index = py.import("operator")?.getattr("index")?;
    let integer = index.call1((given,)).map_err(|_| {
        let expected = "an integer, or its hexadecimal digits";
        not_an_array("fingerprint", given, expected)
    })?;
    // A database may keep the same bits as a signed number.
    let others = integer.call_method0("__invert__")?;
    let other_bits: u64 = others.call_method0("bit_length")?.extract()?;
    let wrapped = match integer.lt(0)? && other_bits < width.into() {
        true => integer.add(1_u8.into_pyobject(py)?.lshift(width)?)?,
        false => integer.clone(),
    };
    let format = format!("0{}x", width / 4);
    let digits: PyBackedStr = wrapped.call_method1("__format__", (format,))?.extract()?;
    match Fingerprint::from_hex(&digits, width) {
        Err(SketchError::InvalidParameter {
            parameter: "fingerprint",
            ..
        }) => {
            let expected = format!("an integer of {width} bits, or of the width that `bits` sets");
            Err(invalid(py, "fingerprint", integer.str()?, expected))
        }
        read => read.or_raise(py),
    }
}

/// Reads fingerprints from a NumPy array, an Arrow column, or an iterable.
fn read_fingerprints(given: &Bound<'_, PyAny>, bits: Option<u16>) -> PyResult<Vec<Fingerprint>> {
    check_unmasked("fingerprints", given)?;
    if bits.is_none_or(|bits| bits == 64) {
        if let Ok(signed) = given.extract::<PyReadonlyArray1<'_, i64>>() {
            return Ok(signed.as_array().iter().map(|it| (*it).into()).collect());
        }
        if let Ok(unsigned) = given.extract::<PyReadonlyArray1<'_, u64>>() {
            return Ok(unsigned.as_array().iter().map(|it| (*it).into()).collect());
        }
    }
    if let Some(columns) = arrow_arrays("fingerprints", given)? {
        let mut all = Vec::new();
        for next in columns {
            let column = next.map_err(arrow_error)?;
            all.extend(column_fingerprints(given.py(), &column, bits)?);
        }
        return Ok(all);
    }
    if given.is_instance_of::<PyUntypedArray>() {
        let kind: String = given.getattr("dtype")?.getattr("kind")?.extract()?;
        if given.getattr("ndim")?.ne(1)? || !"iuUO".contains(&kind) {
            let expected = array_of("one dimension", "uint64");
            return Err(not_an_array("fingerprints", given, &expected));
        }
    }
    let items = several("fingerprints", given)?;
    items.map(|item| read_fingerprint(&item?, bits)).collect()
}

/// Reads a column of 64-bit integers or of hexadecimal digits.
fn column_fingerprints(
    py: Python<'_>,
    column: &ArrayRef,
    bits: Option<u16>,
) -> PyResult<Vec<Fingerprint>> {
    let is_64 = bits.is_none_or(|bits| bits == 64);
    let read: Option<Vec<Fingerprint>> = match column.data_type() {
        DataType::Int64 if is_64 => {
            let numbers = column.as_primitive::<Int64Type>().iter();
            numbers.map(|number| Some(number?.into())).collect()
        }
        DataType::UInt64 if is_64 => {
            let numbers = column.as_primitive::<UInt64Type>().iter();
            numbers.map(|number| Some(number?.into())).collect()
        }
        kind if kind.is_string() || kind.is_null() => {
            let rows = optional_texts(column)?.into_iter();
            let read = rows.map(|row| row.map(|digits| parse_digits(digits, bits)).transpose());
            read.collect::<Result<_, _>>().or_raise(py)?
        }
        other => {
            let found = format!("a column of {other}");
            let expected = "64-bit integers or hexadecimal digits";
            return Err(invalid(py, "fingerprints", found, expected));
        }
    };
    read.ok_or_else(|| invalid(py, "fingerprints", "null", "a fingerprint in each row"))
}

/// Reads the numbers of a sequence. The memory of an array as bytes has other numbers than the array.
fn numbers_of<'py, T: FromPyObjectOwned<'py>>(values: &Bound<'py, PyAny>) -> PyResult<Vec<T>> {
    if values.is_instance_of::<PyBytes>() || values.is_instance_of::<PyByteArray>() {
        return Err(PyTypeError::new_err("bytes are not numbers"));
    }
    values.extract()
}

/// Returns the error for a value of a wrong type, or for an array of a wrong type or shape.
fn not_an_array(parameter: &'static str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let array = value
        .getattr("dtype")
        .and_then(|kind| Ok((kind, value.getattr("shape")?)));
    let found = match array {
        Ok((kind, shape)) => format!("an array of type {kind} and shape {shape}"),
        Err(_) => value.get_type().to_string(),
    };
    invalid(value.py(), parameter, found, expected)
}

/// Refuses an array of NumPy with masked elements: the values behind a mask mean nothing.
pub(crate) fn check_unmasked(parameter: &'static str, array: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = array.py();
    if !array.is_instance_of::<PyUntypedArray>() {
        return Ok(());
    }
    let masked = py.import("numpy")?.getattr("ma")?;
    if masked.call_method1("is_masked", (array,))?.is_truthy()? {
        let expected = "all elements: array.filled(...) or array.compressed() makes such an array";
        return Err(invalid(py, parameter, "masked elements", expected));
    }
    Ok(())
}

fn array_of(dimensions: &str, kind: &str) -> String {
    format!(
        "a NumPy array of {dimensions} and type {kind}: numpy.asarray(..., dtype=numpy.{kind}) makes one"
    )
}

/// Returns the signature of MinHash values, of a schema or of another program.
fn of_values(
    schema: Option<&Bound<'_, Schema>>,
    values: Vec<u32>,
) -> Result<resemblance::Signature, Error> {
    match schema {
        Some(schema) => Ok(schema.get().parts.schema.signature_of_values(values)?),
        None => Ok(resemblance::Signature::from_minhash(values)),
    }
}

pub(crate) fn hash(value: &impl std::hash::Hash) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    // For dictionaries of this process alone.
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

/// Signatures of many documents.
#[pyclass(frozen, sequence, module = "resemblance")]
pub(crate) struct Signatures {
    all: Vec<resemblance::Signature>,
    /// The schema that made them, or `None` if the caller passed the values.
    #[pyo3(get)]
    schema: Option<Py<Schema>>,
    /// The number of MinHash values of each, if no signature shows it.
    columns: Option<usize>,
}

impl Signatures {
    pub(crate) fn new(all: Vec<resemblance::Signature>, schema: Py<Schema>) -> Self {
        let minhash = schema.get().parts.schema.minhash();
        Self {
            all,
            columns: minhash.map(|minhash| minhash.values().into()),
            schema: Some(schema),
        }
    }

    pub(crate) fn all(&self) -> &[resemblance::Signature] {
        &self.all
    }

    fn schema_ref(&self, py: Python<'_>) -> Option<Py<Schema>> {
        self.schema.as_ref().map(|schema| schema.clone_ref(py))
    }
}

#[pymethods]
impl Signatures {
    /// Makes signatures from the rows of an array of MinHash values of type uint32. Values of a
    /// schema, such as `Signatures.minhash` returns, require that schema: see
    /// `Signature.from_minhash`.
    #[classmethod]
    #[pyo3(signature = (values, *, schema=None))]
    fn from_minhash(
        class: &Bound<'_, PyType>,
        values: &Bound<'_, PyAny>,
        schema: Option<&Bound<'_, Schema>>,
    ) -> PyResult<Self> {
        check_unmasked("values", values)?;
        let values: PyReadonlyArray2<'_, u32> = values
            .extract()
            .map_err(|_| not_an_array("values", values, &array_of("two dimensions", "uint32")))?;
        let made = |row: ArrayView1<'_, u32>| of_values(schema, row.to_vec());
        let rows = values.as_array();
        let all = rows.rows().into_iter().map(made);
        Ok(Self {
            all: all.collect::<Result<_, _>>().or_raise(class.py())?,
            schema: schema.map(|schema| schema.clone().unbind()),
            columns: Some(rows.ncols()),
        })
    }

    /// Makes signatures from fingerprints: an array or a column of 64-bit integers, signed or not, or
    /// anything that `Signature.from_simhash` accepts, in a column of strings or an iterable.
    #[classmethod]
    #[pyo3(signature = (fingerprints, bits=None))]
    fn from_simhash(
        _class: &Bound<'_, PyType>,
        fingerprints: &Bound<'_, PyAny>,
        bits: Option<u16>,
    ) -> PyResult<Self> {
        let read = read_fingerprints(fingerprints, bits)?.into_iter();
        Ok(Self {
            all: read.map(resemblance::Signature::from_fingerprint).collect(),
            schema: None,
            columns: None,
        })
    }

    /// Makes signatures from the bytes that `to_bytes` returned, by a schema.
    #[classmethod]
    fn from_bytes(
        class: &Bound<'_, PyType>,
        schema: &Bound<'_, Schema>,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let codec = &schema.get().parts.codec;
        let mut all = Vec::new();
        for next in several("rows", rows)? {
            let row = next?;
            let bytes: &[u8] = row.extract().map_err(|_| {
                let expected = "bytes, as to_bytes() of signatures returns them";
                not_an_array("rows", &row, expected)
            })?;
            all.push(codec.decode(bytes).or_raise(class.py())?);
        }
        Ok(Self::new(all, schema.clone().unbind()))
    }

    /// Returns each signature as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Some(schema) = &self.schema else {
            let found = "ones without a schema";
            return Err(invalid(py, "signatures", found, "those of a schema"));
        };
        let codec = &schema.get().parts.codec;
        let encode = |signature| codec.encode(signature);
        let rows: Vec<_> = released(py, || self.all.iter().map(encode).collect())?;
        PyList::new(py, rows.iter().map(|row| PyBytes::new(py, row)))
    }

    /// The MinHash values, one row for each signature, or `None` without MinHash.
    #[getter]
    fn minhash<'py>(&self, py: Python<'py>) -> PyResult<Option<Values<'py>>> {
        let columns = match self.all.first() {
            Some(first) => first.minhash().map(<[u32]>::len),
            None => self.columns,
        };
        let Some(columns) = columns else {
            return Ok(None);
        };
        let mut values = Vec::with_capacity(columns * self.all.len());
        for signature in &self.all {
            match signature.minhash() {
                Some(row) if row.len() == columns => values.extend_from_slice(row),
                _ => return Err(invalid(py, "signatures", "rows that differ", "one length")),
            }
        }
        PyArray1::from_vec(py, values)
            .reshape([self.all.len(), columns])
            .map(Some)
    }

    /// The SimHash fingerprints of 64 bits, or `None` without SimHash.
    #[getter]
    fn simhash<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<u64>>>> {
        let has_fingerprints = match (self.all.first(), &self.schema) {
            (Some(first), _) => first.fingerprint().is_some(),
            (None, Some(schema)) => schema.get().parts.schema.simhash().is_some(),
            (None, None) => self.columns.is_none(),
        };
        if !has_fingerprints {
            return Ok(None);
        }
        let mut fingerprints = Vec::with_capacity(self.all.len());
        for signature in &self.all {
            let bits = signature.fingerprint().map(|it| it.bits());
            let short = signature.simhash().map(u64::try_from);
            match (bits, short) {
                (Some(64), Some(Ok(short))) => fingerprints.push(short),
                _ => return Err(invalid(py, "signatures", "other fingerprints", "64 bits")),
            }
        }
        Ok(Some(PyArray1::from_vec(py, fingerprints)))
    }

    fn __len__(&self) -> usize {
        self.all.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        if let Ok(slice) = index.cast::<PySlice>() {
            let indices = slice.indices(self.all.len().try_into()?)?;
            let places = (0..).map(|step| indices.start + step * indices.step);
            let picked = places
                .take(indices.slicelength)
                .filter_map(|place| self.all.get(usize::try_from(place).ok()?).cloned())
                .collect();
            let picked = Self {
                all: picked,
                schema: self.schema_ref(py),
                columns: self.columns,
            };
            return Ok(Bound::new(py, picked)?.into_any());
        }
        let signature = Signature {
            signature: at(&self.all, index.extract()?, "signature")?.clone(),
            schema: self.schema_ref(py),
        };
        Ok(Bound::new(py, signature)?.into_any())
    }

    /// Returns the MinHash values, or the fingerprints without MinHash.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = copy;
        let array = match self.minhash(py)? {
            Some(values) => values.into_any(),
            None => match self.simhash(py)? {
                Some(fingerprints) => fingerprints.into_any(),
                None => PyArray1::from_vec(py, Vec::<u32>::new()).into_any(),
            },
        };
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.all == other.all
    }

    fn __repr__(&self) -> String {
        format!("<resemblance.Signatures: {}>", self.all.len())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this, class) = (slf.py(), slf.get(), slf.get_type());
        if let Some(schema) = &this.schema {
            let parts = (schema.clone_ref(py), this.to_bytes(py)?);
            return (class.getattr("from_bytes")?, parts).into_pyobject(py);
        }
        if let Some(values) = this.minhash(py)? {
            return (class.getattr("from_minhash")?, (values,)).into_pyobject(py);
        }
        if let Ok(Some(fingerprints)) = this.simhash(py) {
            return (class.getattr("from_simhash")?, (fingerprints,)).into_pyobject(py);
        }
        let digits =
            |signature: &resemblance::Signature| Some(signature.fingerprint()?.to_string());
        if let Some(wide) = this.all.iter().map(digits).collect::<Option<Vec<_>>>() {
            return (class.getattr("from_simhash")?, (wide,)).into_pyobject(py);
        }
        Err(PyTypeError::new_err(
            "signatures of bottom-k hashes or of several parts cannot be pickled without a schema",
        ))
    }
}
