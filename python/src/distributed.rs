//! Steps of a job on many machines, with Arrow columns as input and output. Each result depends
//! only on its own rows, so an engine may divide the work freely.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, Int64Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrowPrimitiveType, BooleanArray, Float64Array, Int32Array, Int64Array, PrimitiveArray,
    StringArray,
};
use pyo3::prelude::*;
use pyo3_arrow::PyArray;
use resemblance::distributed::PairScore;
use resemblance::exact::jaccard_of_sorted;
use resemblance::{Error, Signature, key_text};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::batches::{binaries, in_shares, optional_texts, threads_or_all};
use crate::errors::{OrRaise, invalid};
use crate::joins::bounds;
use crate::schema::{Schema, SchemaParts};
use crate::vectors::optional_vectors;
use crate::waiting::{lock, released};

/// The number of pairs of buckets that are returned at once.
const PAIRS_TOGETHER: usize = 1 << 16;

/// The rule that decides which documents are compared, and which of them are pairs: the bounds of a
/// join.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct PairRule {
    parts: Arc<SchemaParts>,
    rule: resemblance::distributed::PairRule,
}

/// A document of a batch as it is sketched.
struct SketchedRow {
    digest: u128,
    class: u128,
    is_empty: bool,
    signature: Vec<u8>,
    codes: Vec<u64>,
}

/// Two documents of a batch, by their positions in it, and whether they share the bucket of a band.
#[derive(Clone, Copy)]
struct PairRow {
    a: usize,
    b: usize,
    shares_band: bool,
}

#[pymethods]
impl PairRule {
    #[new]
    #[pyo3(signature = (schema, *, threshold=None, max_distance=None, by=None,
        accept_lower_recall=false))]
    fn create(
        py: Python<'_>,
        schema: &Bound<'_, Schema>,
        threshold: Option<f64>,
        max_distance: Option<u32>,
        by: Option<&str>,
        accept_lower_recall: bool,
    ) -> PyResult<Self> {
        let bounds = bounds(py, threshold, max_distance, by, accept_lower_recall, None)?;
        let parts = &schema.get().parts;
        Ok(Self {
            parts: Arc::clone(parts),
            rule: parts.codec.pair_rule(bounds).or_raise(py)?,
        })
    }

    /// Returns the number of lanes to look up, and how many of them, beginning with the first, are
    /// bands.
    #[getter]
    fn lanes(&self) -> (usize, usize) {
        let lanes = self.rule.lanes();
        let bands = self.rule.bands().saturating_sub(lanes.start);
        (lanes.len(), bands.min(lanes.len()))
    }

    /// Makes the signatures of a column of texts or, with a schema of vectors, of lists of numbers.
    /// Returns columns `digest_high`, `digest_low`, `class_high`, `class_low`, `is_empty`,
    /// `signature` and `codes`, which are null where a document is. `exact` distinguishes texts
    /// that differ although their signatures are equal.
    #[pyo3(signature = (documents, *, exact, threads=None))]
    fn sketch_batch(
        &self,
        py: Python<'_>,
        documents: PyArray,
        exact: bool,
        threads: Option<usize>,
    ) -> PyResult<Vec<PyArray>> {
        let threads = threads_or_all(py, threads)?;
        let rows = match self.parts.schema.vector() {
            Some(_) => {
                let vectors = optional_vectors(documents.array())?;
                released(py, || {
                    sketched_rows(&vectors, threads, |vector| self.sketch_vector(vector))
                })?
            }
            None => {
                let texts = optional_texts(documents.array())?;
                released(py, || {
                    sketched_rows(&texts, threads, |text| self.sketch(text, exact))
                })?
            }
        };
        Ok(sketched_columns(&rows))
    }

    /// Compares signatures, as `sketch_batch` returns them, by their estimates. `a` and `b` are positions
    /// in the column. Returns columns `is_pair`, `similarity` and `distance`.
    fn compare_batch(
        &self,
        py: Python<'_>,
        signatures: PyArray,
        a: PyArray,
        b: PyArray,
        shares_band: PyArray,
    ) -> PyResult<Vec<PyArray>> {
        let rows = binaries(py, "signatures", signatures.array())?;
        let pairs = pair_rows(py, rows.len(), &a, &b, &shares_band)?;
        let scores = released(py, || {
            let decoded = rows.iter().map(|row| self.parts.codec.decode(row));
            let signatures = decoded.collect::<Result<Vec<_>, Error>>()?;
            self.scores(&signatures, &pairs, |_, _| None)
        })?;
        Ok(score_columns(&scores))
    }

    /// Compares texts by the exact similarity of their features, as `compare_batch` does.
    #[pyo3(signature = (texts, a, b, shares_band, *, threads=None))]
    fn exact_batch(
        &self,
        py: Python<'_>,
        texts: PyArray,
        a: PyArray,
        b: PyArray,
        shares_band: PyArray,
        threads: Option<usize>,
    ) -> PyResult<Vec<PyArray>> {
        let texts = crate::batches::texts(py, texts.array())?;
        let pairs = pair_rows(py, texts.len(), &a, &b, &shares_band)?;
        let threads = threads_or_all(py, threads)?;
        let scores = released(py, || {
            let sketched = in_shares(&texts, threads, |texts| {
                let sketch = |text: &&str| {
                    let taken = self.parts.taken(text)?;
                    Ok(self.parts.sketcher.text_and_feature_hashes(&taken)?)
                };
                texts.iter().map(sketch).collect()
            })?;
            let (signatures, features): (Vec<_>, Vec<_>) = sketched.into_iter().unzip();
            let exact = |a: usize, b: usize| {
                let (a, b) = features.get(a).zip(features.get(b))?;
                Some(jaccard_of_sorted(a, b))
            };
            self.scores(&signatures, &pairs, exact)
        })?;
        Ok(score_columns(&scores))
    }
}

