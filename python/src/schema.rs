//! Schemas.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyTuple, PyType};
use resemblance::distributed::Codec;
use resemblance::schema::{
    ClusterBounds, EmptyDocuments, Language, Linkage, MinHashKind, MinHashSchema, Permutations,
    ShingleUnit,
};
use resemblance::{Bounds, Combine, Error, SimHash, Sketcher};
use resemblance_corpus::HtmlExtractor;
use resemblance_corpus::dedup::DropRule;

use crate::answers::{CertaintyTuple, Match, certainty_tuple};
use crate::batches::{Batches, in_shares, sketch, threads_or_all};
use crate::errors::{OrRaise, invalid, invalid_parameter};
use crate::keys::{Key, features_of, several};
use crate::python::{choice, given, number, object, optional_number};
use crate::signature::{Signature, Signatures};
use crate::vectors::VectorFields;
use crate::waiting::released;

/// The rules by which texts become signatures, and by which these are indexed and compared.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Schema {
    pub(crate) parts: Arc<SchemaParts>,
}

/// A schema, and the values that are computed from it once.
pub(crate) struct SchemaParts {
    pub(crate) schema: resemblance::Schema,
    pub(crate) sketcher: Sketcher,
    pub(crate) codec: Codec,
    /// The extractor of texts from HTML, if documents are HTML.
    html: Option<HtmlExtractor>,
}

/// The number of sets of features that are sketched at once.
const SETS_TOGETHER: usize = 1_024;

/// The hash of a feature, `str` or `bytes`.
fn feature_hash_of(feature: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(text) = feature.extract::<&str>() {
        return Ok(resemblance::schema::feature_hash(text.as_bytes()));
    }
    Ok(resemblance::schema::feature_hash(
        &feature.extract::<Key>()?.0,
    ))
}

impl SchemaParts {
    /// Returns the text of a document. For HTML, it is the text that a reader sees.
    ///
    /// # Errors
    /// `InvalidParameter` if the schema requires another release for extracting text from HTML.
    pub(crate) fn taken<'t>(&self, document: &'t str) -> Result<Cow<'t, str>, Error> {
        let Some(html) = self.html else {
            return Ok(Cow::Borrowed(document));
        };
        let refused = |found: String| invalid_parameter("schema", found, "one of this release");
        html.must_be_here()
            .map_err(|error| refused(error.to_string()))?;
        let text = html
            .text(document)
            .map_err(|bad| refused(bad.to_string()))?;
        Ok(Cow::Owned(text))
    }

    /// Refuses a schema for HTML in calls that return positions in a text.
    pub(crate) fn must_be_plain(&self) -> Result<(), Error> {
        match self.html {
            Some(_) => Err(invalid_parameter(
                "schema",
                "one of HTML",
                "one of texts as they are",
            )),
            None => Ok(()),
        }
    }

    /// Checks that a signature can be compared with those of the schema. For a signature without a
    /// schema, it is unknown whether its values were cut before.
    ///
    /// # Errors
    /// `SignatureMismatch` for values without a schema, if this schema mixes and cuts its values.
    pub(crate) fn check(&self, signature: &resemblance::Signature) -> Result<(), Error> {
        let is_cut = |minhash: MinHashSchema| {
            minhash.kind() != MinHashKind::External && minhash.value_bits() < 32
        };
        let is_bare = signature.recipe_mark().is_none() && signature.value_bits() == Some(32);
        if !is_bare || !self.schema.minhash().is_some_and(is_cut) {
            return Ok(());
        }
        Err(Error::SignatureMismatch {
            part: "MinHash values",
            found: "values without a schema".into(),
            expected: "those of this schema: from_minhash(values, schema=...), or a schema of kind=\"external\"".into(),
        })
    }
}

impl Schema {
    pub(crate) fn new(py: Python<'_>, schema: resemblance::Schema) -> PyResult<Self> {
        let (sketcher, codec) = (schema.sketcher(), Codec::new(&schema).or_raise(py)?);
        let parts = Arc::new(SchemaParts {
            html: HtmlExtractor::of(&schema),
            schema,
            sketcher,
            codec,
        });
        Ok(Self { parts })
    }
}

/// The fields of a part of a schema, such as `resemblance.Text`.
pub(crate) struct Part<T>(pub(crate) T);

