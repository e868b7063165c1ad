//! Snapshots: a store as it was at one moment, and queries about shared passages.

use std::sync::Arc;

use pyo3::prelude::*;
use resemblance::exact::span_of_shingles;
use resemblance::search::PlacedPassage;
use resemblance::{DocumentId, Overlap, Overlaps, Text};
use resemblance_corpus::verification::FeatureSets;

use crate::answers::Record;
use crate::batches::{Batches, in_shares, signature_of};
use crate::comparison::StoreComparison;
use crate::corpus::ComparedFields;
use crate::errors::{OrRaise, invalid};
use crate::exact::{Position, position};
use crate::filter::{Filter, Passing};
use crate::keys::optional_key;
use crate::lease::{Holder, Lease};
use crate::python::{Report, given, object};
use crate::reads::{Reads, Source};
use crate::schema::Schema;
use crate::waiting::{in_background, released};

/// The store at one moment. Later writes do not change it.
#[pyclass(frozen, extends = Reads, module = "resemblance")]
pub(crate) struct Snapshot {
    lease: Arc<Lease<resemblance::Snapshot>>,
    schema: Py<Schema>,
}

impl Snapshot {
    /// The snapshot of the library.
    pub(crate) fn held(&self, py: Python<'_>) -> PyResult<resemblance::Snapshot> {
        self.lease.get().or_raise(py)
    }

    /// A snapshot whose joins compute exact similarities if it has features.
    pub(crate) fn bound(
        schema: &Bound<'_, Schema>,
        lease: Arc<Lease<resemblance::Snapshot>>,
        features: Option<Arc<FeatureSets>>,
    ) -> PyResult<Py<Self>> {
        let reads = Reads {
            source: Source::Snapshot(Arc::clone(&lease)),
            schema: schema.clone().unbind(),
            features,
        };
        let own = Self {
            lease,
            schema: schema.clone().unbind(),
        };
        Py::new(
            schema.py(),
            PyClassInitializer::from(reads).add_subclass(own),
        )
    }
}

/// Generates the queries about passages, each for one document and for many.
macro_rules! passage_questions {
    ($(#[doc = $of_one:literal] $one:ident, #[doc = $of_many:literal] $many:ident;)+) => {
        #[pymethods]
        impl Snapshot {$(
            #[doc = $of_one]
            #[pyo3(signature = (document, /, *, min_share=None, min_shared=None, limit=None,
                max_document_frequency=None, filter=None))]
            fn $one<'py>(
                &self,
                py: Python<'py>,
                document: &Bound<'_, PyAny>,
                min_share: Option<f64>,
                min_shared: Option<u32>,
                limit: Option<usize>,
                max_document_frequency: Option<u64>,
                filter: Option<&Bound<'_, Filter>>,
            ) -> Report<'py> {
                let signature = signature_of(py, &self.schema, document)?;
                let snapshot = self.lease.get().or_raise(py)?;
                let passing = Passing::new(filter);
                let answer = released(py, || {
                    let query = given!(snapshot.$one(&signature), filter: passing.filter.clone());
                    given!(query, min_share, min_shared, limit, max_document_frequency).run()
                });
                overlaps_object(py, &passing.answer(answer)?)
            }

            #[doc = $of_many]
            #[pyo3(signature = (documents, *, min_share=None, min_shared=None, limit=None,
                max_document_frequency=None, filter=None, threads=None))]
            fn $many<'py>(
                &self,
                py: Python<'py>,
                documents: &Bound<'_, PyAny>,
                min_share: Option<f64>,
                min_shared: Option<u32>,
                limit: Option<usize>,
                max_document_frequency: Option<u64>,
                filter: Option<&Bound<'_, Filter>>,
                threads: Option<usize>,
            ) -> PyResult<Vec<Bound<'py, PyAny>>> {
                let mut batches = Batches::new(documents, threads)?.by_threads();
                let (threads, mut all) = (batches.threads, Vec::new());
                let passing = Passing::new(filter);
                while let Some(batch) = batches.next()? {
                    let signatures = batches.sketch(py, &self.schema.get().parts, &batch)?;
                    let snapshot = self.lease.get().or_raise(py)?;
                    let filter = passing.filter.clone();
                    let answers = in_background(py, None, move |_| {
                        let query = snapshot.$one(&signatures[..]).threads(threads);
                        let query = given!(query, min_share, min_shared, limit, filter);
                        given!(query, max_document_frequency).run()
                    });
                    for answer in &passing.answer(answers)? {
                        all.push(overlaps_object(py, answer)?);
                    }
                }
                Ok(all)
            }
        )+}
    };
}

