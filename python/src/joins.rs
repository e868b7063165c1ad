//! Near pairs of a whole store, and their clusters.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use numpy::PyArray1;
use pyo3::IntoPyObjectExt;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyList, PyTuple};
use resemblance::search::{Certainty, LeftOut};
use resemblance::{Bounds, DocumentId, Error, Family, Phase, Snapshot};

use crate::answers::{
    CertaintyTuple, Columns, Measures, are_texts, arrow_stream, arrow_table, certainty_tuple,
    dataclass_fields, key_values, measures, numbers, row, with_measures,
};
use crate::errors::OrRaise;
use crate::keys::Key;
use crate::lease::{Held, Lease, OpenFile};
use crate::progress::{Callback, CallerLink, Reporter};
use crate::python::{Report, choice, given, item, object};
use crate::signature::hash;
use crate::waiting::{Home, PATIENCE, abandon, closed, lock, receive, released, spawn};

/// The number of pairs that the thread that finds them sends to Python at once.
const PAIRS_TOGETHER: usize = 1_024;

pub(crate) const BY: [(&str, Family); 5] = [
    ("minhash", Family::MinHash),
    ("vector", Family::MinHash),
    ("simhash", Family::SimHash),
    ("any", Family::Any),
    ("both", Family::Both),
];

/// The family of a name.
pub(crate) fn family(py: Python<'_>, by: Option<&str>) -> PyResult<Option<Family>> {
    by.map(|by| choice(py, "by", by, &BY)).transpose()
}

/// The bounds of a query or a join.
pub(crate) fn bounds(
    py: Python<'_>,
    threshold: Option<f64>,
    max_distance: Option<u32>,
    by: Option<&str>,
    accept_lower_recall: bool,
    margin: Option<f64>,
) -> PyResult<Bounds> {
    let by = family(py, by)?;
    Ok(
        given!(Bounds::new(), min_similarity: threshold, max_distance, by, margin;
        accept_lower_recall if accept_lower_recall),
    )
}

/// Two documents that are near each other.
#[pyclass(frozen, get_all, module = "resemblance")]
pub(crate) struct Pair {
    /// The id of the earlier document.
    a: u64,
    /// The id of the later document.
    b: u64,
    /// The key of the earlier document, or `None` without one and with `keys=False`.
    key_a: Option<Key>,
    /// The key of the later document, or `None` without one and with `keys=False`.
    key_b: Option<Key>,
    /// The similarity, from 0 to 1: an estimate unless `is_exact`. `None` without MinHash.
    similarity: Option<f64>,
    /// True if the similarity was computed from features rather than estimated from signatures.
    is_exact: bool,
    /// The number of bits in which the fingerprints differ, or `None` without SimHash.
    distance: Option<u32>,
}

impl Pair {
    pub(crate) fn new(
        pair: resemblance::Pair,
        keys: Option<&Snapshot>,
    ) -> resemblance::Result<Self> {
        let key = |id| match keys {
            Some(snapshot) => snapshot.key(id).map(|key| key.map(Key)),
            None => Ok(None),
        };
        Ok(Self {
            a: pair.a.get(),
            b: pair.b.get(),
            key_a: key(pair.a)?,
            key_b: key(pair.b)?,
            similarity: pair.similarity,
            is_exact: pair.is_exact,
            distance: pair.distance,
        })
    }
}

row!(Pair {
    a: u64,
    b: u64,
    key_a: Option<Key>,
    key_b: Option<Key>,
    similarity: Option<f64>,
    is_exact: bool,
    distance: Option<u32>
});

#[pymethods]
impl Pair {
    /// Keys are not compared, because they may not have been read.
    fn __eq__(&self, other: &Self) -> bool {
        let [a, b] = [self, other].map(|it| (it.a, it.b, it.similarity, it.is_exact, it.distance));
        a == b
    }

    fn __repr__(&self) -> String {
        let measures = measures(self.similarity, self.distance);
        format!("Pair(a={}, b={}{measures})", self.a, self.b)
    }
}

/// A message of the thread that finds pairs.
enum Found {
    Pairs(Vec<Pair>),
    Failed(Error),
    End(LeftOut, Certainty),
}

