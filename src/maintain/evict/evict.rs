//! Eviction: documents go by their age, their number, or as the caller says, in short transactions.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use crate::error::Result;
use crate::maintain::evict::newest::{Age, Memory, age_of_rank};
use crate::maintain::evict::options::{EvictEvent, EvictOptions, EvictReport, StoredDocument};
use crate::observe::{UPKEEP, log as events};
use crate::read::StoredRows;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::types::DocumentId;

/// Whether a document is to go.
type Judge<'j> = dyn Fn(&StoredDocument<'_>) -> bool + 'j;
type Watch<'w> = dyn FnMut(EvictEvent) -> ControlFlow<()> + 'w;

impl Store {
    /// Removes the documents whose stamps are less than `stamp`.
    ///
    /// Documents are read without a transaction and removed in short ones, at most
    /// [`EvictOptions::slice_documents`] in each, so that neither readers nor other writers wait for
    /// long. Each is read once more before it goes: one that was
    /// [touched](crate::WriteTransaction::touch), replaced or removed meanwhile is spared, and
    /// counted. Documents that come in meanwhile are not looked at. Stopped or crashed, what was
    /// evicted stays so, and the same call goes on. The memory does not depend on the number of
    /// documents.
    ///
    /// Merges within commits, those of the eviction among them, give the space back to later documents;
    /// [`Store::compact`] gives it back to the disk.
    ///
    /// ```
    /// use resemblance::Document;
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let signature = store.sketch_text("some text or other")?;
    /// let mut transaction = store.begin_write()?;
    /// for (key, day) in [("a", 18), ("b", 19), ("c", 20)] {
    ///     transaction.insert_document(Document::new(key).stamp(day), &signature)?;
    /// }
    /// transaction.commit()?;
    /// store.touch("a", 21)?;
    /// let report = store.evict_older_than(20)?;
    /// assert_eq!((report.evicted, store.snapshot()?.len()), (1, 2));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`begin_write`](Self::begin_write), [`Error::Busy`](crate::Error::Busy) among them if this thread holds a
    /// transaction, and [`WriteTransaction::commit`](crate::WriteTransaction::commit);
    /// [`Error::Corrupt`](crate::Error::Corrupt) and [`Error::Io`](crate::Error::Io) if the file cannot be read. What earlier slices have
    /// evicted stays so.
    pub fn evict_older_than(&self, stamp: u64) -> Result<EvictReport> {
        self.evict_older_than_with(stamp, &EvictOptions::new(), |_| ControlFlow::Continue(()))
    }

    /// [`evict_older_than`](Self::evict_older_than) with options; `watch` is told of progress and may
    /// break off.
    ///
    /// # Errors
    ///
    /// As [`evict_older_than`](Self::evict_older_than), and [`Error::InvalidParameter`](crate::Error::InvalidParameter) for an option
    /// out of its range.
    pub fn evict_older_than_with(
        &self,
        stamp: u64,
        options: &EvictOptions,
        mut watch: impl FnMut(EvictEvent) -> ControlFlow<()>,
    ) -> Result<EvictReport> {
        let is_older = |document: &StoredDocument<'_>| document.stamp() < stamp;
        Eviction::begin(self, options)?.run(&is_older, &mut watch)
    }

