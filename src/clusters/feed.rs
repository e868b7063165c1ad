//! The feed of changes: a transaction notes the changes of clusters and writes them with its commit;
//! a reader returns those after a position.

use std::collections::VecDeque;
use std::fmt;
use std::iter::FusedIterator;
use std::vec;

use crate::engine::{EngineResult, FEED, ReadableTable, WriteTransaction};
use crate::error::{Error, Result};
use crate::format::{ClusterRow, FeedRow, decode_feed, position_after};
use crate::id::{ClusterId, DocumentId};
use crate::read::SnapshotView;
use crate::types::{ClusterChange, ClusterEvent};

/// The share of the changes that a store keeps that may be there beyond them, so that few commits
/// remove any.
const SLACK: u64 = 16;

/// The changes of clusters that a transaction has made. No more is kept in memory than a store
/// keeps.
pub(crate) struct ClusterLog {
    /// The number of changes that the store keeps.
    kept: u64,
    rows: VecDeque<FeedRow>,
    /// The changes of these rows.
    held: u64,
    /// The changes of earlier rows, which the store would not keep.
    passed: u64,
    /// The new cluster that was last split from another.
    split: Option<u64>,
    /// True if the feed begins again.
    begins_again: bool,
}

impl ClusterLog {
    pub(crate) fn new(kept: u64) -> Self {
        Self {
            kept,
            rows: VecDeque::new(),
            held: 0,
            passed: 0,
            split: None,
            begins_again: false,
        }
    }

    /// Begins the feed again, with the changes that follow: they lead from no clusters to those that
    /// were found again.
    pub(super) fn begin_again(&mut self) {
        *self = Self {
            begins_again: true,
            ..Self::new(self.kept)
        };
    }

    /// Notes a document that joins a cluster. `from` is the cluster that it leaves for a new one.
    pub(super) fn joined(&mut self, document: u64, cluster: u64, from: Option<u64>) {
        if let Some(from) = from.filter(|_| self.split != Some(cluster)) {
            self.split = Some(cluster);
            let from = ClusterId::new(from);
            self.note(cluster, ClusterEvent::SplitFrom { from });
        }
        let document = DocumentId::new(document);
        self.note(cluster, ClusterEvent::Joined { document });
    }

    pub(super) fn left(&mut self, document: u64, cluster: u64) {
        let document = DocumentId::new(document);
        self.note(cluster, ClusterEvent::Left { document });
    }

    /// Notes what has become of a cluster that had members.
    pub(super) fn became(&mut self, cluster: u64, row: ClusterRow) {
        match row {
            ClusterRow::Kept(_) => {}
            ClusterRow::Ended => self.note(cluster, ClusterEvent::Ended),
            ClusterRow::Forward(to) => {
                let into = ClusterId::new(to);
                self.note(cluster, ClusterEvent::United { into });
            }
        }
    }

    fn note(&mut self, cluster: u64, event: ClusterEvent) {
        if self.rows.back().is_none_or(FeedRow::is_full) {
            let oldest = self.rows.front().map_or(0, |row| row.changes);
            if self.held - oldest >= self.kept && self.rows.pop_front().is_some() {
                self.held -= oldest;
                self.passed += oldest;
            }
            self.rows.push_back(FeedRow::default());
        }
        if let Some(row) = self.rows.back_mut() {
            row.push(ClusterId::new(cluster), event);
            self.held += 1;
        }
    }

    /// Writes the changes as those of a commit, and removes the oldest ones beyond those that are
    /// kept.
    pub(crate) fn write(&mut self, write: &WriteTransaction, commit: u64) -> Result<()> {
        let kept = self.kept;
        let log = std::mem::replace(self, Self::new(kept));
        if log.begins_again {
            begin_again(write)?;
        }
        if log.rows.is_empty() {
            return Ok(());
        }
        let mut feed = write.open_table(FEED).engine()?;
        let (first, end) = positions(&feed)?;
        let mut position = position_after(end, log.passed)?;
        for row in log.rows {
            let body = row.encode(position, commit);
            feed.insert(position, body.as_slice()).engine()?;
            position = position_after(position, row.changes)?;
        }
        if log.passed > 0 || position - first > kept.saturating_add(kept / SLACK) {
            let kept_from = position.saturating_sub(kept);
            let oldest = feed.range(..=kept_from).engine()?.next_back();
            let oldest = oldest
                .transpose()
                .engine()?
                .map_or(0, |(key, _)| key.value());
            feed.retain_in(..oldest, |_, _| false).engine()?;
        }
        Ok(())
    }
}

/// Begins a feed again, unless nobody can have read a change of it.
fn begin_again(write: &WriteTransaction) -> Result<()> {
    let mut feed = write.open_table(FEED).engine()?;
    let (first, end) = positions(&feed)?;
    if first == end {
        return Ok(());
    }
    feed.retain(|_, _| false).engine()?;
    drop(feed);
    begin_feed_after(write, end)
}