/// Iterates over near pairs while a thread finds them.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct Pairs {
    receiver: Mutex<Receiver<Found>>,
    ready: Mutex<VecDeque<Pair>>,
    /// The comparisons left out, and the certainty; `None` before the last pair.
    end: Mutex<Option<(LeftOut, Certainty)>>,
    link: CallerLink,
    reporter: Mutex<Reporter>,
    search: Arc<Lease<PairSearch>>,
    /// Whether the pairs of the schema have similarities, and distances.
    has_similarity: bool,
    has_distance: bool,
    home: Home,
}

/// The thread that finds pairs.
struct PairSearch {
    link: CallerLink,
    thread: JoinHandle<()>,
}

impl Held for PairSearch {
    const NAME: &'static str = "Pairs";

    fn end(self) {
        self.link.stop.set();
        // No caller remains for its panic.
        let _ = self.thread.join();
    }
}

impl Pairs {
    /// Sends pairs from a separate thread, with keys if a snapshot provides them.
    pub(crate) fn start(
        file: &Arc<OpenFile>,
        pairs: resemblance::Pairs,
        schema: &resemblance::Schema,
        keys: Option<Snapshot>,
        progress: Callback,
    ) -> PyResult<Self> {
        let (sender, receiver) = sync_channel(4);
        let link = CallerLink::default();
        let own = link.clone();
        let thread = spawn(move || {
            let last = send_pairs(pairs, keys.as_ref(), &sender, &own);
            send(&sender, last, &own);
        })?;
        let search = PairSearch {
            link: link.clone(),
            thread,
        };
        Ok(Self {
            receiver: Mutex::new(receiver),
            ready: Mutex::default(),
            end: Mutex::default(),
            link,
            reporter: Mutex::new(Reporter::new(progress)),
            search: Lease::new(file, search),
            has_similarity: schema.minhash().is_some(),
            has_distance: schema.simhash().is_some(),
            home: Home::here(),
        })
    }

    fn report(&self, py: Python<'_>) -> PyResult<()> {
        // A callable that lets other threads run must not keep them from their pairs.
        match self.reporter.try_lock() {
            Ok(mut reporter) => reporter.report(py, &self.link),
            Err(_) => Ok(()),
        }
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
        self.home.check(py)?;
        loop {
            if let Some(pair) = lock(&self.ready).pop_front() {
                return Ok(Some(pair));
            }
            // `list` and similar functions run no Python code between two pairs.
            py.check_signals()?;
            let found = receive(py, &self.receiver, || self.report(py))?;
            let is_over = lock(&self.end).is_some();
            if !is_over && !self.search.is_open() {
                return Err(closed("the store of these pairs")).or_raise(py);
            }
            match found {
                None if is_over => return Ok(None),
                // The search failed or was stopped, which was reported before.
                None => return Err(closed("the search for these pairs")).or_raise(py),
                Some(Found::Pairs(pairs)) => lock(&self.ready).extend(pairs),
                Some(Found::Failed(error)) => return Err(error).or_raise(py),
                Some(Found::End(left_out, certainty)) => {
                    *lock(&self.end) = Some((left_out, certainty));
                }
            }
            // Pairs are not lost if this raises, and the program continues.
            self.report(py)?;
        }
    }
}

/// Sends all pairs, and returns the last message to send.
fn send_pairs(
    mut pairs: resemblance::Pairs,
    keys: Option<&Snapshot>,
    sender: &SyncSender<Found>,
    link: &CallerLink,
) -> Found {
    let mut batch = Vec::new();
    let notify = |pairs: &resemblance::Pairs| {
        let (done, total) = pairs.lanes_read();
        link.report(Phase::JoiningLanes, done as u64, Some(total as u64));
    };
    while let Some(pair) = pairs.next() {
        notify(&pairs);
        match pair.and_then(|pair| Pair::new(pair, keys)) {
            Ok(pair) => batch.push(pair),
            Err(error) => return Found::Failed(error),
        }
        if batch.len() == PAIRS_TOGETHER {
            send(sender, Found::Pairs(std::mem::take(&mut batch)), link);
        }
        if link.stop.is_set() {
            return Found::Failed(closed("the search for these pairs"));
        }
    }
    notify(&pairs);
    send(sender, Found::Pairs(batch), link);
    Found::End(pairs.left_out(), pairs.certainty())
}

