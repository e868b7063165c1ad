//! Questions about shared passages.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use resemblance::exact::span_of_shingles;
use resemblance::{ContainmentQuery, Overlap, Overlaps, PlacedPassage, Signature, Text};

use crate::batches::{Batches, in_shares};
use crate::errors::invalid;
use crate::exact::position;
use crate::keys::optional_key;
use crate::python::{fields, object};
use crate::schema::Schema;
use crate::waiting::released;

/// Which documents are asked for.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    /// Those that contain the query.
    Containing,
    /// Those that the query contains.
    Contained,
    /// Those that share any passage with it.
    Overlapping,
}

/// What such a question is told besides its documents.
#[derive(Clone, Copy)]
pub(crate) struct PassageFields {
    pub(crate) which: Which,
    pub(crate) min_share: Option<f64>,
    pub(crate) min_shared: Option<u32>,
    pub(crate) limit: Option<usize>,
    pub(crate) max_document_frequency: Option<u64>,
}

impl PassageFields {
    fn ask(
        self,
        snapshot: &resemblance::Snapshot,
        signatures: &[Signature],
        threads: usize,
    ) -> resemblance::Result<Vec<Overlaps>> {
        let mut query: ContainmentQuery<'_, Vec<Overlaps>> = match self.which {
            Which::Containing => snapshot.contained_in(signatures),
            Which::Contained => snapshot.contents_of(signatures),
            Which::Overlapping => snapshot.overlaps(signatures),
        };
        if let Some(share) = self.min_share {
            query = query.min_share(share);
        }
        if let Some(hashes) = self.min_shared {
            query = query.min_shared(hashes);
        }
        if let Some(limit) = self.limit {
            query = query.limit(limit);
        }
        if let Some(documents) = self.max_document_frequency {
            query = query.max_document_frequency(documents);
        }
        query.threads(threads).run()
    }

    /// The answer for one document.
    pub(crate) fn one<'py>(
        self,
        py: Python<'py>,
        snapshot: &resemblance::Snapshot,
        signature: Signature,
    ) -> PyResult<Bound<'py, PyAny>> {
        let answers = released(py, || self.ask(snapshot, &[signature], 1))?;
        let answer = answers.first();
        let answer = answer.ok_or_else(|| PyRuntimeError::new_err("a query without an answer"))?;
        overlaps_object(py, answer)
    }

    /// The answers for many.
    pub(crate) fn many<'py>(
        self,
        py: Python<'py>,
        (snapshot, schema): (&resemblance::Snapshot, &Py<Schema>),
        documents: &Bound<'_, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut batches = Batches::new(documents, threads)?.by_threads();
        let (threads, mut all) = (batches.threads(), Vec::new());
        while let Some(batch) = batches.next()? {
            let signatures = batches.sketch(py, &schema.get().parts.sketcher, &batch)?;
            let answers = released(py, || self.ask(snapshot, &signatures, threads))?;
            for answer in &answers {
                all.push(overlaps_object(py, answer)?);
            }
            py.check_signals()?;
        }
        Ok(all)
    }
}

/// A passage that many documents have: its positions in the text, its shingles, and the documents.
struct CountedPassage {
    start: usize,
    end: usize,
    shingles: u64,
    documents: u64,
}

impl CountedPassage {
    fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let fields = fields!(py,
            start: self.start,
            end: self.end,
            shingles: self.shingles,
            documents: self.documents,
        );
        object(py, "reports", "FrequentPassage", &fields)
    }
}

/// The passages of each of many texts that more than so many documents have.
pub(crate) fn frequent_passages<'py>(
    py: Python<'py>,
    (snapshot, schema): (&resemblance::Snapshot, &Py<Schema>),
    documents: &Bound<'_, PyAny>,
    max_document_frequency: u64,
    threads: Option<usize>,
) -> PyResult<Vec<Vec<Bound<'py, PyAny>>>> {
    let parts = &schema.get().parts;
    let cut = parts.schema.containment_text();
    let expected = "one with containment, for texts";
    let cut = cut.ok_or_else(|| invalid(py, "schema", "one without", expected))?;
    let mut batches = Batches::new(documents, threads)?.by_threads();
    let mut all = Vec::new();
    while let Some(batch) = batches.next()? {
        let signatures = batches.sketch(py, &parts.sketcher, &batch)?;
        let texts = batch.texts(py)?;
        let texts: Vec<(&str, Signature)> = texts.into_iter().zip(signatures).collect();
        // Fewer are not worth a thread.
        let threads = batches.threads().min(texts.len() / 256 + 1);
        let find = |texts: &[(&str, Signature)]| {
            passages_of(snapshot, &cut, texts, max_document_frequency)
        };
        let found = released(py, || in_shares(&texts, threads, find))?;
        for passages in found {
            let passages = passages.iter().map(|passage| passage.object(py));
            all.push(passages.collect::<PyResult<Vec<_>>>()?);
        }
        py.check_signals()?;
    }
    Ok(all)
}

fn passages_of(
    snapshot: &resemblance::Snapshot,
    cut: &Text,
    texts: &[(&str, Signature)],
    max_document_frequency: u64,
) -> resemblance::Result<Vec<Vec<CountedPassage>>> {
    let signatures: Vec<Signature> = texts.iter().map(|(_, it)| it.clone()).collect();
    let query = snapshot.overlaps(&signatures[..]).threads(1);
    let found = query
        .max_document_frequency(max_document_frequency)
        .frequent_passages()?;
    let mut all = Vec::with_capacity(found.len());
    for ((text, _), passages) in texts.iter().zip(found) {
        let mut counted = Vec::with_capacity(passages.len());
        for passage in passages {
            let shingles = passage.first_shingle as usize..passage.last_shingle as usize + 1;
            if let Some(span) = span_of_shingles(cut, text, shingles)? {
                let (start, end) = position(text, &span);
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

fn overlaps_object<'py>(py: Python<'py>, answer: &Overlaps) -> PyResult<Bound<'py, PyAny>> {
    let overlaps = answer.iter().map(|overlap| overlap_object(py, overlap));
    let fields = fields!(py,
        overlaps: overlaps.collect::<PyResult<Vec<_>>>()?,
        query_hashes: answer.query_hashes(),
        capped_hashes: answer.capped_hashes(),
    );
    object(py, "reports", "Overlaps", &fields)
}

fn overlap_object<'py>(py: Python<'py>, overlap: &Overlap) -> PyResult<Bound<'py, PyAny>> {
    let passage = |passage: &PlacedPassage| {
        let (query, document) = (&passage.query, &passage.document);
        let fields = fields!(py,
            query: (query.start, query.end),
            document: (document.start, document.end),
        );
        object(py, "reports", "PlacedPassage", &fields)
    };
    let passages = overlap.passages().map(|passages| {
        let passages = passages.iter().map(passage);
        passages.collect::<PyResult<Vec<_>>>()
    });
    let fields = fields!(py,
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
    );
    object(py, "reports", "Overlap", &fields)
}