passage_questions! {
    /// Returns the documents that contain one text, best first.
    contained_in,
    /// Returns the documents that contain each of many texts.
    contained_in_many;
    /// Returns the documents that one text contains, best first.
    contents_of,
    /// Returns the documents that each of many texts contains.
    contents_of_many;
    /// Returns the documents that share any passage with one text, best first.
    overlaps,
    /// Returns the documents that share any passage with each of many texts.
    overlaps_many;
}

#[pymethods]
impl Snapshot {
    /// Returns the passages of each of many texts that more than a given number of documents have.
    #[pyo3(signature = (documents, max_document_frequency, *, filter=None, threads=None))]
    fn frequent_passages<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'_, PyAny>,
        max_document_frequency: u64,
        filter: Option<&Bound<'_, Filter>>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Vec<Bound<'py, PyAny>>>> {
        let parts = &self.schema.get().parts;
        let expected = "one with containment, for texts";
        let Some(cut) = parts.schema.containment_text() else {
            return Err(invalid(py, "schema", "one without", expected));
        };
        parts.must_be_plain().or_raise(py)?;
        let snapshot = self.lease.get().or_raise(py)?;
        let passing = Passing::new(filter);
        let mut batches = Batches::new(documents, threads)?.by_threads();
        let mut all = Vec::new();
        while let Some(batch) = batches.next()? {
            let signatures = batches.sketch(py, parts, &batch)?;
            let texts: Vec<_> = batch.texts(py)?.into_iter().zip(signatures).collect();
            // Fewer are not worth a thread.
            let threads = batches.threads.min(texts.len() / 256 + 1);
            let find = |texts: &[(&str, resemblance::Signature)]| {
                let filter = passing.filter.clone();
                passages_of(&snapshot, &cut, texts, max_document_frequency, filter)
            };
            let found = released(py, || in_shares(&texts, threads, find));
            for passages in passing.answer(found)? {
                let made = passages.iter().map(|it| {
                    object! { py, reports.FrequentPassage, it { start, end, shingles, documents } }
                });
                all.push(made.collect::<PyResult<Vec<_>>>()?);
            }
            py.check_signals()?;
        }
        Ok(all)
    }

    /// Returns the ids of the documents that share a bucket with one document.
    #[pyo3(signature = (document, *, filter=None))]
    fn candidates(
        &self,
        py: Python<'_>,
        document: &Bound<'_, PyAny>,
        filter: Option<&Bound<'_, Filter>>,
    ) -> PyResult<Vec<u64>> {
        let signature = signature_of(py, &self.schema, document)?;
        let passing = Passing::new(filter);
        let found = released(py, || {
            let snapshot = self.lease.get()?;
            given!(snapshot.query(&signature), filter: passing.filter.clone()).candidates()
        });
        Ok(passing
            .answer(found)?
            .into_iter()
            .map(DocumentId::get)
            .collect())
    }

    /// Returns, for each document, the stored one that has its features, all but the share `lost` of
    /// its distinct ones, and those that were compared and lack more: as tuples of the index, the id,
    /// the similarity, and of the features of each the share that both have. Needs an exact store.
    /// Stored documents are compared if they share a bucket with the document, or, with `Containment`
    /// in the schema, a kept hash; without it most of the longer ones are missed.
    #[pyo3(signature = (documents, lost, *, threads=None))]
    fn holders(
        slf: &Bound<'_, Self>,
        documents: &Bound<'_, PyAny>,
        lost: f64,
        threads: Option<usize>,
    ) -> PyResult<(Vec<Option<ComparedFields>>, Vec<ComparedFields>)> {
        let compared = StoreComparison::create(slf.py(), slf, None, None)?;
        compared.holders(slf.py(), documents, lost, threads)
    }