impl PairRule {
    fn sketch(&self, text: &str, exact: bool) -> Result<SketchedRow, Error> {
        let taken = self.parts.taken(text)?;
        let (signature, features) = match exact {
            true => self.parts.sketcher.text_and_feature_hashes(&taken)?,
            false => (self.parts.sketcher.text(&taken)?, Vec::new()),
        };
        self.sketched(&signature, &features)
    }

    fn sketch_vector(&self, vector: &[f32]) -> Result<SketchedRow, Error> {
        self.sketched(&self.parts.sketcher.vector(vector)?, &[])
    }

    fn sketched(&self, signature: &Signature, features: &[u64]) -> Result<SketchedRow, Error> {
        let digest = signature.digest();
        let mut class = digest.to_le_bytes().to_vec();
        class.extend(features.iter().flat_map(|feature| feature.to_le_bytes()));
        let codes = self.parts.codec.bucket_codes(signature)?;
        let asked = codes.get(self.rule.lanes());
        Ok(SketchedRow {
            digest,
            class: xxh3_128(&class),
            is_empty: signature.is_empty(),
            signature: self.parts.codec.encode(signature)?,
            // A document that is not indexed has no codes at all.
            codes: asked.map_or(Vec::new(), <[u64]>::to_vec),
        })
    }

    fn scores(
        &self,
        signatures: &[Signature],
        pairs: &[PairRow],
        exact: impl Fn(usize, usize) -> Option<f64>,
    ) -> Result<Vec<PairScore>, Error> {
        let score = |pair: &PairRow| {
            let (a, b) = signatures.get(pair.a).zip(signatures.get(pair.b))?;
            let exact = exact(pair.a, pair.b);
            Some(self.rule.compare(a, b, exact, pair.shares_band))
        };
        // Positions were checked.
        pairs.iter().filter_map(score).collect()
    }
}

/// Sketches the documents that are not null.
fn sketched_rows<T: AsRef<D> + Sync, D: ?Sized>(
    documents: &[Option<T>],
    threads: usize,
    sketch: impl Fn(&D) -> Result<SketchedRow, Error> + Sync,
) -> Result<Vec<Option<SketchedRow>>, Error> {
    in_shares(documents, threads, |documents| {
        let sketched = documents
            .iter()
            .map(|one| one.as_ref().map(|one| sketch(one.as_ref())).transpose());
        sketched.collect()
    })
}

fn py_array(array: impl Array + 'static) -> PyArray {
    PyArray::from_array_ref(Arc::new(array))
}

/// Splits a 128-bit number into two signed halves, because Spark and Parquet have only signed
/// numbers.
fn halves(number: u128) -> (i64, i64) {
    let (high, low) = ((number >> 64) as u64, number as u64);
    (high.cast_signed(), low.cast_signed())
}