impl<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>> FromPyObject<'a, 'py> for Part<T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        value.extract().map(Self).map_err(|error: PyErr| {
            let found = value.get_type().name();
            match found {
                // Another object lacks a field.
                Ok(found) if error.is_instance_of::<PyAttributeError>(value.py()) => {
                    let expected = "such as Text.words(5) or MinHash(128)";
                    PyTypeError::new_err(format!(
                        "found {found}, expected a part of a schema, {expected}"
                    ))
                }
                _ => error,
            }
        })
    }
}

/// The fields of `resemblance.Text`.
#[derive(FromPyObject)]
pub(crate) struct TextFields {
    unit: String,
    length: i64,
    nfkc: bool,
    keep_case: bool,
    strip_accents: bool,
    remove_spaces: bool,
    unordered: bool,
    stop_words: Option<String>,
    stem: Option<String>,
}

/// The fields of `resemblance.MinHash`.
#[derive(FromPyObject)]
struct MinHashFields {
    values: i64,
    kind: String,
    threshold: Option<f64>,
    recall: Option<f64>,
    bands: Option<i64>,
    rows: Option<i64>,
    value_bits: Option<i64>,
    code_bits: Option<i64>,
    permutations: Option<String>,
}

/// A constructor of a MinHash of one kind.
type KindOfMinHash = fn(u16) -> resemblance::MinHash;

/// The fields of `resemblance.SimHash`.
#[derive(FromPyObject)]
struct SimHashFields {
    bits: i64,
    max_distance: Option<i64>,
    tables: Option<Vec<(u8, u8)>>,
    external: bool,
    term_counts: bool,
}

/// The fields of `resemblance.Containment`.
#[derive(FromPyObject)]
struct ContainmentFields {
    shingle: i64,
    window: Option<i64>,
    scaled: Option<i64>,
    positions: bool,
}

impl ContainmentFields {
    fn build(&self, py: Python<'_>) -> PyResult<resemblance::Containment> {
        let shingle = number(py, "shingle", self.shingle)?;
        let containment = resemblance::Containment::new(shingle).positions(self.positions);
        Ok(match (self.window, self.scaled) {
            (None, None) => containment,
            (Some(window), None) => containment.window(number(py, "window", window)?),
            (None, Some(scale)) => containment.scaled(number(py, "scaled", scale)?),
            (Some(_), Some(_)) => {
                return Err(invalid(py, "scaled", "a window as well", "one of them"));
            }
        })
    }
}

const UNITS: [(&str, ShingleUnit); 4] = [
    ("auto", ShingleUnit::Auto),
    ("words", ShingleUnit::Words),
    ("characters", ShingleUnit::Characters),
    ("code", ShingleUnit::CodeTokens),
];
const PERMUTATIONS: [(&str, Permutations); 5] = [
    ("pair-multiply", Permutations::PairMultiply),
    ("multiply-shift", Permutations::MultiplyShift),
    ("modular", Permutations::Modular),
    ("tabulation", Permutations::Tabulation),
    ("jenkins", Permutations::Jenkins),
];
const NEAR: [(&str, Combine); 2] = [("any", Combine::Any), ("both", Combine::Both)];
const LINKAGES: [(&str, Linkage); 3] = [
    ("single", Linkage::Single),
    ("star", Linkage::Star),
    ("complete", Linkage::Complete),
];
const EMPTY: [(&str, EmptyDocuments); 2] = [
    ("distinct", EmptyDocuments::Distinct),
    ("alike", EmptyDocuments::Alike),
];