    /// Returns the document with an id, or `None`.
    fn get_id(&self, py: Python<'_>, id: u64) -> PyResult<Option<Record>> {
        let record = released(py, || self.lease.get()?.get_id(DocumentId::new(id)))?;
        let made = record.map(|record| Record::new(py, &record, &self.schema));
        made.transpose()
    }

    /// Releases the file. Closing the store also closes the snapshot.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.lease.release());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> bool {
        self.close(py);
        false
    }

    fn __repr__(&self) -> String {
        match self.lease.get() {
            Ok(snapshot) => format!("<resemblance.Snapshot: {} documents>", snapshot.len()),
            Err(_) => "<resemblance.Snapshot: closed>".to_owned(),
        }
    }
}

/// A passage that many documents have: its positions in the text, its shingles, and the documents.
struct CountedPassage {
    start: usize,
    end: usize,
    shingles: u64,
    documents: u64,
}

fn passages_of(
    snapshot: &resemblance::Snapshot,
    cut: &Text,
    texts: &[(&str, resemblance::Signature)],
    max_document_frequency: u64,
    filter: Option<resemblance::Filter<'static>>,
) -> resemblance::Result<Vec<Vec<CountedPassage>>> {
    let signatures: Vec<_> = texts.iter().map(|(_, it)| it.clone()).collect();
    let query = snapshot.overlaps(&signatures[..]).threads(1);
    let query = query.max_document_frequency(max_document_frequency);
    let found = given!(query, filter).frequent_passages()?;
    let mut all = Vec::with_capacity(found.len());
    for ((text, _), passages) in texts.iter().zip(found) {
        let mut counted = Vec::with_capacity(passages.len());
        for passage in passages {
            let shingles = passage.first_shingle as usize..passage.last_shingle as usize + 1;
            if let Some(span) = span_of_shingles(cut, text, shingles)? {
                let Position(start, end) = position(text, &span);
                counted.push(CountedPassage {
                    start,
                    end,
                    shingles: passage.last_shingle + 1 - passage.first_shingle,
                    documents: passage.documents,
                });
            }
        }
        all.push(counted);
    }
    Ok(all)
}

fn overlaps_object<'py>(py: Python<'py>, answer: &Overlaps) -> Report<'py> {
    let overlaps = answer.iter().map(|overlap| overlap_object(py, overlap));
    object!(py, reports.Overlaps,
        overlaps: overlaps.collect::<PyResult<Vec<_>>>()?,
        query_hashes: answer.query_hashes(),
        capped_hashes: answer.capped_hashes(),
    )
}

fn overlap_object<'py>(py: Python<'py>, overlap: &Overlap) -> Report<'py> {
    let passage = |passage: &PlacedPassage| {
        let (query, document) = (&passage.query, &passage.document);
        object!(py, reports.PlacedPassage,
            query: Position(query.start, query.end),
            document: Position(document.start, document.end),
        )
    };
    let placed = overlap
        .passages()
        .map(|passages| passages.iter().map(passage));
    let passages = placed.map(|made| made.collect::<PyResult<Vec<_>>>());
    object!(py, reports.Overlap,
        id: overlap.id().get(),
        key: optional_key(py, overlap.key())?,
        stamp: overlap.stamp(),
        query_share: overlap.query_share(),
        document_share: overlap.document_share(),
        shared_hashes: overlap.shared_hashes(),
        document_hashes: overlap.document_hashes(),
        longest_run: overlap.longest_run(),
        query_share_variance: overlap.query_share_variance(),
        passages: passages.transpose()?,
    )
}