/// Sends unless the receiver no longer exists, or the thread must stop.
fn send(sender: &SyncSender<Found>, found: Found, link: &CallerLink) {
    let mut unsent = found;
    while let Err(TrySendError::Full(back)) = sender.try_send(unsent) {
        if link.stop.is_set() {
            return;
        }
        unsent = back;
        std::thread::sleep(PATIENCE / 50);
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        self.link.stop.set();
        if let Ok(search) = self.search.take() {
            abandon(self.home, search.thread);
        }
    }
}

#[pymethods]
impl Pairs {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A reporter at work is not garbage.
        let reporter = self.reporter.try_lock();
        reporter.map_or(Ok(()), |reporter| visit.call(&reporter.callable))
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
        self.next(py)
    }

    /// Returns the remaining pairs as NumPy arrays `a`, `b`, `similarity` and `distance`.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (mut a, mut b, mut similarity, mut distance) = (vec![], vec![], vec![], vec![]);
        while let Some(pair) = self.next(py)? {
            a.push(pair.a);
            b.push(pair.b);
            similarity.push(pair.similarity.unwrap_or(f64::NAN));
            distance.push(pair.distance.unwrap_or(u32::MAX));
        }
        let arrays = PyDict::new(py);
        arrays.set_item("a", PyArray1::from_vec(py, a))?;
        arrays.set_item("b", PyArray1::from_vec(py, b))?;
        // The schema decides which columns there are, also of no pairs.
        if self.has_similarity {
            arrays.set_item("similarity", PyArray1::from_vec(py, similarity))?;
        }
        if self.has_distance {
            arrays.set_item("distance", PyArray1::from_vec(py, distance))?;
        }
        Ok(arrays)
    }

    /// Returns the remaining pairs as an Arrow stream with a column for each field of `Pair`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let mut rows = Vec::new();
        while let Some(pair) = self.next(py)? {
            rows.push(pair);
        }
        let are_texts = are_texts(rows.iter().flat_map(|it| [&it.key_a, &it.key_b]));
        let columns = |rows: &[Pair]| pair_columns(rows, are_texts);
        arrow_stream(py, &rows, columns, requested_schema)
    }

    /// Returns the remaining pairs as a pyarrow table with a column for each field of `Pair`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> Report<'py> {
        arrow_table(slf)
    }

    /// The comparisons that were left out because buckets were cut short, or `None` before the last
    /// pair was returned.
    #[getter]
    fn left_out<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let end = *lock(&self.end);
        end.map(|(left_out, _)| left_out_object(py, left_out))
            .transpose()
    }

    /// How sure it is that no pair is missing, as for `Matches`, or `None` before the last pair was
    /// returned.
    #[getter]
    fn certainty(&self) -> Option<CertaintyTuple> {
        let (_, certainty) = (*lock(&self.end))?;
        certainty_tuple(certainty)
    }
}

fn pair_columns(rows: &[Pair], are_texts: bool) -> Columns {
    let named: Columns = vec![
        ("a", numbers(rows.iter().map(|it| it.a))),
        ("b", numbers(rows.iter().map(|it| it.b))),
        (
            "key_a",
            key_values(rows.iter().map(|it| &it.key_a), are_texts),
        ),
        (
            "key_b",
            key_values(rows.iter().map(|it| &it.key_b), are_texts),
        ),
    ];
    with_measures(named, rows, |it| Measures {
        similarity: it.similarity,
        is_exact: it.is_exact,
        distance: it.distance,
    })
}