pub(crate) fn name_of<T: PartialEq>(
    choices: &[(&'static str, T)],
    value: &T,
) -> Option<&'static str> {
    choices
        .iter()
        .find(|(_, known)| known == value)
        .map(|(name, _)| *name)
}

fn language(
    py: Python<'_>,
    parameter: &'static str,
    code: Option<&str>,
) -> PyResult<Option<Language>> {
    let read = |code: &str| {
        let known = Language::ALL.map(Language::code).join(", ");
        let wrong = |_| invalid(py, parameter, code, format!("one of {known}"));
        code.parse().map_err(wrong)
    };
    code.map(read).transpose()
}

impl TextFields {
    pub(crate) fn build(&self, py: Python<'_>) -> PyResult<resemblance::Text> {
        let length = number(py, "length", self.length)?;
        let text = match choice(py, "unit", &self.unit, &UNITS)? {
            ShingleUnit::Auto => resemblance::Text::auto().with_length(length),
            ShingleUnit::Words => resemblance::Text::words(length),
            ShingleUnit::Characters => resemblance::Text::characters(length),
            _ => resemblance::Text::code(length),
        };
        let stop_words = language(py, "stop_words", self.stop_words.as_deref())?;
        let stem = language(py, "stem", self.stem.as_deref())?;
        Ok(given!(text, stop_words, stem;
            nfkc if self.nfkc,
            keep_case if self.keep_case,
            strip_accents if self.strip_accents,
            remove_spaces if self.remove_spaces,
            unordered if self.unordered))
    }
}

impl MinHashFields {
    fn build(&self, py: Python<'_>) -> PyResult<resemblance::MinHash> {
        let values = number(py, "values", self.values)?;
        let kinds: [(&str, KindOfMinHash); 6] = [
            ("functions", resemblance::MinHash::new),
            ("one-pass", resemblance::MinHash::one_pass),
            ("bottom-k", resemblance::MinHash::bottom_k),
            ("weighted", resemblance::MinHash::weighted),
            ("external", resemblance::MinHash::external),
            ("probability", resemblance::MinHash::probability),
        ];
        let code = self.permutations.as_deref();
        let permutations = code.map(|code| choice(py, "permutations", code, &PERMUTATIONS));
        let minhash = given!(
            choice(py, "kind", &self.kind, &kinds)?(values),
            threshold: self.threshold,
            recall: self.recall,
            value_bits: optional_number(py, "value_bits", self.value_bits)?,
            code_bits: optional_number(py, "code_bits", self.code_bits)?,
            permutations: permutations.transpose()?
        );
        match (self.bands, self.rows) {
            (None, None) => Ok(minhash),
            (Some(bands), Some(rows)) => {
                Ok(minhash.banding(number(py, "bands", bands)?, number(py, "rows", rows)?))
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

impl SimHashFields {
    fn build(&self, py: Python<'_>) -> PyResult<SimHash> {
        let simhash = match (self.bits, self.external) {
            (bits, true) => SimHash::external(number(py, "bits", bits)?),
            (32, false) => SimHash::bits32(),
            (64, false) => SimHash::bits64(),
            (128, false) => SimHash::bits128(),
            (bits, false) => {
                let expected = "32, 64 or 128, or 256 of external fingerprints";
                return Err(invalid(py, "bits", bits, expected));
            }
        };
        let max_distance = optional_number(py, "max_distance", self.max_distance)?;
        let simhash = simhash.term_counts(self.term_counts);
        Ok(given!(simhash, max_distance, tables: self.tables.as_ref()))
    }
}

/// Converts features with weights to the library's form.
pub(crate) fn weighted_features(weights: &Bound<'_, PyDict>) -> PyResult<Vec<(Vec<u8>, f64)>> {
    let features = weights.iter();
    let read =
        features.map(|(feature, weight)| Ok((feature.extract::<Key>()?.0, weight.extract()?)));
    read.collect()
}

#[pymethods]
impl Schema {
    #[new]
    #[pyo3(signature = (*, text=None, minhash=None, vector=None, simhash=None, containment=None, near="any",
        seed=None, expected_documents=None, empty_documents="distinct", html=false, exact=false,
        exact_bits=None, clusters=false, cluster_threshold=None, cluster_distance=None,
        cluster_linkage="single"))]
    fn create(
        py: Python<'_>,
        text: Option<Part<TextFields>>,
        minhash: Option<Part<MinHashFields>>,
        vector: Option<Part<VectorFields>>,
        simhash: Option<Part<SimHashFields>>,
        containment: Option<Part<ContainmentFields>>,
        near: &str,
        seed: Option<u64>,
        expected_documents: Option<u64>,
        empty_documents: &str,
        html: bool,
        exact: bool,
        exact_bits: Option<u8>,
        clusters: bool,
        cluster_threshold: Option<f64>,
        cluster_distance: Option<u8>,
        cluster_linkage: &str,
    ) -> PyResult<Self> {
        let mark = html.then(|| HtmlExtractor::CURRENT.seed());
        if html && (text.is_none() || seed.is_some_and(|seed| Some(seed) != mark)) {
            let expected = "text, and no seed: what takes texts out of HTML is the seed";
            return Err(invalid(py, "html", "True", expected));
        }
        if vector.is_some() && (minhash.is_some() || exact || exact_bits.is_some()) {
            let expected = "neither minhash nor exact: vectors take their place";
            return Err(invalid(py, "vector", "a vector beside MinHash", expected));
        }
        let seed = seed.or(mark);
        let builder = resemblance::Schema::builder()
            .near(choice(py, "near", near, &NEAR)?)
            .empty_documents(choice(py, "empty_documents", empty_documents, &EMPTY)?);
        let builder = given!(
            builder,
            text: text.map(|part| part.0.build(py)).transpose()?,
            minhash: minhash.map(|part| part.0.build(py)).transpose()?,
            vector: vector.map(|part| part.0.build(py)).transpose()?,
            simhash: simhash.map(|part| part.0.build(py)).transpose()?,
            containment: containment.map(|part| part.0.build(py)).transpose()?,
            seed,
            expected_documents
        );
        let builder = if exact { builder.exact() } else { builder };
        let builder = given!(builder, exact_bits);
        let linkage = choice(py, "cluster_linkage", cluster_linkage, &LINKAGES)?;
        let mut bounds = ClusterBounds::default().linkage(linkage);
        bounds.min_similarity = cluster_threshold;
        bounds.max_distance = cluster_distance;
        if !clusters && bounds != ClusterBounds::default() {
            let found = "bounds of clusters, and no clusters";
            return Err(invalid(py, "clusters", found, "clusters=True"));
        }
        let builder = given!(builder, clusters: clusters.then_some(bounds));
        // Choosing bands takes a moment.
        let schema = py.detach(|| builder.build()).or_raise(py)?;
        Self::new(py, schema)
    }

    /// Returns this schema with weights of features by their rarity in some texts: features that
    /// occur in few texts weigh more. The texts are a sample of those that will be compared.
    fn with_weights(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut frequencies = resemblance::schema::DocumentFrequencies::new();
        let plain = &self.parts.sketcher;
        let mut batches = Batches::new(texts, None)?;
        while let Some(batch) = batches.next()? {
            for text in batch.texts(py)? {
                frequencies = released(py, || {
                    frequencies.add_text(plain, &self.parts.taken(text)?)?;
                    Ok(frequencies)
                })?;
            }
            py.check_signals()?;
        }
        let schema = self.parts.schema.clone();
        Self::new(py, schema.with_weights(frequencies).or_raise(py)?)
    }

    /// Makes the signature of a text by this schema. A store accepts it instead of the text, which
    /// saves time if you query and insert the same text.
    fn sketch(slf: &Bound<'_, Self>, text: &str) -> PyResult<Signature> {
        let signature = sketch(slf.py(), &slf.get().parts, text)?;
        Ok(Signature::new(signature, slf.clone().unbind()))
    }

    /// Computes the signatures of many texts, on `threads` threads, or on all cores.
    #[pyo3(signature = (texts, *, threads=None))]
    fn sketch_many(
        slf: &Bound<'_, Self>,
        texts: &Bound<'_, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Signatures> {
        let (py, parts) = (slf.py(), &slf.get().parts);
        let mut signatures = Vec::new();
        let mut batches = Batches::new(texts, threads)?;
        while let Some(batch) = batches.next()? {
            signatures.extend(batches.sketch(py, parts, &batch)?);
            py.check_signals()?;
        }
        Ok(Signatures::new(signatures, slf.clone().unbind()))
    }

    /// Makes the signature of a set of features, each `str` or `bytes`, for data other than text,
    /// or for shingles from another program. Repeated features count once.
    fn sketch_features(slf: &Bound<'_, Self>, features: &Bound<'_, PyAny>) -> PyResult<Signature> {
        let read = features_of(features)?.map(|feature| Ok(feature?.extract::<Key>()?.0));
        let features = read.collect::<PyResult<Vec<_>>>()?;
        let sketcher = &slf.get().parts.sketcher;
        let signature = released(slf.py(), || Ok(sketcher.features(features)?))?;
        Ok(Signature::new(signature, slf.clone().unbind()))
    }

    /// Makes the signatures of many sets of features, such as shingles from another program, each
    /// `str` or `bytes`. A set is a list or another iterable. `threads` is the number of threads,
    /// by default one for each core.
    #[pyo3(signature = (sets, *, threads=None))]
    fn sketch_features_many(
        slf: &Bound<'_, Self>,
        sets: &Bound<'_, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Signatures> {
        let (py, sketcher) = (slf.py(), &slf.get().parts.sketcher);
        let threads = threads_or_all(py, threads)?;
        let mut signatures = Vec::new();
        let mut rest = several("sets", sets)?;
        loop {
            // Features are hashed at once, so that their bytes need not be kept.
            let mut together = Vec::new();
            for set in rest.by_ref().take(SETS_TOGETHER) {
                let hashes = features_of(&set?)?.map(|feature| feature_hash_of(&feature?));
                together.push(hashes.collect::<PyResult<Vec<u64>>>()?);
            }
            if together.is_empty() {
                return Ok(Signatures::new(signatures, slf.clone().unbind()));
            }
            let sketch = |sets: &[Vec<u64>]| {
                let made = sets
                    .iter()
                    .map(|hashes| Ok(sketcher.hashes(hashes.iter().copied())?));
                made.collect()
            };
            signatures.extend(released(py, || in_shares(&together, threads, sketch))?);
            py.check_signals()?;
        }
    }

    /// Makes the signature of features with weights, from 0 to 65,536, or from -65,536 if the schema
    /// has SimHash alone. The schema must have
    /// SimHash, or MinHash of the kind `"weighted"` or `"probability"`.
    fn sketch_weighted(
        slf: &Bound<'_, Self>,
        weights: &Bound<'_, PyMapping>,
    ) -> PyResult<Signature> {
        let weights = PyDict::from_sequence(weights.items()?.as_any())?;
        let features = weighted_features(&weights)?;
        let sketcher = &slf.get().parts.sketcher;
        let signature = released(slf.py(), || Ok(sketcher.weighted_features(features)?))?;
        Ok(Signature::new(signature, slf.clone().unbind()))
    }

    /// Returns the distinct hashes of the features of a text in ascending order.
    fn features<'py>(
        &self,
        py: Python<'py>,
        text: &str,
    ) -> PyResult<Bound<'py, numpy::PyArray1<u64>>> {
        let parts = &self.parts;
        let hashes = released(py, || {
            Ok(parts.sketcher.feature_hashes(&parts.taken(text)?)?)
        })?;
        Ok(numpy::PyArray1::from_vec(py, hashes))
    }

    /// Returns the text that this schema extracts from a document. For HTML, it is the text that a
    /// reader sees.
    fn extract(&self, py: Python<'_>, document: &str) -> PyResult<String> {
        released(py, || Ok(self.parts.taken(document)?.into_owned()))
    }

    /// Returns the probability that two documents of this similarity are found as a pair.
    fn probability(&self, py: Python<'_>, similarity: f64) -> PyResult<f64> {
        match self.parts.schema.minhash() {
            Some(minhash) => Ok(minhash.probability(similarity)),
            None => Err(invalid(py, "schema", "no MinHash", "MinHash")),
        }
    }

    /// The rules by which texts become features, or `None` if documents are signatures.
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(text) = self.parts.schema.text() else {
            return Ok(None);
        };
        object!(py, schema.Text,
            unit: name_of(&UNITS, &text.unit()),
            length: text.length(),
            nfkc: text.is_nfkc(),
            keep_case: text.is_case_kept(),
            strip_accents: text.is_accent_stripped(),
            remove_spaces: text.is_without_spaces(),
            unordered: text.is_unordered(),
            stop_words: text.stop_words_language().map(Language::code),
            stem: text.stem_language().map(Language::code),
        )
        .map(Some)
    }

    /// The MinHash part with its bands, or `None` without MinHash.
    #[getter]
    fn minhash<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let schema = &self.parts.schema;
        let Some(minhash) = schema.minhash().filter(|_| schema.vector().is_none()) else {
            return Ok(None);
        };
        let (kind, permutations) = match minhash.kind() {
            MinHashKind::Functions(family) => ("functions", name_of(&PERMUTATIONS, &family)),
            MinHashKind::OnePass => ("one-pass", None),
            MinHashKind::BottomK => ("bottom-k", None),
            MinHashKind::Weighted => ("weighted", None),
            MinHashKind::External => ("external", None),
            MinHashKind::Probability => ("probability", None),
            other => {
                let expected = "a kind that this package knows";
                return Err(invalid(py, "schema", other, expected));
            }
        };
        object!(py, schema.MinHash,
            values: minhash.values(),
            kind: kind,
            threshold: minhash.threshold(),
            bands: minhash.bands(),
            rows: minhash.rows(),
            // Hashes of bottom-k are whole, without a choice.
            value_bits: (kind != "bottom-k").then_some(minhash.value_bits()),
            code_bits: minhash.code_bits(),
            permutations: permutations,
        )
        .map(Some)
    }

    /// The SimHash part with its tables, or `None` without SimHash.
    #[getter]
    fn simhash<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(simhash) = self.parts.schema.simhash() else {
            return Ok(None);
        };
        let own = SimHashFields {
            bits: simhash.bits().into(),
            max_distance: Some(simhash.max_distance().into()),
            tables: None,
            external: self.parts.schema.has_external_fingerprints(),
            term_counts: self.parts.schema.has_term_counts(),
        };
        let chosen = resemblance::Schema::builder()
            .simhash(own.build(py)?)
            .expected_documents(self.parts.schema.expected_documents())
            .build();
        let groups = simhash.groups();
        // A distance that no tables are chosen for has special tables.
        let is_chosen = chosen.is_ok_and(|schema| {
            schema
                .simhash()
                .is_some_and(|chosen| chosen.groups() == groups)
        });
        let tables = match is_chosen {
            true => None,
            false => Some(PyTuple::new(py, groups.iter().copied())?),
        };
        object!(py, schema.SimHash,
            bits: simhash.bits(),
            max_distance: simhash.max_distance(),
            tables: tables,
            external: own.external,
            term_counts: own.term_counts,
        )
        .map(Some)
    }

    /// The settings for containment queries, or `None` without containment.
    #[getter]
    fn containment<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(containment) = self.parts.schema.containment() else {
            return Ok(None);
        };
        object!(py, schema.Containment,
            shingle: containment.shingle_units(),
            window: containment.window_shingles(),
            scaled: containment.scale(),
            positions: containment.has_positions(),
        )
        .map(Some)
    }

    /// The rule by which two documents count as near: `"any"` of both families, or only `"both"`.
    #[getter]
    fn near(&self) -> Option<&'static str> {
        name_of(&NEAR, &self.parts.schema.near())
    }

    /// The bound that a document which was found within those of the schema meets: `"similarity"`,
    /// `"distance"`, or `"both"` if it must meet both; `"cluster"` if it meets none.
    fn drop_rule(&self, py: Python<'_>, found: &Match) -> PyResult<&'static str> {
        found
            .rule(&self.parts.schema)
            .map(DropRule::name)
            .or_raise(py)
    }

    /// The seed of all hashes.
    #[getter]
    fn seed(&self) -> u64 {
        self.parts.schema.seed()
    }

    /// True if documents are HTML, from which text is extracted.
    #[getter]
    fn html(&self) -> bool {
        self.parts.html.is_some()
    }

    /// The number of documents for which bands and tables were chosen.
    #[getter]
    fn expected_documents(&self) -> u64 {
        self.parts.schema.expected_documents()
    }

    /// The rule for documents without features: `"distinct"` or `"alike"`.
    #[getter]
    fn empty_documents(&self) -> Option<&'static str> {
        name_of(&EMPTY, &self.parts.schema.empty_documents())
    }

    /// True if stores keep the sets of all features, which decide similarities instead of estimates.
    #[getter]
    fn exact(&self) -> bool {
        self.parts.schema.is_exact()
    }

    /// The bits of each hash in these sets; `None` unless `exact`.
    #[getter]
    fn exact_bits(&self) -> Option<u8> {
        self.parts.schema.exact_bits()
    }

    /// True if stores keep clusters.
    #[getter]
    fn clusters(&self) -> bool {
        self.parts.schema.clusters().is_some()
    }

    /// The least similarity of documents that are linked to clusters; `None` for the threshold.
    #[getter]
    fn cluster_threshold(&self) -> Option<f64> {
        self.parts.schema.clusters()?.min_similarity
    }

    /// The largest distance of documents that are linked to clusters; `None` for that of the schema.
    #[getter]
    fn cluster_distance(&self) -> Option<u8> {
        self.parts.schema.clusters()?.max_distance
    }

    /// The rule by which linked documents belong to one cluster; `None` without clusters.
    #[getter]
    fn cluster_linkage(&self) -> Option<&'static str> {
        let bounds = self.parts.schema.clusters()?;
        name_of(&LINKAGES, &bounds.linkage)
    }

    /// How sure `insert_if_new` is that it finds a near-duplicate, as `Matches.certainty`, unless a
    /// budget leaves out candidates or `verify` decides. `None` if nothing is certified.
    #[getter]
    fn certainty(&self) -> Option<CertaintyTuple> {
        // With containment alone there are no near-duplicates.
        let certainty = Bounds::new().certainty(&self.parts.schema, false).ok()?;
        certainty_tuple(certainty)
    }

    /// True if features have weights by their rarity in a corpus.
    #[getter]
    fn is_weighted(&self) -> bool {
        self.parts.schema.weights().is_some()
    }

    /// A number that identifies everything on which signatures depend. Two schemas with the same
    /// number make the same signatures.
    #[getter]
    fn recipe_fingerprint(&self) -> u64 {
        self.parts.schema.recipe_fingerprint()
    }

    /// Returns the digest of the signatures of fixed documents, which distinguishes builds that
    /// hash differently.
    #[getter]
    fn self_test(&self, py: Python<'_>) -> PyResult<u64> {
        self.parts.codec.self_test().or_raise(py)
    }

    /// Returns the schema as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.parts.schema.to_bytes().or_raise(py)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Reads a schema that `to_bytes` wrote.
    #[classmethod]
    fn from_bytes(class: &Bound<'_, PyType>, bytes: &[u8]) -> PyResult<Self> {
        let py = class.py();
        Self::new(py, resemblance::Schema::from_bytes(bytes).or_raise(py)?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let read = slf.get_type().getattr("from_bytes")?;
        (read, (slf.get().to_bytes(py)?,)).into_pyobject(py)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.parts.schema == other.parts.schema
    }

    fn __hash__(&self) -> u64 {
        self.recipe_fingerprint()
    }

    fn __str__(&self) -> String {
        self.parts.schema.to_string()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut parts = Vec::new();
        for (name, part) in [
            ("text", self.text(py)?),
            ("minhash", self.minhash(py)?),
            ("vector", self.vector(py)?),
            ("simhash", self.simhash(py)?),
            ("containment", self.containment(py)?),
        ] {
            if let Some(part) = part {
                parts.push(format!("{name}={}", part.repr()?));
            }
        }
        let defaults = resemblance::Schema::builder()
            .minhash(resemblance::MinHash::new(16))
            .build()
            .or_raise(py)?;
        if let Some(near) = self.near().filter(|near| *near != "any") {
            parts.push(format!("near={near:?}"));
        }
        if self.html() {
            parts.push("html=True".into());
        } else if self.seed() != defaults.seed() {
            parts.push(format!("seed={}", self.seed()));
        }
        if self.expected_documents() != defaults.expected_documents() {
            parts.push(format!("expected_documents={}", self.expected_documents()));
        }
        if let Some(empty) = self.empty_documents().filter(|empty| *empty != "distinct") {
            parts.push(format!("empty_documents={empty:?}"));
        }
        match self.parts.schema.exact_bits() {
            None => (),
            Some(_) if self.parts.schema.vector().is_some() => (),
            Some(44) => parts.push("exact=True".into()),
            Some(bits) => parts.push(format!("exact_bits={bits}")),
        }
        if let Some(bounds) = self.parts.schema.clusters() {
            parts.push("clusters=True".into());
            let threshold = bounds.min_similarity;
            parts.extend(threshold.map(|it| format!("cluster_threshold={it:?}")));
            let distance = bounds.max_distance;
            parts.extend(distance.map(|it| format!("cluster_distance={it}")));
            if bounds.linkage != Linkage::Single {
                let linkage = name_of(&LINKAGES, &bounds.linkage);
                parts.extend(linkage.map(|it| format!("cluster_linkage={it:?}")));
            }
        }
        let weights = match self.is_weighted() {
            true => ".with_weights(...)",
            false => "",
        };
        Ok(format!("Schema({}){weights}", parts.join(", ")))
    }
}