fn sketched_columns(rows: &[Option<SketchedRow>]) -> Vec<PyArray> {
    let longs = |value: fn(&SketchedRow) -> i64| {
        let values = rows.iter().map(|row| row.as_ref().map(value));
        py_array(values.collect::<Int64Array>())
    };
    let mut signatures = BinaryBuilder::new();
    let mut are_empty = BooleanBuilder::new();
    let mut codes = ListBuilder::new(Int64Builder::new());
    for row in rows {
        signatures.append_option(row.as_ref().map(|row| &row.signature));
        are_empty.append_option(row.as_ref().map(|row| row.is_empty));
        let own = row.iter().flat_map(|row| &row.codes);
        own.for_each(|code| codes.values().append_value(code.cast_signed()));
        codes.append(row.is_some());
    }
    vec![
        longs(|row| halves(row.digest).0),
        longs(|row| halves(row.digest).1),
        longs(|row| halves(row.class).0),
        longs(|row| halves(row.class).1),
        py_array(are_empty.finish()),
        py_array(signatures.finish()),
        py_array(codes.finish()),
    ]
}

fn score_columns(scores: &[PairScore]) -> Vec<PyArray> {
    let is_pair = scores.iter().map(|score| Some(score.is_pair));
    let similarity = scores.iter().map(|score| score.similarity);
    // A fingerprint has 256 bits at most.
    let distance = scores.iter().map(|score| score.distance.map(|d| d as i32));
    vec![
        py_array(is_pair.collect::<BooleanArray>()),
        py_array(similarity.collect::<Float64Array>()),
        py_array(distance.collect::<Int32Array>()),
    ]
}

/// A column of numbers.
fn column<'a, T: ArrowPrimitiveType>(
    py: Python<'_>,
    name: &'static str,
    array: &'a PyArray,
) -> PyResult<&'a PrimitiveArray<T>> {
    array.array().as_primitive_opt::<T>().ok_or_else(|| {
        let expected = format!("{} numbers", T::DATA_TYPE);
        invalid(py, name, array.array().data_type(), expected)
    })
}

/// The numbers of a column without nulls.
fn numbers<T: ArrowPrimitiveType>(
    py: Python<'_>,
    name: &'static str,
    array: &PyArray,
) -> PyResult<Vec<T::Native>> {
    match column::<T>(py, name, array)? {
        numbers if numbers.null_count() == 0 => Ok(numbers.values().to_vec()),
        _ => Err(invalid(py, name, "nulls", "numbers without nulls")),
    }
}

fn longs(py: Python<'_>, name: &'static str, array: &PyArray) -> PyResult<Vec<i64>> {
    numbers::<Int64Type>(py, name, array)
}

fn booleans(py: Python<'_>, name: &'static str, array: &PyArray) -> PyResult<Vec<bool>> {
    let values = array.array().as_boolean_opt();
    let values: Option<Vec<bool>> = values.and_then(|values| values.iter().collect());
    let found = array.array().data_type();
    values.ok_or_else(|| invalid(py, name, found, "booleans without nulls"))
}

fn pair_rows(
    py: Python<'_>,
    documents: usize,
    a: &PyArray,
    b: &PyArray,
    shares_band: &PyArray,
) -> PyResult<Vec<PairRow>> {
    let (a, b) = (longs(py, "a", a)?, longs(py, "b", b)?);
    let shares_band = booleans(py, "shares_band", shares_band)?;
    if a.len() != b.len() || a.len() != shares_band.len() {
        let found = format!("{}, {} and {} rows", a.len(), b.len(), shares_band.len());
        return Err(invalid(py, "pairs", found, "columns of one length"));
    }
    let position = |position: i64| match usize::try_from(position) {
        Ok(place) if place < documents => Ok(place),
        _ => {
            let expected = format!("0 to {documents}, without the end");
            Err(invalid(py, "pairs", position, expected))
        }
    };
    let row = |((a, b), shares_band)| {
        Ok(PairRow {
            a: position(a)?,
            b: position(b)?,
            shares_band,
        })
    };
    a.into_iter().zip(b).zip(shares_band).map(row).collect()
}

/// Iterates over the pairs to compare in buckets, whose postings are sorted by lane, code and
/// document. Each document is compared with those before it, but in a bucket of more than
/// `max_bucket` only with the first ones. Memory holds the documents of one bucket with which
/// others are compared, 8 bytes each.
#[pyclass(module = "resemblance")]
pub(crate) struct BucketPairs {
    state: Mutex<BucketState>,
}

