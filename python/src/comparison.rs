//! The documents of a store, with which new ones are compared exactly.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use resemblance_corpus::dedup::{ComparedCandidate, StoredSets};
use resemblance_corpus::verification::{FeatureSets, SketchedText};

use crate::batches::{Batches, Beside};
use crate::corpus::{ComparedFields, FoundFields, compared_fields, features_in, found_fields};
use crate::errors::OrRaise;
use crate::keys::Key;
use crate::lease::lock;
use crate::schema::Schema;
use crate::snapshot::Snapshot;
use crate::transaction::Many;
use crate::waiting::released;

/// The documents of a store, by the sets of an exact store, or by the features of its texts.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct StoreComparison {
    snapshot: resemblance::Snapshot,
    schema: Py<Schema>,
    sets: Mutex<ComparedSets>,
}

enum ComparedSets {
    /// The sets of an exact store.
    OfStore,
    Reading(FeatureSets),
    Complete(StoredSets),
}

impl StoreComparison {
    fn sets(&self) -> resemblance::Result<StoredSets> {
        let mut sets = lock(&self.sets);
        if let ComparedSets::Reading(features) = &mut *sets {
            features.flush()?;
            let features = std::mem::replace(features, FeatureSets::new(std::env::temp_dir()));
            *sets = ComparedSets::Complete(StoredSets::new(&self.snapshot, Arc::new(features))?);
        }
        match &*sets {
            ComparedSets::OfStore => StoredSets::new(&self.snapshot, None),
            ComparedSets::Complete(complete) => Ok(complete.clone()),
            ComparedSets::Reading(_) => {
                Err(resemblance::invariant::bug("features are not complete"))
            }
        }
    }

    /// Answers for documents, batch after batch.
    fn answer<F: Send>(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        threads: Option<usize>,
        mut ask: impl FnMut(
            &StoredSets,
            &[&SketchedText],
        ) -> resemblance::Result<(Vec<Option<F>>, Vec<ComparedCandidate>)>
        + Send,
    ) -> PyResult<(Vec<Option<F>>, Vec<ComparedFields>)> {
        let many = Many::new(documents, None, None, None, threads)?;
        let (mut found, mut rejected) = (Vec::new(), Vec::new());
        let sets = released(py, || self.sets())?;
        let has_texts = !self.snapshot.schema().is_exact();
        many.for_each_text(py, self.schema.get(), has_texts, |documents| {
            let first = found.len() as u64;
            let batch: Vec<&SketchedText> = documents.iter().map(|(_, it)| *it).collect();
            let (answers, apart) = ask(&sets, &batch)?;
            found.extend(answers);
            rejected.extend(apart.iter().map(|it| compared_fields(first, it)));
            Ok(())
        })?;
        Ok((found, rejected))
    }
}

#[pymethods]
impl StoreComparison {
    /// Without a folder, the store must be exact.
    #[new]
    #[pyo3(signature = (snapshot, folder=None, *, memory_bytes=None))]
    pub(crate) fn create(
        py: Python<'_>,
        snapshot: &Bound<'_, Snapshot>,
        folder: Option<PathBuf>,
        memory_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let held = snapshot.get().held(py)?;
        let schema = snapshot.as_super().get().schema.clone_ref(py);
        let sets = match folder {
            Some(folder) => ComparedSets::Reading(features_in(&folder, memory_bytes)),
            None => ComparedSets::OfStore,
        };
        Ok(Self {
            snapshot: held,
            schema,
            sets: Mutex::new(sets),
        })
    }

    /// Takes the texts that are those of stored documents with their keys, before the first question.
    /// Returns their number.
    #[pyo3(signature = (texts, keys, *, threads=None))]
    fn add_texts(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        keys: &Bound<'_, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<u64> {
        let mut batches = Batches::new(texts, threads)?;
        let mut beside = Beside::keys(Some(keys))?;
        let mut known = 0;
        while let Some(batch) = batches.next()? {
            let keys = beside.next(py, batch.len())?.unwrap_or_default();
            let parts = &self.schema.get().parts;
            let sketched = batches.sketch_texts(py, parts, &batch, true)?;
            released(py, || {
                let ComparedSets::Reading(features) = &mut *lock(&self.sets) else {
                    return Err(resemblance::invariant::bug("texts after a question"));
                };
                for (key, text) in keys.iter().zip(&sketched) {
                    if let Some(Key(key)) = key {
                        let is_known = text.put_as_stored(features, &self.snapshot, key)?;
                        known += u64::from(is_known);
                    }
                }
                Ok(())
            })?;
        }
        beside.end(py)?;
        Ok(known)
    }

    /// Returns, for each document, the nearest stored one, and those that were compared exactly and
    /// are not near.
    #[pyo3(signature = (documents, *, threads=None))]
    fn near(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<(Vec<Option<FoundFields>>, Vec<ComparedFields>)> {
        let (snapshot, schema) = (&self.snapshot, self.snapshot.schema());
        let floor = released(py, || resemblance::Bounds::new().similarity_floor(schema))?;
        self.answer(py, documents, threads, |sets, batch| {
            let signatures: Vec<_> = batch.iter().map(|it| it.signature.clone()).collect();
            let query = snapshot.query(&signatures).limit(1);
            let (answers, apart) = sets.verify(query, batch, floor)?;
            let mut found = Vec::with_capacity(batch.len());
            for (text, answer) in batch.iter().zip(&answers) {
                let fields = answer.first().map(|it| {
                    let compared = sets.compare(0, text, it.id())?;
                    let shares = compared.map(|compared| compared.shares);
                    found_fields(it.id().get(), it, shares, schema)
                });
                found.push(fields.transpose()?);
            }
            Ok((found, apart))
        })
    }

    /// Returns the probability that a stored document is found that has the features of a new one, all
    /// but the share `lost`, and `times` their number; `None` without MinHash.
    fn recall(&self, py: Python<'_>, lost: f64, times: f64) -> PyResult<Option<f64>> {
        // It does not depend on the sets, whose files may be gone.
        let none = Arc::new(FeatureSets::new(std::env::temp_dir()));
        let sets = StoredSets::new(&self.snapshot, none).or_raise(py)?;
        Ok(sets.recall(lost, times))
    }

    /// Returns, for each document, the stored one that has its features, all but the share `lost` of
    /// its distinct ones, and those that were compared and lack more.
    #[pyo3(signature = (documents, lost, *, threads=None))]
    pub(crate) fn holders(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        lost: f64,
        threads: Option<usize>,
    ) -> PyResult<(Vec<Option<ComparedFields>>, Vec<ComparedFields>)> {
        let mut first = 0;
        self.answer(py, documents, threads, |sets, batch| {
            let answer = sets.holders(batch, lost)?;
            let fields = |it: Option<ComparedCandidate>| it.map(|it| compared_fields(first, &it));
            let found = answer.found.into_iter().map(fields).collect();
            first += batch.len() as u64;
            Ok((found, answer.rejected))
        })
    }
}
