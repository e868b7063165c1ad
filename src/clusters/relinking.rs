//! All clusters of a store are found again: after an offline build, a repair or a rebanding.
//!
//! The documents are linked in the order of their ids. Then each new cluster gets the id of an old
//! one, as far as the tables still show these.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;

use crate::clusters::cluster_tables::WrittenClusters;
use crate::clusters::disjoint_sets::DisjointSets;
use crate::clusters::entering::{FOLLOWERS, link_of, linkage, near_linked};
use crate::clusters::feed::ClusterLog;
use crate::engine::{EngineResult, FOREST, MEMBERS, ReadableTable, WriteTransaction};
use crate::error::Result;
use crate::format::ClusterRow;
use crate::invariant::{OrBug, at};
use crate::query::{PartSearch, ResolvedBounds};
use crate::read::ReadView;
use crate::state::FullBuckets;
use resemblance_sketch::schema::Linkage;
use resemblance_sketch::sketch::Signature;

/// The clusters of a transaction, while they are being found again.
pub(crate) struct Relinking<'a> {
    view: &'a dyn ReadView,
    bounds: &'a ResolvedBounds,
    write: &'a WriteTransaction,
    log: &'a RefCell<ClusterLog>,
    tables: WrittenClusters<'a>,
    full: FullBuckets,
    components: RefCell<DisjointSets>,
    /// The oldest document of each old cluster.
    oldest: HashMap<u64, u64>,
}

impl<'a> Relinking<'a> {
    /// Begins by dropping the edges.
    pub(crate) fn begin(
        view: &'a dyn ReadView,
        bounds: &'a ResolvedBounds,
        write: &'a WriteTransaction,
        log: &'a RefCell<ClusterLog>,
    ) -> Result<Self> {
        write.delete_table(FOREST).engine()?;
        Ok(Self {
            view,
            bounds,
            write,
            log,
            tables: WrittenClusters::open(write, log)?,
            full: FullBuckets::default(),
            components: RefCell::default(),
            oldest: HashMap::new(),
        })
    }

    /// Links a document to those before it. Ids must ascend.
    pub(crate) fn link(&mut self, id: u64, signature: &Signature) -> Result<()> {
        if let Some(old) = self.tables.present_label(id)? {
            self.oldest.entry(old).or_insert(id);
        }
        let linkage = linkage(&self.view.context().schema);
        let components = &self.components;
        let root = |id| components.borrow_mut().root(id);
        let part_of = |id| match linkage {
            Linkage::Single => Some(root(id)),
            // The root of a set is its oldest document: the first of a cluster.
            _ => FOLLOWERS.filter(|_| root(id) != id),
        };
        let of = |id| Ok(part_of(id));
        let search = PartSearch::new(self.view, self.bounds, &of).below(id);
        let (tables, full) = (&self.tables, &mut self.full);
        let members = |first| tables.connected(first);
        for other in near_linked(&search, linkage, members, full, signature)? {
            let (a, b) = (root(id), root(other.id));
            components.borrow_mut().join(a, b);
            self.full.unite(a.max(b), a.min(b));
            self.tables.put_edge(id, other.id, &link_of(&other)?)?;
        }
        search.add_to(&mut self.full, id, signature, part_of(id))
    }

    /// Gives the clusters their ids.
    ///
    /// The part of an old cluster that has its oldest document claims its id. Of the claims on a
    /// new cluster, that of the part with the most documents prevails, and of equally large ones that of the lowest id;
    /// the other ids lead to it. A new cluster without a claim gets the next id.
    pub(crate) fn finish(mut self) -> Result<()> {
        let mut components = self.components.take();
        let mut parts: HashMap<u64, u64> = HashMap::new();
        for row in self.tables.members.iter().engine()? {
            let document = row.engine()?.0.value();
            let old = self.tables.present_label(document)?.or_bug("a row")?;
            let oldest = self.oldest.get(&old);
            if oldest.is_some_and(|oldest| components.are_joined(*oldest, document)) {
                *parts.entry(old).or_default() += 1;
            }
        }
        let mut claims: HashMap<u64, (u64, Reverse<u64>)> = HashMap::new();
        for (old, documents) in &parts {
            let claim = (*documents, Reverse(*old));
            let oldest = self.oldest.get(old).or_bug("a cluster with a document")?;
            let root = components.root(*oldest);
            let best = claims.entry(root).or_insert(claim);
            *best = claim.max(*best);
        }
        self.end_others(&claims, &mut components)?;
        let (write, log) = (self.write, self.log);
        drop(self);
        write.delete_table(MEMBERS).engine()?;
        log.borrow_mut().begin_again();
        let mut tables = WrittenClusters::open(write, log)?;
        for members in components.into_sets() {
            let first = *at(&members, 0)?;
            let id = match claims.remove(&first) {
                Some((_, Reverse(old))) => old,
                None => tables.next_id()?,
            };
            tables.put_whole(id, &members)?;
        }
        for (document, (_, Reverse(old))) in claims {
            tables.put_whole(old, &[document])?;
        }
        Ok(())
    }

    /// Writes what becomes of the ids of old clusters that no new one has.
    fn end_others(
        &mut self,
        claims: &HashMap<u64, (u64, Reverse<u64>)>,
        components: &mut DisjointSets,
    ) -> Result<()> {
        for id in 0..self.tables.next_id()? {
            let root = self.oldest.get(&id).map(|oldest| components.root(*oldest));
            let claim = root.and_then(|root| claims.get(&root));
            let row = self.tables.clusters.get(id).engine()?;
            let row = row
                .map(|row| ClusterRow::decode(id, row.value()))
                .transpose()?;
            match (claim, row) {
                (Some((_, Reverse(to))), _) if *to != id => {
                    self.tables.put_cluster(id, ClusterRow::Forward(*to))?;
                }
                (None, Some(ClusterRow::Kept(_))) => {
                    self.tables.put_cluster(id, ClusterRow::Ended)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
