//! The clusters that a store keeps, and their changes.

use std::sync::Arc;

use pyo3::prelude::*;
use resemblance::{ClusterEvent, ClusterId, Error, Snapshot};
use resemblance_corpus::RepresentativeRule;

use crate::answers::{Record, pickled};
use crate::errors::invalid;
use crate::joins::{Cluster, Pair};
use crate::keys::Key;
use crate::lease::{Held, Lease};
use crate::reads::Reads;
use crate::waiting::{Home, released};

#[pymethods]
impl Reads {
    /// Returns the id of the cluster that the document with a key is in, or `None` if it is in none or there
    /// is no such document. The schema must keep clusters.
    fn cluster_of(&self, py: Python<'_>, key: Key) -> PyResult<Option<u64>> {
        let snapshot = self.snapshot(py)?;
        let found = released(py, || snapshot.cluster_of(&key.0))?;
        Ok(found.map(ClusterId::get))
    }

    /// Returns the members of a cluster that the store keeps, by its id or a former one.
    fn members(&self, py: Python<'_>, cluster: u64) -> PyResult<Cluster> {
        let snapshot = self.snapshot(py)?;
        let ids = released(py, || snapshot.members(ClusterId::new(cluster)))?;
        Ok(Cluster::new(ids, Lease::new(self.file(), snapshot)))
    }

    /// Returns the ids and sizes of the largest clusters that the store keeps, the largest first.
    #[pyo3(signature = (n=10))]
    fn largest_clusters(&self, py: Python<'_>, n: usize) -> PyResult<Vec<(u64, u64)>> {
        let snapshot = self.snapshot(py)?;
        let found = released(py, || snapshot.largest_clusters(n))?;
        Ok(found
            .into_iter()
            .map(|(id, size)| (id.get(), size))
            .collect())
    }

    /// Returns an iterator over the changes of clusters since a position, in the order in which they were
    /// made. Its `position` continues later, in another snapshot. If changes since then are gone, or after a
    /// repair, this raises `InvalidParameterError`: read all clusters again, from one snapshot, and continue at
    /// its `cluster_position()`.
    #[pyo3(signature = (since=0))]
    fn cluster_changes(&self, py: Python<'_>, since: u64) -> PyResult<ClusterChanges> {
        let snapshot = self.snapshot(py)?;
        let changes = released(py, || snapshot.cluster_changes(since))?;
        Ok(ClusterChanges {
            read: Lease::new(self.file(), ReadChanges { changes, snapshot }),
            home: Home::here(),
        })
    }

    /// Returns the position after the last change of a cluster.
    fn cluster_position(&self, py: Python<'_>) -> PyResult<u64> {
        let snapshot = self.snapshot(py)?;
        released(py, || snapshot.cluster_position())
    }

    /// Returns the clusters with a member that has a stamp from `stamp` on, the one with the latest stamp
    /// first: the id, the number of members, the number of those with such a stamp, and the latest stamp.
    #[pyo3(signature = (stamp, n=100))]
    fn clusters_since(
        &self,
        py: Python<'_>,
        stamp: u64,
        n: usize,
    ) -> PyResult<Vec<(u64, u64, u64, u64)>> {
        let snapshot = self.snapshot(py)?;
        let found = released(py, || snapshot.clusters_since(stamp, n))?.into_iter();
        Ok(found
            .map(|it| (it.cluster.get(), it.documents, it.new_documents, it.latest))
            .collect())
    }

    /// Returns the member that represents a cluster, or `None` if it has no members. `rule` is `"first"`
    /// (inserted first), `"latest"` (by stamp), `"longest"` (the most features, in a store that keeps them),
    /// `"medoid"` (nearest to the others; of many members only 64 are compared), or the greatest or least number in a
    /// field of the payload: `"quality:max"`, `"meta.price:min"`. Payloads must then be JSON objects, or empty.
    #[pyo3(signature = (cluster, rule="first"))]
    fn representative(&self, py: Python<'_>, cluster: u64, rule: &str) -> PyResult<Option<Record>> {
        let rule: RepresentativeRule = rule.parse().map_err(|expected: String| {
            let expected = expected.trim_start_matches("expected ");
            invalid(py, "rule", format!("{rule:?}"), expected)
        })?;
        let snapshot = self.snapshot(py)?;
        let found = released(py, || {
            let found = rule.find(&snapshot, ClusterId::new(cluster))?;
            found.map_or(Ok(None), |id| snapshot.get_id(id))
        })?;
        let record = found.map(|record| Record::new(py, &record, &self.schema));
        record.transpose()
    }

