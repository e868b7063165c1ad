//! Near pairs of a whole store, and their clusters.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use numpy::PyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use resemblance::verification::FeatureSets;
use resemblance::{Bounds, DocumentId, Error, Family, Join, LeftOut, Phase, Snapshot};

use crate::errors::OrRaise;
use crate::keys::optional_key;
use crate::progress::{Reporter, Told};
use crate::python::{at, choice, fields, object};
use crate::waiting::{Home, abandon, in_background, lock, receive, released, spawn};

/// Pairs that go from the thread that finds them to Python at once.
const PAIRS_TOGETHER: usize = 1_024;

pub(crate) const BY: [(&str, Family); 4] = [
    ("minhash", Family::MinHash),
    ("simhash", Family::SimHash),
    ("any", Family::Any),
    ("both", Family::Both),
];

/// The bounds of a query or a join.
#[derive(Clone, Copy, Default)]
pub(crate) struct BoundFields<'a> {
    pub(crate) threshold: Option<f64>,
    pub(crate) max_distance: Option<u32>,
    pub(crate) by: Option<&'a str>,
    pub(crate) accept_lower_recall: bool,
}

impl BoundFields<'_> {
    pub(crate) fn build(&self, py: Python<'_>) -> PyResult<Bounds> {
        let mut bounds = Bounds::new();
        if let Some(threshold) = self.threshold {
            bounds = bounds.min_similarity(threshold);
        }
        if let Some(distance) = self.max_distance {
            bounds = bounds.max_distance(distance);
        }
        if let Some(by) = self.by {
            bounds = bounds.by(choice(py, "by", by, &BY)?);
        }
        if self.accept_lower_recall {
            bounds = bounds.accept_lower_recall();
        }
        Ok(bounds)
    }
}

/// All that a join is told.
#[derive(Clone, Default)]
pub(crate) struct JoinSettings {
    pub(crate) bounds: Bounds,
    pub(crate) threads: Option<usize>,
    pub(crate) max_bucket: Option<usize>,
    /// The features of the documents, if similarities are to be exact.
    pub(crate) features: Option<Arc<FeatureSets>>,
}

impl JoinSettings {
    pub(crate) fn apply<'a, A>(&self, join: Join<'a, A>) -> Join<'a, A> {
        let mut join = join.bounds(self.bounds);
        if let Some(threads) = self.threads {
            join = join.threads(threads);
        }
        if let Some(signatures) = self.max_bucket {
            join = join.max_bucket(signatures);
        }
        join
    }
}

/// Two documents that are near each other.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Pair {
    pair: resemblance::Pair,
    keys: [Option<Vec<u8>>; 2],
}

#[pymethods]
impl Pair {
    /// The id of the earlier document.
    #[getter]
    fn a(&self) -> u64 {
        self.pair.a.get()
    }

    /// The id of the later document.
    #[getter]
    fn b(&self) -> u64 {
        self.pair.b.get()
    }

    /// The key of the earlier document, `None` if it has none, or with `keys=False`.
    #[getter]
    fn key_a<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let [key, _] = &self.keys;
        optional_key(py, key.as_deref())
    }

    /// The key of the later document, `None` if it has none, or with `keys=False`.
    #[getter]
    fn key_b<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let [_, key] = &self.keys;
        optional_key(py, key.as_deref())
    }

    /// Their similarity, from 0 to 1: an estimate unless `is_exact`; `None` without MinHash.
    #[getter]
    fn similarity(&self) -> Option<f64> {
        self.pair.similarity
    }

    /// Whether the similarity was computed from features, and not estimated from signatures.
    #[getter]
    fn is_exact(&self) -> bool {
        self.pair.is_exact
    }

    /// The number of bits in which their fingerprints differ; `None` without SimHash.
    #[getter]
    fn distance(&self) -> Option<u32> {
        self.pair.distance
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.pair == other.pair
    }

    fn __repr__(&self) -> String {
        let mut text = format!("Pair(a={}, b={}", self.a(), self.b());
        if let Some(similarity) = self.similarity() {
            text += &format!(", similarity={similarity:.4}");
        }
        if let Some(distance) = self.distance() {
            text += &format!(", distance={distance}");
        }
        text + ")"
    }
}

