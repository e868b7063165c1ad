//! The tables of clusters, of a snapshot or of a transaction.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use crate::clusters::feed::ClusterLog;
use crate::engine::{
    AccessGuard, CLUSTERS, EngineResult, FOREST, MEMBERS, ReadOnlyTable, ReadTransaction,
    ReadableTable, ReadableTableMetadata, Table, TableHandle, WriteTransaction,
};
use crate::error::{Error, Result};
use crate::format::{
    ClusterRow, KeptCluster, Link, checksum, decode_member, edge_key, encode_member, split_edge_key,
};
use crate::id::ClusterId;
use crate::invariant::at;

/// The three tables, open for reading or for writing.
pub(crate) struct ClusterTables<F, R, L = ()> {
    pub(crate) forest: F,
    pub(crate) members: R,
    pub(crate) clusters: R,
    /// Where changes are noted.
    log: L,
}

/// The tables of a transaction.
pub(crate) type WrittenClusters<'t> = ClusterTables<
    Table<'t, &'static [u8; 16], &'static [u8]>,
    Table<'t, u64, &'static [u8]>,
    &'t RefCell<ClusterLog>,
>;

/// The tables of a snapshot.
pub(crate) type ReadClusters = ClusterTables<
    ReadOnlyTable<&'static [u8; 16], &'static [u8]>,
    ReadOnlyTable<u64, &'static [u8]>,
>;

impl ReadClusters {
    pub(crate) fn of(read: &ReadTransaction) -> Result<Self> {
        Ok(Self {
            forest: read.open_table(FOREST).engine()?,
            members: read.open_table(MEMBERS).engine()?,
            clusters: read.open_table(CLUSTERS).engine()?,
            log: (),
        })
    }
}

