//! Eviction: documents go by their age, their number, or as the caller says, in short transactions.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use std::sync::Arc;

use crate::error::Result;
use crate::maintain::evict::newest::{Age, Memory, age_of_rank};
use crate::maintain::evict::options::{EvictEvent, EvictOptions, EvictReport, StoredDocument};
use crate::observe::{UPKEEP, log as events};
use crate::read::SnapshotView;
use crate::read::StoredRows;
use crate::state::OpenStore;
use crate::types::DocumentId;
use crate::write::Transaction;

/// Decides whether a document is evicted.
type Judge<'j> = dyn Fn(&StoredDocument<'_>) -> bool + 'j;
type EvictWatch<'w> = dyn FnMut(EvictEvent) -> ControlFlow<()> + 'w;

/// Evicts the documents whose stamps are lower than one.
pub(crate) fn evict_older_than_with(
    store: &Arc<OpenStore>,
    stamp: u64,
    options: &EvictOptions,
    mut watch: impl FnMut(EvictEvent) -> ControlFlow<()>,
) -> Result<EvictReport> {
    let is_older = |document: &StoredDocument<'_>| document.stamp() < stamp;
    Eviction::begin(store, options)?.run(&is_older, &mut watch)
}

/// Evicts the oldest documents until no more than a number of them are left.
pub(crate) fn keep_newest_with(
    store: &Arc<OpenStore>,
    documents: u64,
    options: &EvictOptions,
    mut watch: impl FnMut(EvictEvent) -> ControlFlow<()>,
) -> Result<EvictReport> {
    let mut eviction = Eviction::begin(store, options)?;
    let snapshot = eviction.first.take();
    let excess = eviction.total.saturating_sub(documents);
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

/// Evicts the documents for which `is_evicted` returns true.
pub(crate) fn evict_where_with(
    store: &Arc<OpenStore>,
    is_evicted: impl Fn(&StoredDocument<'_>) -> bool,
    options: &EvictOptions,
    mut watch: impl FnMut(EvictEvent) -> ControlFlow<()>,
) -> Result<EvictReport> {
    Eviction::begin(store, options)?.run(&is_evicted, &mut watch)
}

/// An eviction under way.
struct Eviction<'a> {
    store: &'a Arc<OpenStore>,
    options: &'a EvictOptions,
    /// The snapshot at the beginning, until it has been read.
    first: Option<SnapshotView>,
    /// Ids that have not been read yet. Documents inserted meanwhile have greater ones.
    ids: Range<u64>,
    /// Number of documents at the beginning.
    total: u64,
    /// Documents that may still be evicted.
    left: u64,
    /// Ids of documents to evict in the next slices.
    chosen: Vec<u64>,
    report: EvictReport,
}

impl<'a> Eviction<'a> {
    fn begin(store: &'a Arc<OpenStore>, options: &'a EvictOptions) -> Result<Self> {
        options.validate()?;
        if !options.is_dry_run {
            // A handle that cannot write fails at once, even if nothing would be evicted.
            drop(Transaction::begin(store)?);
        }
        let first = SnapshotView::open(store)?;
        Ok(Self {
            store,
            options,
            ids: 0..first.inner.version.state.next_id,
            total: first.len(),
            first: Some(first),
            left: u64::MAX,
            chosen: Vec::new(),
            report: EvictReport::default(),
        })
    }

    /// Looks at all documents, each piece of them as it is by then.
    fn run(mut self, judge: &Judge<'_>, watch: &mut EvictWatch<'_>) -> Result<EvictReport> {
        self.first = None;
        let mut rows = StoredRows::default();
        loop {
            self.report.stopped = watch(self.event()).is_break();
            if self.ids.is_empty() || self.report.stopped {
                break;
            }
            self.ids.start = rows.read(&SnapshotView::open(self.store)?, self.ids.clone())?;
            if !self.take(&rows, judge, watch)? {
                self.report.stopped = true;
                break;
            }
        }
        if !self.report.stopped {
            self.evict_chosen(judge)?;
            // Nothing is left that could be stopped.
            let _ = watch(self.event());
        }
        let message = format_args!("evicted: {:?}", self.report);
        events::debug(UPKEEP, &self.store.context.path, message);
        Ok(self.report)
    }

    /// Chooses among rows, and evicts whenever enough are chosen. Returns false if it was stopped.
    fn take(
        &mut self,
        rows: &StoredRows,
        judge: &Judge<'_>,
        watch: &mut EvictWatch<'_>,
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
        let mut transaction = Transaction::begin(self.store)?;
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
            total: self.total,
            evicted: self.report.evicted,
        }
    }
}

/// Returns the age of the document that so many are older than, the greatest age if all are; `None`
/// if
/// `watch` broke off.
fn oldest_kept(
    snapshot: &SnapshotView,
    older: u64,
    watch: &mut EvictWatch<'_>,
) -> Result<Option<Age>> {
    let total = snapshot.len();
    if older >= total {
        // No document has the greatest id.
        return Ok(Some((u64::MAX, u64::MAX)));
    }
    let end = snapshot.inner.version.state.next_id;
    let mut rows = StoredRows::default();
    age_of_rank(older, total, Memory::default(), &mut |visit| {
        let (mut from, mut documents) = (0, 0);
        while from < end {
            if watch(EvictEvent::Searched { documents, total }).is_break() {
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