struct BucketState {
    max_bucket: usize,
    postings: Vec<BucketPosting>,
    /// The next posting to compare.
    next_posting: usize,
    /// The next member to compare it with.
    next_member: usize,
    bucket: Option<Bucket>,
    members: Vec<i64>,
}

/// The bucket of a lane and a code.
#[derive(Clone, Copy, PartialEq)]
struct Bucket {
    lane: i32,
    code: i64,
}

/// A document in a bucket.
#[derive(Clone, Copy)]
struct BucketPosting {
    bucket: Bucket,
    document: i64,
}

/// Columns of pairs in buckets. A document that was compared only with the first ones of a bucket
/// has a row without `a`.
#[derive(Default)]
struct BucketColumns {
    lane: Vec<i32>,
    code: Vec<i64>,
    a: Vec<Option<i64>>,
    b: Vec<i64>,
}

#[pymethods]
impl BucketPairs {
    #[new]
    #[pyo3(signature = (*, max_bucket=None))]
    fn create(max_bucket: Option<usize>) -> Self {
        let state = Mutex::new(BucketState {
            max_bucket: max_bucket.map_or(usize::MAX, |most| most),
            postings: Vec::new(),
            next_posting: 0,
            next_member: 0,
            bucket: None,
            members: Vec::new(),
        });
        Self { state }
    }

    /// Adds the next postings. The pairs of the previous ones must have been read.
    fn push(
        &self,
        py: Python<'_>,
        lane: PyArray,
        code: PyArray,
        document: PyArray,
    ) -> PyResult<()> {
        let lanes = numbers::<Int32Type>(py, "lane", &lane)?;
        let (codes, documents) = (longs(py, "code", &code)?, longs(py, "document", &document)?);
        let rows = lanes.into_iter().zip(codes).zip(documents);
        let postings = rows.map(|((lane, code), document)| BucketPosting {
            bucket: Bucket { lane, code },
            document,
        });
        let mut state = lock(&self.state);
        state.postings = postings.collect();
        (state.next_posting, state.next_member) = (0, 0);
        Ok(())
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// The next pairs: columns `lane`, `code`, `a` and `b`.
    fn __next__(&self, py: Python<'_>) -> Option<Vec<PyArray>> {
        let found = py.detach(|| lock(&self.state).next_pairs());
        if found.b.is_empty() {
            return None;
        }
        Some(vec![
            py_array(Int32Array::from(found.lane)),
            py_array(Int64Array::from(found.code)),
            py_array(Int64Array::from(found.a)),
            py_array(Int64Array::from(found.b)),
        ])
    }
}

impl BucketState {
    fn next_pairs(&mut self) -> BucketColumns {
        let mut found = BucketColumns::default();
        while found.b.len() < PAIRS_TOGETHER
            && let Some(posting) = self.postings.get(self.next_posting)
        {
            let BucketPosting { bucket, document } = *posting;
            if self.bucket != Some(bucket) {
                self.bucket = Some(bucket);
                self.members.clear();
            }
            let mut push = |a| {
                found.lane.push(bucket.lane);
                found.code.push(bucket.code);
                found.a.push(a);
                found.b.push(document);
            };
            if let Some(member) = self.members.get(self.next_member) {
                push(Some(*member));
                self.next_member += 1;
                continue;
            }
            if self.members.len() < self.max_bucket {
                self.members.push(document);
            } else {
                push(None);
            }
            (self.next_posting, self.next_member) = (self.next_posting + 1, 0);
        }
        found
    }
}

/// Connected components of links, in memory. They take at least 16 bytes for each document.
#[pyclass(module = "resemblance")]
#[derive(Default)]
pub(crate) struct Components {
    parents: Mutex<HashMap<i64, i64>>,
}

/// Returns the smallest document that is known to be linked with a document.
fn root_of(parents: &mut HashMap<i64, i64>, document: i64) -> i64 {
    let mut root = document;
    while let Some(parent) = parents.get(&root).filter(|parent| **parent != root) {
        root = *parent;
    }
    let mut next = document;
    while next != root {
        match parents.insert(next, root) {
            Some(parent) => next = parent,
            None => break,
        }
    }
    root
}

#[pymethods]
impl Components {
    #[new]
    fn create() -> Self {
        Self::default()
    }