    /// Removes all but the `documents` newest: those with the greatest stamps, and of equal stamps
    /// those with the greatest ids. It goes about it as [`evict_older_than`](Self::evict_older_than)
    /// does.
    ///
    /// Which documents are the newest is found exactly, as of the moment of the call, in at most
    /// seven passes over all of them, mostly three, with 2 MiB of memory; a snapshot is held
    /// meanwhile. No more documents go than there were too many at that moment.
    ///
    /// ```
    /// # use resemblance::{MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// let signature = store.sketch_text("some text or other")?;
    /// let (first, second) = (store.append(&signature)?, store.append(&signature)?);
    /// store.keep_newest(1)?;
    /// assert!(store.snapshot()?.get_id(first)?.is_none());
    /// assert!(store.snapshot()?.get_id(second)?.is_some());
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`evict_older_than`](Self::evict_older_than).
    pub fn keep_newest(&self, documents: u64) -> Result<EvictReport> {
        self.keep_newest_with(documents, &EvictOptions::new(), |_| {
            ControlFlow::Continue(())
        })
    }

    /// [`keep_newest`](Self::keep_newest) with options; `watch` is told of progress and may break off.
    ///
    /// # Errors
    ///
    /// As [`evict_older_than_with`](Self::evict_older_than_with).
    pub fn keep_newest_with(
        &self,
        documents: u64,
        options: &EvictOptions,
        mut watch: impl FnMut(EvictEvent) -> ControlFlow<()>,
    ) -> Result<EvictReport> {
        let mut eviction = Eviction::begin(self, options)?;
        let snapshot = eviction.first.take();
        let excess = eviction.of.saturating_sub(documents);
        let (Some(snapshot), 1..) = (snapshot, excess) else {
            return Ok(eviction.report);
        };
        eviction.left = excess;
        let Some(oldest_kept) = oldest_kept(&snapshot, excess, &mut watch)? else {
            eviction.report.stopped = true;
            return Ok(eviction.report);
        };
        drop(snapshot);
        eviction.run(&|document| document.age() < oldest_kept, &mut watch)
    }

    /// Removes the documents for which `is_evicted` holds. It goes about it as
    /// [`evict_older_than`](Self::evict_older_than) does.
    ///
    /// `is_evicted` is asked in this thread, outside of a transaction, and of the documents that it
    /// chose again within the one that removes them: it should be quick, must not write to this store,
    /// and its last answer counts.
    ///
    /// ```
    /// # use resemblance::{Document, MinHash, Schema, Store, Text};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let schema = Schema::builder().text(Text::words(2)).minhash(MinHash::new(64)).build()?;
    /// # let store = Store::create(folder.path().join("pages.rsm"), schema)?;
    /// # let signature = store.sketch_text("some text or other")?;
    /// store.insert("https://example.org/1", &signature)?;
    /// store.insert("https://example.net/1", &signature)?;
    /// let is_gone = |key: &[u8]| key.starts_with(b"https://example.net/");
    /// let report = store.evict_where(|document| document.key().is_some_and(is_gone))?;
    /// assert_eq!((report.examined, report.evicted), (2, 1));
    /// # Ok::<(), resemblance::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`evict_older_than`](Self::evict_older_than).
    pub fn evict_where(
        &self,
        is_evicted: impl Fn(&StoredDocument<'_>) -> bool,
    ) -> Result<EvictReport> {
        self.evict_where_with(is_evicted, &EvictOptions::new(), |_| {
            ControlFlow::Continue(())
        })
    }

    /// [`evict_where`](Self::evict_where) with options; `watch` is told of progress and may break off.
    ///
    /// # Errors
    ///
    /// As [`evict_older_than_with`](Self::evict_older_than_with).
    pub fn evict_where_with(
        &self,
        is_evicted: impl Fn(&StoredDocument<'_>) -> bool,
        options: &EvictOptions,
        mut watch: impl FnMut(EvictEvent) -> ControlFlow<()>,
    ) -> Result<EvictReport> {
        Eviction::begin(self, options)?.run(&is_evicted, &mut watch)
    }
}

/// An eviction under way.
struct Eviction<'a> {
    store: &'a Store,
    options: &'a EvictOptions,
    /// The store as it was at first, until it is looked at.
    first: Option<Snapshot>,
    /// Ids that are not looked at yet; those of documents that come in now are beyond.
    ids: Range<u64>,
    /// The documents that there were at first.
    of: u64,
    /// How many may go yet.
    left: u64,
    /// Documents that are to go.
    chosen: Vec<u64>,
    report: EvictReport,
}

