//! Changes of the clusters that a store keeps.

use crate::id::{ClusterId, DocumentId};

/// A change of a cluster that a store keeps. [`Snapshot::cluster_changes`] returns them.
///
/// [`Snapshot::cluster_changes`]: crate::Snapshot::cluster_changes
///
/// ```
/// use resemblance::{ClusterEvent, ClusterId, DocumentId};
/// # use resemblance::{MinHash, Schema, Store, Text, schema::ClusterBounds};
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
/// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// # store.insert("b", &page)?;
/// let mut changes = store.snapshot()?.cluster_changes(1)?;
/// let change = changes.next().expect("the second document joined, too")?;
/// assert_eq!((change.position, change.commit), (2, 2));
/// assert_eq!(change.cluster, ClusterId::new(0));
/// assert_eq!(change.event, ClusterEvent::Joined { document: DocumentId::new(0) });
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterChange {
    /// The position after this change: the number of changes from the first one on.
    pub position: u64,
    /// The number of the commit that made it. All changes of a commit became visible together.
    pub commit: u64,
    /// The cluster that has changed.
    pub cluster: ClusterId,
    /// The event that changed it.
    pub event: ClusterEvent,
}

/// An event that changes a cluster. Applied in their order, events keep a copy of the clusters.
///
/// ```
/// use std::collections::BTreeMap;
/// use resemblance::{ClusterEvent, ClusterId, DocumentId};
/// # use resemblance::{MinHash, Schema, Store, Text, schema::ClusterBounds};
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
/// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # for key in ["a", "b", "c"] { store.insert(key, &page)?; }
/// # store.remove("b")?;
/// let mut cluster_of: BTreeMap<DocumentId, ClusterId> = BTreeMap::new();
/// for change in store.snapshot()?.cluster_changes(0)? {
///     let change = change?;
///     match change.event {
///         ClusterEvent::Joined { document } => _ = cluster_of.insert(document, change.cluster),
///         ClusterEvent::Left { document } => _ = cluster_of.remove(&document),
///         ClusterEvent::United { into } => {
///             let members = cluster_of.values_mut().filter(|of| **of == change.cluster);
///             members.for_each(|of| *of = into);
///         }
///         // The documents of a new cluster follow as `Joined`, and one that has ended has none.
///         _ => {}
///     }
/// }
/// assert_eq!(cluster_of.len(), 2);
/// # Ok::<(), resemblance::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterEvent {
    /// A document is in the cluster from now on, and in no other.
    Joined {
        /// The document.
        document: DocumentId,
    },
    /// A document is in no cluster any more.
    Left {
        /// The document.
        document: DocumentId,
    },
    /// All members of the cluster are in another one from now on, to which its id leads.
    United {
        /// The other cluster.
        into: ClusterId,
    },
    /// The cluster is new, and begins with documents that leave another one. They join it next.
    SplitFrom {
        /// The other cluster.
        from: ClusterId,
    },
    /// The last member was removed.
    Ended,
}