    /// Links the documents of two columns, row by row.
    fn push(&self, py: Python<'_>, a: PyArray, b: PyArray) -> PyResult<()> {
        let (a, b) = (longs(py, "a", &a)?, longs(py, "b", &b)?);
        py.detach(|| {
            let mut parents = lock(&self.parents);
            for (a, b) in a.into_iter().zip(b) {
                let roots = (root_of(&mut parents, a), root_of(&mut parents, b));
                let (least, other) = (roots.0.min(roots.1), roots.0.max(roots.1));
                parents.insert(other, least);
                parents.insert(least, least);
            }
        });
        Ok(())
    }

    /// Returns every linked document in ascending order, and the smallest document of its
    /// component: columns `document` and `first`.
    fn finish(&self, py: Python<'_>) -> Vec<PyArray> {
        let (documents, firsts) = py.detach(|| {
            let mut parents = lock(&self.parents);
            let mut documents: Vec<i64> = parents.keys().copied().collect();
            documents.sort_unstable();
            let firsts = documents.iter().map(|d| root_of(&mut parents, *d));
            let firsts: Vec<i64> = firsts.collect();
            (documents, firsts)
        });
        vec![
            py_array(Int64Array::from(documents)),
            py_array(Int64Array::from(firsts)),
        ]
    }
}

/// Finds the documents to remove from whole components: a document is removed if it is near a kept
/// one that was decided before. Takes 16 bytes of memory for each removed document.
#[pyclass(module = "resemblance")]
#[derive(Default)]
pub(crate) struct FirstKept {
    gone: Mutex<HashSet<i64>>,
}

#[pymethods]
impl FirstKept {
    #[new]
    fn create() -> Self {
        Self::default()
    }

    /// Adds pairs, of which `a` is decided before `b`, in the order in which `b` is decided.
    /// Returns the documents to remove, each once.
    fn push(&self, py: Python<'_>, a: PyArray, b: PyArray) -> PyResult<PyArray> {
        let (a, b) = (longs(py, "a", &a)?, longs(py, "b", &b)?);
        if let Some((twice, _)) = a.iter().zip(&b).find(|(a, b)| a == b) {
            return Err(invalid(
                py,
                "pairs",
                format!("{twice} twice"),
                "two documents",
            ));
        }
        let found: Vec<i64> = py.detach(|| {
            let mut gone = lock(&self.gone);
            let pairs = a.into_iter().zip(b);
            let removed = pairs.filter(|(a, b)| !gone.contains(a) && gone.insert(*b));
            removed.map(|(_, b)| b).collect()
        });
        Ok(py_array(Int64Array::from(found)))
    }
}

/// Returns the shard of each key: the XXH3 hash of its bytes (64 bits, seed 0) modulo the number of
/// shards.
#[pyfunction]
pub(crate) fn shard_numbers(py: Python<'_>, keys: PyArray, shards: u32) -> PyResult<PyArray> {
    if shards == 0 || i32::try_from(shards).is_err() {
        return Err(invalid(py, "shards", shards, "1 to 2^31, without the end"));
    }
    let keys = binaries(py, "keys", keys.array())?;
    // Less than 2^31.
    let number = |key: &&[u8]| (xxh3_64(key) % u64::from(shards)) as i32;
    Ok(py_array(keys.iter().map(number).collect::<Int32Array>()))
}

/// Formats rows of a table as the command-line tool prints them: two keys, then a similarity and a
/// distance if there are columns for them.
#[pyfunction]
#[pyo3(signature = (a, b, similarity=None, distance=None))]
pub(crate) fn table_lines(
    py: Python<'_>,
    a: PyArray,
    b: PyArray,
    similarity: Option<PyArray>,
    distance: Option<PyArray>,
) -> PyResult<PyArray> {
    let (a, b) = (binaries(py, "a", a.array())?, binaries(py, "b", b.array())?);
    let similarities = similarity
        .as_ref()
        .map(|it| column::<Float64Type>(py, "similarity", it));
    let distances = distance
        .as_ref()
        .map(|it| column::<Int32Type>(py, "distance", it));
    let (similarities, distances) = (similarities.transpose()?, distances.transpose()?);
    let lines = a.iter().zip(&b).enumerate().map(|(row, (a, b))| {
        let mut line = format!("{}\t{}", key_text(a), key_text(b));
        if let Some(column) = similarities {
            line.push('\t');
            if column.is_valid(row) {
                line += &format!("{:.6}", column.value(row));
            }
        }
        if let Some(column) = distances {
            line.push('\t');
            if column.is_valid(row) {
                line += &column.value(row).to_string();
            }
        }
        Some(line)
    });
    Ok(py_array(lines.collect::<StringArray>()))
}