/// What the thread that finds pairs sends.
enum Found {
    Pairs(Vec<Pair>),
    Failed(Error),
    End(LeftOut),
}

/// Iterates over near pairs, which a thread finds meanwhile.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Pairs {
    receiver: Mutex<Receiver<Found>>,
    ready: Mutex<VecDeque<Pair>>,
    left_out: Mutex<Option<LeftOut>>,
    told: Told,
    reporter: Mutex<Reporter>,
    thread: Mutex<Option<JoinHandle<()>>>,
    home: Home,
}

impl Pairs {
    pub(crate) fn start(
        py: Python<'_>,
        snapshot: Snapshot,
        settings: &JoinSettings,
        with_keys: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let join = settings.apply(snapshot.pairs());
        let join = join.verify_exact(settings.features.clone());
        let pairs = released(py, || join.run())?;
        let (sender, receiver) = sync_channel(4);
        let told = Told::default();
        let own = told.clone();
        let thread = spawn(move || {
            let keys = with_keys.then_some(&snapshot);
            let last = send_pairs(pairs, keys, &sender, &own);
            // Nobody may want to know.
            let _ = sender.send(last);
        })?;
        Ok(Self {
            receiver: Mutex::new(receiver),
            ready: Mutex::default(),
            left_out: Mutex::default(),
            told,
            reporter: Mutex::new(Reporter::new(progress)),
            thread: Mutex::new(Some(thread)),
            home: Home::here(),
        })
    }

    fn report(&self, py: Python<'_>) -> PyResult<()> {
        // A callable that lets other threads run must not keep them from their pairs.
        match self.reporter.try_lock() {
            Ok(mut reporter) => reporter.report(py, &self.told),
            Err(_) => Ok(()),
        }
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
        self.home.check(py)?;
        loop {
            if let Some(pair) = lock(&self.ready).pop_front() {
                return Ok(Some(pair));
            }
            // `list` and its kin run no code of Python's between two pairs.
            py.check_signals()?;
            let found = receive(py, &self.receiver, || self.report(py))?;
            self.report(py)?;
            match found {
                None => return Ok(None),
                Some(Found::Pairs(pairs)) => lock(&self.ready).extend(pairs),
                Some(Found::Failed(error)) => return Err(error).or_raise(py),
                Some(Found::End(left_out)) => *lock(&self.left_out) = Some(left_out),
            }
        }
    }
}

/// Sends all pairs, and returns what is to be sent last.
fn send_pairs(
    mut pairs: resemblance::Pairs,
    keys: Option<&Snapshot>,
    sender: &SyncSender<Found>,
    told: &Told,
) -> Found {
    let mut batch = Vec::new();
    let key = |id: DocumentId| keys.map_or(Ok(None), |snapshot| snapshot.key(id));
    let tell = |pairs: &resemblance::Pairs| {
        let (done, total) = pairs.lanes_read();
        told.tell(Phase::JoiningLanes, done as u64, Some(total as u64));
    };
    while let Some(pair) = pairs.next() {
        tell(&pairs);
        let pair = pair.and_then(|pair| {
            Ok(Pair {
                keys: [key(pair.a)?, key(pair.b)?],
                pair,
            })
        });
        match pair {
            Ok(pair) => batch.push(pair),
            Err(error) => return Found::Failed(error),
        }
        if batch.len() == PAIRS_TOGETHER
            && sender
                .send(Found::Pairs(std::mem::take(&mut batch)))
                .is_err()
        {
            break;
        }
        if told.stop.is_set() {
            break;
        }
    }
    tell(&pairs);
    // Whoever waits for them asks for the end as well.
    let _ = sender.send(Found::Pairs(batch));
    Found::End(pairs.left_out())
}

impl Drop for Pairs {
    fn drop(&mut self) {
        self.told.stop.set();
        if let Some(thread) = lock(&self.thread).take() {
            abandon(self.home, thread);
        }
    }
}