    /// Returns the edges that keep a cluster together, as pairs of near documents.
    fn cluster_edges(&self, py: Python<'_>, cluster: u64) -> PyResult<Vec<Pair>> {
        let snapshot = self.snapshot(py)?;
        released(py, || {
            let edges = snapshot.cluster_edges(ClusterId::new(cluster))?.into_iter();
            edges.map(|edge| Pair::new(edge, Some(&snapshot))).collect()
        })
    }

    /// Returns why the documents with two keys are in one cluster: the edges from the first to the second, of
    /// which each has a document in common with the next. `None` if they are not in one.
    fn cluster_path(&self, py: Python<'_>, a: Key, b: Key) -> PyResult<Option<Vec<Pair>>> {
        let snapshot = self.snapshot(py)?;
        released(py, || {
            let (Some(a), Some(b)) = (snapshot.get(&a.0)?, snapshot.get(&b.0)?) else {
                return Ok(None);
            };
            let Some(path) = snapshot.cluster_path(a.id(), b.id())? else {
                return Ok(None);
            };
            let path = path
                .into_iter()
                .map(|edge| Pair::new(edge, Some(&snapshot)));
            path.collect::<Result<_, _>>().map(Some)
        })
    }

    /// Returns kept clusters that are implausibly large: the id of the first document, the number of documents,
    /// and their share of all.
    fn suspicious_clusters(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64, f64)>> {
        let snapshot = self.snapshot(py)?;
        let found = released(py, || snapshot.suspicious_clusters())?.into_iter();
        Ok(found
            .map(|it| (it.first.get(), it.documents, it.share))
            .collect())
    }
}

/// A change of a cluster.
#[pyclass(frozen, eq, get_all, module = "resemblance")]
#[derive(PartialEq)]
pub(crate) struct ClusterChange {
    /// The position after this change.
    position: u64,
    /// The number of the commit that made it.
    commit: u64,
    /// The id of the cluster that has changed.
    cluster: u64,
    /// The event that changed it: `"joined"` or `"left"` (by `document`), `"united"` (its members are in `other`
    /// from now on), `"split"` (it is new, and begins with documents of `other`, which join it next), or
    /// `"ended"` (its last member was removed).
    event: String,
    /// The other cluster, or `None`.
    other: Option<u64>,
    /// The id of the document, or `None`.
    document: Option<u64>,
    /// The key of the document, or `None` without one and for a document that is not stored any more.
    key: Option<Key>,
}

pickled!(ClusterChange {
    position: u64,
    commit: u64,
    cluster: u64,
    event: String,
    other: Option<u64>,
    document: Option<u64>,
    key: Option<Key>,
});

#[pymethods]
impl ClusterChange {
    fn __repr__(&self) -> String {
        let Self {
            position,
            cluster,
            event,
            ..
        } = self;
        let whom = match (self.document, self.other) {
            (Some(document), _) => format!(", document={document}"),
            (None, Some(other)) => format!(", other={other}"),
            (None, None) => String::new(),
        };
        format!("ClusterChange(position={position}, cluster={cluster}, event={event:?}{whom})")
    }
}

/// Changes that are read on the way, and the documents that they are about.
pub(crate) struct ReadChanges {
    pub(crate) changes: resemblance::ClusterChanges,
    pub(crate) snapshot: Snapshot,
}

impl Held for ReadChanges {
    const NAME: &'static str = "ClusterChanges";
}

impl ReadChanges {
    fn next(&mut self) -> Result<Option<ClusterChange>, Error> {
        let Some(change) = self.changes.next().transpose()? else {
            return Ok(None);
        };
        let (event, other, document) = match change.event {
            ClusterEvent::Joined { document } => ("joined", None, Some(document)),
            ClusterEvent::Left { document } => ("left", None, Some(document)),
            ClusterEvent::United { into } => ("united", Some(into), None),
            ClusterEvent::SplitFrom { from } => ("split", Some(from), None),
            ClusterEvent::Ended => ("ended", None, None),
            _ => ("other", None, None),
        };
        let key = document.map_or(Ok(None), |id| self.snapshot.key(id))?;
        Ok(Some(ClusterChange {
            position: change.position,
            commit: change.commit,
            cluster: change.cluster.get(),
            event: event.to_owned(),
            other: other.map(|id| id.get()),
            document: document.map(|id| id.get()),
            key: key.map(Key),
        }))
    }
}

/// Iterates over changes of clusters.
#[pyclass(frozen, module = "resemblance")]
pub(crate) struct ClusterChanges {
    pub(crate) read: Arc<Lease<ReadChanges>>,
    pub(crate) home: Home,
}

#[pymethods]
impl ClusterChanges {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ClusterChange>> {
        self.home.check(py)?;
        released(py, || self.read.with(ReadChanges::next))
    }

    /// The position after the last change that was returned.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<u64> {
        released(py, || self.read.with(|read| Ok(read.changes.position())))
    }
}