impl<'a> Eviction<'a> {
    fn begin(store: &'a Store, options: &'a EvictOptions) -> Result<Self> {
        options.validate()?;
        if !options.is_dry_run {
            // A handle that cannot write is told at once, whether anything is to go or not.
            drop(store.begin_write()?);
        }
        let first = store.snapshot()?;
        Ok(Self {
            store,
            options,
            ids: 0..first.inner.committed.state.next_id,
            of: first.len(),
            first: Some(first),
            left: u64::MAX,
            chosen: Vec::new(),
            report: EvictReport::default(),
        })
    }

    /// Looks at all documents, each piece of them as it is by then.
    fn run(mut self, judge: &Judge<'_>, watch: &mut Watch<'_>) -> Result<EvictReport> {
        self.first = None;
        let mut rows = StoredRows::default();
        loop {
            self.report.stopped = watch(self.event()).is_break();
            if self.ids.is_empty() || self.report.stopped {
                break;
            }
            self.ids.start = rows.read(&self.store.snapshot()?, self.ids.clone())?;
            if !self.take(&rows, judge, watch)? {
                self.report.stopped = true;
                break;
            }
        }
        if !self.report.stopped {
            self.evict_chosen(judge)?;
            // Nothing is left to be broken off.
            let _ = watch(self.event());
        }
        let message = format_args!("evicted: {:?}", self.report);
        events::debug(UPKEEP, &self.store.inner.core.path, message);
        Ok(self.report)
    }

    /// Chooses among rows, and evicts whenever enough are chosen; whether it goes on.
    fn take(
        &mut self,
        rows: &StoredRows,
        judge: &Judge<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<bool> {
        for (id, row) in rows.iter() {
            self.report.examined += 1;
            if !judge(&StoredDocument::decode(id, row)?) {
                continue;
            }
            if self.options.is_dry_run {
                self.report.evicted += 1;
                continue;
            }
            self.chosen.push(id);
            if self.chosen.len() >= self.options.slice_documents {
                self.evict_chosen(judge)?;
                if watch(self.event()).is_break() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Removes those of the chosen that are still to go, in one transaction.
    fn evict_chosen(&mut self, judge: &Judge<'_>) -> Result<()> {
        let chosen = std::mem::take(&mut self.chosen);
        if chosen.is_empty() {
            return Ok(());
        }
        let mut transaction = self.store.begin_write()?;
        let begun = Instant::now();
        let mut evicted = 0;
        for id in &chosen {
            let row = transaction.stored_row(*id)?;
            let is_to_go = match &row {
                Some(row) => judge(&StoredDocument::decode(*id, row)?),
                None => false,
            };
            if is_to_go && evicted < self.left {
                transaction.remove_id(DocumentId::new(*id))?;
                evicted += 1;
            }
        }
        transaction.note_evicted(evicted);
        transaction.commit()?;
        let report = &mut self.report;
        report.longest_slice = report.longest_slice.max(begun.elapsed());
        report.slices += 1;
        report.evicted += evicted;
        report.spared += chosen.len() as u64 - evicted;
        self.left -= evicted;
        Ok(())
    }

    fn event(&self) -> EvictEvent {
        EvictEvent::Examined {
            documents: self.report.examined,
            of: self.of,
            evicted: self.report.evicted,
        }
    }
}

/// The age of the document that so many are older than, the greatest age if that is all; `None` if
/// `watch` broke off.
fn oldest_kept(snapshot: &Snapshot, older: u64, watch: &mut Watch<'_>) -> Result<Option<Age>> {
    let of = snapshot.len();
    if older >= of {
        // No document has the greatest id.
        return Ok(Some((u64::MAX, u64::MAX)));
    }
    let end = snapshot.inner.committed.state.next_id;
    let mut rows = StoredRows::default();
    age_of_rank(older, of, Memory::default(), &mut |visit| {
        let (mut from, mut documents) = (0, 0);
        while from < end {
            if watch(EvictEvent::Searched { documents, of }).is_break() {
                return Ok(false);
            }
            from = rows.read(snapshot, from..end)?;
            for (id, row) in rows.iter() {
                visit(StoredDocument::decode(id, row)?.age());
                documents += 1;
            }
        }
        Ok(true)
    })
}