impl<F, R, L> ClusterTables<F, R, L>
where
    F: ReadableTable<&'static [u8; 16], &'static [u8]>,
    R: ReadableTable<u64, &'static [u8]> + ReadableTableMetadata,
{
    /// Returns the cluster of a document, if it is in one.
    pub(crate) fn cluster_of(&self, document: u64) -> Result<Option<(u64, KeptCluster)>> {
        match self.label_of(document)? {
            Some(label) => self.member_of(document, label).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the id that the cluster of a document had when the document joined it.
    pub(super) fn label_of(&self, document: u64) -> Result<Option<u64>> {
        let row = self.members.get(document).engine()?;
        row.map(|row| decode_member(document, row.value()))
            .transpose()
    }

    /// Returns the cluster of a document that has a label.
    fn member_of(&self, document: u64, label: u64) -> Result<(u64, KeptCluster)> {
        let kept = self.kept(label)?;
        let detail = || format!("found no members, expected document {document}");
        kept.ok_or_else(|| damaged(label, detail()))
    }

    /// Returns the id that a cluster has now and its row, or `None` if there was never such a
    /// cluster.
    pub(crate) fn resolve(&self, cluster: u64) -> Result<Option<(u64, ClusterRow)>> {
        match self.follow(cluster)? {
            (id, Some(row)) => Ok(Some((id, row))),
            (id, None) if id == cluster => Ok(None),
            (id, None) => Err(damaged(id, "found no row, expected one")),
        }
    }

    /// Returns the id to which the rows lead from that of a cluster, and its row, if it has one.
    fn follow(&self, cluster: u64) -> Result<(u64, Option<ClusterRow>)> {
        let mut id = cluster;
        for _ in 0..=self.clusters.len().engine()? {
            let row = self.clusters.get(id).engine()?;
            let row = row.map(|row| ClusterRow::decode(id, row.value()));
            match row.transpose()? {
                Some(ClusterRow::Forward(to)) => id = to,
                row => return Ok((id, row)),
            }
        }
        Err(damaged(cluster, "found a circle of ids that forward"))
    }

    /// Returns the id that the cluster of a document has now, whether or not it has members; `None` if the document is in
    /// no cluster.
    pub(super) fn present_label(&self, document: u64) -> Result<Option<u64>> {
        let Some(label) = self.label_of(document)? else {
            return Ok(None);
        };
        match self.resolve(label)? {
            Some((id, _)) => Ok(Some(id)),
            None => Err(damaged(label, "found no row, expected one")),
        }
    }

    /// Returns the id of the next cluster. Each id that was given has a row, so none is reused.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if an id below the greatest one has no row.
    pub(crate) fn next_id(&self) -> Result<u64> {
        let rows = self.clusters.len().engine()?;
        let last = self.clusters.last().engine()?.map(|(id, _)| id.value());
        if last == rows.checked_sub(1) {
            return Ok(rows);
        }
        let detail = format!("found {rows} rows up to this one, expected one for each id");
        Err(damaged(last.unwrap_or(0), detail))
    }

    /// Returns the documents at the other ends of a document's edges, ascending.
    pub(crate) fn neighbours(&self, document: u64) -> Result<Vec<u64>> {
        let (first, last) = (edge_key(document, 0), edge_key(document, u64::MAX));
        let edges = self.forest.range::<&[u8; 16]>(&first..=&last).engine()?;
        let other = |key: AccessGuard<'_, &[u8; 16]>| split_edge_key(key.value()).1;
        edges.map(|edge| Ok(other(edge.engine()?.0))).collect()
    }

    /// Returns a cluster that has members and its id, by this or a former one.
    pub(crate) fn kept(&self, cluster: u64) -> Result<Option<(u64, KeptCluster)>> {
        Ok(match self.resolve(cluster)? {
            Some((id, ClusterRow::Kept(kept))) => Some((id, kept)),
            _ => None,
        })
    }

    /// Walks the tree of a document to all its members, or until one is found. Returns the members
    /// but the first, each with the one before it and what links them.
    pub(crate) fn walk(&self, first: u64, last: Option<u64>) -> Result<HashMap<u64, (u64, Link)>> {
        let mut found: HashMap<u64, (u64, Link)> = HashMap::new();
        let mut ahead = vec![first];
        while let Some(document) = ahead.pop()
            && last.is_none_or(|last| !found.contains_key(&last))
        {
            let keys = [edge_key(document, 0), edge_key(document, u64::MAX)];
            for edge in self
                .forest
                .range::<&[u8; 16]>(&keys[0]..=&keys[1])
                .engine()?
            {
                let (key, row) = edge.engine()?;
                let (_, other) = split_edge_key(key.value());
                if other != first && !found.contains_key(&other) {
                    found.insert(other, (document, Link::decode(key.value(), row.value())?));
                    ahead.push(other);
                }
            }
        }
        Ok(found)
    }

    /// Returns the members of a cluster by its present or a former id, ascending; none if there is
    /// no such cluster any more.
    pub(crate) fn members_of(&self, cluster: u64) -> Result<Vec<u64>> {
        let Some((id, kept)) = self.kept(cluster)? else {
            return Ok(Vec::new());
        };
        let members = self.connected(kept.first)?;
        if members.len() as u64 != kept.documents {
            let (found, expected) = (members.len(), kept.documents);
            return Err(damaged(
                id,
                format!("found {found} members, expected {expected}"),
            ));
        }
        Ok(members)
    }

    /// Returns all documents that edges connect with one, and this one, ascending.
    pub(crate) fn connected(&self, first: u64) -> Result<Vec<u64>> {
        let mut found = HashSet::from([first]);
        let mut ahead = vec![first];
        while let Some(document) = ahead.pop() {
            let neighbours = self.neighbours(document)?;
            ahead.extend(neighbours.into_iter().filter(|other| found.insert(*other)));
        }
        let mut members: Vec<u64> = found.into_iter().collect();
        members.sort_unstable();
        Ok(members)
    }

    /// Returns the clusters with the most members, at most `count`, the largest first; of equally
    /// large ones the older first.
    pub(crate) fn largest(&self, count: usize) -> Result<Vec<(ClusterId, u64)>> {
        let mut largest = BinaryHeap::new();
        for entry in self.clusters.iter().engine()? {
            let (id, row) = entry.engine()?;
            let id = id.value();
            if let ClusterRow::Kept(cluster) = ClusterRow::decode(id, row.value())? {
                largest.push((Reverse(cluster.documents), id));
                if largest.len() > count {
                    largest.pop();
                }
            }
        }
        let largest = largest.into_sorted_vec().into_iter();
        Ok(largest
            .map(|(Reverse(documents), id)| (ClusterId::new(id), documents))
            .collect())
    }
}

/// Returns the number of members of a cluster that more of them join.
pub(super) fn add_members(cluster: u64, documents: u64, more: u64) -> Result<u64> {
    let all = documents.checked_add(more);
    all.ok_or_else(|| {
        damaged(
            cluster,
            format!("found {documents} members, more than there are ids"),
        )
    })
}

/// The error of edges of a document that contradict the rows of members and clusters.
pub(crate) fn damaged_tree(document: u64, detail: impl Into<String>) -> Error {
    Error::corrupt(format!("table forest, document {document}"), detail)
}

/// The error of a row about a cluster that contradicts others.
pub(super) fn damaged(cluster: u64, detail: impl Into<String>) -> Error {
    Error::corrupt(
        checksum::place(CLUSTERS.name(), &cluster.to_be_bytes()),
        detail.into(),
    )
}

impl<'t> WrittenClusters<'t> {
    pub(crate) fn open(write: &'t WriteTransaction, log: &'t RefCell<ClusterLog>) -> Result<Self> {
        Ok(Self {
            forest: write.open_table(FOREST).engine()?,
            members: write.open_table(MEMBERS).engine()?,
            clusters: write.open_table(CLUSTERS).engine()?,
            log,
        })
    }

    /// Returns the cluster of a document, if it is in one, and shortens the way to it.
    pub(super) fn shorten(&mut self, document: u64) -> Result<Option<(u64, KeptCluster)>> {
        let Some(label) = self.label_of(document)? else {
            return Ok(None);
        };
        let (id, cluster) = self.member_of(document, label)?;
        if id != label {
            self.put_cluster(label, ClusterRow::Forward(id))?;
            self.put_member(document, id)?;
        }
        Ok(Some((id, cluster)))
    }

    pub(super) fn put_edge(&mut self, a: u64, b: u64, link: &Link) -> Result<()> {
        for key in [edge_key(a, b), edge_key(b, a)] {
            let row = link.encode(&key);
            let old = self.forest.insert(&key, row.as_slice()).engine()?;
            if old.is_some() {
                let place = checksum::place(FOREST.name(), &key);
                return Err(Error::corrupt(place, "found a row, expected none"));
            }
        }
        Ok(())
    }

    pub(super) fn remove_edge(&mut self, a: u64, b: u64) -> Result<()> {
        for key in [edge_key(a, b), edge_key(b, a)] {
            if self.forest.remove(&key).engine()?.is_none() {
                let place = checksum::place(FOREST.name(), &key);
                return Err(Error::corrupt(place, "found no row, expected one"));
            }
        }
        Ok(())
    }

    /// Makes a document a member of a cluster, and notes it unless it is one already.
    pub(super) fn put_member(&mut self, document: u64, cluster: u64) -> Result<()> {
        let row = encode_member(document, cluster);
        let old = self.members.insert(document, row.as_slice()).engine()?;
        let label = old.map(|row| decode_member(document, row.value()));
        let before = self.present_id(label.transpose()?)?;
        if before == Some(cluster) {
            return Ok(());
        }
        // A cluster that gets members of another before it has a row is new.
        let is_new = before.is_some() && self.clusters.get(cluster).engine()?.is_none();
        let split = before.filter(|_| is_new);
        self.log.borrow_mut().joined(document, cluster, split);
        Ok(())
    }

    pub(super) fn remove_member(&mut self, document: u64) -> Result<()> {
        let old = self.members.remove(document).engine()?;
        let label = old.map(|row| decode_member(document, row.value()));
        if let Some(cluster) = self.present_id(label.transpose()?)? {
            self.log.borrow_mut().left(document, cluster);
        }
        Ok(())
    }

    /// Writes a cluster and all of its members, which ascend.
    pub(super) fn put_whole(&mut self, cluster: u64, members: &[u64]) -> Result<()> {
        for member in members {
            self.put_member(*member, cluster)?;
        }
        let kept = KeptCluster {
            documents: members.len() as u64,
            first: *at(members, 0)?,
            is_oldest: true,
        };
        self.put_cluster(cluster, ClusterRow::Kept(kept))
    }

    /// Returns the id that a cluster with a label has now.
    fn present_id(&self, label: Option<u64>) -> Result<Option<u64>> {
        let found = label.map_or(Ok(None), |label| self.resolve(label))?;
        Ok(found.map(|(id, _)| id))
    }

    /// Writes the row of a cluster, and notes it if the cluster has united with another or ended.
    pub(super) fn put_cluster(&mut self, cluster: u64, row: ClusterRow) -> Result<()> {
        let body = row.encode(cluster);
        let old = self.clusters.insert(cluster, body.as_slice()).engine()?;
        let old = old.map(|row| ClusterRow::decode(cluster, row.value()));
        if let Some(ClusterRow::Kept(_)) = old.transpose()? {
            self.log.borrow_mut().became(cluster, row);
        }
        Ok(())
    }
}