fn left_out_object(py: Python<'_>, left_out: LeftOut) -> Report<'_> {
    object! { py, reports.LeftOut, left_out { buckets, documents, pairs } }
}

/// The keys of the documents of clusters.
#[derive(Clone)]
enum ClusterKeys {
    /// They are read when they are asked for.
    Stored(Arc<Lease<Snapshot>>),
    /// They were read before a process passed the clusters to another one.
    Read(Arc<HashMap<DocumentId, Key>>),
}

impl ClusterKeys {
    fn of(&self, py: Python<'_>, ids: &[DocumentId]) -> PyResult<Vec<Option<Key>>> {
        released(py, || match self {
            Self::Stored(snapshot) => {
                let open = snapshot.get()?;
                let key = |id: &DocumentId| Ok(open.key(*id)?.map(Key));
                ids.iter().map(key).collect()
            }
            Self::Read(keys) => Ok(ids.iter().map(|id| keys.get(id).cloned()).collect()),
        })
    }

    fn read(ids: &[DocumentId], keys: Vec<Option<Key>>) -> Self {
        let keyed = ids.iter().zip(keys);
        let keyed = keyed.filter_map(|(id, key)| Some((*id, key?)));
        Self::Read(Arc::new(keyed.collect()))
    }
}

fn document_ids(ids: Vec<u64>) -> Vec<DocumentId> {
    ids.into_iter().map(DocumentId::new).collect()
}

fn plain_ids(ids: &[DocumentId]) -> Vec<u64> {
    ids.iter().map(|id| id.get()).collect()
}

/// Documents that are linked by near pairs.
#[pyclass(frozen, sequence, module = "resemblance")]
pub(crate) struct Cluster {
    ids: Vec<DocumentId>,
    keys: ClusterKeys,
}

impl Cluster {
    pub(crate) fn new(ids: Vec<DocumentId>, snapshot: Arc<Lease<Snapshot>>) -> Self {
        let keys = ClusterKeys::Stored(snapshot);
        Self { ids, keys }
    }
}

#[pymethods]
impl Cluster {
    #[classattr]
    fn __dataclass_fields__(py: Python<'_>) -> Report<'_> {
        dataclass_fields(py, &["ids", "keys"])
    }

    /// The ids, ascending.
    #[getter]
    fn ids(&self) -> Vec<u64> {
        plain_ids(&self.ids)
    }

    /// The keys in the order of the ids, `None` for a document without a key.
    #[getter]
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<Option<Key>>> {
        self.keys.of(py, &self.ids)
    }

    /// Makes a cluster of its ids and keys, as `pickle` does.
    #[staticmethod]
    fn _of_fields(ids: Vec<u64>, keys: Vec<Option<Key>>) -> Self {
        let ids = document_ids(ids);
        Self {
            keys: ClusterKeys::read(&ids, keys),
            ids,
        }
    }

    /// Reads the keys, because another process does not have the snapshot.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let fields = (slf.get().ids(), slf.get().keys(slf.py())?);
        (slf.get_type().getattr("_of_fields")?, fields).into_pyobject(slf.py())
    }

    fn __len__(&self) -> usize {
        self.ids.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let object = |id: &DocumentId| id.get().into_bound_py_any(index.py());
        item(&self.ids, index, "document", object)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.ids == other.ids
    }

    fn __hash__(&self) -> u64 {
        hash(&self.ids)
    }

    fn __repr__(&self) -> String {
        format!("Cluster(ids={:?})", self.ids())
    }
}

/// All clusters, in the order of their first documents.
#[pyclass(frozen, sequence, module = "resemblance")]
pub(crate) struct Clusters {
    sets: Vec<Vec<DocumentId>>,
    suspicious: Vec<(u64, u64, f64)>,
    left_out: LeftOut,
    certainty: Option<CertaintyTuple>,
    keys: ClusterKeys,
}

impl Clusters {
    pub(crate) fn new(mut clusters: resemblance::Clusters, snapshot: Arc<Lease<Snapshot>>) -> Self {
        let sets = clusters.by_ref().collect();
        let suspicious = clusters.suspicious().iter();
        Self {
            sets,
            suspicious: suspicious
                .map(|it| (it.first.get(), it.documents, it.share))
                .collect(),
            left_out: clusters.left_out(),
            certainty: certainty_tuple(clusters.certainty()),
            keys: ClusterKeys::Stored(snapshot),
        }
    }

    fn cluster(&self, ids: &[DocumentId]) -> Cluster {
        Cluster {
            ids: ids.to_vec(),
            keys: self.keys.clone(),
        }
    }

    /// The documents of all clusters, without their keys.
    fn members(&self) -> impl Iterator<Item = Member> {
        self.sets.iter().flat_map(|set| {
            let cluster = set.first().map_or(0, |id| id.get());
            let member = move |id: &DocumentId| Member {
                cluster,
                id: id.get(),
                key: None,
            };
            set.iter().map(member)
        })
    }
}

/// A document of a cluster. The id of the cluster's first document identifies the cluster.
struct Member {
    cluster: u64,
    id: u64,
    key: Option<Key>,
}

#[pymethods]
impl Clusters {
    fn __len__(&self) -> usize {
        self.sets.len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let object = |ids: &Vec<DocumentId>| self.cluster(ids).into_bound_py_any(index.py());
        item(&self.sets, index, "cluster", object)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.sets.iter().map(|ids| self.cluster(ids)))?.try_iter()
    }

    /// Returns the documents of all clusters as NumPy arrays: `id`, and `cluster`, which is the
    /// first id of the document's cluster.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arrays = PyDict::new(py);
        let clusters = self.members().map(|it| it.cluster);
        arrays.set_item("cluster", PyArray1::from_iter(py, clusters))?;
        arrays.set_item(
            "id",
            PyArray1::from_iter(py, self.members().map(|it| it.id)),
        )?;
        Ok(arrays)
    }

    /// The documents of all clusters as Arrow has them: the columns of `arrays`, and `key`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let keys = self.keys.of(py, &self.sets.concat())?;
        let are_texts = are_texts(keys.iter());
        let keyed = |(member, key)| Member { key, ..member };
        let rows: Vec<_> = self.members().zip(keys).map(keyed).collect();
        let columns = |rows: &[Member]| -> Columns {
            vec![
                ("cluster", numbers(rows.iter().map(|it| it.cluster))),
                ("id", numbers(rows.iter().map(|it| it.id))),
                ("key", key_values(rows.iter().map(|it| &it.key), are_texts)),
            ]
        };
        arrow_stream(py, &rows, columns, requested_schema)
    }

    /// The documents of all clusters as a table of pyarrow: the columns of `arrays`, and `key`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> Report<'py> {
        arrow_table(slf)
    }

    /// Returns clusters that are implausibly large: the id of the first document, the number of
    /// documents, and their share of all.
    #[getter]
    fn suspicious(&self) -> Vec<(u64, u64, f64)> {
        self.suspicious.clone()
    }

    /// The comparisons that were left out because buckets were cut short.
    #[getter]
    fn left_out<'py>(&self, py: Python<'py>) -> Report<'py> {
        left_out_object(py, self.left_out)
    }

    /// How sure it is that a pair links its documents, as for `Matches`.
    #[getter]
    fn certainty(&self) -> Option<CertaintyTuple> {
        self.certainty.clone()
    }

    /// Makes clusters of their documents and the other fields, as `pickle` does.
    #[staticmethod]
    fn _of_fields(
        sets: Vec<Vec<u64>>,
        keys: Vec<Option<Key>>,
        suspicious: Vec<(u64, u64, f64)>,
        left_out: (u64, u64, u64),
        certainty: Option<CertaintyTuple>,
    ) -> Self {
        let sets: Vec<_> = sets.into_iter().map(document_ids).collect();
        let mut all_left_out = LeftOut::default();
        (
            all_left_out.buckets,
            all_left_out.documents,
            all_left_out.pairs,
        ) = left_out;
        Self {
            keys: ClusterKeys::read(&sets.concat(), keys),
            sets,
            suspicious,
            left_out: all_left_out,
            certainty,
        }
    }

    /// Reads the keys, because another process does not have the snapshot.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, it) = (slf.py(), slf.get());
        let sets: Vec<_> = it.sets.iter().map(|ids| plain_ids(ids)).collect();
        let keys = it.keys.of(py, &it.sets.concat())?;
        let LeftOut {
            buckets,
            documents,
            pairs,
            ..
        } = it.left_out;
        let left_out = (buckets, documents, pairs);
        let fields = (sets, keys, &it.suspicious, left_out, &it.certainty);
        (slf.get_type().getattr("_of_fields")?, fields).into_pyobject(py)
    }

    /// Compares the ids of the documents.
    fn __eq__(&self, other: &Self) -> bool {
        self.sets == other.sets
    }

    fn __repr__(&self) -> String {
        format!("<resemblance.Clusters: {}>", self.sets.len())
    }
}