#[pymethods]
impl Pairs {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
        self.next(py)
    }

    /// The pairs that are left, as NumPy arrays `a`, `b`, `similarity` and `distance`.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (mut a, mut b, mut similarity, mut distance) = (vec![], vec![], vec![], vec![]);
        while let Some(Pair { pair, .. }) = self.next(py)? {
            a.push(pair.a.get());
            b.push(pair.b.get());
            similarity.extend(pair.similarity);
            distance.extend(pair.distance);
        }
        let arrays = fields!(py, a: PyArray1::from_vec(py, a), b: PyArray1::from_vec(py, b));
        // One or the other is there for all pairs of a store.
        if !similarity.is_empty() {
            arrays.set_item("similarity", PyArray1::from_vec(py, similarity))?;
        }
        if !distance.is_empty() {
            arrays.set_item("distance", PyArray1::from_vec(py, distance))?;
        }
        Ok(arrays)
    }

    /// What was not compared because buckets were cut short; `None` before the last pair has come.
    #[getter]
    fn left_out<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let left_out = *lock(&self.left_out);
        left_out
            .map(|left_out| left_out_object(py, left_out))
            .transpose()
    }
}

pub(crate) fn left_out_object(py: Python<'_>, left_out: LeftOut) -> PyResult<Bound<'_, PyAny>> {
    let fields = fields!(py,
        buckets: left_out.buckets,
        documents: left_out.documents,
        pairs: left_out.pairs,
    );
    object(py, "reports", "LeftOut", &fields)
}

/// Documents that near pairs link.
#[pyclass(frozen, sequence, module = "resemblance")]
pub(crate) struct Cluster {
    ids: Vec<DocumentId>,
    snapshot: Snapshot,
}

#[pymethods]
impl Cluster {
    /// The ids, ascending.
    #[getter]
    fn ids(&self) -> Vec<u64> {
        self.ids.iter().map(|id| id.get()).collect()
    }

    /// The keys, in the order of the ids; `None` for a document without one.
    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let read = || {
            self.ids
                .iter()
                .map(|id| self.snapshot.key(*id))
                .collect::<Result<Vec<_>, _>>()
        };
        let keys = released(py, read)?;
        let keys = keys.iter().map(|key| optional_key(py, key.as_deref()));
        PyList::new(py, keys.collect::<PyResult<Vec<_>>>()?)
    }

    fn __len__(&self) -> usize {
        self.ids.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<u64> {
        let id = at(&self.ids, index);
        id.map(|id| id.get())
            .ok_or_else(|| PyIndexError::new_err("no document has this index"))
    }

    fn __repr__(&self) -> String {
        format!("Cluster(ids={:?})", self.ids())
    }
}

/// All clusters, by their first documents.
#[pyclass(frozen, sequence, module = "resemblance")]
pub(crate) struct Clusters {
    sets: Vec<Vec<DocumentId>>,
    suspicious: Vec<(u64, u64, f64)>,
    left_out: LeftOut,
    snapshot: Snapshot,
}

impl Clusters {
    pub(crate) fn find(
        py: Python<'_>,
        snapshot: Snapshot,
        settings: JoinSettings,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        in_background(py, progress, move |told| {
            let join = settings.apply(snapshot.clusters());
            let join = join.on_progress(told.callback());
            let join = join.verify_exact(settings.features.clone());
            let mut clusters = join.run()?;
            let sets = clusters.by_ref().collect();
            let suspicious = clusters.suspicious().iter();
            Ok(Self {
                sets,
                suspicious: suspicious
                    .map(|c| (c.first.get(), c.documents, c.share))
                    .collect(),
                left_out: clusters.left_out(),
                snapshot,
            })
        })
    }
}

#[pymethods]
impl Clusters {
    fn __len__(&self) -> usize {
        self.sets.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<Cluster> {
        let ids = at(&self.sets, index).cloned();
        let ids = ids.ok_or_else(|| PyIndexError::new_err("no cluster has this index"))?;
        Ok(Cluster {
            ids,
            snapshot: self.snapshot.clone(),
        })
    }

    /// Clusters that are too large to be believed: the id of the first document, the number of
    /// documents, and their share of all.
    #[getter]
    fn suspicious(&self) -> Vec<(u64, u64, f64)> {
        self.suspicious.clone()
    }

    /// What was not compared because buckets were cut short.
    #[getter]
    fn left_out<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        left_out_object(py, self.left_out)
    }

    fn __repr__(&self) -> String {
        format!("<resemblance.Clusters: {}>", self.sets.len())
    }
}