/// Begins a feed beyond a position, and all before it, which readers of another feed may have.
pub(crate) fn begin_feed_after(write: &WriteTransaction, position: u64) -> Result<()> {
    // Far beyond, because the last rows of a damaged store may be lost.
    let first = position_after(position | u64::from(u32::MAX), 1)?;
    let mut feed = write.open_table(FEED).engine()?;
    let row = FeedRow::default().encode(first, 0);
    feed.insert(first, row.as_slice()).engine()?;
    Ok(())
}

/// Returns the positions before the first change of a feed and after the last one.
fn positions(feed: &impl ReadableTable<u64, &'static [u8]>) -> Result<(u64, u64)> {
    let (Some((first, _)), Some((last, row))) = (feed.first().engine()?, feed.last().engine()?)
    else {
        return Ok((0, 0));
    };
    let last = last.value();
    let changes = decode_feed(last, row.value())?;
    Ok((first.value(), changes.last().map_or(last, |it| it.position)))
}

/// Changes of the clusters that a store keeps, in their order. Made by
/// [`Snapshot::cluster_changes`](crate::Snapshot::cluster_changes).
///
/// ```
/// # use resemblance::{MinHash, Schema, Store, Text, schema::ClusterBounds};
/// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
/// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
/// # let page = store.sketch_text("some text or other")?;
/// # store.insert("a", &page)?;
/// # store.insert("b", &page)?;
/// for change in store.snapshot()?.cluster_changes(0)? {
///     let change = change?;
///     println!("{}: cluster {}, {:?}", change.position, change.cluster, change.event);
/// }
/// # Ok::<(), resemblance::Error>(())
/// ```
#[must_use = "nothing is read before it is iterated over"]
pub struct ClusterChanges {
    snapshot: SnapshotView,
    position: u64,
    end: u64,
    row: vec::IntoIter<ClusterChange>,
}

impl ClusterChanges {
    pub(crate) fn new(snapshot: &SnapshotView, since: u64) -> Result<Self> {
        let (first, end) = Self::positions(snapshot)?;
        if !(first..=end).contains(&since) {
            let expected = format!(
                "{first} to {end}; read all clusters again, and then the changes since {end}"
            );
            return Err(Error::invalid("since", since, expected));
        }
        Ok(Self {
            snapshot: snapshot.clone(),
            position: since,
            end,
            row: Vec::new().into_iter(),
        })
    }

    /// Returns the positions before the first change that a store keeps and after the last one.
    pub(crate) fn positions(snapshot: &SnapshotView) -> Result<(u64, u64)> {
        snapshot.context().run_checked(|| {
            let read = &snapshot.inner.tables()?.read;
            positions(&read.open_table(FEED).engine()?)
        })
    }

    /// Returns the position after the last change that was returned, from which a later snapshot
    /// continues.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text, schema::ClusterBounds};
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64));
    /// # let store = Store::in_memory(schema.clusters(ClusterBounds::default()).build()?)?;
    /// # let page = store.sketch_text("some text or other")?;
    /// let mut changes = store.snapshot()?.cluster_changes(0)?;
    /// assert_eq!((changes.by_ref().count(), changes.position()), (0, 0));
    /// store.insert("a", &page)?;
    /// store.insert("b", &page)?;
    /// let mut later = store.snapshot()?.cluster_changes(changes.position())?;
    /// assert_eq!((later.by_ref().count(), later.position()), (2, 2));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads the row of the next change.
    fn read(&mut self) -> Result<()> {
        let (snapshot, position) = (&self.snapshot, self.position);
        let mut changes = snapshot.context().run_checked(|| {
            let feed = snapshot.inner.tables()?.read.open_table(FEED).engine()?;
            let row = ReadableTable::range(&feed, ..=position)
                .engine()?
                .next_back();
            row.transpose()
                .engine()?
                .map_or(Ok(Vec::new()), |(key, row)| {
                    decode_feed(key.value(), row.value())
                })
        })?;
        changes.retain(|change| change.position > position);
        if changes.is_empty() {
            let place = format!("table feed, position {position}");
            return Err(Error::corrupt(place, "found no change, expected one"));
        }
        self.row = changes.into_iter();
        Ok(())
    }
}

impl Iterator for ClusterChanges {
    type Item = Result<ClusterChange>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.position == self.end {
            return None;
        }
        if self.row.len() == 0
            && let Err(error) = self.read()
        {
            self.end = self.position;
            return Some(Err(error));
        }
        let change = self.row.next()?;
        self.position = change.position;
        Some(Ok(change))
    }
}

/// After an error or the end nothing follows.
impl FusedIterator for ClusterChanges {}

impl fmt::Debug for ClusterChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterChanges")
            .field("position", &self.position)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
